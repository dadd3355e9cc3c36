package plot

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Options are how a picture is written.
type Options struct {
	// Format is png, svg or pdf.
	Format string
	// Theme is one of Themes; "" means light.
	Theme string
	// Colours is one of ColourScales; "" means auto. Only matrices of amounts have a choice.
	Colours string
	// Quick compresses a PNG less, which takes less time: it is a few per cent larger.
	Quick bool
}

// ColourScales lists how a matrix gets its colours: by the value, by its logarithm, or, with auto, by its logarithm if
// the greatest value is a hundred times the least above 0.
func ColourScales() []string { return []string{"auto", "linear", "log"} }

// Themes lists the themes: dark ink on white paper, and the reverse.
func Themes() []string { return []string{light.name, dark.name} }

// KnownTheme returns an error unless there is a theme of that name.
func KnownTheme(name string) error {
	if name != "" && !slices.Contains(Themes(), name) {
		return fmt.Errorf("theme %q: want %s", name, strings.Join(Themes(), " or "))
	}
	return nil
}

func themeOf(name string) *theme {
	if name == dark.name {
		return &dark
	}
	return &light
}

// theme has the colours of everything in a picture.
type theme struct {
	name string
	// paper is the background, ink the colour of text and axes.
	paper, ink color.RGBA
	// grid is for lines behind the data, outline for those around bars, divider for those between groups.
	grid, outline, divider color.RGBA
	// muted are the colours of bands that should attract no attention.
	muted [2]color.RGBA
	// hues are the colours of series that have no order.
	hues [8]color.RGBA
	// more and less are the ends of the scale of differences.
	more, less color.RGBA
}

func grey(y uint8) color.RGBA { return color.RGBA{y, y, y, 255} }

// The colours of Okabe and Ito (Color Universal Design, 2008), which people with any colour blindness tell apart.
// Yellow comes late because it is pale on white, and the eighth colour is that of the ink.
var (
	blue      = color.RGBA{0x00, 0x72, 0xb2, 255}
	orange    = color.RGBA{0xe6, 0x9f, 0x00, 255}
	green     = color.RGBA{0x00, 0x9e, 0x73, 255}
	vermilion = color.RGBA{0xd5, 0x5e, 0x00, 255}
	sky       = color.RGBA{0x56, 0xb4, 0xe9, 255}
	purple    = color.RGBA{0xcc, 0x79, 0xa7, 255}
	yellow    = color.RGBA{0xf0, 0xe4, 0x42, 255}
)

var (
	light = theme{name: "light", paper: grey(255), ink: grey(0), grid: grey(225), outline: grey(60), divider: grey(160),
		muted: [...]color.RGBA{grey(165), grey(225)},
		hues:  [...]color.RGBA{blue, orange, green, vermilion, sky, purple, yellow, grey(60)},
		more:  color.RGBA{0xb2, 0x18, 0x2b, 255}, less: color.RGBA{0x21, 0x66, 0xac, 255}}
	dark = theme{name: "dark", paper: grey(24), ink: grey(235), grid: grey(60), outline: grey(200), divider: grey(110),
		muted: [...]color.RGBA{grey(105), grey(58)},
		hues:  [...]color.RGBA{sky, orange, green, vermilion, blue, purple, yellow, grey(215)},
		more:  color.RGBA{0xf4, 0x8a, 0x62, 255}, less: color.RGBA{0x67, 0xb4, 0xe8, 255}}
)

// anchors are colours of the viridis scale. Its lightness rises evenly, so it works for colour-blind readers and in
// grey prints.
var anchors = [...]color.RGBA{
	{0x44, 0x01, 0x54, 255}, {0x46, 0x32, 0x7e, 255}, {0x36, 0x5c, 0x8d, 255}, {0x27, 0x7f, 0x8e, 255},
	{0x1f, 0xa1, 0x87, 255}, {0x4a, 0xc1, 0x6d, 255}, {0xa0, 0xda, 0x39, 255}, {0xfd, 0xe7, 0x25, 255},
}

// viridis returns the colour at a fraction of the scale, dark to light.
func viridis(f float64) color.RGBA {
	at := min(max(f, 0), 1) * float64(len(anchors)-1)
	k := min(int(at), len(anchors)-2)
	return mix(anchors[k], anchors[k+1], at-float64(k))
}

// mix returns the colour at a fraction of the way from a to b.
func mix(a, b color.RGBA, f float64) color.RGBA {
	of := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + f*(float64(b)-float64(a)))) }
	return color.RGBA{of(a.R, b.R), of(a.G, b.G), of(a.B, b.B), 255}
}

// shades is the number of colours of a scale: more cannot be told apart, and would not fit the palette of a PNG.
const shades = 160

// shade returns the colour of an amount, a fraction of the scale: the more, the farther from the paper.
func (t *theme) shade(f float64) color.RGBA {
	f = math.Round(f*shades) / shades
	if t.paper.R < 128 {
		return viridis(0.12 + 0.88*f)
	}
	return viridis(0.97 * (1 - f))
}

// faintest is the part of its colour that the least difference has.
const faintest = 0.1

// difference returns the colour of a fraction, -1 to 1, of the greatest difference: on white paper ColorBrewer's RdBu,
// which red-green blind readers can tell apart.
func (t *theme) difference(f float64) color.RGBA {
	end := t.more
	if f < 0 {
		f, end = -f, t.less
	}
	return mix(t.paper, end, faintest+(1-faintest)*math.Round(f*shades)/shades)
}

// ordered returns the colour of series i of n that have an order. thin is for lines and points, which need more
// contrast than areas.
func (t *theme) ordered(i, n int, thin bool) color.RGBA {
	least, most := 0.08, 0.9
	if thin {
		most = 0.82
	}
	if t.paper.R < 128 {
		least, most = 0.3, 1
	}
	if n <= 1 {
		return t.hues[0]
	}
	return viridis(least + (most-least)*float64(i)/float64(n-1))
}

// sheet is a canvas with a theme.
type sheet struct {
	draw.Canvas
	*theme
}

// write writes a line of text.
func (s sheet) write(sty draw.TextStyle, at vg.Point, text string) {
	sty.Color = s.ink
	s.FillText(sty, at, text)
}

// tick is the line style of axes.
func (s sheet) tick() draw.LineStyle { return draw.LineStyle{Color: s.ink, Width: px(2)} }

// thin returns a thin line of a colour.
func thin(c color.Color) draw.LineStyle { return draw.LineStyle{Color: c, Width: px(1)} }

// frame draws a line around r, outside of it because a row of cells can be one pixel high.
func (s sheet) frame(r vg.Rectangle) {
	s.SetLineStyle(s.tick())
	r.Min, r.Max = r.Min.Sub(vg.Point{X: px(1), Y: px(1)}), r.Max.Add(vg.Point{X: px(1), Y: px(1)})
	s.Stroke(r.Path())
}

// head writes title and note above an area; both may be wider by more.
func (s sheet) head(area vg.Rectangle, title, note string, more float64) {
	x := (area.Min.X + area.Max.X) / 2
	s.write(style(15, draw.XCenter, draw.YBottom), vg.Point{X: x, Y: area.Max.Y + px(58)},
		fit(title, 15, area.Size().X+px(more)))
	s.write(style(9, draw.XCenter, draw.YBottom), vg.Point{X: x, Y: area.Max.Y + px(22)},
		fit(note, 9, area.Size().X+px(more)))
}

// barTitle writes what a colour scale means along it, right of its numbers: smaller where the scale is short, and a bit
// beyond its ends.
func (s sheet) barTitle(bar vg.Rectangle, title string) {
	const (
		largest, smallest = 12.0, 9.0
		beyondPx          = 60
	)
	room := bar.Size().Y + px(beyondPx)
	points := largest
	for points > smallest && fit(title, points, room) != title {
		points--
	}
	upright := style(points, draw.XCenter, draw.YBottom)
	upright.Rotation = math.Pi / 2
	s.write(upright, vg.Point{X: bar.Min.X + px(rightPx-barGapPx-20), Y: (bar.Min.Y + bar.Max.Y) / 2},
		fit(title, points, room))
}

// outlineOf draws the line around a bar.
func (s sheet) outlineOf(r vg.Rectangle) {
	s.SetLineStyle(thin(s.outline))
	s.Stroke(r.Path())
}
