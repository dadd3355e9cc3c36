package stored

import (
	"bufio"
	"fmt"
	"io"

	"github.com/commq/commq/internal/snapshot"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/run"
)

// Folder keeps a state on disk for a later process, as writer.Checkpoint does.
type Folder interface {
	// Saved reports whether an earlier process left a state; Load reads it.
	Saved() bool
	Load(read func(*bufio.Reader) error) error
	// ShouldSave reports whether it is time to save again; Save replaces the state.
	ShouldSave() bool
	Save(write func(io.Writer) error) error
	// Own returns the path of a file in the folder for the caller's own use.
	Own(name string) string
}

// part is a step of commq simulate; the steps run in this order.
type part int

const (
	onMachine part = iota // on the machine
	onIdeal               // on an ideal network
)

// Checkpoint keeps the state of a Simulation between two epochs in a folder.
type Checkpoint struct {
	folder Folder
	state  checkpointState
	times  *run.Retimer // of the run being saved; nil without one
}

// checkpointState is the first part of the state on disk. If a part is in progress, the engine's state follows.
type checkpointState struct {
	Results []simulate.Result // of the parts that are done
	Under   bool              // the next part is in progress
	Epochs  int               // epochs of it that were read
	Times   run.KeptTimes     // of the rows so far
}

// NewCheckpoint keeps the state of a simulation in the folder, and continues from what the folder holds.
func NewCheckpoint(folder Folder) (*Checkpoint, error) {
	k := &Checkpoint{folder: folder}
	if !folder.Saved() {
		return k, nil
	}
	return k, folder.Load(func(r *bufio.Reader) error { return snapshot.Read(r, &k.state) })
}

// save writes the state and, if a part is in progress, the engine's after it.
func (k *Checkpoint) save(engine func(w io.Writer) error) error {
	if k.times != nil {
		if err := k.times.Sync(); err != nil {
			return err
		}
		k.state.Times = k.times.Kept()
	}
	return k.folder.Save(func(w io.Writer) error {
		if err := snapshot.Write(w, &k.state); err != nil || engine == nil {
			return err
		}
		return engine(w)
	})
}

// simulate runs a part with these options, or what is left of it. start must read from rows.
func (k *Checkpoint) simulate(p part, rows *run.Epochs, o *simulate.Options,
	start func() (*simulate.Result, error)) (*simulate.Result, error) {
	if int(p) < len(k.state.Results) {
		return &k.state.Results[p], nil
	}
	o.Border = func(epochs int, engine func(io.Writer) error) error {
		if !k.folder.ShouldSave() {
			return nil
		}
		k.state.Under, k.state.Epochs = true, epochs
		return k.save(engine)
	}
	r, err := k.resume(rows, o, start)
	if err != nil {
		return nil, err
	}
	k.state.Results, k.state.Under, k.state.Epochs = append(k.state.Results, *r), false, 0
	return r, k.save(nil)
}

// resume starts the engine; from the state in the folder if the part was in progress.
func (k *Checkpoint) resume(rows *run.Epochs, o *simulate.Options,
	start func() (*simulate.Result, error)) (r *simulate.Result, err error) {
	if !k.state.Under {
		return start()
	}
	for range k.state.Epochs {
		if err := rows.Skip(); err != nil {
			return nil, fmt.Errorf("continue after epoch %d: %w", k.state.Epochs, err)
		}
	}
	err = k.folder.Load(func(in *bufio.Reader) error {
		if err := snapshot.Read(in, new(checkpointState)); err != nil {
			return err
		}
		o.State = in
		r, err = start()
		return err
	})
	return r, err
}
