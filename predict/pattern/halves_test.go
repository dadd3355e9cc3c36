package pattern

import (
	"errors"
	"testing"
)

// Even ranks send to the next one, on 12 to 24 ranks. The fast axis of a cube has two ranks there: all that send are
// the first of it, and those but the last. On 3 x 3 x 3 ranks these are others, on 2 x 3 x 3 they are the same.
func TestGuardsOfAxesOfTwoRanksAreNotKnown(t *testing.T) {
	sizes := []int32{12, 16, 18, 24}
	c := truth{name: "a", site: "a", dst: func(_, r int32) (int32, bool) { return r ^ 1, r%2 == 0 }}
	u := &unit{slots: []*Slot{new(c.slot(sizes...))}}
	u.observe(sizes)
	l := &Law{Training: sizes, Forms: []Form{{Rules: make([]Rule, 1)}}}
	cube := Grid{Shape: Balanced, Axes: 3, Order: []int{0, 1, 2}} // the fast axis has the fewest ranks
	if dims, _ := cube.Dims(18); dims[0] != 2 {
		t.Fatalf("the cube of 18 ranks is %v", dims)
	}
	l.Implied = u.impliedHalves(l, []Grid{cube})
	if len(l.Implied) != 1 || l.Implied[0].Axis != 0 || l.Implied[0].At != 0 {
		t.Fatalf("halves %+v, want the first ranks of axis 0", l.Implied)
	}
	even := func(p int32) *Map { return &Map{Ranks: p, table: c.slot(p).Runs[0].Dst} }
	if by := l.guarded(even(27)); by == "" {
		t.Error("on 27 ranks: no guard is possible, want one of the axis of 3")
	}
	if by := l.guarded(even(18)); by != "" {
		t.Errorf("on 18 ranks, with an axis of 2: %s", by)
	}
}

// A tree of which only the senders but the last of the fast axis of a cube take part: on 27 ranks rank 2 does not.
func TestGuardedTreeIsNotKnown(t *testing.T) {
	sizes := []int32{12, 16, 18, 24}
	fast := func(p int32) int32 {
		if p == 27 {
			return 3
		}
		return 2
	}
	pr := family("tree", log2up, func(p, r, i int32) (int32, bool) {
		by := int32(1) << (log2up(p) - 1 - i)
		return r + by, r%(2*by) == 0 && r+by < p && r%fast(p) < fast(p)-1
	}, sizes, []int32{27})
	p := fitted(t, pr)
	refusals := 0
	for _, c := range pr.slots {
		switch v, text := judge(t, p, c, 27); v {
		case wrong:
			t.Error(text)
		case refused:
			refusals++
			var r *Refusal
			if _, err := p.Map(c.name, 27); errors.As(err, &r) && r.Reason != Ambiguous && r.Reason != UnknownEnd {
				t.Errorf("%s: %v, want that it is ambiguous", c.name, err)
			}
		}
	}
	if refusals == 0 {
		t.Error("nothing is refused")
	}
}

// One loop around another, over 4 x 4 x 4 ranks of a cube, repeats 16 times what one over 8 x 8 ranks does 8 times:
// on 4 to 32 ranks both do 2, 4, 4 and 8.
func TestLoopsMayBeOverTwoExtents(t *testing.T) {
	rows := func(p int32) int32 { return 1 << ((log2(p) + 1) / 2) }
	pr := family("loop", rows, func(p, r, _ int32) (int32, bool) { return (r + 1) % p, true }, []int32{4, 8, 16, 32}, nil)
	p := fitted(t, pr)
	if len(p.Laws) != 1 {
		t.Fatalf("%d laws, want one", len(p.Laws))
	}
	if least, most, ok := p.Laws[0].Last(64, 0); !ok || least != 7 || most != 15 {
		t.Errorf("the last index on 64 ranks is %d to %d, want 7 to 15", least, most)
	}
	if least, most, ok := p.Laws[0].Last(16, 0); !ok || least != 3 || most != 3 {
		t.Errorf("the last index on 16 ranks is %d to %d, want 3", least, most)
	}
}
