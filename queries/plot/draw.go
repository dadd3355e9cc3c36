// Package plot draws answers: the matrices of communication as Riesen's figures do (the source down, the destination across,
// darker is more, white is none), and bars, lines and points.
package plot

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Drawing is what can be written as a picture.
type Drawing interface {
	// Draw writes the picture to w in a format: png, svg or pdf.
	Draw(w io.Writer, format string) error
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

// dpi makes lengths in pixels of a PNG; the other formats have the same proportions.
const dpi = 150

func px(n float64) vg.Length { return vg.Length(n) * vg.Inch / dpi }

// inPx is a length in pixels.
func inPx(l vg.Length) float64 { return float64(l / vg.Inch * dpi) }

// canvas is what the three formats have in common.
type canvas interface {
	vg.CanvasSizer
	WriteTo(io.Writer) (int64, error)
}

// newCanvas makes a white canvas of a format; img is that of a PNG, else nil.
func newCanvas(format string, widthPx, heightPx float64) (c canvas, img *vgimg.Canvas, err error) {
	width, height := px(widthPx), px(heightPx)
	switch format {
	case "png":
		img = vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))
		c = pngCanvas{img}
	case "svg":
		c = vgsvg.New(width, height)
	case "pdf":
		c = vgpdf.New(width, height)
	default:
		return nil, nil, Known("a file of format " + format)
	}
	c.SetColor(color.White)
	c.Fill(vg.Rectangle{Max: vg.Point{X: width, Y: height}}.Path())
	return c, img, nil
}

// pngCanvas writes a picture of at most 256 colours with a palette, as most are: a third of the size, and the same pixels.
type pngCanvas struct{ *vgimg.Canvas }

// WriteTo writes the picture.
func (c pngCanvas) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	var img image.Image = c.Image()
	if few := withPalette(img); few != nil {
		img = few
	}
	if err := png.Encode(&b, img); err != nil {
		return 0, err
	}
	return b.WriteTo(w)
}

// withPalette is a picture with a palette of its own colours; nil where they are too many.
func withPalette(img image.Image) *image.Paletted {
	all := img.Bounds()
	to := image.NewPaletted(all, nil)
	at := map[color.RGBA]uint8{}
	var before color.RGBA // the pixel before has mostly the same
	var i uint8
	for y := all.Min.Y; y < all.Max.Y; y++ {
		for x := all.Min.X; x < all.Max.X; x++ {
			c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
			if c != before || len(at) == 0 {
				known := false
				if i, known = at[c]; !known {
					if len(at) == 256 {
						return nil
					}
					i = uint8(len(at))
					at[c] = i
					to.Palette = append(to.Palette, c)
				}
				before = c
			}
			to.Pix[to.PixOffset(x, y)] = i
		}
	}
	return to
}

// frame draws a line around r, outside it: a row of cells can be one pixel high.
func frame(c draw.Canvas, r vg.Rectangle) {
	c.SetLineStyle(tick())
	r.Min, r.Max = r.Min.Sub(vg.Point{X: px(1), Y: px(1)}), r.Max.Add(vg.Point{X: px(1), Y: px(1)})
	c.Stroke(r.Path())
}

// head draws the title and the note over an area; the title has room over more of the width.
func head(c draw.Canvas, area vg.Rectangle, title, note string, more float64) {
	x := (area.Min.X + area.Max.X) / 2
	c.FillText(style(15, draw.XCenter, draw.YBottom), vg.Point{X: x, Y: area.Max.Y + px(58)}, fit(title, 15, area.Size().X+px(more)))
	c.FillText(style(9, draw.XCenter, draw.YBottom), vg.Point{X: x, Y: area.Max.Y + px(22)}, fit(note, 9, area.Size().X+px(more)))
}

// niceStep is the least of ..., 0.1, 0.2, 0.5, 1, 2, 5, 10, ... that is at least v.
func niceStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if f*power >= v*(1-1e-9) {
			return f * power
		}
	}
	return 10 * power
}

// short is a number with a decimal prefix.
func short(v float64) string {
	prefixes := []string{"", " k", " M", " G", " T", " P", " E"}
	i := 0
	for math.Abs(v) >= 1000 && i < len(prefixes)-1 {
		v /= 1000
		i++
	}
	return strconv.FormatFloat(v, 'g', 6, 64) + prefixes[i]
}

// withUnit is a number of a unit with a prefix: times in ns to s, bytes with B, others as they are.
func withUnit(v float64, unit string) string {
	switch {
	case v == 0 || unit != "ns" && unit != "bytes" && unit != "bytes/s":
		return short(v)
	case unit != "ns":
		b := strings.Replace(unit, "bytes", "B", 1)
		if math.Abs(v) < 1000 {
			b = " " + b
		}
		return short(v) + b
	}
	units := []string{" ns", " us", " ms", " s"}
	i := 0
	for math.Abs(v) >= 1000 && i < len(units)-1 {
		v /= 1000
		i++
	}
	return strconv.FormatFloat(v, 'g', 6, 64) + units[i]
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

var fonts = font.NewCache(liberation.Collection())

func style(points float64, x draw.XAlignment, y draw.YAlignment) draw.TextStyle {
	return draw.TextStyle{
		Color: color.Black, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(points)},
		XAlign: x, YAlign: y,
		Handler: oneLine{text.Plain{Fonts: fonts}},
	}
}

// oneLine writes texts that come from programs: what is no letter or sign, as a line break or the codes that drive a terminal,
// becomes the sign for that. An SVG with it would be none, and a line break would write over what stands below.
type oneLine struct{ text.Plain }

func (h oneLine) Lines(s string) []string { return []string{signs(s)} }

func (h oneLine) Box(s string, f font.Font) (width, height, depth vg.Length) {
	return h.Plain.Box(signs(s), f)
}

func (h oneLine) Draw(c vg.Canvas, s string, sty text.Style, pt vg.Point) {
	h.Plain.Draw(c, signs(s), sty, pt)
}

// signs is a text with the replacement character in place of each that cannot be seen.
func signs(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
