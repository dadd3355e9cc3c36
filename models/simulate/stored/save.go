package stored

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Saving writes a run with simulated times. A nil Saving has nothing to write.
type Saving struct {
	simulation *Simulation
	name       string // of the new run
	times      *run.Retimer
}

// SimulateAndSave simulates the run and keeps the times of all rows for a new run, which Commit writes. The Saving is
// nil when an earlier process with the same checkpoint has already written the run.
func (s *Simulation) SimulateAndSave(ctx context.Context, how run.Rewrite) (*simulate.Result, *Saving, error) {
	how.TimeOrigin = "simulated"
	if r := s.saved(filepath.Join(how.Store, how.Name)); r != nil {
		return r, nil, nil
	}
	file, kept := "", run.KeptTimes{}
	if k := s.Checkpoint; k != nil {
		file, kept = k.folder.Own("times"), k.state.Times
	}
	times, err := run.NewRetimer(s.Run, how, file, kept)
	if err != nil {
		return nil, nil, err
	}
	v := &Saving{simulation: s, name: how.Name, times: times}
	if s.Checkpoint != nil {
		s.Checkpoint.times = times
	}
	r, err := s.part(ctx, s.Target.Machine, onMachine, func(rank int32, seq int64, start, end models.Picoseconds) {
		times.Put(rank, seq, simulate.Nanoseconds(start), simulate.Nanoseconds(end))
	})
	if err = errors.Join(err, times.Err()); err != nil {
		return nil, nil, errors.Join(err, v.Close())
	}
	return r, v, nil
}

// saved returns the result from the checkpoint if an earlier process has written the run in folder dir with it, else
// nil.
func (s *Simulation) saved(dir string) *simulate.Result {
	if s.Checkpoint == nil || len(s.Checkpoint.state.Results) == 0 {
		return nil
	}
	r, err := run.Find("", dir)
	if err != nil || r.Manifest.Origin.Simulation == nil ||
		!reflect.DeepEqual(r.Manifest.Origin.Simulation, s.origin()) {
		return nil
	}
	return &s.Checkpoint.state.Results[onMachine]
}

// Commit writes the run under its name. It must come last: a command that fails leaves no run.
func (v *Saving) Commit(ctx context.Context) error {
	if v == nil {
		return nil
	}
	compute, err := v.simulation.computeOn()
	if err != nil {
		return err
	}
	if err := v.times.Write(ctx, compute); err != nil {
		return fmt.Errorf("write run %q: %w", v.name, err)
	}
	m := v.times.Manifest()
	m.Origin.Simulation = v.simulation.origin()
	return v.times.Commit(ctx, m)
}

// Close discards the new run unless it was committed.
func (v *Saving) Close() error {
	if v == nil {
		return nil
	}
	if k := v.simulation.Checkpoint; k != nil {
		k.times = nil
	}
	return v.times.Close()
}

// computeOn returns the function that converts a compute time of a rank to the CPUs of its node.
func (s *Simulation) computeOn() (func(rank int32, ns int64) int64, error) {
	m := s.Target.Machine
	_, nodeOf, err := m.Place(int(s.Run.Manifest.Ranks))
	if err != nil {
		return nil, err
	}
	ratios := make([]float64, len(nodeOf))
	for rank, node := range nodeOf {
		ratios[rank] = m.NodeAt(int(node)).CPURatio
	}
	return func(rank int32, ns int64) int64 {
		switch ratio := ratios[rank]; ratio {
		case 0:
			return 0
		case 1:
			return ns
		default:
			return int64(math.Round(float64(ns) / ratio))
		}
	}, nil
}

// origin describes the simulation for the manifest of the new run.
func (s *Simulation) origin() *schema.Simulation {
	o := s.Target.Origin()
	o.Run, o.RunDigest = s.Run.Name, s.Run.Manifest.Digest
	return o
}
