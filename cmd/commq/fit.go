package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/predict/regress"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
)

// fitOptions are the flags of commq fit.
type fitOptions struct {
	runs    []string // --run
	output  string   // --output
	table   string   // --table
	columns []string // --columns
	at      []int64  // --at
	form    string   // --form
	format  string   // --format
}

func newFitCommand(a *app) *cobra.Command {
	var o fitOptions
	c := &cobra.Command{
		Use:   "fit [RUN...]",
		Short: "Find the laws of a program's runs, or of a table, by the number of ranks",
		Long: `fit --run finds, from runs of a program at several numbers of ranks, who talks to whom, how much and how
often. It prints the laws of destinations, and what has none, and writes a file of models (--output) from which commq
predict makes runs at other numbers of ranks. Instead of runs it takes signature files (commq export signature)
too, which are small enough to keep. Several captures on one number of ranks count as one run with the medians of
their compute times; they must make the same calls.

fit --table reads a table with numbers of ranks and values (bytes, seconds, counts), and predicts the value at another
number of ranks: with an interval, the form of the law, other possible forms, and warnings. Laws of whole numbers that
fit every value come first, then forms by least squares: of these it takes the one that best predicts points which it
has not seen, not the one closest to the points. docs/method/prediction-regression.md has the forms and the rules.

The table is CSV, or has tabs or semicolons instead of commas; - reads it from stdin. The first line may name the
columns: ranks are in the column called ranks, processes, procs, nprocs, np or p, else in the first one, and values are
in the other one. In a table of more than two columns --columns names these two. Lines that begin with # are skipped. A
number of ranks may have several lines.

--form takes a form by its name, whether or not it is the best: power is the power law as in the paper (Panadero et al.,
figure 7), with its exponent rounded to three digits; power-law is the same with all digits.`,
		Example: `  commq fit 'cg.W.*' -o models.json
  commq fit --run 'signatures/cg.W.*.json.gz' -o models.json
  commq fit --table volume.csv --at 49
  commq fit --table volume.csv --at 49,64 --format json
  commq fit --table volume.csv --at 49 --form power
  commq fit --table times.csv --columns np,seconds --at 1024`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if o.runs != nil {
				return runFitRuns(c.Context(), a, &o)
			}
			return runFitTable(&o, a.stdin, a.screen(o.format))
		},
	}
	f := c.Flags()
	f.StringArrayVar(&o.runs, "run", nil, "`RUN` to learn from: a name in the store, a path, a pattern of either, or "+
		"a signature file (commq export signature); may be repeated")
	f.StringVarP(&o.output, "output", "o", "", "write the models of --run to `FILE`, compressed if it ends "+
		"in .gz; - is standard output, without the report")
	f.StringVar(&o.table, "table", "", "`FILE` with numbers of ranks and values, as CSV; - for stdin")
	f.StringSliceVar(&o.columns, "columns", nil, "names of the columns of ranks and values, separated by a comma")
	f.Int64SliceVar(&o.at, "at", nil, "`RANKS` to predict the value at; several separated by commas")
	noDefault(f, "at")
	f.StringVar(&o.form, "form", "", "form to take: "+
		strings.Join(regress.Forms(), ", ")+" (default: the one with the least error on points left out)")
	f.StringVar(&o.format, "format", "text", "`FORMAT` of the answer: text, json or csv")
	register(c, completeRuns(a), "run")
	a.readsRuns(c)
	a.writes(c)
	completeFiles(c, "output", "json", "gz")
	completeFiles(c, "table", "csv", "tsv", "txt")
	complete(c, "form", regress.Forms()...)
	complete(c, "format", "text", "json", "csv")
	completeNothing(c, "columns", "at")
	return c
}

func (o *fitOptions) check() error {
	switch {
	case o.runs != nil && o.table != "":
		return errors.New("fit: --run and --table: want only one of them")
	case o.runs != nil:
		return o.checkRuns()
	case o.output != "":
		return errors.New("fit: --output is for the models of --run; no runs are given")
	case o.table == "":
		return errors.New("fit: no runs and no table given; name runs with --run, or a table with --table")
	}
	return o.checkTable()
}

// checkRuns checks the flags that go with --run.
func (o *fitOptions) checkRuns() error {
	switch {
	case o.at != nil || o.form != "" || o.columns != nil:
		return errors.New("fit: --at, --form and --columns are for --table; " +
			"commq predict --models FILE --ranks P predicts from --run")
	case o.format == "csv":
		return errors.New("--format csv: want text or json with --run")
	}
	return oneOf("format", o.format, "text", "json")
}

// checkTable checks the flags that go with --table.
func (o *fitOptions) checkTable() error {
	switch {
	case len(o.at) == 0:
		return errors.New("fit: no number of ranks given; name one with --at")
	case o.columns != nil && len(o.columns) != 2:
		return fmt.Errorf("--columns %s: want two names, of the columns of ranks and of values",
			strings.Join(o.columns, ","))
	case slices.Min(o.at) < 1:
		return fmt.Errorf("--at %d: want 1 rank or more", slices.Min(o.at))
	}
	if err := checkForm(o.form); err != nil {
		return err
	}
	return oneOf("format", o.format, "text", "json", "csv")
}

// checkForm checks --form; "" is no form.
func checkForm(form string) error {
	if form == "" {
		return nil
	}
	return oneOf("form", form, regress.Forms()...)
}

func runFitTable(o *fitOptions, stdin io.Reader, w io.Writer) error {
	t, name, err := regress.ReadTableFile(o.table, stdin, o.columns)
	if err != nil {
		return err
	}
	curve, err := regress.Fit(t.Points)
	if err != nil {
		return fmt.Errorf("fit: %s: %w", name, err)
	}
	var all []regress.Prediction
	for _, ranks := range o.at {
		p := curve.Predict(ranks)
		if o.form != "" {
			if p, err = curve.PredictWith(ranks, o.form); err != nil {
				return fmt.Errorf("fit: %s: %w", name, err)
			}
		}
		all = append(all, p)
	}
	switch {
	case o.format == "csv":
		return output.Write(w, "csv", fitRows(all))
	case o.format == "json":
		return printJSON(w, all)
	}
	for i := range all {
		if err := printPrediction(w, t.Value, &all[i]); err != nil {
			return err
		}
	}
	return nil
}

var fitColumns = []queries.Column{{Name: "ranks", Type: "BIGINT"}, {Name: "prediction", Type: "DOUBLE"},
	{Name: "low", Type: "DOUBLE"}, {Name: "high", Type: "DOUBLE"},
	{Name: "form", Type: "VARCHAR"}, {Name: "formula", Type: "VARCHAR"}, {Name: "exact", Type: "BOOLEAN"},
	{Name: "leave_one_out", Type: "DOUBLE"},
	{Name: "rolling_origin", Type: "DOUBLE"}, {Name: "warnings", Type: "VARCHAR"}}

// fitRows has a row per prediction.
func fitRows(all []regress.Prediction) queries.Rows {
	var rows [][]any
	for _, p := range all {
		var names []string
		for _, w := range p.Warnings {
			names = append(names, w.Name)
		}
		rows = append(rows, []any{p.Ranks, p.Value, p.Low, p.High, p.Form, p.Formula, p.Exact, orNull(p.LeaveOneOut),
			orNull(p.RollingOrigin), strings.Join(names, " ")})
	}
	return queries.RowsOf(fitColumns, rows)
}

func orNull(x *float64) any {
	if x == nil {
		return nil
	}
	return *x
}

// alternativesListed limits the other forms in a text for people.
const alternativesListed = 5

// printPrediction prints a prediction for people.
func printPrediction(w io.Writer, name string, p *regress.Prediction) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s at %s: %s", printable.Line(name), counted(p.Ranks, "rank"), units.Number(p.Value))
	if p.Exact {
		b.WriteString(", exact")
	} else {
		fmt.Fprintf(&b, ", between %s and %s", units.Number(p.Low), units.Number(p.High))
	}
	fmt.Fprintf(&b, "\n  %s: %s", p.Form, p.Formula)
	if p.LeaveOneOut != nil {
		fmt.Fprintf(&b, " (error on points left out %s", percent(*p.LeaveOneOut))
		if p.RollingOrigin != nil {
			fmt.Fprintf(&b, ", on those above %s", percent(*p.RollingOrigin))
		}
		b.WriteString(")")
	}
	b.WriteString("\n")
	for i, other := range p.Alternatives {
		if i == alternativesListed {
			fmt.Fprintf(&b, "  and %d more in --format json\n", len(p.Alternatives)-i)
			break
		}
		fmt.Fprintf(&b, "  or %s: %s, with %s\n", units.Number(other.Value), other.Form, other.Formula)
	}
	for _, warning := range p.Warnings {
		fmt.Fprintf(&b, "  %s: %s\n", warning.Name, warning.Text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
