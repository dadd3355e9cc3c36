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
	"github.com/commq/commq/models"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/queries/plot"
)

// diffOptions are the flags of commq diff.
type diffOptions struct {
	base, new []string // --base, --new
	format    string   // --format
	output    string   // --output
	all       bool     // --all
	alpha     float64  // --alpha
	machine   string   // --machine
	plot      string   // --plot
	by        string   // --by
	exit      bool     // --exit-code
	wire      bool     // --wire
	memory    int      // --memory-mib
}

// diffFormats are the formats of the differences.
var diffFormats = []string{"table", "markdown", "csv", "json"}

func newDiffCommand(a *app) *cobra.Command {
	var o diffOptions
	c := &cobra.Command{
		Use:   "diff BASE NEW",
		Short: "What two runs, or two sets of runs, do differently",
		Long: `diff compares two runs measure by measure: messages by size, bytes, pairs and partners, calls and collectives, payloads, and what is called
where in the source. These counts are exact: any difference is one of the program. Those that are the same are left out, but for --all.

Times differ from run to run. Give several runs of each side with --base and --new, and diff says which differences are significant,
as benchstat does: medians, their 95 % confidence intervals, and the p-value of the Mann-Whitney U-test. --machine adds the time that
the runs would take on a machine that is simulated, which does not know the noise of the network of this one.

A place in the source is a call, its function and file, but not its line. One that has another name and does what one did that
vanished is said to have moved. diff informs: its exit status is 0 whatever it finds, but with --exit-code. commq check decides.
--wire compares what two runs send, message by message and contribution by contribution, by the hashes of payloads, and names the first
that differs: a test that a program that was rewritten still sends the same, and a way to find where a run that should repeat does not.

docs/method/compare.md says what each measure is.`,
		Example: `  commq diff main.1 pr.1
  commq diff --base 'main.*' --new 'pr.*' --format markdown
  commq diff --base 'main.*' --new 'pr.*' --machine myrinet
  commq diff main.1 pr.1 --plot difference.png --by bytes
  commq diff main.1 pr.1 --wire --exit-code`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: completeTwoRuns(a),
		RunE:              func(c *cobra.Command, args []string) error { return runDiff(c.Context(), a, &o, args) },
	}
	f := c.Flags()
	f.StringArrayVar(&o.base, "base", nil, "`RUN` of the base: a name in the store, a path, or a pattern of either ('main.*'); several times for several")
	f.StringArrayVar(&o.new, "new", nil, "`RUN` that is compared with it, likewise")
	f.StringVar(&o.format, "format", "", "`FORMAT` of the answer: "+strings.Join(diffFormats, ", ")+" (default: by the ending of --output, else table)")
	f.StringVarP(&o.output, "output", "o", "", "`FILE` to write the answer to (default: standard output)")
	f.BoolVar(&o.all, "all", false, "show exact measures that are the same, too")
	f.Float64Var(&o.alpha, "alpha", 0.05, "p-value below which a difference of times is significant")
	f.StringVar(&o.machine, "machine", "", "also compare the times on a machine: a YAML file, a configuration of Dimemas, or one of "+strings.Join(models.Names(), ", "))
	f.StringVar(&o.plot, "plot", "", "draw what the first runs' matrices differ in into a `FILE`.png, .svg or .pdf: red is more in the new one, blue less")
	f.StringVar(&o.by, "by", "messages", "what the picture shows: messages, bytes")
	f.BoolVar(&o.wire, "wire", false, "compare payloads message by message, by their hashes, and name the first that differs")
	f.BoolVar(&o.exit, "exit-code", false, "exit with status 1 where anything differs")
	f.IntVar(&o.memory, "memory-mib", 4096, "memory in `MIB` that the engine may use")
	register(c, completeRuns(a), "base", "new")
	complete(c, "format", diffFormats...)
	complete(c, "by", "messages", "bytes")
	completeFiles(c, "output")
	completeFiles(c, "plot", plot.Formats()...)
	register(c, fixed(models.Names(), cobra.ShellCompDirectiveDefault), "machine")
	completeNothing(c, "alpha", "memory-mib")
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

// check takes the arguments, and says what is wrong with the flags.
func (o *diffOptions) check(args []string) error {
	switch {
	case len(args) > 0 && len(o.base)+len(o.new) > 0:
		return errors.New("diff: give two runs, or --base and --new, but not both")
	case len(args) == 2:
		o.base, o.new = args[:1], args[1:]
	case len(o.base) == 0 || len(o.new) == 0:
		return errors.New("diff: want two runs, commq diff BASE NEW, or sets of them with --base and --new")
	}
	if o.format == "" {
		if o.format = output.ByName(o.output); !slices.Contains(diffFormats, o.format) {
			o.format = "table"
		}
	}
	if err := errors.Join(oneOf("format", o.format, diffFormats...), oneOf("by", o.by, "messages", "bytes")); err != nil {
		return err
	}
	if !(o.alpha > 0 && o.alpha < 1) {
		return fmt.Errorf("--alpha %v: want a p-value between 0 and 1, for example 0.05", o.alpha)
	}
	if o.memory < 64 {
		return fmt.Errorf("--memory-mib %d: want at least 64", o.memory)
	}
	switch {
	case o.wire && (o.plot != "" || o.machine != "" || o.format == "markdown"):
		return errors.New("--wire: it has no --plot, --machine and --format markdown; ask without them")
	case o.plot != "":
		return plot.Known(o.plot)
	}
	return nil
}

func (o *diffOptions) engine() queries.Options {
	return queries.Options{MemoryBytes: int64(o.memory) << 20}
}

// sides are the runs of a comparison.
type sides struct{ base, new []queries.Run }

// find finds the runs of both sides, and warns of those whose counts are not those of the program.
func (o *diffOptions) find(a *app) (s sides, err error) {
	if s.base, err = findRuns(a, o.base); err != nil {
		return s, fmt.Errorf("base: %w", err)
	}
	if s.new, err = findRuns(a, o.new); err != nil {
		return s, fmt.Errorf("new: %w", err)
	}
	for _, r := range slices.Concat(s.base, s.new) {
		if text := incomplete(r.Manifest); text != "" {
			a.warn("run %q %s: what it has is compared", r.Name, text)
		}
		if text := alike(s.base[0], r); text != "" {
			return s, fmt.Errorf("diff: %s; compare runs that keep the same rows", text)
		}
	}
	return s, nil
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
	d, err := o.compare(ctx, a, s)
	if err != nil {
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
	if o.exit && d.Changed() {
		return exitError(exitFailed)
	}
	return nil
}

// compare measures and compares the runs.
func (o *diffOptions) compare(ctx context.Context, a *app, s sides) (*compare.Comparison, error) {
	base, err := measure(ctx, s.base, o.engine())
	if err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	new, err := measure(ctx, s.new, o.engine())
	if err != nil {
		return nil, fmt.Errorf("new: %w", err)
	}
	if o.machine != "" {
		if err := errors.Join(measureSimulated(ctx, a, s.base, base, o.machine), measureSimulated(ctx, a, s.new, new, o.machine)); err != nil {
			return nil, err
		}
	}
	return compare.Compare(base, new, compare.DiffOptions{Alpha: o.alpha})
}

// print writes the comparison where and as the flags say.
func (o *diffOptions) print(a *app, d *compare.Comparison) error {
	write := func(w io.Writer) error {
		switch o.format {
		case "json":
			return printJSON(w, d)
		case "csv":
			return output.Write(w, "csv", changeRows(d))
		case "markdown":
			return d.Markdown(w, o.all)
		}
		return d.Text(w, o.all)
	}
	if o.output != "" {
		return writeFile(o.output, write)
	}
	return write(a.screen())
}

// changeRows are all measures as a table.
func changeRows(d *compare.Comparison) queries.Rows {
	var columns []queries.Column
	for _, c := range [][2]string{{"measure", "VARCHAR"}, {"item", "VARCHAR"}, {"unit", "VARCHAR"}, {"exact", "BOOLEAN"}, {"what", "VARCHAR"}, {"base_runs", "BIGINT"},
		{"base_low", "BIGINT"}, {"base_high", "BIGINT"}, {"base_center", "DOUBLE"}, {"new_runs", "BIGINT"}, {"new_low", "BIGINT"}, {"new_high", "BIGINT"},
		{"new_center", "DOUBLE"}, {"ratio", "DOUBLE"}, {"p", "DOUBLE"}, {"file", "VARCHAR"}, {"line", "BIGINT"}, {"notes", "VARCHAR"}} {
		columns = append(columns, queries.Column{Name: c[0], Type: c[1]})
	}
	side := func(s compare.Side) []any {
		if s.N == 0 {
			return []any{int64(0), nil, nil, nil}
		}
		return []any{int64(s.N), s.Low, s.High, s.Center}
	}
	var rows [][]any
	for _, c := range d.Changes {
		row := append([]any{c.Measure, c.Item, c.Unit, c.Exact, c.What}, append(side(c.Base), side(c.New)...)...)
		row = append(row, nil, c.P, nil, nil, strings.Join(c.Notes, "; "))
		if ratio, known := c.Ratio(); known {
			row[13] = ratio
		}
		if c.New.File != "" {
			row[15], row[16] = c.New.File, int64(c.New.Line)
		}
		rows = append(rows, row)
	}
	return queries.RowsOf(columns, rows)
}

// draw draws what the first runs' matrices differ in.
func (o *diffOptions) draw(ctx context.Context, s sides) error {
	base, new := s.base[0], s.new[0]
	m, err := plot.NewDifference(int(max(base.Manifest.Ranks, new.Manifest.Ranks)))
	if err != nil {
		return err
	}
	m.Title = new.Name + " minus " + base.Name
	m.Note = o.by + " from source to destination"
	m.Down, m.Across, m.Value, m.Unit = "source", "destination", o.by, "1"
	column := 2
	if o.by == "bytes" {
		m.Unit, column = "bytes", 3
	}
	for run, sign := range map[*queries.Run]int64{&base: -1, &new: 1} {
		if err := addDensity(ctx, m, *run, column, sign, o.engine()); err != nil {
			return err
		}
	}
	return writeFile(o.plot, func(w io.Writer) error { return m.Draw(w, plot.FormatOf(o.plot)) })
}

// addDensity adds a column of a run's density to a matrix, times sign.
func addDensity(ctx context.Context, m *plot.Matrix, run queries.Run, column int, sign int64, o queries.Options) (err error) {
	q, err := queries.Named([]string{"density"})
	if err != nil {
		return err
	}
	db, err := queries.Open(ctx, []queries.Run{run}, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.Ask(ctx, q[0], map[string]string{"collectives": "none"})
	if err != nil {
		return err
	}
	for rows.Next() {
		r := rows.Row()
		src, dst, value := r[0].(int32), r[1].(int32), r[column].(int64)
		if err := m.Add(int64(src), int64(dst), sign*value); err != nil {
			return err
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}
