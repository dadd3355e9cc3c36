package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/times"
)

// predictTime predicts the execution time on the target, nil for none, and compares it with the runs that were left
// out, on held ranks. When the compute times of the training runs cannot be used, the error says why, and so does the
// answer.
func (o *predictOptions) predictTime(ctx context.Context, a *app, m *model.Model, x *generate.Prediction,
	held *signature.Signature, p *printedPrediction, target *simulate.Target) (err error) {
	if target == nil {
		return nil
	}
	var left *times.LeftOut
	if held != nil {
		left = &times.LeftOut{Store: a.storeDir(), Patterns: o.runs, Ranks: held.Ranks}
	}
	p.TimeRefused = m.Times().Refused
	p.Time, err = times.PredictFrom(ctx, m, x, target, left)
	return err
}

// printTime prints a predicted time for people.
func printTime(w io.Writer, t *times.Prediction) error {
	fmt.Fprintf(w, "\npredicted execution time on %s: %s s (%s to %s), dialect %s\n", t.Machine, seconds(t.PetNs),
		seconds(t.LowNs), seconds(t.HighNs), t.Dialect)
	fmt.Fprintln(w, "the interval covers the compute times only, not the machine's network, another layout or other "+
		"data")
	interval := "its interval does not hold"
	if t.Covered != nil && *t.Covered {
		interval = "its interval holds"
	}
	switch {
	case t.NoiseFloor != nil:
		fmt.Fprintf(w, "%d captures that were left out, simulated there: median %s s (%s to %s, a noise floor of "+
			"%.1f %%); the prediction is off by %+.1f %%, and %s\n",
			len(t.Captures), seconds(*t.MeasuredNs), seconds(slices.Min(t.Captures)), seconds(slices.Max(t.Captures)),
			100**t.NoiseFloor, 100**t.Error, interval)
	case t.MeasuredNs != nil:
		fmt.Fprintf(w, "the run that was left out, simulated there: %s s; the prediction is off by %+.1f %%, and %s "+
			"(one capture does not tell how much of that is noise)\n",
			seconds(*t.MeasuredNs), 100**t.Error, interval)
	}
	if c := t.Compute; c != nil {
		fmt.Fprintf(w, "a rank computes %s s of it (%s to %s)\n", seconds(int64(c.RankNs)), seconds(int64(c.LowNs)),
			boundText(c.HighNs))
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "phase\tweight\tTEPhase s\ttime s\tof PET\t")
	for _, p := range t.Phases {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t\n", p.Phase, grouped(p.Weight), seconds(p.Ns),
			seconds(p.Ns*p.Weight), percent(p.Share))
	}
	fmt.Fprintf(table, "other\t\t\t%s\t%s\t\n", seconds(t.OtherNs),
		percent(float64(t.OtherNs)/float64(max(t.PetNs, 1))))
	return table.Flush()
}

// boundText writes a bound of a time, in seconds; nil is any time.
func boundText(ns *float64) string {
	if ns == nil {
		return "any"
	}
	return seconds(int64(*ns))
}
