package queries

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Plot says how the rows of a query are drawn: which output column stands for what.
type Plot struct {
	// Kind is matrix, bars, grouped, lines or points.
	Kind string
	// Row (down), Column (across) and Value (darkness) are the columns of a matrix.
	Row, Column, Value string
	// X and Y are the columns of the axes of the other kinds. Where Y names several, More has those after the first: each is a
	// series of its own.
	X, Y string
	More []string
	// Series is the column that parts the bars, lines or points; "" when there is none.
	Series string
	// Fit is the column of points with the value of a fitted curve at X; "" without one.
	Fit string
	// LogX and LogY say that an axis is logarithmic.
	LogX, LogY bool
}

const plotHelp = `want one line "-- plot: matrix ROW COLUMN VALUE", "-- plot: bars X Y [SERIES]", "-- plot: grouped X Y SERIES", ` +
	`"-- plot: lines X Y [SERIES]" or "-- plot: points X Y [FIT [SERIES]]", the last three with log-x, log-y or log-log after it; for bars and ` +
	`lines Y may be several columns, A+B+C`

func (q *Query) readPlot(f field) error {
	w := strings.Fields(f.text)
	p := &Plot{Kind: w[0]}
	switch last := w[len(w)-1]; last {
	case "log-x", "log-y", "log-log":
		p.LogX, p.LogY = last != "log-y", last != "log-x"
		w = w[:len(w)-1]
	}
	n := len(w) - 1 // columns
	word := func(i int) string {
		if i < len(w) {
			return w[i]
		}
		return ""
	}
	ok := false
	switch p.Kind {
	case "matrix":
		ok = n == 3 && !p.LogX && !p.LogY
		p.Row, p.Column, p.Value = word(1), word(2), word(3)
	case "bars":
		ok = (n == 2 || n == 3) && !p.LogX && !p.LogY // what is stacked has no logarithm
		p.X, p.Y, p.Series = word(1), word(2), word(3)
	case "grouped":
		ok = n == 3 && !p.LogX
		p.X, p.Y, p.Series = word(1), word(2), word(3)
	case "lines":
		ok = n == 2 || n == 3
		p.X, p.Y, p.Series = word(1), word(2), word(3)
	case "points":
		ok = 2 <= n && n <= 4
		p.X, p.Y, p.Fit, p.Series = word(1), word(2), word(3), word(4)
	}
	if ys := strings.Split(p.Y, "+"); len(ys) > 1 {
		p.Y, p.More = ys[0], ys[1:]
		ok = ok && (p.Kind == "bars" || p.Kind == "lines")
	}
	if q.Plot != nil || f.rest != "" || !ok {
		return errors.New(plotHelp)
	}
	q.Plot = p
	return nil
}

// check says which of the plot's columns the query does not have, or has of a type that cannot be drawn.
func (p *Plot) check(q *Query) error {
	integer, number := []string{"INTEGER", "BIGINT"}, []string{"INTEGER", "BIGINT", "DOUBLE"}
	x := number
	if p.Kind == "bars" || p.Kind == "grouped" {
		x = append(x, "VARCHAR")
	}
	var errs []error
	type named struct {
		name  string
		types []string
		what  string
	}
	columns := []named{
		{p.Row, integer, "an integer"}, {p.Column, integer, "an integer"}, {p.Value, integer, "an integer"},
		{p.X, x, "a number"}, {p.Y, number, "a number"}, {p.Fit, number, "a number"},
		{p.Series, append(integer, "VARCHAR", "BOOLEAN"), "an integer, a name or a boolean as"},
	}
	for _, y := range p.More {
		columns = append(columns, named{y, number, "a number"})
		if a, b := q.column(p.Y), q.column(y); a != nil && b != nil && a.Unit != b.Unit {
			errs = append(errs, fmt.Errorf("plot draws %s and %s together, which have different units", p.Y, y))
		}
	}
	for _, c := range columns {
		if c.name == "" {
			continue
		}
		if col := q.column(c.name); col == nil || !slices.Contains(c.types, col.Type) {
			errs = append(errs, fmt.Errorf("plot names %q; it needs %s output column", c.name, c.what))
		}
	}
	return errors.Join(errs...)
}

// text says what is drawn, for docs/QUERIES.md.
func (p *Plot) text() string {
	if p.Kind == "matrix" {
		return fmt.Sprintf("%s: %s down, %s across, darker is more", p.Value, p.Row, p.Column)
	}
	how := map[string]string{"bars": "as bars", "grouped": "as bars", "lines": "as lines", "points": "as points"}[p.Kind]
	text := fmt.Sprintf("%s against %s %s", strings.Join(append([]string{p.Y}, p.More...), ", "), p.X, how)
	switch {
	case p.Series == "" && p.More != nil && p.Kind == "bars":
		text += ", stacked"
	case p.Series != "" && p.Kind == "bars":
		text += ", stacked by " + p.Series
	case p.Series != "" && p.Kind == "grouped":
		text += " side by side for each " + p.Series
	case p.Series != "":
		text += " for each " + p.Series
	}
	if p.Fit != "" {
		text += ", with the curve " + p.Fit
	}
	switch {
	case p.LogX && p.LogY:
		text += ", both axes logarithmic"
	case p.LogX:
		text += ", the axis of " + p.X + " logarithmic"
	case p.LogY:
		text += ", the axis of " + p.Y + " logarithmic"
	}
	return text
}
