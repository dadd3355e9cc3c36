package detect

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/commq/commq/schema"
)

// operand is a payload that may be put together with others, or taken apart: of a message, or one that commq_send_to_self recorded
// (then src is dst).
type operand struct {
	message
	sum   int64
	asked bool // of combiner.of, which said this
	taker *instance

	sent  bool  // in once.walk and once.reach
	heard int32 // in once.reach
}

// cell is what messages have in common that one call sends for one purpose.
type cell struct {
	comm, datatype, tag, site int32
	bytes                     int64
}

func cellOf(b *schema.Messages, i int) cell {
	return cell{b.Comm[i], b.SendDatatype[i], b.Tag[i], b.SendCallsite[i], b.Bytes[i]}
}

// Bounds of what is looked at first: of each cell the first messages of each way, which must show what is done before all are read.
const (
	mostCells   = 1 << 14
	mostSampled = 1 << 20
	leastPerWay = 64
)

// sampled is a cell's messages.
type sampled struct {
	cell cell
	ways map[way]*sampledWay
}

// sampledWay are the messages of a cell from one rank to another: how many there are, and the first of them.
type sampledWay struct {
	count int64
	list  []operand
}

// sample is what is known of all messages, in bounded memory.
type sample struct {
	cells  map[cell]*sampled
	order  []*sampled
	perWay int
	total  int
	over   bool          // all messages were seen
	want   map[cell]bool // those that are kept whole; nil: the first of all
}

func newSample(ranks int32) *sample {
	return &sample{cells: map[cell]*sampled{}, perWay: max(leastPerWay, 4*int(ranks))}
}

// way is where messages of a cell from one rank to another are kept; nil: they are not.
func (s *sample) way(c cell, of way) *sampledWay {
	if c.bytes == 0 || s.want != nil && !s.want[c] {
		return nil
	}
	in := s.cells[c]
	if in == nil {
		if len(s.cells) >= mostCells {
			return nil
		}
		in = &sampled{cell: c, ways: map[way]*sampledWay{}}
		s.cells[c] = in
		s.order = append(s.order, in)
	}
	w := in.ways[of]
	if w == nil {
		if s.total >= mostSampled && s.want == nil {
			return nil
		}
		w = &sampledWay{}
		in.ways[of] = w
	}
	return w
}

// wants says whether the next message of a way is kept.
func (s *sample) wants(w *sampledWay) bool {
	return s.want != nil || len(w.list) < s.perWay && s.total < mostSampled
}

// add counts row i, and keeps it if it is one of the first.
func (s *sample) add(w *sampledWay, b *schema.Messages, i int) {
	w.count++
	if s.wants(w) {
		s.total++
		w.list = append(w.list, operand{message: row(b, i), sum: b.PayloadSum[i]})
	}
}

// whole says whether all messages of the cell are there.
func (c *sampled) whole() bool {
	for _, w := range c.ways {
		if w.count != int64(len(w.list)) {
			return false
		}
	}
	return true
}

// group is messages that one operation may consist of: those of some cells on connected ranks.
type group struct {
	cells  []*sampled
	ranks  []int32 // world ranks, sorted
	ways   []way
	lists  [][]*operand // by way, in the order of the sends
	count  []int64      // by way, of those that there are
	whole  bool
	dense  bool // more ways than one operation has that puts payloads together, with one root
	all    bool // it has messages of allgathers over all of its ranks
	routed bool // it has messages of alltoalls over less ranks, which may be rounds of one over all
}

// combiner looks for operations that put payloads together or take them apart.
type combiner struct {
	*detector
	sample  *sample
	crc     *checksum
	kinds   map[int32]kind
	records map[int32][]*operand // by rank, in its order: what it has by commq_send_to_self, or sends to itself
	sends   map[int32][]*operand // by rank, in its order: all that it sends, for what comes out
	takers  *takers
}

// combines finds operations with hashes that are put together, taken apart and combined.
func (d *detector) combines() error {
	c := &combiner{detector: d, sample: d.sample, crc: newChecksum(max(d.run.HashBits, 32)), kinds: kindsOf(d.run.Datatypes), takers: newTakers(d.messages, d.found)}
	whole := true
	want := map[cell]bool{}
	room := max(d.mostReplayed(), mostSampled)
	best := slices.DeleteFunc(c.look(c.sample), func(b *combined) bool {
		cells := slices.Clone(b.group.cells)
		for s := range b.evidence {
			cells = append(cells, c.sample.cells[s])
		}
		count := int64(0)
		for _, s := range cells {
			if !want[s.cell] {
				count += s.count()
			}
		}
		if count > room {
			d.result.LeftOut += count
			d.result.NoRoom += count
			return true
		}
		room -= count
		for _, s := range cells {
			want[s.cell] = true
			whole = whole && s.whole()
		}
		return false
	})
	if !whole {
		all, err := d.wanted(want)
		if err != nil {
			return err
		}
		c.sample = all
		best = c.look(all)
	}
	for _, b := range best {
		if b.op == ReduceScatterBlock || b.op == ReduceScatter {
			c.whole(b)
		}
		c.keep(b)
		b.group, b.instances = nil, nil // what was found has them now
	}
	return nil
}

// wanted reads the messages of some cells whole.
func (d *detector) wanted(want map[cell]bool) (*sample, error) {
	all := newSample(d.run.Ranks)
	all.want = want
	err := d.rows(streamColumns, func(b *schema.Messages, list []int32, rest schema.Rest) error {
		for _, i := range list {
			if w := all.way(cellOf(b, int(i)), way{b.Src[i], b.Dst[i]}); w != nil {
				if err := rest(int(i), b.Len()); err != nil {
					return err
				}
				all.add(w, b, int(i))
			}
		}
		return nil
	})
	return all, err
}

// look finds what fits best.
func (c *combiner) look(s *sample) []*combined {
	c.index(s)
	var all []*combined
	for _, scope := range cellScopes {
		for _, g := range c.groups(s, scope) {
			if found := c.try(g); found != nil {
				all = append(all, found)
			}
		}
	}
	for _, scope := range c.functionScopes() {
		for _, g := range c.groups(s, scope) {
			if len(sitesOf(g)) < 2 {
				continue // it was looked at by call site
			}
			if found := c.try(g); found != nil {
				all = append(all, found)
			}
		}
	}
	all = append(all, c.pairs(s, all)...)
	all = append(all, c.routes(s)...)
	slices.SortStableFunc(all, func(a, b *combined) int {
		return cmp.Or(cmp.Compare(a.certainty/Inferred, b.certainty/Inferred), cmp.Compare(len(b.group.ranks), len(a.group.ranks)),
			cmp.Compare(a.certainty, b.certainty), cmp.Compare(b.size(), a.size()))
	})
	used := map[*operand]bool{}
	var best []*combined
	for _, b := range all {
		if b.overlaps(used) {
			continue
		}
		for _, list := range b.group.lists {
			for _, m := range list {
				used[m] = true
			}
		}
		best = append(best, b)
	}
	return append(best, c.alike(s, best, used)...)
}

func (b *combined) overlaps(used map[*operand]bool) bool {
	for _, list := range b.group.lists {
		if len(list) > 0 && used[list[0]] {
			return true
		}
	}
	return false
}

func (b *combined) size() int { return len(b.group.ways) }

// index sorts what ranks send, and what they record, into their orders.
func (c *combiner) index(s *sample) {
	c.sends, c.records = map[int32][]*operand{}, map[int32][]*operand{}
	for i := range c.run.Selves {
		r := &c.run.Selves[i]
		c.records[r.Rank] = append(c.records[r.Rank], &operand{message: message{src: r.Rank, dst: r.Rank, comm: schema.NullInt32, datatype: r.Datatype,
			bytes: r.Bytes, hash: r.Hash, head: r.Head, sendSeq: r.Seq, postSeq: r.Seq, doneSeq: r.Seq, buffer: r.Buffer, dstBuffer: r.Buffer, sendSite: schema.NullInt32, recvSite: schema.NullInt32},
			sum: r.Sum})
	}
	for _, of := range s.order {
		for w, list := range of.ways {
			for i := range list.list {
				m := &list.list[i]
				c.sends[w.src] = append(c.sends[w.src], m)
				if w.src == w.dst {
					c.records[w.src] = append(c.records[w.src], m)
				}
			}
		}
	}
	for _, lists := range []map[int32][]*operand{c.sends, c.records} {
		for _, list := range lists {
			slices.SortFunc(list, func(a, b *operand) int { return cmp.Compare(a.sendSeq, b.sendSeq) })
		}
	}
}

// cellScopes are what cells are looked at together by.
var cellScopes = []func(cell) (cell, bool){
	func(c cell) (cell, bool) { c.tag = 0; return c, c.site != schema.NullInt32 },
	func(c cell) (cell, bool) { c.site = 0; return c, true },
	func(c cell) (cell, bool) { c.site, c.tag = 0, 0; return c, true },
	func(c cell) (cell, bool) { c.tag, c.bytes = 0, anySize; return c, c.site != schema.NullInt32 },
	func(c cell) (cell, bool) { c.site, c.bytes = 0, anySize; return c, true },
	func(c cell) (cell, bool) { c.site, c.tag, c.bytes = 0, 0, anySize; return c, true },
}

// functionScopes are what cells are looked at together by whose calls stand in one function: what goes up and what comes down a tree, or what ranks
// that are left over send before and get behind.
func (c *combiner) functionScopes() []func(cell) (cell, bool) {
	in := func(k cell) (cell, bool) {
		f, known := c.run.Functions[k.site]
		k.site, k.tag = f, 0
		return k, known
	}
	return []func(cell) (cell, bool){in, func(k cell) (cell, bool) { k.bytes = anySize; return in(k) }}
}

// sitesOf are the call sites that send a group's messages.
func sitesOf(g *group) map[int32]bool {
	out := map[int32]bool{}
	for _, of := range g.cells {
		out[of.cell.site] = true
	}
	return out
}

// mostWays bounds how many ways there may be per rank: an operation of which each rank has to do with more others is none of these.
func mostWays(ranks int) int {
	log := 0
	for n := 1; n < ranks; n *= 2 {
		log++
	}
	return ranks * (log + 2)
}

// groups are the cells of a scope on connected ranks.
func (c *combiner) groups(s *sample, scope func(cell) (cell, bool)) (out []*group) {
	for _, class := range byKey(s.order, func(_ int, of *sampled) (cell, bool) { return scope(of.cell) }) {
		out = append(out, c.components(class)...)
	}
	return out
}

// components are the messages of cells on connected ranks, without those that an operation has taken that spreads nothing.
func (c *combiner) components(class []*sampled) (out []*group) {
	connected := circles{}
	for _, of := range class {
		for w := range of.ways {
			if w.src != w.dst {
				connected.join(w.src, w.dst)
			}
		}
	}
	groups := map[int32]*group{}
	at := map[way]int{}
	for _, of := range class {
		seen := map[int32]bool{}
		for _, w := range sortedWays(of.ways) {
			if w.src == w.dst {
				continue
			}
			list := of.ways[w]
			root := connected.of(w.src)
			g := groups[root]
			if g == nil {
				g = &group{whole: true}
				groups[root] = g
				out = append(out, g)
			}
			if !seen[root] {
				seen[root] = true
				g.cells = append(g.cells, of)
			}
			k, ok := at[w]
			if !ok {
				k = len(g.ways)
				at[w] = k
				g.ways, g.lists, g.count = append(g.ways, w), append(g.lists, nil), append(g.count, 0)
				g.ranks = append(g.ranks, w.src, w.dst)
			}
			g.count[k] += list.count
			g.whole = g.whole && list.count == int64(len(list.list))
			for i := range list.list {
				g.lists[k] = append(g.lists[k], &list.list[i])
			}
		}
	}
	for _, g := range out {
		slices.Sort(g.ranks)
		g.ranks = slices.Compact(g.ranks)
		for _, list := range g.lists {
			slices.SortFunc(list, func(a, b *operand) int { return cmp.Compare(a.sendSeq, b.sendSeq) })
		}
	}
	for _, g := range out {
		g.dense = len(g.ways) > mostWays(len(g.ranks))
	}
	return slices.DeleteFunc(out, c.elsewhere)
}

// elsewhere says whether a group has messages of operations other than broadcasts and allgathers. Allgathers of less ranks may be part of one
// that doubles its blocks; those of all may be of pairs of which the largest wins, each time another rank's.
func (c *combiner) elsewhere(g *group) bool {
	for _, list := range g.lists {
		for _, m := range list {
			i := c.of(m)
			if i == nil || i.op == Bcast {
				continue
			}
			if i.op == Alltoall && len(i.ranks) < len(g.ranks) {
				g.routed = true
				continue
			}
			if i.op != Allgather && i.op != Allgatherv {
				return true
			}
			g.all = g.all || len(i.ranks) >= len(g.ranks)
		}
	}
	return false
}

// of is the instance that a message is part of; nil where there is none.
func (c *combiner) of(m *operand) *instance {
	if !m.asked {
		m.asked, m.taker = true, c.takers.of(m.src, m.sendSeq)
	}
	return m.taker
}

// noRoom counts what could not be looked at because its sets take too much.
func (c *combiner) noRoom(room *setRoom, o *once) {
	if !room.over() {
		return
	}
	for _, m := range o.messages {
		if !m.beyond {
			m.beyond = true
			c.result.LeftOut++
			c.result.NoRoom++
		}
	}
}

func sortedWays(ways map[way]*sampledWay) []way {
	out := make([]way, 0, len(ways))
	for w := range ways {
		out = append(out, w)
	}
	slices.SortFunc(out, compareWays)
	return out
}

func compareWays(a, b way) int {
	return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst))
}

// combined is an operation that a group does again and again.
type combined struct {
	group      *group
	op         Operation
	certainty  Certainty
	reductions []string
	checks     int64
	instances  []combinedInstance
	kept       []int32
	others     []Operation   // that fit as well
	evidence   map[cell]bool // of messages that carry results
}

// combinedInstance is one time.
type combinedInstance struct {
	messages  []*operand
	root      int32 // world rank
	bytes     int64
	rankBytes []int64
}

// pairs joins what goes up to a root with what comes down from it: a reduction whose result all get.
func (c *combiner) pairs(s *sample, found []*combined) (out []*combined) {
	type kind struct {
		ranks          string
		comm, datatype int32
		bytes, count   int64
	}
	ups, downs := map[kind][]*group{}, map[kind][]*group{}
	var order []kind
	for k, scope := range cellScopes[:2] {
		for _, g := range c.groups(s, scope) {
			if g.dense || len(g.ways) != len(g.ranks)-1 || slices.Min(g.count) != slices.Max(g.count) {
				continue
			}
			if k == 1 && len(g.cells) == 1 && g.cells[0].cell.site != schema.NullInt32 {
				continue // the first scope has had it
			}
			of := g.cells[0].cell
			id := kind{fmt.Sprint(g.ranks), of.comm, of.datatype, of.bytes, g.count[0]}
			if converges(g, false) {
				if ups[id] == nil {
					order = append(order, id)
				}
				ups[id] = append(ups[id], g)
			}
			if converges(g, true) && (len(g.ranks) > 2 || !converges(g, false)) { // a chain is both
				downs[id] = append(downs[id], g)
			}
		}
	}
	for _, id := range order {
		for _, up := range ups[id] {
			for _, down := range downs[id] {
				if g := join(up, down); g != nil {
					if b := c.try(g); b != nil && b.op == Allreduce {
						out = append(out, b)
					}
				}
			}
		}
	}
	return out
}

// converges says whether each rank but one sends to just one (or, the other way round, receives from just one).
func converges(g *group, reverse bool) bool {
	out := map[int32]bool{}
	for _, w := range g.ways {
		r := w.src
		if reverse {
			r = w.dst
		}
		if out[r] {
			return false
		}
		out[r] = true
	}
	return true
}

// join is the messages of both groups; nil where they share a way.
func join(a, b *group) *group {
	for _, w := range a.ways {
		if slices.Contains(b.ways, w) {
			return nil
		}
	}
	return &group{cells: slices.Concat(a.cells, b.cells), ranks: a.ranks, ways: slices.Concat(a.ways, b.ways), lists: slices.Concat(a.lists, b.lists),
		count: slices.Concat(a.count, b.count), whole: a.whole && b.whole}
}

// mostAlike is the largest payload, in bytes, that an exchange between two ranks which have a reduction is taken for one of too.
const mostAlike = 64

// alike are exchanges of a few numbers between two ranks that have a reduction which was verified: nothing can be compared in them,
// but they are done in the same way.
func (c *combiner) alike(s *sample, best []*combined, used map[*operand]bool) (out []*combined) {
	twos := map[string]*combined{}
	for _, b := range best {
		if b.op == Allreduce && b.certainty == Verified && len(b.group.ranks) == 2 {
			twos[fmt.Sprint(b.group.ranks, b.group.cells[0].cell.datatype)] = b
		}
	}
	if len(twos) == 0 {
		return nil
	}
	for _, g := range c.groups(s, cellScopes[0]) {
		like := twos[fmt.Sprint(g.ranks, g.cells[0].cell.datatype)]
		b := &combined{group: g, op: Allreduce, certainty: Inferred}
		if like == nil || len(g.ways) != 2 || g.cells[0].cell.bytes > mostAlike || b.overlaps(used) || slices.Min(g.count) != slices.Max(g.count) {
			continue
		}
		for k := range min(len(g.lists[0]), len(g.lists[1])) {
			x, y := g.lists[0][k], g.lists[1][k]
			if x.doneSeq < y.sendSeq || y.doneSeq < x.sendSeq { // an answer
				b = nil
				break
			}
			b.instances = append(b.instances, combinedInstance{messages: []*operand{x, y}, root: schema.NullInt32, bytes: x.bytes})
		}
		if b != nil {
			out = append(out, b)
		}
	}
	return out
}

// keep makes instances of what was found, in the place of broadcasts that it consists of. Where a broadcast has other messages too, only
// what was verified takes its place.
func (c *combiner) keep(b *combined) {
	gone := map[*instance]bool{}
	covered := map[*instance]int{}
	for k := range b.instances {
		for _, m := range b.instances[k].messages {
			if old := c.of(m); old != nil {
				covered[old]++
			}
		}
	}
	for old, n := range covered {
		if (n < len(old.messages) || old.op != Bcast && b.op != Allreduce && b.op != Alltoall) && b.certainty != Verified {
			return
		}
	}
	for k := range b.instances {
		in := &b.instances[k]
		i := &instance{op: b.op, root: in.root, ranks: b.group.ranks, bytes: in.bytes, rankBytes: in.rankBytes, segments: 1, of: b}
		if k == 0 {
			i.checks = b.checks
		}
		first := true
		for _, m := range in.messages {
			if old := c.of(m); old != nil {
				gone[old] = true
			}
			if m.src == in.root && first {
				i.first, i.buffer, first = m.sendSeq, m.buffer, false
			}
			m.message.taken = true
			i.messages = append(i.messages, int32(len(c.messages)))
			c.messages = append(c.messages, m.message)
		}
		c.found = append(c.found, i)
	}
	c.found = slices.DeleteFunc(c.found, func(i *instance) bool { return gone[i] })
}
