package queries

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Plot describes how rows are drawn: which output column is shown on which axis.
type Plot struct {
	// Kind is matrix, bars, grouped, histogram, lines, points or timeline.
	Kind string
	// Row (down), Column (across) and Value (darkness) are the columns of a matrix.
	Row, Column, Value string
	// X and Y are the columns of the axes of the other kinds. If Y names several columns, More has those after the
	// first; each is a series.
	X, Y string
	More []string
	// Series is the column whose values are separate bars, lines or points; "" if there is none.
	Series string
	// Fit is the column with the value of a fitted curve at X, for points; "" if there is none.
	Fit string
	// LogX and LogY say that an axis is logarithmic.
	LogX, LogY bool
	// Ranks, Start, End and Destination are further columns of a timeline, whose Row is the first rank of a row, Series
	// the kind, Value the time and Y the amount sent.
	Ranks, Start, End, Destination string
	// From and To are values that the axis of Y has at least; nothing if both are 0.
	From, To float64
}

const plotHelp = `want one line "-- plot: matrix ROW COLUMN VALUE", "-- plot: bars X Y [SERIES]", "-- plot: grouped X Y SERIES", ` +
	`"-- plot: histogram X Y BY", "-- plot: lines X Y [SERIES]", "-- plot: points X Y [FIT [SERIES]]" or ` +
	`"-- plot: timeline RANK RANKS START END KIND TIME AMOUNT DESTINATION", lines and points with log-x, log-y or ` +
	`log-log after it, grouped and histogram with log-y; all but matrix and timeline with LOW..HIGH after it, values that the axis of Y has; for bars and lines Y ` +
	`may be several columns, A+B+C`

// readRange reads LOW..HIGH.
func readRange(text string) (low, high float64, ok bool) {
	a, b, ok := strings.Cut(text, "..")
	low, err1 := strconv.ParseFloat(a, 64)
	high, err2 := strconv.ParseFloat(b, 64)
	return low, high, ok && err1 == nil && err2 == nil && low < high
}

func readPlot(q *Query, f field) error {
	w := strings.Fields(f.text)
	p := &Plot{Kind: w[0]}
	if low, high, ok := readRange(w[len(w)-1]); ok && p.Kind != "matrix" && p.Kind != "timeline" {
		p.From, p.To = low, high
		w = w[:len(w)-1]
	}
	switch last := w[len(w)-1]; last {
	case "log-x", "log-y", "log-log":
		p.LogX, p.LogY = last != "log-y", last != "log-x"
		w = w[:len(w)-1]
	}
	n := len(w) - 1 // number of columns
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
	case "timeline":
		ok = n == 8 && !p.LogX && !p.LogY
		p.Row, p.Ranks, p.Start, p.End = word(1), word(2), word(3), word(4)
		p.Series, p.Value, p.Y, p.Destination = word(5), word(6), word(7), word(8)
	case "bars":
		ok = (n == 2 || n == 3) && !p.LogX && !p.LogY // stacked bars cannot be on a logarithmic axis
		p.X, p.Y, p.Series = word(1), word(2), word(3)
	case "grouped", "histogram":
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

// check reports the plot's columns that the query lacks, or whose type cannot be drawn.
func (p *Plot) check(q *Query) error {
	integer, number := []string{"INTEGER", "BIGINT"}, []string{"INTEGER", "BIGINT", "DOUBLE"}
	x := number
	if p.Kind == "bars" || p.Kind == "grouped" || p.Kind == "histogram" {
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
		{p.Ranks, integer, "an integer"}, {p.Start, integer, "an integer"}, {p.End, integer, "an integer"},
		{p.Destination, integer, "an integer"},
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

// text describes the picture, for docs/QUERIES.md.
func (p *Plot) text() string {
	if p.Kind == "matrix" {
		return fmt.Sprintf("%s: %s down, %s across, darker is more", p.Value, p.Row, p.Column)
	}
	if p.Kind == "timeline" {
		return fmt.Sprintf("a row for each %s over the time from %s to %s, coloured by %s; messages to %s as lines; "+
			"%s below", p.Row, p.Start, p.End, p.Series, p.Destination, p.Y)
	}
	how := map[string]string{"bars": "as bars", "grouped": "as bars", "histogram": "as a histogram",
		"lines": "as lines", "points": "as points"}[p.Kind]
	text := fmt.Sprintf("%s against %s %s", strings.Join(append([]string{p.Y}, p.More...), ", "), p.X, how)
	switch {
	case p.Series == "" && p.More != nil && p.Kind == "bars":
		text += ", stacked"
	case p.Series != "" && p.Kind == "bars":
		text += ", stacked by " + p.Series
	case p.Kind == "histogram":
		text += ", of several runs side by side for each " + p.Series
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
	if p.From != p.To {
		text += fmt.Sprintf(", from %g to %g", p.From, p.To)
	}
	return text
}
