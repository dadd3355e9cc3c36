package plot

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	imagedraw "image/draw"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Timeline draws what ranks do over time: a row for each rank or for several neighbours, rank 0 on top, coloured by the
// kinds of calls; messages as lines between rows; and below, how much is sent over time.
type Timeline struct {
	// Title is above the drawing, Note in small letters below the title.
	Title, Note string
	// Kinds are the kinds of calls; their colours are the same in every picture. Idle is one more, drawn in grey.
	Kinds []string
	Idle  string
	// Series is the title of the legend; Ranks is how many ranks there are at least.
	Series string
	Ranks  int
	// Path says that what is drawn is a path over ranks: all of a step has the colour of the kind with the most time,
	// however short that was, and lines attract no attention.
	Path bool
	// Names are the names of the rows where these are not all ranks of the run: row 0 is that of the first name. HighPx
	// is the height of the ranks' area in pixels of a PNG; 0 means that of other charts.
	Names  []string
	HighPx int
	// Amount names what the strip below shows.
	Amount Axis

	cells []timeCell
	lines []timeLine
	strip map[[2]float64]float64
}

// timeCell is the time of a kind in a step of a row.
type timeCell struct {
	rank, ranks int
	from, to    float64
	kind        string
	ns          float64
}

// timeLine is a message.
type timeLine struct {
	src, dst int
	from, to float64
}

// AddTime adds the time, of all ranks of a row together, that they spent in a kind of calls between two times. The row
// begins with a rank.
func (t *Timeline) AddTime(rank, ranks int, from, to float64, kind string, ns float64) {
	t.cells = append(t.cells, timeCell{rank, max(ranks, 1), from, to, kind, ns})
}

// AddMessage adds a message that was sent and received at these times.
func (t *Timeline) AddMessage(src, dst int, from, to float64) {
	t.lines = append(t.lines, timeLine{src, dst, from, to})
}

// AddAmount adds to what is sent between two times.
func (t *Timeline) AddAmount(from, to, amount float64) {
	if t.strip == nil {
		t.strip = map[[2]float64]float64{}
	}
	t.strip[[2]float64{from, to}] += amount
}

// Lengths are in pixels of a PNG.
const (
	stripPx    = 150
	stripGapPx = 30
	pathPx     = 4    // least height of a row of a path
	stackedPx  = 8    // height of a row from which it shows the share of each kind
	mostRects  = 4000 // more rectangles become an image in SVG and PDF
	dottedMost = 300  // up to so many lines end in dots
)

// Draw writes the picture to w.
func (t *Timeline) Draw(w io.Writer, o Options) error {
	p, strip := t.layOut(themeOf(o.Theme))
	below := p.bottom
	if strip != nil {
		below += stripPx + stripGapPx
	}
	s, out, img, err := newSheet(o, p.left+chartPx+p.right, topPx+float64(t.high())+below)
	if err != nil {
		return err
	}
	at := func(bottom, high float64) vg.Rectangle {
		return vg.Rectangle{Min: vg.Point{X: px(p.left), Y: px(bottom)}, Max: vg.Point{X: px(p.left + chartPx),
			Y: px(bottom + high)}}
	}
	p.area = at(below, float64(t.high()))
	d := &painter{page: p, canvas: s}
	if t.Path {
		t.drawLines(d)
	}
	if rects := t.rects(p); img != nil {
		paintRects(img.Image(), image.Pt(int(p.left), topPx), rects)
	} else {
		drawRects(s, p.area, rects, t.high())
	}
	if !t.Path {
		t.drawLines(d)
	}
	s.frame(p.area)
	d.yAxis()
	d.legend()
	s.head(p.area, t.Title, p.note, p.right)
	if len(t.cells) == 0 {
		d.drawNothing()
	}
	if strip != nil {
		strip.area = at(p.bottom, stripPx)
		d = &painter{page: strip, canvas: s}
		d.gridLines()
		t.drawStrip(d)
		s.frame(strip.area)
		d.yAxis()
	}
	d.xAxis()
	_, err = out.WriteTo(w)
	return err
}

// high is the height of the ranks' area in pixels.
func (t *Timeline) high() int { return cmp.Or(t.HighPx, chartHighPx) }

// layOut returns the page of the ranks, and that of the strip below; nil if nothing is sent.
func (t *Timeline) layOut(th *theme) (p, strip *page) {
	chart := &Chart{Title: t.Title, Kind: "bands", X: Axis{Name: "time since the start of the run", Unit: "ns"},
		Y: Axis{Name: "rank"}, Hues: t.Kinds, Series: t.Series}
	p = &page{Chart: chart, theme: th, note: t.Note, every: 1}
	across, first, ranks, row := nothing(), t.first(), t.Ranks, 1
	kinds := map[string]bool{}
	for _, c := range t.cells {
		across.add(c.from)
		across.add(c.to)
		ranks, row, kinds[c.kind] = max(ranks, c.rank+c.ranks), max(row, c.ranks), true
	}
	p.names = slices.DeleteFunc(slices.Clone(t.Kinds), func(k string) bool { return !kinds[k] })
	if kinds[t.Idle] {
		chart.Greys = []string{t.Idle}
		p.names = append(p.names, t.Idle)
	}
	if across.least >= across.most {
		across = extent{0, 1}
	}
	p.x = scale{least: across.least, most: across.most}
	p.xTicks = p.x.ticks(p.X)
	p.y = scale{least: float64(max(ranks, 1)) - 0.5, most: float64(first) - 0.5}
	every := rankStep(max(ranks-first, 1), 16)
	for r := (first + every - 1) / every * every; r < ranks; r += every {
		name := strconv.Itoa(r)
		if r < len(t.Names) {
			name = t.Names[r]
		}
		p.yTicks = append(p.yTicks, mark{float64(r), name})
	}
	if row > 1 {
		p.addNote(fmt.Sprintf("a row is %d ranks", row))
	}
	switch high := float64(t.high()) / float64(max(ranks-first, 1)) * float64(row); {
	case len(t.cells) == 0 || len(p.names) == 1 || t.Path:
	case high < stackedPx:
		p.addNote("coloured by the kind with the most time")
	default:
		p.addNote("the height of a colour is its share of the time")
	}
	p.fitLabels()
	if len(t.strip) == 0 {
		return p, nil
	}
	below := *chart
	below.Y = t.Amount
	strip = &page{Chart: &below, theme: th, every: 1, x: p.x, xTicks: p.xTicks}
	below.Kind = "lines"
	e := extent{0, 0}
	for _, v := range t.strip {
		e.add(v)
	}
	strip.y = scaleOf(e, false, true)
	u := strip.y.unit(strip.Y)
	step := niceStep((strip.y.most-strip.y.least)/3/u.size) * u.size
	for v := 0.0; v <= strip.y.most; v += step {
		strip.yTicks = append(strip.yTicks, mark{v, u.number(v)})
	}
	strip.fitLabels()
	p.left = max(p.left, strip.left)
	return p, strip
}

// first is the lowest rank that is drawn: the timeline of some ranks has no rows for those below. A path has all.
func (t *Timeline) first() int {
	if t.Path || len(t.cells) == 0 {
		return 0
	}
	return slices.MinFunc(t.cells, func(a, b timeCell) int { return cmp.Compare(a.rank, b.rank) }).rank
}

// pixels is a rectangle of a colour, in pixels from the upper left corner of the ranks' area.
type pixels struct {
	at     image.Rectangle
	colour color.RGBA
}

// rects returns the coloured rectangles, at most as many as there are pixels in the area. Neighbours of one colour and
// height are one.
func (t *Timeline) rects(p *page) []pixels {
	series := indexes(p.names)
	cells := slices.Clone(t.cells)
	slices.SortStableFunc(cells, func(a, b timeCell) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.from, b.from), series[b.kind]-series[a.kind])
	})
	var all []pixels
	last := map[[2]int]int{} // the latest rectangle between two heights
	for i := 0; i < len(cells); {
		end := i + 1
		for end < len(cells) && cells[end].rank == cells[i].rank && cells[end].from == cells[i].from {
			end++
		}
		for _, r := range p.cellRects(cells[i:end], series, t.Path, t.high()) {
			key := [2]int{r.at.Min.Y, r.at.Max.Y}
			if k, ok := last[key]; ok && all[k].colour == r.colour && all[k].at.Max.X == r.at.Min.X {
				all[k].at.Max.X = r.at.Max.X
				continue
			}
			last[key] = len(all)
			all = append(all, r)
		}
		i = end
	}
	return all
}

// cellRects returns the rectangles of a step of a row: the share of each kind from the bottom up or, in low rows, the
// kind with the most time. A path has that in all rows, which are high enough to be seen.
func (p *page) cellRects(kinds []timeCell, series map[string]int, path bool, high int) (all []pixels) {
	c := kinds[0]
	x := func(v float64) int { return int(math.Round(min(max(p.x.fraction(v), 0), 1) * chartPx)) }
	y := func(rank int) int { return int(math.Round((1 - p.y.fraction(float64(rank)-0.5)) * float64(high))) }
	r := image.Rect(x(c.from), y(c.rank), x(c.to), y(c.rank+c.ranks))
	if r.Max.Y == r.Min.Y || r.Max.X == r.Min.X {
		return nil
	}
	if low := pathPx - r.Dy(); path && low > 0 {
		r.Min.Y, r.Max.Y = max(r.Min.Y-low/2, 0), min(r.Max.Y+(low+1)/2, high)
	}
	if path || r.Dy() < stackedPx {
		most := slices.MaxFunc(kinds, func(a, b timeCell) int { return cmp.Compare(a.ns, b.ns) })
		return []pixels{{r, p.colour(series[most.kind])}}
	}
	if r.Dy() >= 2*stackedPx {
		r.Max.Y -= 2 // so that rows are seen as rows
	}
	total := 0.0
	for _, k := range kinds {
		total += k.ns
	}
	total = max(total, (c.to-c.from)*float64(c.ranks))
	sum, bottom := 0.0, r.Max.Y
	for _, k := range kinds {
		sum += k.ns
		top := r.Max.Y - int(math.Round(float64(r.Dy())*sum/total))
		if top < bottom {
			all = append(all, pixels{image.Rect(r.Min.X, top, r.Max.X, bottom), p.colour(series[k.kind])})
			bottom = top
		}
	}
	return all
}

// paintRects sets the pixels of a PNG.
func paintRects(img imagedraw.Image, corner image.Point, rects []pixels) {
	for _, r := range rects {
		imagedraw.Draw(img, r.at.Add(corner), image.NewUniform(r.colour), image.Point{}, imagedraw.Src)
	}
}

// drawRects draws rectangles or, if there are many, an image of them.
func drawRects(s sheet, area vg.Rectangle, rects []pixels, high int) {
	if len(rects) > mostRects {
		img := image.NewRGBA(image.Rect(0, 0, chartPx, high)) // transparent where there is none
		paintRects(img, image.Point{}, rects)
		s.DrawImage(area, img)
		return
	}
	for _, r := range rects {
		s.SetColor(r.colour)
		s.Fill(vg.Rectangle{Min: vg.Point{X: area.Min.X + px(float64(r.at.Min.X)),
			Y: area.Max.Y - px(float64(r.at.Max.Y))}, Max: vg.Point{X: area.Min.X + px(float64(r.at.Max.X)),
			Y: area.Max.Y - px(float64(r.at.Min.Y))}}.Path())
	}
}

// shownEnd returns where the line of a message ends: when and where it is received, or at the edge of the picture,
// which then cuts it.
func (m *timeLine) shownEnd(p *page) (to, dst float64, cut bool) {
	src := float64(m.src)
	to, dst = m.to, float64(m.dst)
	if cut = to > p.x.most && to > m.from; cut {
		to, dst = p.x.most, src+(p.x.most-m.from)/(to-m.from)*(dst-src)
	}
	for _, edge := range [2]float64{p.y.least, p.y.most} {
		if (dst-edge)*(src-edge) < 0 {
			return m.from + (edge-src)/(dst-src)*(to-m.from), edge, true
		}
	}
	return to, dst, cut
}

// drawLines draws the messages, those that are received after the end, or on a rank that is not shown, up to the edge.
func (t *Timeline) drawLines(d *painter) {
	p := d.page
	line := draw.LineStyle{Color: d.canvas.ink, Width: px(1.2)}
	if t.Path {
		line = thin(d.canvas.divider)
	}
	for _, m := range t.lines {
		to, dst, cut := m.shownEnd(p)
		if !cut && len(t.lines) <= dottedMost && !t.Path {
			d.canvas.DrawGlyph(draw.GlyphStyle{Color: d.canvas.ink, Radius: px(2.5), Shape: draw.CircleGlyph{}},
				vg.Point{X: p.toX(to), Y: p.toY(dst)})
		}
		d.canvas.StrokeLine2(line, p.toX(m.from), p.toY(float64(m.src)), p.toX(to), p.toY(dst))
	}
}

// drawStrip draws what is sent as bars without gaps.
func (t *Timeline) drawStrip(d *painter) {
	d.canvas.SetColor(d.canvas.theme.hues[0])
	inOrder := slices.SortedFunc(maps.Keys(t.strip), func(a, b [2]float64) int { return slices.Compare(a[:], b[:]) })
	for _, at := range inOrder { // so that the same picture is the same file
		v := t.strip[at]
		left := math.Floor(inPx(d.page.toX(at[0])))
		right := max(math.Ceil(inPx(d.page.toX(at[1]))), left+1)
		d.canvas.Fill(vg.Rectangle{Min: vg.Point{X: px(left), Y: d.page.toY(0)},
			Max: vg.Point{X: min(px(right), d.page.area.Max.X), Y: d.page.toY(v)}}.Path())
	}
}
