package plot

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	imagedraw "image/draw"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Matrix draws a square matrix of counts.
type Matrix struct {
	// Title is above the matrix, Note in small letters below the title.
	Title, Note string
	// Down and Across name the rows and columns: source, destination.
	Down, Across string
	// Value names the counted quantity for the scale: messages, bytes.
	Value string
	// Unit is the value's unit: bytes, ns or 1.
	Unit string

	// SidePx is the least width of a matrix that is drawn alone, in pixels; 0 means 900.
	SidePx int

	signed bool // values may be negative
	ranks  int
	block  int     // ranks in a cell, down and across
	n      int     // cells in a row
	cells  []int64 // by source, then destination
}

// mostCells is the largest number of cells in a row.
const mostCells = 2048

// NewMatrix returns a zero matrix for this many ranks. Above 2048 ranks, a cell stands for several ranks.
func NewMatrix(ranks int) (*Matrix, error) { return newMatrix(ranks, mostCells) }

// NewPanel returns a zero matrix to be drawn beside others: it has fewer cells.
func NewPanel(ranks int) (*Matrix, error) { return newMatrix(ranks, panelCells) }

// NewDifference returns a zero matrix of increases and decreases: red above 0, blue below, paler towards 0.
func NewDifference(ranks int) (*Matrix, error) {
	m, err := newMatrix(ranks, mostCells)
	if m != nil {
		m.signed = true
	}
	return m, err
}

func newMatrix(ranks, most int) (*Matrix, error) {
	if ranks < 1 {
		return nil, fmt.Errorf("draw a matrix of %d ranks: want at least 1", ranks)
	}
	m := &Matrix{ranks: ranks, block: (ranks + most - 1) / most}
	m.n = (ranks + m.block - 1) / m.block
	m.cells = make([]int64, m.n*m.n)
	return m, nil
}

// Add adds a value to a cell. A cell for several ranks has the sum of their values. It returns an error for an
// unknown rank, and for a negative value except in a difference.
func (m *Matrix) Add(src, dst, value int64) error {
	n, block := int64(m.ranks), int64(m.block)
	if src < 0 || src >= n || dst < 0 || dst >= n || value < 0 && !m.signed {
		return fmt.Errorf("draw a matrix of %d ranks: value %d from rank %d to rank %d does not fit", n, value, src,
			dst)
	}
	m.cells[src/block*int64(m.n)+dst/block] += value
	return nil
}

// note returns the matrix's note, extended by the number of ranks per cell if that is above one.
func (m *Matrix) note() string {
	if m.block == 1 {
		return m.Note
	}
	binned := fmt.Sprintf("each cell is the sum of %d x %d ranks", m.block, m.block)
	if m.Note == "" {
		return binned
	}
	return m.Note + "; " + binned
}

// Matrices draws matrices side by side, each with its own scale.
type Matrices []*Matrix

// Lengths are in pixels of a PNG.
const (
	matrixPx   = 900  // least width of a matrix
	panelPx    = 500  // of one beside others
	panelCells = 500  // cells in a row of a panel
	mostPanels = 36   // more would be too small to read, and the picture too large to open
	vectorMost = 128  // wider ones become an image in SVG and PDF
	imagePx    = 2048 // least width of that image
	topPx      = 130
	bottomPx   = 130
	leftPx     = 150
	rightPx    = 260
	barPx      = 36
	barGapPx   = 60
	numberPx   = 27 // height of a number beside a colour scale
)

// Draw writes the picture to w.
func (m *Matrix) Draw(w io.Writer, o Options) error { return Matrices{m}.Draw(w, o) }

// Draw writes the picture to w. More than 36 matrices are refused.
func (ms Matrices) Draw(w io.Writer, o Options) error {
	if len(ms) == 0 || len(ms) > mostPanels {
		return fmt.Errorf("draw %d matrices: want 1 to %d", len(ms), mostPanels)
	}
	columns := int(math.Ceil(math.Sqrt(float64(len(ms)))))
	rows := (len(ms) + columns - 1) / columns
	layouts := make([]*layout, len(ms))
	var wide float64
	for i, m := range ms {
		layouts[i] = m.layOut(panelPx, o)
		if len(ms) == 1 {
			layouts[i] = m.layOut(float64(cmp.Or(m.SidePx, matrixPx)), o)
		}
		wide = max(wide, layouts[i].sidePx())
	}
	width, height := leftPx+wide+rightPx, topPx+wide+bottomPx
	s, c, img, err := newSheet(o, float64(columns)*width, float64(rows)*height)
	if err != nil {
		return err
	}
	for i, l := range layouts {
		l.left = float64(i%columns)*width + leftPx
		l.top = float64(i/columns)*height + topPx
		l.bottom = float64(rows)*height - l.top - l.sidePx()
		l.draw(s)
		if img != nil {
			l.paint(img.Image())
		} else {
			l.cells(s)
		}
	}
	_, err = c.WriteTo(w)
	return err
}

// layout is a matrix with its sizes and positions.
type layout struct {
	m                 *Matrix
	theme             *theme
	cellPx            float64
	left, top, bottom float64 // pixels from the edges of the picture to the matrix
	least, most       int64   // least and greatest amount that is not 0
	log               bool
}

// layOut lays out the matrix with at least this width. A cell is a whole number of pixels wide, so that it is not
// blurred.
func (m *Matrix) layOut(widthPx float64, o Options) *layout {
	l := &layout{m: m, theme: themeOf(o.Theme), cellPx: math.Ceil(widthPx / float64(m.n))}
	for _, v := range m.cells {
		if v = max(v, -v); v > 0 && (l.least == 0 || v < l.least) {
			l.least = v
		}
		l.most = max(l.most, v)
	}
	l.log = !m.signed && l.most > l.least && (o.Colours == "log" ||
		o.Colours != "linear" && Logarithmic(l.least, l.most))
	return l
}

// Colours are logarithmic if the greatest value is at least logFrom times the least one.
const logFrom = 100

// Logarithmic reports whether the colours of values above 0 should be logarithmic.
func Logarithmic(least, most int64) bool { return least > 0 && float64(most) >= logFrom*float64(least) }

// logarithmic is said of colours.
const logarithmic = ", logarithmic"

func (l *layout) sidePx() float64 { return float64(l.m.n) * l.cellPx }

// colour returns the colour of a value: that of the paper for 0.
func (l *layout) colour(v int64) color.RGBA {
	switch {
	case v == 0:
		return l.theme.paper
	case l.m.signed:
		return l.theme.difference(float64(v) / float64(l.most))
	}
	return l.theme.shade(l.scaleRange().fraction(float64(v)))
}

// scaleRange returns the range of the colour scale. A logarithmic one begins at a power of ten, a linear one at 0.
func (l *layout) scaleRange() scale {
	if l.log {
		return scale{math.Pow(10, math.Floor(math.Log10(float64(l.least)))), float64(l.most), true}
	}
	if l.m.signed {
		return scale{least: -float64(l.most), most: float64(l.most)}
	}
	return scale{most: float64(l.most)}
}

// area returns the rectangle of the matrix.
func (l *layout) area() vg.Rectangle {
	return vg.Rectangle{
		Min: vg.Point{X: px(l.left), Y: px(l.bottom)},
		Max: vg.Point{X: px(l.left + l.sidePx()), Y: px(l.bottom + l.sidePx())},
	}
}

// draw draws everything but the cells.
func (l *layout) draw(c sheet) {
	area := l.area()
	c.frame(area)
	l.rankAxes(c, area)
	l.scale(c, area)
	c.head(area, l.m.Title, l.m.note(), rightPx)
}

// paint sets the pixels of the cells in a PNG directly, since its canvas would blur an image.
func (l *layout) paint(img imagedraw.Image) {
	l.fill(img, image.Pt(int(l.left), int(l.top)), int(l.cellPx))
}

// fill fills a square of k pixels for each cell; at is the upper left corner.
func (l *layout) fill(img imagedraw.Image, at image.Point, k int) {
	for i, v := range l.m.cells {
		corner := at.Add(image.Pt(i%l.m.n*k, i/l.m.n*k))
		imagedraw.Draw(img, image.Rectangle{Min: corner, Max: corner.Add(image.Pt(k, k))},
			image.NewUniform(l.colour(v)), image.Point{}, imagedraw.Src)
	}
}

// cells draws the cells as rectangles or, if there are many, as an image with several pixels per cell.
func (l *layout) cells(c sheet) {
	n := l.m.n
	if n <= vectorMost {
		l.rectangles(c)
		return
	}
	k := (imagePx + n - 1) / n
	size := image.Rect(0, 0, n*k, n*k)
	img := image.NewRGBA(size)
	l.fill(img, image.Point{}, k)
	c.DrawImage(l.area(), img)
}

// rectangles draws one rectangle for each run of equal cells in a row. Neighbours overlap slightly; otherwise viewers
// show the paper between them.
func (l *layout) rectangles(c sheet) {
	area, cell, overlap, n := l.area(), px(l.cellPx), vg.Points(0.1), l.m.n
	for y := range n {
		top := area.Max.Y - vg.Length(y)*cell
		row := l.m.cells[y*n : (y+1)*n]
		for x := 0; x < n; {
			end := x + 1
			for end < n && row[end] == row[x] {
				end++
			}
			if row[x] != 0 {
				c.SetColor(l.colour(row[x]))
				c.Fill(vg.Rectangle{
					Min: vg.Point{X: area.Min.X + vg.Length(x)*cell, Y: max(area.Min.Y, top-cell-overlap)},
					Max: vg.Point{X: min(area.Max.X, area.Min.X+vg.Length(end)*cell+overlap), Y: top},
				}.Path())
			}
			x = end
		}
	}
}

// rankAxes labels the ranks on two sides, as many as there is room for.
func (l *layout) rankAxes(c sheet, area vg.Rectangle) {
	cell := px(l.cellPx)
	down, across := style(10, draw.XRight, draw.YCenter), style(10, draw.XCenter, draw.YTop)
	room := down.Width(strconv.Itoa(l.m.ranks)) + px(20)
	step := rankStep(l.m.ranks, min(16, int(area.Size().X/room)))
	for rank := 0; rank < l.m.ranks; rank += step {
		mid := (vg.Length(rank)/vg.Length(l.m.block) + 0.5) * cell
		x, y := area.Min.X+mid, area.Max.Y-mid
		c.StrokeLine2(c.tick(), area.Min.X-px(8), y, area.Min.X, y)
		c.StrokeLine2(c.tick(), x, area.Min.Y-px(8), x, area.Min.Y)
		c.write(down, vg.Point{X: area.Min.X - px(14), Y: y}, strconv.Itoa(rank))
		c.write(across, vg.Point{X: x, Y: area.Min.Y - px(14)}, strconv.Itoa(rank))
	}
	c.write(style(12, draw.XCenter, draw.YBottom),
		vg.Point{X: (area.Min.X + area.Max.X) / 2, Y: area.Min.Y - px(100)}, l.m.Across)
	turned := style(12, draw.XCenter, draw.YTop)
	turned.Rotation = math.Pi / 2
	c.write(turned, vg.Point{X: area.Min.X - px(120), Y: (area.Min.Y + area.Max.Y) / 2}, l.m.Down)
}

// rankStep returns the distance between labelled ranks, for at most so many labels: a power of two, since most
// numbers of ranks are.
func rankStep(ranks, most int) int {
	step := 1
	for ranks/step > most {
		step *= 2
	}
	return step
}

// rounded rounds to four digits.
func rounded(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	return r
}

// scale draws the colour scale with its numbers.
func (l *layout) scale(c sheet, area vg.Rectangle) {
	bar := vg.Rectangle{
		Min: vg.Point{X: area.Max.X + px(barGapPx), Y: area.Min.Y},
		Max: vg.Point{X: area.Max.X + px(barGapPx+barPx), Y: area.Max.Y},
	}
	label := style(10, draw.XLeft, draw.YCenter)
	of := Axis{Unit: l.m.Unit, Integers: true}
	r := l.scaleRange()
	u := r.unit(of)
	title := u.titled(l.m.Value)
	if l.log {
		title += logarithmic
	}
	c.barTitle(bar, title)
	if l.most == 0 {
		c.frame(bar)
		nothing := "no " + l.m.Value
		if l.m.signed {
			nothing = "no difference"
		}
		c.write(label, vg.Point{X: bar.Max.X + px(14), Y: bar.Min.Y}, nothing)
		return
	}
	at := func(v float64) vg.Length { return bar.Min.Y + bar.Size().Y*vg.Length(r.fraction(v)) }
	for i := range shades {
		f := float64(i+1) / shades
		c.SetColor(l.theme.shade(f))
		if l.m.signed {
			c.SetColor(l.theme.difference(2*f - 1))
		}
		c.Fill(vg.Rectangle{Min: vg.Point{X: bar.Min.X, Y: bar.Min.Y + bar.Size().Y*vg.Length(i)/shades},
			Max: vg.Point{X: bar.Max.X, Y: bar.Max.Y}}.Path())
	}
	c.frame(bar)
	put := func(v float64, s string) {
		c.StrokeLine2(c.tick(), bar.Max.X, at(v), bar.Max.X+px(8), at(v))
		c.write(label, vg.Point{X: bar.Max.X + px(14), Y: at(v)}, s)
	}
	most := u.rounded(float64(l.most))
	switch {
	case u.name == "": // counts to the last digit
		most = strconv.FormatInt(l.most, 10)
	case r.binary(of):
		size := unitFor(of.Unit, float64(l.most))
		most = strings.TrimSpace(size.rounded(float64(l.most)) + " " + strings.TrimSuffix(size.name, "B"))
	}
	put(float64(l.most), most)
	if l.m.signed {
		put(-float64(l.most), "-"+most)
	}
	for _, m := range l.barTicks(r, of) {
		near := numberPx / l.sidePx()
		if f := r.fraction(m.at); f < 1-near && (f > near || !l.m.signed) {
			put(m.at, m.label)
		}
	}
}

// barTicks returns the marks of the colour scale below the greatest value.
func (l *layout) barTicks(r scale, of Axis) []mark {
	if l.log {
		return slices.DeleteFunc(r.ticks(of), func(m mark) bool { return m.label == "" })
	}
	u := r.unit(of)
	steps := 5.0
	if l.m.signed {
		steps = 6 // half of them on each side
	}
	step := niceStep((r.most-r.least)/steps/u.size) * u.size
	if step < 1 {
		step = 1
	}
	var marks []mark
	for v := 0.0; v < r.most; v += step {
		marks = append(marks, mark{v, u.number(v)})
		if l.m.signed && v > 0 {
			marks = append(marks, mark{-v, u.number(-v)})
		}
	}
	return marks
}
