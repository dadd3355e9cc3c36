package spread

import (
	"slices"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/run"
)

// Neighbourhoods merges broadcasts of each rank to its own neighbours into exchanges between neighbours: the k-th
// broadcast of each rank. A communicator per rank would be absurd.
func (c *Composer) Neighbourhoods() {
	var spreads, rest []*ledger.Instance
	for _, i := range c.Ledger.Found {
		if i.Op == ledger.Bcast {
			spreads = append(spreads, i)
		} else {
			rest = append(rest, i)
		}
	}
	c.Ledger.Found = rest
	for _, class := range sharers(c.Ledger.Messages, spreads, site) {
		if list, ok := c.neighbourhood(class); ok {
			if !c.areMost(class) || len(list) == 1 && list[0].Bytes <= oneNumber && !c.isAtOnce(list[0]) {
				for _, i := range class {
					c.Ledger.Release(i)
				}
				continue
			}
			class = list
		}
		c.Ledger.Found = append(c.Ledger.Found, c.steady(class)...)
	}
}

// oneNumber is the size of payloads that are one number: another rank or step often has the same.
const oneNumber = 8

// isAtOnce reports whether every rank sends all messages of an instance before it receives any. What one number
// does once, and not at once, may be pieces of several operations.
func (c *Composer) isAtOnce(i *ledger.Instance) bool {
	last := map[int32]int64{}
	for _, m := range i.Messages {
		m := &c.Ledger.Messages[m]
		last[m.Src] = max(last[m.Src], m.SendSeq)
	}
	return !slices.ContainsFunc(i.Messages, func(m int32) bool {
		end, sends := last[c.Ledger.Messages[m].Dst]
		return sends && c.Ledger.Messages[m].DoneSeq < end
	})
}

// areMost reports whether instances have at least half of the messages of the places that send them. If not, neighbours
// exchange different payloads there that are sometimes equal by chance: a grid may be so coarse that a rank's part is
// one plane, the halo of both sides.
func (c *Composer) areMost(class []*ledger.Instance) bool {
	messages, places, all := 0, map[ledger.Place]bool{}, int64(0)
	for _, i := range class {
		messages += len(i.Messages)
		for _, m := range i.Messages {
			if p := c.Ledger.Messages[m].Place(); !places[p] {
				places[p] = true
				all += c.Rules.Sent[p]
			}
		}
	}
	return 2*int64(messages) >= all
}

// maxSets is the largest number of different overlapping sets of ranks, each part of a communicator, that a call site
// may have.
const maxSets = 2

// steady drops messages that a root sends directly to ever different ranks from one call site, as pairwise benchmarks
// do: no collective has so many communicators that share two ranks or more.
func (c *Composer) steady(class []*ledger.Instance) []*ledger.Instance {
	var sets [][]int32
	part := func(i *ledger.Instance) bool {
		return i.Op == ledger.Bcast && direct(c.Ledger.Messages, i) && !c.overWhole(i)
	}
	for _, i := range class {
		if part(i) && !slices.ContainsFunc(sets, func(s []int32) bool { return slices.Equal(s, i.Ranks) }) {
			sets = append(sets, i.Ranks)
		}
	}
	overlap := 0
	for k := range sets {
		if slices.ContainsFunc(sets, func(s []int32) bool {
			return !slices.Equal(s, sets[k]) &&
				countCommon(s, sets[k]) > 1
		}) {
			overlap++
		}
	}
	if len(sets) <= maxSets || 2*overlap <= len(sets) {
		return class
	}
	return slices.DeleteFunc(class, func(i *ledger.Instance) bool {
		if !part(i) {
			return false
		}
		c.Ledger.Release(i)
		return true
	})
}

// overWhole reports whether an instance covers all members of its communicator.
func (c *Composer) overWhole(i *ledger.Instance) bool {
	m := &c.Ledger.Messages[i.Messages[0]]
	return slices.ContainsFunc(c.Comms, func(c run.Comm) bool { return c.ID == m.Comm && len(c.Members) == len(i.Ranks) })
}

// countCommon returns the number of common elements of two sorted lists.
func countCommon(a, b []int32) (n int) {
	for _, x := range a {
		if _, ok := slices.BinarySearch(b, x); ok {
			n++
		}
	}
	return n
}

// neighbourhood merges broadcasts into exchanges if each root always sends directly to the same neighbours and,
// mostly, receives from those that are roots.
func (c *Composer) neighbourhood(class []*ledger.Instance) ([]*ledger.Instance, bool) {
	of := map[int32][]*ledger.Instance{}
	for _, i := range class {
		if old := of[i.Root]; old != nil && !slices.Equal(old[0].Ranks, i.Ranks) || !direct(c.Ledger.Messages, i) {
			return nil, false
		}
		of[i.Root] = append(of[i.Root], i)
	}
	ways, back, differ := 0, 0, false
	for root, list := range of {
		for _, q := range list[0].Ranks {
			if q == root {
				continue
			}
			ways++
			if other := of[q]; other != nil {
				if _, mutual := slices.BinarySearch(other[0].Ranks, root); !mutual {
					return nil, false
				}
				back++
				differ = differ || !slices.Equal(other[0].Ranks, list[0].Ranks)
			}
		}
	}
	if !differ || 2*back < ways {
		return nil, false
	}
	return mergeNeighbours(of), true
}

// direct reports whether the root sends all messages itself.
func direct(messages []ledger.Message, i *ledger.Instance) bool {
	return !slices.ContainsFunc(i.Messages, func(m int32) bool { return messages[m].Src != i.Root })
}

// mergeNeighbours merges the k-th broadcasts of all roots into one exchange.
func mergeNeighbours(of map[int32][]*ledger.Instance) (out []*ledger.Instance) {
	var ranks []int32
	for _, list := range of {
		ranks = append(ranks, list[0].Ranks...)
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	for k := 0; ; k++ {
		var set []*ledger.Instance
		for _, r := range ranks {
			if list := of[r]; k < len(list) {
				set = append(set, list[k])
			}
		}
		if len(set) == 0 {
			return out
		}
		i := merge(set)
		i.Op, i.Ranks = ledger.NeighborAllgather, ranks
		out = append(out, i)
	}
}
