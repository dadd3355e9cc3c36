package simulate

import (
	"fmt"
	"io"
	"unsafe"

	"github.com/commq/commq/internal/snapshot"
)

// keep offers to keep the state: between two events all of it is in the engine.
func (e *engine) keep() error {
	e.border = false
	if e.options.Border == nil {
		return nil
	}
	return e.options.Border(e.epochs, func(w io.Writer) error { return snapshot.Write(w, e) })
}

// restore goes on from a state. What is not part of it, and does not depend on what was simulated, stands as newEngine made it.
func (e *engine) restore() error {
	streams, nodes, comms := len(e.streams), len(e.nodes), len(e.comms)
	if err := snapshot.Read(e.options.State, e); err != nil {
		return fmt.Errorf("go on with a simulation: %w", err)
	}
	if len(e.streams) != streams || len(e.nodes) != nodes || len(e.comms) != comms {
		return fmt.Errorf("go on with a simulation: the state is of %d threads on %d nodes with %d communicators, and the run has %d, %d and %d", len(e.streams), len(e.nodes),
			len(e.comms), streams, nodes, comms)
	}
	return nil
}

// memory is about how many bytes are in use of what is not bounded by ranks.
func (e *engine) memory() int64 {
	return int64(e.pool.slabs)*slabChunks*int64(unsafe.Sizeof(chunk{})) + int64(cap(e.messages))*int64(unsafe.Sizeof(message{})) +
		int64(cap(e.requests))*int64(unsafe.Sizeof(request{})) + int64(cap(e.input.made))*int64(unsafe.Sizeof(madeRequest{})) +
		int64(cap(e.channels.channels))*int64(unsafe.Sizeof(channel{}))
}

// fits says whether what is under way is within the bound. s is who asked for more rows.
func (e *engine) fits(s *stream) error {
	if m := e.memory(); e.options.MemoryBytes > 0 && m > e.options.MemoryBytes {
		most := &e.streams[0]
		for i := range e.streams {
			if t := &e.streams[i]; t.queue.put-t.queue.taken > most.queue.put-most.queue.taken {
				most = t
			}
		}
		return fmt.Errorf("what ranks have still to do takes %d MiB after %d epochs, more than the %d that are allowed: rank %d is at its row %d, while rows up to %d of rank %d, which is at %d, wait; give it more memory",
			m>>20, e.epochs, e.options.MemoryBytes>>20, s.rank, s.queue.taken, most.queue.put, most.rank, most.queue.taken)
	}
	return nil
}
