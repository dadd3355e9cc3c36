package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/compare"
	"github.com/commq/commq/predict/regress"
	"github.com/commq/commq/queries"
)

func newBaselineCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "baseline",
		Short:   "Keep what runs measure as a file that commq check compares with",
		Long:    `baseline write makes a baseline: the measures of runs as a small file of text, to be kept in git beside the program.`,
		Example: "  commq baseline write --run 'halo.*' -o commq-baseline.yaml",
	}
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		return fmt.Errorf("baseline %s: want write", args[0])
	}
	c.AddCommand(newBaselineWriteCommand(a))
	return c
}

// baselineOptions are the flags of commq baseline write.
type baselineOptions struct {
	runs      []string // --run
	output    string   // --output
	times     bool     // --times
	equations bool     // --equations
	memory    int      // --memory-mib
}

func newBaselineWriteCommand(a *app) *cobra.Command {
	var o baselineOptions
	c := &cobra.Command{
		Use:   "write --run RUN",
		Short: "Write the measures of runs as a baseline",
		Long: `write writes the exact measures of runs as YAML, a line each, sorted, in a section for each number of ranks, so that a diff of two
baselines reads like a diff of programs. Of several runs of one number of ranks it keeps what they agree in, and says what it leaves out.

--times keeps the times of the runs too: for a machine that is always the same one. Elsewhere give commq check the runs of the base.
--equations keeps what each measure is of the number of ranks, from runs of three numbers of ranks or more.`,
		Example: `  commq baseline write --run halo.4 -o commq-baseline.yaml
  commq baseline write --run 'halo.*' --equations -o commq-baseline.yaml`,
		Args:              wantArgs(0, 0, "no arguments but flags; name the runs with --run"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return runBaselineWrite(c.Context(), a, &o) },
	}
	f := c.Flags()
	f.StringArrayVar(&o.runs, "run", nil, "`RUN` to measure: a name in the store, a path, or a pattern of either; several times for several")
	f.StringVarP(&o.output, "output", "o", "", "`FILE` to write (default: standard output)")
	f.BoolVar(&o.times, "times", false, "keep the times too")
	f.BoolVar(&o.equations, "equations", false, "keep the equations of measures over the number of ranks")
	f.IntVar(&o.memory, "memory-mib", 4096, "memory in `MIB` that the engine may use")
	register(c, completeRuns(a), "run")
	completeFiles(c, "output", "yaml")
	completeNothing(c, "memory-mib")
	return c
}

func runBaselineWrite(ctx context.Context, a *app, o *baselineOptions) error {
	if len(o.runs) == 0 {
		return errors.New("no run given; name one with --run")
	}
	runs, samples, err := checkedRuns(ctx, a, o.runs, queries.Options{MemoryBytes: int64(o.memory) << 20})
	if err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	b, unsteady, err := compare.NewBaseline(samples, keptBy(runs), o.times)
	if err != nil {
		return err
	}
	if o.equations {
		if err := addEquations(b, samples); err != nil {
			return err
		}
	}
	for _, key := range unsteady {
		a.warn("left out: %s differs between runs of one number of ranks", key)
	}
	if o.output == "" {
		return b.Write(a.screen())
	}
	if err := writeFile(o.output, func(w io.Writer) error { return b.Write(w) }); err != nil {
		return err
	}
	a.note("%s written: measures of %s; commit it", o.output, counted(int64(len(runs)), "run"))
	return nil
}

// checkedRuns finds and measures runs, and refuses those whose counts are not those of the program.
func checkedRuns(ctx context.Context, a *app, names []string, o queries.Options) ([]queries.Run, []compare.Sample, error) {
	if o.MemoryBytes < 64<<20 {
		return nil, nil, fmt.Errorf("--memory-mib %d: want at least 64", o.MemoryBytes>>20)
	}
	runs, err := askedRuns(ctx, a, o.Trino, names)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range runs {
		if text := incomplete(r.Manifest); text != "" {
			return nil, nil, fmt.Errorf("run %q %s", r.Name, text)
		}
	}
	samples, err := measure(ctx, runs, o)
	return runs, samples, err
}

// keptBy says which rows runs keep.
func keptBy(runs []queries.Run) (kept []string) {
	for _, r := range runs {
		kept = append(kept, strings.Join(append([]string{"record " + r.Manifest.Record}, r.Manifest.Filters...), " "))
	}
	return kept
}

// equationOf is what a measure is of the number of ranks.
func equationOf(samples []compare.Sample, key string) (string, error) {
	at := map[int64]float64{}
	for i := range samples {
		v, known := samples[i].Find(key)
		if !known || !v.Exact {
			return "", fmt.Errorf("run %s has no exact measure %s", samples[i].Run, key)
		}
		if before, twice := at[int64(samples[i].Ranks)]; twice && before != float64(v.Value) {
			return "", fmt.Errorf("it differs between runs of %s", counted(int64(samples[i].Ranks), "rank"))
		}
		at[int64(samples[i].Ranks)] = float64(v.Value)
	}
	var points []regress.Point
	most := int64(math.MinInt64)
	for ranks, value := range at {
		points = append(points, regress.Point{Ranks: ranks, Value: value})
		most = max(most, ranks)
	}
	if len(points) < 3 {
		return "", fmt.Errorf("not enough data: runs of %d numbers of ranks, at least 3 are needed", len(points))
	}
	slices.SortFunc(points, func(a, b regress.Point) int { return int(a.Ranks - b.Ranks) })
	curve, err := regress.Fit(points)
	if err != nil {
		return "", err
	}
	return curve.At(most).Formula, nil
}

// addEquations adds the equations of whole measures.
func addEquations(b *compare.Baseline, samples []compare.Sample) error {
	b.Equations = map[string]string{}
	for _, v := range samples[0].Values {
		if !v.Exact || v.Item != "" || v.Unit == compare.Fingerprint || v.Measure == "ranks" {
			continue
		}
		text, err := equationOf(samples, v.Key())
		if err != nil {
			return fmt.Errorf("baseline: equation of %s: %w", v.Key(), err)
		}
		b.Equations[v.Key()] = text
	}
	return nil
}
