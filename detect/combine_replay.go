package detect

import (
	"cmp"
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

// once is one time that the messages of a group are sent.
type once struct {
	messages []*operand
	events   [][]operandEvent // by rank's place in the group, in its order
	after    []int64          // by rank: seq of its last event of the time before; -1
	before   []int64          // of its first event of the next time
}

// operandEvent is an end of a message.
type operandEvent struct {
	m    *operand
	send bool
}

func (e operandEvent) seq() int64 {
	if e.send {
		return e.m.sendSeq
	}
	return e.m.doneSeq
}

// try looks for an operation that all messages of a group are part of.
func (c *combiner) try(g *group) *combined {
	n := len(g.ranks)
	if n < c.options.MinRanks && (n < 2 || c.options.MinRanks > DefaultMinRanks) {
		return nil
	}
	if g.routed {
		return nil
	}
	if g.dense {
		return c.taking(g)
	}
	times := int64(0)
	for _, count := range g.count {
		times = gcd(times, count)
	}
	tried := map[int64]bool{}
	for _, per := range []int64{1, 2, int64(n - 1), int64(2 * (n - 1)), times} {
		if times%per != 0 || tried[per] {
			continue
		}
		tried[per] = true
		if begin := g.cut(times/per, 2); begin == nil || !c.may(g, begin[:1]) {
			continue
		}
		list := g.cut(times/per, math.MaxInt64)
		if list == nil {
			continue
		}
		if g.all {
			if b := c.reduction(g, list); b != nil && b.certainty == Verified {
				return b
			}
			continue
		}
		for _, look := range []func(*group, []*once) *combined{c.reduction, c.gathering, c.scattering, c.scatteringReduction} {
			if b := look(g, list); b != nil {
				return b
			}
		}
	}
	return c.taking(g)
}

// taking looks for operations whose roots take turns.
func (c *combiner) taking(g *group) *combined {
	if len(g.ranks) < max(3, c.options.MinRanks) || g.all {
		return nil
	}
	if list := g.turns(false); list != nil {
		for _, look := range []func(*group, []*once) *combined{c.reduction, c.gathering} {
			if b := look(g, list); b != nil {
				return b
			}
		}
	}
	if list := g.turns(true); list != nil {
		return c.scattering(g, list)
	}
	return nil
}

// may says whether the first time of a group can be one of any operation: most groups are none, which it shows without the others.
func (c *combiner) may(g *group, first []*once) bool {
	bytes := first[0].messages[0].bytes
	for _, without := range []bool{false, true} {
		if _, ok := c.newFolding(g, without).replay(first[0], bytes); ok {
			return true
		}
	}
	for _, backward := range []bool{false, true} {
		o := first[0]
		if o.reach(backward) < len(g.ranks) {
			continue
		}
		if backward {
			o = o.backward()
		}
		if _, ok := c.newJoiner(g, backward).replay(o); ok {
			return true
		}
	}
	return slices.ContainsFunc(c.slicings(g, first), func(s *slicing) bool { return s.replay(first[0]) })
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// cut cuts the messages of a group into so many times, the same number of each way in each, and returns the first of them, at most so many; nil
// where they are not one after the other.
func (g *group) cut(times, most int64) []*once {
	n := min(times, most)
	for k, list := range g.lists {
		n = min(n, int64(len(list))/(g.count[k]/times))
	}
	if n == 0 {
		return nil
	}
	out := make([]*once, n)
	for j := range out {
		o := &once{events: make([][]operandEvent, len(g.ranks)), after: make([]int64, len(g.ranks)), before: make([]int64, len(g.ranks))}
		for k, list := range g.lists {
			per := int(g.count[k] / times)
			src, _ := slices.BinarySearch(g.ranks, g.ways[k].src)
			dst, _ := slices.BinarySearch(g.ranks, g.ways[k].dst)
			for _, m := range list[j*per : (j+1)*per] {
				o.messages = append(o.messages, m)
				o.events[src] = append(o.events[src], operandEvent{m, true})
				o.events[dst] = append(o.events[dst], operandEvent{m, false})
			}
		}
		sortMessages(o.messages)
		for r, events := range o.events {
			sortEvents(events)
			o.after[r], o.before[r] = -1, 1<<62
			if j > 0 {
				last := out[j-1].events[r]
				o.after[r] = last[len(last)-1].seq()
				out[j-1].before[r] = events[0].seq()
				if o.after[r] >= events[0].seq() {
					return nil
				}
			}
		}
		out[j] = o
	}
	return out
}

// walk visits the ends of messages in an order in which each send is before its receive; it ends where visit says that it does not
// fit, and says whether all did.
func (o *once) walk(visit func(rank int, e operandEvent) bool) bool {
	at := make([]int, len(o.events))
	for _, m := range o.messages {
		m.sent = false
	}
	left := 2 * len(o.messages)
	for moved := true; moved; {
		moved = false
		for r := range at {
			for at[r] < len(o.events[r]) {
				e := o.events[r][at[r]]
				if !e.send && !e.m.sent {
					break
				}
				e.m.sent = true
				at[r]++
				left--
				moved = true
				if !visit(r, e) {
					return false
				}
			}
		}
	}
	return left == 0
}

// reach is no less than the number of ranks from which any rank has something in the end, counted without looking which they are: it takes no sets of
// ranks to see that neighbours who exchange once do not hear of all. backward, it is so the other way round in time.
func (o *once) reach(backward bool) (most int) {
	n := len(o.events)
	heard := make([]int32, n)
	for r := range heard {
		heard[r] = 1
	}
	at := make([]int, n)
	for _, m := range o.messages {
		m.sent = false
	}
	for moved := true; moved; {
		moved = false
		for r, events := range o.events {
			for ; at[r] < len(events); at[r]++ {
				e := events[at[r]]
				if backward {
					e = events[len(events)-1-at[r]]
				}
				comes := e.send == backward
				if comes && !e.m.sent {
					break
				}
				if comes {
					heard[r] = min(heard[r]+e.m.heard, int32(n))
				} else {
					e.m.sent, e.m.heard = true, heard[r]
				}
				moved = true
			}
		}
	}
	return int(slices.Max(heard))
}

// backward is the same the other way round in time: who received sends.
func (o *once) backward() *once {
	b := &once{after: o.after, before: o.before}
	turned := make(map[*operand]*operand, len(o.messages))
	for _, m := range o.messages {
		t := *m
		t.src, t.dst, t.buffer, t.dstBuffer = m.dst, m.src, m.dstBuffer, m.buffer
		turned[m] = &t
		b.messages = append(b.messages, &t)
	}
	for _, events := range o.events {
		list := make([]operandEvent, 0, len(events))
		for _, e := range slices.Backward(events) {
			list = append(list, operandEvent{turned[e.m], !e.send})
		}
		b.events = append(b.events, list)
	}
	return b
}

// record is the last payload of a size that a rank had recorded between two of its events; nil where there is none.
func (c *combiner) record(rank int32, after, before, bytes int64, datatype int32) *operand {
	list := c.records[rank]
	at, _ := slices.BinarySearchFunc(list, before, func(m *operand, seq int64) int { return cmp.Compare(m.sendSeq, seq) })
	for at--; at >= 0 && list[at].sendSeq > after; at-- {
		if m := list[at]; m.bytes == bytes && (m.datatype == datatype || !c.named[m.datatype] || !c.named[datatype]) {
			return m
		}
	}
	return nil
}

// recorded is the first one.
func (c *combiner) recorded(rank int32, after, before, bytes int64, datatype int32) *operand {
	list := c.records[rank]
	at, _ := slices.BinarySearchFunc(list, after+1, func(m *operand, seq int64) int { return cmp.Compare(m.sendSeq, seq) })
	if at < len(list) && list[at].sendSeq < before && list[at].bytes == bytes && list[at].datatype == datatype {
		return list[at]
	}
	return nil
}

// folded is what a rank has in the course of a reduction.
type folded struct {
	set   rankSet
	known *operand   // a payload that it had: what it sent, recorded or got as a whole
	since []*operand // what it has got since then
	first *operand   // what it sent first
	from  int8       // what known is from
	got   []*operand // all that was added
}

// shape is what a time is, by who has what in the end.
type shape struct {
	op   Operation
	root int32
}

// folding is a reduction that is being replayed.
type folding struct {
	*combiner
	g       *group
	hard    evidence
	soft    map[proof]*evidence
	equal   agreement
	regions int // how many places of its memory a rank sends from, at most
	kept    bitset
	varied  bool // payloads differ
	shape   shape
	back    bool     // what is complete is sent on to all
	without bool     // what a rank has itself is not in what it sends once it has got anything: an MPI_Exscan
	others  evidence // of results that have only what came
	whole   evidence // of results that have a rank's own too, of the same ranks
	between bool     // some of these ranks do not have all
}

// proof is what a comparison rests on beyond the messages of a time.
type proof struct {
	what int8
	cell cell
}

// What a comparison rests on.
const (
	onMessages int8 = iota // nothing else
	onRegions              // that two places in memory hold the same
	onRecord               // a record of what a rank keeps
	onResult               // a message with what comes out
)

// reduction looks for operations in which payloads of one size are combined.
func (c *combiner) reduction(g *group, list []*once) *combined {
	if b := c.folds(g, list, false); b != nil {
		return b
	}
	return c.folds(g, list, true)
}

func (c *combiner) newFolding(g *group, without bool) *folding {
	return &folding{combiner: c, g: g, hard: newEvidence(), soft: map[proof]*evidence{}, kept: newBitset(len(g.ranks)), regions: 1,
		without: without, others: newEvidence(), whole: newEvidence()}
}

// folds is a reduction; without says what a rank adds its own to.
func (c *combiner) folds(g *group, list []*once, without bool) *combined {
	bytes := list[0].messages[0].bytes
	f := c.newFolding(g, without)
	b := &combined{group: g}
	var roots []int32
	for j, o := range list {
		s, ok := f.replay(o, bytes)
		if !ok || j > 0 && s.op != f.shape.op {
			return nil
		}
		f.shape = s
		roots = append(roots, s.root)
	}
	b.op = f.shape.op
	if !f.conclude(b, list, roots) {
		return nil
	}
	for r, rank := range g.ranks {
		if f.kept.has(r) {
			b.kept = append(b.kept, rank)
		}
	}
	for k, o := range list {
		b.instances = append(b.instances, combinedInstance{messages: o.messages, root: roots[k], bytes: bytes * int64(f.regions)})
	}
	return b
}

// replay carries the sets of ranks that have contributed, which must not meet again but in what is complete.
func (f *folding) replay(o *once, bytes int64) (shape, bool) {
	n := len(f.g.ranks)
	for _, m := range o.messages {
		if m.bytes != bytes {
			return shape{}, false
		}
		f.varied = f.varied || m.hash != o.messages[0].hash
	}
	if o.reach(false) < n-1 {
		return shape{}, false
	}
	ranks, room := make([]folded, n), f.newSetRoom()
	for r := range ranks {
		ranks[r].set = newRankSet(n, room)
		ranks[r].set.add(r)
	}
	carried := make(map[*operand]rankSet, len(o.messages))
	same := map[string]*sentBy{}
	buffers := make([]map[int64]bool, n)
	full := 0
	for r := range ranks {
		m := f.record(f.g.ranks[r], o.after[r], o.events[r][0].seq(), bytes, o.messages[0].datatype)
		if m != nil {
			ranks[r].known, ranks[r].from = m, onRecord
		}
	}
	ok := o.walk(func(r int, e operandEvent) bool {
		at := &ranks[r]
		if e.send {
			carried[e.m] = at.set.clone()
			f.sent(at, e.m, r)
			if f.equals(same, at, e.m, r); buffers[r] == nil {
				buffers[r] = map[int64]bool{}
			}
			buffers[r][e.m.buffer] = true
			return !room.over()
		}
		got := carried[e.m]
		switch {
		case f.without && len(at.got) == 0:
			at.set = got.clone()
			at.known, at.since, at.from = e.m, nil, onMessages
			at.got = append(at.got, e.m)
		case at.set.apartFrom(&got):
			at.set.join(&got, nil)
			at.since, at.got = append(at.since, e.m), append(at.got, e.m)
		case got.contains(&at.set):
			at.set = got.clone()
			at.known, at.since, at.from = e.m, nil, onMessages
			f.back = true
		default:
			return false
		}
		return !room.over()
	})
	f.noRoom(room, o)
	if !ok || f.hard.broken || f.hard.ops == 0 && (f.equal.seen == 0 || f.equal.differ > 0) {
		return shape{}, false
	}
	for r := range ranks {
		if ranks[r].set.len() == n {
			full++
		}
		f.regions = max(f.regions, len(buffers[r]))
		f.result(&ranks[r], o, r, bytes)
		f.resultWithout(&ranks[r], o, r, bytes)
	}
	if f.without {
		return shape{Exscan, schema.NullInt32}, excludes(ranks)
	}
	return f.shapeOf(ranks, full, len(o.messages))
}

// sent compares what a rank sends with what it should have.
func (f *folding) sent(at *folded, m *operand, r int) {
	switch {
	case at.known == nil:
		if at.first == nil && len(at.since) > 0 {
			f.kept.add(r)
		}
	default:
		to := &f.hard
		switch {
		case at.from != onMessages:
			to = f.softly(proof{what: at.from})
		case at.known.buffer != m.buffer && at.known.src == m.src:
			to = f.softly(proof{what: onRegions})
		}
		f.compare(to, m, append([]*operand{at.known}, at.since...))
	}
	if at.first == nil {
		at.first = m
	}
	at.known, at.since, at.from = m, nil, onMessages
}

func (f *folding) softly(p proof) *evidence {
	e := f.soft[p]
	if e == nil {
		n := newEvidence()
		e = &n
		f.soft[p] = e
	}
	return e
}

// sentBy is a message with a set, and what its sender sent first.
type sentBy struct{ m, first *operand }

// equals compares what different ranks send when the same ranks have contributed to it.
func (f *folding) equals(same map[string]*sentBy, at *folded, m *operand, r int) {
	if at.set.len() < 2 {
		return
	}
	key := at.set.key()
	old := same[key]
	if old == nil {
		same[key] = &sentBy{m, at.first}
		return
	}
	if old.m.src == m.src {
		return
	}
	f.equal.seen++
	switch {
	case old.m.hash != m.hash:
		f.equal.differ++
	default:
		if old.m.hash != old.first.hash {
			f.equal.changed[0]++
		}
		if m.hash != at.first.hash {
			f.equal.changed[1]++
		}
	}
}

// agreement counts payloads that must be equal because the same ranks contributed to them.
type agreement struct {
	seen, differ int64
	changed      [2]int64 // of those that are equal, where that is not what the one, or the other, sent first
}

// strong says whether only a common operation explains that what two ranks send is equal.
func (a *agreement) strong() bool {
	return a.differ == 0 && a.changed[0] > 0 && a.changed[1] > 0 && a.changed[0]+a.changed[1] >= 4
}

// result compares what a rank ends with, with what it sends or records next from the same place.
func (f *folding) result(at *folded, o *once, r int, bytes int64) {
	if at.known == nil || len(at.since) == 0 {
		return
	}
	events := o.events[r]
	last := events[len(events)-1].seq()
	list := f.sends[f.g.ranks[r]]
	k, _ := slices.BinarySearchFunc(list, last+1, func(m *operand, seq int64) int { return cmp.Compare(m.sendSeq, seq) })
	for ; k < len(list) && list[k].sendSeq < o.before[r]; k++ {
		m := list[k]
		if m.buffer == schema.NullInt64 || m.buffer != at.known.buffer {
			continue
		}
		if m.bytes == bytes && m.datatype == at.known.datatype {
			f.compare(f.softly(proof{onResult, cell{m.comm, m.datatype, m.tag, m.sendSite, m.bytes}}), m, append([]*operand{at.known}, at.since...))
		}
		return
	}
	if m := f.recorded(f.g.ranks[r], last, o.before[r], bytes, at.known.datatype); m != nil {
		f.compare(f.softly(proof{what: onResult}), m, append([]*operand{at.known}, at.since...))
	}
}

// resultWithout compares what a rank records in the end with what came to it, without its own and with it.
func (f *folding) resultWithout(at *folded, o *once, r int, bytes int64) {
	if len(at.got) == 0 {
		return
	}
	events := o.events[r]
	if m := f.recorded(f.g.ranks[r], events[len(events)-1].seq(), o.before[r], bytes, at.got[0].datatype); m != nil {
		f.compare(&f.others, m, at.got)
		if at.known != nil {
			f.compare(&f.whole, m, append([]*operand{at.known}, at.since...))
			f.between = f.between || at.set.len() < len(f.g.ranks)
		}
	}
}

// agreesWith says whether there were comparisons, and none of them excludes all of the operations.
func (e *evidence) agreesWith(ops reductions) bool { return e.seen > 0 && !e.broken && e.ops&ops != 0 }

// scans says whether what ranks record tells a scan without their own part from one with it, and what else it may be where they do not.
func (f *folding) scans(b *combined, ops reductions, chain bool) {
	without, with := f.others.agreesWith(ops), f.whole.agreesWith(ops)
	switch {
	case without && !with:
		b.op = Exscan
		b.checks += f.others.seen
	case without || !with:
		b.others = append(b.others, Exscan)
	}
	if chain && !(f.between && (without || with)) {
		b.others = append(b.others, Reduce)
	}
}

// excludes says whether each rank has in the end what those before it contributed.
func excludes(ranks []folded) bool {
	for r := range ranks {
		if r == 0 && len(ranks[0].got) > 0 || r > 0 && (len(ranks[r].got) == 0 || !ranks[r].set.first(r)) {
			return false
		}
	}
	return len(ranks) > 2
}

// shapeOf says what a time is.
func (f *folding) shapeOf(ranks []folded, full, messages int) (shape, bool) {
	n := len(ranks)
	if full == n {
		return shape{Allreduce, schema.NullInt32}, true
	}
	if full != 1 || n < 3 {
		return shape{}, false
	}
	root := slices.IndexFunc(ranks, func(r folded) bool { return r.set.len() == n })
	order := make([]int, n) // of a scan: the ranks by how many have contributed
	for r := range ranks {
		order[ranks[r].set.len()-1] = r
	}
	nested := true
	for k := 0; k < n && nested; k++ {
		nested = ranks[order[k]].set.len() == k+1 && (k == 0 || ranks[order[k]].set.contains(&ranks[order[k-1]].set))
	}
	switch {
	case nested && slices.IsSorted(order):
		return shape{Scan, schema.NullInt32}, true
	case messages == n-1:
		return shape{Reduce, f.g.ranks[root]}, true
	}
	return shape{}, false
}

// conclude says what the comparisons are worth, and whether there is an operation.
func (f *folding) conclude(b *combined, list []*once, roots []int32) bool {
	n := len(f.g.ranks)
	all := f.hard
	b.evidence = map[cell]bool{}
	loose := false
	for p, e := range f.soft {
		if e.seen == 0 {
			continue
		}
		if all.ops&e.ops == 0 || !e.strong(all.ops&e.ops) && p.what != onRecord {
			loose = loose || p.what == onRegions
			continue
		}
		all.add(e)
		if p.what == onRegions {
			f.regions = 1
		}
		if p.what == onResult && p.cell != (cell{}) {
			b.evidence[p.cell] = true
		}
	}
	if !loose && len(f.soft) == 0 || b.op != Allreduce {
		f.regions = 1
	}
	b.checks = all.seen + f.equal.seen - f.equal.differ
	if b.op == Scan {
		f.scans(b, all.ops, len(list[0].messages) == n-1)
	}
	switch {
	case f.hard.broken:
		return false
	case all.strong(all.ops):
		b.certainty, b.reductions = Verified, all.names()
		return true
	case f.equal.strong() && n >= 3 && b.op == Allreduce:
		b.certainty = Verified // by an operation of its own
		return true
	}
	b.certainty = Inferred
	if all.seen > 0 && all.ops == 0 || f.equal.differ > 0 || loose || !f.varied || n < 3 || f.kinds[f.g.cells[0].cell.datatype].class == opaque || !f.alone(f.g) {
		return false
	}
	switch b.op {
	case Allreduce:
		messages := len(list[0].messages) // a token that goes round twice comes back to the first once or twice
		return f.back && messages >= 2*(n-1) && messages <= 2*n
	case Reduce:
		for k, o := range list {
			if !tree(o, roots[k]) {
				return false
			}
		}
		return (slices.Min(roots) == slices.Max(roots) || inTurn(roots)) && f.complete(f.g)
	}
	return false
}

// tree says whether the way to a root is neither direct for all nor a chain.
func tree(o *once, root int32) bool {
	direct, children := true, map[int32]int{}
	for _, m := range o.messages {
		direct = direct && m.dst == root
		children[m.dst]++
	}
	chain := true
	for _, k := range children {
		chain = chain && k == 1
	}
	return !direct && !chain
}
