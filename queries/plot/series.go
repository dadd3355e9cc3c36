package plot

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// colour returns the colour of series i: one of the hues, or if the series have an order or are many, of a scale from
// dark to light.
func (p *page) colour(i int) color.RGBA {
	n := len(p.names)
	if p.Kind == "bands" {
		if n -= len(p.Greys); i >= n {
			return p.theme.muted[max(0, len(p.theme.muted)-len(p.names)+i)]
		}
	}
	if i >= len(p.names) { // of a legend without series
		return p.theme.hues[0]
	}
	if at := slices.Index(p.Hues, p.names[i]); at >= 0 {
		return p.theme.hues[at]
	}
	if n <= len(p.theme.hues) && !p.ordered() {
		return p.theme.hues[i]
	}
	return p.theme.ordered(i, n, !p.bars() && p.Kind != "bands")
}

// ordered reports whether neighbouring series are alike: their names are numbers, or the caller says so.
func (p *page) ordered() bool {
	return p.Ordered || len(p.names) > 1 && !slices.ContainsFunc(p.names,
		func(s string) bool { return math.IsNaN(numberIn(s)) })
}

// outlined is the largest number of bars with an outline; thinner bars would be all outline.
const outlined = 300

func (d *painter) drawBars() {
	width := 0.8 // of a category
	if d.page.Kind == "histogram" {
		width = 1
	}
	for _, s := range d.page.slots {
		up, down := 0.0, 0.0
		for i, y := range s.y {
			if math.IsNaN(y) || math.IsInf(y, 0) {
				continue
			}
			if d.page.Kind == "ranges" {
				d.span(i, s.at-width/4, s.at+width/4, y, s.to)
				continue
			}
			if d.page.Kind == "grouped" {
				one := width / float64(len(s.y))
				left := s.at - width/2 + one*float64(i)
				d.bar(i, left, left+one, d.page.base(), y)
				continue
			}
			from := &up
			if y < 0 {
				from = &down
			}
			d.bar(i, s.at-width/2, s.at+width/2, *from, *from+y)
			*from += y
		}
	}
}

// base returns the value where bars begin.
func (p *page) base() float64 {
	if p.y.log {
		return p.y.least
	}
	return 0
}

func (d *painter) bar(series int, left, right, from, to float64) {
	r := vg.Rectangle{Min: vg.Point{X: d.page.toX(left), Y: d.page.toY(min(from, to))},
		Max: vg.Point{X: d.page.toX(right), Y: d.page.toY(max(from, to))}}
	if from == to {
		return // an outline around nothing would look like a small value
	}
	d.canvas.SetColor(d.page.colour(series))
	few := len(d.page.slots)*len(d.page.names) <= outlined
	if !few { // whole pixels, or thin bars look pale
		r.Min.X, r.Max.X = px(math.Floor(inPx(r.Min.X))), px(math.Ceil(inPx(r.Max.X)))
	}
	d.canvas.Fill(r.Path())
	if few {
		d.canvas.outlineOf(r)
	}
}

// span draws a bar between two values, or a line if they are equal.
func (d *painter) span(series int, left, right, from, to float64) {
	if from != to {
		d.bar(series, left, right, from, to)
		return
	}
	y := d.page.toY(from)
	d.canvas.StrokeLine2(draw.LineStyle{Color: d.page.colour(series), Width: px(5)}, d.page.toX(left), y,
		d.page.toX(right), y)
}

// shape and dashes tell series apart without colour.
func shape(i int) draw.GlyphDrawer {
	shapes := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{},
		draw.SquareGlyph{}, draw.TriangleGlyph{}}
	return shapes[i%len(shapes)]
}

func dashes(i int) []vg.Length {
	all := [][]vg.Length{nil, {px(14), px(6)}, {px(4), px(6)}, {px(14), px(6), px(4), px(6)}}
	return all[i%len(all)]
}

// dashedPoints is the largest number of points of a dashed line; with more, dashes of a zigzag line become noise.
const dashedPoints = 200

func (p *page) line(i int) draw.LineStyle {
	if len(p.values)/len(p.names) > dashedPoints {
		return draw.LineStyle{Color: p.colour(i), Width: px(2)}
	}
	return draw.LineStyle{Color: p.colour(i), Width: px(3), Dashes: dashes(i)}
}

// curve returns the line style of a fitted curve.
func (p *page) curve(i int) draw.LineStyle {
	return draw.LineStyle{Color: p.colour(i), Width: px(2), Dashes: []vg.Length{px(7), px(5)}}
}

func (p *page) glyph(i int, many bool) draw.GlyphStyle {
	radius := px(7)
	if many {
		radius = px(2.5)
	}
	return draw.GlyphStyle{Color: p.colour(i), Radius: radius, Shape: shape(i)}
}

// Lines of up to fewPoints points, and clouds of up to fewInCloud, have large points.
const fewPoints, fewInCloud = 40, 2000

// drawSeries draws lines and points in the order of X, then the curves.
func (d *painter) drawSeries() {
	series := indexes(d.page.names)
	of := make([][]Value, len(d.page.names))
	for _, v := range d.page.values {
		if i := series[v.Series]; !math.IsNaN(v.X) && !math.IsInf(v.X, 0) {
			of[i] = append(of[i], v)
		}
	}
	for i, values := range of {
		slices.SortStableFunc(values, func(a, b Value) int { return cmp.Compare(a.X, b.X) })
		if d.page.Fit != "" {
			d.polyline(d.page.curve(i), values, func(v Value) float64 { return v.Fit })
		}
		if d.page.Kind == "lines" {
			d.polyline(d.page.line(i), values, func(v Value) float64 { return v.Y })
			if len(values) > fewPoints {
				continue
			}
		}
		for _, v := range values {
			if !math.IsNaN(v.Y) && !math.IsInf(v.Y, 0) {
				d.canvas.DrawGlyph(d.page.glyph(i, len(d.page.values) > fewInCloud),
					vg.Point{X: d.page.toX(v.X), Y: d.page.toY(v.Y)})
			}
		}
	}
}

// polyline draws a line through values. It has gaps where values are missing, unless the rows exist only for the
// curve.
func (d *painter) polyline(sty draw.LineStyle, values []Value, of func(Value) float64) {
	var line []vg.Point
	flush := func() {
		if len(line) > 1 {
			d.canvas.StrokeLines(sty, line)
		}
		line = nil
	}
	for _, v := range values {
		y := of(v)
		if math.IsNaN(y) || math.IsInf(y, 0) {
			if d.page.Fit == "" {
				flush()
			}
			continue
		}
		line = append(line, vg.Point{X: d.page.toX(v.X), Y: d.page.toY(y)})
	}
	flush()
}

// entry is a line of the legend.
type entry struct {
	name   string
	series int
	curve  bool
}

// hasLegend reports whether the legend lists the series: if there are several, or one with a fitted curve.
func (p *page) hasLegend() bool {
	return len(p.names) > 1 || p.Fit != "" && len(p.names) == 1 && p.names[0] != ""
}

// hasFit reports whether a fitted curve is drawn: of two points or more of a series.
func (p *page) hasFit() bool {
	points := map[string]int{}
	return p.Fit != "" && slices.ContainsFunc(p.values, func(v Value) bool {
		if !math.IsNaN(v.Fit) {
			points[v.Series]++
		}
		return points[v.Series] > 1
	})
}

// entries returns the lines of the legend; stacked bars are listed from the top down. If there are too many series,
// it lists some.
func (p *page) entries() []entry {
	const most = chartHighPx/rowPx - 3
	var all []entry
	if p.hasLegend() {
		for i, name := range p.names {
			all = append(all, entry{name: fitLetters(name), series: i})
		}
	}
	if p.hasFit() {
		all = append(all, entry{name: p.Fit, curve: true})
	}
	if p.Kind == "bars" {
		slices.Reverse(all)
	}
	if len(all) <= most {
		return all
	}
	var some []entry
	for i := range most {
		some = append(some, all[i*(len(all)-1)/(most-1)])
	}
	return append(some, entry{name: fmt.Sprintf("(%d in all)", len(all)), series: -1})
}

const swatchPx = 34

func (p *page) legendPx() float64 {
	all := p.entries()
	if len(all) == 0 {
		return 0
	}
	wide := inPx(style(10, draw.XLeft, draw.YCenter).Width(p.Series))
	for _, e := range all {
		wide = max(wide, swatchPx+10+inPx(style(10, draw.XLeft, draw.YCenter).Width(e.name)))
	}
	return wide + 10
}

func (d *painter) legend() {
	all := d.page.entries()
	if len(all) == 0 {
		return
	}
	label := style(10, draw.XLeft, draw.YCenter)
	x, y := d.page.area.Max.X+px(30), d.page.area.Max.Y-px(rowPx/2)
	if d.page.hasLegend() && d.page.Series != "" {
		d.canvas.write(label, vg.Point{X: x, Y: y}, d.page.Series)
		y -= px(rowPx + 6)
	}
	for _, e := range all {
		if e.series >= 0 {
			d.swatch(e, vg.Rectangle{Min: vg.Point{X: x, Y: y - px(9)},
				Max: vg.Point{X: x + px(swatchPx), Y: y + px(9)}})
		}
		d.canvas.write(label, vg.Point{X: x + px(swatchPx+10), Y: y}, e.name)
		y -= px(rowPx)
	}
}

// swatch draws a sample of a series.
func (d *painter) swatch(e entry, r vg.Rectangle) {
	mid := vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (r.Min.Y + r.Max.Y) / 2}
	switch {
	case e.curve:
		d.canvas.StrokeLine2(d.page.curve(e.series), r.Min.X, mid.Y, r.Max.X, mid.Y)
	case d.page.bars() || d.page.Kind == "bands":
		d.canvas.SetColor(d.page.colour(e.series))
		d.canvas.Fill(r.Path())
		d.canvas.outlineOf(r)
	default:
		if d.page.Kind == "lines" {
			d.canvas.StrokeLine2(d.page.line(e.series), r.Min.X, mid.Y, r.Max.X, mid.Y)
		}
		if d.page.Kind == "points" || len(d.page.values)/len(d.page.names) <= fewPoints {
			d.canvas.DrawGlyph(d.page.glyph(e.series, false), mid)
		}
	}
}
