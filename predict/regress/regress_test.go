package regress

import (
	"math"
	"strings"
	"testing"
)

// table1 is Table 1 of Panadero et al.: message sizes of BT class D in KB.
var table1 = []Point{{16, 2496}, {9, 2892}, {36, 1849}, {25, 2132}}

func fit(t *testing.T, points ...Point) *Curve {
	t.Helper()
	c, err := Fit(points)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func near1(a, b, within float64) bool { return math.Abs(a-b) <= within }

// TestTable1OfThePaper: 1628 KB were measured on 49 ranks; the paper predicts 1703.59.
func TestTable1OfThePaper(t *testing.T) {
	p := fit(t, table1...).Predict(49)
	if !near1(p.Value, 1628, 16.28) || p.Low > 1628 || p.High < 1628 {
		t.Errorf("%s: %v in %v to %v; want 1628 within 1 %%", p.Formula, p.Value, p.Low, p.High)
	}
	if p.High-p.Low > 1967-1471 {
		t.Errorf("the interval, %v to %v, is wider than that of the power law", p.Low, p.High)
	}
}

// TestPowerLawOfThePaper: 5965.01 P^-0.32239 by least squares of logarithms, by hand, and its interval with t(0.975,
// 2) = 4.3027.
func TestPowerLawOfThePaper(t *testing.T) {
	c := fit(t, table1...)
	for _, want := range []struct {
		form             string
		value, low, high float64
	}{{PaperPower, 1703.60, 1473.4, 1969.8}, {Power, 1700.99, 1471.1, 1966.8}} {
		p, err := c.PredictWith(49, want.form)
		if err != nil {
			t.Fatal(err)
		}
		if !near1(p.Value, want.value, 0.01) || !near1(p.Low, want.low, 0.1) || !near1(p.High, want.high, 0.1) {
			t.Errorf("%s: %v in %v to %v; want %v", want.form, p.Value, p.Low, p.High, want)
		}
	}
}

// TestExactLaws compares predictions from whole numbers with the law evaluated by hand.
func TestExactLaws(t *testing.T) {
	for _, c := range []struct {
		points []Point
		at     int64
		want   float64
	}{
		{[]Point{{2, 64}, {4, 64}, {8, 64}}, 64, 64},
		{[]Point{{2, 4096}, {4, 1024}, {8, 256}, {16, 64}}, 32, 16},                 // 2^14/P^2
		{[]Point{{4, 2418}, {9, 3624}, {16, 4830}, {25, 6036}}, 49, 8448},           // 6q 201 + 6
		{[]Point{{9, 72000}, {16, 60750}, {25, 51840}, {36, 45000}}, 81, 32000},     // 324000 (q-1)/q^2
		{[]Point{{2, 44}, {4, 88}, {8, 132}, {16, 176}}, 128, 308},                  // 44 log2 P
		{[]Point{{1, 0}, {2, 100}, {4, 300}, {8, 700}}, 16, 1500},                   // 100 (P-1)
		{[]Point{{3, 2000}, {5, 3000}, {6, 3000}, {9, 4000}, {17, 5000}}, 33, 6000}, // 1000 ceil(log2 P)
		// 80 (floor(100/q)+1)^2 with remainders at q = 3, 6 and 7: at 12 floor is 8
		{[]Point{{9, 92480}, {16, 54080}, {36, 23120}, {49, 18000}}, 144, 6480},
	} {
		p := fit(t, c.points...).Predict(c.at)
		if p.Form != Exact || p.Value != c.want || p.Low > c.want || p.High < c.want {
			t.Errorf("%v at %d: %s (%s) says %v in %v to %v, want %v", c.points, c.at, p.Formula, p.Form, p.Value,
				p.Low, p.High, c.want)
		}
	}
}

// TestNotExact: what fits all values but may be otherwise at the rank count has an interval with what it may be.
func TestNotExact(t *testing.T) {
	for _, c := range []struct {
		what      string
		points    []Point
		at        int64
		low, high float64
	}{
		{"a fraction", []Point{{4, 3}, {8, 6}, {16, 12}, {32, 24}}, 10, 7, 8},
		{"a share of cells beside a constant", []Point{{4, 280}, {6, 220}, {8, 190}, {12, 160}}, 16, 130, 160},
		{"all but a share of cells", []Point{{4, 540}, {6, 600}, {8, 630}, {12, 660}}, 16, 660, 690},
		{"blocks of 24 x 30 cells", []Point{{4, 180}, {6, 120}, {8, 90}, {12, 60}}, 24, 28, 32},
		{"48 planes of 128 KiB", []Point{{4, 12 << 17}, {8, 6 << 17}, {16, 3 << 17}}, 32, 1 << 17, 2 << 17},
		{"a negative number", []Point{{4, 99968}, {8, 99936}, {16, 99872}}, 12800, 0, 0},
		{"600 edges of the square, or floor(log2 P)", []Point{{4, 1200}, {9, 1800}, {16, 2400}}, 50, 3000, 4243},
		{"two rank counts", []Point{{4, 40000}, {8, 80000}}, 16, 160000, 160000},
		{"two values", []Point{{5, 30000}, {7, 30000}, {9, 40000}}, 17, 50000, 50000},
		{"the logarithm, rounded up", []Point{{9, 4}, {12, 4}, {16, 4}}, 20, 4, 5},
		{"1000 logarithms, rounded down", []Point{{4, 2000}, {5, 2000}, {6, 2000}, {7, 2000}}, 8, 2000, 3000},
	} {
		p := fit(t, c.points...).Predict(c.at)
		if p.Exact || p.Low > c.low || p.High < c.high || p.Value < p.Low || p.Value > p.High ||
			p.Low != math.Trunc(p.Low) || p.High != math.Trunc(p.High) {
			t.Errorf("%s: %s says %v in %v to %v at %d ranks, exact: %v; want %v to %v", c.what, p.Formula, p.Value,
				p.Low, p.High, c.at, p.Exact, c.low, c.high)
		}
	}
}

// TestStillExact: rivals that the runs rule out make nothing inexact.
func TestStillExact(t *testing.T) {
	for _, c := range []struct {
		points []Point
		at     int64
		want   float64
	}{
		{[]Point{{4, 4}, {8, 4}, {16, 4}}, 20, 4},              // logarithms 2 to 4
		{[]Point{{9, 7}, {12, 7}, {16, 7}}, 20, 7},             // no multiple of 4
		{[]Point{{9, 4000}, {12, 4000}, {16, 4000}}, 15, 4000}, // the logarithm is 4 there, too
		{[]Point{{4, 1260}, {6, 840}, {9, 560}, {12, 420}}, 18, 280},
		{[]Point{{4, 49152}, {8, 57344}, {16, 61440}}, 32, 63488}, // 65536 (P-1)/P
	} {
		if p := fit(t, c.points...).Predict(c.at); !p.Exact || p.Value != c.want {
			t.Errorf("%v: %s says %v in %v to %v at %d ranks, exact: %v; want %v", c.points, p.Formula, p.Value, p.Low,
				p.High, c.at, p.Exact, c.want)
		}
	}
}

// TestFormWithoutValue: --form exact has no answer where no exact law has a value, and is as exact as the others.
func TestFormWithoutValue(t *testing.T) {
	face := fit(t, Point{9, 92480}, Point{16, 54080}, Point{36, 23120}, Point{49, 18000})
	p, err := face.PredictWith(50, Exact)
	if err == nil || !strings.Contains(err.Error(), "no exact law has a value at 50") {
		t.Errorf("%+v, %v: want no value of a root at 50", p, err)
	}
	if p, err := face.PredictWith(144, Exact); err != nil || !p.Exact || p.Value != 6480 {
		t.Errorf("%+v, %v: want 6480", p, err)
	}
	if p, err := fit(t, Point{4, 12}, Point{9, 18}, Point{16, 24}).PredictWith(50, Exact); err != nil || p.Exact {
		t.Errorf("%+v, %v: want an interval, as 18 bits show no law", p, err)
	}
}

// TestExactLawsThatDiffer: BT class W's solver face, N = 24. 4, 9 and 16 ranks have edges that divide 24, so both 240
// (floor(24/q)+1)^2 and 240 (ceil(24/q)+1)^2 fit all values; they predict 6000 and 8640 on 25.
func TestExactLawsThatDiffer(t *testing.T) {
	c := fit(t, Point{4, 240 * 13 * 13}, Point{9, 240 * 9 * 9}, Point{16, 240 * 7 * 7})
	p := c.Predict(25)
	if p.Exact || p.Low > 6000 || p.High < 8640 || p.Value != 6000 {
		t.Errorf("%s: %v in %v to %v", p.Formula, p.Value, p.Low, p.High)
	}
	if w, ok := warned(p, LawsDiffer); !ok {
		t.Error("no warning")
	} else if want := "a run on 25"; !strings.Contains(w, want) {
		t.Errorf("%q does not say %q", w, want)
	}
	if p := fit(t, Point{4, 240 * 13 * 13}, Point{9, 240 * 9 * 9}, Point{16, 240 * 7 * 7},
		Point{25, 6000}).Predict(49); p.Value != 3840 {
		t.Errorf("with 25 ranks: %s says %v of 49, want 3840", p.Formula, p.Value)
	}
}

// TestExactConstantsHaveAllDigits: two constants that differ in the seventh digit are different laws.
func TestExactConstantsHaveAllDigits(t *testing.T) {
	const most = 1<<53 - 1
	for value, want := range map[float64]string{1006196: "1006196", 1006200: "1006200", most: "9007199254740991"} {
		if p := fit(t, Point{2, value}, Point{4, value}, Point{8, value}).Predict(32); p.Formula != want || !p.Exact {
			t.Errorf("%v: %s, exact: %v", value, p.Formula, p.Exact)
		}
		for _, h := range []*Hypothesis{{C: value}, {Sum: []Summand{{C: value, Variable: "P"}}}} {
			if text := h.String(); !strings.Contains(text, want) {
				t.Errorf("%v: %s", value, text)
			}
		}
	}
	if text := (&Hypothesis{C: 1.0 / 3}).String(); text != "0.333333" {
		t.Errorf("a third: %s", text)
	}
}

// TestRefusedForms: a line that falls below zero on the way is refused, however well it fits.
func TestRefusedForms(t *testing.T) {
	c := fit(t, Point{2, 100.02}, Point{4, 89.99}, Point{8, 70.03}, Point{16, 29.99})
	if p := c.Predict(18); p.Form != Linear || !near1(p.Value, 20, 0.2) {
		t.Errorf("at 18: %s says %v", p.Formula, p.Value)
	}
	p := c.Predict(64)
	if p.Form == Linear || p.Value < 0 || p.Low < 0 {
		t.Errorf("at 64: %s says %v in %v to %v", p.Formula, p.Value, p.Low, p.High)
	}
	if _, ok := warned(p, Refused); !ok {
		t.Errorf("no warning that a better form was refused: %v", p.Warnings)
	}
}

func TestTwoNumbersOfRanks(t *testing.T) {
	p := fit(t, Point{4, 1000.5}, Point{8, 520.25}, Point{8, 515}).Predict(16)
	if p.Low > 260 || p.High < 340 || p.Low < 0 || p.Value < p.Low || p.Value > p.High {
		t.Errorf("%s: %v in %v to %v", p.Formula, p.Value, p.Low, p.High)
	}
	if _, ok := warned(p, FewPoints); !ok {
		t.Error("no warning")
	}
}

func TestNumbersOfRanksOfOneKind(t *testing.T) {
	c := fit(t, table1...)
	if _, ok := warned(c.Predict(50), OneKind); !ok {
		t.Error("50 is no square, and no warning")
	}
	if _, ok := warned(c.Predict(64), OneKind); ok {
		t.Error("64 is a square")
	}
	if _, ok := warned(c.Predict(100), FarAway); !ok {
		t.Error("100 is far from 36")
	}
}

func TestUnfittablePointsAreRefused(t *testing.T) {
	for _, points := range [][]Point{nil, {{4, 1}}, {{4, 1}, {4, 2}}, {{0, 1}, {4, 2}}, {{2, math.NaN()}, {4, 2}},
		{{2, math.Inf(1)}, {4, 2}}} {
		if _, err := Fit(points); err == nil {
			t.Errorf("%v: no error", points)
		}
	}
	if _, err := fit(t, table1...).PredictWith(49, "cubic"); err == nil {
		t.Error("no error for an unknown form")
	}
	if _, err := fit(t, Point{2, 0}, Point{4, 3}).PredictWith(8, Power); err == nil {
		t.Error("a power law of a zero")
	}
}

func warned(p Prediction, name string) (text string, ok bool) {
	for _, w := range p.Warnings {
		if w.Name == name {
			return w.Text, true
		}
	}
	return "", false
}

// TestRequestedFormIsUsedInsideItsInterval: a form requested by name is used even if it predicts the impossible, and
// the prediction lies in its interval.
func TestRequestedFormIsUsedInsideItsInterval(t *testing.T) {
	p, err := fit(t, Point{2, 100}, Point{4, 90.5}, Point{8, 70}, Point{16, 31}).PredictWith(64, Linear)
	if err != nil || p.Value > -100 || p.Low > p.Value || p.High < p.Value {
		t.Errorf("%v in %v to %v, %v", p.Value, p.Low, p.High, err)
	}
}

// TestFitExact: only values of an exact law have one; where it has no whole value, it says so.
func TestFitExact(t *testing.T) {
	law, err := FitExact(map[int64]float64{2: 5, 4: 9, 8: 17, 16: 33})
	if err != nil || law == nil {
		t.Fatalf("%v, %v; want 1 + 2 P", law, err)
	}
	if value, _, _, ok := law.ValueAt(32); value != 65 || !ok {
		t.Errorf("%s is %v with 32 ranks, %t; want 65", law.Formula, value, ok)
	}
	if law, err := FitExact(map[int64]float64{2: 5, 4: 9.3, 8: 16, 16: 37}); err != nil || law != nil {
		t.Errorf("%v, %v; want no law", law, err)
	}
	if _, err := FitExact(map[int64]float64{2: 5}); err == nil {
		t.Error("one rank count has a law")
	}
}
