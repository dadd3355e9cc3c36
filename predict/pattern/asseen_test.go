package pattern

import (
	"errors"
	"testing"
)

// few returns a slot of which some ranks send to the one before them.
func few(name string, sends func(p, r int32) bool) truth {
	return truth{name: name, site: name, dst: func(p, r int32) (int32, bool) { return r - 1, sends(p, r) }}
}

// Ranks 1 and 5 send on 8 and on 9 ranks, and nobody on fewer: so do those with rank mod 4 = 1, which has another
// answer on 10 ranks and none that differs on 9.
func TestSameRanksAsSeenAreARival(t *testing.T) {
	c := few("a", func(p, r int32) bool { return p >= 8 && (r == 1 || r == 5) })
	p, err := Fit([]Slot{c.slot(4, 6, 8, 9)}, Options{Sizes: []int32{4, 6, 8, 9}})
	if err != nil {
		t.Fatal(err)
	}
	if v, text := judge(t, p, c, 12); v != refused {
		t.Errorf("at 12 ranks: verdict %d, want a refusal: %s", v, text)
	}
	var r *Refusal
	if _, err := p.Map("a", 12); !errors.As(err, &r) || r.Reason != Ambiguous {
		t.Errorf("at 12 ranks: %v, want that two laws differ", err)
	}
	if v, text := judge(t, p, c, 9); v != right {
		t.Errorf("at 9 ranks: verdict %d, want an answer: %s", v, text)
	}
}

// What rank 0 alone does in all runs has no rival, and what more and more ranks do is not a list.
func TestFewSendersKeepTheirLaw(t *testing.T) {
	sizes := []int32{8, 9, 12, 16}
	for _, c := range []truth{
		few("second", func(_, r int32) bool { return r == 1 }),
		few("every fourth", func(_, r int32) bool { return r%4 == 1 }),
	} {
		p, err := Fit([]Slot{c.slot(sizes...)}, Options{Sizes: sizes})
		if err != nil {
			t.Fatal(err)
		}
		if v, text := judge(t, p, c, 32); v != right {
			t.Errorf("%s at 32 ranks: verdict %d, want an answer: %s", c.name, v, text)
		}
	}
}
