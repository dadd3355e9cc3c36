package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/commq/commq/internal/snapshot"
	"github.com/commq/commq/models"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// longOptions are the flags of commands that take long: where to keep what they know.
type longOptions struct {
	checkpoint string        // --checkpoint
	every      time.Duration // --checkpoint-every
}

const checkpointEvery = 5 * time.Minute

func (o *longOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.checkpoint, "checkpoint", "", "keep in this `FOLDER` how far it is, and go on from there when the same is started again (docs/method/long-jobs.md)")
	f.DurationVar(&o.every, "checkpoint-every", checkpointEvery, "with --checkpoint: the least `TIME` between two times that it is kept")
	completeNothing(c, "checkpoint-every")
	completeFolders(c, "checkpoint")
}

func (o *longOptions) check(c *cobra.Command) error {
	switch {
	case o.checkpoint == "" && c.Flags().Changed("checkpoint-every"):
		return errors.New("--checkpoint-every: say with --checkpoint where")
	case o.every < 0:
		return fmt.Errorf("--checkpoint-every %v: want a time, for example 5m", o.every)
	}
	return nil
}

// open opens the folder of checkpoints for a task that depends on these facts beside the program; nil where there is none.
func (o *longOptions) open(a *app, facts ...writer.Fact) (*writer.Checkpoint, error) {
	if o.checkpoint == "" {
		return nil, nil
	}
	c, err := writer.OpenCheckpoint(o.checkpoint, o.every, append([]writer.Fact{{Name: "program", Value: programVersion()}}, facts...))
	if err == nil && c.Held() && !a.quiet {
		fmt.Fprintf(a.stderr, "commq: going on from what %s keeps\n", o.checkpoint)
	}
	return c, err
}

// programVersion is the version, and what the program was built of where that is known.
func programVersion() string {
	text := []string{version}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if strings.HasPrefix(s.Key, "vcs.") {
				text = append(text, s.Value)
			}
		}
	}
	return strings.Join(text, " ")
}

// simulationPart is a part of commq simulate, in their order; what is done of them is kept.
type simulationPart int

const (
	onMachine simulationPart = iota // on the machine that is asked for
	onIdeal                         // on an ideal network
)

// keptSimulation is what commq simulate knows between two epochs, beside the simulation itself.
type keptSimulation struct {
	folder  *writer.Checkpoint `snapshot:"-"`
	Results []simulate.Result  // of parts that are over
	Under   bool               // the next part is under way
	Epochs  int                // that were read of it
	EndNs   int64              // of the rows that ended in it
	times   *writer.RowTimes   `snapshot:"-"` // of the run that is being saved; nil: there is none

	timesPath string `snapshot:"-"` // of their file
}

// newKeptSimulation opens the folder of a simulation's checkpoints, and reads what is over; nil without one.
func newKeptSimulation(a *app, o *longOptions, s *runSimulation, facts ...writer.Fact) (*keptSimulation, error) {
	facts = append([]writer.Fact{{Name: "task", Value: "simulate"}, {Name: "run", Value: s.manifest.Digest}, {Name: "machine", Value: s.machine.Description},
		{Name: "changes", Value: strings.Join(s.changed, " ")}, {Name: "nodes of ranks", Value: fmt.Sprint(s.machine.NodeOf)}, {Name: "dialect", Value: s.options.Dialect.String()}}, facts...)
	folder, err := o.open(a, facts...)
	if folder == nil {
		return nil, err
	}
	k := &keptSimulation{folder: folder, timesPath: folder.Own("times")}
	if folder.Held() {
		if err := folder.Load(func(r *bufio.Reader) error { return snapshot.Read(r, k) }); err != nil {
			return nil, errors.Join(err, folder.Close())
		}
	}
	return k, nil
}

// end closes the folder; where the whole task is over what it keeps is gone.
func (k *keptSimulation) end(failed error) error {
	if k == nil {
		return nil
	}
	return endCheckpoint(k.folder, failed)
}

// endCheckpoint closes a folder of checkpoints, if there is one; where the whole task is over what it keeps is gone.
func endCheckpoint(folder *writer.Checkpoint, failed error) error {
	switch {
	case folder == nil:
		return nil
	case failed == nil:
		return folder.Done()
	}
	return folder.Close()
}

// save keeps what is known, and with state the simulation that is under way.
func (k *keptSimulation) save(state func(w io.Writer) error) error {
	if k.times != nil {
		if err := k.times.Sync(); err != nil {
			return err
		}
	}
	return k.folder.Save(func(w io.Writer) error {
		err := snapshot.Write(w, k)
		if err == nil && state != nil {
			err = state(w)
		}
		return err
	})
}

// simulate does a part of a simulation, or what is left of it.
func (k *keptSimulation) simulate(ctx context.Context, s *runSimulation, m *models.Machine, part simulationPart) (*simulate.Result, error) {
	if k == nil {
		return s.simulate(ctx, m)
	}
	if int(part) < len(k.Results) {
		return &k.Results[part], nil
	}
	rows, err := s.rows()
	if err != nil {
		return nil, err
	}
	o := s.options
	o.Border = func(epochs int, state func(io.Writer) error) error {
		if !k.folder.Due() {
			return nil
		}
		k.Under, k.Epochs = true, epochs
		return k.save(state)
	}
	next := s.source(ctx, rows)
	var r *simulate.Result
	if k.Under {
		for range k.Epochs {
			if err := rows.Skip(); err != nil {
				return nil, fmt.Errorf("go on behind epoch %d: %w", k.Epochs, err)
			}
		}
		err = k.folder.Load(func(in *bufio.Reader) (err error) {
			if err := snapshot.Read(in, new(keptSimulation)); err != nil {
				return err
			}
			o.State = in
			r, err = simulate.Simulate(m, s.program, &o, next)
			return err
		})
	} else {
		r, err = simulate.Simulate(m, s.program, &o, next)
	}
	if err != nil {
		return nil, err
	}
	k.Results, k.Under, k.Epochs = append(k.Results, *r), false, 0
	return r, k.save(nil)
}

// rows begins to read the rows of events.
func (s *runSimulation) rows() (*writer.Epochs, error) {
	return writer.ReadEpochs(s.dir, &schema.EventsTable, eventRows, simulate.Columns...)
}

// source passes rows to a simulation, an epoch at a time.
func (s *runSimulation) source(ctx context.Context, rows *writer.Epochs) func(add func(*schema.Events) error) error {
	return func(add func(*schema.Events) error) error {
		return rows.Next(ctx, func(b schema.Batch) error {
			if s.read != nil {
				s.read(b.Len())
			}
			return add(b.(*schema.Events))
		})
	}
}
