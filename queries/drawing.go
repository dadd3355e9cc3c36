package queries

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/commq/commq/queries/plot"
)

// Keep reads all rows into memory, to be read more than once with Again.
func Keep(rows Rows) (Rows, error) {
	k := &kept{columns: rows.Columns(), at: -1}
	for rows.Next() {
		k.rows = append(k.rows, append([]any(nil), rows.Row()...))
	}
	return k, rows.Err()
}

// Again gives kept rows from the first.
func Again(rows Rows) Rows {
	if k, ok := rows.(*kept); ok {
		return &kept{columns: k.columns, rows: k.rows, at: -1}
	}
	return rows
}

type kept struct {
	columns []Column
	rows    [][]any
	at      int
}

func (k *kept) Columns() []Column { return k.columns }
func (k *kept) Row() []any        { return k.rows[k.at] }
func (k *kept) Err() error        { return nil }
func (k *kept) Close() error      { return nil }

func (k *kept) Next() bool {
	k.at++
	return k.at < len(k.rows)
}

// Drawing makes the drawing of rows that the header's plot describes. The rows are the query's answers for runs, asked with
// args: as Ask gives them for one run or where the query is over runs, else with the column run first. Errors say which row
// does not fit.
func (q *Query) Drawing(rows Rows, runs []Run, args map[string]string) (plot.Drawing, error) {
	if q.Plot == nil {
		return nil, fmt.Errorf("query %s has no plot", q.Name)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("query %s: no run to draw", q.Name)
	}
	d := drawer{q: q, runs: runs, columns: rows.Columns()}
	if q.Plot.Kind == "matrix" {
		form := "%s of %s and %s"
		if slices.Contains([]string{"src", "origin"}, q.Plot.Row) {
			form = "%s from %s to %s"
		}
		d.note = fmt.Sprintf(form, words(q.Plot.Value), rankName(q.Plot.Row), rankName(q.Plot.Column)) + q.choices(args)
		return d.matrices(rows)
	}
	return d.chart(rows, args)
}

// choices are the parameters under the title, but for those that an axis says.
func (q *Query) choices(args map[string]string) (text string) {
	axes := slices.Collect(maps.Values(q.Axes))
	for _, p := range q.Params {
		if _, given := args[p.Name]; (given || p.Kind == "choice") && !slices.Contains(axes, p.Name) {
			text += ", " + p.Name + " " + argument(&p, args)
		}
	}
	return text
}

// rankName is the name of a matrix's side.
func rankName(column string) string {
	switch column {
	case "src":
		return "source"
	case "dst":
		return "destination"
	}
	return words(column)
}

// words is a column's name as people write it.
func words(column string) string {
	return strings.ReplaceAll(strings.TrimSuffix(column, "_ns"), "_", " ")
}

// drawer draws rows.
type drawer struct {
	q       *Query
	runs    []Run
	columns []Column
	note    string
}

// at is where a column stands in the rows; -1 for the empty name, and for run where there is none.
func (d *drawer) at(name string) (int, error) {
	i := slices.IndexFunc(d.columns, func(c Column) bool { return c.Name == name })
	if i < 0 && name != "" && name != "run" {
		return 0, fmt.Errorf("query %s: the rows have no column %s", d.q.Name, name)
	}
	return i, nil
}

// find is where columns stand.
func (d *drawer) find(names ...string) ([]int, error) {
	at := make([]int, len(names))
	for i, name := range names {
		var err error
		if at[i], err = d.at(name); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// matrices makes a matrix for each run.
func (d *drawer) matrices(rows Rows) (plot.Drawing, error) {
	p := d.q.Plot
	at, err := d.find("run", p.Row, p.Column, p.Value)
	if err != nil {
		return nil, err
	}
	all, of := make(plot.Matrices, len(d.runs)), map[string]*plot.Matrix{}
	for i, run := range d.runs {
		make := plot.NewPanel
		if len(d.runs) == 1 {
			make = plot.NewMatrix
		}
		m, err := make(int(run.Manifest.Ranks))
		if err != nil {
			return nil, err
		}
		m.Title, m.Note, m.Value, m.Unit = d.q.Name+" of "+run.Name, d.note, words(p.Value), d.q.column(p.Value).Unit
		m.Down, m.Across = rankName(p.Row), rankName(p.Column)
		all[i], of[run.Name] = m, m
	}
	for rows.Next() {
		row, m := rows.Row(), all[0]
		if at[0] >= 0 {
			name, _ := row[at[0]].(string)
			if m = of[name]; m == nil {
				return nil, fmt.Errorf("query %s: row %v is of a run that was not asked", d.q.Name, row)
			}
		}
		src, ok1 := integer(row[at[1]])
		dst, ok2 := integer(row[at[2]])
		value, ok3 := integer(row[at[3]])
		if !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("query %s: row %v has a null where the plot needs a number", d.q.Name, row)
		}
		if err := m.Add(src, dst, value); err != nil {
			return nil, err
		}
	}
	return all, rows.Err()
}

// chart makes a chart. Several runs of a query that is not over runs are groups of bars, or series.
func (d *drawer) chart(rows Rows, args map[string]string) (plot.Drawing, error) {
	all, err := d.all(rows)
	if err != nil {
		return nil, err
	}
	drawn := d.q.Drawn(d.columns, all, args)
	d.columns = drawn.Columns
	p := drawn.Plot
	c := &plot.Chart{Title: d.title(), Kind: p.Kind, Series: words(p.Series), Fit: words(p.Fit)}
	inRun := len(d.runs) > 1 && !d.q.OverRuns
	bars := p.Kind == "bars" || p.Kind == "grouped"
	if p.Series == "run" {
		c.Order = d.runNames()
	}
	names := []string{p.X, p.Y, p.Fit, p.Series, ""}
	if inRun {
		names[4] = "run"
	}
	at, err := d.find(names...)
	if err != nil {
		return nil, err
	}
	c.X, c.Y = d.axis(at[0], p.LogX), d.axis(at[1], p.LogY)
	if inRun && !bars {
		c.Series = "run"
		if p.Series != "" {
			c.Series += ", " + words(p.Series)
		}
	}
	oneEach := bars && inRun && d.oneBarEach(drawn.Rows, at[4], at[0])
	if oneEach {
		c.X = plot.Axis{Name: "run"}
	}
	c.Note = c.Y.Name + " against " + c.X.Name + d.q.choices(args)
	for _, row := range drawn.Rows {
		v := plot.Value{X: number(row, at[0]), Y: number(row, at[1]), Fit: number(row, at[2]), Series: label(row, at[3])}
		switch run := label(row, at[4]); {
		case oneEach:
			v.Category = run
		case bars:
			v.Category, v.Group = label(row, at[0]), run
		case inRun && p.Series != "":
			v.Series = run + ", " + v.Series
		case inRun:
			v.Series = run
		}
		if p.Fit != "" {
			v.Series += d.law(row)
		}
		c.Add(v)
	}
	return c, nil
}

// oneBarEach says whether each run has one bar, and some have the same: then the names of the runs say more than the bars'.
func (d *drawer) oneBarEach(rows [][]any, run, category int) bool {
	of, categories := map[string]string{}, map[string]bool{}
	for _, row := range rows {
		r, c := label(row, run), label(row, category)
		if before, seen := of[r]; seen && before != c {
			return false
		}
		of[r], categories[c] = c, true
	}
	return len(categories) < len(of)
}

// law says behind the name of a series what law was fitted to it; "" where the rows have no slope and r2.
func (d *drawer) law(row []any) string {
	slope, _ := d.at("slope")
	r2, _ := d.at("r2")
	if v := number(row, slope); slope >= 0 && r2 >= 0 && !math.IsNaN(v) {
		return fmt.Sprintf(": slope %.3g, R2 %.4g", v, number(row, r2))
	}
	return ""
}

// all are all rows, in the order in which the runs were given where the axis x has the runs.
func (d *drawer) all(rows Rows) ([][]any, error) {
	var all [][]any
	for rows.Next() {
		all = append(all, append([]any(nil), rows.Row()...))
	}
	if run, _ := d.at("run"); run >= 0 && d.q.Plot.X == "run" {
		names := d.runNames()
		slices.SortStableFunc(all, func(a, b []any) int {
			return slices.Index(names, label(a, run)) - slices.Index(names, label(b, run))
		})
	}
	return all, rows.Err()
}

func (d *drawer) runNames() []string {
	names := make([]string, len(d.runs))
	for i, r := range d.runs {
		names[i] = r.Name
	}
	return names
}

// titleRuns is up to how many runs a title names.
const titleRuns = 6

func (d *drawer) title() string {
	if len(d.runs) > titleRuns {
		return fmt.Sprintf("%s of %d runs", d.q.Name, len(d.runs))
	}
	return d.q.Name + " of " + strings.Join(d.runNames(), ", ")
}

func (d *drawer) axis(column int, log bool) plot.Axis {
	c := d.columns[column]
	return plot.Axis{Name: words(c.Name), Unit: c.Unit, Whole: c.Type != "DOUBLE", Log: log}
}

func integer(v any) (int64, bool) {
	switch x := v.(type) {
	case int32:
		return int64(x), true
	case int64:
		return x, true
	}
	return 0, false
}

// number is a value of a row as a float; NaN for null and for a column that there is not.
func number(row []any, at int) float64 {
	if at < 0 {
		return math.NaN()
	}
	if x, ok := row[at].(float64); ok {
		return x
	}
	if x, ok := integer(row[at]); ok {
		return float64(x)
	}
	return math.NaN()
}

// label is a value of a row as text; "" for null and for a column that there is not.
func label(row []any, at int) string {
	if at < 0 || row[at] == nil {
		return ""
	}
	return fmt.Sprint(row[at])
}
