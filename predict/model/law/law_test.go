package law

import (
	"testing"

	"github.com/commq/commq/predict/pattern"
)

// faceSamples returns sizes 8 (48/a+2) (48/b+2) on a grid over which the bits of the number of ranks are dealt; a and
// b are the extents of two axes.
func faceSamples(grid *pattern.Grid, a, b int, ranks ...int32) (all []Sample) {
	for _, p := range ranks {
		dims, _ := grid.Dims(p)
		for r := range p {
			all = append(all, Sample{Point{Ranks: p, Rank: r, PeerRank: pattern.None},
				8 * (48/int64(dims[a]) + 2) * (48/int64(dims[b]) + 2)})
		}
	}
	return all
}

// A size seen at only one number of ranks is never exact at another one. Laws of other faces suggest its value: on 2
// x 4 x 4 ranks 8 (24+2) (12+2) = 2912 bytes, on 4 x 4 x 4 ranks 8 (12+2) (12+2) = 1568.
func TestSingleSizeIsExactOnlyWhereSeen(t *testing.T) {
	grid := &pattern.Grid{Shape: pattern.Deal, Axes: 3, Order: []int{2, 1, 0}} // 32 ranks: 2 x 4 x 4
	if d, _ := grid.Dims(32); d[0] != 2 || d[1] != 4 || d[2] != 4 {
		t.Fatalf("the grid of 32 ranks is %v", d)
	}
	f := NewFitter([]*pattern.Grid{grid}, nil, nil)
	f.FitSize(faceSamples(grid, 0, 1, 8, 16, 32, 128), 8, grid)
	face := f.FitSize(faceSamples(grid, 0, 2, 32), 8, grid)
	unrelated := f.FitSize([]Sample{{Point{Ranks: 32, Rank: 3, PeerRank: pattern.None}, 57}}, 1, grid)
	if err := f.Settle(); err != nil {
		t.Fatal(err)
	}
	evaluate := func(l *Law, ranks int32) Estimate {
		t.Helper()
		e, ok := l.Evaluate(&Point{Ranks: ranks, Rank: 3, PeerRank: pattern.None})
		if !ok {
			t.Fatalf("no value on %d ranks", ranks)
		}
		return e
	}
	if e := evaluate(face, 32); !e.Exact || e.Value != 2912 {
		t.Errorf("where it was seen: %+v, want 2912 exactly", e)
	}
	if e := evaluate(face, 64); e.Exact || e.Value != 1568 || e.Low > 1568 || e.High < 2912 {
		t.Errorf("on 64 ranks: %+v, want 1568, not exact, in an interval that includes the size that was seen", e)
	}
	if e := evaluate(unrelated, 64); e.Exact || e.Value != 57 || e.Low != 0 || e.High < 1<<50 {
		t.Errorf("a size without relatives: %+v, want 57, from 0 without upper bound", e)
	}
	if face.IsExact() {
		t.Error("the law claims to be exact")
	}
}

// Panels are broadcast by the ranks of a row in turn: iteration i by column i mod g, with 12 panels on 2 to 4 columns.
// The prediction is for 5 columns.
func TestRootsThatRotate(t *testing.T) {
	grid := &pattern.Grid{Shape: pattern.Cubic, Axes: 2, Order: []int{0, 1}}
	var samples []Sample
	for _, q := range []int32{2, 3, 4} {
		for r := range q * q {
			for i := range int32(12) {
				samples = append(samples, Sample{Point{Ranks: q * q, Rank: r, PeerRank: pattern.None,
					Index: []int32{i}}, int64(i % q)})
			}
		}
	}
	f := NewFitter([]*pattern.Grid{grid}, nil, nil)
	l := f.FitNumber(samples, grid)
	if err := f.Settle(); err != nil {
		t.Fatal(err)
	}
	for i := range int32(12) {
		e, ok := l.Evaluate(&Point{Ranks: 25, Rank: 7, PeerRank: pattern.None, Index: []int32{i}})
		if !ok || !e.Exact || e.Value != int64(i%5) {
			t.Errorf("iteration %d on 25 ranks: %+v, want %d; the law is %s", i, e, i%5, l.TextAt(25))
		}
	}
}

// A loop with 10 iterations on 4 ranks and 15 on 5 to 7 does five times as many as the logarithm says, and on 9 ranks
// 20. That 15 is what the larger runs have does not make it a law: it is wrong on 4 ranks.
func TestNumberOfTheLargestRunIsNoLawAlone(t *testing.T) {
	var samples []Sample
	for i, value := range []int64{10, 15, 15, 15} {
		samples = append(samples, Sample{Point{Ranks: int32(4 + i), PeerRank: pattern.None}, value})
	}
	f := NewFitter(nil, nil, nil)
	l := f.FitNumber(samples, nil)
	if err := f.Settle(); err != nil {
		t.Fatal(err)
	}
	l = WithExtents(l, samples, nil, nil, true)
	for ranks, want := range map[int32]int64{4: 10, 7: 15} {
		if e, ok := l.Evaluate(&Point{Ranks: ranks, PeerRank: pattern.None}); !ok || e.Value != want {
			t.Errorf("on %d ranks: %+v, want %d", ranks, e, want)
		}
	}
	if e, ok := l.Evaluate(&Point{Ranks: 9, PeerRank: pattern.None}); ok && (e.Exact || e.Low > 20 || e.High < 20) {
		t.Errorf("on 9 ranks: %+v, want 20 in its interval, not exact", e)
	}
}

// 28 iterations for each step of the logarithm: 84 on 6 and 8 ranks, 112 on 9 and 12. 28 + 28 g is the same on planes
// with 2 or 3 rows, and longer; on 18 ranks, 6 x 3, there are 140 and not 112.
func TestSimplerSumsAreRivals(t *testing.T) {
	grid := &pattern.Grid{Shape: pattern.Balanced, Axes: 2, Order: []int{0, 1}}
	var samples []Sample
	for _, x := range []struct {
		ranks int32
		value int64
	}{{6, 84}, {8, 84}, {9, 112}, {12, 112}} {
		for r := range x.ranks {
			samples = append(samples, Sample{Point{Ranks: x.ranks, Rank: r, PeerRank: pattern.None}, x.value})
		}
	}
	f := NewFitter([]*pattern.Grid{grid}, nil, nil)
	l := f.FitNumber(samples, grid)
	if err := f.Settle(); err != nil {
		t.Fatal(err)
	}
	if e, ok := l.Evaluate(&Point{Ranks: 18, PeerRank: pattern.None}); !ok || e.Low > 140 || e.High < 140 {
		t.Errorf("on 18 ranks: %+v, want 140 in the interval; the law is %s", e, l.TextAt(18))
	}
}

// A number that is twice an extent which did not vary is a constant, or that of the other extent that an open grid has.
func TestMultiplesOfOpenGrids(t *testing.T) {
	cube := pattern.Grid{Shape: pattern.Balanced, Axes: 3, Order: []int{0, 1, 2}} // 2 ranks on its first axis on 8 to 18 ranks
	var samples []Sample
	for _, p := range []int32{8, 12, 16, 18} {
		samples = append(samples, Sample{Point{Ranks: p, PeerRank: pattern.None}, 14})
	}
	at := &Point{Ranks: 27, PeerRank: pattern.None}
	if e, ok := WithExtents(NewConstant(14), samples, nil, nil, true).Evaluate(at); !ok || !e.Exact || e.Value != 14 {
		t.Errorf("without an open grid: %+v, want 14 exactly", e)
	}
	l := WithExtents(NewConstant(14), samples, nil, []pattern.Grid{cube}, true)
	if e, ok := l.Evaluate(at); !ok || e.Exact || e.Low != 14 || e.High != 21 {
		t.Errorf("with one: %+v, want 14 to 21", e)
	}
}

// 945 cells are divided over the ranks, and a rank has the block of its number less its coordinate on the second axis
// of a 4 x 4 x 2 grid: on 4 to 32 ranks that is as long as its own. On 128 ranks, 8 x 4 x 4, rank 49 = 1 + 8 (2 + 4
// (1)) has that of rank 47, 8 cells and not 7: 945 = 7 x 128 + 49.
func TestBlocksOfRanksLessACoordinate(t *testing.T) {
	grid := &pattern.Grid{Shape: pattern.Deal, Axes: 3, Order: []int{0, 1, 2}}
	block := func(p, r int64) int64 {
		if r < 945%p {
			return 945/p + 1
		}
		return 945 / p
	}
	var samples []Sample
	for _, p := range []int32{4, 8, 16, 32} {
		for r := range p {
			x, _ := grid.Coords(p, r)
			samples = append(samples, Sample{Point{Ranks: p, Rank: r, PeerRank: pattern.None, Index: []int32{0}},
				4 * block(int64(p), int64(r-x[1]))})
		}
	}
	f := NewFitter([]*pattern.Grid{grid}, nil, nil)
	l := f.FitSize(samples, 4, nil)
	if err := f.Settle(); err != nil {
		t.Fatal(err)
	}
	e, ok := l.Evaluate(&Point{Ranks: 128, Rank: 49, PeerRank: pattern.None, Index: []int32{0}})
	if !ok || e.Exact || e.Low > 32 || e.High < 32 {
		t.Errorf("%+v of %s, want 32 in the interval, not exact", e, l.TextAt(128))
	}
}

// The ranks of a cube send blocks of 87 x 82 cells in turn, those with coordinate k on its last axis in step k, on 8 to
// 18 ranks. On a plane of which the first axis is twice as long as the second of the cube, 174 x 82 cells give the
// same. On 27 ranks, 3 x 3 x 3 or 9 x 3, they do not. Step 2 is on few numbers of ranks, which show no law alone.
func TestRivalsOnOtherGridsHoldForEachPlace(t *testing.T) {
	plane := &pattern.Grid{Shape: pattern.Balanced, Axes: 2, Order: []int{1, 0}}
	cube := pattern.Grid{Shape: pattern.Balanced, Axes: 3, Order: []int{0, 1, 2}}
	block := func(n int64, g, x int32) int64 { return (n - int64(x) + int64(g) - 1) / int64(g) }
	var samples []Sample
	for _, p := range []int32{8, 12, 16, 18} {
		g, _ := cube.Dims(p)
		for peer := range p {
			x, _ := cube.Coords(p, peer)
			for z := range g[2] {
				if z != x[2] {
					samples = append(samples, Sample{Point{Ranks: p, Rank: peer + (z-x[2])*g[0]*g[1], PeerRank: peer,
						Index: []int32{x[2]}}, 8 * block(87, g[1], x[1]) * block(82, g[2], x[2])})
				}
			}
		}
	}
	f := NewFitter([]*pattern.Grid{plane}, nil, []pattern.Grid{cube})
	l := f.FitSize(samples, 8, plane)
	if err := f.Settle(); err != nil {
		t.Fatal(err)
	}
	e, ok := l.Evaluate(&Point{Ranks: 27, Rank: 9, PeerRank: 0, Index: []int32{0}})
	if want := int64(8 * 29 * 28); !ok || e.Exact || e.Low > want || e.High < want {
		t.Errorf("%+v of %s, want %d in the interval, not exact", e, l.TextAt(27), want)
	}
}

// What equals a logarithm in all runs, or half of an even extent, may be rounded otherwise.
func TestRoundingThatRunsDoNotShow(t *testing.T) {
	sample := func(p int32, value int64) Sample { return Sample{Point{Ranks: p, PeerRank: pattern.None}, value} }
	var levels, short, long, halves []Sample
	for _, p := range []int32{9, 12, 16} {
		levels, short, long = append(levels, sample(p, 3*8*4)), append(short, sample(p, 8*7)), append(long, sample(p, 8*400))
	}
	line := &pattern.Grid{Shape: pattern.Line, Axes: 1, Order: []int{0}}
	for _, p := range []int32{4, 8, 16, 32} {
		halves = append(halves, sample(p, 1+int64(p/2)))
	}
	for _, c := range []struct {
		what      string
		law       func(f *Fitter) *Law
		at        int32
		low, high int64
	}{
		{"3 elements for each level", func(f *Fitter) *Law { return f.FitSize(levels, 8, nil) }, 20, 96, 120},
		{"7 elements", func(f *Fitter) *Law { return f.FitSize(short, 8, nil) }, 20, 56, 56},
		{"400 elements", func(f *Fitter) *Law { return f.FitSize(long, 8, nil) }, 20, 3200, 3200},
		{"half of the ranks", func(f *Fitter) *Law { return f.FitNumber(halves, line) }, 64, 33, 33},
		{"half of the ranks, odd", func(f *Fitter) *Law { return f.FitNumber(halves, line) }, 15, 8, 9},
	} {
		f := NewFitter(nil, nil, nil)
		l := c.law(f)
		if err := f.Settle(); err != nil {
			t.Fatal(err)
		}
		e, ok := l.Evaluate(&Point{Ranks: c.at, PeerRank: pattern.None})
		if !ok || e.Low != c.low || e.High != c.high || e.Exact != (c.low == c.high) {
			t.Errorf("%s on %d ranks: %+v of %s, want %d to %d", c.what, c.at, e, l.TextAt(int64(c.at)), c.low, c.high)
		}
	}
}

// Two loops that are one in the runs, of P and log2 P iterations, make 8, 15, 18 and 21 on 4 to 7 ranks. 3 P + 4 log2 P
// - 12 is the same there, and on 8 ranks; on 9 ranks there are 36 and not 31.
func TestProductsAreRivalsOfSums(t *testing.T) {
	fit := func(of func(p, log int64) int64, ranks ...int32) *Law {
		var samples []Sample
		for _, p := range ranks {
			n, _ := ceilLog2(p)
			samples = append(samples, Sample{Point{Ranks: p, PeerRank: pattern.None}, of(int64(p), n)})
		}
		return NewFitter(nil, nil, nil).FitNumber(samples, nil)
	}
	number := func(ranks ...int32) *Law { return fit(func(p, log int64) int64 { return p * log }, ranks...) }
	for want, of := range map[int64]func(p, log int64) int64{
		32: func(p, log int64) int64 { return (p - 1) * log },
		45: func(p, log int64) int64 { return p * (log + 1) },
	} {
		l := fit(of, 4, 5, 6, 7)
		if e, ok := l.Evaluate(&Point{Ranks: 9, PeerRank: pattern.None}); !ok || e.Exact || e.Low > want || e.High < want {
			t.Errorf("on 9 ranks: %+v, want %d in an interval; the law is %s", e, want, l.TextAt(9))
		}
	}
	l := number(4, 5, 6, 7)
	if e, ok := l.Evaluate(&Point{Ranks: 9, PeerRank: pattern.None}); !ok || e.Value != 36 || e.Exact || e.Low != 31 {
		t.Errorf("on 9 ranks: %+v, want 36, not exact; the law is %s", e, l.TextAt(9))
	}
	l = number(4, 8, 16, 32)
	if e, ok := l.Evaluate(&Point{Ranks: 64, PeerRank: pattern.None}); !ok || e.Value != 384 || !e.Exact {
		t.Errorf("on 64 ranks: %+v, want 384; the law is %s", e, l.TextAt(64))
	}
	l = number(4, 8)
	if e, ok := l.Evaluate(&Point{Ranks: 16, PeerRank: pattern.None}); ok && e.Exact {
		t.Errorf("after two runs: %+v; two points are on any line; the law is %s", e, l.TextAt(16))
	}
}
