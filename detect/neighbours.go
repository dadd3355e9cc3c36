package detect

import "slices"

// neighbourhoods makes one exchange between neighbours of broadcasts that each rank does to neighbours of its own: the k-th of each. A
// communicator for each rank and its neighbours would be absurd, and their call sites ask for none.
func (d *detector) neighbourhoods() {
	var spreads, rest []*instance
	for _, i := range d.found {
		if i.op == Bcast {
			spreads = append(spreads, i)
		} else {
			rest = append(rest, i)
		}
	}
	d.found = rest
	for _, class := range d.sharing(spreads, whence) {
		if list, ok := d.neighbourhood(class); ok {
			class = list
		}
		d.found = append(d.found, d.steady(class)...)
	}
}

// mostSets is how many different sets of ranks a call site may have that are parts of a communicator and overlap.
const mostSets = 2

// steady leaves out what a root sends itself to ever other ranks, from one call site, as benchmarks of pairs do: no collective has
// as many communicators that share two ranks or more.
func (d *detector) steady(class []*instance) []*instance {
	var sets [][]int32
	part := func(i *instance) bool { return i.op == Bcast && d.direct(i) && !d.whole(i) }
	for _, i := range class {
		if part(i) && !slices.ContainsFunc(sets, func(s []int32) bool { return slices.Equal(s, i.ranks) }) {
			sets = append(sets, i.ranks)
		}
	}
	overlap := 0
	for k := range sets {
		if slices.ContainsFunc(sets, func(s []int32) bool { return !slices.Equal(s, sets[k]) && common(s, sets[k]) > 1 }) {
			overlap++
		}
	}
	if len(sets) <= mostSets || 2*overlap <= len(sets) {
		return class
	}
	return slices.DeleteFunc(class, func(i *instance) bool {
		if !part(i) {
			return false
		}
		for _, m := range i.messages {
			d.messages[m].taken = false
		}
		return true
	})
}

// whole says whether an instance is over all members of the communicator that it is sent in.
func (d *detector) whole(i *instance) bool {
	m := &d.messages[i.messages[0]]
	return slices.ContainsFunc(d.run.Comms, func(c Comm) bool { return c.ID == m.comm && len(c.Members) == len(i.ranks) })
}

// common is how many numbers two sorted lists have in common.
func common(a, b []int32) (n int) {
	for _, x := range a {
		if _, ok := slices.BinarySearch(b, x); ok {
			n++
		}
	}
	return n
}

// neighbourhood makes exchanges of broadcasts, where each root sends directly to neighbours of its own, always the same, and is a
// neighbour of those of its neighbours that are roots; most of them are.
func (d *detector) neighbourhood(class []*instance) ([]*instance, bool) {
	of := map[int32][]*instance{}
	for _, i := range class {
		if old := of[i.root]; old != nil && !slices.Equal(old[0].ranks, i.ranks) || !d.direct(i) {
			return nil, false
		}
		of[i.root] = append(of[i.root], i)
	}
	ways, back, differ := 0, 0, false
	for root, list := range of {
		for _, q := range list[0].ranks {
			if q == root {
				continue
			}
			ways++
			if other := of[q]; other != nil {
				if _, mutual := slices.BinarySearch(other[0].ranks, root); !mutual {
					return nil, false
				}
				back++
				differ = differ || !slices.Equal(other[0].ranks, list[0].ranks)
			}
		}
	}
	if !differ || 2*back < ways {
		return nil, false
	}
	return neighbourly(of), true
}

// direct says whether the root itself sends all messages.
func (d *detector) direct(i *instance) bool {
	return !slices.ContainsFunc(i.messages, func(m int32) bool { return d.messages[m].src != i.root })
}

// neighbourly are the exchanges of the k-th broadcasts of all roots.
func neighbourly(of map[int32][]*instance) (out []*instance) {
	var ranks []int32
	for _, list := range of {
		ranks = append(ranks, list[0].ranks...)
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	for k := 0; ; k++ {
		var set []*instance
		for _, r := range ranks {
			if list := of[r]; k < len(list) {
				set = append(set, list[k])
			}
		}
		if len(set) == 0 {
			return out
		}
		i := together(set)
		i.op, i.ranks = NeighborAllgather, ranks
		out = append(out, i)
	}
}
