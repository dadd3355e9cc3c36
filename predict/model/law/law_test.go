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
	f := NewFitter([]*pattern.Grid{grid}, nil)
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
	f := NewFitter([]*pattern.Grid{grid}, nil)
	l := f.FitNumber(samples, grid)
	if err := f.Settle(); err != nil {
		t.Fatal(err)
	}
	for i := range int32(12) {
		e, ok := l.Evaluate(&Point{Ranks: 25, Rank: 7, PeerRank: pattern.None, Index: []int32{i}})
		if !ok || !e.Exact || e.Value != int64(i%5) {
			t.Errorf("iteration %d on 25 ranks: %+v, want %d; the law is %s", i, e, i%5, l)
		}
	}
}

// A loop with 10 iterations on 4 ranks and 15 on 5 to 7 does five times as many as the logarithm says, and on 9 ranks 20.
// That 15 is what the larger runs have does not make it a law: it is wrong on 4 ranks.
func TestNumberOfTheLargestRunIsNoLawAlone(t *testing.T) {
	var samples []Sample
	for i, value := range []int64{10, 15, 15, 15} {
		samples = append(samples, Sample{Point{Ranks: int32(4 + i), PeerRank: pattern.None}, value})
	}
	f := NewFitter(nil, nil)
	l := f.FitNumber(samples, nil)
	if err := f.Settle(); err != nil {
		t.Fatal(err)
	}
	l = WithExtents(l, samples, nil)
	for ranks, want := range map[int32]int64{4: 10, 7: 15} {
		if e, ok := l.Evaluate(&Point{Ranks: ranks, PeerRank: pattern.None}); !ok || e.Value != want {
			t.Errorf("on %d ranks: %+v, want %d", ranks, e, want)
		}
	}
	if e, ok := l.Evaluate(&Point{Ranks: 9, PeerRank: pattern.None}); ok && (e.Exact || e.Low > 20 || e.High < 20) {
		t.Errorf("on 9 ranks: %+v, want 20 in its interval, not exact", e)
	}
}
