package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/compare"
	"github.com/commq/commq/diagnose"
	"github.com/commq/commq/models/simulate"
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
	var causes []compare.Causes
	for _, r := range all {
		how := &diagnoseOptions{target: simulate.TargetOptions{Machine: o.machine}, memory: o.memory}
		found, err := how.diagnose(ctx, a, run.Found{Name: r.Name, Dir: r.Dir, Manifest: r.Manifest},
			func(step string) { show("diagnose " + r.Name + ": " + step) })
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil: // a run that cannot be simulated still has its measures
			d.FindingNotes = append(d.FindingNotes, fmt.Sprintf("not looked for: %v", err))
			return nil
		}
		causes = append(causes, causesOf(found, r.Manifest))
	}
	d.AddFindings(causes[:len(s.base)], causes[len(s.base):])
	if len(d.Findings) > 0 && min(len(s.base), len(s.new)) == 1 && slices.ContainsFunc(all, measured) {
		d.FindingNotes = slices.Insert(d.FindingNotes, 0, "measured times differ from run to run; several runs of "+
			"each side (--base and --run) show by how much")
	}
	return nil
}

func measured(r queries.Run) bool { return r.Manifest.TimeOrigin == "measured" }

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
