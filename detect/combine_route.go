package detect

import (
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

// route is a way in which blocks pass other ranks in an alltoall of log2(ranks) rounds, after Bruck, Ho, Kipnis, Upfal and Weathersby,
// "Efficient Algorithms for All-to-All Communications in Multiport Message-Passing Systems" (IEEE TPDS 8, 1997), section 3. A block
// for the rank that is b away is sent on in the rounds whose distance, a power of two, is in b.
type route struct {
	turn  int   // ranks are counted upward (1) or downward (-1); 0: distances are those of a hypercube
	steps []int // by round, the distance
}

// to is the place of the rank that is so far away from another.
func (t *route) to(place, distance, n int) int {
	if t.turn == 0 {
		return place ^ distance
	}
	return ((place+t.turn*distance)%n + n) % n
}

// blocks are the distances of the blocks that are sent on in a round, ascending.
func (t *route) blocks(round, n int) (out []int) {
	for b := 1; b < n; b++ {
		if b&t.steps[round] != 0 {
			out = append(out, b)
		}
	}
	return out
}

// before is the part of a block's way that lies behind it when a round begins.
func (t *route) before(round, b int) (done int) {
	for _, step := range t.steps[:round] {
		done |= step & b
	}
	return done
}

// leastRouted is the least number of ranks: three have each other's blocks from each other.
const leastRouted = 4

// router is an alltoall in log2(ranks) rounds that is being replayed.
type router struct {
	*combiner
	ranks  []int32 // world ranks, in the order of the communicator
	place  []int   // by rank's place in the group: its place in that order
	route  route
	block  int64 // bytes
	even   bool  // messages of all rounds are of one size
	checks int64
}

// routes looks for operations of log2(ranks) rounds, of which each may have another size, and another datatype.
func (c *combiner) routes(s *sample) (out []*combined) {
	mixed := func(scope func(cell) (cell, bool)) func(cell) (cell, bool) {
		return func(k cell) (cell, bool) { k.datatype, k.bytes = 0, anySize; return scope(k) }
	}
	for _, scope := range slices.Concat(cellScopes[:3], c.functionScopes()[:1]) {
		for _, g := range c.groups(s, mixed(scope)) {
			n, rounds := len(g.ranks), 0
			for step := 1; step < n; step *= 2 {
				rounds++
			}
			times := slices.Min(g.count)
			if n < max(leastRouted, c.options.MinRanks) || g.all || len(g.ways) != n*rounds || times != slices.Max(g.count) {
				continue
			}
			for _, look := range []func(*group, []*once) *combined{c.circling, c.routing} {
				if begin := g.cut(times, 1); begin == nil || look(g, begin) == nil && times < 2 {
					continue
				}
				if list := g.cut(times, math.MaxInt64); list != nil {
					if b := look(g, list); b != nil {
						out = append(out, b)
						break
					}
				}
			}
		}
	}
	return out
}

// circling looks for allgathers in log2(ranks) rounds after Bruck and others, section 4: in each round a rank has twice as many blocks, from its own
// on, and sends them on, in the last round as many as the other needs. Every block is a message in the first round.
func (c *combiner) circling(g *group, list []*once) *combined {
	n := len(g.ranks)
	b := &combined{group: g, op: Allgather, certainty: Verified}
	ranks := c.members(g)
	place := make([]int, n)
	for k, rank := range g.ranks {
		place[k] = slices.Index(ranks, rank)
	}
	for _, o := range list {
		fits := false
		for _, turn := range []int{1, -1} {
			checks, ok := c.circles(o, &route{turn: turn}, ranks, place)
			if fits = ok; ok {
				b.checks += checks
				break
			}
		}
		if !fits {
			return nil
		}
		b.instances = append(b.instances, combinedInstance{messages: o.messages, root: schema.NullInt32, bytes: o.messages[0].bytes})
	}
	return b
}

// circles says whether each message of a time is the blocks that its sender has by then, and how many of more than one block are.
func (c *combiner) circles(o *once, t *route, ranks []int32, place []int) (checks int64, ok bool) {
	n := len(ranks)
	blocks := make([]*operand, n) // by place
	for round, step := 0, 1; step < n; round, step = round+1, 2*step {
		size := min(step, n-step)
		for at, events := range o.events {
			p, m := place[at], nthSend(events, round)
			if m == nil || m.dst != ranks[t.to(p, step, n)] {
				return 0, false
			}
			if round == 0 {
				blocks[p] = m
				continue
			}
			if m.bytes != int64(size)*blocks[p].bytes || !slices.ContainsFunc(events, func(e operandEvent) bool {
				return !e.send && e.m.src == ranks[t.to(p, -step/2, n)] && e.m.doneSeq < m.sendSeq
			}) {
				return 0, false
			}
		}
		if round == 0 {
			if slices.ContainsFunc(blocks, func(m *operand) bool { return m.bytes != blocks[0].bytes }) {
				return 0, false
			}
			continue
		}
		for at, events := range o.events {
			var parts []*operand
			for k := range size {
				parts = append(parts, blocks[t.to(place[at], -k, n)])
			}
			m := nthSend(events, round)
			back := slices.Clone(parts)
			slices.Reverse(back)
			if !c.inOrder(m, parts) && !c.inOrder(m, back) {
				return 0, false
			}
			if size > 1 {
				checks++
			}
		}
	}
	return checks, checks > 0
}

// nthSend is what a rank sends in a round, counted from 0; nil where it sends less.
func nthSend(events []operandEvent, n int) *operand {
	for _, e := range events {
		if e.send {
			if n == 0 {
				return e.m
			}
			n--
		}
	}
	return nil
}

// routing looks for alltoalls whose blocks pass other ranks, put together anew in each round. No message has a block of its own, so hashes
// tell only where ranks have recorded each block that they send.
func (c *combiner) routing(g *group, list []*once) *combined {
	r := c.newRouter(g, list[0])
	if r == nil {
		return nil
	}
	b := &combined{group: g, op: Alltoall, certainty: Inferred}
	n := int64(len(g.ranks))
	recorded, varied := true, false
	for _, o := range list {
		rounds := r.rounds(o)
		if rounds == nil {
			return nil
		}
		blocks := r.recordedBlocks(o)
		if recorded = recorded && blocks != nil; recorded && !r.fits(rounds, blocks) {
			return nil
		}
		varied = varied || slices.ContainsFunc(o.messages, func(m *operand) bool { return m.hash != o.messages[0].hash })
		b.instances = append(b.instances, combinedInstance{messages: o.messages, root: schema.NullInt32, bytes: r.block * (n - 1)})
	}
	switch {
	case !varied:
		return nil
	case recorded:
		b.certainty, b.checks = Verified, r.checks
		return b
	case r.route.turn == 0 || len(list) < 2 && len(r.route.steps) < 3 || !c.complete(g) || !c.alone(g):
		return nil // exchanges along the edges of a cube are halos
	}
	if r.even {
		b.others = []Operation{Allreduce} // of an operation of the program's own
	}
	return b
}

// newRouter says how blocks go in the first time; nil where it is no such way.
func (c *combiner) newRouter(g *group, o *once) *router {
	n := len(g.ranks)
	if n < max(leastRouted, c.options.MinRanks) {
		return nil
	}
	r := &router{combiner: c, ranks: c.members(g), place: make([]int, n), even: true}
	for k, rank := range g.ranks {
		r.place[k] = slices.Index(r.ranks, rank)
	}
	for step := 1; step < n; step *= 2 {
		r.route.steps = append(r.route.steps, step)
	}
	if len(o.messages) != n*len(r.route.steps) {
		return nil
	}
	for _, turn := range []int{1, -1, 0} {
		if turn == 0 && n&(n-1) != 0 {
			break
		}
		if r.turns(o, turn) {
			return r
		}
	}
	return nil
}

// members are the ranks of a group in the order of their communicator, where it has just them; else in their own.
func (c *combiner) members(g *group) []int32 {
	id := g.cells[0].cell.comm
	for k := range c.run.Comms {
		if m := &c.run.Comms[k]; m.ID == id && len(m.Members) == len(g.ranks) && holds(m, g.ranks) {
			return m.Members
		}
	}
	return g.ranks
}

// turns says whether the first rank sends such a way, and notes it: once at each distance, nearest or farthest first, as many bytes as
// there are blocks.
func (r *router) turns(o *once, turn int) bool {
	n := len(r.ranks)
	of := route{turn: turn}
	var sizes []int64
	for _, e := range o.events[0] {
		if !e.send {
			continue
		}
		d := 1
		for d < n && r.ranks[of.to(r.place[0], d, n)] != e.m.dst {
			d *= 2
		}
		of.steps, sizes = append(of.steps, d), append(sizes, e.m.bytes)
	}
	if len(of.steps) != len(r.route.steps) {
		return false
	}
	down := slices.Clone(of.steps)
	slices.Reverse(down)
	if !slices.Equal(of.steps, r.route.steps) && !slices.Equal(down, r.route.steps) {
		return false
	}
	first := int64(len(of.blocks(0, n)))
	for k, bytes := range sizes {
		if bytes == 0 || bytes*first != sizes[0]*int64(len(of.blocks(k, n))) {
			return false
		}
		r.even = r.even && bytes == sizes[0]
	}
	if sizes[0]%first != 0 {
		return false
	}
	r.block, r.route = sizes[0]/first, of
	return true
}

// rounds are the messages of a time by round and by the sender's place; nil where ranks do something else, or send in a round before they have
// got what the one before brings.
func (r *router) rounds(o *once) [][]*operand {
	n, rounds := len(r.ranks), len(r.route.steps)
	if len(o.messages) != n*rounds {
		return nil
	}
	out := make([][]*operand, rounds)
	for k := range out {
		out[k] = make([]*operand, n)
	}
	for at, events := range o.events {
		p, sent, got := r.place[at], 0, 0
		for _, e := range events {
			if !e.send {
				got++
				continue
			}
			m := e.m
			if sent == rounds || sent > got || m.dst != r.ranks[r.route.to(p, r.route.steps[sent], n)] || m.bytes != r.block*int64(len(r.route.blocks(sent, n))) {
				return nil
			}
			out[sent][p] = m
			sent++
		}
		if sent != rounds || got != rounds {
			return nil
		}
	}
	for k, messages := range out[1:] { // what comes in is of the round before, not only as many
		for p, m := range messages {
			from := slices.IndexFunc(out[k], func(m *operand) bool { return m.dst == r.ranks[p] })
			if from < 0 || out[k][from].doneSeq >= m.sendSeq || m.hash == out[k][from].hash && !r.blank(&m.message) {
				return nil
			}
		}
	}
	return out
}

// recordedBlocks are the blocks that each rank recorded before it sent any, by its place and the receiver's; nil where ranks did not. In memory
// they lie in the order of their receivers; a rank's own may be missing.
func (r *router) recordedBlocks(o *once) [][]*operand {
	n := len(r.ranks)
	out := make([][]*operand, n)
	for at := range o.events {
		p := r.place[at]
		var own []*operand
		for _, m := range r.records[r.ranks[p]] {
			if m.sendSeq > o.after[at] && m.sendSeq < o.events[at][0].seq() && m.bytes == r.block {
				own = append(own, m)
			}
		}
		slices.SortStableFunc(own, func(a, b *operand) int {
			if uint64(a.buffer) < uint64(b.buffer) {
				return -1
			}
			return 1
		})
		switch len(own) {
		case n:
		case n - 1:
			own = slices.Insert(own, p, nil)
		default:
			return nil
		}
		out[p] = own
	}
	return out
}

// fits says whether all messages of a time are what the rule makes of the blocks.
func (r *router) fits(rounds [][]*operand, blocks [][]*operand) bool {
	n := len(r.ranks)
	for k, messages := range rounds {
		for p, m := range messages {
			var parts []*operand
			for _, b := range r.route.blocks(k, n) {
				behind := r.route.before(k, b)
				src := (&route{turn: -r.route.turn}).to(p, behind, n)
				parts = append(parts, blocks[src][r.route.to(src, b, n)])
			}
			if !r.joined(m, parts) {
				return false
			}
			r.checks++
		}
	}
	return true
}
