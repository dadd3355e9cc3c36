package plot

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	stddraw "image/draw"
	"image/png"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/encoding/charmap"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Drawing is a picture that can be written.
type Drawing interface {
	// Draw writes the picture to w.
	Draw(w io.Writer, o Options) error
}

// Formats lists the picture formats, which are also the endings of their files.
func Formats() []string { return []string{"png", "svg", "pdf"} }

// FormatOf returns the format for a file name.
func FormatOf(file string) string {
	return strings.ToLower(strings.TrimPrefix(filepath.Ext(file), "."))
}

// Known returns an error unless a file's name ends in a known format.
func Known(file string) error {
	for _, f := range Formats() {
		if FormatOf(file) == f {
			return nil
		}
	}
	return fmt.Errorf("draw %s: want a file name ending in .%s", file, strings.Join(Formats(), ", ."))
}

// dpi converts lengths to pixels of a PNG; the other formats have the same proportions.
const dpi = 150

func px(n float64) vg.Length { return vg.Length(n) * vg.Inch / dpi }

// inPx converts a length to pixels.
func inPx(l vg.Length) float64 { return float64(l / vg.Inch * dpi) }

// canvas is the part that the canvases of the three formats share.
type canvas interface {
	vg.CanvasSizer
	WriteTo(io.Writer) (int64, error)
}

// newSheet returns an empty sheet, which is drawn on, and its canvas, which is written; img is the canvas of a PNG,
// else nil.
func newSheet(o Options, widthPx, heightPx float64) (s sheet, c canvas, img *vgimg.Canvas, err error) {
	if err := KnownTheme(o.Theme); err != nil {
		return sheet{}, nil, nil, err
	}
	width, height := px(widthPx), px(heightPx)
	switch o.Format {
	case "png":
		img = vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))
		c = pngCanvas{img, png.BestCompression}
		if o.Quick {
			c = pngCanvas{img, png.DefaultCompression}
		}
	case "svg":
		c = vgsvg.New(width, height)
	case "pdf":
		c = pdfCanvas{vgpdf.New(width, height)}
	default:
		return sheet{}, nil, nil, Known("a file of format " + o.Format)
	}
	s = sheet{draw.New(c), themeOf(o.Theme)}
	if img != nil { // faster than filling the path, with the same pixels
		all := img.Image()
		stddraw.Draw(all, all.Bounds(), image.NewUniform(s.paper), image.Point{}, stddraw.Src)
		return s, c, img, nil
	}
	c.SetColor(s.paper)
	c.Fill(vg.Rectangle{Max: vg.Point{X: width, Y: height}}.Path())
	return s, c, img, nil
}

// pdfCanvas writes text in the encoding of its fonts, Windows-1252; letters that this lacks become question marks.
type pdfCanvas struct{ *vgpdf.Canvas }

// FillString writes a line of text.
func (c pdfCanvas) FillString(f font.Face, at vg.Point, s string) {
	var encoded []byte
	for _, r := range s {
		b, ok := charmap.Windows1252.EncodeRune(r)
		if !ok {
			b = '?'
		}
		encoded = append(encoded, b)
	}
	c.Canvas.FillString(f, at, string(encoded))
}

// pngCanvas writes pictures with a palette: a third of the size for nearly the same pixels.
type pngCanvas struct {
	*vgimg.Canvas
	level png.CompressionLevel
}

// WriteTo writes the picture.
func (c pngCanvas) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	var img image.Image = c.Image()
	if plain, ok := img.(*image.RGBA); ok {
		if few := withPalette(plain); few != nil {
			img = few
		}
	}
	e := png.Encoder{CompressionLevel: c.level}
	if err := e.Encode(&b, img); err != nil {
		return 0, err
	}
	return b.WriteTo(w)
}

// withPalette returns the picture with a palette of its 256 most frequent colours. Others, which are those of smoothed
// edges, become the nearest of them; nil if one has none near.
func withPalette(img *image.RGBA) *image.Paletted {
	counts := map[color.RGBA]int{}
	eachRun(img, func(_, _, n int, c color.RGBA) { counts[c] += n })
	all := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	const most, near = 256, 48
	frequent := all[:min(len(all), most)]
	at := map[color.RGBA]uint8{}
	to := image.NewPaletted(img.Bounds(), nil)
	for i, c := range frequent {
		at[c], to.Palette = uint8(i), append(to.Palette, c)
	}
	for _, c := range all[len(frequent):] {
		i := nearest(frequent, c)
		if distance(frequent[i], c) > near {
			return nil
		}
		at[c] = uint8(i)
	}
	eachRun(img, func(x, y, n int, c color.RGBA) {
		index, first := at[c], to.PixOffset(x, y)
		for i := range n {
			to.Pix[first+i] = index
		}
	})
	return to
}

// eachRun calls a function with each run of equal pixels in a row: where it begins and its length.
func eachRun(img *image.RGBA, use func(x, y, n int, c color.RGBA)) {
	all := img.Bounds()
	for y := all.Min.Y; y < all.Max.Y; y++ {
		row := img.Pix[img.PixOffset(all.Min.X, y):]
		pixel := func(x int) [4]byte { return [4]byte(row[4*x:]) }
		for begin, wide := 0, all.Dx(); begin < wide; {
			end := begin + 1
			for first := pixel(begin); end < wide && pixel(end) == first; {
				end++
			}
			p := row[4*begin:]
			use(all.Min.X+begin, y, end-begin, color.RGBA{p[0], p[1], p[2], p[3]})
			begin = end
		}
	}
}

// nearest returns the index of the colour that differs least.
func nearest(colours []color.RGBA, c color.RGBA) (best int) {
	for i := range colours {
		if distance(colours[i], c) < distance(colours[best], c) {
			best = i
		}
	}
	return best
}

// distance returns the sum of the differences of two colours in red, green and blue.
func distance(a, b color.RGBA) int {
	of := func(a, b uint8) int { return max(int(a), int(b)) - min(int(a), int(b)) }
	return of(a.R, b.R) + of(a.G, b.G) + of(a.B, b.B)
}

// niceStep returns the least of ..., 0.1, 0.2, 0.5, 1, 2, 5, 10, ... that is at least v.
func niceStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if f*power >= v*(1-1e-9) {
			return f * power
		}
	}
	return 10 * power
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

var fonts = font.NewCache(liberation.Collection())

func style(points float64, x draw.XAlignment, y draw.YAlignment) draw.TextStyle {
	return draw.TextStyle{
		Color: color.Black, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(points)},
		XAlign: x, YAlign: y,
		Handler: oneLine{text.Plain{Fonts: fonts}},
	}
}

// oneLine draws text that comes from programs. Line breaks and control codes are replaced: they would make an SVG
// invalid, and a line break would write over the lines below.
type oneLine struct{ text.Plain }

func (h oneLine) Lines(s string) []string { return []string{signs(s)} }

func (h oneLine) Box(s string, f font.Font) (width, height, depth vg.Length) {
	return h.Plain.Box(signs(s), f)
}

func (h oneLine) Draw(c vg.Canvas, s string, sty text.Style, pt vg.Point) {
	h.Plain.Draw(c, signs(s), sty, pt)
}

// signs replaces each invisible character by the replacement character.
func signs(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
