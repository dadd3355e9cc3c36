package plot

import (
	"fmt"
	"image"
	"image/color"
	imagedraw "image/draw"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Matrix is a square matrix of counts to be drawn.
type Matrix struct {
	// Title stands over the matrix, Note in small letters under it.
	Title, Note string
	// Down and Across are what its rows and columns are: source, destination.
	Down, Across string
	// Value is what is counted, for the scale: messages, bytes.
	Value string
	// Unit is the value's unit: bytes, ns or 1.
	Unit string

	signed bool // values may be negative
	ranks  int
	block  int     // ranks in a cell, down and across
	n      int     // cells in a row
	cells  []int64 // by source, then destination
}

// mostCells is how many cells a row of a matrix has at most.
const mostCells = 2048

// NewMatrix makes a matrix of so many ranks, all zero. One of more than 2048 ranks has cells of several ranks.
func NewMatrix(ranks int) (*Matrix, error) { return newMatrix(ranks, mostCells) }

// NewPanel makes a matrix to be drawn beside others, all zero: it has fewer cells.
func NewPanel(ranks int) (*Matrix, error) { return newMatrix(ranks, panelCells) }

// NewDifference makes a matrix of what is more and what is less, all zero: red where a value is above 0, blue where it is below, the
// paler the nearer to it.
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

// Add adds a value to a cell; one of several ranks has the sum of their values. It returns an error when there is no such
// rank or the value is negative, but for a difference.
func (m *Matrix) Add(src, dst, value int64) error {
	n, block := int64(m.ranks), int64(m.block)
	if src < 0 || src >= n || dst < 0 || dst >= n || value < 0 && !m.signed {
		return fmt.Errorf("draw a matrix of %d ranks: value %d from rank %d to rank %d does not fit", n, value, src, dst)
	}
	m.cells[src/block*int64(m.n)+dst/block] += value
	return nil
}

// note is the matrix's note, and what its cells are where they have several ranks.
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

// Matrices are matrices drawn side by side, each with its own scale.
type Matrices []*Matrix

// Lengths are in pixels of a PNG.
const (
	matrixPx   = 900  // least width of a matrix
	panelPx    = 500  // of one beside others
	panelCells = 500  // cells in a row of one beside others
	mostPanels = 36   // more are too small to read, and their picture too large to open
	vectorMost = 128  // wider ones are an image in SVG and PDF
	imagePx    = 2048 // least width of that image
	topPx      = 130
	bottomPx   = 130
	leftPx     = 150
	rightPx    = 260
	barPx      = 36
	barGapPx   = 60
	lightest   = 0.90 // grey of the least value that is not 0
)

// Draw writes the drawing to w in a format: png, svg or pdf.
func (m *Matrix) Draw(w io.Writer, format string) error { return Matrices{m}.Draw(w, format) }

// Draw writes the drawing to w in a format: png, svg or pdf. More than 36 matrices are refused.
func (ms Matrices) Draw(w io.Writer, format string) error {
	if len(ms) == 0 || len(ms) > mostPanels {
		return fmt.Errorf("draw %d matrices: want 1 to %d", len(ms), mostPanels)
	}
	columns := int(math.Ceil(math.Sqrt(float64(len(ms)))))
	rows := (len(ms) + columns - 1) / columns
	layouts := make([]*layout, len(ms))
	var wide float64
	for i, m := range ms {
		layouts[i] = m.layOut(panelPx)
		if len(ms) == 1 {
			layouts[i] = m.layOut(matrixPx)
		}
		wide = max(wide, layouts[i].sidePx())
	}
	width, height := leftPx+wide+rightPx, topPx+wide+bottomPx
	c, img, err := newCanvas(format, float64(columns)*width, float64(rows)*height)
	if err != nil {
		return err
	}
	for i, l := range layouts {
		l.left = float64(i%columns)*width + leftPx
		l.top = float64(i/columns)*height + topPx
		l.bottom = float64(rows)*height - l.top - l.sidePx()
		l.draw(draw.New(c))
		if img != nil {
			l.paint(img.Image())
		} else {
			l.cells(draw.New(c))
		}
	}
	_, err = c.WriteTo(w)
	return err
}

// layout is how a matrix is drawn.
type layout struct {
	m                 *Matrix
	cellPx            float64
	left, top, bottom float64 // in pixels, from the edges of the picture to the matrix
	most              int64
}

// layOut makes the matrix at least so wide. Cells are whole pixels wide, so that none is blurred.
func (m *Matrix) layOut(widthPx float64) *layout {
	l := &layout{m: m, cellPx: math.Ceil(widthPx / float64(m.n))}
	for _, v := range m.cells {
		l.most = max(l.most, v, -v)
	}
	return l
}

func (l *layout) sidePx() float64 { return float64(l.m.n) * l.cellPx }

// colour is that of a value: white for 0, then from light grey to black; of a difference from pale to dark red or blue.
func (l *layout) colour(v int64) color.Color {
	if v == 0 {
		return color.Gray{Y: 255}
	}
	return l.colourAt(float64(v) / float64(l.most))
}

// colourAt is the colour of a part of the greatest value.
func (l *layout) colourAt(f float64) color.Color {
	if l.m.signed {
		return diverging(f)
	}
	return shade(f)
}

// diverging is the colour of a part of the greatest difference, -1 to 1: between ColorBrewer's RdBu ends, dark red b2182b and dark blue
// 2166ac, which who does not see red from green tells apart, and nearly white.
func diverging(f float64) color.RGBA {
	end := [3]float64{0xb2, 0x18, 0x2b}
	if f < 0 {
		f, end = -f, [3]float64{0x21, 0x66, 0xac}
	}
	f = 1 - lightest*(1-f)
	at := func(i int) uint8 { return uint8(math.Round(255 + f*(end[i]-255))) }
	return color.RGBA{at(0), at(1), at(2), 255}
}

// shade is the grey of a fraction of the greatest value.
func shade(f float64) color.Gray {
	return color.Gray{Y: uint8(math.Round(255 * lightest * (1 - f)))}
}

// area is where the matrix lies.
func (l *layout) area() vg.Rectangle {
	return vg.Rectangle{
		Min: vg.Point{X: px(l.left), Y: px(l.bottom)},
		Max: vg.Point{X: px(l.left + l.sidePx()), Y: px(l.bottom + l.sidePx())},
	}
}

// draw draws everything but the cells.
func (l *layout) draw(c draw.Canvas) {
	area := l.area()
	frame(c, area)
	l.rankAxes(c, area)
	l.scale(c, area)
	head(c, area, l.m.Title, l.m.note(), rightPx)
}

// paint sets the pixels of the cells of a PNG, whose canvas would blur an image.
func (l *layout) paint(img imagedraw.Image) {
	l.fill(img, image.Pt(int(l.left), int(l.top)), int(l.cellPx))
}

// fill fills squares of k pixels, one for each cell; at is the upper left corner.
func (l *layout) fill(img imagedraw.Image, at image.Point, k int) {
	for i, v := range l.m.cells {
		corner := at.Add(image.Pt(i%l.m.n*k, i/l.m.n*k))
		imagedraw.Draw(img, image.Rectangle{Min: corner, Max: corner.Add(image.Pt(k, k))}, image.NewUniform(l.colour(v)), image.Point{}, imagedraw.Src)
	}
}

// cells draws the cells as rectangles, or, where they are many, as an image with several pixels for each.
func (l *layout) cells(c draw.Canvas) {
	n := l.m.n
	if n <= vectorMost {
		l.rectangles(c)
		return
	}
	k := (imagePx + n - 1) / n
	size := image.Rect(0, 0, n*k, n*k)
	var img imagedraw.Image = image.NewGray(size)
	if l.m.signed {
		img = image.NewRGBA(size)
	}
	l.fill(img, image.Point{}, k)
	c.DrawImage(l.area(), img)
}

// rectangles draws one for each run of equal cells in a row. Neighbours overlap by a hair, or viewers show the paper between
// them.
func (l *layout) rectangles(c draw.Canvas) {
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

// rankAxes draws the ranks along two sides, as many as there is room for.
func (l *layout) rankAxes(c draw.Canvas, area vg.Rectangle) {
	cell := px(l.cellPx)
	down, across := style(10, draw.XRight, draw.YCenter), style(10, draw.XCenter, draw.YTop)
	room := down.Width(strconv.Itoa(l.m.ranks)) + px(20)
	step := rankStep(l.m.ranks, min(16, int(area.Size().X/room)))
	for rank := 0; rank < l.m.ranks; rank += step {
		mid := (vg.Length(rank)/vg.Length(l.m.block) + 0.5) * cell
		x, y := area.Min.X+mid, area.Max.Y-mid
		c.StrokeLine2(tick(), area.Min.X-px(8), y, area.Min.X, y)
		c.StrokeLine2(tick(), x, area.Min.Y-px(8), x, area.Min.Y)
		c.FillText(down, vg.Point{X: area.Min.X - px(14), Y: y}, strconv.Itoa(rank))
		c.FillText(across, vg.Point{X: x, Y: area.Min.Y - px(14)}, strconv.Itoa(rank))
	}
	c.FillText(style(12, draw.XCenter, draw.YBottom), vg.Point{X: (area.Min.X + area.Max.X) / 2, Y: area.Min.Y - px(100)}, l.m.Across)
	turned := style(12, draw.XCenter, draw.YTop)
	turned.Rotation = math.Pi / 2
	c.FillText(turned, vg.Point{X: area.Min.X - px(120), Y: (area.Min.Y + area.Max.Y) / 2}, l.m.Down)
}

// rankStep is the distance of the ranks of which at most so many are written at an axis: a power of two, because numbers of
// ranks mostly are.
func rankStep(ranks, most int) int {
	step := 1
	for ranks/step > most {
		step *= 2
	}
	return step
}

// rounded is a number to four digits.
func rounded(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	return r
}

// scale draws the bar that says how dark how much is.
func (l *layout) scale(c draw.Canvas, area vg.Rectangle) {
	bar := vg.Rectangle{
		Min: vg.Point{X: area.Max.X + px(barGapPx), Y: area.Min.Y},
		Max: vg.Point{X: area.Max.X + px(barGapPx+barPx), Y: area.Max.Y},
	}
	label := style(10, draw.XLeft, draw.YCenter)
	least, span := 0.0, float64(l.most)
	if l.m.signed {
		least, span = -span, 2*span
	}
	at := func(v float64) vg.Length { return bar.Min.Y + bar.Size().Y*vg.Length((v-least)/span) }
	put := func(v float64, s string) {
		c.StrokeLine2(tick(), bar.Max.X, at(v), bar.Max.X+px(8), at(v))
		c.FillText(label, vg.Point{X: bar.Max.X + px(14), Y: at(v)}, s)
	}
	if l.most == 0 {
		frame(c, bar)
		nothing := "no " + l.m.Value
		if l.m.signed {
			nothing = "no difference"
		}
		c.FillText(label, vg.Point{X: bar.Max.X + px(14), Y: bar.Min.Y}, nothing)
		return
	}
	const shades = 256
	for i := range shades {
		c.SetColor(l.colourAt((least + span*float64(i+1)/shades) / float64(l.most)))
		c.Fill(vg.Rectangle{Min: vg.Point{X: bar.Min.X, Y: bar.Min.Y + bar.Size().Y*vg.Length(i)/shades},
			Max: vg.Point{X: bar.Max.X, Y: bar.Max.Y}}.Path())
	}
	frame(c, bar)
	steps := 5.0
	if l.m.signed {
		steps = 6 // half of them on each side
	}
	step := niceStep(max(1, span/steps))
	for v := 0.0; v < float64(l.most)-step/3; v += step {
		put(v, withUnit(v, l.m.Unit))
		if l.m.signed && v > 0 {
			put(-v, withUnit(-v, l.m.Unit))
		}
	}
	most := strconv.FormatInt(l.most, 10) // counts to the last digit
	if l.m.Unit == "ns" || l.m.Unit == "bytes" {
		most = withUnit(rounded(float64(l.most)), l.m.Unit)
	}
	put(float64(l.most), most)
	if l.m.signed {
		put(-float64(l.most), "-"+most)
	}
	c.FillText(style(10, draw.XLeft, draw.YBottom), vg.Point{X: bar.Min.X, Y: bar.Max.Y + px(22)}, l.m.Value)
}
