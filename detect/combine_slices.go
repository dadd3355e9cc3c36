package detect

import (
	"cmp"
	"slices"

	"github.com/commq/commq/schema"
)

// slicing is a reduction of which each rank ends with one block, by ring or by halving: each rank sends all blocks but its own, once
// each, from where they are in its memory, and adds what it gets to its own.
type slicing struct {
	g     *group
	block int64   // bytes
	base  []int64 // by rank: where its first block is
}

// scatteringReduction looks for reductions whose blocks end at one rank each.
func (c *combiner) scatteringReduction(g *group, list []*once) *combined {
	n := len(g.ranks)
	if n < max(3, c.options.MinRanks) || c.spread(list) || c.kinds[g.cells[0].cell.datatype].class == opaque {
		return nil
	}
	for _, s := range c.slicings(g, list) {
		fits := true
		for _, o := range list {
			if fits = s.replay(o); !fits {
				break
			}
		}
		if !fits {
			continue
		}
		b := &combined{group: g, op: ReduceScatterBlock, root: schema.NullInt32, certainty: Inferred, kept: g.ranks}
		for _, o := range list {
			b.instances = append(b.instances, combinedInstance{messages: o.messages, bytes: s.block * int64(n)})
		}
		return b
	}
	return nil
}

// slicings are the ways in which blocks may lie: who never sends its first block sends as if the second were the first.
func (c *combiner) slicings(g *group, list []*once) (out []*slicing) {
	n := len(g.ranks)
	low, high, total := make([]int64, n), make([]int64, n), make([]int64, n)
	for r := range low {
		low[r] = 1<<63 - 1
	}
	for _, o := range list {
		for _, m := range o.messages {
			r, _ := slices.BinarySearch(g.ranks, m.src)
			if m.buffer == schema.NullInt64 || m.buffer < 0 {
				return nil
			}
			low[r], high[r] = min(low[r], m.buffer), max(high[r], m.buffer+m.bytes)
			total[r] += m.bytes
		}
	}
	block := total[0] / int64(len(list)*(n-1))
	var ends []int
	for r := range n {
		if block == 0 || total[r] != block*int64(len(list)*(n-1)) {
			return nil
		}
		switch high[r] - low[r] {
		case block * int64(n):
		case block * int64(n-1):
			ends = append(ends, r)
		default:
			return nil
		}
	}
	if len(ends) != 2 {
		return nil
	}
	for _, first := range ends {
		s := &slicing{g: g, block: block, base: slices.Clone(low)}
		s.base[first] -= block
		out = append(out, s)
	}
	return out
}

// replay carries, for each block, the sets of ranks that have contributed to it. Each block must end at one rank, complete.
func (s *slicing) replay(o *once) bool {
	n := len(s.g.ranks)
	sets := make([][]bitset, n)
	sent := make([]bitset, n)
	for r := range sets {
		sent[r] = newBitset(n)
		for range n {
			b := newBitset(n)
			b.add(r)
			sets[r] = append(sets[r], b)
		}
	}
	type slice struct {
		first int
		sets  []bitset
	}
	carried := make(map[*operand]slice, len(o.messages))
	ok := o.walk(func(r int, e operandEvent) bool {
		if e.send {
			at, size := e.m.buffer-s.base[r], e.m.bytes
			if at < 0 || at%s.block != 0 || size%s.block != 0 || (at+size)/s.block > int64(n) {
				return false
			}
			c := slice{first: int(at / s.block)}
			for b := c.first; b < c.first+int(size/s.block); b++ {
				if sent[r].has(b) {
					return false
				}
				sent[r].add(b)
				c.sets = append(c.sets, slices.Clone(sets[r][b]))
			}
			carried[e.m] = c
			return true
		}
		c := carried[e.m]
		for k, set := range c.sets {
			b := c.first + k
			if sent[r].has(b) || !sets[r][b].apartFrom(set) {
				return false
			}
			sets[r][b].join(set, func(int) {})
		}
		return true
	})
	if !ok {
		return false
	}
	owned := newBitset(n)
	for r := range sets {
		for b := range n {
			if !sent[r].has(b) {
				if owned.has(b) || sets[r][b].len() != n {
					return false
				}
				owned.add(b)
			}
		}
	}
	return owned.len() == n
}

// whole puts a reduction whose blocks end at one rank each together with the allgather behind it: then all have all of it.
func (c *combiner) whole(b *combined) {
	n := int64(len(b.group.ranks))
	var behind []*instance
	for _, i := range c.found {
		if i.op == Allgather && i.of == nil && i.bytes*n == b.instances[0].bytes && slices.Equal(i.ranks, b.group.ranks) {
			behind = append(behind, i)
		}
	}
	slices.SortFunc(behind, func(x, y *instance) int { return cmp.Compare(c.lastSend(x), c.lastSend(y)) })
	var after []*instance
	for k, in := range b.instances {
		at := slices.IndexFunc(behind, func(i *instance) bool { return c.follows(in.messages, i) })
		if at < 0 || k+1 < len(b.instances) && c.lastSend(behind[at]) > firstSend(b.instances[k+1].messages, c.messages[behind[at].messages[0]].src) {
			return
		}
		after = append(after, behind[at])
	}
	for k, i := range after {
		for _, m := range c.wholes(i.messages) {
			b.instances[k].messages = append(b.instances[k].messages, &operand{message: c.messages[m]})
		}
	}
	b.op = Allreduce
}

// lastSend is the last send of the first sender of an instance.
func (c *combiner) lastSend(i *instance) (last int64) {
	src := c.messages[i.messages[0]].src
	for _, m := range i.messages {
		if m := &c.messages[m]; m.src == src {
			last = max(last, m.sendSeq)
		}
	}
	return last
}

// firstSend is the first send of a rank among messages.
func firstSend(messages []*operand, src int32) int64 {
	first := int64(1<<63 - 1)
	for _, m := range messages {
		if m.src == src {
			first = min(first, m.sendSeq)
		}
	}
	return first
}

// follows says whether each rank sends its part of an instance after all of what came before it.
func (c *combiner) follows(before []*operand, i *instance) bool {
	last := map[int32]int64{}
	for _, m := range before {
		last[m.src] = max(last[m.src], m.sendSeq)
		last[m.dst] = max(last[m.dst], m.doneSeq)
	}
	for _, m := range i.messages {
		if m := &c.messages[m]; m.sendSeq <= last[m.src] {
			return false
		}
	}
	return true
}
