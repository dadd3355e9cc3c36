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
	own   []int64 // by rank: the size of the block that it ends with, in bytes
	base  []int64 // by rank: where its vector begins
	total int64   // bytes of the vector
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
		b := &combined{group: g, op: ReduceScatter, certainty: Inferred, kept: g.ranks}
		blocks := s.own
		if slices.Min(s.own) == slices.Max(s.own) {
			b.op, blocks = ReduceScatterBlock, nil
		}
		for _, o := range list {
			b.instances = append(b.instances, combinedInstance{messages: o.messages, root: schema.NullInt32, bytes: s.total, rankBytes: blocks})
		}
		return b
	}
	return nil
}

// slicings are the ways in which blocks may lie. All ranks together send the vector as often as there are ranks, less once; what is missing
// of it in what a rank sends is its own block. Where that is the first, the rank sends as if the second were the first.
func (c *combiner) slicings(g *group, list []*once) (out []*slicing) {
	n := len(g.ranks)
	low, high, sent := make([]int64, n), make([]int64, n), make([]int64, n)
	for r := range low {
		low[r] = 1<<63 - 1
	}
	total := int64(0)
	for _, o := range list {
		for _, m := range o.messages {
			r, _ := slices.BinarySearch(g.ranks, m.src)
			if m.buffer == schema.NullInt64 || m.buffer < 0 {
				return nil
			}
			low[r], high[r] = min(low[r], m.buffer), max(high[r], m.buffer+m.bytes)
			sent[r] += m.bytes
			total += m.bytes
		}
	}
	times := int64(len(list))
	if total%(times*int64(n-1)) != 0 {
		return nil
	}
	s := slicing{g: g, total: total / times / int64(n-1)}
	var ends []int
	for r := range n {
		own := s.total - sent[r]/times
		s.own = append(s.own, own)
		if sent[r]%times != 0 || own <= 0 {
			return nil
		}
		switch high[r] - low[r] {
		case s.total:
		case s.total - own:
			ends = append(ends, r)
		default:
			return nil
		}
	}
	if len(ends) != 2 {
		return nil
	}
	if room := c.newSetRoom(); int64(n)*int64(n)*int64(n/8+bytesOfSet) > c.options.MemoryBytes { // a set for each block of each rank, and as many blocks as ranks
		room.runs = -1
		for _, o := range list {
			c.noRoom(room, o)
		}
		return nil
	}
	for _, first := range ends {
		x := s
		x.base = slices.Clone(low)
		x.base[first] -= x.own[first]
		out = append(out, &x)
	}
	return out
}

// mostCutsPerRank bounds the places at which a vector is cut.
const mostCutsPerRank = 4

// cutsOf are the places at which an instance cuts the vector, its ends among them, ascending; nil where there are too many, or one is outside.
func (s *slicing) cutsOf(o *once) []int64 {
	cuts := []int64{0, s.total}
	for _, m := range o.messages {
		r, _ := slices.BinarySearch(s.g.ranks, m.src)
		at := m.buffer - s.base[r]
		if at < 0 || at+m.bytes > s.total {
			return nil
		}
		cuts = append(cuts, at, at+m.bytes)
	}
	slices.Sort(cuts)
	if cuts = slices.Compact(cuts); len(cuts) > mostCutsPerRank*len(s.g.ranks) {
		return nil
	}
	return cuts
}

// replay carries, for each block, the sets of ranks that have contributed to it. Each block must end at one rank, complete.
func (s *slicing) replay(o *once) bool {
	n := len(s.g.ranks)
	cuts := s.cutsOf(o)
	if cuts == nil {
		return false
	}
	blocks := len(cuts) - 1
	sets := make([][]bitset, n)
	sent := make([]bitset, n)
	for r := range sets {
		sent[r] = newBitset(blocks)
		for range blocks {
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
			at := e.m.buffer - s.base[r]
			from, _ := slices.BinarySearch(cuts, at)
			to, _ := slices.BinarySearch(cuts, at+e.m.bytes)
			c := slice{first: from}
			for b := from; b < to; b++ {
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
	owned := newBitset(blocks)
	for r := range sets {
		own := int64(0)
		for b := range blocks {
			if sent[r].has(b) {
				continue
			}
			if owned.has(b) || sets[r][b].len() != n {
				return false
			}
			owned.add(b)
			own += cuts[b+1] - cuts[b]
		}
		if own != s.own[r] {
			return false
		}
	}
	return owned.len() == blocks
}

// whole puts a reduction whose blocks end at one rank each together with the allgather behind it: then all have all of it.
func (c *combiner) whole(b *combined) {
	n := int64(len(b.group.ranks))
	var behind []*instance
	for _, i := range c.found {
		if i.of != nil || !slices.Equal(i.ranks, b.group.ranks) {
			continue
		}
		if i.op == Allgather && b.op == ReduceScatterBlock && i.bytes*n == b.instances[0].bytes ||
			i.op == Allgatherv && b.op == ReduceScatter && slices.Equal(i.rankBytes, b.instances[0].rankBytes) {
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
	for k := range b.instances {
		b.instances[k].rankBytes = nil
	}
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
