package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"reflect"
	"strings"
	"testing"
)

func drawn(t *testing.T, m Drawing, format string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := m.Draw(&b, Options{Format: format}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func matrix(t *testing.T, ranks int, cells ...[3]int64) *Matrix {
	t.Helper()
	m, err := NewMatrix(ranks)
	if err != nil {
		t.Fatal(err)
	}
	m.Title, m.Note, m.Value, m.Unit = "ring.3", "messages from source to destination", "messages", "1"
	m.Down, m.Across = "source", "destination"
	for _, c := range cells {
		if err := m.Add(c[0], c[1], c[2]); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// cellAt is the colour in the middle of a cell of a PNG.
func cellAt(img image.Image, l *layout, src, dst int) color.RGBA {
	x := l.left + (float64(dst)+0.5)*l.cellPx
	y := l.top + (float64(src)+0.5)*l.cellPx
	return color.RGBAModel.Convert(img.At(int(x), int(y))).(color.RGBA)
}

func greyOf(c color.Color) int { return int(color.GrayModel.Convert(c).(color.Gray).Y) }

// TestPNGHasSourceDownAndDarkerIsMore looks at pixels in both themes, for vector cells, for an image of them, and for
// blocks of ranks. On dark paper lighter is more.
func TestPNGHasSourceDownAndDarkerIsMore(t *testing.T) {
	for _, ranks := range []int{3, 17, 300, 1024, 2100} {
		for _, th := range []*theme{&light, &dark} {
			far := int64(ranks - 1)
			m := matrix(t, ranks, [3]int64{0, far, 400}, [3]int64{0, far, 17}, [3]int64{far, 1, 200}, [3]int64{1, 1, 1})
			o := Options{Format: "png", Theme: th.name, Colours: "linear"}
			l := m.layOut(matrixPx, o)
			l.left, l.top = leftPx, topPx
			var b bytes.Buffer
			if err := m.Draw(&b, o); err != nil {
				t.Fatal(err)
			}
			img, err := png.Decode(&b)
			if err != nil {
				t.Fatal(err)
			}
			last, one := m.n-1, 1/m.block
			for _, c := range []struct {
				src, dst int
				want     color.RGBA
			}{
				{0, last, th.shade(1)}, {last, one, th.shade(200.0 / 417)}, {one, one, th.shade(1.0 / 417)},
				{last, last, th.paper}, {last / 2, one, th.paper},
			} {
				if ranks == 3 && c.src == last/2 {
					continue
				}
				if got := cellAt(img, l, c.src, c.dst); distance(got, c.want) > 8 { // the palette may have it not quite
					t.Errorf("%s, %d ranks: from %d to %d %v; want %v", th.name, ranks, c.src, c.dst, got, c.want)
				}
			}
		}
	}
}

// A picture that is drawn quickly has the same pixels.
func TestQuickPictures(t *testing.T) {
	m := matrix(t, 300, [3]int64{0, 299, 400}, [3]int64{7, 1, 200}, [3]int64{1, 1, 1})
	var pictures [2]image.Image
	var sizes [2]int
	for i, quick := range []bool{false, true} {
		var b bytes.Buffer
		if err := m.Draw(&b, Options{Format: "png", Quick: quick}); err != nil {
			t.Fatal(err)
		}
		sizes[i] = b.Len()
		var err error
		if pictures[i], err = png.Decode(&b); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(pictures[0], pictures[1]) || sizes[0] >= sizes[1] {
		t.Errorf("pictures differ, or %d bytes are not less than %d", sizes[0], sizes[1])
	}
}

// TestShades: the grey of a scale goes away from the paper, evenly and without coming back, and the least amount is
// not the paper.
func TestShades(t *testing.T) {
	for _, th := range []*theme{&light, &dark} {
		before := greyOf(th.paper)
		for i := 0; i <= 10; i++ {
			g := greyOf(th.shade(float64(i) / 10))
			if step := g - before; th == &light && step > -8 || th == &dark && step < 8 {
				t.Errorf("%s: shade %d of 10 is grey %d after %d", th.name, i, g, before)
			}
			before = g
		}
	}
}

// TestLogarithmicColours: amounts that differ a hundredfold have colours by their logarithm, which the scale says and
// whose ticks are powers of ten.
func TestLogarithmicColours(t *testing.T) {
	for colours, log := range map[string]bool{"": true, "auto": true, "log": true, "linear": false} {
		m := matrix(t, 3, [3]int64{0, 1, 10}, [3]int64{1, 2, 1000}, [3]int64{2, 0, 100})
		l := m.layOut(matrixPx, Options{Colours: colours})
		l.left, l.top = leftPx, topPx
		want := light.shade(0.1)
		if log {
			want = light.shade(0.5)
		}
		var b, text bytes.Buffer
		if err := errors.Join(m.Draw(&b, Options{Format: "png", Colours: colours}),
			m.Draw(&text, Options{Format: "svg", Colours: colours})); err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		if got := cellAt(img, l, 2, 0); got != want {
			t.Errorf("%q: 100 of 1000 is %v; want %v", colours, got, want)
		}
		svg := text.String()
		if strings.Contains(svg, ">messages, logarithmic<") != log || strings.Contains(svg, ">10<") != log {
			t.Errorf("%q: the scale does not say whether it is logarithmic", colours)
		}
	}
	if l := matrix(t, 3, [3]int64{0, 1, 99}, [3]int64{1, 2, 1}).layOut(matrixPx, Options{}); l.log {
		t.Error("1 and 99 have logarithmic colours")
	}
	if l := matrix(t, 3).layOut(matrixPx, Options{}); l.log {
		t.Error("a matrix of nothing has logarithmic colours")
	}
}

// TestManyRanks draws 100,000 ranks: cells of 49 x 49 ranks with the sum of their values.
func TestManyRanks(t *testing.T) {
	m := matrix(t, 100000, [3]int64{0, 0, 300}, [3]int64{48, 48, 100}, [3]int64{49, 0, 200}, [3]int64{99999, 99999, 17})
	if want := "messages from source to destination; each cell is the sum of 49 x 49 ranks"; m.note() != want {
		t.Errorf("note %q; want %q", m.note(), want)
	}
	l := m.layOut(matrixPx, Options{})
	l.left, l.top = leftPx, topPx
	if m.n != 2041 || l.most != 400 {
		t.Errorf("%d cells in a row, the most %d; want 2041 and 400", m.n, l.most)
	}
	img := picture(t, m)
	for i, want := range []color.RGBA{light.shade(1), light.shade(0.5), light.paper} {
		if got := cellAt(img, l, i, 0); got != want {
			t.Errorf("cell %d is %v; want %v", i, got, want)
		}
	}
}

// TestMatricesSideBySide finds the second of two matrices at its place, with a scale of its own.
func TestMatricesSideBySide(t *testing.T) {
	a, err := NewPanel(3)
	if err != nil {
		t.Fatal(err)
	}
	b := matrix(t, 5, [3]int64{0, 1, 9})
	if err := a.Add(0, 1, 700); err != nil {
		t.Fatal(err)
	}
	img := picture(t, Matrices{a, b})
	l := b.layOut(panelPx, Options{})
	l.left, l.top = 2*leftPx+a.layOut(panelPx, Options{}).sidePx()+rightPx, topPx
	if most, none := cellAt(img, l, 0, 1), cellAt(img, l, 1, 0); most != light.shade(1) || none != light.paper {
		t.Errorf("the second matrix has %v and %v; want %v and the paper", most, none, light.shade(1))
	}
	if err := make(Matrices, 37).Draw(io.Discard, Options{Format: "png"}); err == nil || !strings.Contains(err.Error(), "want 1 to 36") {
		t.Errorf("37 matrices: %v", err)
	}
}

func TestOtherFormats(t *testing.T) {
	for _, ranks := range []int{3, 300} {
		m := matrix(t, ranks, [3]int64{0, 1, 9}, [3]int64{2, 0, 3})
		svg := drawn(t, m, "svg")
		dec := xml.NewDecoder(bytes.NewReader(svg))
		for {
			if _, err := dec.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("svg of %d ranks: %v", ranks, err)
			}
		}
		for _, text := range []string{"ring.3", "destination", "source", "messages"} {
			if !strings.Contains(string(svg), ">"+text+"<") {
				t.Errorf("svg of %d ranks has no text %q", ranks, text)
			}
		}
		if pdf := drawn(t, m, "pdf"); !bytes.HasPrefix(pdf, []byte("%PDF-")) || !bytes.Contains(pdf, []byte("%%EOF")) {
			t.Errorf("pdf of %d ranks is none", ranks)
		}
	}
}

func TestEmptyMatrixAndLongTitle(t *testing.T) {
	m := matrix(t, 1)
	m.Title, m.Note = strings.Repeat("long ", 100), ""
	for _, format := range Formats() {
		if len(drawn(t, m, format)) == 0 {
			t.Errorf("%s is empty", format)
		}
	}
}

func TestWrongUse(t *testing.T) {
	for _, ranks := range []int{-1, 0} {
		if _, err := NewMatrix(ranks); err == nil {
			t.Errorf("a matrix of %d ranks", ranks)
		}
	}
	m := matrix(t, 3)
	for _, c := range [][3]int64{{3, 0, 1}, {0, 3, 1}, {-1, 0, 1}, {0, 0, -1}} {
		if err := m.Add(c[0], c[1], c[2]); err == nil {
			t.Errorf("added %v", c)
		}
	}
	if err := m.Draw(io.Discard, Options{Format: "gif"}); err == nil || !strings.Contains(err.Error(), ".png") {
		t.Errorf("gif: %v", err)
	}
	full := errors.New("disk full")
	if err := m.Draw(failing{full}, Options{Format: "png"}); !errors.Is(err, full) {
		t.Errorf("to a full disk: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestScaleNumbers(t *testing.T) {
	for v, want := range map[float64]float64{0.03: 0.05, 0.2: 0.2, 1: 1, 1.5: 2, 3: 5, 7: 10, 23: 50, 4660400: 5e6} {
		if got := niceStep(v); got != want {
			t.Errorf("niceStep(%g) = %g; want %g", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0", 500: "500", 1500: "1.5 k", 20000: "20 k", 5e6: "5 M", 2e18: "2 E"} {
		if got := short(v); got != want {
			t.Errorf("short(%g) = %q; want %q", v, got, want)
		}
	}
	for ranks, want := range map[int]int{1: 1, 16: 1, 17: 2, 64: 4, 100: 8, 1024: 64} {
		if got := rankStep(ranks, 16); got != want {
			t.Errorf("rankStep(%d) = %d; want %d", ranks, got, want)
		}
	}
}

// TestScaleOfAMatrixHasUnits: counts to the last digit, times and bytes in a unit that the scale names.
func TestScaleOfAMatrixHasUnits(t *testing.T) {
	for unit, want := range map[string][2]string{"1": {">messages<", ">195490007<"}, "bytes": {">messages [MB]<", ">195.5<"},
		"ns": {">messages [ms]<", ">195.5<"}} {
		m := matrix(t, 3, [3]int64{0, 1, 195490007})
		m.Unit = unit
		if text := string(drawn(t, m, "svg")); !strings.Contains(text, want[0]) || !strings.Contains(text, want[1]) {
			t.Errorf("unit %s: no %s in the scale", unit, want)
		}
	}
}

// TestPNGHasAPaletteWhereColoursAreFew compares the pixels of both forms.
func TestPNGHasAPaletteWhereColoursAreFew(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 17, 16))
	for i := range 17 * 16 {
		img.SetRGBA(i%17, i/17, color.RGBA{uint8(i % 256), 9, 3, 255})
	}
	few := withPalette(img)
	if few == nil || len(few.Palette) != 256 {
		t.Fatalf("256 colours: %v", few)
	}
	for i := range 17 * 16 {
		if got, want := color.RGBAModel.Convert(few.At(i%17, i/17)), img.At(i%17, i/17); got != want {
			t.Fatalf("pixel %d is %v; want %v", i, got, want)
		}
	}
	img.SetRGBA(16, 15, color.RGBA{9, 3, 9, 255})
	if few := withPalette(img); few == nil || len(few.Palette) != 256 ||
		distance(color.RGBAModel.Convert(few.At(16, 15)).(color.RGBA), color.RGBA{9, 3, 9, 255}) > 12 {
		t.Errorf("257 colours, one of them near others: %v", few)
	}
	img.SetRGBA(16, 15, color.RGBA{255, 200, 250, 255})
	if withPalette(img) != nil {
		t.Error("257 colours, one of them like no other, have a palette")
	}
}

// TestDifferenceIsRedAndBlue: more is red, less is blue, nothing is white, and the colours of the greatest are the
// darkest.
func TestDifferenceIsRedAndBlue(t *testing.T) {
	m, err := NewDifference(3)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]int64{{0, 1, 40}, {1, 2, -40}, {2, 0, 9}, {2, 0, -7}} {
		if err := m.Add(c[0], c[1], c[2]); err != nil {
			t.Fatal(err)
		}
	}
	l := m.layOut(matrixPx, Options{})
	l.left, l.top = leftPx, topPx
	img, err := png.Decode(bytes.NewReader(drawn(t, m, "png")))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		src, dst int
		want     color.RGBA
	}{{0, 1, color.RGBA{0xb2, 0x18, 0x2b, 255}}, {1, 2, color.RGBA{0x21, 0x66, 0xac, 255}},
		{1, 1, color.RGBA{255, 255, 255, 255}}} {
		x, y := l.left+(float64(c.dst)+0.5)*l.cellPx, l.top+(float64(c.src)+0.5)*l.cellPx
		if got := color.RGBAModel.Convert(img.At(int(x), int(y))); got != c.want {
			t.Errorf("%d to %d is %v, want %v", c.src, c.dst, got, c.want)
		}
	}
	if pale := light.difference(2.0 / 40); pale.R < pale.B || pale.R < 230 {
		t.Errorf("2 of 40 is %v, want a pale red", pale)
	}
	for _, format := range []string{"svg", "pdf"} {
		if len(drawn(t, m, format)) < 1000 {
			t.Error("no", format)
		}
	}
}
