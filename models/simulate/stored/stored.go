// Package stored simulates runs on disk. It feeds the engine of models/simulate with the rows of a run, keeps
// checkpoints of long simulations, writes the run with its new times, and finds its critical path on the machine.
package stored

import (
	"context"
	"fmt"
	"strings"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Need lists the requirements on a run whose simulated time is to be the time of the program.
var Need = run.Need{Command: "simulate", AllCalls: true, NoneDropped: true, ComputeTimes: true}

// Simulation is a run and the machine to simulate it on.
type Simulation struct {
	Run     *run.Run
	Target  *simulate.Target
	Program *simulate.Program
	// MemoryBytes limits memory as simulate.Options does, of each part of Predict; 0 means no limit.
	MemoryBytes int64
	// Progress is called with the number of rows that a simulation read, by Predict from several goroutines; nil means no
	// callback. The critical path does not call it.
	Progress func(rows int)
	// Change changes rows before they are simulated, each rank's in order; nil changes nothing. It asks what would be
	// if the program did something else, so it goes with no Checkpoint.
	Change func(*schema.Events)
	// Keep returns which part of its cost each operation keeps, as in simulate.Options; nil keeps all. It goes with no
	// Checkpoint either.
	Keep simulate.Keep
	// Checkpoint keeps the state of the simulation; nil keeps nothing.
	Checkpoint *Checkpoint
	// Rows has the rows of the run for several simulations; nil reads the files. It goes with no Checkpoint either.
	Rows *Rows
}

// Open opens the run in folder dir for a simulation. Without compute times only communication takes time (Untimed). The
// error lists everything that the run lacks.
func Open(ctx context.Context, dir string, target *simulate.Target) (*Simulation, error) {
	need := Need
	need.ComputeTimes = false
	r, err := run.Open(ctx, dir, need)
	if err != nil {
		return nil, err
	}
	program, err := ProgramOf(ctx, r)
	if err != nil {
		return nil, err
	}
	return &Simulation{Run: r, Target: target, Program: program}, nil
}

// Untimed reports whether the run has no compute times, so that computing takes no time in the simulation.
func (s *Simulation) Untimed() bool { return s.Run.Manifest.ComputeClock == "none" }

// ProgramOf describes the ranks, communicators and windows of a run for the engine.
func ProgramOf(ctx context.Context, r *run.Run) (*simulate.Program, error) {
	ungrouped, err := r.Ungrouped(ctx)
	return &simulate.Program{Threads: r.Ranks.Threads, Comms: r.Comms, Ungrouped: ungrouped,
		Callsite: r.Place(ctx)}, err
}

// Simulate simulates the run on its machine.
func (s *Simulation) Simulate(ctx context.Context) (*simulate.Result, error) {
	return s.part(ctx, s.Target.Machine, onMachine, nil)
}

// SimulateIdeal simulates the run on its machine with an ideal network.
func (s *Simulation) SimulateIdeal(ctx context.Context) (*simulate.Result, error) {
	return s.part(ctx, s.Target.Machine.Ideal(), onIdeal, nil)
}

// done is called for each row when it is over.
type done = func(rank int32, seq int64, start, end models.Picoseconds)

// part runs one of the parts that a checkpoint distinguishes.
func (s *Simulation) part(ctx context.Context, m *models.Machine, p part, done done) (*simulate.Result, error) {
	o := s.options()
	o.Done = done
	if s.Rows != nil {
		return simulate.Simulate(m, s.Program, o, s.next(s.Rows.Source(ctx)))
	}
	rows, err := s.Run.EventEpochs(simulate.Columns...)
	if err != nil {
		return nil, err
	}
	next := s.next(func(add func(*schema.Events) error) error { return rows.Next(ctx, add) })
	if s.Checkpoint != nil {
		return s.Checkpoint.simulate(p, rows, o, func() (*simulate.Result, error) {
			return simulate.Simulate(m, s.Program, o, next)
		})
	}
	return simulate.Simulate(m, s.Program, o, next)
}

func (s *Simulation) options() *simulate.Options {
	return &simulate.Options{Dialect: s.Target.Dialect, MemoryBytes: s.MemoryBytes, Keep: s.Keep}
}

// source passes the rows of an epoch at each call.
type source = func(add func(*schema.Events) error) error

// next passes the rows of the next epoch to the engine.
func (s *Simulation) next(rows source) source {
	return func(add func(*schema.Events) error) error {
		return rows(func(b *schema.Events) error {
			if s.Progress != nil {
				s.Progress(b.Len())
			}
			if s.Change != nil {
				s.Change(b)
			}
			return add(b)
		})
	}
}

// Identity lists everything that the result depends on, as pairs of name and value. A checkpoint can only be
// continued by a simulation with the same identity.
func (s *Simulation) Identity() [][2]string {
	t := s.Target
	return [][2]string{{"run", s.Run.Manifest.Digest}, {"machine", t.Machine.Description},
		{"changes", strings.Join(t.Changes, " ")}, {"nodes of ranks", fmt.Sprint(t.Machine.NodeOf)},
		{"dialect", t.Dialect.String()}}
}

// Nanoseconds simulates the run on its machine and returns the time that it takes, in ns.
func (s *Simulation) Nanoseconds(ctx context.Context) (int64, error) {
	result, err := s.Simulate(ctx)
	if err != nil {
		return 0, fmt.Errorf("simulate %s on %s: %w", s.Run.Name, s.Target.Machine.Name, err)
	}
	return simulate.Nanoseconds(result.Time), nil
}
