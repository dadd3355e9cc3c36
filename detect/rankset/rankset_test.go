package rankset

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// members lists the members of a set of numbers below n.
func members(s *Set, n int) (out []int) {
	for i := range n {
		if s.Has(i) {
			out = append(out, i)
		}
	}
	return out
}

// Sets stored as runs behave like sets stored as bits.
func TestRunsAndBitsAgree(t *testing.T) {
	const n = 77
	room := &Room{All: 1 << 20, Runs: 1 << 20, Members: 1 << 20} // for sets stored as runs
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		var sets [2][2]Set // stored as bits, as runs
		for k := range 2 {
			sets[0][k], sets[1][k] = Set{bits: NewBits(n)}, New(n, room)
			for range rnd.IntN(6) {
				first, long := rnd.IntN(n), 1+rnd.IntN(9)
				for i := first; i < min(n, first+long); i++ {
					sets[0][k].Add(i)
					sets[1][k].Add(i)
				}
			}
		}
		type seen struct {
			Members, Added      []int
			Len                 int
			Contains, Apart     bool
			SameKeyAfter, First bool
		}
		var got [2]seen
		for kind := range sets {
			a, b, s := &sets[kind][0], &sets[kind][1], &got[kind]
			s.Contains, s.Apart = a.Contains(b), a.Disjoint(b)
			old, copied := a.Clone(), Set{}
			copied.Assign(b)
			a.Join(b, func(i int) { s.Added = append(s.Added, i) })
			s.Members, s.Len = members(a, n), a.Len()
			s.First = a.IsPrefix(s.Len)
			old.Join(&copied, nil)
			s.SameKeyAfter = old.Key() == a.Key()
		}
		if d := cmp.Diff(got[0], got[1]); d != "" {
			t.Fatalf("seed %d: bits, runs:\n%s", seed, d)
		}
		if !got[0].SameKeyAfter || len(got[0].Members) != got[0].Len {
			t.Fatalf("seed %d: %+v", seed, got[0])
		}
	}
}
