package simulate

import (
	"fmt"
	"io"
	"unsafe"

	"github.com/commq/commq/internal/snapshot"
)

// offerCheckpoint offers to save the state. Between two events the engine holds all of it.
func (e *engine) offerCheckpoint() error {
	e.progress.border = false
	if e.setting.options.Border == nil {
		return nil
	}
	return e.setting.options.Border(e.progress.epochs, func(w io.Writer) error { return snapshot.Write(w, e) })
}

// restore continues from a saved state. The setting is not saved: the caller provides it again.
func (e *engine) restore() error {
	threads, nodes, comms, given := len(e.threads), len(e.cpus.nodes), len(e.comms.items), *e.setting
	if err := snapshot.Read(given.options.State, e); err != nil {
		return fmt.Errorf("continue a simulation: %w", err)
	}
	*e.setting = given
	e.bind()
	if len(e.threads) != threads || len(e.cpus.nodes) != nodes || len(e.comms.items) != comms {
		return fmt.Errorf("continue a simulation: the state is of %d threads on %d nodes with %d communicators, and "+
			"the run has %d, %d and %d", len(e.threads), len(e.cpus.nodes), len(e.comms.items), threads, nodes, comms)
	}
	if why := e.p2p.channels.fault(); why != "" {
		return fmt.Errorf("continue a simulation: the saved state makes no sense: %s", why)
	}
	return nil
}

// memory estimates the bytes that grow with the length of the program, not only with its number of ranks.
func (e *engine) memory() int64 {
	return int64(e.progress.ops.slabs)*slabChunks*int64(unsafe.Sizeof(chunk{})) +
		int64(cap(e.network.messages.items))*int64(unsafe.Sizeof(message{})) +
		int64(cap(e.requests.items))*int64(unsafe.Sizeof(request{})) +
		int64(cap(e.input.requestInfo))*int64(unsafe.Sizeof(requestInfo{})) +
		int64(cap(e.p2p.channels.channels))*int64(unsafe.Sizeof(channel{}))
}
