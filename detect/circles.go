package detect

import "slices"

// circles are ranks, or other things with numbers, by what they are connected with: each names one on the way to the least of its circle.
type circles map[int32]int32

// of is the least of the circle that r is in.
func (c circles) of(r int32) int32 {
	next, known := c[r]
	if !known || next == r {
		c[r] = r
		return r
	}
	root := c.of(next)
	c[r] = root
	return root
}

// join makes one circle of those of a and b.
func (c circles) join(a, b int32) {
	a, b = c.of(a), c.of(b)
	c[max(a, b)] = min(a, b)
}

// numberedCircles are circles of things with numbers from 0 on.
type numberedCircles []int32

func newNumberedCircles(n int) numberedCircles {
	c := make(numberedCircles, n)
	for i := range c {
		c[i] = int32(i)
	}
	return c
}

// of is the least of the circle that i is in.
func (c numberedCircles) of(i int32) int32 {
	for c[i] != i {
		c[i] = c[c[i]]
		i = c[i]
	}
	return i
}

// join makes one circle of those of a and b.
func (c numberedCircles) join(a, b int32) {
	a, b = c.of(a), c.of(b)
	c[max(a, b)] = min(a, b)
}

// byKey are the things of a list with the same key, in the order of their first; those that key says false of are left out.
func byKey[T any, K comparable](list []T, key func(int, T) (K, bool)) (out [][]T) {
	at := map[K]int{}
	for i, x := range list {
		k, ok := key(i, x)
		if !ok {
			continue
		}
		n, known := at[k]
		if !known {
			n = len(out)
			at[k] = n
			out = append(out, nil)
		}
		out[n] = append(out[n], x)
	}
	return out
}

// numbers numbers the ranks of messages from 0 on, in their order.
type numbers struct {
	ranks []int32 // world ranks, sorted
	least int32
	table []int32         // by world rank from least on
	index map[int32]int32 // instead of the table, where that would be much larger than there are messages
}

func newNumbers(all []message, list []int32) *numbers {
	n := &numbers{}
	if len(list) == 0 {
		return n
	}
	least, most := all[list[0]].src, all[list[0]].src
	for _, m := range list {
		least, most = min(least, all[m].src, all[m].dst), max(most, all[m].src, all[m].dst)
	}
	n.least = least
	if span := int(most) - int(least) + 1; span <= 8*len(list)+64 {
		n.table = make([]int32, span)
		for _, m := range list {
			n.table[all[m].src-least], n.table[all[m].dst-least] = 1, 1
		}
		for i, used := range n.table {
			if used != 0 {
				n.table[i] = int32(len(n.ranks))
				n.ranks = append(n.ranks, least+int32(i))
			}
		}
		return n
	}
	n.index = map[int32]int32{}
	for _, m := range list {
		n.index[all[m].src], n.index[all[m].dst] = 0, 0
	}
	for rank := range n.index {
		n.ranks = append(n.ranks, rank)
	}
	slices.Sort(n.ranks)
	for i, rank := range n.ranks {
		n.index[rank] = int32(i)
	}
	return n
}

// of is the number of a rank.
func (n *numbers) of(rank int32) int32 {
	if n.index != nil {
		return n.index[rank]
	}
	return n.table[rank-n.least]
}
