package compare

import (
	"context"
	"fmt"

	"github.com/commq/commq/internal/rows"
)

// AskRuns opens several runs together, asks a named query about them, and calls each with every row of the answer.
type AskRuns func(ctx context.Context, runs []Run, query string, args map[string]string,
	each func(rows.Row) error) error

// measureRuns measures runs, which must have different names, in their order.
func measureRuns(ctx context.Context, runs []Run, ask AskRuns) ([]Sample, error) {
	if err := CheckDistinct(runs); err != nil {
		return nil, err
	}
	return Measure(ctx, runs,
		func(ctx context.Context, query string, args map[string]string, each func(rows.Row) error) error {
			return ask(ctx, runs, query, args, each)
		})
}

// MeasureComplete measures runs and rejects those that lack calls of the program. Without runs there are no samples.
func MeasureComplete(ctx context.Context, runs []Run, ask AskRuns) ([]Sample, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	for i := range runs {
		if err := runs[i].CheckComplete(); err != nil {
			return nil, err
		}
	}
	return measureRuns(ctx, runs, ask)
}

// CheckComparable checks the runs of a comparison before they are measured. A run that keeps other rows than the first
// is an error. Runs that did not end, or with calls that never returned, are compared by what they have, and returned
// as warnings. Callers tell of calls that were lost or left out with run.LeftOut.
func CheckComparable(runs []Run) (incomplete []error, err error) {
	for i := range runs {
		if err := runs[i].checkEnded(); err != nil {
			incomplete = append(incomplete, err)
		}
		if err := runs[0].CheckAlike(runs[i]); err != nil {
			return incomplete, fmt.Errorf("diff: %w; compare runs that keep the same rows", err)
		}
	}
	return incomplete, nil
}

// RunOptions control how CompareRuns measures and compares runs.
type RunOptions struct {
	// Ask asks queries about runs.
	Ask AskRuns
	// Simulate returns the time in ns that a run takes on a machine, which is compared too; nil compares no such time.
	Simulate func(ctx context.Context, r Run) (ns int64, err error)
	// Times controls how times are compared.
	Times DiffOptions
}

// CompareRuns measures two sets of runs and compares them.
func CompareRuns(ctx context.Context, base, new []Run, o RunOptions) (*Comparison, error) {
	baseSamples, err := measureRuns(ctx, base, o.Ask)
	if err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	newSamples, err := measureRuns(ctx, new, o.Ask)
	if err != nil {
		return nil, fmt.Errorf("new: %w", err)
	}
	if o.Simulate != nil {
		if err := o.simulate(ctx, base, baseSamples); err != nil {
			return nil, err
		}
		if err := o.simulate(ctx, new, newSamples); err != nil {
			return nil, err
		}
	}
	return Compare(baseSamples, newSamples, o.Times)
}

// simulate adds to each sample the time that its run takes on the machine.
func (o *RunOptions) simulate(ctx context.Context, runs []Run, samples []Sample) error {
	var times []int64
	for _, r := range runs {
		ns, err := o.Simulate(ctx, r)
		if err != nil {
			return err
		}
		times = append(times, ns)
	}
	AddSimulated(samples, times)
	return nil
}

// BaselineOptions control what MeasureBaseline keeps beside the exact measures.
type BaselineOptions struct {
	// Times keeps times too.
	Times bool
	// Equations keeps the equation of each measure that follows an exact law of the number of ranks, which Fit finds.
	Equations bool
	Fit       Fit
}

// MeasureBaseline measures complete runs and makes a baseline of them. leftOut says what it leaves out and why: exact
// measures that differ between runs with the same number of ranks, and equations of measures without an exact law.
func MeasureBaseline(ctx context.Context, runs []Run, ask AskRuns, o BaselineOptions) (b *Baseline, leftOut []string,
	err error) {
	samples, err := MeasureComplete(ctx, runs, ask)
	if err != nil {
		return nil, nil, fmt.Errorf("baseline: %w", err)
	}
	b, unsteady, err := NewBaseline(samples, KeptRows(runs), o.Times)
	if err != nil {
		return nil, nil, err
	}
	for _, key := range unsteady {
		leftOut = append(leftOut, key+" differs between runs of one number of ranks")
	}
	if o.Equations {
		none, err := b.AddEquations(o.Fit)
		return b, append(leftOut, none...), err
	}
	return b, leftOut, nil
}
