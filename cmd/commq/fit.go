package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/predict/regress"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
)

// fitOptions are the flags of commq fit.
type fitOptions struct {
	runs    []string // --runs
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
		Use:   "fit",
		Short: "Find the laws of a program's runs, or of a table, by the number of ranks",
		Long: `fit --runs finds, from runs of a program at several numbers of ranks, who talks to whom, how much and how often, and writes it into a file
of models (--output), which commq extrapolate makes runs of at other numbers of ranks. Instead of runs it takes files of commq sign too, which are
small enough to be kept. Several captures on one number of ranks are one run with the medians of their compute times; they have to make the same calls.
It prints the laws of destinations, and what has none.

fit --table reads a table of two columns, a number of ranks and a value (bytes, seconds, counts), and says what the value will be at another number
of ranks, with an interval, the form it found, what else it could be, and what to be careful about. Laws of whole numbers that have every
value come first, then forms by least squares; among these the one is taken that best predicts points it has not seen, not the one closest to
those it has. docs/method/prediction-regression.md has the forms and the rules.

The table is CSV, or with tabs or semicolons in place of commas; - reads it from stdin. The first line may name its columns; ranks are in the
one called ranks, processes, procs, nprocs, np or p, else in the first; the value is in the other one. Of more than two columns --columns
names these two. Lines that begin with # are left out. A number of ranks may have several lines.

--form takes a form by its name, whether or not it is the best: power is the power law as the paper has it (Panadero et al., figure 7), with its
exponent rounded to three digits; power-law is the same with all digits.`,
		Example: `  commq fit --runs 'cg.W.*' -o models.json
  commq fit --runs 'signatures/cg.W.*.json.gz' -o models.json
  commq fit --table volume.csv --at 49
  commq fit --table volume.csv --at 49,64 --format json
  commq fit --table volume.csv --at 49 --form power
  commq fit --table times.csv --columns np,seconds --at 1024`,
		Args:              wantArgs(0, 0, "no arguments but flags; name runs with --runs, or a table with --table"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if o.runs != nil {
				return runFitRuns(c.Context(), a, &o)
			}
			return runFitTable(&o, a.stdin, a.screen())
		},
	}
	f := c.Flags()
	f.StringSliceVar(&o.runs, "runs", nil, "`RUNS` to learn from, separated by commas: names, paths or patterns of runs, or of files of commq sign")
	f.StringVarP(&o.output, "output", "o", "", "write the models of --runs to `FILE`; compressed where it ends in .gz")
	f.StringVar(&o.table, "table", "", "`FILE` with numbers of ranks and values, as CSV; - for stdin")
	f.StringSliceVar(&o.columns, "columns", nil, "names of the columns of ranks and value, with a comma")
	f.Int64SliceVar(&o.at, "at", nil, "`RANKS` to predict the value for; several with commas")
	f.StringVar(&o.form, "form", "", "form to take: "+strings.Join(regress.Forms(), ", ")+" (default: the one with the smallest error on points left out)")
	f.StringVar(&o.format, "format", "text", "format of the answer: text, json or csv")
	register(c, completeRuns(a), "runs")
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
		return errors.New("fit: --runs and --table: want one of them")
	case o.runs != nil && (o.at != nil || o.form != "" || o.columns != nil):
		return errors.New("fit: --at, --form and --columns are for --table; commq extrapolate --models FILE --ranks P says what --runs tell of P ranks")
	case o.runs != nil && o.format == "csv":
		return errors.New("--format csv: want text or json with --runs")
	case o.runs == nil && o.output != "":
		return errors.New("fit: --output is for the models of --runs; no runs are given")
	case o.runs != nil:
		return oneOf("format", o.format, "text", "json")
	case o.table == "":
		return errors.New("fit: no runs and no table given; name runs with --runs, or a table with --table")
	case len(o.at) == 0:
		return errors.New("fit: no number of ranks given; name one with --at")
	case o.columns != nil && len(o.columns) != 2:
		return fmt.Errorf("--columns %s: want two names, of the column of ranks and of the value", strings.Join(o.columns, ","))
	}
	for _, at := range o.at {
		if at < 1 {
			return fmt.Errorf("--at %d: want 1 rank or more", at)
		}
	}
	if o.form != "" {
		if err := oneOf("form", o.form, regress.Forms()...); err != nil {
			return err
		}
	}
	return oneOf("format", o.format, "text", "json", "csv")
}

func runFitTable(o *fitOptions, stdin io.Reader, w io.Writer) error {
	t, name, err := readFitFile(o.table, stdin, o.columns)
	if err != nil {
		return err
	}
	curve, err := regress.Fit(t.points)
	if err != nil {
		return fmt.Errorf("fit: %s: %w", name, err)
	}
	var all []regress.Prediction
	for _, at := range o.at {
		p := curve.At(at)
		if o.form != "" {
			if p, err = curve.AtForm(at, o.form); err != nil {
				return fmt.Errorf("fit: %s: %w", name, err)
			}
		}
		all = append(all, p)
	}
	switch {
	case o.format == "csv":
		return output.Write(w, "csv", fitRows(all))
	case o.format == "json" && len(all) == 1:
		return printJSON(w, all[0])
	case o.format == "json":
		return printJSON(w, all)
	}
	for i := range all {
		if err := printPrediction(w, t.value, &all[i]); err != nil {
			return err
		}
	}
	return nil
}

// fitRows are predictions as a table.
func fitRows(all []regress.Prediction) queries.Rows {
	columns := []queries.Column{{Name: "ranks", Type: "BIGINT"}, {Name: "prediction", Type: "DOUBLE"}, {Name: "low", Type: "DOUBLE"}, {Name: "high", Type: "DOUBLE"},
		{Name: "form", Type: "VARCHAR"}, {Name: "formula", Type: "VARCHAR"}, {Name: "exact", Type: "BOOLEAN"}, {Name: "leave_one_out", Type: "DOUBLE"},
		{Name: "rolling_origin", Type: "DOUBLE"}, {Name: "warnings", Type: "VARCHAR"}}
	var rows [][]any
	for _, p := range all {
		var names []string
		for _, w := range p.Warnings {
			names = append(names, w.Name)
		}
		rows = append(rows, []any{p.Ranks, p.Value, p.Low, p.High, p.Form, p.Formula, p.Exact, orNull(p.LeaveOneOut), orNull(p.RollingOrigin), strings.Join(names, " ")})
	}
	return queries.RowsOf(columns, rows)
}

func orNull(x *float64) any {
	if x == nil {
		return nil
	}
	return *x
}

// alternativesShown is how many other forms a text for people has.
const alternativesShown = 5

// printPrediction prints a prediction for people.
func printPrediction(w io.Writer, name string, p *regress.Prediction) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s at %s: %s", name, counted(p.Ranks, "rank"), output.Number(p.Value))
	if p.Exact {
		b.WriteString(", exact")
	} else {
		fmt.Fprintf(&b, ", between %s and %s", output.Number(p.Low), output.Number(p.High))
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
		if i == alternativesShown {
			fmt.Fprintf(&b, "  and %d more that --format json has\n", len(p.Alternatives)-i)
			break
		}
		fmt.Fprintf(&b, "  or %s: %s, with %s\n", output.Number(other.Value), other.Form, other.Formula)
	}
	for _, warning := range p.Warnings {
		fmt.Fprintf(&b, "  %s: %s\n", warning.Name, warning.Text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
