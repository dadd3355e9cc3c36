package ledger

import (
	"cmp"
	"math/rand/v2"
	"testing"
)

// TestSeries compares series with plain lists: of loops with jumps, and of anything.
func TestSeries(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8))
	compared := 0
	for range 2000 {
		n := 1 + r.IntN(30)
		var a, b Series
		var as, bs []int64
		at := r.Int64N(5)
		between := 1 + r.Int64N(4)
		for range n {
			at += 10
			if r.IntN(8) == 0 {
				at += r.Int64N(50)
			}
			other := at + between
			if r.IntN(100) == 0 {
				other = at - 1 + r.Int64N(3)
			}
			as, bs = append(as, at), append(bs, other)
			a.Add(at)
			b.Add(other)
		}
		c := a.Cursor()
		for k, want := range as {
			if got, ok := c.Next(); !ok || got != want {
				t.Fatalf("number %d of %v is %d, %t", k, as, got, ok)
			}
			c.Pass()
		}
		if _, ok := c.Next(); ok || a.Len() != int64(n) {
			t.Fatalf("%d numbers, want %d, or the cursor has no end", a.Len(), n)
		}
		for shift := range 3 {
			for _, want := range []int{-1, 0} {
				all := true
				for k := range max(0, n-shift) {
					all = all && cmp.Compare(as[k], bs[k+shift]) == want
				}
				if got := a.Compares(&b, int64(shift), want); got != all {
					t.Fatalf("%v to %v by %d: %d is %t", as, bs, shift, want, got)
				}
				if all && n > shift {
					compared++
				}
			}
		}
	}
	if compared < 1000 {
		t.Errorf("only %d pairs compared alike", compared)
	}
}
