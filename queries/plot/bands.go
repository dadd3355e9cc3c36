package plot

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// greys are the colours of bands that are to be looked at last.
var greys = [...]color.Gray{{Y: 165}, {Y: 225}}

// bandRows is how many ranks have a row of their own: more have less than two pixels each.
const bandRows = chartHighPx / 2

// scaleBands makes the axes of bands, and leaves ranks out where there are too many.
func (p *page) scaleBands() {
	p.names = slices.DeleteFunc(p.names, func(s string) bool { return slices.Contains(p.Greys, s) })
	p.names = append(p.names, p.Greys...)
	across, ranks := nothing(), 0
	for _, v := range p.values {
		across.add(v.X)
		across.add(v.To)
		ranks = max(ranks, int(v.Y)+1)
	}
	p.thinRanks(ranks)
	if across.least > across.most {
		across = extent{0, 1}
	}
	p.x = scale{least: min(0, across.least), most: max(across.most, across.least+1)}
	p.xTicks = p.x.ticks(p.X)
	p.y = scale{least: float64(max(ranks, 1)) - 0.5, most: -0.5}
	for r, step := 0, rankStep(max(ranks, 1), 16); r < ranks; r += step {
		p.yTicks = append(p.yTicks, mark{float64(r), strconv.Itoa(r)})
	}
}

// thinRanks keeps of every few ranks the first, and draws it as high as all of them.
func (p *page) thinRanks(ranks int) {
	p.every = (ranks + bandRows - 1) / bandRows
	if p.every <= 1 {
		p.every = 1
		return
	}
	chart := *p.Chart
	chart.values = slices.DeleteFunc(slices.Clone(p.values), func(v Value) bool { return int(v.Y)%p.every != 0 })
	p.Chart = &chart
	p.say(fmt.Sprintf("of every %d ranks the first", p.every))
}

// drawBands draws the bands: whole pixels wide, or a short one would not be seen.
func (p *page) drawBands(c draw.Canvas) {
	series := indexes(p.names)
	gap := 0.1 // of a row, on both sides
	if len(p.yTicks) > 0 && p.area.Size().Y/vg.Length(p.y.least+0.5) < px(6) {
		gap = 0
	}
	for _, v := range p.values {
		top, bottom := v.Y-0.5+gap, min(v.Y+float64(p.every)-0.5-gap, p.y.least)
		left, right := math.Floor(inPx(p.toX(v.X))), math.Ceil(inPx(p.toX(v.To)))
		if right <= left {
			right = left + 1
		}
		r := vg.Rectangle{Min: vg.Point{X: px(left), Y: p.toY(bottom)}, Max: vg.Point{X: min(px(right), p.area.Max.X), Y: p.toY(top)}}
		if gap == 0 { // whole pixels here too, or there are pale lines between ranks
			r.Min.Y, r.Max.Y = px(math.Floor(inPx(r.Min.Y))), px(math.Ceil(inPx(r.Max.Y)))
		}
		c.SetColor(p.colour(series[v.Series]))
		c.Fill(r.Path())
	}
}
