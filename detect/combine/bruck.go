package combine

import (
	"math"
	"slices"

	weight "github.com/commq/commq/detect/evidence"
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/schema"
)

// route describes how blocks pass through other ranks in an alltoall of log2(ranks) rounds, after Bruck, Ho, Kipnis,
// Upfal and Weathersby, "Efficient Algorithms for All-to-All Communications in Multiport Message-Passing Systems"
// (IEEE TPDS 8, 1997), section 3. Each round has a distance, a power of two; a block for the rank at distance b is
// forwarded in the rounds whose distance is a bit of b.
type route struct {
	direction int   // 1: ranks are counted upward; -1: downward; 0: distances are those of a hypercube
	steps     []int // the distance of each round
}

// target returns the place of the rank at a distance from another.
func (t *route) target(place, distance, n int) int {
	if t.direction == 0 {
		return place ^ distance
	}
	return ((place+t.direction*distance)%n + n) % n
}

// blocks returns the distances of the blocks that are forwarded in a round, ascending.
func (t *route) blocks(round, n int) (out []int) {
	for b := 1; b < n; b++ {
		if b&t.steps[round] != 0 {
			out = append(out, b)
		}
	}
	return out
}

// travelled returns the distance that a block has covered when a round begins.
func (t *route) travelled(round, b int) (done int) {
	for _, step := range t.steps[:round] {
		done |= step & b
	}
	return done
}

// minBruckRanks is the minimum number of ranks: up to three exchange their blocks directly.
const minBruckRanks = 4

// router replays an alltoall of log2(ranks) rounds.
type router struct {
	facts     *facts
	ranks     []int32 // world ranks, in the order of the communicator
	place     []int   // by place in the group: the place in ranks
	route     route
	block     int64 // bytes
	evenSizes bool  // messages of all rounds have the same size
	checks    int64
	joined    weight.Comparisons
}

// findBruck searches for operations of log2(ranks) rounds. Size and datatype may differ between rounds.
func (c *combiner) findBruck(s *ledger.Sample) (out []*match) {
	mixed := func(scope func(ledger.Cell) (ledger.Cell, bool)) func(ledger.Cell) (ledger.Cell, bool) {
		return func(k ledger.Cell) (ledger.Cell, bool) { k.Datatype, k.Bytes = 0, ledger.AnySize; return scope(k) }
	}
	for _, scope := range slices.Concat(cellScopes[:3], c.functionScopes()[:1]) {
		for _, g := range c.groups(s, mixed(scope)) {
			n, rounds := len(g.ranks), 0
			for step := 1; step < n; step *= 2 {
				rounds++
			}
			times := slices.Min(g.count)
			if n < max(minBruckRanks, c.facts.rules.MinRanks) || g.hasAllgathers || len(g.ways) != n*rounds ||
				times != slices.Max(g.count) {
				continue
			}
			for _, look := range []searchFunc{findBruckAllgather, findBruckAlltoall} {
				if begin := g.cut(times, 1); begin == nil || look(c.facts, g, begin) == nil && times < 2 {
					continue
				}
				if list := g.cut(times, math.MaxInt64); list != nil {
					if b := look(c.facts, g, list); b != nil {
						out = append(out, b)
						break
					}
				}
			}
		}
	}
	return out
}

// findBruckAllgather searches for allgathers in log2(ranks) rounds after Bruck and others, section 4: each round
// doubles the blocks that a rank has, starting with its own, and it forwards them; in the last round it sends only
// those that the receiver lacks. The messages of the first round are the single blocks.
func findBruckAllgather(f *facts, g *group, list []*occurrence) *match {
	n := len(g.ranks)
	b := &match{group: g, op: ledger.Allgather, proof: ledger.Proof{Basis: ledger.ByPayload}}
	ranks, joined := f.order(g), weight.Comparisons{}
	place := make([]int, n)
	for k, rank := range g.ranks {
		place[k] = slices.Index(ranks, rank)
	}
	for _, o := range list {
		fits := false
		for _, turn := range []int{1, -1} {
			checks, ok := f.check.checkBruckAllgather(o, &route{direction: turn}, ranks, place, &joined)
			if fits = ok; ok {
				b.checks += checks
				break
			}
		}
		if !fits {
			return nil
		}
		b.instances = append(b.instances, repetition{messages: o.messages, root: schema.NullInt32,
			bytes: o.messages[0].Bytes})
	}
	b.proof.Bits = joined.Bits()
	return b
}

// checkBruckAllgather reports whether each message of an occurrence consists of the blocks that its sender has by
// then, and adds these to joined. checks is the number of messages with more than one block.
func (c *checker) checkBruckAllgather(o *occurrence, t *route, ranks []int32, place []int,
	joined *weight.Comparisons) (checks int64, ok bool) {
	n, agrees := len(ranks), weight.Comparisons{}
	blocks := make([]*ledger.Operand, n) // by place
	for round, step := 0, 1; step < n; round, step = round+1, 2*step {
		size := min(step, n-step)
		for at, events := range o.events {
			p, m := place[at], nthSend(events, round)
			if m == nil || m.Dst != ranks[t.target(p, step, n)] {
				return 0, false
			}
			if round == 0 {
				blocks[p] = m
				continue
			}
			if m.Bytes != int64(size)*blocks[p].Bytes || !slices.ContainsFunc(events, func(e ledger.Event) bool {
				return !e.Send && e.M.Src == ranks[t.target(p, -step/2, n)] && e.M.DoneSeq < m.SendSeq
			}) {
				return 0, false
			}
		}
		if round == 0 {
			if slices.ContainsFunc(blocks, func(m *ledger.Operand) bool { return m.Bytes != blocks[0].Bytes }) {
				return 0, false
			}
			continue
		}
		for at, events := range o.events {
			var parts []*ledger.Operand
			for k := range size {
				parts = append(parts, blocks[t.target(place[at], -k, n)])
			}
			m := nthSend(events, round)
			back := slices.Clone(parts)
			slices.Reverse(back)
			if !c.isConcatenationInOrder(m, parts) && !c.isConcatenationInOrder(m, back) {
				return 0, false
			}
			if size > 1 {
				checks++
				agrees.AddResult(m.Hash, weight.BlockBits)
			}
		}
	}
	joined.Add(&agrees)
	return checks, checks > 0
}

// nthSend returns the send number n of a rank, counted from 0, or nil if it sends fewer.
func nthSend(events []ledger.Event, n int) *ledger.Operand {
	for _, e := range events {
		if e.Send {
			if n == 0 {
				return e.M
			}
			n--
		}
	}
	return nil
}

// findBruckAlltoall searches for alltoalls whose blocks pass through other ranks and are packed anew in each round.
// No message is a single block, so hashes prove something only if the ranks recorded each block that they send.
func findBruckAlltoall(f *facts, g *group, list []*occurrence) *match {
	r := newRouter(f, g, list[0])
	if r == nil {
		return nil
	}
	b := &match{group: g, op: ledger.Alltoall, proof: ledger.Proof{Basis: ledger.ByStructure}}
	n := int64(len(g.ranks))
	recorded, varied := true, false
	for _, o := range list {
		rounds := r.rounds(o)
		if rounds == nil {
			return nil
		}
		blocks := r.recordedBlocks(o)
		if recorded = recorded && blocks != nil; recorded && !r.fitsBlocks(rounds, blocks) {
			return nil
		}
		varied = varied || slices.ContainsFunc(o.messages,
			func(m *ledger.Operand) bool { return m.Hash != o.messages[0].Hash })
		b.instances = append(b.instances, repetition{messages: o.messages, root: schema.NullInt32,
			bytes: r.block * (n - 1)})
	}
	switch {
	case !varied:
		return nil
	case recorded:
		b.proof.Basis, b.checks, b.proof.Bits = ledger.ByPayload, r.checks, r.joined.Bits()
		return b
	case r.route.direction == 0 || len(list) < 2 && len(r.route.steps) < 3 || !f.coversComm(g) || !f.sendsNothingElse(g):
		return nil // exchanges along the edges of a cube are halos
	}
	if r.evenSizes {
		b.proof.Others = []ledger.Operation{ledger.Allreduce} // perhaps with an operation of the program's own
	}
	return b
}

// newRouter derives the route from the first occurrence; nil means that it does not follow one.
func newRouter(f *facts, g *group, o *occurrence) *router {
	n := len(g.ranks)
	if n < max(minBruckRanks, f.rules.MinRanks) {
		return nil
	}
	r := &router{facts: f, ranks: f.order(g), place: make([]int, n), evenSizes: true}
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
		if r.fitsFirst(o, turn) {
			return r
		}
	}
	return nil
}

// fitsFirst reports whether the first rank sends along such a route, and stores it: one message at each distance,
// nearest or farthest first, with sizes in proportion to the number of blocks.
func (r *router) fitsFirst(o *occurrence, turn int) bool {
	n := len(r.ranks)
	of := route{direction: turn}
	var sizes []int64
	for _, e := range o.events[0] {
		if !e.Send {
			continue
		}
		d := 1
		for d < n && r.ranks[of.target(r.place[0], d, n)] != e.M.Dst {
			d *= 2
		}
		of.steps, sizes = append(of.steps, d), append(sizes, e.M.Bytes)
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
		r.evenSizes = r.evenSizes && bytes == sizes[0]
	}
	if sizes[0]%first != 0 {
		return false
	}
	r.block, r.route = sizes[0]/first, of
	return true
}

// rounds returns the messages of an occurrence by round and by the sender's place. It returns nil if ranks do
// anything else, or send in a round before they have received the message of the previous round.
func (r *router) rounds(o *occurrence) [][]*ledger.Operand {
	n, rounds := len(r.ranks), len(r.route.steps)
	if len(o.messages) != n*rounds {
		return nil
	}
	out := make([][]*ledger.Operand, rounds)
	for k := range out {
		out[k] = make([]*ledger.Operand, n)
	}
	for at, events := range o.events {
		p, sent, got := r.place[at], 0, 0
		for _, e := range events {
			if !e.Send {
				got++
				continue
			}
			m := e.M
			if sent == rounds || sent > got || m.Dst != r.ranks[r.route.target(p, r.route.steps[sent], n)] ||
				m.Bytes != r.block*int64(len(r.route.blocks(sent, n))) {
				return nil
			}
			out[sent][p] = m
			sent++
		}
		if sent != rounds || got != rounds {
			return nil
		}
	}
	for k, messages := range out[1:] { // the count does not show that the received message is of the round before
		for p, m := range messages {
			from := slices.IndexFunc(out[k], func(m *ledger.Operand) bool { return m.Dst == r.ranks[p] })
			if from < 0 || out[k][from].DoneSeq >= m.SendSeq || m.Hash == out[k][from].Hash && !r.facts.rules.Blank(&m.Message) {
				return nil
			}
		}
	}
	return out
}

// recordedBlocks returns the blocks that each rank recorded before its first send, by its place and the receiver's,
// or nil if any rank did not record them. In memory they are in the order of their receivers; a rank's own block may
// be missing.
func (r *router) recordedBlocks(o *occurrence) [][]*ledger.Operand {
	n := len(r.ranks)
	out := make([][]*ledger.Operand, n)
	for at := range o.events {
		p := r.place[at]
		var own []*ledger.Operand
		for _, m := range r.facts.records[r.ranks[p]] {
			if m.SendSeq > o.after[at] && m.SendSeq < o.events[at][0].Seq() && m.Bytes == r.block {
				own = append(own, m)
			}
		}
		slices.SortStableFunc(own, func(a, b *ledger.Operand) int {
			if uint64(a.Buffer) < uint64(b.Buffer) {
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

// fitsBlocks reports whether all messages of an occurrence consist of the recorded blocks that the route prescribes.
func (r *router) fitsBlocks(rounds [][]*ledger.Operand, blocks [][]*ledger.Operand) bool {
	n := len(r.ranks)
	for k, messages := range rounds {
		for p, m := range messages {
			var parts []*ledger.Operand
			for _, b := range r.route.blocks(k, n) {
				behind := r.route.travelled(k, b)
				src := (&route{direction: -r.route.direction}).target(p, behind, n)
				parts = append(parts, blocks[src][r.route.target(src, b, n)])
			}
			if !r.facts.check.isConcatenation(m, parts) {
				return false
			}
			r.checks++
			r.joined.AddResult(m.Hash, weight.BlockBits)
		}
	}
	return true
}
