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

// anchors are colours of the scale viridis, whose lightness grows evenly: readers who see no colours, and prints without,
// tell them apart by it.
var anchors = [...]color.RGBA{
	{0x44, 0x01, 0x54, 255}, {0x46, 0x32, 0x7e, 255}, {0x36, 0x5c, 0x8d, 255}, {0x27, 0x7f, 0x8e, 255},
	{0x1f, 0xa1, 0x87, 255}, {0x4a, 0xc1, 0x6d, 255}, {0xa0, 0xda, 0x39, 255}, {0xfd, 0xe7, 0x25, 255},
}

// colour is that of series i of n, dark to light.
func (p *page) colour(i int) color.Color {
	n := len(p.names)
	if p.Kind == "bands" {
		if n -= len(p.Greys); i >= n {
			return greys[max(0, len(greys)-len(p.names)+i)]
		}
	}
	lightest := 0.82 // thin lines must be seen on white
	if p.bars() || p.Kind == "bands" {
		lightest = 0.9 // they have an outline
	}
	f := 0.3
	if n > 1 {
		f = 0.08 + (lightest-0.08)*float64(i)/float64(n-1)
	}
	return viridis(f)
}

// viridis is the colour at a fraction of the scale, dark to light.
func viridis(f float64) color.RGBA {
	at := min(max(f, 0), 1) * float64(len(anchors)-1)
	k := min(int(at), len(anchors)-2)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + (at-float64(k))*(float64(b)-float64(a)))) }
	a, b := anchors[k], anchors[k+1]
	return color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

// outlined is up to how many bars have an outline: thinner ones would be nothing but that.
const outlined = 300

func (p *page) drawBars(c draw.Canvas) {
	const width = 0.8 // of a category
	for _, s := range p.slots {
		up, down := 0.0, 0.0
		for i, y := range s.y {
			if math.IsNaN(y) || math.IsInf(y, 0) {
				continue
			}
			if p.Kind == "ranges" {
				p.span(c, i, s.at-width/4, s.at+width/4, y, s.to)
				continue
			}
			if p.Kind == "grouped" {
				one := width / float64(len(s.y))
				left := s.at - width/2 + one*float64(i)
				p.bar(c, i, left, left+one, p.base(), y)
				continue
			}
			from := &up
			if y < 0 {
				from = &down
			}
			p.bar(c, i, s.at-width/2, s.at+width/2, *from, *from+y)
			*from += y
		}
	}
}

// base is where bars begin.
func (p *page) base() float64 {
	if p.y.log {
		return p.y.least
	}
	return 0
}

func (p *page) bar(c draw.Canvas, series int, left, right, from, to float64) {
	r := vg.Rectangle{Min: vg.Point{X: p.toX(left), Y: p.toY(min(from, to))}, Max: vg.Point{X: p.toX(right), Y: p.toY(max(from, to))}}
	if from == to {
		return // an outline of nothing looks like a little
	}
	c.SetColor(p.colour(series))
	few := len(p.slots)*len(p.names) <= outlined
	if !few { // whole pixels, or thin bars are pale
		r.Min.X, r.Max.X = px(math.Floor(inPx(r.Min.X))), px(math.Ceil(inPx(r.Max.X)))
	}
	c.Fill(r.Path())
	if few {
		outline(c, r)
	}
}

// span draws a bar between two values; where they are one, a line.
func (p *page) span(c draw.Canvas, series int, left, right, from, to float64) {
	if from != to {
		p.bar(c, series, left, right, from, to)
		return
	}
	y := p.toY(from)
	c.StrokeLine2(draw.LineStyle{Color: p.colour(series), Width: px(5)}, p.toX(left), y, p.toX(right), y)
}

func outline(c draw.Canvas, r vg.Rectangle) {
	c.SetLineStyle(draw.LineStyle{Color: color.Gray{Y: 60}, Width: px(1)})
	c.Stroke(r.Path())
}

// shape and dashes tell series apart where colours do not.
func shape(i int) draw.GlyphDrawer {
	shapes := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}}
	return shapes[i%len(shapes)]
}

func dashes(i int) []vg.Length {
	all := [][]vg.Length{nil, {px(14), px(6)}, {px(4), px(6)}, {px(14), px(6), px(4), px(6)}}
	return all[i%len(all)]
}

// dashedPoints is up to how many points a line is dashed: in one that goes up and down all the time dashes are noise.
const dashedPoints = 200

func (p *page) line(i int) draw.LineStyle {
	if len(p.values)/len(p.names) > dashedPoints {
		return draw.LineStyle{Color: p.colour(i), Width: px(2)}
	}
	return draw.LineStyle{Color: p.colour(i), Width: px(3), Dashes: dashes(i)}
}

// curve is the line of a fitted curve.
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

// fewPoints is up to how many points of a line, and of a cloud, are drawn large.
const fewPoints, fewInCloud = 40, 2000

// drawSeries draws lines and points, in the order of X, and the curves.
func (p *page) drawSeries(c draw.Canvas) {
	series := indexes(p.names)
	of := make([][]Value, len(p.names))
	for _, v := range p.values {
		if i := series[v.Series]; !math.IsNaN(v.X) && !math.IsInf(v.X, 0) {
			of[i] = append(of[i], v)
		}
	}
	for i, values := range of {
		slices.SortStableFunc(values, func(a, b Value) int { return cmp.Compare(a.X, b.X) })
		if p.Fit != "" {
			p.polyline(c, p.curve(i), values, func(v Value) float64 { return v.Fit })
		}
		if p.Kind == "lines" {
			p.polyline(c, p.line(i), values, func(v Value) float64 { return v.Y })
			if len(values) > fewPoints {
				continue
			}
		}
		for _, v := range values {
			if !math.IsNaN(v.Y) && !math.IsInf(v.Y, 0) {
				c.DrawGlyph(p.glyph(i, len(p.values) > fewInCloud), vg.Point{X: p.toX(v.X), Y: p.toY(v.Y)})
			}
		}
	}
}

// polyline draws a line through values, with gaps where there is none; where rows are for the curve alone, without.
func (p *page) polyline(c draw.Canvas, sty draw.LineStyle, values []Value, of func(Value) float64) {
	var line []vg.Point
	flush := func() {
		if len(line) > 1 {
			c.StrokeLines(sty, line)
		}
		line = nil
	}
	for _, v := range values {
		y := of(v)
		if math.IsNaN(y) || math.IsInf(y, 0) {
			if p.Fit == "" {
				flush()
			}
			continue
		}
		line = append(line, vg.Point{X: p.toX(v.X), Y: p.toY(y)})
	}
	flush()
}

// entry is a line of the legend.
type entry struct {
	name   string
	series int
	curve  bool
}

// named says whether the legend has the series: where there are several, or one to which a curve belongs.
func (p *page) named() bool {
	return len(p.names) > 1 || p.Fit != "" && len(p.names) == 1 && p.names[0] != ""
}

// entries are the lines of the legend: those of stacked bars from the top down. Where there are too many series, it has some.
func (p *page) entries() []entry {
	const most = chartHighPx/rowPx - 3
	var all []entry
	if p.named() {
		for i, name := range p.names {
			all = append(all, entry{name: fitLetters(name), series: i})
		}
	}
	if p.Fit != "" {
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

func (p *page) legend(c draw.Canvas) {
	all := p.entries()
	if len(all) == 0 {
		return
	}
	label := style(10, draw.XLeft, draw.YCenter)
	x, y := p.area.Max.X+px(30), p.area.Max.Y-px(rowPx/2)
	if p.named() {
		c.FillText(label, vg.Point{X: x, Y: y}, p.Series)
		y -= px(rowPx + 6)
	}
	for _, e := range all {
		if e.series >= 0 {
			p.swatch(c, e, vg.Rectangle{Min: vg.Point{X: x, Y: y - px(9)}, Max: vg.Point{X: x + px(swatchPx), Y: y + px(9)}})
		}
		c.FillText(label, vg.Point{X: x + px(swatchPx+10), Y: y}, e.name)
		y -= px(rowPx)
	}
}

// swatch draws what a series looks like.
func (p *page) swatch(c draw.Canvas, e entry, r vg.Rectangle) {
	mid := vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (r.Min.Y + r.Max.Y) / 2}
	switch {
	case e.curve:
		c.StrokeLine2(p.curve(e.series), r.Min.X, mid.Y, r.Max.X, mid.Y)
	case p.bars() || p.Kind == "bands":
		c.SetColor(p.colour(e.series))
		c.Fill(r.Path())
		outline(c, r)
	default:
		if p.Kind == "lines" {
			c.StrokeLine2(p.line(e.series), r.Min.X, mid.Y, r.Max.X, mid.Y)
		}
		if p.Kind == "points" || len(p.values)/len(p.names) <= fewPoints {
			c.DrawGlyph(p.glyph(e.series, false), mid)
		}
	}
}
