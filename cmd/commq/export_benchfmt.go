package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
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
of ranks.`,
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
	runs, err := findToMeasure(ctx, a, o.runs, o.engine())
	if err != nil {
		return fmt.Errorf("export benchfmt: %w", err)
	}
	samples, err := compare.MeasureComplete(ctx, comparedRuns(runs), askWith(o.engine()))
	if err != nil {
		return fmt.Errorf("export benchfmt: %w", err)
	}
	write := func(w io.Writer) error { return writeBenchfmt(w, o.benchmark, runs, samples) }
	if o.output != "" {
		return a.writeFile(o.output, write)
	}
	return write(a.screen())
}

// notInNames are characters that a benchmark's name cannot have: it ends at a blank, and - precedes the number of CPUs.
var notInNames = regexp.MustCompile(`[^A-Za-z0-9_.]+`)

// benchmarkName names a run's benchmark; it must begin with a capital letter.
func benchmarkName(name string, r queries.Run) string {
	if name == "" && len(r.Manifest.Origin.Command) > 0 {
		name = filepath.Base(r.Manifest.Origin.Command[0])
	}
	name = notInNames.ReplaceAllString(name, "_")
	if name == "" {
		name = "Run"
	}
	return fmt.Sprintf("Benchmark%s%s/ranks=%d", strings.ToUpper(name[:1]), name[1:], r.Manifest.Ranks)
}

// benchmarkUnit returns the unit of a measure and the factor for its values; the unit is empty for measures that
// benchfmt leaves out.
func benchmarkUnit(v *compare.Value) (unit string, scale float64) {
	name := strings.ReplaceAll(v.Key(), " ", "")
	switch {
	case v.Unit == compare.Fingerprint || strings.HasPrefix(v.Measure, "site") || v.Measure == "ranks" ||
		strings.ContainsAny(name, "<>"):
		return "", 0
	case v.Measure == "end_ns":
		return "sec/op", 1e-9
	case v.Unit == "ns":
		return strings.TrimSuffix(name, "_ns") + "-sec/op", 1e-9
	}
	return name, 1
}

// writeBenchfmt writes a line per run.
func writeBenchfmt(w io.Writer, name string, runs []queries.Run, samples []compare.Sample) error {
	var head, lines strings.Builder
	declared := map[string]bool{}
	for i := range samples {
		fmt.Fprintf(&lines, "%s 1", benchmarkName(name, runs[i]))
		for k := range samples[i].Values {
			v := &samples[i].Values[k]
			unit, scale := benchmarkUnit(v)
			if unit == "" {
				continue
			}
			if v.Exact && !declared[unit] {
				declared[unit] = true
				fmt.Fprintf(&head, "Unit %s assume=exact\n", unit)
			}
			value := strconv.FormatInt(v.Value, 10)
			if scale != 1 {
				value = strconv.FormatFloat(float64(v.Value)*scale, 'g', -1, 64)
			}
			fmt.Fprintf(&lines, " %s %s", value, unit)
		}
		lines.WriteString("\n")
	}
	if lines.Len() == 0 {
		return errors.New("export benchfmt: no run")
	}
	_, err := io.WriteString(w, head.String()+lines.String())
	return err
}
