package neighbours

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/detect/rankset"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// halo is a repeated exchange between neighbours. In each instance, every rank sends to its neighbours before it
// receives anything from them.
type halo struct {
	comm      int32
	ways      []ledger.Way // sorted, distinct
	ranks     []int32
	cells     map[ledger.Cell]bool
	instances [][]*ledger.Operand

	// The first repeats instances are repeated times more, at the rows of the repetition.
	repeats int
	times   int64
	of      *repetition
}

// Input is the input of Find.
type Input struct {
	MinRanks int
	Comms    []run.Comm
	Lines    map[int32]int32 // of call sites, as in Run
	Room     int64           // the number of messages that may be read completely
	// Whole reads all messages of the wanted cells.
	Whole func(want map[ledger.Cell]bool) (*ledger.Sample, error)
	// Outline reads the rows of all messages of the wanted streams; ok is false if they take more than most bytes. nil
	// reads all messages that are in an exchange, whether they repeat or not.
	Outline func(want map[ledger.Stream]*ledger.Outline, most int64) (ok bool, err error)
}

// Find searches for exchanges between neighbours and adds them to the ledger. It looks only at who sends to whom and
// when, because each neighbour gets different data. Messages of instances found before are skipped. The exchanges are
// found among the first messages of each cell, then all their messages are read and divided into instances. beyond is
// the number of messages of exchanges that exceed in.Room.
func Find(in *Input, l *ledger.Ledger, first *ledger.Sample) (beyond int64, err error) {
	taken := ledger.NewOwners(l.Messages, l.Found) // a message is also taken if one of its pieces is
	s := search{minRanks: in.MinRanks, comms: in.Comms, lines: in.Lines, taken: taken, head: first}
	found := s.find(first)
	cells := func(visit func(map[ledger.Cell]bool)) {
		for _, h := range found {
			visit(h.cells)
		}
	}
	if want, whole, _ := wanted(first, cells); !whole && in.Outline != nil {
		if halos, err := s.repeated(in, l, want); err != nil || halos != nil {
			record(l, halos)
			return 0, err
		}
	}
	all, beyond, err := in.complete(first, cells)
	if err != nil || beyond > 0 {
		return beyond, err
	}
	if all != first {
		found = s.find(all)
	}
	record(l, found)
	return 0, nil
}

// record adds exchanges to the ledger.
func record(l *ledger.Ledger, found []*halo) {
	total := 0
	for _, h := range found {
		for _, in := range h.instances {
			total += len(in)
		}
	}
	l.Messages = slices.Grow(l.Messages, total)
	for _, h := range found {
		h.record(l)
	}
}

// search searches a sample for exchanges between neighbours.
type search struct {
	*index
	minRanks int
	comms    []run.Comm
	lines    map[int32]int32 // of call sites
	taken    *ledger.Owners
	head     *ledger.Sample // the first messages of each cell
}

// haloScope is a key by which messages are grouped before they are cut into instances. With endsAtRepeat, a rank's
// part of an instance also ends before it sends to, or receives from, the same peer once more with the same call and
// tag.
type haloScope struct {
	key          func(m *ledger.Operand) [2]int32
	endsAtRepeat bool
}

// haloScopes are tried in this order: receive sites, send sites, receive sites with repeats, and whole communicators.
var haloScopes = []haloScope{
	{func(m *ledger.Operand) [2]int32 { return [2]int32{m.Comm, m.RecvSite} }, true},
	{func(m *ledger.Operand) [2]int32 { return [2]int32{m.Comm, m.SendSite} }, true},
	{func(m *ledger.Operand) [2]int32 { return [2]int32{m.Comm, m.RecvSite} }, false},
	{func(m *ledger.Operand) [2]int32 { return [2]int32{m.Comm, schema.NullInt32} }, false},
}

// find returns the exchanges among the messages of a sample that belong to no other operation.
func (x *search) find(s *ledger.Sample) (out []*halo) {
	x.index = newIndex(s.Untaken(x.taken))
	used, known := make([]bool, len(x.list)), map[string]bool{}
	for _, scope := range haloScopes {
		var parts []*halo
		for _, p := range x.divide(used, scope.key) {
			parts = append(parts, mergeDisjoint(x.classify(x.bundles(&p, scope.endsAtRepeat)))...)
		}
		var pairs []*halo
		parts = slices.DeleteFunc(x.mergeSimultaneous(x.mutual(parts)), func(h *halo) bool {
			key := fmt.Sprint(h.comm, h.ways, h.sendPlaces())
			if x.isHalo(h, known[key]) {
				known[key] = true
				return false
			}
			if x.isPairwise(h) {
				pairs = append(pairs, h)
			}
			return true
		})
		parts = append(parts, x.axes(pairs, slices.Concat(out, parts))...)
		for _, h := range parts {
			for _, in := range h.instances {
				for _, m := range in {
					used[m.At] = true
				}
			}
		}
		out = append(out, parts...)
	}
	return out
}

// bundles cuts messages into sets in which each rank takes part once: it sends, and all its receives complete after
// its sends. again is haloScope.endsAtRepeat.
func (x *index) bundles(p *part, again bool) [][]*ledger.Operand {
	sends, recvs := make([]int32, len(x.list)), make([]int32, len(x.list)) // by message
	seen := make([]int32, 2*len(x.lanes))                                  // the last bundle, from 1
	var rankOf []int32                                                     // by bundle
	got := false
	for _, e := range p.events {
		rank, m := x.rank(e), e.message()
		id := x.lane[m]<<1 | int32(e&1)
		if n := len(rankOf); n == 0 || rankOf[n-1] != rank || e.sends() && got || again && seen[id] == int32(n) {
			rankOf = append(rankOf, rank)
			got = false
		}
		seen[id] = int32(len(rankOf))
		got = got || !e.sends()
		if b := int32(len(rankOf) - 1); e.sends() {
			sends[m] = b
		} else {
			recvs[m] = b
		}
	}
	connected := rankset.NewNumberedGroups(len(rankOf))
	for _, m := range p.list {
		connected.Join(sends[m.At], recvs[m.At])
	}
	last, twice := make([]int32, len(rankOf)), make([]bool, len(rankOf)) // by group: its last rank, plus 1
	for b, rank := range rankOf {
		c := connected.Root(int32(b))
		twice[c] = twice[c] || last[c] == rank+1
		last[c] = rank + 1
	}
	return gather(p.list, len(rankOf), func(m *ledger.Operand) int32 {
		if c := connected.Root(sends[m.At]); !twice[c] {
			return c
		}
		return ledger.None
	})
}

// gather divides messages by the number that of gives them, less than most, in order of first occurrence. It leaves
// out those without one.
func gather(list []*ledger.Operand, most int, of func(*ledger.Operand) int32) (out [][]*ledger.Operand) {
	count, total := make([]int32, most), 0
	for _, m := range list {
		if n := of(m); n != ledger.None {
			count[n]++
			total++
		}
	}
	at, all, end := make([]int32, most), make([]*ledger.Operand, total), int32(0) // at: its place in out, plus 1
	for _, m := range list {
		n := of(m)
		if n == ledger.None {
			continue
		}
		if at[n] == 0 {
			begin := end
			end += count[n]
			out = append(out, all[begin:begin:end])
			at[n] = int32(len(out))
		}
		out[at[n]-1] = append(out[at[n]-1], m)
	}
	return out
}

// classify joins the sets whose messages have the same sources, destinations, call sites and order of tags, which may
// carry the number of the step. The instances are in the order of their ranks' calls.
func (x *index) classify(sets [][]*ledger.Operand) (out []*halo) {
	byStreams, byLines := map[string]*halo{}, map[string]*halo{} // most sets have the streams of an earlier one
	var key []byte
	for _, set := range sets {
		key = key[:0]
		for _, m := range set {
			key = binary.NativeEndian.AppendUint32(key, uint32(x.stream[m.At]))
		}
		h := byStreams[string(key)]
		if h == nil {
			lines := linesOf(set)
			like := fmt.Sprint(set[0].Comm, lines)
			if h = byLines[like]; h == nil {
				h = newHalo(set[0].Comm, lines)
				byLines[like] = h
				out = append(out, h)
			}
			for _, m := range set {
				h.cells[m.Cell()] = true
			}
			byStreams[string(key)] = h
		}
		h.instances = append(h.instances, set)
	}
	for _, h := range out {
		h.sort()
	}
	return out
}

// line is a message as classify compares it. The tag is its place among the tags of its set.
type line struct {
	ledger.Way
	site, tag int32
}

// linesOf returns the lines of messages, sorted.
func linesOf(set []*ledger.Operand) []line {
	lines, tags := make([]line, 0, len(set)), tagsOf(set)
	for _, m := range set {
		tag, _ := slices.BinarySearch(tags, m.Tag)
		lines = append(lines, line{ledger.Way{Src: m.Src, Dst: m.Dst}, m.SendSite, int32(tag)})
	}
	slices.SortFunc(lines, func(a, b line) int {
		return cmp.Or(ledger.CompareWays(a.Way, b.Way), cmp.Compare(a.site, b.site), cmp.Compare(a.tag, b.tag))
	})
	return lines
}

// newHalo returns an exchange by these lines, without instances.
func newHalo(comm int32, lines []line) *halo {
	h := &halo{comm: comm, cells: map[ledger.Cell]bool{}}
	for _, l := range lines {
		h.ways = append(h.ways, l.Way)
		h.ranks = append(h.ranks, l.Src, l.Dst)
	}
	h.ways = slices.Compact(h.ways)
	slices.Sort(h.ranks)
	h.ranks = slices.Compact(h.ranks)
	return h
}

// sort sorts the instances by the calls of the first rank.
func (h *halo) sort() {
	type begun struct {
		seq int64
		set []*ledger.Operand
	}
	order := make([]begun, len(h.instances))
	for k, in := range h.instances {
		order[k] = begun{firstRow(in, h.ranks[0]), in}
	}
	slices.SortFunc(order, func(a, b begun) int { return cmp.Compare(a.seq, b.seq) })
	for k := range order {
		h.instances[k] = order[k].set
	}
}

// tagsOf returns the tags of messages, sorted, each once.
func tagsOf(list []*ledger.Operand) (tags []int32) {
	for _, m := range list {
		tags = append(tags, m.Tag)
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

// firstRow returns the seq of a rank's first event among the messages.
func firstRow(list []*ledger.Operand, rank int32) int64 {
	first := int64(1<<63 - 1)
	for _, m := range list {
		if m.Src == rank {
			first = min(first, m.SendSeq)
		}
		if m.Dst == rank {
			first = min(first, m.DoneSeq)
		}
	}
	return first
}

// mergeDisjoint merges exchanges from the same call sites that have no rank in common, such as those within each row
// of a grid.
func mergeDisjoint(list []*halo) (out []*halo) {
	index := map[string][]*halo{}
	for _, h := range list {
		key := fmt.Sprint(h.comm, len(h.instances), h.sendPlaces())
		joined := false
		for _, other := range index[key] {
			if joined = !slices.ContainsFunc(h.ranks,
				func(r int32) bool { _, has := slices.BinarySearch(other.ranks, r); return has }); joined {
				other.join(h)
				break
			}
		}
		if !joined {
			index[key] = append(index[key], h)
			out = append(out, h)
		}
	}
	return out
}

// sendPlaces returns the call sites of the sends, and the tags of the first instance, sorted.
func (h *halo) sendPlaces() []int32 {
	places := tagsOf(h.instances[0])
	for c := range h.cells {
		places = append(places, c.Site)
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// mergeSimultaneous merges exchanges in whose instances every rank sends the messages of both before it receives any:
// each direction has a call site of its own.
func (x *index) mergeSimultaneous(list []*halo) (out []*halo) {
	for _, h := range list {
		at := slices.IndexFunc(out, func(o *halo) bool {
			return o.comm == h.comm && len(o.instances) == len(h.instances) && x.atOnce(o, h)
		})
		if at < 0 {
			out = append(out, h)
		} else {
			out[at].join(h)
		}
	}
	return out
}

// sendsFirst reports whether two sets of messages share a rank, and every rank sends all of both before it receives
// any of them.
func (x *index) sendsFirst(a, b []*ledger.Operand) bool {
	p := &x.perRank
	p.clear()
	for _, m := range a {
		p.note(m.Src, 0)
		p.note(m.Dst, 0)
	}
	if !slices.ContainsFunc(b, func(m *ledger.Operand) bool { return p.has(m.Src) || p.has(m.Dst) }) {
		return false
	}
	p.clear()
	for _, set := range [2][]*ledger.Operand{a, b} {
		for _, m := range set {
			p.note(m.Src, m.SendSeq)
		}
	}
	for _, set := range [2][]*ledger.Operand{a, b} {
		for _, m := range set {
			if p.has(m.Dst) && p.last[m.Dst] > m.DoneSeq {
				return false
			}
		}
	}
	return true
}

// join adds the instances of another exchange to those of this one, in order.
func (h *halo) join(other *halo) {
	h.ways, h.ranks = append(h.ways, other.ways...), append(h.ranks, other.ranks...)
	slices.SortFunc(h.ways, ledger.CompareWays)
	slices.Sort(h.ranks)
	h.ways, h.ranks = slices.Compact(h.ways), slices.Compact(h.ranks)
	for c := range other.cells {
		h.cells[c] = true
	}
	for k := range h.instances {
		h.instances[k] = append(h.instances[k], other.instances[k]...)
	}
}

// mutual returns the exchanges in which neighbours send to each other. It joins two exchanges in opposite directions,
// such as shifts along an axis of a grid. Where a rank sends to several others, all must send both ways before they
// receive: ranks that share points send their parts to the points' owners, which add them up and send the sums back.
func (x *index) mutual(list []*halo) (out []*halo) {
	reversed := func(ways []ledger.Way) []ledger.Way {
		back := make([]ledger.Way, len(ways))
		for i, w := range ways {
			back[i] = ledger.Way{Src: w.Dst, Dst: w.Src}
		}
		slices.SortFunc(back, ledger.CompareWays)
		return back
	}
	var shifts []*halo
	for _, h := range list {
		back := reversed(h.ways)
		if slices.Equal(h.ways, back) {
			out = append(out, h)
			continue
		}
		at := slices.IndexFunc(shifts, func(s *halo) bool {
			return s.comm == h.comm && len(s.instances) == len(h.instances) && slices.Equal(s.ways, back) &&
				x.takeTurns(s, h) && (isShift(h.ways) || x.atOnce(s, h))
		})
		if at < 0 {
			shifts = append(shifts, h)
			continue
		}
		shifts[at].join(h)
		out = append(out, shifts[at])
		shifts = slices.Delete(shifts, at, at+1)
	}
	return out
}

// isShift reports whether each rank sends to at most one other and receives from at most one. Ways are sorted.
func isShift(ways []ledger.Way) bool {
	to := make([]int32, 0, len(ways))
	for k, w := range ways {
		if k > 0 && ways[k-1].Src == w.Src {
			return false
		}
		to = append(to, w.Dst)
	}
	slices.Sort(to)
	return len(slices.Compact(to)) == len(ways)
}

// atOnce reports whether every rank sends the messages of both exchanges before it receives any, in all instances.
func (x *index) atOnce(a, b *halo) bool {
	for k := range a.instances {
		if !x.sendsFirst(a.instances[k], b.instances[k]) {
			return false
		}
	}
	return true
}

// direction is in which of two opposite shifts a lane sends.
type direction int8

const (
	elsewhere direction = iota
	goes
	comesBack
)

// takeTurns reports whether two opposite shifts alternate among all messages that the same calls send the same ways.
// The steps of a pipeline do not: they repeat in one direction before they come back.
func (x *index) takeTurns(there, back *halo) bool {
	x.direct(there, back)
	p := &x.perRank
	for k := range there.instances {
		p.clear()
		for _, set := range [2][]*ledger.Operand{there.instances[k], back.instances[k]} {
			for _, m := range set {
				p.note(m.Src, int64(x.turn[m.At]))
			}
		}
		for _, rank := range p.ranks {
			turns, first, last := x.turns[rank], p.first[rank], p.last[rank]
			begins, ends := turns[first], turns[last]
			if last-first != int64(p.count[rank])-1 || begins != ends && (first > 0 && turns[first-1] == begins ||
				last < int64(len(turns))-1 && turns[last+1] == ends) {
				return false
			}
		}
	}
	return true
}

// direct lists the directions in which the ranks of two opposite shifts send, at the calls of both, and the turns of
// these messages.
func (x *index) direct(there, back *halo) {
	if x.turns == nil {
		x.turns, x.turn = make([][]direction, len(x.first)-1), make([]int32, len(x.list))
	}
	sites := map[int32]bool{}
	for _, h := range [2]*halo{there, back} {
		for c := range h.cells {
			sites[c.Site] = true
		}
	}
	of := make([]direction, len(x.lanes))
	for k, l := range x.lanes {
		if l.comm != there.comm || !sites[l.site] {
			continue
		}
		if _, comes := slices.BinarySearchFunc(back.ways, l.Way, ledger.CompareWays); comes {
			of[k] = comesBack
		} else if _, is := slices.BinarySearchFunc(there.ways, l.Way, ledger.CompareWays); is {
			of[k] = goes
		}
	}
	for _, rank := range there.ranks {
		turns := x.turns[rank][:0]
		for _, e := range x.events[x.first[rank]:x.first[rank+1]] {
			if d := of[x.lane[e.message()]]; e.sends() && d != elsewhere {
				x.turn[e.message()] = int32(len(turns))
				turns = append(turns, d)
			}
		}
		x.turns[rank] = turns
	}
}

// MinInstances is the number of times that an exchange must be repeated.
const MinInstances = 2

// isHalo reports whether an exchange is one between neighbours: instances follow each other, some rank has two or
// more neighbours, not all ranks are neighbours of all, and no rank is the hub of a star. known means that an earlier
// scope has found the same exchange; then one more instance suffices.
func (x *search) isHalo(h *halo, known bool) bool {
	n := len(h.ranks)
	if n < max(x.minRanks, 3) || len(h.instances) < MinInstances && !known || len(h.ways) == n*(n-1) ||
		len(h.ways) <= n ||
		n > 3 && h.hasHub() || n == 3 && x.isMaster(h) {
		return false
	}
	return x.areInTurn(h)
}

// areInTurn reports whether each rank ends its part of an instance before it begins that of the next.
func (x *index) areInTurn(h *halo) bool {
	p, last := &x.perRank, make([]int64, len(x.first)-1) // by rank: its last event
	for r := range last {
		last[r] = -1
	}
	for _, in := range h.instances {
		p.clear()
		for _, m := range in {
			p.note(m.Src, m.SendSeq)
			p.note(m.Dst, m.DoneSeq)
		}
		for _, rank := range p.ranks {
			if p.first[rank] <= last[rank] {
				return false
			}
			last[rank] = p.last[rank]
		}
	}
	return true
}

// hasHub reports whether one rank takes part in all messages, like a master with its workers.
func (h *halo) hasHub() bool {
	return slices.ContainsFunc([]int32{h.ways[0].Src, h.ways[0].Dst}, func(hub int32) bool {
		return !slices.ContainsFunc(h.ways, func(w ledger.Way) bool { return w.Src != hub && w.Dst != hub })
	})
}

// isMaster reports whether the middle one of three ranks is a master with further workers: at the same call sites it
// exchanges with other ranks, too, and they exchange only with it.
func (x *search) isMaster(h *halo) bool {
	sites := map[int32]bool{}
	for c := range h.cells {
		sites[c.Site] = true
	}
	var hub int32
	for _, r := range h.ranks {
		if !slices.ContainsFunc(h.ways, func(w ledger.Way) bool { return w.Src != r && w.Dst != r }) {
			hub = r
		}
	}
	more := false
	for _, of := range x.head.Order {
		if !sites[of.Cell.Site] || of.Cell.Comm != h.comm {
			continue
		}
		for w := range of.Ways {
			if w.Src != hub && w.Dst != hub {
				return false
			}
			more = more || !slices.Contains(h.ranks, w.Src) || !slices.Contains(h.ranks, w.Dst)
		}
	}
	return more
}

// record adds the instances of an exchange to the ledger.
func (h *halo) record(l *ledger.Ledger) {
	of := &ledger.Proof{Basis: ledger.ByStructure}
	sizes, types, twice := map[int64]bool{}, map[int32]bool{}, false
	for c := range h.cells {
		sizes[c.Bytes], types[c.Datatype] = true, true
	}
	for _, in := range h.instances {
		twice = twice || len(in) > len(h.ways)
	}
	op := ledger.NeighborAlltoall
	switch {
	case len(types) > 1:
		op = ledger.NeighborAlltoallw
	case len(sizes) > 1 && h.sizesDiffer() || twice:
		op = ledger.NeighborAlltoallv
	}
	sent := make([]int64, h.ranks[len(h.ranks)-1]+1) // by rank
	for k, in := range h.instances {
		i := &ledger.Instance{Op: op, Root: schema.NullInt32, Ranks: h.ranks, Segments: 1, Proof: of,
			Messages: make([]int32, 0, len(in))}
		if k < h.repeats {
			i.More = h.times
			for _, m := range in {
				i.Rows = append(i.Rows, h.of.rowsOf(m))
			}
		}
		for _, m := range in {
			sent[m.Src] = 0
		}
		for _, m := range in {
			sent[m.Src] += m.Bytes
			i.Bytes = max(i.Bytes, sent[m.Src])
			i.Messages = append(i.Messages, int32(len(l.Messages)))
			m.Message.Taken = true
			l.Messages = append(l.Messages, m.Message)
		}
		l.Found = append(l.Found, i)
	}
}

// sizesDiffer reports whether an instance has messages of several sizes.
func (h *halo) sizesDiffer() bool {
	return slices.ContainsFunc(h.instances, func(in []*ledger.Operand) bool {
		return slices.ContainsFunc(in, func(m *ledger.Operand) bool { return m.Bytes != in[0].Bytes })
	})
}
