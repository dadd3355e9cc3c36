package stored

import (
	"context"
	"errors"
	"fmt"

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

// Predict simulates the run, and writes the new run when everything else is done.
func (s *Simulation) Predict(ctx context.Context, w Wanted) (p *Prediction, err error) {
	machine := s.Target.Machine.Name
	p = &Prediction{}
	var saving *Saving
	if w.Save == "" {
		p.Result, err = s.Simulate(ctx)
	} else {
		p.Result, saving, err = s.SimulateAndSave(ctx, run.Rewrite{Store: w.Store, Name: w.Save, Replace: w.Replace,
			Commq: w.Commq})
	}
	if err != nil {
		return nil, fmt.Errorf("simulate %s on %s: %w", s.Run.Name, machine, err)
	}
	defer func() { err = errors.Join(err, saving.Close()) }()
	if w.Ideal {
		if p.Ideal, err = s.SimulateIdeal(ctx); err != nil {
			return nil, fmt.Errorf("simulate %s on an ideal network: %w; --split=false leaves this out", s.Run.Name, err)
		}
	}
	if w.Path {
		if p.Path, err = s.CriticalPath(ctx); err != nil {
			return nil, fmt.Errorf("critical path of %s on %s: %w", s.Run.Name, machine, err)
		}
	}
	if err := saving.Commit(ctx); err != nil {
		return nil, fmt.Errorf("simulate %s on %s: %w", s.Run.Name, machine, err)
	}
	return p, nil
}
