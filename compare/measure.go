package compare

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/internal/rows"
	"github.com/commq/commq/schema"
)

// Run is a run to measure or check.
type Run struct {
	// Name is the run's name in answers. Compared runs must have different names.
	Name string
	// Dir is the run's folder.
	Dir string
	// Manifest is the run's manifest.
	Manifest *schema.Manifest
	// Registered is the name under which a Trino server has it; empty is Name.
	Registered string
}

// CheckDistinct rejects two runs with the same name.
func CheckDistinct(runs []Run) error {
	for i, r := range runs {
		earlier := slices.IndexFunc(runs[:i], func(earlier Run) bool { return earlier.Name == r.Name })
		switch {
		case earlier < 0:
		case runs[earlier].Dir == r.Dir:
			return schema.GivenTwice(r.Name)
		default:
			return schema.CalledAlike(r.Name)
		}
	}
	return nil
}

// CheckComplete rejects a run that lacks calls of its program: its counts would be too small.
func (r *Run) CheckComplete() error {
	if err := r.checkEnded(); err != nil {
		return err
	}
	if n := r.Manifest.Counts.Dropped; n > 0 {
		return fmt.Errorf("run %q misses %s that could not be recorded; capture it again with more space for the spool",
			r.Name, plural(n, "call"))
	}
	return nil
}

// checkEnded rejects a run that ends before its program did, or with calls that did not return.
func (r *Run) checkEnded() error {
	switch m := r.Manifest; {
	case m.Ended != schema.EndedNames[schema.EndedFinalized]:
		return fmt.Errorf("run %q was %s before MPI_Finalize; capture it again", r.Name, m.Ended)
	case m.Counts.InProgress > 0:
		return fmt.Errorf("run %q has %s that never returned; capture it again", r.Name,
			plural(m.Counts.InProgress, "call"))
	}
	return nil
}

// CheckAlike rejects a run that keeps other rows than this one, because their counts cannot be compared.
func (r *Run) CheckAlike(b Run) error {
	switch m, n := r.Manifest, b.Manifest; {
	case m.Record != n.Record:
		return fmt.Errorf("run %q was captured with --record %s and run %q with --record %s", r.Name, m.Record,
			b.Name, n.Record)
	case !slices.Equal(m.Filters, n.Filters):
		return fmt.Errorf("run %q was captured with the filters %q and run %q with %q", r.Name, m.Filters, b.Name,
			n.Filters)
	}
	return nil
}

// KeptRows describes the rows that each run keeps, as Evidence and baselines compare them: record all.
func KeptRows(runs []Run) (kept []string) {
	for _, r := range runs {
		kept = append(kept, strings.Join(append([]string{"record " + r.Manifest.Record}, r.Manifest.Filters...), " "))
	}
	return kept
}

// Measure asks the query measures about runs, which ask must have opened, and returns a sample for each, in the order
// of runs. A run without any row is an error, since there is nothing to compare.
func Measure(ctx context.Context, runs []Run, ask rows.Ask) (samples []Sample, err error) {
	values := map[string][]Value{}
	err = ask(ctx, "measures", nil, func(r rows.Row) error {
		run := r.Text("run")
		values[run] = append(values[run], Value{Measure: r.Text("measure"), Item: r.Text("item"), Value: r.Int("value"),
			Unit: r.Text("unit"), Exact: r.Bool("exact"), File: r.Text("file"), Line: int32(r.Int("line"))})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		if len(values[r.Name]) == 0 {
			return nil, fmt.Errorf("run %q is empty: it has no row of any call or message; capture it again", r.Name)
		}
		samples = append(samples, Sample{Run: r.Name, Ranks: r.Manifest.Ranks, Values: values[r.Name],
			Hash: r.Manifest.Hash, ComputeClock: r.Manifest.ComputeClock})
	}
	return samples, nil
}

// AddSimulated adds to each sample the time in ns that its run takes on a simulated machine.
func AddSimulated(samples []Sample, ns []int64) {
	for i := range samples {
		samples[i].Values = append(samples[i].Values, Value{Measure: Simulated, Value: ns[i], Unit: "ns"})
	}
}
