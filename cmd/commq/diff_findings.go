package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/compare"
	"github.com/commq/commq/diagnose"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/run"
)

// addFindings diagnoses the runs of both sides and adds to their comparison the findings that differ, or why they were
// not looked for. The findings of runs without times are not compared.
func (o *diffOptions) addFindings(ctx context.Context, a *app, s sides, d *compare.Comparison) error {
	all := slices.Concat(s.base, s.new)
	untimed := func(r queries.Run) bool { return r.Manifest.TimeOrigin == "untimed" }
	if o.format == "csv" || slices.ContainsFunc(all, untimed) {
		return nil
	}
	if why := o.undiagnosed(all); why != "" {
		d.FindingNotes = append(d.FindingNotes, why)
		return nil
	}
	show, clear := statusLine(a)
	defer clear()
	return d.Diagnose(ctx, comparedRuns(s.base), comparedRuns(s.new),
		func(ctx context.Context, r compare.Run) (c compare.Causes, err error) {
			found, err := newDiagnoseOptions(o.memory, o.machine).diagnose(ctx, a,
				run.Found{Name: r.Name, Dir: r.Dir, Manifest: r.Manifest},
				func(step string) { show("diagnose " + r.Name + ": " + step) })
			if err != nil {
				return c, err
			}
			return causesOf(found, r.Manifest), nil
		})
}

// undiagnosed says why runs are not diagnosed; "" if they are.
func (o *diffOptions) undiagnosed(all []queries.Run) string {
	var calls int64
	for _, r := range all {
		need := diagnose.NeedFor(r.Manifest, o.machine != "")
		if err := need.Check(r.Name, r.Manifest); err != nil {
			return "not looked for: " + strings.TrimPrefix(err.Error(), need.Command+": ")
		}
		calls += r.Manifest.Counts.Calls
	}
	if calls > reportDiagnosed {
		return fmt.Sprintf("not looked for: the runs have %s, which would take long here; commq diagnose finds those "+
			"of a run", counted(calls, "call"))
	}
	return ""
}
