package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/queries"
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

// mostSeries is the largest number of series in a chart.
const mostSeries = 24

// newChart turns answers into a chart. If the query is asked of each run by itself, several runs become series.
func newChart(p *queries.Plot, answers []answer) *chart {
	columns := answers[0].columns
	x, y, fit, parted := find(columns, p.X), find(columns, p.Y), find(columns, p.Fit), find(columns, p.Series)
	c := &chart{X: columns[x].Words(), Y: columns[y].Words()}
	unit := columns[y].Unit
	if unit == "1" || unit == p.Y {
		unit = ""
	}
	xName, yName := c.X, c.Y
	c.X, c.Y = inUnit(c.X, columns[x].Unit), inUnit(c.Y, unit)
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
			v.where = fmt.Sprintf("%s %s: %s %s", xName, amount(v.x, ""), amount(v.y, unit), yName)
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return nil
	}
	xs, ys := span(values, func(v value) (float64, bool) { return v.x, true }), span(values, func(v value) (float64, bool) { return v.y, v.hasY })
	ys = ys.with(span(values, func(v value) (float64, bool) { return v.fit, v.hasFit }))
	if !p.LogY {
		ys = ys.with(extent{0, 0})
	}
	sx, sy := newScale(xs, p.LogX), newScale(ys, p.LogY)
	c.XTicks = place(xTicks(values, sx), func(f float64) float64 { return chartLeft + f*chartWidth })
	c.YTicks = place(sy.ticks(), func(f float64) float64 { return chartTop + (1-f)*chartHeight })
	c.Series = parts(values, p.Kind == "lines", sx, sy)
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

// inUnit is the name of an axis with its unit in brackets.
func inUnit(name, unit string) string {
	if unit == "" || unit == "1" || strings.HasSuffix(name, " "+unit) {
		return name
	}
	return name + " [" + unit + "]"
}

// parts groups the values into series, in order of appearance.
func parts(values []value, lines bool, sx, sy scale) []series {
	var all []series
	for _, name := range names(values) {
		s := series{Name: name, Number: len(all)}
		var line, fit []point
		for _, v := range values {
			if v.series != name {
				continue
			}
			left := chartLeft + sx.fraction(v.x)*chartWidth
			if v.hasY {
				line = append(line, point{left, chartTop + (1-sy.fraction(v.y))*chartHeight,
					strings.TrimPrefix(name+", "+v.where, ", ")})
			}
			if v.hasFit {
				fit = append(fit, point{left, chartTop + (1-sy.fraction(v.fit))*chartHeight, ""})
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

// extent is the least and greatest of some numbers.
type extent struct{ least, most float64 }

func (e extent) with(o extent) extent { return extent{min(e.least, o.least), max(e.most, o.most)} }

func span(values []value, of func(value) (float64, bool)) extent {
	e := extent{math.Inf(1), math.Inf(-1)}
	for _, v := range values {
		if x, ok := of(v); ok {
			e = e.with(extent{x, x})
		}
	}
	return e
}

// scale maps numbers to 0 (left, bottom) to 1.
type scale struct {
	extent
	log bool
}

// newScale returns a scale that covers the numbers.
func newScale(e extent, log bool) scale {
	switch {
	case log && e.least == e.most:
		e = extent{e.least / 2, e.most * 2}
	case log:
		room := math.Pow(e.most/e.least, 0.04)
		e = extent{e.least / room, e.most * room}
	case e.least == e.most:
		e = extent{e.least - 1, e.most + 1}
	case e.least == 0:
		e.most *= 1.04
	default:
		room := (e.most - e.least) * 0.04
		e = extent{e.least - room, e.most + room}
	}
	return scale{e, log}
}

func (s scale) fraction(x float64) float64 {
	if s.log {
		return math.Log(x/s.least) / math.Log(s.most/s.least)
	}
	return (x - s.least) / (s.most - s.least)
}

// ticks returns about five round numbers; At is from 0 to 1.
func (s scale) ticks() []tick {
	var all []tick
	add := func(x float64) {
		if f := s.fraction(x); f >= 0 && f <= 1 {
			all = append(all, tick{f, short(x)})
		}
	}
	if s.log {
		low, high := int(math.Floor(math.Log10(s.least))), int(math.Ceil(math.Log10(s.most)))
		factors := []float64{1}
		if high-low <= 3 {
			factors = []float64{1, 2, 5}
		}
		step := (high-low)/6 + 1
		for d := low; d <= high; d += step {
			for _, f := range factors {
				add(f * math.Pow10(d))
			}
		}
		return all
	}
	step := math.Pow10(int(math.Floor(math.Log10((s.most - s.least) / 5))))
	for _, f := range []float64{2, 2.5, 2} { // steps of 2, 5, 10
		if (s.most-s.least)/step > 6 {
			step *= f
		}
	}
	for i := math.Ceil(s.least / step); i*step <= s.most; i++ {
		add(i * step)
	}
	return all
}

// xTicks returns the values themselves if they are few and far apart, else round numbers.
func xTicks(values []value, s scale) []tick {
	var xs []float64
	for _, v := range values {
		xs = append(xs, v.x)
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	const apart = 0.06
	if len(xs) > 12 {
		return s.ticks()
	}
	var all []tick
	for _, x := range xs {
		if f := s.fraction(x); len(all) == 0 || f-all[len(all)-1].At > apart {
			all = append(all, tick{f, short(x)})
		}
	}
	return all
}

func place(ticks []tick, to func(float64) float64) []tick {
	for i := range ticks {
		ticks[i].At = to(ticks[i].At)
	}
	return ticks
}

// short writes a number with a decimal prefix.
func short(x float64) string {
	if x != 0 && math.Abs(x) < 0.01 {
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	prefixes := []string{"", "k", "M", "G", "T", "P", "E"}
	i := 0
	for math.Abs(x) >= 9999.5 && i < len(prefixes)-1 || i > 0 && math.Abs(x) >= 1000 && i < len(prefixes)-1 {
		x /= 1000
		i++
	}
	return strings.TrimSpace(strconv.FormatFloat(math.Round(x*1000)/1000, 'f', -1, 64) + " " + prefixes[i])
}
