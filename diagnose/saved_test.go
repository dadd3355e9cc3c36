package diagnose

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/models/simulate/stored"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// saved simulates a run on a machine and saves it under a new name.
func saved(t *testing.T, r *run.Run, target *simulate.Target) *run.Run {
	t.Helper()
	store := filepath.Dir(r.Dir)
	s, err := stored.Open(t.Context(), r.Dir, target)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Predict(t.Context(), stored.Wanted{Store: store, Save: "saved"}); err != nil {
		t.Fatal(err)
	}
	made, err := run.Open(t.Context(), filepath.Join(store, "saved"), Need)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// on returns a machine that commq knows, with changes.
func on(t *testing.T, machine string, changes ...string) *simulate.Target {
	t.Helper()
	target, err := simulate.ReadTarget(simulate.TargetOptions{Machine: machine, Set: changes})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// A saved run has the compute times of its machine: simulated there once more, it takes as long as it does.
func TestSavedRunComputesOnce(t *testing.T) {
	made := saved(t, randomRun(t, rand.New(rand.NewPCG(3, 7))), on(t, "flat", "cpu_ratio=2"))
	d, err := Run(t.Context(), made, Options{})
	if err != nil {
		t.Fatal(err)
	}
	const rounding = 1000 // ns, of all compute times
	if diff := d.SimulatedNs - made.Manifest.EndNs; diff > rounding || diff < -rounding {
		t.Errorf("simulated again it takes %d ns, not %d", d.SimulatedNs, made.Manifest.EndNs)
	}
}

// A machine's CPUs are faster only than those that the compute times are from.
func TestSpeedOfTheRunsOwnMachine(t *testing.T) {
	origin := schema.Origin{Simulation: on(t, "flat", "cpu_ratio=2").Origin()}
	for _, c := range []struct {
		times, clock string
		want         float64
	}{{"virtual", "cpu", 2}, {"virtual", "none", 1}, {"simulated", "cpu", 1}, {"measured", "cpu", 1}} {
		target, err := TargetOf(&schema.Manifest{TimeOrigin: c.times, ComputeClock: c.clock, Origin: origin}, nil)
		if err != nil || target.Machine.CPURatio != c.want {
			t.Errorf("%s times, clock %s: %+v, %v", c.times, c.clock, target, err)
		}
	}
}
