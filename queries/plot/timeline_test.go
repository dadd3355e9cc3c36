package plot

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

func timeline() *Timeline {
	return &Timeline{Title: "Timeline: ring.3", Note: "3 ranks", Kinds: []string{"send", "wait"}, Idle: "outside MPI",
		Amount: Axis{Name: "sent", Unit: "bytes"}}
}

func svgOf(t *testing.T, d Drawing) string {
	t.Helper()
	var b bytes.Buffer
	if err := d.Draw(&b, Options{Format: "svg"}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestTimelineColours looks at rows of two ranks: a step of one kind, and one shared by two kinds from the bottom up.
func TestTimelineColours(t *testing.T) {
	d := timeline()
	d.AddTime(0, 1, 0, 1000, "send", 1000)
	d.AddTime(0, 1, 1000, 2000, "outside MPI", 500)
	d.AddTime(0, 1, 1000, 2000, "wait", 250) // and 250 in which the rank did not run
	d.AddTime(1, 1, 0, 1000, "outside MPI", 1000)
	d.AddTime(1, 1, 1000, 2000, "wait", 1000)
	d.AddMessage(0, 1, 100, 1900)
	d.AddAmount(0, 1000, 2048)
	d.AddAmount(0, 1000, 1024)
	p, strip := d.layOut(&light)
	img := picture(t, d)
	at := func(x, row float64) string {
		c := img.At(int(p.left+x/2000*chartPx), topPx+int(row*chartHighPx/2))
		r, g, b, _ := c.RGBA()
		return fmt.Sprintf("%02x%02x%02x", r>>8, g>>8, b>>8)
	}
	hex := func(i int) string { c := p.colour(i); return fmt.Sprintf("%02x%02x%02x", c.R, c.G, c.B) }
	send, wait, idle := hex(0), hex(1), hex(2)
	for _, c := range []struct {
		x, row float64
		want   string
	}{{50, 0.3, send}, {1500, 0.9, idle}, {1500, 0.4, wait}, {1500, 0.1, "ffffff"}, {500, 1.1, idle}, {1500, 1.8, wait}} {
		if got := at(c.x, c.row); got != c.want {
			t.Errorf("at %g in row %g: %s; want %s", c.x, c.row, got, c.want)
		}
	}
	if strip == nil || strip.y.most < 3072 || strip.yTitle() != "sent [kB]" {
		t.Errorf("strip %+v", strip)
	}
	svg := svgOf(t, d)
	for _, text := range []string{"Timeline: ring.3", "3 ranks; the height of a colour is its share of the time", "rank", "send",
		"wait", "outside MPI", "time since the start of the run [µs]", "sent [kB]"} {
		if !strings.Contains(svg, ">"+text+"<") {
			t.Errorf("no text %q", text)
		}
	}
}

// TestTimelineIsBounded draws 1,500 ranks in 2,000 steps: an image where rectangles would be more than fit, and no row
// that is lower than a pixel.
func TestTimelineIsBounded(t *testing.T) {
	d := timeline()
	for row := range 350 {
		for bin := range 2000 {
			kind := d.Kinds[(row+bin)%2]
			d.AddTime(row*5, 5, float64(bin), float64(bin+1), kind, 3)
			d.AddTime(row*5, 5, float64(bin), float64(bin+1), "outside MPI", 2)
		}
	}
	p, _ := d.layOut(&light)
	if n := len(d.rects(p)); n > chartPx*chartHighPx || n < 350*100 {
		t.Errorf("%d rectangles", n)
	}
	svg := svgOf(t, d)
	if images, shapes := strings.Count(svg, "<image"), strings.Count(svg, "<path"); images != 1 || shapes > 100 {
		t.Errorf("%d images and %d shapes", images, shapes)
	}
	if !strings.Contains(svg, "a row is 5 ranks; coloured by the kind with the most time") {
		t.Error("the note does not say what a row is")
	}
	few := timeline()
	for bin := range 2000 { // which all join
		few.AddTime(0, 1, float64(bin), float64(bin+1), "send", 1)
	}
	if p, _ := few.layOut(&light); len(few.rects(p)) != 1 {
		t.Errorf("%d rectangles of one call", len(few.rects(p)))
	}
	for _, format := range Formats() {
		for _, theme := range Themes() {
			if err := timeline().Draw(new(bytes.Buffer), Options{Format: format, Theme: theme}); err != nil {
				t.Errorf("nothing at all: %v", err)
			}
		}
	}
}

// TestLinesEndAtTheEdge has two ranks and 100 ns, and messages that leave the picture.
func TestLinesEndAtTheEdge(t *testing.T) {
	p := &page{x: scale{least: 0, most: 100}, y: scale{least: 1.5, most: -0.5}}
	for _, c := range []struct {
		line    timeLine
		to, dst float64
		cut     bool
	}{
		{timeLine{0, 1, 10, 90}, 90, 1, false},
		{timeLine{0, 1, 50, 150}, 100, 0.5, true},
		{timeLine{1, 3, 10, 90}, 30, 1.5, true},
		{timeLine{1, 2, 10, 90}, 50, 1.5, true},
		{timeLine{1, 3, 60, 140}, 80, 1.5, true},
	} {
		if to, dst, cut := c.line.shownEnd(p); to != c.to || dst != c.dst || cut != c.cut {
			t.Errorf("%v ends at %g on %g, cut: %v; want %g, %g, %v", c.line, to, dst, cut, c.to, c.dst, c.cut)
		}
	}
}

// TestTheSamePictureIsTheSameFile draws many amounts twice.
func TestTheSamePictureIsTheSameFile(t *testing.T) {
	picture := func() string {
		tl := &Timeline{Kinds: []string{"send"}}
		tl.AddTime(0, 1, 0, 100, "send", 50)
		for at := range 50 {
			tl.AddAmount(float64(2*at), float64(2*at+2), 9)
		}
		var svg bytes.Buffer
		if err := tl.Draw(&svg, Options{Format: "svg"}); err != nil {
			t.Fatal(err)
		}
		return svg.String()
	}
	first, second := picture(), picture()
	if first != second {
		t.Error("the two differ")
	}
}

// TestTimelineOfSomeRanks draws ranks 5 to 7 only: no row is left empty for those below, and a line to one of them ends
// at the edge.
func TestTimelineOfSomeRanks(t *testing.T) {
	tl := &Timeline{Kinds: []string{"send"}}
	for rank := 5; rank < 8; rank++ {
		tl.AddTime(rank, 1, 0, 100, "send", 50)
	}
	tl.AddMessage(6, 2, 10, 50)
	p, _ := tl.layOut(themeOf(""))
	if p.y.most != 4.5 || p.y.least != 7.5 {
		t.Errorf("ranks from %v to %v, want 4.5 to 7.5", p.y.most, p.y.least)
	}
	var names []string
	for _, m := range p.yTicks {
		names = append(names, m.label)
	}
	if !slices.Equal(names, []string{"5", "6", "7"}) {
		t.Errorf("ticks %v, want 5 to 7", names)
	}
	if to, dst, cut := tl.lines[0].shownEnd(p); !cut || dst != 4.5 || to != 25 {
		t.Errorf("the line ends at %v, %v (cut %v), want at 25, 4.5", to, dst, cut)
	}
}

// TestOneDrawingForTwoPages draws the light and the dark picture at once, several times: they are those drawn alone.
func TestOneDrawingForTwoPages(t *testing.T) {
	tl := timeline()
	for rank := range 8 {
		tl.AddTime(rank, 1, 0, 1000, tl.Kinds[rank%2], 700)
	}
	tl.AddAmount(0, 500, 9)
	h := NewHeatMap([]float64{3, 5, 9}, []float64{17, 4097})
	h.Set(1, 1, 100, false)
	for name, d := range map[string]Drawing{"timeline": tl, "heat map": h, "matrix": matrix(t, 17, [3]int64{0, 16, 400})} {
		const times = 3
		png := func(theme string) string {
			var b bytes.Buffer
			if err := d.Draw(&b, Options{Format: "png", Theme: theme}); err != nil {
				t.Error(err)
			}
			return b.String()
		}
		alone := []string{png(light.name), png(dark.name)}
		var together [2 * times]string
		var drawing sync.WaitGroup
		for i := range together {
			drawing.Go(func() { together[i] = png([]string{light.name, dark.name}[i%2]) })
		}
		drawing.Wait()
		for i, got := range together {
			if got != alone[i%2] {
				t.Errorf("%s: picture %d differs", name, i)
			}
		}
	}
}

// The page of commq ui has the colours of pictures, apart from grey; two change places in the dark.
func TestColoursOfThePage(t *testing.T) {
	text, err := os.ReadFile("../../ui/web/src/colours.ts")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^  .*: hex\("(#[0-9a-f]{6})"\)`).FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	var want []string
	for _, c := range light.hues {
		want = append(want, fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B))
	}
	if len(all) != len(want) || !slices.Equal(all[:7], want[:7]) {
		t.Errorf("the page has %q, pictures have %q", all, want)
	}
	if !strings.Contains(string(text), `inDark: Record<string, string> = { send: "receive", receive: "send" }`) {
		t.Error("the page does not exchange send and receive in the dark")
	}
	if dark.hues[0] != light.hues[4] || dark.hues[4] != light.hues[0] ||
		!slices.Equal(dark.hues[1:4], light.hues[1:4]) {
		t.Errorf("dark pictures have %v", dark.hues)
	}
}
