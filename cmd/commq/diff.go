package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/compare"
	"github.com/commq/commq/internal/rows"
	"github.com/commq/commq/models"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/queries/plot"
)

// diffOptions are the flags of commq diff.
type diffOptions struct {
	base, runs []string // --base, --run
	format     string   // --format
	output     string   // --output
	all        bool     // --all
	alpha      float64  // --alpha
	machine    string   // --machine
	pictureOptions
	by     string // --by
	exit   bool   // --exit-code
	wire   bool   // --wire
	memory int    // --memory
}

// diffFormats are the formats of the differences.
var diffFormats = []string{"table", "markdown", "csv", "json"}

func newDiffCommand(a *app) *cobra.Command {
	var o diffOptions
	c := &cobra.Command{
		Use:   "diff BASE NEW",
		Short: "Compare two runs, or two sets of runs",
		Long: `diff compares two runs measure by measure: messages by size, bytes, pairs and partners, calls and
collectives, payloads, and calls by their place in the source. These counts are exact, so any difference comes from
the program. Equal measures are left out without --all.

Times differ from run to run. With several runs of each side (--base and --run) diff tells which differences are
significant, as benchstat does: medians, their 95 % confidence intervals, and the p-value of the Mann-Whitney U-test.
--machine adds the time of the runs on a simulated machine, without the noise of this one.

A place in the source is a call, its function and file, but not its line. A new place that does what a vanished one
did has moved. The exit status is 0 whatever diff finds, unless --exit-code is given; commq check decides.

--wire compares the hashes of payloads message by message and contribution by contribution, and names the first
difference: to test that a rewritten program still sends the same, or to find where a run that should be repeatable
is not. Of two runs without hashes, such as imported traces, it compares senders, receivers, tags, order and sizes.

Findings of commq diagnose that came, went, grew or shrank are named if the runs have times and, all together, at most
a million calls.

docs/method/compare.md describes every measure.`,
		Example: `  commq diff main.1 pr.1
  commq diff --base 'main.*' --run 'pr.*' --format markdown
  commq diff --base 'main.*' --run 'pr.*' --machine myrinet
  commq diff main.1 pr.1 --plot difference.png --by bytes
  commq diff main.1 pr.1 --wire --exit-code`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeTwoRuns(a),
		RunE:              func(c *cobra.Command, args []string) error { return runDiff(c.Context(), a, &o, args) },
	}
	f := c.Flags()
	f.StringArrayVar(&o.base, "base", nil, "`RUN` of the base: a name in the store, a path, or a pattern of "+
		"either ('main.*'); may be repeated")
	f.StringArrayVar(&o.runs, "run", nil, "`RUN` to compare with the base, named likewise")
	f.StringVar(&o.format, "format", "", "`FORMAT` of the answer: "+
		strings.Join(diffFormats, ", ")+" (default: by the ending of --output, else table)")
	f.StringVarP(&o.output, "output", "o", "", "`FILE` to write the answer to (default: standard output)")
	f.BoolVar(&o.all, "all", false, "also show exact measures that are equal")
	f.Float64Var(&o.alpha, "alpha", 0.05, "p-value below which a difference of times is significant")
	f.StringVar(&o.machine, "machine", "", "also compare the times on the machine of `FILE`: a YAML file, a "+
		"configuration of Dimemas, or one of "+strings.Join(models.Names(), ", "))
	o.pictureFlags(c, "draw the difference of the first runs' matrices into a `FILE`.png, .svg or "+
		".pdf: red is more in the new run, blue less")
	f.StringVar(&o.by, "by", "messages", "measure of the picture: messages, bytes")
	f.BoolVar(&o.wire, "wire", false, "compare payloads message by message, by their hashes, and name the first "+
		"that differs")
	f.BoolVar(&o.exit, "exit-code", false, "exit with status 1 where anything differs")
	f.IntVar(&o.memory, "memory", 4096, "memory in `MIB` that the engine may use")
	register(c, completeRuns(a), "base", "run")
	complete(c, "format", diffFormats...)
	complete(c, "by", "messages", "bytes")
	a.writes(c)
	completeFiles(c, "output")
	register(c, fixed(models.Names(), cobra.ShellCompDirectiveDefault), "machine")
	completeNothing(c, "alpha", "memory")
	return c
}

// completeTwoRuns offers the runs of the store for two arguments.
func completeTwoRuns(a *app) cobra.CompletionFunc {
	runs := completeRuns(a)
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return runs(c, args, prefix)
	}
}

// check validates the flags, and sets the sides from the arguments.
func (o *diffOptions) check(args []string) error {
	switch {
	case len(args) > 0 && len(o.base) > 0:
		o.runs = append(o.runs, args...)
	case len(args) > 0 && len(o.runs) > 0:
		return errors.New("diff: give two runs, or --base and --run, but not both")
	case len(args) == 2:
		o.base, o.runs = args[:1], args[1:]
	case len(args) > 2:
		return fmt.Errorf("diff: unexpected argument %q; want two runs, BASE and NEW; sets of runs go to --base and "+
			"--run", args[2])
	case len(o.base) == 0 || len(o.runs) == 0:
		return errors.New("diff: want two runs, commq diff BASE NEW, or sets of them with --base and --run")
	}
	if err := o.setFormat(); err != nil {
		return err
	}
	if err := errors.Join(oneOf("format", o.format, diffFormats...),
		oneOf("by", o.by, "messages", "bytes")); err != nil {
		return err
	}
	if !(o.alpha > 0 && o.alpha < 1) {
		return fmt.Errorf("--alpha %v: want a p-value between 0 and 1, for example 0.05", o.alpha)
	}
	if err := checkMemory(o.memory, leastMemory); err != nil {
		return err
	}
	if o.wire && (o.plot != "" || o.machine != "" || o.format == "markdown") {
		return errors.New("--wire: it does not work with --plot, --machine and --format markdown; leave them out")
	}
	return o.checkPicture()
}

// setFormat sets the format by the ending of the output's file if none is given.
func (o *diffOptions) setFormat() error {
	ending := output.ByName(o.output)
	switch {
	case o.output != "" && o.output == o.plot:
		return fmt.Errorf("--plot %s: --output is the same file; name another", o.plot)
	case o.format != "":
	case slices.Contains(plot.Formats(), plot.FormatOf(o.output)):
		return fmt.Errorf("--output %s: the answer is no picture; name another file, or draw one with --plot %[1]s", o.output)
	case ending == "":
		o.format = "table"
	case !slices.Contains(diffFormats, ending):
		return fmt.Errorf("--output %s: diff writes no %s; name another file, or choose one of %s with --format", o.output,
			ending, strings.Join(diffFormats, ", "))
	default:
		o.format = ending
	}
	return nil
}

func (o *diffOptions) engine() queries.Options {
	return queries.Options{MemoryBytes: int64(o.memory) << 20}
}

// sides are the two sets of runs of a comparison.
type sides struct{ base, new []queries.Run }

// all returns the runs of both sides, each once.
func (s sides) all() (all []queries.Run) {
	for _, r := range slices.Concat(s.base, s.new) {
		if !slices.ContainsFunc(all, func(o queries.Run) bool { return o.Dir == r.Dir }) {
			all = append(all, r)
		}
	}
	return all
}

// find finds the runs of both sides, and warns of runs that did not end.
func (o *diffOptions) find(a *app) (s sides, err error) {
	if s.base, err = findRuns(a, o.base); err != nil {
		return s, fmt.Errorf("base: %w", err)
	}
	if s.new, err = findRuns(a, o.runs); err != nil {
		return s, fmt.Errorf("new: %w", err)
	}
	incomplete, err := compare.CheckComparable(comparedRuns(s.all()))
	for _, problem := range incomplete {
		a.warn("%v: comparing what it has", problem)
	}
	return s, err
}

func runDiff(ctx context.Context, a *app, o *diffOptions, args []string) error {
	if err := o.check(args); err != nil {
		return err
	}
	s, err := o.find(a)
	if err != nil {
		return err
	}
	if o.wire {
		return runDiffWire(ctx, a, o, s)
	}
	noteUnmeasured(a, s.all())
	d, err := o.compare(ctx, a, s)
	if err != nil {
		return err
	}
	if err := o.addFindings(ctx, a, s, d); err != nil {
		return err
	}
	if o.plot != "" {
		if err := o.draw(ctx, s); err != nil {
			return err
		}
		a.note("%s drawn", o.plot)
	}
	if err := o.print(a, d); err != nil {
		return err
	}
	return o.status(d.Changed())
}

// status returns the exit status with --exit-code if something changed.
func (o *diffOptions) status(changed bool) error {
	if o.exit && changed {
		return exitError(exitFailed)
	}
	return nil
}

// compare measures and compares the runs.
func (o *diffOptions) compare(ctx context.Context, a *app, s sides) (*compare.Comparison, error) {
	return compare.CompareRuns(ctx, comparedRuns(s.base), comparedRuns(s.new), compare.RunOptions{
		Ask: askWith(o.engine()), Simulate: simulateOn(a, o.machine), Times: compare.DiffOptions{Alpha: o.alpha}})
}

// print writes the comparison to the output and in the format of the flags.
func (o *diffOptions) print(a *app, d *compare.Comparison) error {
	return o.write(a, func(w io.Writer) error {
		switch o.format {
		case "json":
			return printJSON(w, d)
		case "csv":
			return output.Write(w, "csv", changeRows(d))
		case "markdown":
			return d.Markdown(w, o.all)
		}
		return d.Text(w, o.all, a.text().Width)
	})
}

// write writes to the file of the flags, or to the screen.
func (o *diffOptions) write(a *app, write func(io.Writer) error) error {
	return a.writeAnswer(o.output, o.format, write)
}

// changeRows returns all measures as a table.
func changeRows(d *compare.Comparison) queries.Rows {
	names, values := d.Table()
	var columns []queries.Column
	for _, c := range names {
		columns = append(columns, queries.Column{Name: c.Name, Type: c.Type})
	}
	return queries.RowsOf(columns, values)
}

// draw draws the difference of the first runs' matrices.
func (o *diffOptions) draw(ctx context.Context, s sides) error {
	base, new := s.base[0], s.new[0]
	m, err := plot.NewDifference(int(max(base.Manifest.Ranks, new.Manifest.Ranks)))
	if err != nil {
		return err
	}
	m.Title = "Difference of messages: " + new.Name + " less " + base.Name
	m.Note = "red: more in " + new.Name + "; blue: less"
	m.Down, m.Across, m.Value, m.Unit = "source rank", "destination rank", "messages", "1"
	if o.by == "bytes" {
		m.Title = "Difference of sent data: " + new.Name + " less " + base.Name
		m.Value, m.Unit = "sent data", "bytes"
	}
	if err := addDensity(ctx, m, base, o.by, -1, o.engine()); err != nil {
		return err
	}
	if err := addDensity(ctx, m, new, o.by, 1, o.engine()); err != nil {
		return err
	}
	return o.writePicture(m)
}

// addDensity adds a column of a run's density, times sign, to a matrix.
func addDensity(ctx context.Context, m *plot.Matrix, run queries.Run, column string, sign int64,
	o queries.Options) error {
	return withEngine(ctx, []queries.Run{run}, o, func(ask rows.Ask) error {
		return ask(ctx, "density", map[string]string{"collectives": "none"}, func(r rows.Row) error {
			return m.Add(r.Int("src"), r.Int("dst"), sign*r.Int(column))
		})
	})
}
