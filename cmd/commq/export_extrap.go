package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/compare"
	"github.com/commq/commq/formats/extrap"
	"github.com/commq/commq/queries"
)

// exportExtrapOptions are the flags of commq export extrap.
type exportExtrapOptions struct {
	runs   []string // --run
	output string   // --output
	memory int      // --memory
}

func newExportExtrapCommand(a *app) *cobra.Command {
	var o exportExtrapOptions
	c := &cobra.Command{
		Use:   "extrap RUN...",
		Short: "Write measures of runs at several numbers of ranks for Extra-P (JSON Lines)",
		Long: `extrap writes the measures of runs (commq query measures) as Extra-P's JSON Lines: the parameter p is the number
of ranks, a metric a measure, and what is counted by call or by place in the source has a call path of its own. Runs at
one number of ranks are repetitions. Extra-P wants five numbers of ranks or more.`,
		Example: `  commq export extrap 'cg.A.*' -o cg.jsonl
  extrap --json cg.jsonl`,
		RunE: func(c *cobra.Command, _ []string) error { return runExportExtrap(c.Context(), a, &o) },
	}
	f := c.Flags()
	f.StringArrayVar(&o.runs, "run", nil, "`RUN` to write: a name in the store, a path, or a pattern of either; "+
		"may be repeated")
	f.StringVarP(&o.output, "output", "o", "", "`FILE` to write (default: standard output)")
	f.IntVar(&o.memory, "memory", 4096, "memory in `MIB` that the engine may use")
	_ = c.MarkFlagRequired("run")
	register(c, completeRuns(a), "run")
	a.readsRuns(c)
	a.writes(c)
	completeFiles(c, "output", "jsonl")
	completeNothing(c, "memory")
	return c
}

func runExportExtrap(ctx context.Context, a *app, o *exportExtrapOptions) error {
	engine := queries.Options{MemoryBytes: int64(o.memory) << 20}
	runs, err := findToMeasure(ctx, a, o.runs, o.memory)
	if err != nil {
		return fmt.Errorf("export extrap: %w", err)
	}
	samples, err := compare.MeasureComplete(ctx, comparedRuns(runs), askWith(engine))
	if err != nil {
		return fmt.Errorf("export extrap: %w", err)
	}
	numbers, leftOut := compare.NumbersOfAll(samples)
	if len(leftOut) > 0 {
		a.note("left out, as some of the runs lack them: %s", strings.Join(leftOut, ", "))
	}
	all := make([]extrap.Measurement, len(numbers))
	for i, n := range numbers {
		all[i] = extrap.Measurement{Ranks: n.Ranks, Metric: n.Measure, Place: n.Item, Value: n.Value.Value}
	}
	if few := extrap.TooFew(all); few != "" {
		a.note("%s", few)
	}
	write := func(w io.Writer) error { return extrap.Write(w, all) }
	return a.writeAnswer(o.output, "extrap", write)
}
