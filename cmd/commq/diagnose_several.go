package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/compare"
	"github.com/commq/commq/diagnose"
	"github.com/commq/commq/diagnose/growth"
	"github.com/commq/commq/predict/regress"
	"github.com/commq/commq/run"
)

// severalFormats are the values of --format for several runs.
var severalFormats = []string{"table", "json", "csv", "markdown"}

// checkSeveral refuses flags that are about one run.
func (o *diagnoseOptions) checkSeveral(runs int) error {
	switch {
	case o.finding > 0:
		return fmt.Errorf("--finding %d: it is for one run, and these are %d; name one", o.finding, runs)
	case !slices.Contains(severalFormats, o.format):
		return fmt.Errorf("--format %s: it is for one run, and these are %d; name one, or take one of %s", o.format,
			runs, strings.Join(severalFormats, ", "))
	}
	return nil
}

// runDiagnoseSeveral diagnoses runs one after the other and prints how their findings change with the number of ranks.
func runDiagnoseSeveral(ctx context.Context, a *app, o *diagnoseOptions, found []run.Found) error {
	if err := o.checkSeveral(len(found)); err != nil {
		return err
	}
	if err := compare.CheckDistinct(comparedRuns(queriedRuns(found))); err != nil {
		return fmt.Errorf("diagnose: %w", err)
	}
	show, clear := statusLine(a)
	defer clear()
	var all []*diagnose.Diagnosis
	for _, f := range found {
		d, err := o.diagnose(ctx, a, f, func(step string) { show("diagnose " + f.Name + ": " + step) })
		if err != nil {
			return err
		}
		all = append(all, d)
	}
	clear()
	g, err := growth.Compare(all, fitLaw)
	if err != nil {
		return err
	}
	return o.printSeveral(a, g)
}

func (o *diagnoseOptions) printSeveral(a *app, g *growth.Growth) error {
	least, most := o.least, diagnoseShown
	if o.all {
		least, most = 0, 0
	}
	switch o.format {
	case "json":
		return printJSON(a.stdout, g)
	case "csv":
		return g.CSV(a.stdout)
	case "markdown":
		return g.Markdown(a.stdout, least, most)
	}
	var text strings.Builder
	err := g.Text(&text, least, most, "--all lists them")
	return errors.Join(err, a.prose(text.String()))
}

// fitLaw fits the law of a finding with the forms of commq fit.
func fitLaw(samples []growth.Sample) (*growth.Law, error) {
	var points []regress.Point
	for _, s := range samples {
		points = append(points, regress.Point{Ranks: s.Ranks, Value: s.Value})
	}
	curve, err := regress.Fit(points)
	if err != nil {
		return nil, err
	}
	last := curve.Predict(slices.MaxFunc(points,
		func(a, b regress.Point) int { return cmp.Compare(a.Ranks, b.Ranks) }).Ranks)
	return &growth.Law{Formula: last.Formula, Error: last.LeaveOneOut,
		At: func(ranks int64) float64 { return curve.Predict(ranks).Value }}, nil
}
