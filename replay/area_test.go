package replay

import (
	"math/rand/v2"
	"testing"
)

// TestAreaPiecesDoNotOverlap allocates and releases pieces at random and checks the owner of each byte.
func TestAreaPiecesDoNotOverlap(t *testing.T) {
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
			for offset := p.offset; offset < p.offset+p.bytes; offset += alignment {
				delete(owner, offset)
			}
			a.release(p)
			now -= p.bytes
			continue
		}
		want := int64(r.IntN(4097))
		p := a.allocate(want)
		if p.bytes < want || p.offset%alignment != 0 || p.offset+p.bytes > a.end {
			t.Fatalf("allocate %d bytes: got %+v of an area of %d", want, p, a.end)
		}
		for offset := p.offset; offset < p.offset+p.bytes; offset += alignment {
			if by, taken := owner[offset]; taken {
				t.Fatalf("step %d: byte %d belongs to step %d", step, offset, by)
			}
			owner[offset] = step
		}
		open = append(open, p)
		now += p.bytes
		most = max(most, now)
	}
	if a.end > 2*most {
		t.Errorf("the area has %d bytes, and at most %d were in use", a.end, most)
	}
	for _, p := range open {
		a.release(p)
	}
	if len(a.free) != 1 || a.free[0] != (piece{0, a.end}) {
		t.Errorf("free pieces when all are released: %+v of %d", a.free, a.end)
	}
}
