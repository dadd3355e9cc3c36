package pattern

import (
	"fmt"
	"testing"
)

// Even ranks exchange with the rank at the other end of the line. On 5 to 8 ranks the receivers have a law on a
// plane, too, by chance: the inverse of the simpler law of the senders is theirs.
func TestReceiversFollowSimplerSenders(t *testing.T) {
	sends := truth{name: "to", site: "to", dst: func(p, r int32) (int32, bool) { return p - 1 - r, r%2 == 0 }}
	receives := truth{name: "from", site: "from", dst: func(p, r int32) (int32, bool) {
		return p - 1 - r, (p-1-r)%2 == 0
	}}
	sizes := []int32{5, 6, 7, 8}
	to, from := sends.slot(sizes...), receives.slot(sizes...)
	to.Partners, from.Partners = []string{"from"}, []string{"to"}
	p, err := Fit([]Slot{to, from}, Options{Sizes: sizes})
	if err != nil {
		t.Fatal(err)
	}
	for _, ranks := range []int32{9, 11, 12} {
		for _, c := range []truth{sends, receives} {
			if v, text := judge(t, p, c, ranks); v == wrong || v == borrowed {
				t.Errorf("%s at %d ranks is wrong: %s", c.name, ranks, text)
			}
		}
	}
}

// With two ranks along an axis messages in both directions are the same: which of two laws is that of the other side
// is open, and neither is doubted for it.
func TestSeveralOtherSidesDoubtNothing(t *testing.T) {
	ring := func(name string, by int32) truth {
		return truth{name: name, site: name, dst: func(p, r int32) (int32, bool) { return mod(r+by, p), true }}
	}
	up, down, from := ring("up", 1), ring("down", -1), ring("from", 1)
	sizes := []int32{2, 3, 4, 5}
	slots := []Slot{up.slot(sizes...), down.slot(sizes...), from.slot(sizes...)}
	slots[2].Partners = []string{"up", "down"}
	p, err := Fit(slots, Options{Sizes: sizes})
	if err != nil {
		t.Fatal(err)
	}
	if v, text := judge(t, p, from, 12); v != right {
		t.Errorf("verdict %d, want the law's own answer: %s", v, text)
	}
}

// One message in each run, that of an owner of a block: its two sides have laws on a grid that no other call uses,
// which fit by chance, and do not confirm each other.
func TestOneMessageInEachRunDoesNotShowAGrid(t *testing.T) {
	senders := map[int32]int32{4: 0, 6: 0, 8: 2, 9: 0}
	side := func(name string, from, to int32) truth {
		return truth{name: name, site: name, dst: func(p, r int32) (int32, bool) {
			return senders[p] + to, r == senders[p]+from
		}}
	}
	sizes := []int32{4, 6, 8, 9}
	slots := []Slot{side("to", 0, 1).slot(sizes...), side("from", 1, 0).slot(sizes...)}
	slots[0].Partners, slots[1].Partners = []string{"from"}, []string{"to"}
	for axis := range 2 {
		for _, by := range []int32{1, -1} {
			name := fmt.Sprint("shift ", axis, by)
			slots = append(slots, truth{name: name, site: name, dst: on(divisor2, shiftIn(axis, by, true))}.slot(sizes...))
		}
	}
	p, err := Fit(slots, Options{Sizes: sizes})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range p.Laws {
		if l.Name == "to" || l.Name == "from" {
			t.Errorf("%s has the law %+v", l.Name, l.Forms[0])
		}
	}
}

// The inverse of a map is found again only if its rules have other numbers than those before.
func TestEqualMapsAreInvertedOnce(t *testing.T) {
	ring := func(by int32) *Map {
		return &Map{Ranks: 8, Dims: []int32{8}, rules: []boundRule{{op: Wrap, n: by, g: 8, stride: 1, guard: All}}}
	}
	var known Inverses
	law := &Law{}
	first := known.inverse(law, ring(1))
	if !known.areEqual(law, ring(-1), first) || known.areEqual(law, ring(1), first) || !known.areEqual(law, ring(-1), first) {
		t.Error("a ring by -1, and no other, is the inverse of a ring by 1")
	}
	if known.inverse(law, ring(1)) != first {
		t.Error("a map like the one before is inverted again")
	}
	for _, by := range []int32{2, 1} {
		if src, _ := known.inverse(law, ring(by)).Dst(5); src != 5-by {
			t.Errorf("ring by %d: rank 5 receives from %d, want %d", by, src, 5-by)
		}
	}
}
