package nsys

import (
	"cmp"
	"slices"

	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
)

// leastPairs is the number of operations with kernels that two ranks must have in common, mostShift the number of
// operations that one may lack at an end.
const leastPairs, mostShift = 4, 64

// align finds which operations of the ranks are the same ones in exports without communicators. A recording begins and
// ends in the middle of the program, on each rank at another operation. If there is one way to lay the operations of
// each rank beside those of the first so that the kernels of all pairs overlap in time, that is it: no process leaves
// such an operation before all are in it. It numbers them, on a group of all ranks, and counts those that the recording
// of a rank lacks as dropped. bases are the zeros of the ranks'
// times.
func align(ranks []*training.Rank, bases []int64) bool {
	var lines [][]int
	for _, r := range ranks {
		if r.World > int32(len(ranks)) || len(r.Groups) > 0 || len(r.Ops) < leastPairs || len(ranks) < 2 {
			return false
		}
		line := make([]int, len(r.Ops))
		for k := range r.Ops {
			if schema.Calls[r.Ops[k].Call].Class != schema.ClassCollective {
				return false
			}
			line[k] = k
		}
		slices.SortStableFunc(line, func(a, b int) int { return cmp.Compare(r.Ops[a].IssuedNs, r.Ops[b].IssuedNs) })
		lines = append(lines, line)
	}
	shifts := make([]int, len(ranks))
	least := 0
	for i := 1; i < len(ranks); i++ {
		a := sequence{ranks[0].Ops, lines[0], bases[0]}
		shift, ok := a.shift(sequence{ranks[i].Ops, lines[i], bases[i]})
		if !ok {
			return false
		}
		shifts[i] = shift
		least = min(least, shift)
	}
	everyone := training.Group{Name: "all ranks", Description: "all ranks"}
	for _, r := range ranks {
		everyone.Ranks = append(everyone.Ranks, r.Rank)
	}
	slices.Sort(everyone.Ranks)
	all := 0
	for i := range ranks {
		all = max(all, len(lines[i])+shifts[i]-least)
	}
	for i, r := range ranks {
		r.Dropped += int64(all - len(lines[i]))
		r.Groups = []training.Group{everyone}
		for place, k := range lines[i] {
			r.Ops[k].Group, r.Ops[k].Seq = 0, int64(place+shifts[i]-least)
		}
	}
	return true
}

// sequence are the operations of a rank in the order in which they were asked for.
type sequence struct {
	ops   []training.Op
	order []int
	base  int64
}

// shift returns what is added to a place in b for the place in a of the same operation; false if there is no such
// number, or more than one, or kernels of too few pairs show it.
func (a sequence) shift(b sequence) (found int, ok bool) {
	ways, shown := 0, 0
	for shift := -mostShift; shift <= mostShift; shift++ {
		first, last := max(0, shift), min(len(a.order), len(b.order)+shift)
		if last-first < leastPairs {
			continue
		}
		if pairs, fits := a.fits(b, shift, first, last); fits {
			found, shown = shift, pairs
			ways++
		}
	}
	return found, ways == 1 && shown >= leastPairs
}

// fits reports whether the operations of a from first to before last overlap in time with those of b that are shift
// places before, and of how many pairs it is known when both ran.
func (a sequence) fits(b sequence, shift, first, last int) (pairs int, ok bool) {
	for place := first; place < last; place++ {
		x, y := &a.ops[a.order[place]], &b.ops[b.order[place-shift]]
		if !training.AreAlike(x.Call, y.Call) {
			return pairs, false
		}
		if !ran(x) || !ran(y) {
			continue
		}
		pairs++
		if x.StartNs+a.base > y.EndNs+b.base || y.StartNs+b.base > x.EndNs+a.base {
			return pairs, false
		}
	}
	return pairs, true
}

// ran reports whether it is known when an operation ran, and not only when it was asked for.
func ran(o *training.Op) bool { return o.StartNs != o.IssuedNs || o.EndNs != o.ReturnedNs }
