package plot

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Chart draws numbers along an axis: bars, lines or points. Values without a number (NaN) are left out.
type Chart struct {
	// Title is above the chart, Note in small letters below the title.
	Title, Note string
	// Kind is bars (stacked), grouped (bars side by side), histogram (bars that touch), ranges (bars between two
	// values, one series), lines, points, or bands: for each rank Y, the first on top, bars from X to To, later ones
	// drawn over earlier ones.
	Kind string
	// X and Y are the axes.
	X, Y Axis
	// Series names what the series differ in; it is the title of the legend.
	Series string
	// Order lists the series that come first. The others follow in the order they were added or, if all are numbers,
	// in ascending order.
	Order []string
	// Fit names the fitted curves in the legend; "" if there are none.
	Fit string
	// Greys are the series of bands drawn in grey; they are last in the legend.
	Greys []string
	// Hues lists series whose colours are the same in every picture: each has the colour of its place in the list.
	Hues []string
	// Ordered says that neighbouring series are alike, so that their colours should be too.
	Ordered bool

	values []Value
}

// Axis is an axis of a chart.
type Axis struct {
	// Name names the axis, without a unit.
	Name string
	// Unit is ns, bytes, bytes/s, elements, or anything else for a plain number. Multiples of it are chosen by the
	// values.
	Unit string
	// From and To are values that a linear axis has at least; nothing if both are 0.
	From, To float64
	// Log makes the axis logarithmic. Values of 0 or less are then left out, and the note says how many.
	Log bool
	// Integers is true if all values are integers.
	Integers bool
}

// Value is one number of a chart.
type Value struct {
	// Group is the group of bars and Category the bar that the value belongs to; lines and points ignore them.
	Group, Category string
	// Series is the part of a bar, the bar within a category, the line or the kind of point.
	Series string
	// X is the position of lines and points. Bars are in the order in which their categories were added.
	X float64
	// Y is the number; NaN if there is none.
	Y float64
	// Fit is the height of a fitted curve at X; NaN if there is none.
	Fit float64
	// To is the other end of a range.
	To float64
}

// Add adds a value. Bars of the same category and series are summed.
func (c *Chart) Add(v Value) { c.values = append(c.values, v) }

// Lengths are in pixels of a PNG.
const (
	chartPx     = 1100 // width of the drawing area
	chartHighPx = 700
	chartTopPx  = 170  // with room for the names of groups
	markPx      = 8    // length of a tick
	rowPx       = 30   // height of a line of the legend
	mostLabels  = 40   // letters of a category's name
	mostBars    = 1024 // a pixel each
	mostNames   = 32   // bars with a turned name each
	mostNumbers = 17   // of an axis
)

// Draw writes the picture to w.
func (c *Chart) Draw(w io.Writer, o Options) error {
	p := c.layOut(themeOf(o.Theme))
	s, out, _, err := newSheet(o, p.left+chartPx+p.right, chartTopPx+chartHighPx+p.bottom)
	if err != nil {
		return err
	}
	p.area = vg.Rectangle{Min: vg.Point{X: px(p.left), Y: px(p.bottom)},
		Max: vg.Point{X: px(p.left + chartPx), Y: px(p.bottom + chartHighPx)}}
	(&painter{page: p, canvas: s}).draw()
	_, err = out.WriteTo(w)
	return err
}

// page is a chart with its layout. It has many methods because every part of a chart is placed by where the others are;
// axis.go, series.go and bands.go have a part each.
type page struct {
	*Chart
	theme               *theme
	names               []string // series, in the order of the legend
	slots               []*slot  // bars
	x, y                scale
	xTicks, yTicks      []mark
	turned              bool // the x labels are vertical
	every               int  // bands show one rank of every so many
	left, right, bottom float64
	area                vg.Rectangle
	note                string
}

// slot is a category of bars.
type slot struct {
	group, category string
	at              float64   // its middle on the x axis
	y               []float64 // by series
	to              float64   // other end of a range
}

// mark is a tick of an axis; without a label it is short.
type mark struct {
	at    float64
	label string
}

func (c *Chart) bars() bool {
	return slices.Contains([]string{"bars", "grouped", "histogram", "ranges"}, c.Kind)
}

func (c *Chart) layOut(t *theme) *page {
	p := &page{Chart: c, theme: t, note: c.Note}
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

// dropLogs removes values that a logarithmic axis cannot show.
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
		p.addNote(fmt.Sprintf("%d values of 0 or less are not drawn", dropped))
	}
}

// dropEmpty removes series whose values are all 0 from legend and bars. For bars side by side, where the position
// matters too, it removes only those before the first and after the last non-empty series.
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

// addNote appends to the note.
func (p *page) addNote(s string) {
	if p.note != "" {
		p.note += "; "
	}
	p.note += s
}

// nameSeries lists the series in the order of the legend.
func (p *page) nameSeries() {
	p.names = distinct(p.values, func(v Value) string { return v.Series })
	if p.Order != nil {
		first := func(s string) int {
			if i := slices.Index(p.Order, s); i >= 0 {
				return i
			}
			return len(p.Order)
		}
		slices.SortStableFunc(p.names, func(a, b string) int { return first(a) - first(b) })
	} else if !slices.ContainsFunc(p.names, func(s string) bool { return math.IsNaN(numberIn(s)) }) {
		slices.SortFunc(p.names, func(a, b string) int { return cmp.Compare(numberIn(a), numberIn(b)) })
	}
}

// numberIn returns the number that a name is; NaN if it is none.
func numberIn(name string) float64 {
	x, err := strconv.ParseFloat(name, 64)
	if err != nil {
		return math.NaN()
	}
	return x
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

// indexes returns the position of each name.
func indexes(names []string) map[string]int {
	at := map[string]int{}
	for i, n := range names {
		at[n] = i
	}
	return at
}

// groupGap is the distance between groups of bars, in widths of a category.
const groupGap = 0.7

// fillSlots collects the bars and places them along the x axis, group by group.
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
	if p.Kind == "histogram" {
		p.trimSlots()
	}
	groups := indexes(distinct(p.values, func(v Value) string { return v.Group }))
	slices.SortStableFunc(p.slots, func(a, b *slot) int { return groups[a.group] - groups[b.group] })
	p.cutSlots()
	p.thinSlots()
	for i, s := range p.slots {
		s.at = float64(i) + groupGap*float64(groups[s.group])
	}
}

// trimSlots removes the empty bars before the first and after the last of a histogram.
func (p *page) trimSlots() {
	empty := func(s *slot) bool { return s.total() == 0 }
	first := slices.IndexFunc(p.slots, func(s *slot) bool { return !empty(s) })
	if first < 0 {
		return
	}
	last := len(p.slots) - 1
	for ; empty(p.slots[last]); last-- {
	}
	p.slots = p.slots[first : last+1]
}

// cutSlots keeps the highest bars of each group if bars have names, come sorted by height, and are more than there is
// room for names. Ranks, in their order, all stay.
func (p *page) cutSlots() {
	if len(p.slots) <= mostNames || p.Kind == "histogram" {
		return
	}
	falling := map[string]bool{} // groups whose values are sorted
	last := map[string]float64{}
	for _, v := range p.values {
		before, seen := last[v.Group]
		falling[v.Group] = (!seen || falling[v.Group]) && !(v.Y > before && seen)
		last[v.Group] = v.Y
	}
	higher := func(a, b *slot) int { return cmp.Compare(b.total(), a.total()) }
	groups := p.groups()
	var kept []*slot
	most := namesOfEach(groups)
	for _, g := range groups {
		if ascending(g) || !falling[g[0].group] && !slices.IsSortedFunc(g, higher) {
			return
		}
		g = slices.Clone(g)
		slices.SortStableFunc(g, higher) // a bar of several series has its place by the highest
		kept = append(kept, g[:min(len(g), most)]...)
	}
	if len(kept) < len(p.slots) {
		p.addNote(fmt.Sprintf("the highest %d bars of %d", len(kept), len(p.slots)))
		p.slots = kept
	}
}

// namesOfEach returns how many bars each group may have: what small groups leave is for the others.
func namesOfEach(groups [][]*slot) int {
	most := 5
	for ; ; most++ {
		all := 0
		for _, g := range groups {
			all += min(len(g), most+1)
		}
		if all > mostNames {
			return most
		}
	}
}

// groups returns the bars of each group.
func (p *page) groups() (all [][]*slot) {
	for _, s := range p.slots {
		if n := len(all); n == 0 || all[n-1][0].group != s.group {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], s)
	}
	return all
}

// numbered reports whether bars are at numbers in order, such as ranks: what is between two labels is then known.
func (p *page) numbered() bool {
	return !slices.ContainsFunc(p.groups(), func(g []*slot) bool { return !ascending(g) })
}

// ascending reports whether the categories are numbers in order.
func ascending(slots []*slot) bool {
	numbers := make([]float64, len(slots))
	for i, s := range slots {
		numbers[i] = numberIn(s.category)
	}
	return !slices.ContainsFunc(numbers, math.IsNaN) && slices.IsSorted(numbers)
}

// thinSlots keeps the highest of every few neighbouring bars if there are more than can be seen.
func (p *page) thinSlots() {
	if len(p.slots) <= mostBars {
		return
	}
	each := (len(p.slots) + mostBars - 1) / mostBars
	var kept []*slot
	for some := range slices.Chunk(p.slots, each) {
		highest := *slices.MaxFunc(some, func(a, b *slot) int { return cmp.Compare(a.total(), b.total()) })
		highest.category = some[0].category // so that numbers along the axis are round
		kept = append(kept, &highest)
	}
	p.addNote(fmt.Sprintf("of every %d bars of %d the highest", each, len(p.slots)))
	p.slots = kept
}

// total returns the height of all bars of a category.
func (s *slot) total() float64 {
	sum := 0.0
	for _, y := range s.y {
		if !math.IsNaN(y) {
			sum += math.Abs(y)
		}
	}
	return sum
}

// extent is the least and greatest of some numbers; +Inf and -Inf if there are none.
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
	e, xs := nothing(), make([]float64, len(p.values))
	for i, v := range p.values {
		e.add(v.X)
		xs[i] = v.X
	}
	p.x = scaleOf(e, p.X.Log, false)
	p.xTicks = p.x.ticks(p.X)
	if own := p.X.ownTicks(xs); own != nil {
		p.xTicks = own
	}
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
	if p.Y.From != p.Y.To && !p.Y.Log {
		e.add(p.Y.From)
		e.add(p.Y.To)
	}
	p.y = scaleOf(e, p.Y.Log, p.bars() && p.Kind != "ranges")
	p.yTicks = p.y.ticks(p.Y)
}

// fitLetters shortens the name of a category.
func fitLetters(s string) string {
	if r := []rune(s); len(r) > mostLabels {
		return string(r[:mostLabels-3]) + "..."
	}
	return s
}

// labels is the text style of the numbers along the axes.
func labels(x draw.XAlignment, y draw.YAlignment) draw.TextStyle { return style(10, x, y) }

// fitLabels turns the x labels if they would overlap, leaves some out if that is not enough, and makes room for them,
// the y labels and the legend.
func (p *page) fitLabels() {
	sty := labels(draw.XCenter, draw.YTop)
	width := func(s string) float64 { return inPx(sty.Width(s)) }
	wide := 0.0
	for _, m := range p.yTicks {
		wide = max(wide, width(m.label))
	}
	p.left = math.Ceil(70 + wide + 30)
	p.right = math.Ceil(60 + p.legendPx())
	at := func(m mark) float64 { return p.x.fraction(m.at) * chartPx }
	high := 22.0
	if p.bars() && overlap(p.xTicks, at, width) && !p.numbered() {
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
	crowded := func() bool {
		return overlap(p.xTicks, at, room) || p.bars() && labelled(p.xTicks) > mostNumbers && p.numbered()
	}
	for all := p.xTicks; crowded(); {
		every = nextStep(every, allNumbers(all))
		p.xTicks = nil
		for i, m := range all {
			if i%every != 0 {
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

// nextStep returns how many labels to skip if every so many is too many: numbers, which are mostly of ranks, in
// powers of two.
func nextStep(every int, numbers bool) int {
	if numbers {
		return 2 * every
	}
	return every + 1
}

// allNumbers reports whether all labels of an axis are numbers.
func allNumbers(marks []mark) bool {
	return !slices.ContainsFunc(marks, func(m mark) bool { return m.label != "" && math.IsNaN(numberIn(m.label)) })
}

// overlap reports whether two labels of an axis touch.
func overlap(marks []mark, at func(mark) float64, width func(string) float64) bool {
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

// painter draws a page on a canvas.
type painter struct {
	page   *page
	canvas sheet
}

func (d *painter) draw() {
	switch {
	case d.page.Kind == "bands":
		d.drawBands()
	case d.page.bars():
		d.gridLines()
		d.drawBars()
	default:
		d.gridLines()
		d.drawSeries()
	}
	d.drawGroups()
	d.canvas.frame(d.page.area)
	d.xAxis()
	d.yAxis()
	d.legend()
	more := d.page.right
	title := d.page.area
	title.Max.Y += px(chartTopPx - topPx)
	d.canvas.head(title, d.page.Title, d.page.note, more)
	if len(d.page.values) == 0 {
		d.drawNothing()
	}
}

// drawNothing says why the area is empty.
func (d *painter) drawNothing() {
	d.canvas.write(style(12, draw.XCenter, draw.YCenter),
		vg.Point{X: (d.page.area.Min.X + d.page.area.Max.X) / 2, Y: (d.page.area.Min.Y + d.page.area.Max.Y) / 2},
		"nothing to draw")
}

// xTitle and yTitle are the names of the axes with their units.
func (p *page) xTitle() string {
	if p.bars() {
		return p.X.Name
	}
	return p.x.unit(p.X).titled(p.X.Name)
}

func (p *page) yTitle() string {
	if p.Kind == "bands" {
		return p.Y.Name
	}
	return p.y.unit(p.Y).titled(p.Y.Name)
}

// toX and toY map values to positions on the page.
func (p *page) toX(v float64) vg.Length {
	return p.area.Min.X + p.area.Size().X*vg.Length(p.x.fraction(v))
}

func (p *page) toY(v float64) vg.Length {
	return p.area.Min.Y + p.area.Size().Y*vg.Length(p.y.fraction(v))
}

func (d *painter) gridLines() {
	line := thin(d.canvas.grid)
	for _, m := range d.page.yTicks {
		if m.label != "" {
			d.canvas.StrokeLine2(line, d.page.area.Min.X, d.page.toY(m.at), d.page.area.Max.X, d.page.toY(m.at))
		}
	}
	if d.page.y.least < 0 && !d.page.y.log {
		d.canvas.StrokeLine2(thin(d.canvas.divider), d.page.area.Min.X,
			d.page.toY(0), d.page.area.Max.X,
			d.page.toY(0))
	}
}

// tickLength is shorter for a tick without a number.
func tickLength(m mark) vg.Length {
	if m.label == "" {
		return px(markPx / 2)
	}
	return px(markPx)
}

func (d *painter) xAxis() {
	across := labels(draw.XCenter, draw.YTop)
	if d.page.turned {
		across = labels(draw.XRight, draw.YCenter)
		across.Rotation = math.Pi / 2
	}
	for _, m := range d.page.xTicks {
		x := d.page.toX(m.at)
		d.canvas.StrokeLine2(d.canvas.tick(), x, d.page.area.Min.Y-tickLength(m), x, d.page.area.Min.Y)
		d.canvas.write(across, vg.Point{X: x, Y: d.page.area.Min.Y - px(14)}, m.label)
	}
	d.canvas.write(style(12, draw.XCenter, draw.YBottom),
		vg.Point{X: (d.page.area.Min.X + d.page.area.Max.X) / 2, Y: px(20)},
		d.page.xTitle())
}

func (d *painter) yAxis() {
	down := labels(draw.XRight, draw.YCenter)
	for _, m := range d.page.yTicks {
		y := d.page.toY(m.at)
		d.canvas.StrokeLine2(d.canvas.tick(), d.page.area.Min.X-tickLength(m), y, d.page.area.Min.X, y)
		d.canvas.write(down, vg.Point{X: d.page.area.Min.X - px(14), Y: y}, m.label)
	}
	upright := style(12, draw.XCenter, draw.YTop)
	upright.Rotation = math.Pi / 2
	d.canvas.write(upright, vg.Point{X: px(20), Y: (d.page.area.Min.Y + d.page.area.Max.Y) / 2}, d.page.yTitle())
}

// drawGroups separates the groups of bars by lines and names them above the area.
func (d *painter) drawGroups() {
	for i := 0; i < len(d.page.slots); {
		end := i
		for end+1 < len(d.page.slots) && d.page.slots[end+1].group == d.page.slots[i].group {
			end++
		}
		first, last := d.page.toX(d.page.slots[i].at-0.5), d.page.toX(d.page.slots[end].at+0.5)
		if name := d.page.slots[i].group; name != "" {
			d.canvas.write(style(10, draw.XCenter, draw.YBottom),
				vg.Point{X: (first + last) / 2, Y: d.page.area.Max.Y + px(12)},
				fit(name, 10, last-first+d.page.toX(groupGap)-d.page.toX(0)))
		}
		if end+1 < len(d.page.slots) {
			x := (last + d.page.toX(d.page.slots[end+1].at-0.5)) / 2
			d.canvas.StrokeLine2(thin(d.canvas.divider), x, d.page.area.Min.Y, x,
				d.page.area.Max.Y)
		}
		i = end + 1
	}
}
