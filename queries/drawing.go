package queries

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/commq/commq/queries/plot"
)

// Keep reads all rows into memory, so that Again can return them several times.
func Keep(rows Rows) (Rows, error) {
	k := &keptRows{columns: rows.Columns(), at: -1}
	for rows.Next() {
		k.rows = append(k.rows, append([]any(nil), rows.Row()...))
	}
	return k, rows.Err()
}

// Again returns keptRows rows from the first row on.
func Again(rows Rows) Rows {
	if k, ok := rows.(*keptRows); ok {
		return &keptRows{columns: k.columns, rows: k.rows, at: -1}
	}
	return rows
}

type keptRows struct {
	columns []Column
	rows    [][]any
	at      int
}

func (k *keptRows) Columns() []Column { return k.columns }
func (k *keptRows) Row() []any        { return k.rows[k.at] }
func (k *keptRows) Err() error        { return nil }
func (k *keptRows) Close() error      { return nil }

func (k *keptRows) Next() bool {
	k.at++
	return k.at < len(k.rows)
}

// Drawing draws rows as the plot field of the query's header describes. The rows are the answers for runs with args:
// as Ask returns them for one run or for a query over runs, else with the column run first. Errors name the row that
// cannot be drawn.
func (q *Query) Drawing(rows Rows, runs []Run, args map[string]string) (plot.Drawing, error) {
	if q.Plot == nil {
		return nil, fmt.Errorf("query %s has no plot", q.Name)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("query %s: no run to draw", q.Name)
	}
	d := drawer{q: q, args: args, runs: runs, columns: rows.Columns()}
	d.note = strings.Join(append(d.ranks(), q.chosenArgs(args)...), "; ")
	if q.Plot.Kind == "matrix" {
		return d.matrices(rows)
	}
	if q.Plot.Kind == "timeline" {
		return d.timeline(rows)
	}
	return d.chart(rows, args)
}

// chosenArgs lists the parameters for the note under the title, without those that an axis shows.
func (q *Query) chosenArgs(args map[string]string) (all []string) {
	axes := slices.Collect(maps.Values(q.Axes))
	for _, p := range q.Params {
		if p.leavesOutStartup() {
			if q.LeavesOutStartup(args) {
				all = append(all, "without MPI_Init and MPI_Finalize")
			}
			continue
		}
		if _, given := args[p.Name]; (given || p.Kind == "choice" && p.Default != "auto") && !slices.Contains(axes, p.Name) {
			name, unit := p.Name, ""
			for _, u := range []string{"ns", "s", "bytes"} {
				if words, ok := strings.CutSuffix(name, "-"+u); ok {
					name, unit = words, " "+u
				}
			}
			all = append(all, strings.ReplaceAll(name, "-", " ")+": "+argument(&p, args)+unit)
		}
	}
	return all
}

// rankName names one side of a matrix.
func rankName(c *Column) string {
	switch {
	case c.Label != "":
		return c.Label
	case c.Name == "src":
		return "source rank"
	case c.Name == "dst":
		return "destination rank"
	}
	return c.Words()
}

// words turns a column's name into words: "send_bytes" into "send bytes".
func words(column string) string {
	return strings.ReplaceAll(strings.TrimSuffix(column, "_ns"), "_", " ")
}

// drawer turns the rows of an answer into a picture.
type drawer struct {
	q       *Query
	args    map[string]string
	runs    []Run
	columns []Column
	note    string
}

// ranks is the number of ranks of the only run, for the note.
func (d *drawer) ranks() []string {
	if len(d.runs) != 1 || d.runs[0].Manifest == nil {
		return nil
	}
	if n := d.runs[0].Manifest.Ranks; n != 1 {
		return []string{fmt.Sprintf("%d ranks", n)}
	}
	return []string{"1 rank"}
}

// CheckRuns returns an error if the picture cannot show this many runs.
func (q *Query) CheckRuns(runs int) error {
	if q.Plot != nil && q.Plot.Kind == "timeline" && runs > 1 {
		return fmt.Errorf("the picture of %s shows one run, and there are %d; draw each into a file of its own", q.Name,
			runs)
	}
	return nil
}

// Kinds of calls in a timeline, in the order of their colours; ui/web/src/colours.ts has the same. outsideMPI is the
// time between calls.
var timelineKinds = []string{"send", "wait", "send and receive", "collective", "receive", "one-sided", "I/O",
	"other MPI"}

const outsideMPI = "outside MPI"

// timeline draws one run over time.
func (d *drawer) timeline(rows Rows) (plot.Drawing, error) {
	if err := d.q.CheckRuns(len(d.runs)); err != nil {
		return nil, err
	}
	p := d.q.Plot
	at, err := d.columnIndexes(p.Row, p.Ranks, p.Start, p.End, p.Series, p.Value, p.Y, p.Destination)
	if err != nil {
		return nil, err
	}
	amount := d.q.column(p.Y)
	t := &plot.Timeline{Title: d.title(), Kinds: timelineKinds, Idle: outsideMPI,
		Amount: plot.Axis{Name: amount.Words(), Unit: amount.Unit}}
	lines, sent := 0, int64(0)
	for rows.Next() {
		row := rows.Row()
		rank, ok1 := integer(row[at[0]])
		start, ok2 := integer(row[at[2]])
		end, ok3 := integer(row[at[3]])
		if !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("query %s: row %v has a null where the plot needs a number", d.q.Name, row)
		}
		from, to := float64(start), float64(end)
		if ns, ok := integer(row[at[5]]); ok {
			ranks, _ := integer(row[at[1]])
			t.AddTime(int(rank), int(ranks), from, to, label(row, at[4]), float64(ns))
			continue
		}
		if dst, ok := integer(row[at[7]]); ok {
			t.AddMessage(int(rank), int(dst), from, to)
			lines++
			continue
		}
		bytes, _ := integer(row[at[6]])
		t.AddAmount(from, to, float64(bytes))
		sent++
	}
	t.Note = d.timelineNote(lines, sent > 0)
	return t, rows.Err()
}

// timelineNote says how messages are drawn.
func (d *drawer) timelineNote(lines int, sent bool) string {
	note := d.note
	switch {
	case lines == 1:
		note += "; 1 message, a line"
	case lines > 1:
		note += fmt.Sprintf("; %d messages, a line each", lines)
	case sent:
		note += "; too many messages for lines (--lines, --from-s, --to-s)"
	}
	return strings.TrimPrefix(note, "; ")
}

// columnIndex returns the position of a column in the rows: -1 for the empty name, and for run if the rows lack it.
func (d *drawer) columnIndex(name string) (int, error) {
	i := slices.IndexFunc(d.columns, func(c Column) bool { return c.Name == name })
	if i < 0 && name != "" && name != "run" {
		return 0, fmt.Errorf("query %s: the rows have no column %s", d.q.Name, name)
	}
	return i, nil
}

// columnIndexes returns the positions of several columns.
func (d *drawer) columnIndexes(names ...string) ([]int, error) {
	at := make([]int, len(names))
	for i, name := range names {
		var err error
		if at[i], err = d.columnIndex(name); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// matrices draws one matrix for each run.
func (d *drawer) matrices(rows Rows) (plot.Drawing, error) {
	p := d.q.Plot
	at, err := d.columnIndexes("run", p.Row, p.Column, p.Value)
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
		m.Title, m.Note = d.q.Heading(d.args)+": "+run.Name, d.note
		m.Value, m.Unit = d.q.column(p.Value).Words(), d.q.column(p.Value).Unit
		m.Down, m.Across = rankName(d.q.column(p.Row)), rankName(d.q.column(p.Column))
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

// chart draws a chart. If the query is asked of each run by itself, several runs become groups of bars, or series.
func (d *drawer) chart(rows Rows, args map[string]string) (plot.Drawing, error) {
	all, err := d.readAll(rows)
	if err != nil {
		return nil, err
	}
	inRun := len(d.runs) > 1 && !d.q.OverRuns
	drawn := d.q.Drawn(d.columns, all, args, len(d.runs))
	d.columns = drawn.Columns
	p := drawn.Plot
	c := &plot.Chart{Title: d.title(), Note: d.note, Kind: p.Kind,
		Ordered: p.Kind == "grouped" && d.q.Plot.Kind == "histogram"}
	bars := p.Kind == "bars" || p.Kind == "grouped" || p.Kind == "histogram"
	if p.Series == "run" {
		c.Order = d.runNames()
	}
	names := []string{p.X, p.Y, p.Fit, p.Series, ""}
	if inRun {
		names[4] = "run"
	}
	at, err := d.columnIndexes(names...)
	if err != nil {
		return nil, err
	}
	c.X, c.Y = d.axis(at[0], p.LogX), d.axis(at[1], p.LogY)
	c.Y.From, c.Y.To = p.From, p.To
	c.Fit, c.Series = d.wordsOf(at[2]), d.wordsOf(at[3])
	if d.q.Plot.More != nil && c.Series == partColumn { // the axis says what the parts are of
		c.Series = ""
	}
	if inRun && !bars {
		c.Series = strings.TrimSuffix("run, "+c.Series, ", ")
	}
	oneEach := bars && inRun && d.oneBarEach(drawn.Rows, at[4], at[0])
	if oneEach {
		c.X = plot.Axis{Name: "run"}
	}
	for _, row := range drawn.Rows {
		v := plot.Value{X: number(row, at[0]), Y: number(row, at[1]), Fit: number(row, at[2]),
			Series: label(row, at[3])}
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

// oneBarEach reports whether every run has exactly one bar and some runs share its category. The runs' names then say
// more than the categories.
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

// law describes the fitted law, to be appended to a series' name; "" if the rows have no slope and r2.
func (d *drawer) law(row []any) string {
	slope, _ := d.columnIndex("slope")
	r2, _ := d.columnIndex("r2")
	if v := number(row, slope); slope >= 0 && r2 >= 0 && !math.IsNaN(v) {
		return fmt.Sprintf(": slope %.3g, R2 %.4g", v, number(row, r2))
	}
	return ""
}

// readAll reads all rows. If the x axis shows runs, they are sorted in the order in which the runs were given.
func (d *drawer) readAll(rows Rows) ([][]any, error) {
	var all [][]any
	for rows.Next() {
		all = append(all, append([]any(nil), rows.Row()...))
	}
	if run, _ := d.columnIndex("run"); run >= 0 && d.q.Plot.X == "run" {
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

// wordsOf names a column of the rows; "" if there is none.
func (d *drawer) wordsOf(at int) string {
	if at < 0 {
		return ""
	}
	return d.columns[at].Words()
}

// titleRuns is the largest number of runs that a title names one by one.
const titleRuns = 6

func (d *drawer) title() string {
	if len(d.runs) > titleRuns {
		return fmt.Sprintf("%s: %d runs", d.q.Heading(d.args), len(d.runs))
	}
	return d.q.Heading(d.args) + ": " + strings.Join(d.runNames(), ", ")
}

func (d *drawer) axis(column int, log bool) plot.Axis {
	c := d.columns[column]
	return plot.Axis{Name: c.Words(), Unit: c.Unit, Integers: c.Type != "DOUBLE", Log: log}
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

// number returns a value of a row as a float: NaN for null and for a missing column.
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

// label returns a value of a row as text: "" for null and for a missing column.
func label(row []any, at int) string {
	if at < 0 || row[at] == nil {
		return ""
	}
	return fmt.Sprint(row[at])
}
