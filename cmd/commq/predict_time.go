package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/times"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
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

// phaseTimeColumns are the columns of the predicted times of phases; what is in no phase has no number.
var phaseTimeColumns = []queries.Column{{Name: "phase", Type: "INTEGER"}, {Name: "weight", Type: "BIGINT", Unit: "1"},
	{Name: "one_time_ns", Type: "BIGINT", Unit: "ns"}, {Name: "all_times_ns", Type: "BIGINT", Unit: "ns"},
	{Name: "share_of_prediction", Type: "DOUBLE", Unit: "1", Share: true}}

// printTime prints a predicted time for people.
func printTime(a *app, w io.Writer, t *times.Prediction) error {
	high := "no upper bound"
	if t.HighNs < math.MaxInt64 {
		high = units.Duration(t.HighNs)
	}
	fmt.Fprintf(w, "\npredicted execution time on %s: %s (%s to %s), dialect %s\n", t.Machine, units.Duration(t.PetNs),
		units.Duration(t.LowNs), high, t.Dialect)
	covers := "compute times only"
	if low, high, known := t.OffTraining(); known {
		fmt.Fprintf(w, "for the runs that they were learnt from, the laws give times that are off by %s to %s\n",
			percentOff(low), percentOff(high))
		covers = "compute times and how far the laws are off there"
	}
	fmt.Fprintf(w, "the interval covers %s, not the machine's network, another layout or other data\n", covers)
	interval := "its interval does not hold"
	if t.Covered != nil && *t.Covered {
		interval = "its interval holds"
	}
	switch {
	case t.NoiseFloor != nil:
		fmt.Fprintf(w, "%d captures that were left out, simulated there: median %s (%s to %s, a noise floor of "+
			"%s); the prediction is off by %s, and %s\n",
			len(t.Captures), units.Duration(*t.MeasuredNs), units.Duration(slices.Min(t.Captures)),
			units.Duration(slices.Max(t.Captures)), percent(*t.NoiseFloor), percentOff(*t.Error), interval)
	case t.MeasuredNs != nil:
		fmt.Fprintf(w, "the run that was left out, simulated there: %s; the prediction is off by %s, and %s "+
			"(one capture does not tell how much of that is noise)\n",
			units.Duration(*t.MeasuredNs), percentOff(*t.Error), interval)
	}
	if c := t.Compute; c != nil {
		fmt.Fprintf(w, "a rank computes %s of it (%s to %s)\n", units.Duration(int64(c.RankNs)),
			units.Duration(int64(c.LowNs)), boundText(c.HighNs))
	}
	var rows [][]any
	for _, p := range t.Phases {
		rows = append(rows, []any{int32(p.Phase), p.Weight, p.Ns, p.Ns * p.Weight, p.Share})
	}
	rows = append(rows, []any{nil, nil, nil, t.OtherNs, float64(t.OtherNs) / float64(max(t.PetNs, 1))})
	return output.WriteText(w, queries.RowsOf(phaseTimeColumns, rows), a.text())
}

// percentOff is a share of 1 in percent with its sign.
func percentOff(x float64) string {
	if x > 0 {
		return "+" + percent(x)
	}
	return percent(x)
}

// boundText writes a bound of a time; nil is any time.
func boundText(ns *float64) string {
	if ns == nil {
		return "any"
	}
	return units.Duration(int64(*ns))
}
