package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/compare"
	"github.com/commq/commq/queries"
)

// exportBenchfmtOptions are the flags of commq export benchfmt.
type exportBenchfmtOptions struct {
	runs      []string // --run
	benchmark string   // --benchmark
	output    string   // --output
	memory    int      // --memory
}

func newExportBenchfmtCommand(a *app) *cobra.Command {
	var o exportBenchfmtOptions
	c := &cobra.Command{
		Use:   "benchfmt RUN...",
		Short: "Write measures of runs in the format of Go's benchmarks, for benchstat",
		Long: `benchfmt writes a line for each run with its measures (commq query measures) as go test -bench prints
results, so that benchstat and tools built on it can compare files of several runs. Exact measures are declared as
such (Unit ... assume=exact), times are in seconds. The benchmark has the name of the program, followed by the number
of ranks. What the format cannot hold is left out and named: fingerprints of payloads, and the parts by size and by
place in the source.`,
		Example: `  commq export benchfmt 'main.*' -o main.txt
  commq export benchfmt --run 'pr.*' -o pr.txt
  benchstat main.txt pr.txt`,
		RunE: func(c *cobra.Command, _ []string) error { return runExportBenchfmt(c.Context(), a, &o) },
	}
	f := c.Flags()
	f.StringArrayVar(&o.runs, "run", nil, "`RUN` to write: a name in the store, a path, or a pattern of either; "+
		"may be repeated")
	f.StringVar(&o.benchmark, "benchmark", "", "`NAME` of the benchmark (default: the program's)")
	f.StringVarP(&o.output, "output", "o", "", "`FILE` to write (default: standard output)")
	f.IntVar(&o.memory, "memory", 4096, "memory in `MIB` that the engine may use")
	_ = c.MarkFlagRequired("run")
	register(c, completeRuns(a), "run")
	a.readsRuns(c)
	a.writes(c)
	completeFiles(c, "output", "txt")
	completeNothing(c, "benchmark", "memory")
	return c
}

func (o *exportBenchfmtOptions) engine() queries.Options {
	return queries.Options{MemoryBytes: int64(o.memory) << 20}
}

func runExportBenchfmt(ctx context.Context, a *app, o *exportBenchfmtOptions) error {
	runs, err := findToMeasure(ctx, a, o.runs, o.memory)
	if err != nil {
		return fmt.Errorf("export benchfmt: %w", err)
	}
	measured := comparedRuns(runs)
	samples, err := compare.MeasureComplete(ctx, measured, askWith(o.engine()))
	if err != nil {
		return fmt.Errorf("export benchfmt: %w", err)
	}
	if left := compare.BenchfmtLeavesOut(samples); len(left) > 0 {
		a.note("export benchfmt: left out: %s", strings.Join(left, ", "))
	}
	write := func(w io.Writer) error { return compare.WriteBenchfmt(w, o.benchmark, measured, samples) }
	return a.writeAnswer(o.output, "benchfmt", write)
}
