package predict

import (
	"testing"

	"github.com/commq/commq/predict/pattern"
)

// faces are samples of 8 (48/a+2) (48/b+2) bytes on a grid to which the bits of the number of ranks are dealt, a and b being extents of two axes.
func faces(grid *pattern.Grid, a, b int, ranks ...int32) (all []sample) {
	for _, p := range ranks {
		dims, _ := grid.Dims(p)
		for r := range p {
			all = append(all, sample{point{ranks: p, rank: r, peerRank: pattern.None}, 8 * (48/int64(dims[a]) + 2) * (48/int64(dims[b]) + 2)})
		}
	}
	return all
}

// What was seen at one number of ranks alone is never exact at another; laws of other faces say what it may be: on 2 x 4 x 4 ranks 8 (24+2) (12+2) = 2912
// bytes, on 4 x 4 x 4 ranks 8 (12+2) (12+2) = 1568.
func TestANumberSeenOnceIsNotExactElsewhere(t *testing.T) {
	grid := &pattern.Grid{Shape: pattern.Deal, Axes: 3, Order: []int{2, 1, 0}} // 32 ranks: 2 x 4 x 4
	if d, _ := grid.Dims(32); d[0] != 2 || d[1] != 4 || d[2] != 4 {
		t.Fatalf("the grid of 32 ranks is %v", d)
	}
	v := &values{ranks: []int32{8, 16, 32, 128}, grids: []*pattern.Grid{grid}, known: map[string]*valueLaw{}}
	v.fit(faces(grid, 0, 1, 8, 16, 32, 128), grid, true)
	once := v.fit(faces(grid, 0, 2, 32), grid, true)
	other := v.fit([]sample{{point{ranks: 32, rank: 3, peerRank: pattern.None}, 57}}, grid, true)
	if err := v.settle(); err != nil {
		t.Fatal(err)
	}
	at := func(l *valueLaw, ranks int32) said {
		t.Helper()
		s, ok := l.at(&point{ranks: ranks, rank: 3, peerRank: pattern.None})
		if !ok {
			t.Fatalf("nothing is said of %d ranks", ranks)
		}
		return s
	}
	if s := at(once, 32); !s.exact || s.value != 2912 {
		t.Errorf("where it was seen: %+v, want 2912 exactly", s)
	}
	if s := at(once, 64); s.exact || s.value != 1568 || s.low > 1568 || s.high < 2912 {
		t.Errorf("on 64 ranks: %+v, want 1568, not exact, in an interval that has the number that was seen", s)
	}
	if s := at(other, 64); s.exact || s.value != 57 || s.low != 0 || s.high < 1<<50 {
		t.Errorf("a number that no other law has: %+v, want 57, between 0 and no end", s)
	}
	if once.exact() {
		t.Error("the law is said to be exact")
	}
}
