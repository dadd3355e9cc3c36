package main

import (
	"image/color"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	marks "gonum.org/v1/plot/vg/draw"
)

// palette is the palette of Okabe and Ito, which colour-blind readers can tell apart, too.
var palette = []color.Color{
	color.RGBA{R: 0, G: 114, B: 178, A: 255}, color.RGBA{R: 213, G: 94, B: 0, A: 255},
	color.RGBA{R: 0, G: 158, B: 115, A: 255},
	color.RGBA{R: 204, G: 121, B: 167, A: 255}, color.RGBA{R: 230, G: 159, B: 0, A: 255},
	color.RGBA{R: 86, G: 180, B: 233, A: 255}, color.Black,
}

var glyphs = []marks.GlyphDrawer{marks.CircleGlyph{}, marks.BoxGlyph{}, marks.TriangleGlyph{}, marks.CrossGlyph{},
	marks.PlusGlyph{}}

// style gives the k-th line a colour and a mark; the first 35 combinations differ.
func style(l *plotter.Line, points *plotter.Scatter, k int) {
	l.Color, points.Color = palette[k%len(palette)], palette[k%len(palette)]
	l.Width = vg.Points(1.4)
	points.Shape, points.Radius = glyphs[k%len(glyphs)], vg.Points(3)
}
