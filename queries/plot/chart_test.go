package plot

import (
	"bytes"
	"compress/zlib"
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var none = math.NaN()

func chart(kind string, values ...Value) *Chart {
	c := &Chart{Title: "sizes of ring.3", Note: "messages against size", Kind: kind,
		X: Axis{Name: "size", Unit: "bytes"},
		Y: Axis{Name: "messages", Unit: "1", Integers: true}, Series: "kind"}
	for _, v := range values {
		c.Add(v)
	}
	return c
}

func bar(group, category, series string, y float64) Value {
	return Value{Group: group, Category: category, Series: series, X: none, Y: y, Fit: none}
}

func point(x, y float64) Value { return Value{X: x, Y: y, Fit: none} }

func picture(t *testing.T, d Drawing) image.Image {
	t.Helper()
	var b bytes.Buffer
	if err := d.Draw(&b, Options{Format: "png"}); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// colourAt is the colour of a PNG of a chart at values of its axes.
func colourAt(img image.Image, p *page, x, y float64) color.RGBA {
	at := image.Pt(int(p.left+p.x.fraction(x)*chartPx), int(chartTopPx+(1-p.y.fraction(y))*chartHighPx))
	return color.RGBAModel.Convert(img.At(at.X, at.Y)).(color.RGBA)
}

// TestBars looks at the colours of stacked bars, and of bars side by side, in two groups.
func TestBars(t *testing.T) {
	values := []Value{
		bar("a.3", "small", "sent", 300), bar("a.3", "small", "received", 500), bar("a.3", "large", "sent", 900),
		bar("b.5", "small", "received", 700), bar("a.3", "large", "sent", 50),
	}
	white := color.RGBA{255, 255, 255, 255}
	for _, c := range []struct {
		kind   string
		x, y   float64
		series int // -1: none
	}{
		{"bars", 0, 150, 0}, {"bars", 0, 550, 1}, {"bars", 0, 830, -1},
		{"bars", 1, 940, 0}, {"bars", 1, 960, -1}, // 900 and 50 in the same place
		{"bars", 2 + groupGap, 350, 1}, {"bars", 1.6, 350, -1},
		{"grouped", -0.2, 250, 0}, {"grouped", -0.2, 350, -1}, {"grouped", 0.2, 450, 1}, {"grouped", 0.2, 550, -1},
		{"grouped", 1.2, 100, -1}, {"grouped", 2 + groupGap + 0.2, 650, 1}, {"grouped", 2 + groupGap - 0.2, 650, -1},
	} {
		ch := chart(c.kind, values...)
		p := ch.layOut(&light)
		want := white
		if c.series >= 0 {
			want = p.colour(c.series)
		}
		if got := colourAt(picture(t, ch), p, c.x, c.y); got != want {
			t.Errorf("%s at %g, %g: %v; want %v", c.kind, c.x, c.y, got, want)
		}
	}
}

func TestLinesAndPoints(t *testing.T) {
	ch := chart("lines", point(1000, 10), point(5000, 10), point(7000, none), point(8000, 10), point(10000, 10),
		point(10000, 3))
	p, img := ch.layOut(&light), picture(t, ch)
	for x, seen := range map[float64]bool{3000: true, 7000: false, 9000: true} {
		if got := colourAt(img, p, x, 10) == p.colour(0); got != seen {
			t.Errorf("line at %g: %v; want %v", x, got, seen)
		}
	}
	ch = chart("points", Value{X: 1000, Y: 10, Fit: 20}, Value{X: 3000, Y: none, Fit: 20},
		Value{X: 5000, Y: 10, Fit: 20})
	ch.Fit = "linear"
	p, img = ch.layOut(&light), picture(t, ch)
	if colourAt(img, p, 5000, 10) != p.colour(0) || colourAt(img, p, 2500, 10) == p.colour(0) {
		t.Error("points are not at their places alone")
	}
	curve := 0
	for x := 1100.0; x < 4900; x++ {
		if colourAt(img, p, x, 20) == p.colour(0) {
			curve++
		}
	}
	if curve < 1000 || curve > 3500 {
		t.Errorf("the curve is drawn at %d of 3800 places; want it dashed", curve)
	}
}

// TestLogAxes says what cannot be drawn, and marks a few integers themselves.
func TestLogAxes(t *testing.T) {
	ch := chart("points", point(4, 100), point(16, 0), point(16, 20000), point(64, -3))
	ch.X, ch.Y.Log = Axis{Name: "ranks", Unit: "1", Log: true, Integers: true}, true
	p := ch.layOut(&light)
	if want := "messages against size; 2 values of 0 or less are not drawn"; p.note != want || len(ch.values) != 4 {
		t.Errorf("note %q; want %q", p.note, want)
	}
	if diff := cmp.Diff([]string{"4", "16"}, labelsOf(p.xTicks)); diff != "" {
		t.Errorf("ticks of x: %s", diff)
	}
	if diff := cmp.Diff([]string{"100", "200", "500", "1 k", "2 k", "5 k", "10 k", "20 k"},
		labelsOf(p.yTicks)); diff != "" {
		t.Errorf("ticks of y: %s", diff)
	}
	ch = chart("grouped", bar("", "a", "x", 1), bar("", "b", "x", 3e6))
	ch.Y.Log = true
	p = ch.layOut(&light)
	if p.y.least != 0.1 || p.y.fraction(1) < 0.05 {
		t.Errorf("the axis of bars begins at %g; want 0.1, so that a bar of 1 is seen", p.y.least)
	}
	if got := labelsOf(p.yTicks); !slices.Equal(got, []string{"0.1", "1", "10", "100", "1 k", "10 k", "100 k", "1 M"}) {
		t.Errorf("ticks %q", got)
	}
}

// TestRuler gives a page the axes of the pictures: times in a unit that fits, numbers of ranks themselves.
func TestRuler(t *testing.T) {
	for _, c := range []struct {
		axis   Axis
		values []float64
		want   string
	}{
		{Axis{Name: "start", Unit: "ns"}, []float64{0, 1.7e9}, "start [s]: 0 0.5 1 1.5"},
		{Axis{Name: "wait", Unit: "ns"}, []float64{10e3, 90e3}, "wait [µs]: 0 20 40 60 80"},
		{Axis{Name: "ranks", Unit: "1", Log: true}, []float64{64, 1024, 256, 64}, "ranks: 64 256 1024"},
		{Axis{Name: "efficiency", From: 0, To: 1}, []float64{0.2, 0.5}, "efficiency: 0 0.2 0.4 0.6 0.8 1"},
	} {
		r := NewRuler(c.axis, c.values)
		got := r.Title() + ":"
		for _, tick := range r.TicksAt(c.values) {
			got += " " + tick.Label
			if tick.At < 0 || tick.At > 1 {
				t.Errorf("%s is at %g of the axis", tick.Label, tick.At)
			}
		}
		if got != c.want {
			t.Errorf("%v: %s; want %s", c.values, got, c.want)
		}
	}
}

func labelsOf(marks []mark) []string {
	var s []string
	for _, m := range marks {
		if m.label != "" {
			s = append(s, m.label)
		}
	}
	return s
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		least, most float64
		bars        bool
		axis        Axis
		want        string
	}{
		{0, 11, true, Axis{Integers: true}, "0 2 4 6 8 10"},
		{1, 2, true, Axis{Integers: true}, "0 1 2"},
		{0.02, 0.5, false, Axis{}, "0 0.1 0.2 0.3 0.4 0.5"},
		{900, 1000, false, Axis{}, "900 920 940 960 980 1 k"},
		{-30, 50, true, Axis{}, "-20 0 20 40"},
		{0, 3.2e9, false, Axis{Name: "time", Unit: "ns"}, "time [s]: 0 0.5 1 1.5 2 2.5 3"},
		{0, 990e6, false, Axis{Name: "time", Unit: "ns"}, "time [ms]: 0 200 400 600 800 1000"},
		{0, 4e13, false, Axis{Name: "time", Unit: "ns"}, "time [s]: 0 10000 20000 30000 40000"},
		{0, 2500, false, Axis{Name: "sent", Unit: "bytes"}, "sent [kB]: 0 0.5 1 1.5 2 2.5"},
		{0, 3e9, false, Axis{Name: "bandwidth", Unit: "bytes/s"}, "bandwidth [GB/s]: 0 0.5 1 1.5 2 2.5 3"},
		{0, 900, false, Axis{Name: "size", Unit: "elements"}, "size [elements]: 0 200 400 600 800"},
		{1, 1 << 22, false, Axis{Name: "size", Unit: "bytes", Log: true},
			"size [B]: 1 32 1 Ki 32 Ki 1 Mi"},
		{2000, 3e6, false, Axis{Name: "time", Unit: "ns", Log: true}, "time [µs]: 10 100 1000"},
		{1.3e6, 1.3e6, false, Axis{Name: "messages", Integers: true, Log: true}, "messages: 1 M 1.1 M 1.2 M 1.3 M 1.4 M 1.5 M 1.6 M"},
		{5 << 20, 6 << 20, false, Axis{Name: "size", Unit: "bytes", Log: true}, "size [MB]: 5 6 7 8"},
		{7, 7, false, Axis{}, "6.8 6.9 7 7.1 7.2"},
		{0, 0, true, Axis{Integers: true}, "0 1"},
	} {
		s := scaleOf(extent{c.least, c.most}, c.axis.Log, c.bars)
		got := strings.Join(labelsOf(s.ticks(c.axis)), " ")
		if c.axis.Name != "" {
			got = s.unit(c.axis).titled(c.axis.Name) + ": " + got
		}
		if got != c.want {
			t.Errorf("%g to %g %+v: %s; want %s", c.least, c.most, c.axis, got, c.want)
		}
	}
}

// TestLabelsDoNotMeet turns long names, and leaves out what has no room; the legend is beside the area and on the page.
func TestLabelsDoNotMeet(t *testing.T) {
	for _, n := range []int{3, 12, 60, 900} {
		var values []Value
		for i := range n {
			values = append(values, bar("", fmt.Sprintf("MPI_Something_%d", i), fmt.Sprintf("series %d", i%37), 1))
		}
		p := chart("bars", values...).layOut(&light)
		if turned := n > 3; p.turned != turned {
			t.Errorf("%d names turned: %v", n, p.turned)
		}
		if got := len(p.xTicks); n <= 12 && got != n || got > 50 || got < min(n, 30) {
			t.Errorf("%d of %d names", got, n)
		}
		if got := len(p.entries()); n > 37 && got != 21 || p.right < 60+swatchPx {
			t.Errorf("%d lines in a legend of %g px", got, p.right)
		}
	}
}

// TestAxesOfRanks has round numbers of ranks, at most 17, and leaves out no rank of 1024.
func TestAxesOfRanks(t *testing.T) {
	for ranks, want := range map[int]string{4: "0 1 2 3", 64: "0 4 8 12 16 20 24 28 32 36 40 44 48 52 56 60",
		1024: "0 64 128 192 256 320 384 448 512 576 640 704 768 832 896 960"} {
		ch := chart("bars")
		for i := range ranks {
			ch.Add(bar("", fmt.Sprint(i), "", float64(ranks-i)))
		}
		p := ch.layOut(&light)
		if got := strings.Join(labelsOf(p.xTicks), " "); got != want || len(p.slots) != ranks {
			t.Errorf("%d bars of %d ranks, labels %s; want %s", len(p.slots), ranks, got, want)
		}
	}
}

// TestSortedNamesAreCut keeps as many sorted bars as have room for a name, of each of two runs; the lowest go.
func TestSortedNamesAreCut(t *testing.T) {
	ch := chart("bars")
	for i := range 380 {
		ch.Add(bar("a", fmt.Sprint(2000+i*7%380), "", float64(1000-i)))
		ch.Add(bar("b", fmt.Sprintf("call %d", i), "", float64(1000-i)))
	}
	p := ch.layOut(&light)
	if want := "messages against size; the highest 32 bars of 760"; p.note != want || len(p.slots) != 32 ||
		p.slots[15].category != fmt.Sprint(2000+15*7) || p.slots[31].y[0] != 985 || len(p.xTicks) != 32 {
		t.Errorf("note %q, %d bars, %d names", p.note, len(p.slots), len(p.xTicks))
	}
	ch = chart("bars", bar("b", "alone", "", 3))
	for i := range 50 {
		ch.Add(bar("a", fmt.Sprintf("call %d", i), "", float64(1000-i)))
	}
	if p = ch.layOut(&light); len(p.slots) != 32 || p.slots[0].category != "alone" {
		t.Errorf("%d bars beside a run of one", len(p.slots))
	}
}

// TestLegendNamesACurveOnlyIfThereIsOne: a single run has a point and nothing fitted.
func TestLegendNamesACurveOnlyIfThereIsOne(t *testing.T) {
	for points, want := range map[int]int{1: 1, 3: 2} {
		ch := &Chart{Kind: "points", Fit: "fitted"}
		for i := range points {
			ch.Add(Value{Series: "cg", X: float64(i), Y: 5, Fit: 5})
		}
		if got := ch.layOut(&light).entries(); len(got) != want {
			t.Errorf("%d points: legend %v", points, got)
		}
	}
}

// TestLettersOfPDFs: µ and ü are letters of the font, and not two each; a letter that it lacks is a question mark.
func TestLettersOfPDFs(t *testing.T) {
	ch := chart("lines", point(1, 2), point(3, 5))
	ch.X, ch.Title = Axis{Name: "time", Unit: "ns"}, "Bücher, 表"
	ch.values = []Value{{X: 2000, Y: 2}, {X: 90000, Y: 5}}
	text := ""
	for _, s := range regexp.MustCompile(`(?s)stream\n(.*?)\nendstream`).FindAllStringSubmatch(string(drawn(t, ch, "pdf")), -1) {
		if r, err := zlib.NewReader(strings.NewReader(s[1])); err == nil {
			page, _ := io.ReadAll(r)
			text += string(page)
		}
	}
	for _, want := range []string{"time [\xb5s]", "B\xfccher, ?"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestEmptySeriesAreNotDrawn leaves out series of nothing but 0, and keeps the places of their bars.
func TestEmptySeriesAreNotDrawn(t *testing.T) {
	values := []Value{bar("", "a", "1", 0), bar("", "a", "2", 5), bar("", "a", "3", 0), bar("", "a", "4", 7),
		bar("", "a", "5", none), bar("", "b", "1", 0)}
	for kind, want := range map[string][]string{"bars": {"2", "4"}, "grouped": {"2", "3", "4"}} {
		p := chart(kind, values...).layOut(&light)
		if !slices.Equal(p.names, want) || len(p.slots) != 2 || p.slots[0].y[0] != 5 || p.slots[0].total() != 12 {
			t.Errorf("%s: series %q, %d bars, first %v", kind, p.names, len(p.slots), p.slots[0].y)
		}
	}
	if p := chart("bars", bar("", "a", "1", 0), bar("", "a", "2", 0)).layOut(&light); len(p.names) != 2 {
		t.Errorf("series %q where all are empty", p.names)
	}
}

func TestMoreBarsThanCanBeSeen(t *testing.T) {
	ch := chart("bars")
	for i := range 100000 {
		y := 1.0
		if i == 77777 {
			y = 5000
		}
		ch.Add(bar("", fmt.Sprint(i), "", y))
	}
	p := ch.layOut(&light)
	if want := "messages against size; of every 98 bars of 100000 the highest"; p.note != want ||
		len(p.slots) != 1021 || p.slots[793].y[0] != 5000 || p.slots[793].category != "77714" {
		t.Errorf("note %q, %d bars", p.note, len(p.slots))
	}
	if got := colourAt(picture(t, ch), p, 793, 4000); got != p.colour(0) {
		t.Errorf("the one high bar has the colour %v", got)
	}
}

// TestOrderedColours sees neighbours of ordered series as different greys, and nothing as paper.
func TestOrderedColours(t *testing.T) {
	for _, kind := range []string{"bars", "lines"} {
		for n := 2; n <= 8; n++ {
			p := &page{Chart: &Chart{Kind: kind, Ordered: true}, theme: &light, names: make([]string, n)}
			before := -1
			for i := range n {
				grey := greyOf(p.colour(i))
				if grey < before+10 || grey > 225 {
					t.Errorf("%s: colour %d of %d is grey %d after %d", kind, i, n, grey, before)
				}
				before = grey
			}
		}
	}
}

// blindness are the matrices of Machado, Oliveira and Fernandes (A Physiologically-based Model for Simulation of Color
// Vision Deficiency, 2009) for people without one kind of cones, on linear RGB.
var blindness = map[string][3][3]float64{
	"none":   {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protan": {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deutan": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritan": {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

// seen is how far two colours are apart for somebody, as a distance in CIE L*a*b*.
func seen(a, b color.RGBA, eyes [3][3]float64) float64 {
	lab := func(c color.RGBA) [3]float64 {
		var rgb, seen [3]float64
		for i, v := range []uint8{c.R, c.G, c.B} {
			rgb[i] = math.Pow((float64(v)/255+0.055)/1.055, 2.4)
		}
		for i := range seen {
			for k := range rgb {
				seen[i] += eyes[i][k] * rgb[k]
			}
			seen[i] = min(max(seen[i], 0), 1)
		}
		r, g, b := seen[0], seen[1], seen[2]
		x, y, z := math.Cbrt((0.4124*r+0.3576*g+0.1805*b)/0.9505), math.Cbrt(0.2126*r+0.7152*g+0.0722*b),
			math.Cbrt((0.0193*r+0.1192*g+0.9505*b)/1.089)
		return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
	}
	p, q := lab(a), lab(b)
	return math.Sqrt((p[0]-q[0])*(p[0]-q[0]) + (p[1]-q[1])*(p[1]-q[1]) + (p[2]-q[2])*(p[2]-q[2]))
}

// TestHuesAreToldApart by people with any colour blindness, from each other and from the paper.
func TestHuesAreToldApart(t *testing.T) {
	const apart = 11 // areas beside each other differ visibly from about 5 on
	for _, th := range []*theme{&light, &dark} {
		for who, eyes := range blindness {
			for i, a := range th.hues {
				if d := seen(a, th.paper, eyes); d < apart {
					t.Errorf("%s, %s: hue %d is %.1f from the paper", th.name, who, i, d)
				}
				for k, b := range th.hues[:i] {
					if d := seen(a, b, eyes); d < apart {
						t.Errorf("%s, %s: hues %d and %d are %.1f apart", th.name, who, k, i, d)
					}
				}
			}
		}
	}
}

func TestOrderOfSeries(t *testing.T) {
	values := []Value{bar("", "a", "16", 1), bar("", "a", "4", 1), bar("", "b", "100", 1)}
	if got := chart("bars", values...).layOut(&light).names; !slices.Equal(got, []string{"4", "16", "100"}) {
		t.Errorf("numbers: %q", got)
	}
	c := chart("bars", values...)
	c.Order = []string{"100", "7", "16"}
	if got := c.layOut(&light).names; !slices.Equal(got, []string{"100", "16", "4"}) {
		t.Errorf("as ordered: %q", got)
	}
	values[1].Series = "few"
	if got := chart("bars", values...).layOut(&light).names; !slices.Equal(got, []string{"16", "few", "100"}) {
		t.Errorf("names: %q", got)
	}
}

func TestChartFormats(t *testing.T) {
	for _, c := range []*Chart{
		chart("bars", bar("ring.3", "small", "sent", 3), bar("ring.3", "small", "received", 5)),
		chart("grouped", bar("ring.3", "small", "sent", -3), bar("ring.3", "small", "received", 5)),
		chart("lines", Value{X: 1, Y: 3, Series: "sent"}, Value{X: 3, Y: 5, Series: "received"}),
		chart("points", Value{X: 1, Y: 3, Series: "sent"}, Value{X: 1, Y: math.Inf(1), Series: "received"}),
	} {
		var svg, pdf bytes.Buffer
		if err := c.Draw(&svg, Options{Format: "svg"}); err != nil {
			t.Fatal(err)
		}
		x := "size"
		if !c.bars() {
			x = "size [B]"
		}
		for _, text := range []string{"sizes of ring.3", "messages against size", "messages", x, "kind", "sent",
			"received"} {
			if !strings.Contains(svg.String(), ">"+text+"<") {
				t.Errorf("svg of %s has no text %q", c.Kind, text)
			}
		}
		if err := xml.Unmarshal(svg.Bytes(), new(struct{})); err != nil {
			t.Errorf("svg of %s: %v", c.Kind, err)
		}
		if err := c.Draw(&pdf, Options{Format: "pdf"}); err != nil || !bytes.HasPrefix(pdf.Bytes(), []byte("%PDF-")) {
			t.Errorf("pdf of %s: %v", c.Kind, err)
		}
		if err := c.Draw(io.Discard, Options{Format: "gif"}); err == nil {
			t.Error("drew a gif")
		}
	}
	// nothing at all, and nothing that can be drawn
	for _, kind := range []string{"bars", "grouped", "lines", "points"} {
		for _, c := range []*Chart{chart(kind), chart(kind, Value{Category: "a", X: none, Y: none, Fit: none})} {
			for _, log := range []bool{false, true} {
				c.X.Log, c.Y.Log = log && kind != "bars", log && kind != "bars"
				if err := c.Draw(io.Discard, Options{Format: "png"}); err != nil {
					t.Errorf("%s without values: %v", kind, err)
				}
			}
		}
	}
}

// TestRanges looks at bars that do not begin at 0, and at one of no height.
func TestRanges(t *testing.T) {
	ch := chart("ranges")
	for category, ends := range map[string][2]float64{"a.3": {300, 500}, "b.5": {700, 700}} {
		ch.Add(Value{Category: category, X: none, Y: ends[0], To: ends[1], Fit: none})
	}
	p, img := ch.layOut(&light), picture(t, ch)
	at := map[string]float64{}
	for _, s := range p.slots {
		at[s.category] = s.at
	}
	for _, c := range []struct {
		category string
		y        float64
		seen     bool
	}{{"a.3", 310, true}, {"a.3", 490, true}, {"a.3", 285, false}, {"a.3", 515, false}, {"b.5", 700, true},
		{"b.5", 680, false}} {
		if got := colourAt(img, p, at[c.category], c.y) == p.colour(0); got != c.seen {
			t.Errorf("%s at %v: drawn is %v", c.category, c.y, got)
		}
	}
}

// TestHeatMap looks at the middles of cells: 3 across, 2 up, one without a number.
func TestHeatMap(t *testing.T) {
	h := NewHeatMap([]float64{3, 5, 9}, []float64{17, 4097})
	for i, v := range []float64{100, 200, 300, 400, 600, none} {
		h.Set(i%3, i/3, v, i == 4)
	}
	img := picture(t, h)
	b := img.Bounds()
	for i, want := range []color.RGBA{viridis(0), viridis(0.2), viridis(0.4), viridis(0.6), viridis(1),
		{255, 255, 255, 255}} {
		x, y := leftPx+30+300*(i%3)+150, b.Max.Y-bottomPx-450*(i/3)-225
		if got := color.RGBAModel.Convert(img.At(x, y)); got != want {
			t.Errorf("cell %d is %v; want %v", i, got, want)
		}
	}
	// The frame of the framed cell is white in the middle of its edge.
	if got := color.RGBAModel.Convert(img.At(leftPx+30+300, b.Max.Y-bottomPx-450-225)); got != (color.RGBA{255, 255,
		255, 255}) {
		t.Errorf("the frame is %v", got)
	}
}

// TestOwnTicksHaveNoUnit: the data's own values are not marked where an axis is in a multiple of its unit, as GB/s.
func TestOwnTicksHaveNoUnit(t *testing.T) {
	values := []float64{1e8, 1e9, 1e10}
	for unit, want := range map[string]int{"bytes/s": 0, "bytes": 0, "ns": 0, "1": 3} {
		if got := (Axis{Log: true, Unit: unit}).ownTicks(values); len(got) != want {
			t.Errorf("%s: %d marks, want %d", unit, len(got), want)
		}
	}
}

// Numbers of a short colour scale do not run into one another.
func TestNumbersOfAColourScaleAreApart(t *testing.T) {
	s := scale{3, 20.4, true}
	for _, apart := range []float64{0.01, 0.1} {
		marks := apartMarks(s, Axis{Unit: "ns"}, apart)
		at := []float64{0}
		for _, m := range marks {
			at = append(at, s.fraction(m.at))
		}
		at = append(at, 1)
		for i := 1; i < len(at); i++ {
			if at[i]-at[i-1] <= apart {
				t.Errorf("marks at %v, want them %v apart", at, apart)
			}
		}
		if apart < 0.1 && len(marks) == 0 {
			t.Error("no numbers between the ends of a long scale")
		}
	}
}
