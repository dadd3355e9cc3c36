package stored

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/run"
)

// Wanted selects what Predict computes besides the times on the machine.
type Wanted struct {
	// Ideal adds the times on an ideal network, Path the critical path.
	Ideal, Path bool
	// Store and Save name a run to write with the new times; Save is "" for none. Commq is the version to note as its
	// origin.
	Store, Save, Commq string
	// Replace allows that Save is the name of a run already; the new one takes its place.
	Replace bool
}

// Prediction is the result of Predict.
type Prediction struct {
	// Result has the times on the machine, Ideal those on an ideal network, and Path is the critical path. Ideal and
	// Path are nil unless they were wanted.
	Result, Ideal *simulate.Result
	Path          *critical.Path
}

// Predict simulates the run, and writes the new run when everything else is done. What is wanted besides the times on
// the machine is simulated at the same time, each by itself; with a Checkpoint one after the other.
func (s *Simulation) Predict(ctx context.Context, w Wanted) (p *Prediction, err error) {
	machine := s.Target.Machine.Name
	p = &Prediction{}
	var saving *Saving
	defer func() { err = errors.Join(err, saving.Close()) }()
	steps := []func() error{func() (err error) {
		if w.Save == "" {
			p.Result, err = s.Simulate(ctx)
		} else {
			p.Result, saving, err = s.SimulateAndSave(ctx, run.Rewrite{Store: w.Store, Name: w.Save, Replace: w.Replace,
				Commq: w.Commq})
		}
		return describe(err, "simulate %s on %s: %w", s.Run.Name, machine)
	}}
	if w.Ideal {
		steps = append(steps, func() (err error) {
			p.Ideal, err = s.SimulateIdeal(ctx)
			return describe(err, "simulate %s on an ideal network: %w; --split=false leaves this out", s.Run.Name)
		})
	}
	if w.Path {
		steps = append(steps, func() (err error) {
			p.Path, err = s.CriticalPath(ctx)
			return describe(err, "critical path of %s on %s: %w", s.Run.Name, machine)
		})
	}
	if err := s.runSteps(steps); err != nil {
		return nil, err
	}
	if err := saving.Commit(ctx); err != nil {
		return nil, fmt.Errorf("simulate %s on %s: %w", s.Run.Name, machine, err)
	}
	return p, nil
}

// describe adds a text to an error; its last verb is the error's.
func describe(err error, format string, a ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format, append(a, err)...)
}

// runSteps returns the error of the first step, in their order, that failed.
func (s *Simulation) runSteps(steps []func() error) error {
	if s.Checkpoint != nil {
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	}
	errs := make([]error, len(steps))
	var all sync.WaitGroup
	for i, step := range steps {
		all.Go(func() { errs[i] = step() })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
