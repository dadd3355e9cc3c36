package plot

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
)

// bandRows is the largest number of ranks with a row each: with more, a row would have less than two pixels.
const bandRows = chartHighPx / 2

// scaleBands sets up the axes of bands and leaves out ranks if there are too many.
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

// thinRanks keeps the first of every few ranks and draws it as high as all of them.
func (p *page) thinRanks(ranks int) {
	p.every = (ranks + bandRows - 1) / bandRows
	if p.every <= 1 {
		p.every = 1
		return
	}
	chart := *p.Chart
	chart.values = slices.DeleteFunc(slices.Clone(p.values), func(v Value) bool { return int(v.Y)%p.every != 0 })
	p.Chart = &chart
	p.addNote(fmt.Sprintf("of every %d ranks the first", p.every))
}

// drawBands draws bands at least a pixel wide, so that short ones are visible.
func (d *painter) drawBands() {
	series := indexes(d.page.names)
	gap := 0.1 // fraction of a row, on both sides
	if len(d.page.yTicks) > 0 && d.page.area.Size().Y/vg.Length(d.page.y.least+0.5) < px(6) {
		gap = 0
	}
	for _, v := range d.page.values {
		top, bottom := v.Y-0.5+gap, min(v.Y+float64(d.page.every)-0.5-gap, d.page.y.least)
		left, right := math.Floor(inPx(d.page.toX(v.X))), math.Ceil(inPx(d.page.toX(v.To)))
		if right <= left {
			right = left + 1
		}
		r := vg.Rectangle{Min: vg.Point{X: px(left), Y: d.page.toY(bottom)},
			Max: vg.Point{X: min(px(right), d.page.area.Max.X), Y: d.page.toY(top)}}
		if gap == 0 { // whole pixels, or pale lines appear between ranks
			r.Min.Y, r.Max.Y = px(math.Floor(inPx(r.Min.Y))), px(math.Ceil(inPx(r.Max.Y)))
		}
		d.canvas.SetColor(d.page.colour(series[v.Series]))
		d.canvas.Fill(r.Path())
	}
}
