package plot

import (
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// HeatMap is a drawing of a number for each pair of values of two quantities: X across, Y up, lighter is more. Every value has the
// same room, in their order.
type HeatMap struct {
	// Title stands over the drawing, Note in small letters under it.
	Title, Note string
	// X, Y and Value are what the quantities and the number are. Log of Value is ignored: its colours are logarithmic where the
	// greatest number is more than ten times the least, and that above 0.
	X, Y, Value Axis

	x, y   []float64
	cells  []float64 // NaN: no number
	framed []bool
}

// NewHeatMap makes a heat map without numbers over the values of two quantities.
func NewHeatMap(x, y []float64) *HeatMap {
	h := &HeatMap{x: x, y: y, cells: make([]float64, len(x)*len(y)), framed: make([]bool, len(x)*len(y))}
	for i := range h.cells {
		h.cells[i] = math.NaN()
	}
	return h
}

// Set sets the number at value x across and value y up; the cells that are framed have a line around all of them together.
func (h *HeatMap) Set(x, y int, number float64, framed bool) {
	h.cells[y*len(h.x)+x], h.framed[y*len(h.x)+x] = number, framed
}

const heatPx = 900 // least width and height of the cells

// heat is a heat map laid out.
type heat struct {
	*HeatMap
	area         vg.Rectangle
	wide, high   float64 // of a cell, in pixels
	colours      scale
	left, bottom float64
}

// Draw writes the drawing to w in a format: png, svg or pdf.
func (h *HeatMap) Draw(w io.Writer, format string) error {
	l := &heat{HeatMap: h, wide: math.Ceil(heatPx / float64(len(h.x))), high: math.Ceil(heatPx / float64(len(h.y))), left: leftPx + 30, bottom: bottomPx}
	e := nothing()
	for _, v := range h.cells {
		e.add(v)
	}
	l.colours = scale{e.least, e.most, e.least > 0 && e.most > 10*e.least}
	width, height := l.wide*float64(len(h.x)), l.high*float64(len(h.y))
	c, _, err := newCanvas(format, l.left+width+rightPx, topPx+height+l.bottom)
	if err != nil {
		return err
	}
	l.area = vg.Rectangle{Min: vg.Point{X: px(l.left), Y: px(l.bottom)}, Max: vg.Point{X: px(l.left + width), Y: px(l.bottom + height)}}
	l.draw(draw.New(c))
	_, err = c.WriteTo(w)
	return err
}

func (l *heat) draw(c draw.Canvas) {
	for y := range l.y {
		for x := range l.x {
			if v := l.cells[y*len(l.x)+x]; !math.IsNaN(v) && !math.IsInf(v, 0) {
				c.SetColor(l.colour(v))
				c.Fill(l.cell(x, y).Path())
			}
		}
	}
	l.frames(c)
	frame(c, l.area)
	l.axes(c)
	l.bar(c)
	head(c, l.area, l.Title, l.Note, rightPx)
}

// colour is that of a number: viridis from dark to light.
func (l *heat) colour(v float64) color.Color {
	if l.colours.most == l.colours.least {
		return viridis(0.5)
	}
	return viridis(l.colours.at(v))
}

func (l *heat) cell(x, y int) vg.Rectangle {
	min := vg.Point{X: l.area.Min.X + px(l.wide*float64(x)), Y: l.area.Min.Y + px(l.high*float64(y))}
	return vg.Rectangle{Min: min, Max: min.Add(vg.Point{X: px(l.wide), Y: px(l.high)})}
}

// frames draws a line between cells that are framed and those that are not: white between black, to be seen on every colour.
func (l *heat) frames(c draw.Canvas) {
	framed := func(x, y int) bool {
		return x >= 0 && y >= 0 && x < len(l.x) && y < len(l.y) && l.framed[y*len(l.x)+x]
	}
	for _, sty := range []draw.LineStyle{{Color: color.Black, Width: px(7)}, {Color: color.White, Width: px(3)}} {
		for y := range l.y {
			for x := range l.x {
				if !framed(x, y) {
					continue
				}
				r := l.cell(x, y)
				a, b, d, e := r.Min, vg.Point{X: r.Max.X, Y: r.Min.Y}, r.Max, vg.Point{X: r.Min.X, Y: r.Max.Y}
				for _, side := range []struct {
					x, y     int
					from, to vg.Point
				}{{x - 1, y, e, a}, {x + 1, y, b, d}, {x, y - 1, a, b}, {x, y + 1, d, e}} {
					if !framed(side.x, side.y) {
						c.StrokeLine2(sty, side.from.X, side.from.Y, side.to.X, side.to.Y)
					}
				}
			}
		}
	}
}

// axes writes as many values along two sides as there is room for.
func (l *heat) axes(c draw.Canvas) {
	across, up := style(10, draw.XCenter, draw.YTop), style(10, draw.XRight, draw.YCenter)
	room := 0.0
	for _, v := range l.x {
		room = max(room, inPx(across.Width(withUnit(rounded(v), l.X.Unit))))
	}
	for _, i := range spaced(len(l.x), l.wide, room+20) {
		x := l.area.Min.X + px(l.wide*(float64(i)+0.5))
		c.StrokeLine2(tick(), x, l.area.Min.Y-px(8), x, l.area.Min.Y)
		c.FillText(across, vg.Point{X: x, Y: l.area.Min.Y - px(14)}, withUnit(rounded(l.x[i]), l.X.Unit))
	}
	for _, i := range spaced(len(l.y), l.high, 34) {
		y := l.area.Min.Y + px(l.high*(float64(i)+0.5))
		c.StrokeLine2(tick(), l.area.Min.X-px(8), y, l.area.Min.X, y)
		c.FillText(up, vg.Point{X: l.area.Min.X - px(14), Y: y}, withUnit(rounded(l.y[i]), l.Y.Unit))
	}
	c.FillText(style(12, draw.XCenter, draw.YBottom), vg.Point{X: (l.area.Min.X + l.area.Max.X) / 2, Y: px(20)}, l.X.Name)
	upright := style(12, draw.XCenter, draw.YTop)
	upright.Rotation = math.Pi / 2
	c.FillText(upright, vg.Point{X: px(16), Y: (l.area.Min.Y + l.area.Max.Y) / 2}, l.Y.Name)
}

// spaced are which of n cells of a width have a label, when one takes so much room: the first, and then every few.
func spaced(n int, wide, room float64) []int {
	every := max(1, int(math.Ceil(room/wide)))
	var all []int
	for i := 0; i < n; i += every {
		all = append(all, i)
	}
	return all
}

// bar draws what the colours mean.
func (l *heat) bar(c draw.Canvas) {
	r := vg.Rectangle{Min: vg.Point{X: l.area.Max.X + px(barGapPx), Y: l.area.Min.Y}, Max: vg.Point{X: l.area.Max.X + px(barGapPx+barPx), Y: l.area.Max.Y}}
	label := style(10, draw.XLeft, draw.YCenter)
	c.FillText(style(10, draw.XLeft, draw.YBottom), vg.Point{X: r.Min.X, Y: r.Max.Y + px(22)}, l.Value.Name)
	if l.colours.least > l.colours.most {
		frame(c, r)
		return
	}
	const steps = 256
	for i := range steps {
		c.SetColor(viridis(float64(i) / (steps - 1)))
		c.Fill(vg.Rectangle{Min: vg.Point{X: r.Min.X, Y: r.Min.Y + r.Size().Y*vg.Length(i)/steps}, Max: r.Max}.Path())
	}
	frame(c, r)
	put := func(v float64, y vg.Length) {
		c.StrokeLine2(tick(), r.Max.X, y, r.Max.X+px(8), y)
		c.FillText(label, vg.Point{X: r.Max.X + px(14), Y: y}, withUnit(rounded(v), l.Value.Unit))
	}
	if l.colours.least == l.colours.most {
		put(l.colours.least, (r.Min.Y+r.Max.Y)/2)
		return
	}
	put(l.colours.least, r.Min.Y)
	put(l.colours.most, r.Max.Y)
	marks := slices.DeleteFunc(l.colours.ticks(l.Value), func(m mark) bool { return m.label == "" })
	for _, m := range marks {
		if f := l.colours.at(m.at); f > 0.04 && f < 0.96 {
			put(m.at, r.Min.Y+r.Size().Y*vg.Length(f))
		}
	}
}
