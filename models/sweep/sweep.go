// Package sweep simulates runs on many machines: on every combination of some values of a machine's keys. axis.go reads
// a key and its values, grid.go makes the machines, and this file simulates and compares the times with a reference.
package sweep

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/models/simulate/stored"
)

// Options say how a run is swept.
type Options struct {
	// ReferenceNs is the time to compare with; 0 takes the predicted time on the run's own machine.
	ReferenceNs int64
	// MemoryBytes limits the rows of a run that are kept for all simulations. Each simulation reads the rest itself.
	MemoryBytes int64
	// Progress is called after each simulation, possibly by several goroutines at once; nil means no callback.
	Progress func()
}

// Times are the times that a run takes on the machines of a grid.
type Times struct {
	// Run is the name of the run.
	Run string
	// ReferenceNs is the time that the others are compared with.
	ReferenceNs int64
	// PredictedNs has the time of each combination of the grid, in its order; -1 if it has none, for the reason in
	// Errs.
	PredictedNs []int64
	Errs        []error
}

// Simulate simulates the run on all machines of the grid, on as many CPUs as there are. The memory limit of s is not
// used.
func Simulate(ctx context.Context, s *stored.Simulation, g *Grid, o Options) (*Times, error) {
	rows, err := stored.ReadRows(ctx, s.Run, o.MemoryBytes)
	if err != nil {
		return nil, fmt.Errorf("simulate %s: %w", s.Run.Name, err)
	}
	predict := func(m *models.Machine) (int64, error) {
		if o.Progress != nil {
			defer o.Progress()
		}
		result, err := simulate.Simulate(m, s.Program, &simulate.Options{Dialect: s.Target.Dialect}, rows.Source(ctx))
		if err != nil {
			return -1, err
		}
		return simulate.Nanoseconds(result.Time), nil
	}
	t := &Times{Run: s.Run.Name, ReferenceNs: o.ReferenceNs, PredictedNs: make([]int64, len(g.Machines)),
		Errs: make([]error, len(g.Machines))}
	if t.ReferenceNs == 0 {
		if t.ReferenceNs, err = predict(s.Target.Machine); err != nil {
			return nil, fmt.Errorf("simulate %s on %s, which the sweep compares with: %w; "+
				"--reference-ns gives another time", s.Run.Name, s.Target.Machine.Name, err)
		}
	}
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(g.Machines)) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(g.Machines)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				t.PredictedNs[i], t.Errs[i] = predict(g.Machines[i])
			}
		})
	}
	wait.Wait()
	return t, ctx.Err()
}

// CheckAll returns an error when some combinations have no time. It names the first.
func CheckAll(g *Grid, runs []*Times) error {
	n := 0
	var first error
	for _, t := range runs {
		for i, err := range t.Errs {
			if err == nil {
				continue
			}
			if n++; first == nil {
				first = fmt.Errorf("%s, %s: %w", t.Run, g.Describe(i), err)
			}
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d simulations have no time; the first: %w", n, len(runs)*len(g.Machines), first)
}

// Ratio returns the time of combination i over the reference, rounded to six decimals; ok is false when there is
// none.
func (t *Times) Ratio(i int) (ratio float64, ok bool) {
	if t.PredictedNs[i] < 0 || t.ReferenceNs == 0 {
		return math.NaN(), false
	}
	return math.Round(float64(t.PredictedNs[i])/float64(t.ReferenceNs)*1e6) / 1e6, true
}

// IsWithin reports whether the time of combination i is within a fraction of the reference, or exactly that fraction
// above or below it.
func (t *Times) IsWithin(i int, fraction float64) bool {
	const rounding = 1e-12 // of the fraction, in binary
	reference := float64(t.ReferenceNs)
	return t.PredictedNs[i] >= 0 && t.ReferenceNs != 0 &&
		math.Abs(float64(t.PredictedNs[i])-reference) <= (fraction+rounding)*reference
}

// Span is the range of an axis in which a run's time is near its reference.
type Span struct {
	// Least and Greatest are values of Axis.Numbers, in the unit of the axis's key.
	Least, Greatest float64
	// Combinations is the number of combinations that are near. If there are none, Least is +Inf and Greatest -Inf.
	Combinations int
}

// FindSpan finds the span of an axis among the combinations whose time is within a fraction of the reference: Figure 1
// of Girona, Labarta and Badia.
func (g *Grid) FindSpan(t *Times, axis int, fraction float64) Span {
	s := Span{Least: math.Inf(1), Greatest: math.Inf(-1)}
	for i := range t.PredictedNs {
		if t.IsWithin(i, fraction) {
			x := g.Axes[axis].Numbers[g.Indexes(i)[axis]]
			s = Span{min(s.Least, x), max(s.Greatest, x), s.Combinations + 1}
		}
	}
	return s
}
