package regress

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// synthetic is a table of a known law.
type synthetic struct {
	law    string
	noise  float64 // standard deviation of the relative error of a value
	points []Point
	ask    int64 // twice the largest process count, or the next square near it
	truth  float64
	family []string // the families that contain the law
}

// newSynthetic draws a table: 4 to 8 process counts (powers of two, squares, or mixed), a law, and 0, 1 or 5 % of
// noise.
func newSynthetic(r *rand.Rand) *synthetic {
	s := &synthetic{}
	between := func(a, b float64) float64 { return a + (b-a)*r.Float64() }
	n := 4 + r.IntN(5)
	kind, start := r.IntN(3), r.IntN(4)
	mixed := []int64{4, 6, 8, 9, 12, 16, 18, 24, 27, 32, 36, 48}
	var ranks []int64
	for i := range n {
		ranks = append(ranks, []int64{1 << (start%3 + 1 + i), int64((start + 2 + i) * (start + 2 + i)),
			mixed[start+i]}[kind])
	}
	last := ranks[n-1]
	s.ask = 2 * last
	scale := math.Pow(10, between(2, 8))
	a, b := between(0.2, 1), between(0.2, 1)
	small := between(0.001, 0.1)
	e := between(-1.2, 1.5)
	edge := func(p float64) float64 { return p }
	if kind == 1 {
		edge = math.Sqrt
		q := int64(math.Sqrt(float64(last))) * 7 / 5
		s.ask = q * q
	}
	extent, w, d, h := math.Floor(8*edge(float64(last))+between(0, 2000)), float64(8*(1+r.IntN(40))),
		float64(1+r.IntN(2)), float64(r.IntN(3)-1)
	laws := []struct {
		name   string
		family []string
		at     func(p float64) float64
	}{
		{"constant", []string{Constant, Exact}, func(float64) float64 { return scale }},
		{"c P^a", []string{Power, Scaled}, func(p float64) float64 { return scale * math.Pow(p, e) }},
		{"c1 P^-1/2 + c2 P^-1", []string{Geometric},
			func(p float64) float64 { return scale * (a/math.Sqrt(p) + 2*b/p) }},
		{"c0 + c1 log2 P", []string{Log, Scaled, Exact},
			func(p float64) float64 { return scale * (5*a - 1 + b*math.Log2(p)) }},
		{"c0 + c1 P", []string{Linear, Scaled, Exact}, func(p float64) float64 { return scale * (50*a - 10 + b*p) }},
		{"c P log2 P", []string{Scaled, Exact}, func(p float64) float64 { return scale * p * math.Log2(p) }},
		{"c0 + c1 / P", []string{PMNF}, func(p float64) float64 { return scale * (3*small + b/p) }},
		{"c (q-1)/q^2", []string{Boundary}, func(p float64) float64 { q := math.Sqrt(p); return scale * (q - 1) / (q * q) }},
		{"c1 / P + c2 log2 P", []string{Geometric},
			func(p float64) float64 { return scale * (a/p + small/2*math.Log2(p)) }},
		{"w (floor(N/g)+h)^d", []string{Exact},
			func(p float64) float64 { return w * math.Pow(math.Floor(extent/edge(p))+h, d) }},
	}
	law := laws[r.IntN(len(laws))]
	s.law, s.family, s.truth = law.name, law.family, law.at(float64(s.ask))
	s.noise = []float64{0, 0.01, 0.05}[r.IntN(3)]
	counted := r.IntN(2) == 0 // bytes and counts are whole numbers, times are not
	for _, p := range ranks {
		y := law.at(float64(p)) * (1 + s.noise*r.NormFloat64())
		if counted {
			y = math.Round(y)
		}
		s.points = append(s.points, Point{p, y})
	}
	return s
}

// score counts the outcomes of predictions for one kind of table.
type score struct {
	tables, family, covered, either int
	width, off                      []float64
}

// predict predicts the table and counts the outcome in each score. right reports whether the family is that of the
// law, covered whether the interval contains the law's value, to the unit to which values are rounded.
func (s *synthetic) predict(t testing.TB, scores ...*score) (right, covered bool, p Prediction) {
	c, err := Fit(s.points)
	if err != nil {
		t.Fatal(err)
	}
	p = c.Predict(s.ask)
	rounding := 0.5*c.table.resolution*c.table.scale + 1e-9*math.Abs(s.truth)
	covered = p.Low-rounding <= s.truth && s.truth <= p.High+rounding
	right = slices.Contains(s.family, p.Form)
	for _, to := range scores {
		to.tables++
		for _, x := range []struct {
			is bool
			n  *int
		}{{right, &to.family}, {covered, &to.covered}, {right || covered, &to.either}} {
			if x.is {
				*x.n++
			}
		}
		to.width = append(to.width, (p.High-p.Low)/2/math.Abs(s.truth))
		to.off = append(to.off, math.Abs(p.Value-s.truth)/math.Abs(s.truth))
	}
	return right, covered, p
}

// TestSyntheticTables: in at least 90 % of 200 tables with known laws, the family is right or the interval covers the
// law's value at twice as many ranks; the intervals alone reach 90 % too.
func TestSyntheticTables(t *testing.T) {
	var all score
	r := rand.New(rand.NewPCG(8, 200))
	for range 200 {
		s := newSynthetic(r)
		if right, covered, p := s.predict(t, &all); !right && !covered {
			t.Logf("%s, noise %v, %v: at %d %v, predicted %v to %v by %s", s.law, s.noise, s.points, s.ask, s.truth,
				p.Low, p.High, p.Formula)
		}
	}
	t.Logf("of %d tables: family %d, covered %d, either %d", all.tables, all.family, all.covered, all.either)
	if all.either < 180 || all.covered < 180 {
		t.Errorf("of 200 tables %d are right and %d covered; want 180", all.either, all.covered)
	}
}

// TestManySyntheticTables checks the same on tables with a seed each, and prints the table of
// docs/validation/prediction.md. COMMQ_TABLES sets the number of tables (500).
func TestManySyntheticTables(t *testing.T) {
	n := 500
	if text := os.Getenv("COMMQ_TABLES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			t.Fatalf("COMMQ_TABLES=%s: want a number of tables", text)
		}
	}
	scores := map[string]*score{}
	var names []string
	for seed := range n {
		s := newSynthetic(rand.New(rand.NewPCG(uint64(seed), 8)))
		var to []*score
		for _, name := range []string{"all", s.law, fmt.Sprintf("noise %g %%", 100*s.noise),
			fmt.Sprintf("%d points", len(s.points))} {
			if scores[name] == nil {
				scores[name] = &score{}
				names = append(names, name)
			}
			to = append(to, scores[name])
		}
		s.predict(t, to...)
	}
	slices.Sort(names)
	for _, name := range names {
		x := scores[name]
		slices.Sort(x.width)
		slices.Sort(x.off)
		part := func(k int) float64 { return 100 * float64(k) / float64(x.tables) }
		t.Logf("| %s | %d | %.1f | %.1f | %.1f | %.2g | %.2g | %.2g |", name, x.tables, part(x.either),
			part(x.covered), part(x.family), 100*x.width[x.tables/2], 100*x.off[x.tables/2], 100*x.off[x.tables*9/10])
	}
	if all := scores["all"]; 10*all.either < 9*n || 10*all.covered < 9*n {
		t.Errorf("of %d tables %d are right and %d covered; want nine of ten", n, all.either, all.covered)
	}
}
