package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/plot"
)

// chart draws points or lines between two axes.
type chart struct {
	X, Y           string
	XTicks, YTicks []tick
	Series         []series
	Note           string
	Label          string
}

type series struct {
	Name   string
	Number int
	Points []point
	// Line is the path through the points, Fit that of a fitted curve; "" if there is none.
	Line, Fit string
}

type point struct {
	X, Y float64
	Text string
}

// Lengths in a chart; the page scales it.
const (
	chartLeft   = 78.0
	chartTop    = 12.0
	chartWidth  = 540.0
	chartHeight = 280.0
)

// value is a point before it has a position.
type value struct {
	x, y, fit     float64
	hasY, hasFit  bool
	series, where string
}

// mostSeries is the largest number of series in a chart: each has a colour of its own.
const mostSeries = colours

// newChart turns answers into a chart. If the query is asked of each run by itself, several runs become series.
func newChart(p *queries.Plot, answers []answer) *chart {
	columns := answers[0].columns
	x, y, fit, parted := find(columns, p.X), find(columns, p.Y), find(columns, p.Fit), find(columns, p.Series)
	var values []value
	dropped := 0
	for _, a := range answers {
		for _, row := range a.rows {
			v := value{series: label(row, parted)}
			if a.run != "" {
				v.series = strings.TrimSuffix(Printable(a.run)+", "+v.series, ", ")
			}
			var hasX bool
			v.x, hasX = number(row, x)
			v.y, v.hasY = number(row, y)
			v.fit, v.hasFit = number(row, fit)
			if p.LogY {
				v.hasY, v.hasFit = v.hasY && v.y > 0, v.hasFit && v.fit > 0
			}
			if !hasX || p.LogX && v.x <= 0 || !v.hasY && !v.hasFit {
				dropped++
				continue
			}
			v.where = fmt.Sprintf("%s %s: %s %s", columns[x].Words(), amount(v.x, columns[x]), amount(v.y, columns[y]),
				columns[y].Words())
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return nil
	}
	var xs, ys []float64
	for _, v := range values {
		xs = append(xs, v.x)
		if v.hasY {
			ys = append(ys, v.y)
		}
		if v.hasFit {
			ys = append(ys, v.fit)
		}
	}
	across := plot.NewRuler(axisOf(columns[x], p.LogX, 0, 0), xs)
	up := plot.NewRuler(axisOf(columns[y], p.LogY, p.From, p.To), ys)
	c := &chart{X: across.Title(), Y: up.Title()}
	c.XTicks = place(withoutTouching(across.TicksAt(xs)), func(f float64) float64 { return chartLeft + f*chartWidth })
	c.YTicks = place(up.Ticks(), func(f float64) float64 { return chartTop + (1-f)*chartHeight })
	c.Series = parts(values, p.Kind == "lines", across, up)
	c.Label = fmt.Sprintf("%s against %s, %d series", c.Y, c.X, len(c.Series))
	if len(c.Series) > mostSeries {
		c.Series = c.Series[:mostSeries]
		c.Note = fmt.Sprintf("The first %d series are drawn. ", mostSeries)
	}
	if dropped > 0 {
		c.Note += fmt.Sprintf("%s rows have no place in the picture (null, or 0 on a logarithmic axis).",
			comma(int64(dropped)))
	}
	return c
}

// axisOf returns the axis of a column.
func axisOf(c queries.Column, log bool, from, to float64) plot.Axis {
	return plot.Axis{Name: c.Words(), Unit: c.Unit, From: from, To: to, Log: log, Integers: c.Type != "DOUBLE"}
}

// parts groups the values into series, in order of appearance.
func parts(values []value, lines bool, across, up plot.Ruler) []series {
	var all []series
	for _, name := range names(values) {
		s := series{Name: name, Number: len(all)}
		var line, fit []point
		for _, v := range values {
			if v.series != name {
				continue
			}
			left := chartLeft + across.Fraction(v.x)*chartWidth
			if v.hasY {
				line = append(line, point{left, chartTop + (1-up.Fraction(v.y))*chartHeight,
					strings.TrimPrefix(name+", "+v.where, ", ")})
			}
			if v.hasFit {
				fit = append(fit, point{left, chartTop + (1-up.Fraction(v.fit))*chartHeight, ""})
			}
		}
		s.Fit = path(fit)
		if lines {
			s.Line = path(line)
		}
		s.Points = line
		all = append(all, s)
	}
	return all
}

func names(values []value) []string {
	var all []string
	seen := map[string]bool{}
	for _, v := range values {
		if !seen[v.series] {
			seen[v.series] = true
			all = append(all, v.series)
		}
	}
	return all
}

// path returns an SVG path through points from left to right.
func path(points []point) string {
	if len(points) < 2 {
		return ""
	}
	points = slices.Clone(points)
	slices.SortStableFunc(points, func(a, b point) int {
		switch {
		case a.X < b.X:
			return -1
		case a.X > b.X:
			return 1
		}
		return 0
	})
	var b strings.Builder
	for i, p := range points {
		letter := "L"
		if i == 0 {
			letter = "M"
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", letter, p.X, p.Y)
	}
	return b.String()
}

// withoutTouching leaves out numbers that would touch the one before.
func withoutTouching(ticks []plot.Tick) (all []plot.Tick) {
	const least = 0.06
	for _, t := range ticks {
		if len(all) == 0 || t.At-all[len(all)-1].At > least {
			all = append(all, t)
		}
	}
	return all
}

// place returns ticks at their places in a drawing.
func place(ticks []plot.Tick, to func(float64) float64) []tick {
	all := make([]tick, len(ticks))
	for i, t := range ticks {
		all[i] = tick{to(t.At), t.Label}
	}
	return all
}
