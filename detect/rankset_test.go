package detect

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// onlyRuns is enough room, for sets that are runs however few ranks there are.
func onlyRuns() *setRoom { return &setRoom{all: 1 << 20, runs: 1 << 20, members: 1 << 20} }

// members are those of a set of numbers below n.
func members(s *rankSet, n int) (out []int) {
	for i := range n {
		if s.has(i) {
			out = append(out, i)
		}
	}
	return out
}

// Sets that are runs do what sets that are bits do.
func TestRankSetsOfRunsAndOfBits(t *testing.T) {
	const n = 77
	room := onlyRuns()
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		var sets [2][2]rankSet // of bits, of runs
		for k := range 2 {
			sets[0][k], sets[1][k] = rankSet{bits: newBitset(n)}, newRankSet(n, room)
			for range rnd.IntN(6) {
				first, long := rnd.IntN(n), 1+rnd.IntN(9)
				for i := first; i < min(n, first+long); i++ {
					sets[0][k].add(i)
					sets[1][k].add(i)
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
			s.Contains, s.Apart = a.contains(b), a.apartFrom(b)
			old, copied := a.clone(), rankSet{}
			copied.set(b)
			a.join(b, func(i int) { s.Added = append(s.Added, i) })
			s.Members, s.Len = members(a, n), a.len()
			s.First = a.first(s.Len)
			old.join(&copied, nil)
			s.SameKeyAfter = old.key() == a.key()
		}
		if d := cmp.Diff(got[0], got[1]); d != "" {
			t.Fatalf("seed %d: bits, runs:\n%s", seed, d)
		}
		if !got[0].SameKeyAfter || len(got[0].Members) != got[0].Len {
			t.Fatalf("seed %d: %+v", seed, got[0])
		}
	}
}

// What is found is the same with sets of either kind.
func TestSetsOfRunsChangeNothing(t *testing.T) {
	for seed := range uint64(60) {
		run, kinds := RandomSpreading(t, seed)
		if seed%2 == 1 {
			run, kinds = RandomCombining(seed)
		}
		want := found(t, run, Options{Neighbors: true})
		if d := cmp.Diff(want, found(t, run, Options{Neighbors: true, sets: onlyRuns()})); d != "" {
			t.Errorf("seed %d (%v): bits, runs:\n%s", seed, kinds, d)
		}
	}
}

// Where sets of many ranks take too much, the messages are counted as left out.
func TestSetsWithoutRoomAreTold(t *testing.T) {
	run, _ := RandomSpreading(t, 3)
	whole, err := Detect(run, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for what, room := range map[string]setRoom{"runs": {all: 2, runs: 2, members: 1 << 20}, "members": {all: 1 << 20, runs: 1 << 20, members: 3}} {
		r, err := Detect(run, Options{sets: &room})
		if err != nil {
			t.Fatal(err)
		}
		if whole.NoRoom != 0 || r.NoRoom == 0 || r.LeftOut < r.NoRoom || len(r.Findings) >= len(whole.Findings) {
			t.Errorf("%s: no room for %d messages, %d left out, %d findings; with room for all none, none and %d", what, r.NoRoom, r.LeftOut, len(r.Findings), len(whole.Findings))
		}
	}
}
