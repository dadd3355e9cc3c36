package plot

import (
	"cmp"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// HeatMap draws a number for each pair of values of two quantities: X across, Y up, lighter is more. All values take
// equal room, in their order.
type HeatMap struct {
	// Title is above the drawing, Note in small letters below the title.
	Title, Note string
	// X, Y and Value name the quantities and the number. Value.Log is ignored: the colours are logarithmic if the
	// greatest number is more than ten times the least and the least is above 0.
	X, Y, Value Axis
	// WidePx and HighPx are the least width and height of the drawing area in pixels; 0 means 900.
	WidePx, HighPx int

	x, y   []float64
	cells  []float64 // NaN: no number
	framed []bool
}

// NewHeatMap returns a heat map without numbers over the values of two quantities.
func NewHeatMap(x, y []float64) *HeatMap {
	h := &HeatMap{x: x, y: y, cells: make([]float64, len(x)*len(y)), framed: make([]bool, len(x)*len(y))}
	for i := range h.cells {
		h.cells[i] = math.NaN()
	}
	return h
}

// Set sets the number at indexes x and y. A line is drawn around all framed cells together.
func (h *HeatMap) Set(x, y int, number float64, framed bool) {
	h.cells[y*len(h.x)+x], h.framed[y*len(h.x)+x] = number, framed
}

const heatPx = 900 // least width and height of the drawing area

// heat is a heat map with its layout.
type heat struct {
	*HeatMap
	area         vg.Rectangle
	wide, high   float64 // of a cell, in pixels
	colours      scale
	left, bottom float64
}

// Draw writes the picture to w.
func (h *HeatMap) Draw(w io.Writer, o Options) error {
	wide, high := float64(cmp.Or(h.WidePx, heatPx)), float64(cmp.Or(h.HighPx, heatPx))
	l := &heat{HeatMap: h, wide: math.Ceil(wide / float64(len(h.x))), high: math.Ceil(high / float64(len(h.y))),
		left: leftPx + 30, bottom: bottomPx}
	e := nothing()
	for _, v := range h.cells {
		e.add(v)
	}
	l.colours = scale{e.least, e.most, e.least > 0 && e.most > 10*e.least}
	width, height := l.wide*float64(len(h.x)), l.high*float64(len(h.y))
	s, c, _, err := newSheet(o, l.left+width+rightPx, topPx+height+l.bottom)
	if err != nil {
		return err
	}
	l.area = vg.Rectangle{Min: vg.Point{X: px(l.left), Y: px(l.bottom)},
		Max: vg.Point{X: px(l.left + width), Y: px(l.bottom + height)}}
	l.draw(s)
	_, err = c.WriteTo(w)
	return err
}

func (l *heat) draw(c sheet) {
	for y := range l.y {
		for x := range l.x {
			if v := l.cells[y*len(l.x)+x]; !math.IsNaN(v) && !math.IsInf(v, 0) {
				c.SetColor(l.colour(v))
				c.Fill(l.cell(x, y).Path())
			}
		}
	}
	l.frames(c)
	c.frame(l.area)
	l.axes(c)
	l.bar(c)
	c.head(l.area, l.Title, l.Note, rightPx)
}

// colour returns the colour of a number: viridis, dark to light.
func (l *heat) colour(v float64) color.Color {
	if l.colours.most == l.colours.least {
		return viridis(0.5)
	}
	return viridis(l.colours.fraction(v))
}

func (l *heat) cell(x, y int) vg.Rectangle {
	min := vg.Point{X: l.area.Min.X + px(l.wide*float64(x)), Y: l.area.Min.Y + px(l.high*float64(y))}
	return vg.Rectangle{Min: min, Max: min.Add(vg.Point{X: px(l.wide), Y: px(l.high)})}
}

// frames draws a line between framed and other cells: white between black, visible on every colour.
func (l *heat) frames(c sheet) {
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

// axes labels as many values on two sides as there is room for.
func (l *heat) axes(c sheet) {
	across, up := style(10, draw.XCenter, draw.YTop), style(10, draw.XRight, draw.YCenter)
	xu, yu := valuesUnit(l.X.Unit, l.x), valuesUnit(l.Y.Unit, l.y)
	room := 0.0
	for _, v := range l.x {
		room = max(room, inPx(across.Width(xu.rounded(v))))
	}
	for _, i := range spaced(len(l.x), l.wide, room+20) {
		x := l.area.Min.X + px(l.wide*(float64(i)+0.5))
		c.StrokeLine2(c.tick(), x, l.area.Min.Y-px(8), x, l.area.Min.Y)
		c.write(across, vg.Point{X: x, Y: l.area.Min.Y - px(14)}, xu.rounded(l.x[i]))
	}
	for _, i := range spaced(len(l.y), l.high, 34) {
		y := l.area.Min.Y + px(l.high*(float64(i)+0.5))
		c.StrokeLine2(c.tick(), l.area.Min.X-px(8), y, l.area.Min.X, y)
		c.write(up, vg.Point{X: l.area.Min.X - px(14), Y: y}, yu.rounded(l.y[i]))
	}
	c.write(style(12, draw.XCenter, draw.YBottom), vg.Point{X: (l.area.Min.X + l.area.Max.X) / 2, Y: px(20)},
		xu.titled(l.X.Name))
	upright := style(12, draw.XCenter, draw.YTop)
	upright.Rotation = math.Pi / 2
	c.write(upright, vg.Point{X: px(16), Y: (l.area.Min.Y + l.area.Max.Y) / 2}, yu.titled(l.Y.Name))
}

// valuesUnit returns the unit that values of a quantity are written in: that of the middle one.
func valuesUnit(quantity string, values []float64) unit {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return unitFor(quantity, 0)
	}
	return unitFor(quantity, sorted[len(sorted)/2])
}

// spaced returns which of n cells get a label that needs so much room: the first and then every few.
func spaced(n int, wide, room float64) []int {
	every := max(1, int(math.Ceil(room/wide)))
	var all []int
	for i := 0; i < n; i += every {
		all = append(all, i)
	}
	return all
}

// bar draws the colour scale.
func (l *heat) bar(c sheet) {
	r := vg.Rectangle{Min: vg.Point{X: l.area.Max.X + px(barGapPx), Y: l.area.Min.Y},
		Max: vg.Point{X: l.area.Max.X + px(barGapPx+barPx), Y: l.area.Max.Y}}
	label := style(10, draw.XLeft, draw.YCenter)
	u := l.colours.unit(l.Value)
	title := u.titled(l.Value.Name)
	if l.colours.log {
		title += logarithmic
	}
	c.barTitle(r, title)
	if l.colours.least > l.colours.most {
		c.frame(r)
		return
	}
	for i := range shades {
		c.SetColor(viridis(float64(i) / (shades - 1)))
		c.Fill(vg.Rectangle{Min: vg.Point{X: r.Min.X, Y: r.Min.Y + r.Size().Y*vg.Length(i)/shades}, Max: r.Max}.Path())
	}
	c.frame(r)
	put := func(v float64, y vg.Length) {
		c.StrokeLine2(c.tick(), r.Max.X, y, r.Max.X+px(8), y)
		c.write(label, vg.Point{X: r.Max.X + px(14), Y: y}, u.rounded(v))
	}
	if l.colours.least == l.colours.most {
		put(l.colours.least, (r.Min.Y+r.Max.Y)/2)
		return
	}
	put(l.colours.least, r.Min.Y)
	put(l.colours.most, r.Max.Y)
	for _, m := range apartMarks(l.colours, l.Value, float64(label.Height("0")/r.Size().Y)) {
		put(m.at, r.Min.Y+r.Size().Y*vg.Length(l.colours.fraction(m.at)))
	}
}

// apartMarks returns the labelled marks of a scale that are further from both its ends, which have numbers of their
// own, and from one another than a fraction of its length.
func apartMarks(s scale, a Axis, apart float64) (marks []mark) {
	last := 0.0
	for _, m := range s.ticks(a) {
		if f := s.fraction(m.at); m.label != "" && f > last+apart && f < 1-apart {
			marks, last = append(marks, m), f
		}
	}
	return marks
}
