package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"strings"
	"testing"
)

func drawn(t *testing.T, m *Matrix, format string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := m.Draw(&b, format); err != nil {
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

// greyAt is the grey in the middle of a cell of a PNG.
func greyAt(img image.Image, l *layout, src, dst int) uint8 {
	x := l.left + (float64(dst)+0.5)*l.cellPx
	y := l.top + (float64(src)+0.5)*l.cellPx
	return color.GrayModel.Convert(img.At(int(x), int(y))).(color.Gray).Y
}

// TestPNGHasSourceDownAndDarkerIsMore looks at pixels, for vector cells, for an image of them, and for blocks of ranks.
func TestPNGHasSourceDownAndDarkerIsMore(t *testing.T) {
	for _, ranks := range []int{3, 17, 300, 1024, 2100} {
		far := int64(ranks - 1)
		m := matrix(t, ranks, [3]int64{0, far, 400}, [3]int64{0, far, 17}, [3]int64{far, 1, 200}, [3]int64{1, 1, 1})
		l := m.layOut(matrixPx)
		l.left, l.top = leftPx, topPx
		img, err := png.Decode(bytes.NewReader(drawn(t, m, "png")))
		if err != nil {
			t.Fatal(err)
		}
		last := m.n - 1
		one := 1 / m.block
		for _, c := range []struct {
			src, dst int
			low, up  uint8
		}{
			{0, last, 0, 0},       // 417 of 417: black
			{last, one, 100, 135}, // 200: the middle
			{one, one, 225, 232},  // 1: the lightest grey, and not white
			{last, last, 255, 255},
			{last / 2, one, 255, 255},
		} {
			if ranks == 3 && c.src == last/2 {
				continue
			}
			if g := greyAt(img, l, c.src, c.dst); g < c.low || g > c.up {
				t.Errorf("%d ranks: from %d to %d grey %d; want %d to %d", ranks, c.src, c.dst, g, c.low, c.up)
			}
		}
	}
}

// TestManyRanks draws 100,000 ranks: cells of 49 x 49 ranks with the sum of their values.
func TestManyRanks(t *testing.T) {
	m := matrix(t, 100000, [3]int64{0, 0, 300}, [3]int64{48, 48, 100}, [3]int64{49, 0, 200}, [3]int64{99999, 99999, 17})
	if want := "messages from source to destination; each cell is the sum of 49 x 49 ranks"; m.note() != want {
		t.Errorf("note %q; want %q", m.note(), want)
	}
	l := m.layOut(matrixPx)
	l.left, l.top = leftPx, topPx
	if m.n != 2041 || l.most != 400 {
		t.Errorf("%d cells in a row, the most %d; want 2041 and 400", m.n, l.most)
	}
	img := picture(t, m)
	for i, want := range []uint8{0, 115, 255} {
		if g := greyAt(img, l, i, 0); g != want {
			t.Errorf("cell %d has grey %d; want %d", i, g, want)
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
	l := b.layOut(panelPx)
	l.left, l.top = 2*leftPx+a.layOut(panelPx).sidePx()+rightPx, topPx
	if g, w := greyAt(img, l, 0, 1), greyAt(img, l, 1, 0); g != 0 || w != 255 {
		t.Errorf("the second matrix has grey %d and %d; want 0 and 255", g, w)
	}
	if err := make(Matrices, 37).Draw(io.Discard, "png"); err == nil || !strings.Contains(err.Error(), "want 1 to 36") {
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
	if err := m.Draw(io.Discard, "gif"); err == nil || !strings.Contains(err.Error(), ".png") {
		t.Errorf("gif: %v", err)
	}
	full := errors.New("disk full")
	if err := m.Draw(failing{full}, "png"); !errors.Is(err, full) {
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

// TestScaleOfAMatrixHasUnits: counts to the last digit, times and bytes with prefixes.
func TestScaleOfAMatrixHasUnits(t *testing.T) {
	for unit, want := range map[string]string{"1": ">195490007<", "bytes": ">195.5 MB<", "ns": ">195.5 ms<"} {
		m := matrix(t, 3, [3]int64{0, 1, 195490007})
		m.Unit = unit
		if text := string(drawn(t, m, "svg")); !strings.Contains(text, want) {
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
	if withPalette(img) != nil {
		t.Error("257 colours have a palette")
	}
}

// TestDifferenceIsRedAndBlue: more is red, less is blue, nothing is white, and the colours of the greatest are the darkest.
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
	l := m.layOut(matrixPx)
	l.left, l.top = leftPx, topPx
	img, err := png.Decode(bytes.NewReader(drawn(t, m, "png")))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		src, dst int
		want     color.RGBA
	}{{0, 1, color.RGBA{0xb2, 0x18, 0x2b, 255}}, {1, 2, color.RGBA{0x21, 0x66, 0xac, 255}}, {1, 1, color.RGBA{255, 255, 255, 255}}} {
		x, y := l.left+(float64(c.dst)+0.5)*l.cellPx, l.top+(float64(c.src)+0.5)*l.cellPx
		if got := color.RGBAModel.Convert(img.At(int(x), int(y))); got != c.want {
			t.Errorf("%d to %d is %v, want %v", c.src, c.dst, got, c.want)
		}
	}
	if pale := diverging(2.0 / 40); pale.R < pale.B || pale.R < 230 {
		t.Errorf("2 of 40 is %v, want a pale red", pale)
	}
	for _, format := range []string{"svg", "pdf"} {
		if len(drawn(t, m, format)) < 1000 {
			t.Error("no", format)
		}
	}
}
