// Package plot draws the matrices of communication as Riesen's figures do: the source down, the destination across, darker
// is more, white is none.
package plot

import (
	"fmt"
	"image"
	"image/color"
	imagedraw "image/draw"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Matrix is a square matrix of counts to be drawn.
type Matrix struct {
	// Title stands over the matrix, Note in small letters under it.
	Title, Note string
	// Value is what is counted, for the scale: messages, bytes.
	Value string
	// Unit is the value's unit; bytes or 1.
	Unit string

	ranks int
	cells []int64 // by source, then destination
}

// maxRanks bounds the memory of a matrix: 2 GiB.
const maxRanks = 16384

// NewMatrix makes a matrix of so many ranks, all zero.
func NewMatrix(ranks int) (*Matrix, error) {
	if ranks < 1 || ranks > maxRanks {
		return nil, fmt.Errorf("draw a matrix of %d ranks: 1 to %d can be drawn; take the rows instead", ranks, maxRanks)
	}
	return &Matrix{ranks: ranks, cells: make([]int64, ranks*ranks)}, nil
}

// Add adds a value to a cell. It returns an error when there is no such rank or the value is negative.
func (m *Matrix) Add(src, dst, value int64) error {
	n := int64(m.ranks)
	if src < 0 || src >= n || dst < 0 || dst >= n || value < 0 {
		return fmt.Errorf("draw a matrix of %d ranks: value %d from rank %d to rank %d does not fit", n, value, src, dst)
	}
	m.cells[src*n+dst] += value
	return nil
}

// Formats are the endings of files that can be drawn.
func Formats() []string { return []string{"png", "svg", "pdf"} }

// FormatOf is the format that a file's name asks for.
func FormatOf(file string) string {
	return strings.ToLower(strings.TrimPrefix(filepath.Ext(file), "."))
}

// Known says whether a file's name has the ending of a format that can be drawn.
func Known(file string) error {
	for _, f := range Formats() {
		if FormatOf(file) == f {
			return nil
		}
	}
	return fmt.Errorf("draw %s: want a file name ending in .%s", file, strings.Join(Formats(), ", ."))
}

// Lengths are in pixels of a PNG; the other formats have the same proportions.
const (
	dpi        = 150
	sidePx     = 900  // least width of the matrix
	mostCells  = 2048 // wider matrices are drawn in blocks
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

func px(n float64) vg.Length { return vg.Length(n) * vg.Inch / dpi }

// layout is a matrix reduced to what is drawn.
type layout struct {
	m      *Matrix
	n      int // cells in a row
	block  int // ranks in a cell
	cellPx float64
	values []int64
	most   int64
}

// layOut reduces a matrix to at most mostCells cells in a row. A cell of several ranks has the greatest of their values, so
// that a single busy pair stays visible. Cells are whole pixels wide, so that none is blurred.
func (m *Matrix) layOut() *layout {
	l := &layout{m: m, block: (m.ranks + mostCells - 1) / mostCells}
	l.n = (m.ranks + l.block - 1) / l.block
	l.cellPx = math.Ceil(sidePx / float64(l.n))
	l.values = m.cells
	if l.block > 1 {
		l.values = make([]int64, l.n*l.n)
		for i, v := range m.cells {
			at := i/m.ranks/l.block*l.n + i%m.ranks/l.block
			l.values[at] = max(l.values[at], v)
		}
	}
	for _, v := range l.values {
		l.most = max(l.most, v)
	}
	return l
}

func (l *layout) sidePx() float64 { return float64(l.n) * l.cellPx }

// grey is the colour of a value: white for 0, then from light grey to black.
func (l *layout) grey(v int64) color.Gray {
	if v == 0 {
		return color.Gray{Y: 255}
	}
	return shade(float64(v) / float64(l.most))
}

// shade is the grey of a fraction of the greatest value.
func shade(f float64) color.Gray {
	return color.Gray{Y: uint8(math.Round(255 * lightest * (1 - f)))}
}

// canvas is what the three formats have in common.
type canvas interface {
	vg.CanvasSizer
	WriteTo(io.Writer) (int64, error)
}

// Draw writes the drawing to w in a format: png, svg or pdf.
func (m *Matrix) Draw(w io.Writer, format string) error {
	l := m.layOut()
	width, height := px(leftPx+l.sidePx()+rightPx), px(topPx+l.sidePx()+bottomPx)
	var c canvas
	switch format {
	case "png":
		img := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))
		l.draw(draw.New(img))
		l.paint(img.Image(), image.Pt(leftPx, topPx))
		c = vgimg.PngCanvas{Canvas: img}
	case "svg":
		c = vgsvg.New(width, height)
		l.draw(draw.New(c))
		l.cells(draw.New(c))
	case "pdf":
		c = vgpdf.New(width, height)
		l.draw(draw.New(c))
		l.cells(draw.New(c))
	default:
		return Known("a file of format " + format)
	}
	_, err := c.WriteTo(w)
	return err
}

// area is where the matrix lies.
func (l *layout) area() vg.Rectangle {
	return vg.Rectangle{
		Min: vg.Point{X: px(leftPx), Y: px(bottomPx)},
		Max: vg.Point{X: px(leftPx + l.sidePx()), Y: px(bottomPx + l.sidePx())},
	}
}

// draw draws everything but the cells.
func (l *layout) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	area := l.area()
	frame(c, area)
	l.rankAxes(c, area)
	l.scale(c, area)
	x := (area.Min.X + area.Max.X) / 2
	c.FillText(style(15, draw.XCenter, draw.YBottom), vg.Point{X: x, Y: area.Max.Y + px(58)}, fit(l.m.Title, 15, area.Size().X+px(rightPx)))
	c.FillText(style(9, draw.XCenter, draw.YBottom), vg.Point{X: x, Y: area.Max.Y + px(22)}, fit(l.m.Note, 9, area.Size().X))
}

// paint sets the pixels of the cells of a PNG, whose canvas would blur an image; at is their upper left corner.
func (l *layout) paint(img imagedraw.Image, at image.Point) {
	k := int(l.cellPx)
	for i, v := range l.values {
		corner := at.Add(image.Pt(i%l.n*k, i/l.n*k))
		imagedraw.Draw(img, image.Rectangle{Min: corner, Max: corner.Add(image.Pt(k, k))}, image.NewUniform(l.grey(v)), image.Point{}, imagedraw.Src)
	}
}

// cells draws the cells as rectangles, or, where they are many, as an image with several pixels for each.
func (l *layout) cells(c draw.Canvas) {
	if l.n <= vectorMost {
		l.rectangles(c)
		return
	}
	k := (imagePx + l.n - 1) / l.n
	img := image.NewGray(image.Rect(0, 0, l.n*k, l.n*k))
	for i, v := range l.values {
		corner := image.Pt(i%l.n*k, i/l.n*k)
		imagedraw.Draw(img, image.Rectangle{Min: corner, Max: corner.Add(image.Pt(k, k))}, image.NewUniform(l.grey(v)), image.Point{}, imagedraw.Src)
	}
	c.DrawImage(l.area(), img)
}

// rectangles draws one for each run of equal cells in a row. Neighbours overlap by a hair, or viewers show the paper between
// them.
func (l *layout) rectangles(c draw.Canvas) {
	area, cell, overlap := l.area(), px(l.cellPx), vg.Points(0.1)
	for y := range l.n {
		top := area.Max.Y - vg.Length(y)*cell
		row := l.values[y*l.n : (y+1)*l.n]
		for x := 0; x < l.n; {
			end := x + 1
			for end < l.n && row[end] == row[x] {
				end++
			}
			if row[x] != 0 {
				c.SetColor(l.grey(row[x]))
				c.Fill(vg.Rectangle{
					Min: vg.Point{X: area.Min.X + vg.Length(x)*cell, Y: max(area.Min.Y, top-cell-overlap)},
					Max: vg.Point{X: min(area.Max.X, area.Min.X+vg.Length(end)*cell+overlap), Y: top},
				}.Path())
			}
			x = end
		}
	}
}

// frame draws a line around r, outside it: a row of cells can be one pixel high.
func frame(c draw.Canvas, r vg.Rectangle) {
	c.SetColor(color.Black)
	c.SetLineWidth(px(2))
	r.Min, r.Max = r.Min.Sub(vg.Point{X: px(1), Y: px(1)}), r.Max.Add(vg.Point{X: px(1), Y: px(1)})
	c.Stroke(r.Path())
}

// rankAxes draws the ranks along two sides, as many as there is room for.
func (l *layout) rankAxes(c draw.Canvas, area vg.Rectangle) {
	cell := px(l.cellPx)
	down, across := style(10, draw.XRight, draw.YCenter), style(10, draw.XCenter, draw.YTop)
	for rank := 0; rank < l.m.ranks; rank += rankStep(l.m.ranks) {
		mid := (vg.Length(rank)/vg.Length(l.block) + 0.5) * cell
		x, y := area.Min.X+mid, area.Max.Y-mid
		c.StrokeLine2(tick(), area.Min.X-px(8), y, area.Min.X, y)
		c.StrokeLine2(tick(), x, area.Min.Y-px(8), x, area.Min.Y)
		c.FillText(down, vg.Point{X: area.Min.X - px(14), Y: y}, strconv.Itoa(rank))
		c.FillText(across, vg.Point{X: x, Y: area.Min.Y - px(14)}, strconv.Itoa(rank))
	}
	c.FillText(style(12, draw.XCenter, draw.YBottom), vg.Point{X: (area.Min.X + area.Max.X) / 2, Y: px(30)}, "destination")
	turned := style(12, draw.XCenter, draw.YTop)
	turned.Rotation = math.Pi / 2
	c.FillText(turned, vg.Point{X: px(30), Y: (area.Min.Y + area.Max.Y) / 2}, "source")
}

// rankStep is the distance of the ranks that are written at an axis: a power of two, because numbers of ranks mostly are.
func rankStep(ranks int) int {
	step := 1
	for ranks/step > 16 {
		step *= 2
	}
	return step
}

// scale draws the bar that says how dark how much is.
func (l *layout) scale(c draw.Canvas, area vg.Rectangle) {
	bar := vg.Rectangle{
		Min: vg.Point{X: area.Max.X + px(barGapPx), Y: area.Min.Y},
		Max: vg.Point{X: area.Max.X + px(barGapPx+barPx), Y: area.Max.Y},
	}
	label := style(10, draw.XLeft, draw.YCenter)
	at := func(v float64) vg.Length { return bar.Min.Y + bar.Size().Y*vg.Length(v/float64(l.most)) }
	put := func(v float64, s string) {
		c.StrokeLine2(tick(), bar.Max.X, at(v), bar.Max.X+px(8), at(v))
		c.FillText(label, vg.Point{X: bar.Max.X + px(14), Y: at(v)}, s)
	}
	if l.most == 0 {
		frame(c, bar)
		c.FillText(label, vg.Point{X: bar.Max.X + px(14), Y: bar.Min.Y}, "no "+l.m.Value)
		return
	}
	const steps = 256
	for i := range steps {
		c.SetColor(shade(float64(i+1) / steps))
		c.Fill(vg.Rectangle{Min: vg.Point{X: bar.Min.X, Y: bar.Min.Y + bar.Size().Y*vg.Length(i)/steps},
			Max: vg.Point{X: bar.Max.X, Y: bar.Max.Y}}.Path())
	}
	frame(c, bar)
	step := niceStep(float64(l.most) / 5)
	for v := 0.0; v < float64(l.most)-step/3; v += step {
		put(v, short(v))
	}
	put(float64(l.most), strconv.FormatInt(l.most, 10))
	c.FillText(style(10, draw.XLeft, draw.YBottom), vg.Point{X: bar.Min.X, Y: bar.Max.Y + px(22)}, l.m.Value)
}

// niceStep is the least of 1, 2, 5, 10, 20, 50, ... that is at least v.
func niceStep(v float64) float64 {
	if v <= 1 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if f*power >= v {
			return f * power
		}
	}
	return 10 * power
}

// short is a round number with a decimal prefix.
func short(v float64) string {
	prefixes := []string{"", " k", " M", " G", " T", " P", " E"}
	i := 0
	for v >= 1000 && i < len(prefixes)-1 {
		v /= 1000
		i++
	}
	return strconv.FormatFloat(v, 'f', -1, 64) + prefixes[i]
}

// fit shortens a line of text to a width.
func fit(s string, points float64, width vg.Length) string {
	sty := style(points, draw.XCenter, draw.YBottom)
	if sty.Width(s) <= width {
		return s
	}
	r := []rune(s)
	for len(r) > 1 && sty.Width(string(r)+"...") > width {
		r = r[:len(r)-1]
	}
	return string(r) + "..."
}

func tick() draw.LineStyle {
	return draw.LineStyle{Color: color.Black, Width: px(2)}
}

func style(points float64, x draw.XAlignment, y draw.YAlignment) draw.TextStyle {
	return draw.TextStyle{
		Color: color.Black, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(points)},
		XAlign: x, YAlign: y,
		Handler: text.Plain{Fonts: font.NewCache(liberation.Collection())},
	}
}
