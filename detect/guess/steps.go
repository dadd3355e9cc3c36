package guess

import (
	"cmp"
	"slices"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/schema"
)

// step is one round in which every rank sends bytes to one other rank. shift is the distance in places, modulo the
// number of ranks, and mask the exclusive or of both places; each is -1 if it differs between ranks.
type step struct {
	shift, mask int
	bytes       int64
}

// team is a set of ranks that do the same steps.
type team struct {
	*finder
	comm  int32
	ranks []int32 // world ranks by place
	same  bool    // all do the same steps; else only their number is known
	steps []step
	// sent has the message of each rank, by place, in each step.
	sent  [][]int32
	found []Shape
}

// together finds the steps of connected ranks; nil if the ranks send different numbers of messages.
func (f *finder) together(comm int32, list []int32) *team {
	t := &team{finder: f, comm: comm}
	sends := map[int32][]int32{}
	for _, i := range list {
		m := &f.messages[i]
		sends[m.Src] = append(sends[m.Src], i)
	}
	for r := range sends {
		t.ranks = append(t.ranks, r)
	}
	n := len(list) / max(len(t.ranks), 1)
	if len(t.ranks) < f.minRanks || n*len(t.ranks) != len(list) {
		return nil
	}
	place := f.place[comm]
	slices.SortFunc(t.ranks, func(a, b int32) int { return cmp.Or(cmp.Compare(place[a], place[b]), cmp.Compare(a, b)) })
	for _, r := range t.ranks {
		if len(sends[r]) != n {
			return nil
		}
		slices.SortFunc(sends[r], func(a, b int32) int {
			x, y := &f.messages[a], &f.messages[b]
			return cmp.Or(cmp.Compare(x.SendSeq, y.SendSeq), cmp.Compare(x.PostSeq, y.PostSeq))
		})
	}
	t.alongRing(sends)
	for _, r := range t.ranks {
		t.sent = append(t.sent, sends[r])
	}
	t.same = t.compare(n)
	return t
}

// alongRing orders the ranks along a ring, if each sends to one other and these are one.
func (t *team) alongRing(sends map[int32][]int32) {
	next := map[int32]int32{}
	for r, list := range sends {
		for _, i := range list {
			if d := t.messages[i].Dst; next[r] != 0 && next[r] != d+1 {
				return
			} else {
				next[r] = d + 1
			}
		}
	}
	ring, at := []int32{t.ranks[0]}, next[t.ranks[0]]-1
	for at != t.ranks[0] && at >= 0 && len(ring) <= len(t.ranks) {
		ring = append(ring, at)
		at = next[at] - 1
	}
	if len(ring) == len(t.ranks) {
		t.ranks = ring
	}
}

// compare sets the steps, and reports whether all ranks do them.
func (t *team) compare(n int) bool {
	p := len(t.ranks)
	place := map[int32]int{}
	for k, r := range t.ranks {
		place[r] = k
	}
	t.steps = make([]step, n)
	for k := range p {
		for s, i := range t.sent[k] {
			m := &t.messages[i]
			to, ok := place[m.Dst]
			if !ok {
				return false
			}
			x := step{(to - k + p) % p, to ^ k, m.Bytes}
			y := &t.steps[s]
			switch {
			case k == 0:
				*y = x
			case x.bytes != y.bytes:
				return false
			default:
				if x.shift != y.shift {
					y.shift = -1
				}
				if x.mask != y.mask {
					y.mask = -1
				}
			}
			if y.shift < 0 && y.mask < 0 {
				return false
			}
		}
	}
	return true
}

// passesOn reports whether each rank sends what it sends in the steps from at+1 on after it received what it was sent
// in the step before, as it must to pass data on.
func (t *team) passesOn(at, n int) bool {
	place := map[int32]int{}
	for k, r := range t.ranks {
		place[r] = k
	}
	for s := at; s+1 < at+n; s++ {
		for k := range t.ranks {
			m := &t.messages[t.sent[k][s]]
			to := place[m.Dst]
			if m.DoneSeq == schema.NullInt64 || t.messages[t.sent[to][s+1]].SendSeq <= m.DoneSeq {
				return false
			}
		}
	}
	return true
}

// add adds what n steps from at on look like.
func (t *team) add(at, n int, bytes int64, op ledger.Operation, others ...ledger.Operation) {
	s := Shape{Operation: op, Others: others, Comm: t.comm, Ranks: slices.Sorted(slices.Values(t.ranks)), Bytes: bytes}
	for k := range t.ranks {
		s.Messages = append(s.Messages, t.sent[k][at:at+n]...)
	}
	t.found = append(t.found, s)
}
