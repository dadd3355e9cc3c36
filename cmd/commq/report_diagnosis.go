package main

import (
	"context"
	"fmt"
	"math"

	"github.com/commq/commq/diagnose"
	"github.com/commq/commq/queries/report"
	"github.com/commq/commq/run"
)

// reportDiagnosed is the most calls of a run that a report diagnoses: it takes a few seconds then.
const reportDiagnosed = 1 << 20

// reportDiagnosis returns why the run takes so long, or why that cannot be said. doubts are those of its recording.
func reportDiagnosis(ctx context.Context, a *app, found run.Found, memoryMiB int, doubts []string) (report.Diagnosis,
	error) {
	if err := diagnose.Need.Check(found.Name, found.Manifest); err != nil {
		return report.Diagnosis{Missing: err.Error()}, nil
	}
	if calls := found.Manifest.Counts.Calls; calls > reportDiagnosed {
		return report.Diagnosis{Missing: fmt.Sprintf("run %q has %s, which would take long here; ask commq diagnose",
			found.Name, counted(calls, "call"))}, nil
	}
	how := newDiagnoseOptions(memoryMiB, "")
	how.examined, how.doubts = true, doubts
	d, err := how.diagnose(ctx, a, found, func(string) {})
	if ctx.Err() != nil {
		return report.Diagnosis{}, ctx.Err()
	}
	if err != nil {
		return report.Diagnosis{Missing: err.Error()}, nil // a run that cannot be simulated still has its queries
	}
	said := report.Diagnosis{Verdict: d.Verdict(), Warnings: d.Warnings, Factors: reportFactors(d),
		ComputingNs: d.ComputingNs()}
	if found.Manifest.TimeOrigin == "measured" {
		said.Basis = d.Basis()
	}
	shown := d.Shown(diagnoseLeast, diagnoseShown)
	for i := range d.Findings[:shown] {
		said.Causes = append(said.Causes, reportCause(d, &d.Findings[i]))
	}
	if f := d.LateStart(); f != nil {
		said.Before = reportCause(d, f)
	}
	if shown == 0 {
		said.Left = diagnose.Nothing
	} else if rest := len(d.Findings) - shown; rest > 0 {
		said.Left = counted(int64(rest), "smaller finding") + ": commq diagnose --all lists them"
	}
	return said, nil
}

func reportCause(d *diagnose.Diagnosis, f *diagnose.Finding) report.Cause {
	c := report.Cause{Rule: string(f.Rule), Gain: d.Gain(f), Found: f.Title, Called: f.Called(), Do: f.Advice}
	for k := range f.Waits[:min(diagnose.MostWaits, len(f.Waits))] {
		c.Waits = append(c.Waits, f.Waits[k].Text())
	}
	if w := f.Window; w != nil {
		c.Window = &report.Window{Args: w.Args(), Ranks: w.Ranks}
	} else if in := f.Instances; in != nil { // of simulated times, which have no timeline
		for _, x := range in.OverTime {
			c.Lost = append(c.Lost, report.Slice(x))
		}
	}
	switch f.Rule {
	case diagnose.Variation:
		c.InTurn, c.Place = f.InTurn(), f.Place
	case diagnose.Imbalance:
		c.Computing, c.Marked = d.RankComputing(), f.Ranks
	case diagnose.Communication, "small-messages", "locality", "repeated-payloads", "unexpected-messages",
		"synchronous-sends":
		c.Messages, c.Place, c.See = f.Callsites(), f.Place, "data-density"
	case diagnose.CollectiveTime:
		c.See = "collectives"
	}
	return c
}

// reportFactors are the efficiencies of a run.
func reportFactors(d *diagnose.Diagnosis) []report.Factor {
	e := d.Efficiency
	if e == nil {
		return nil
	}
	transfer := math.NaN()
	if e.Transfer != nil {
		transfer = *e.Transfer
	}
	return []report.Factor{
		{Name: "parallel efficiency", Share: e.Parallel, Doc: "The mean computing time of the ranks by the time of " +
			"the run: the product of the next three."},
		{Name: "load balance", Depth: 1, Share: e.LoadBalance, Doc: "The mean computing time by that of the rank " +
			"that computes longest."},
		{Name: "serialisation", Depth: 1, Share: e.Serialisation, Doc: "The longest computing time of a rank by the " +
			"time of the run on an ideal network: less where ranks wait for each other in turn."},
		{Name: "transfer", Depth: 1, Share: transfer, Doc: "The time of the run on an ideal network by its time; not " +
			"known if no network was simulated: commq diagnose --machine NAME does."},
	}
}
