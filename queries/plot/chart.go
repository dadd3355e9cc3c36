package plot

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Chart is a drawing of numbers along an axis: bars, lines or points. What has no number (NaN) is left out.
type Chart struct {
	// Title stands over the chart, Note in small letters under it.
	Title, Note string
	// Kind is bars (stacked), grouped (bars side by side), ranges (bars between two values, of one series), lines, points, or bands: of each rank
	// Y, the first on top, bars from X to To, the later ones over those before.
	Kind string
	// X and Y are the axes.
	X, Y Axis
	// Series is what tells the series apart: it stands over the legend.
	Series string
	// Order has the names of series that come first, in their order. The others follow as they were added, or, where all are
	// numbers, from the least.
	Order []string
	// Fit is what the curves are called in the legend; "" when there are none.
	Fit string
	// Greys are the series of bands that are grey, which come last in the legend.
	Greys []string

	values []Value
}

// Axis is an axis of a chart.
type Axis struct {
	// Name is what it has the values of.
	Name string
	// Unit is ns, bytes, elements, or anything else for a plain number.
	Unit string
	// Log says that it is logarithmic. What is not above 0 is left out then, and the note says how much that is.
	Log bool
	// Whole says that all values are integers.
	Whole bool
}

// Value is a number of a chart.
type Value struct {
	// Group is the group of bars it belongs to, Category the bar; of lines and points they mean nothing.
	Group, Category string
	// Series is the part of a bar, the bar in a category, the line or the kind of point.
	Series string
	// X is where lines and points are; bars are in the order in which their categories were added.
	X float64
	// Y is the number; NaN where there is none.
	Y float64
	// Fit is the height of a curve at X; NaN where there is none.
	Fit float64
	// To is the other end of a range.
	To float64
}

// Add adds a value. Bars of the same category and series are summed.
func (c *Chart) Add(v Value) { c.values = append(c.values, v) }

// Lengths are in pixels of a PNG.
const (
	chartPx     = 1100 // width of the area
	chartHighPx = 700
	chartTopPx  = 170 // with room for the names of groups
	markPx      = 8   // length of a tick
	rowPx       = 30  // height of a line of the legend
	mostLabels  = 40  // letters of a category
	mostBars    = 1000
)

// Draw writes the drawing to w in a format: png, svg or pdf.
func (c *Chart) Draw(w io.Writer, format string) error {
	p := c.layOut()
	out, _, err := newCanvas(format, p.left+chartPx+p.right, chartTopPx+chartHighPx+p.bottom)
	if err != nil {
		return err
	}
	p.area = vg.Rectangle{Min: vg.Point{X: px(p.left), Y: px(p.bottom)}, Max: vg.Point{X: px(p.left + chartPx), Y: px(p.bottom + chartHighPx)}}
	p.draw(draw.New(out))
	_, err = out.WriteTo(w)
	return err
}

// page is a chart laid out.
type page struct {
	*Chart
	names               []string // of the series, in the order of the legend
	slots               []*slot  // of bars
	x, y                scale
	xTicks, yTicks      []mark
	turned              bool // the labels of x are upright
	every               int  // of bands: of how many ranks one is drawn
	left, right, bottom float64
	area                vg.Rectangle
	note                string
}

// slot is a category of bars.
type slot struct {
	group, category string
	at              float64   // its middle on the axis x
	y               []float64 // by series
	to              float64   // of a range
}

// mark is a tick of an axis; one without a label is short.
type mark struct {
	at    float64
	label string
}

func (c *Chart) bars() bool { return c.Kind == "bars" || c.Kind == "grouped" || c.Kind == "ranges" }

func (c *Chart) layOut() *page {
	p := &page{Chart: c, note: c.Note}
	p.dropLogs()
	p.nameSeries()
	if c.bars() {
		p.dropEmpty()
	}
	if c.bars() {
		p.fillSlots()
	}
	if p.Kind == "bands" {
		p.scaleBands()
	} else {
		p.scaleX()
		p.scaleY()
	}
	p.fitLabels()
	return p
}

// dropLogs leaves out what a logarithmic axis cannot show.
func (p *page) dropLogs() {
	if !p.X.Log && !p.Y.Log {
		return
	}
	chart, dropped := *p.Chart, 0
	chart.values = nil
	for _, v := range p.values {
		if p.X.Log && !p.bars() && v.X <= 0 || p.Y.Log && v.Y <= 0 {
			dropped++
			continue
		}
		if p.Y.Log && v.Fit <= 0 {
			v.Fit = math.NaN()
		}
		chart.values = append(chart.values, v)
	}
	if p.Chart = &chart; dropped > 0 {
		p.say(fmt.Sprintf("%d values of 0 or less are not drawn", dropped))
	}
}

// dropEmpty leaves series out of the legend and the bars that have nothing but 0: all of them where bars are stacked; of bars
// side by side, whose places tell them apart too, those before the first and after the last that has more.
func (p *page) dropEmpty() {
	some := map[string]bool{}
	for _, v := range p.values {
		some[v.Series] = some[v.Series] || v.Y != 0 && !math.IsNaN(v.Y)
	}
	empty := func(name string) bool { return !some[name] }
	if !slices.ContainsFunc(p.names, func(name string) bool { return some[name] }) {
		return
	}
	all := p.names
	if p.Kind == "bars" {
		p.names = slices.DeleteFunc(slices.Clone(all), empty)
	} else {
		first := slices.IndexFunc(all, func(name string) bool { return some[name] })
		last := len(all) - 1
		for ; empty(all[last]); last-- {
		}
		p.names = all[first : last+1]
	}
	if len(p.names) == len(all) {
		return
	}
	kept := indexes(p.names)
	chart := *p.Chart
	chart.values = slices.Clone(p.values)
	for i := range chart.values { // the category stays
		if _, ok := kept[chart.values[i].Series]; !ok {
			chart.values[i].Series, chart.values[i].Y = p.names[0], math.NaN()
		}
	}
	p.Chart = &chart
}

// say adds to the note.
func (p *page) say(s string) {
	if p.note != "" {
		p.note += "; "
	}
	p.note += s
}

// nameSeries lists the series in the order of the legend.
func (p *page) nameSeries() {
	p.names = distinct(p.values, func(v Value) string { return v.Series })
	number := func(s string) float64 {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return math.NaN()
		}
		return x
	}
	if p.Order != nil {
		first := func(s string) int {
			if i := slices.Index(p.Order, s); i >= 0 {
				return i
			}
			return len(p.Order)
		}
		slices.SortStableFunc(p.names, func(a, b string) int { return first(a) - first(b) })
	} else if !slices.ContainsFunc(p.names, func(s string) bool { return math.IsNaN(number(s)) }) {
		slices.SortFunc(p.names, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	}
}

func distinct(values []Value, of func(Value) string) []string {
	var names []string
	seen := map[string]bool{}
	for _, v := range values {
		if s := of(v); !seen[s] {
			seen[s] = true
			names = append(names, s)
		}
	}
	return names
}

// indexes is where each name stands.
func indexes(names []string) map[string]int {
	at := map[string]int{}
	for i, n := range names {
		at[n] = i
	}
	return at
}

// groupGap is the distance of groups of bars, in widths of a category.
const groupGap = 0.7

// fillSlots collects the bars and puts them along the axis x, group by group.
func (p *page) fillSlots() {
	type key struct{ group, category string }
	slots, series := map[key]*slot{}, indexes(p.names)
	for _, v := range p.values {
		k := key{v.Group, v.Category}
		s := slots[k]
		if s == nil {
			s = &slot{group: v.Group, category: v.Category, to: v.To, y: make([]float64, len(p.names))}
			for i := range s.y {
				s.y[i] = math.NaN()
			}
			slots[k] = s
			p.slots = append(p.slots, s)
		}
		if i := series[v.Series]; math.IsNaN(s.y[i]) {
			s.y[i] = v.Y
		} else if !math.IsNaN(v.Y) {
			s.y[i] += v.Y
		}
	}
	groups := indexes(distinct(p.values, func(v Value) string { return v.Group }))
	slices.SortStableFunc(p.slots, func(a, b *slot) int { return groups[a.group] - groups[b.group] })
	p.thinSlots()
	for i, s := range p.slots {
		s.at = float64(i) + groupGap*float64(groups[s.group])
	}
}

// thinSlots keeps, where there are more bars than can be seen, the highest of each few neighbours.
func (p *page) thinSlots() {
	if len(p.slots) <= mostBars {
		return
	}
	each := (len(p.slots) + mostBars - 1) / mostBars
	var kept []*slot
	for some := range slices.Chunk(p.slots, each) {
		kept = append(kept, slices.MaxFunc(some, func(a, b *slot) int { return cmp.Compare(a.total(), b.total()) }))
	}
	p.say(fmt.Sprintf("of every %d bars of %d the highest", each, len(p.slots)))
	p.slots = kept
}

// total is the height of all bars of a category.
func (s *slot) total() float64 {
	sum := 0.0
	for _, y := range s.y {
		if !math.IsNaN(y) {
			sum += math.Abs(y)
		}
	}
	return sum
}

// extent is the least and the greatest of numbers, +Inf and -Inf where there is none.
type extent struct{ least, most float64 }

func nothing() extent { return extent{math.Inf(1), math.Inf(-1)} }

func (e *extent) add(v float64) {
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		e.least, e.most = min(e.least, v), max(e.most, v)
	}
}

func (p *page) scaleX() {
	if p.bars() {
		last := 0.0
		if n := len(p.slots); n > 0 {
			last = p.slots[n-1].at
		}
		p.x = scale{least: -0.6, most: last + 0.6}
		if len(p.slots) > 0 && p.slots[0].group != p.slots[len(p.slots)-1].group {
			p.x = scale{least: -0.5 - groupGap/2, most: last + 0.5 + groupGap/2}
		}
		for _, s := range p.slots {
			p.xTicks = append(p.xTicks, mark{s.at, fitLetters(s.category)})
		}
		return
	}
	e := nothing()
	for _, v := range p.values {
		e.add(v.X)
	}
	p.x = scaleOf(e, p.X.Log, false)
	p.xTicks = p.x.ticks(p.X)
	if own := p.ownTicks(); p.X.Log && own != nil {
		p.xTicks = own
	}
}

// ownTicks are ticks at the values themselves, where they are few integers without a unit, such as numbers of ranks.
func (p *page) ownTicks() []mark {
	if p.X.Unit == "bytes" || p.X.Unit == "ns" {
		return nil
	}
	var xs []float64
	for _, v := range p.values {
		if !slices.Contains(xs, v.X) {
			xs = append(xs, v.X)
		}
		if len(xs) > 12 || v.X != math.Trunc(v.X) {
			return nil
		}
	}
	slices.Sort(xs)
	marks := make([]mark, len(xs))
	for i, x := range xs {
		marks[i] = mark{x, withUnit(x, p.X.Unit)}
	}
	return marks
}

func (p *page) scaleY() {
	e := nothing()
	if p.bars() {
		for _, s := range p.slots {
			up, down := 0.0, 0.0
			for _, y := range s.y {
				e.add(y)
				if y > 0 {
					up += y
				} else if y < 0 {
					down += y
				}
			}
			switch p.Kind {
			case "bars":
				e.add(up)
				e.add(down)
			case "ranges":
				e.add(s.to)
			}
		}
	}
	if !p.bars() {
		for _, v := range p.values {
			e.add(v.Y)
			e.add(v.Fit)
		}
	}
	p.y = scaleOf(e, p.Y.Log, p.bars() && p.Kind != "ranges")
	p.yTicks = p.y.ticks(p.Y)
}

// fitLetters shortens a category.
func fitLetters(s string) string {
	if r := []rune(s); len(r) > mostLabels {
		return string(r[:mostLabels-3]) + "..."
	}
	return s
}

// labels is the style of the numbers along the axes.
func labels(x draw.XAlignment, y draw.YAlignment) draw.TextStyle { return style(10, x, y) }

// fitLabels turns the labels of x where they would meet, leaves some out where that is not enough, and makes room for them,
// for those of y and for the legend.
func (p *page) fitLabels() {
	sty := labels(draw.XCenter, draw.YTop)
	width := func(s string) float64 { return inPx(sty.Width(s)) }
	wide := 0.0
	for _, m := range p.yTicks {
		wide = max(wide, width(m.label))
	}
	p.left = math.Ceil(70 + wide + 30)
	p.right = math.Ceil(60 + p.legendPx())
	at := func(m mark) float64 { return p.x.at(m.at) * chartPx }
	high := 22.0
	if p.bars() && meet(p.xTicks, at, width) {
		p.turned = true
		for _, m := range p.xTicks {
			high = max(high, width(m.label))
		}
	}
	room := func(s string) float64 {
		if p.turned {
			return 22
		}
		return width(s)
	}
	every := 1
	for all := p.xTicks; meet(p.xTicks, at, room); every++ {
		p.xTicks = nil
		for i, m := range all {
			if i%(every+1) != 0 {
				if p.bars() {
					continue
				}
				m.label = ""
			}
			p.xTicks = append(p.xTicks, m)
		}
	}
	p.bottom = math.Ceil(20 + high + 75)
}

// meet says whether two labels of an axis touch.
func meet(marks []mark, at func(mark) float64, width func(string) float64) bool {
	end := math.Inf(-1)
	for _, m := range marks {
		if m.label == "" {
			continue
		}
		half := width(m.label)/2 + 5
		if at(m)-half < end {
			return true
		}
		end = at(m) + half
	}
	return false
}

func (p *page) draw(c draw.Canvas) {
	switch {
	case p.Kind == "bands":
		p.drawBands(c)
	case p.bars():
		p.grid(c)
		p.drawBars(c)
	default:
		p.grid(c)
		p.drawSeries(c)
	}
	p.drawGroups(c)
	frame(c, p.area)
	p.axes(c)
	p.legend(c)
	more := p.right
	title := p.area
	title.Max.Y += px(chartTopPx - topPx)
	head(c, title, p.Title, p.note, more)
	if len(p.values) == 0 {
		c.FillText(style(12, draw.XCenter, draw.YCenter), vg.Point{X: (p.area.Min.X + p.area.Max.X) / 2, Y: (p.area.Min.Y + p.area.Max.Y) / 2}, "nothing to draw")
	}
}

// toX and toY are where values lie on the page.
func (p *page) toX(v float64) vg.Length {
	return p.area.Min.X + p.area.Size().X*vg.Length(p.x.at(v))
}

func (p *page) toY(v float64) vg.Length {
	return p.area.Min.Y + p.area.Size().Y*vg.Length(p.y.at(v))
}

func (p *page) grid(c draw.Canvas) {
	line := draw.LineStyle{Color: color.Gray{Y: 225}, Width: px(1)}
	for _, m := range p.yTicks {
		if m.label != "" {
			c.StrokeLine2(line, p.area.Min.X, p.toY(m.at), p.area.Max.X, p.toY(m.at))
		}
	}
	if p.y.least < 0 && !p.y.log {
		c.StrokeLine2(draw.LineStyle{Color: color.Gray{Y: 120}, Width: px(1)}, p.area.Min.X, p.toY(0), p.area.Max.X, p.toY(0))
	}
}

func (p *page) axes(c draw.Canvas) {
	length := func(m mark) vg.Length {
		if m.label == "" {
			return px(markPx / 2)
		}
		return px(markPx)
	}
	across := labels(draw.XCenter, draw.YTop)
	if p.turned {
		across = labels(draw.XRight, draw.YCenter)
		across.Rotation = math.Pi / 2
	}
	for _, m := range p.xTicks {
		x := p.toX(m.at)
		c.StrokeLine2(tick(), x, p.area.Min.Y-length(m), x, p.area.Min.Y)
		c.FillText(across, vg.Point{X: x, Y: p.area.Min.Y - px(14)}, m.label)
	}
	down := labels(draw.XRight, draw.YCenter)
	for _, m := range p.yTicks {
		y := p.toY(m.at)
		c.StrokeLine2(tick(), p.area.Min.X-length(m), y, p.area.Min.X, y)
		c.FillText(down, vg.Point{X: p.area.Min.X - px(14), Y: y}, m.label)
	}
	c.FillText(style(12, draw.XCenter, draw.YBottom), vg.Point{X: (p.area.Min.X + p.area.Max.X) / 2, Y: px(20)}, p.X.Name)
	upright := style(12, draw.XCenter, draw.YTop)
	upright.Rotation = math.Pi / 2
	c.FillText(upright, vg.Point{X: px(20), Y: (p.area.Min.Y + p.area.Max.Y) / 2}, p.Y.Name)
}

// drawGroups parts the groups of bars by lines and names them over the area.
func (p *page) drawGroups(c draw.Canvas) {
	for i := 0; i < len(p.slots); {
		end := i
		for end+1 < len(p.slots) && p.slots[end+1].group == p.slots[i].group {
			end++
		}
		first, last := p.toX(p.slots[i].at-0.5), p.toX(p.slots[end].at+0.5)
		if name := p.slots[i].group; name != "" {
			c.FillText(style(10, draw.XCenter, draw.YBottom), vg.Point{X: (first + last) / 2, Y: p.area.Max.Y + px(12)}, fit(name, 10, last-first+p.toX(groupGap)-p.toX(0)))
		}
		if end+1 < len(p.slots) {
			x := (last + p.toX(p.slots[end+1].at-0.5)) / 2
			c.StrokeLine2(draw.LineStyle{Color: color.Gray{Y: 160}, Width: px(1)}, x, p.area.Min.Y, x, p.area.Max.Y)
		}
		i = end + 1
	}
}
