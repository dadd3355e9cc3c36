package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/commq/commq/compare"
)

// baselineOptions are the flags of commq check that write a baseline instead of comparing with it.
type baselineOptions struct {
	write     bool // --write-baseline
	times     bool // --times
	equations bool // --equations
}

func (b *baselineOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&b.write, "write-baseline", false, "write the measures of the runs to the baseline instead of "+
		"checking them")
	f.BoolVar(&b.times, "times", false, "with --write-baseline: also keep the times")
	f.BoolVar(&b.equations, "equations", false, "with --write-baseline: also keep the exact laws of the number "+
		"of ranks that measures follow")
}

// check rejects flags for checking where a baseline is to be written, and the other way round.
func (b *baselineOptions) check(c *cobra.Command) error {
	for _, name := range []string{"times", "equations"} {
		if c.Flags().Changed(name) && !b.write {
			return fmt.Errorf("--%s is about a baseline; want --write-baseline too", name)
		}
	}
	for _, name := range []string{"base", "format", "write", "source-root"} {
		if c.Flags().Changed(name) && b.write {
			return fmt.Errorf("--%s is for checking runs; leave it out with --write-baseline", name)
		}
	}
	return nil
}

// runWriteBaseline measures runs and writes the baseline.
func runWriteBaseline(ctx context.Context, a *app, o *checkOptions) error {
	file, err := o.files.BaselineName()
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if file == "" {
		return fmt.Errorf("check: %s names no baseline; name the file to write with --baseline, or in the rules "+
			"(baseline: FILE)", o.files.Rules)
	}
	if err := a.checkNew(file); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	runs, err := askedRuns(ctx, a, o.trino, o.runs)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	b, leftOut, err := compare.MeasureBaseline(ctx, comparedRuns(runs), (&checkEngine{a, o}).Ask,
		compare.BaselineOptions{Times: o.baseline.times, Equations: o.baseline.equations, Fit: exactLaw})
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	for _, what := range leftOut {
		a.warn("left out: %s", what)
	}
	if err := a.writeFile(file, b.Write); err != nil {
		return err
	}
	a.note("%s written: measures of %s; commit it", file, counted(int64(len(runs)), "run"))
	return nil
}
