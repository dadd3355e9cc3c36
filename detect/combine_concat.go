package detect

import (
	"cmp"
	"slices"

	"github.com/commq/commq/schema"
)

// gathering looks for operations in which blocks are put together.
func (c *combiner) gathering(g *group, list []*once) *combined { return c.joining(g, list, false) }

// scattering looks for operations in which blocks are taken apart: gatherings backward.
func (c *combiner) scattering(g *group, list []*once) *combined { return c.joining(g, list, true) }

// joiner is a gathering that is being replayed.
type joiner struct {
	*combiner
	g         *group
	checks    int64 // wholes that are their parts, by hash
	addressed int64 // wholes that are their parts, by address
	unseen    int64 // wholes of which nothing can be seen
	kept      bitset
	varied    bool
	own       []int64 // of the last time: by rank, its block in bytes; -1: unknown
	root      int
	backward  bool
	overlaid  bool // roots get all blocks at one address, each time
}

func (c *combiner) newJoiner(g *group, backward bool) *joiner {
	return &joiner{combiner: c, g: g, kept: newBitset(len(g.ranks)), root: -1, backward: backward, overlaid: true}
}

func (c *combiner) joining(g *group, list []*once, backward bool) *combined {
	n := len(g.ranks)
	if n < c.options.MinRanks {
		return nil
	}
	j := c.newJoiner(g, backward)
	b := &combined{group: g}
	all, same := true, true
	var roots []int32
	for k, o := range list {
		turned := o
		if o.reach(backward) < n {
			return nil
		}
		if backward {
			turned = o.backward()
		}
		root, ok := j.replay(turned)
		if !ok || k > 0 && (root < 0) != (j.root < 0) {
			return nil
		}
		j.root = root
		all = all && root < 0
		in := combinedInstance{messages: o.messages, root: schema.NullInt32, rankBytes: slices.Clone(j.own)}
		if root >= 0 {
			in.root = g.ranks[root]
			roots = append(roots, in.root)
		}
		block := int64(-1)
		for _, own := range j.own {
			if own >= 0 && block >= 0 && own != block {
				same = false
			}
			block = max(block, own)
		}
		for r, own := range in.rankBytes {
			if own < 0 {
				in.rankBytes[r] = block // the root's own, of which nothing is known
			}
			in.bytes += in.rankBytes[r]
		}
		if all {
			in.bytes = block
		}
		b.instances = append(b.instances, in)
	}
	if !j.conclude(b, roots, same) || !all && c.spread(list) {
		return nil
	}
	for r, rank := range g.ranks {
		if j.kept.has(r) {
			b.kept = append(b.kept, rank)
		}
	}
	if same {
		for k := range b.instances {
			b.instances[k].rankBytes = nil
		}
	}
	return b
}

// spread says whether payloads are part of something else.
func (c *combiner) spread(list []*once) bool {
	return slices.ContainsFunc(list, func(o *once) bool {
		return slices.ContainsFunc(o.messages, func(m *operand) bool { return c.of(m) != nil })
	})
}

// conclude says what is found and how certain it is.
func (j *joiner) conclude(b *combined, roots []int32, same bool) bool {
	if len(roots) == 0 { // all have all
		if j.backward || j.checks == 0 || j.unseen > 0 {
			return false
		}
		b.op, b.certainty, b.checks = Allgather, Verified, j.checks
		if !same {
			b.op = Allgatherv
		}
		return true
	}
	b.checks = j.checks
	b.op = map[bool]Operation{false: Gather, true: Scatter}[j.backward]
	if !same {
		b.op++
	}
	switch {
	case !j.varied:
		return false
	case j.unseen == 0 && j.addressed == 0 && j.checks > 0:
		b.certainty = Verified
	case j.unseen == 0:
		b.certainty = Addressed
	default:
		b.certainty = Inferred
		if j.overlaid && !j.backward && j.kinds[j.g.cells[0].cell.datatype].class != opaque {
			b.others = []Operation{Reduce} // the root may add them up
		}
		return same && (slices.Min(roots) == slices.Max(roots) || inTurn(roots)) && j.complete(j.g) && j.alone(j.g)
	}
	return true
}

// complete says whether the group has all ranks of the communicator that it sends in.
func (c *combiner) complete(g *group) bool {
	id := g.cells[0].cell.comm
	for k := range c.run.Comms {
		if c := &c.run.Comms[k]; c.ID == id {
			return len(c.Members) == len(g.ranks)
		}
	}
	return false
}

// alone says whether the calls that send a group's messages send nothing else between its ranks, of any size: what is sent about
// in all ways has by chance any shape in some size.
func (c *combiner) alone(g *group) bool {
	place := func(c cell) cell {
		c.bytes = 0
		if c.site != schema.NullInt32 {
			c.tag = 0
		}
		return c
	}
	places, ways := map[cell]bool{}, map[way]bool{}
	for _, of := range g.cells {
		places[place(of.cell)] = true
	}
	for _, w := range g.ways {
		ways[w] = true
	}
	for _, of := range c.sample.order {
		if !places[place(of.cell)] {
			continue
		}
		for w := range of.ways {
			_, src := slices.BinarySearch(g.ranks, w.src)
			_, dst := slices.BinarySearch(g.ranks, w.dst)
			if w.src != w.dst && (src || dst) && !ways[w] {
				return false
			}
		}
	}
	return true
}

// held is what a rank has in the course of a gathering.
type held struct {
	set   rankSet
	own   int64      // its block in bytes; -1: not known yet
	known *operand   // what it sent, or recorded
	since []*operand // what it has got since then
	parts []*operand // what it has got
	total int64      // of that
}

// replay carries the sets of ranks whose blocks are in a message; each message must be as long as its blocks. It returns the place of
// the rank that has all in the end, or -1 where all have.
func (j *joiner) replay(o *once) (root int, ok bool) {
	n := len(j.g.ranks)
	ranks, room := make([]held, n), j.newSetRoom()
	for r := range ranks {
		ranks[r] = held{set: newRankSet(n, room), own: -1}
		ranks[r].set.add(r)
	}
	carried := make(map[*operand]rankSet, len(o.messages))
	for _, m := range o.messages {
		j.varied = j.varied || m.hash != o.messages[0].hash
	}
	ok = o.walk(func(r int, e operandEvent) bool {
		at := &ranks[r]
		if !e.send {
			got := carried[e.m]
			if !at.set.apartFrom(&got) {
				return false
			}
			at.set.join(&got, nil)
			at.since, at.parts, at.total = append(at.since, e.m), append(at.parts, e.m), at.total+e.m.bytes
			return !room.over()
		}
		carried[e.m] = at.set.clone()
		return j.sent(at, o, e.m, r) && !room.over()
	})
	j.noRoom(room, o)
	if !ok {
		return 0, false
	}
	full := 0
	for r := range ranks {
		if ranks[r].set.len() == n {
			full++
			root = r
		}
	}
	j.own = j.own[:0]
	for r := range ranks {
		j.own = append(j.own, ranks[r].own)
	}
	switch {
	case full == n:
		return -1, true
	case full != 1 || len(o.messages) != n-1 || ranks[root].own >= 0:
		return 0, false
	}
	j.rooted(&ranks[root], o, root)
	return root, true
}

// sent looks at a message of blocks.
func (j *joiner) sent(at *held, o *once, m *operand, r int) bool {
	if at.own >= 0 {
		if m.bytes != at.own+at.total || len(at.since) == 0 {
			return false
		}
		if !j.joined(m, append([]*operand{at.known}, at.since...)) {
			return false
		}
		j.checks++
		at.known, at.since = m, nil
		return true
	}
	at.own = m.bytes - at.total
	if at.own <= 0 {
		return false
	}
	if len(at.parts) > 0 {
		own := j.block(o, r, at.own, m.datatype)
		switch {
		case own != nil && j.joined(m, append([]*operand{own}, at.parts...)):
			j.checks++
		case j.within(m, at.parts):
			j.addressed++
			j.kept.add(r)
		default:
			j.unseen++
			j.kept.add(r)
		}
	}
	at.known, at.since = m, nil
	return true
}

// block is a rank's own block, where it recorded it.
func (j *joiner) block(o *once, r int, bytes int64, datatype int32) *operand {
	after, before := o.after[r], o.before[r]
	if !j.backward { // what it has before it sends first
		before = o.events[r][len(o.events[r])-1].seq() + 1
	}
	return j.record(j.g.ranks[r], after, before, bytes, datatype)
}

// within says whether blocks lie in a whole, side by side.
func (j *joiner) within(whole *operand, blocks []*operand) bool {
	if whole.buffer == schema.NullInt64 {
		return false
	}
	end := whole.buffer
	for _, b := range byAddress(blocks) {
		if b.dstBuffer == schema.NullInt64 || b.dstBuffer < end {
			return false
		}
		end = b.dstBuffer + b.bytes
	}
	return end <= whole.buffer+whole.bytes
}

func byAddress(blocks []*operand) []*operand {
	out := slices.Clone(blocks)
	slices.SortFunc(out, func(a, b *operand) int { return cmp.Compare(uint64(a.dstBuffer), uint64(b.dstBuffer)) })
	return out
}

// rooted looks at how the blocks lie at the root: side by side, but for its own.
func (j *joiner) rooted(at *held, o *once, r int) {
	j.overlaid = j.overlaid && !slices.ContainsFunc(at.parts, func(m *operand) bool {
		return m.dstBuffer != at.parts[0].dstBuffer || m.dstBuffer == schema.NullInt64
	})
	gaps, gap := 0, int64(0)
	end := int64(schema.NullInt64)
	for _, b := range byAddress(at.parts) {
		if b.dstBuffer == schema.NullInt64 || end != schema.NullInt64 && b.dstBuffer < end {
			gaps = 2
			break
		}
		if end != schema.NullInt64 && b.dstBuffer > end {
			gaps++
			gap = b.dstBuffer - end
		}
		end = b.dstBuffer + b.bytes
	}
	if gaps == 1 {
		at.own = gap
	}
	same := int64(0)
	for q, own := range j.own {
		if q != r && (same == 0 || own == same) {
			same = own
		} else if q != r {
			same = -1
		}
	}
	if gaps == 1 && same > 0 && gap != same {
		gaps = 2
	}
	if own := j.block(o, r, max(gap, same), at.parts[0].datatype); own == nil {
		j.kept.add(r)
	} else if whole := j.wholeOf(o, r, at.total+own.bytes); whole != nil && j.joined(whole, append([]*operand{own}, at.parts...)) {
		j.checks++
		return
	}
	switch {
	case gaps > 1 && j.strides(at.parts):
		j.addressed++
	case gaps > 1:
		j.unseen++
	default:
		j.addressed++
		j.own[r] = gap
		if gap == 0 {
			j.own[r] = -1
		}
	}
}

// strides says whether each other rank's block has a place of one size at the root, in the order of ranks, of which it may fill a part.
func (j *joiner) strides(blocks []*operand) bool {
	if len(blocks) != len(j.g.ranks)-1 || len(blocks) < 3 {
		return false
	}
	sorted := slices.Clone(blocks)
	slices.SortFunc(sorted, func(a, b *operand) int { return cmp.Compare(a.src, b.src) })
	place := func(m *operand) int64 {
		r, _ := slices.BinarySearch(j.g.ranks, m.src)
		return int64(r)
	}
	stride := int64(0)
	for k, m := range sorted[1:] {
		before := sorted[k]
		ranks := place(m) - place(before)
		if m.dstBuffer == schema.NullInt64 || before.dstBuffer == schema.NullInt64 || ranks <= 0 || (m.dstBuffer-before.dstBuffer)%ranks != 0 {
			return false
		}
		if of := (m.dstBuffer - before.dstBuffer) / ranks; k == 0 {
			stride = of
		} else if of != stride {
			return false
		}
	}
	return !slices.ContainsFunc(blocks, func(m *operand) bool { return m.bytes > stride })
}

// wholeOf is what the root has in one piece, where it recorded that or sends it: after it has got all blocks, or before it sends any.
func (j *joiner) wholeOf(o *once, r int, bytes int64) *operand {
	rank := j.g.ranks[r]
	after, before := o.events[r][len(o.events[r])-1].seq(), o.before[r]
	if j.backward {
		after, before = o.after[r], after
	}
	for _, list := range [][]*operand{j.records[rank], j.sends[rank]} {
		at, _ := slices.BinarySearchFunc(list, after+1, func(m *operand, seq int64) int { return cmp.Compare(m.sendSeq, seq) })
		for ; at < len(list) && list[at].sendSeq < before; at++ {
			if list[at].bytes == bytes {
				return list[at]
			}
		}
	}
	return nil
}
