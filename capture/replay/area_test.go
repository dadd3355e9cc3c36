package replay

import (
	"math/rand/v2"
	"testing"
)

// TestNoTwoOpenPiecesOverlap takes and gives back pieces at random and looks at each byte.
func TestNoTwoOpenPiecesOverlap(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	var a area
	var open []piece
	owner := map[int64]int{}
	most, now := int64(0), int64(0)
	for step := range 5000 {
		if len(open) > 0 && r.IntN(5) < 2 {
			i := r.IntN(len(open))
			p := open[i]
			open = append(open[:i], open[i+1:]...)
			for at := p.at; at < p.at+p.bytes; at += alignment {
				delete(owner, at)
			}
			a.give(p)
			now -= p.bytes
			continue
		}
		want := int64(r.IntN(4097))
		p := a.take(want)
		if p.bytes < want || p.at%alignment != 0 || p.at+p.bytes > a.end {
			t.Fatalf("asked for %d bytes: %+v of an area of %d", want, p, a.end)
		}
		for at := p.at; at < p.at+p.bytes; at += alignment {
			if by, taken := owner[at]; taken {
				t.Fatalf("step %d: byte %d is that of step %d", step, at, by)
			}
			owner[at] = step
		}
		open = append(open, p)
		now += p.bytes
		most = max(most, now)
	}
	if a.end > 2*most {
		t.Errorf("the area has %d bytes, and at most %d were open", a.end, most)
	}
	for _, p := range open {
		a.give(p)
	}
	if len(a.free) != 1 || a.free[0] != (piece{0, a.end}) {
		t.Errorf("what is left when all are back: %+v of %d", a.free, a.end)
	}
}
