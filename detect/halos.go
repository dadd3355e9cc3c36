package detect

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/commq/commq/schema"
)

// halo is an exchange between neighbours that is done again and again: in each instance every rank sends to its neighbours what it had before
// it got anything of theirs.
type halo struct {
	comm      int32
	ways      []way // sorted, without repetition
	ranks     []int32
	cells     map[cell]bool
	instances [][]*operand
}

// halos finds exchanges between neighbours of which only who sends to whom, and when, is looked at: each neighbour gets something else.
// What something else has taken is not looked at. They are looked for among the first messages, and cut from all.
func (d *detector) halos() error {
	if !d.options.Neighbors {
		return nil
	}
	taken := newTakers(d.messages, d.found) // by its pieces a message is taken too
	found := d.halosIn(d.sample, taken)
	want, whole, total := map[cell]bool{}, true, int64(0)
	for _, h := range found {
		for c := range h.cells {
			if of := d.sample.cells[c]; !want[c] {
				want[c] = true
				whole = whole && of.whole()
				total += of.count()
			}
		}
	}
	switch {
	case total > max(d.mostReplayed(), mostSampled):
		d.result.LeftOut += total
		d.result.NoRoom += total
		return nil
	case !whole:
		all, err := d.wanted(want)
		if err != nil {
			return err
		}
		found = d.halosIn(all, taken)
	}
	for _, h := range found {
		d.keepHalo(h)
	}
	return nil
}

// count is the number of messages of a cell.
func (c *sampled) count() (n int64) {
	for _, w := range c.ways {
		n += w.count
	}
	return n
}

// haloScope is what messages are looked at together by. Where again says so, a rank's part of an instance ends before it sends by a
// call to a rank, or receives so from one, what it has in that instance.
type haloScope struct {
	key   func(m *operand) [2]int32
	again bool
}

// haloScopes are by the calls that complete receives, by those that send, and by communicators alone.
var haloScopes = []haloScope{
	{func(m *operand) [2]int32 { return [2]int32{m.comm, m.recvSite} }, true},
	{func(m *operand) [2]int32 { return [2]int32{m.comm, m.sendSite} }, true},
	{func(m *operand) [2]int32 { return [2]int32{m.comm, m.recvSite} }, false},
	{func(m *operand) [2]int32 { return [2]int32{m.comm, schema.NullInt32} }, false},
}

// halosIn are the exchanges between neighbours among the messages of a sample that nothing has taken.
func (d *detector) halosIn(s *sample, taken *takers) (out []*halo) {
	list, known := s.untaken(taken), map[string]bool{}
	bySite := map[int32][]*operand{}
	for _, m := range list {
		bySite[m.sendSite] = append(bySite[m.sendSite], m)
	}
	for _, scope := range haloScopes {
		byScope := map[[2]int32][]*operand{}
		var order [][2]int32
		for _, m := range list {
			k := scope.key(m)
			if byScope[k] == nil {
				order = append(order, k)
			}
			byScope[k] = append(byScope[k], m)
		}
		var parts []*halo
		for _, k := range order {
			parts = append(parts, sideBySide(classes(bundles(byScope[k], scope.again)))...)
		}
		parts = slices.DeleteFunc(atOnce(mutual(parts, bySite)), func(h *halo) bool {
			key := fmt.Sprint(h.comm, h.ways, h.places())
			if !d.isHalo(h, known[key]) {
				return true
			}
			known[key] = true
			return false
		})
		if len(parts) == 0 {
			continue
		}
		used := map[*operand]bool{}
		for _, h := range parts {
			for _, in := range h.instances {
				for _, m := range in {
					used[m] = true
				}
			}
		}
		list = slices.DeleteFunc(list, func(m *operand) bool { return used[m] })
		out = append(out, parts...)
	}
	return out
}

// untaken are the messages of a sample, in the order of their sources, as far as all messages of both their ranks are in it.
func (s *sample) untaken(taken *takers) (list []*operand) {
	end := map[int32]int64{} // by rank: the row up to which all is there
	limit := func(rank int32, seq int64) {
		if old, ok := end[rank]; !ok || seq < old {
			end[rank] = seq
		}
	}
	for _, of := range s.order {
		for w, messages := range of.ways {
			if n := len(messages.list); n > 0 && messages.count > int64(n) {
				limit(w.src, messages.list[n-1].sendSeq)
				limit(w.dst, messages.list[n-1].doneSeq)
			}
		}
	}
	within := func(rank int32, seq int64) bool {
		limit, ok := end[rank]
		return !ok || seq <= limit
	}
	for _, of := range s.order {
		for _, w := range sortedWays(of.ways) {
			messages := of.ways[w]
			for i := range messages.list {
				m := &messages.list[i]
				if m.src != m.dst && taken.of(m.src, m.sendSeq) == nil && within(m.src, m.sendSeq) && within(m.dst, m.doneSeq) {
					list = append(list, m)
				}
			}
		}
	}
	return list
}

// bundles cuts messages into sets in which each rank takes part once: with sends, and receives that are complete behind all of them.
func bundles(list []*operand, again bool) [][]*operand {
	byRank := map[int32][]operandEvent{}
	for _, m := range list {
		byRank[m.src] = append(byRank[m.src], operandEvent{m, true})
		byRank[m.dst] = append(byRank[m.dst], operandEvent{m, false})
	}
	type end struct {
		tag, site, peer int32
		send            bool
	}
	connected := circles{}
	sends, recvs := map[*operand]int32{}, map[*operand]int32{}
	var rankOf []int32 // by bundle
	for rank, events := range byRank {
		slices.SortStableFunc(events, compareEvents)
		seen, got := map[end]bool{}, false
		for k, e := range events {
			id := end{e.m.tag, e.m.sendSite, e.m.src, false}
			if e.send {
				id.peer, id.send = e.m.dst, true
			}
			if k == 0 || e.send && got || again && seen[id] {
				rankOf = append(rankOf, rank)
				got = false
				clear(seen)
			}
			seen[id] = true
			got = got || !e.send
			if b := int32(len(rankOf) - 1); e.send {
				sends[e.m] = b
			} else {
				recvs[e.m] = b
			}
		}
	}
	for _, m := range list {
		connected.join(sends[m], recvs[m])
	}
	ranks, twice := map[int32]map[int32]bool{}, map[int32]bool{}
	for b, rank := range rankOf {
		c := connected.of(int32(b))
		if ranks[c] == nil {
			ranks[c] = map[int32]bool{}
		}
		twice[c] = twice[c] || ranks[c][rank]
		ranks[c][rank] = true
	}
	return byKey(list, func(_ int, m *operand) (int32, bool) {
		c := connected.of(sends[m])
		return c, !twice[c]
	})
}

// compareEvents is a rank's order, in which what a call sends is before what it receives.
func compareEvents(a, b operandEvent) int {
	if d := cmp.Compare(a.seq(), b.seq()); d != 0 || a.send == b.send {
		return d
	}
	if a.send {
		return -1
	}
	return 1
}

// classes puts together the sets of messages that go the same ways from the same call sites, in the order of their ranks.
func classes(sets [][]*operand) (out []*halo) {
	index := map[string]*halo{}
	type line struct {
		way
		site, tag int32
	}
	for _, set := range sets {
		lines := make([]line, 0, len(set))
		for _, m := range set {
			lines = append(lines, line{way{m.src, m.dst}, m.sendSite, m.tag})
		}
		slices.SortFunc(lines, func(a, b line) int {
			return cmp.Or(compareWays(a.way, b.way), cmp.Compare(a.site, b.site), cmp.Compare(a.tag, b.tag))
		})
		key := fmt.Sprint(set[0].comm, lines)
		h := index[key]
		if h == nil {
			h = &halo{comm: set[0].comm, cells: map[cell]bool{}}
			for _, l := range lines {
				h.ways = append(h.ways, l.way)
				h.ranks = append(h.ranks, l.src, l.dst)
			}
			h.ways = slices.Compact(h.ways)
			slices.Sort(h.ranks)
			h.ranks = slices.Compact(h.ranks)
			index[key] = h
			out = append(out, h)
		}
		h.instances = append(h.instances, set)
		for _, m := range set {
			h.cells[cell{m.comm, m.datatype, m.tag, m.sendSite, m.bytes}] = true
		}
	}
	for _, h := range out {
		rank := h.ranks[0]
		slices.SortFunc(h.instances, func(a, b []*operand) int { return cmp.Compare(begin(a, rank), begin(b, rank)) })
	}
	return out
}

// begin is a rank's first row of messages.
func begin(list []*operand, rank int32) int64 {
	first := int64(1<<63 - 1)
	for _, m := range list {
		if m.src == rank {
			first = min(first, m.sendSeq)
		}
		if m.dst == rank {
			first = min(first, m.doneSeq)
		}
	}
	return first
}

// sideBySide makes one exchange of those of different ranks from the same call sites: rows of a grid, each by itself.
func sideBySide(list []*halo) (out []*halo) {
	index := map[string][]*halo{}
	for _, h := range list {
		key := fmt.Sprint(h.comm, len(h.instances), h.places())
		joined := false
		for _, other := range index[key] {
			if joined = !slices.ContainsFunc(h.ranks, func(r int32) bool { _, has := slices.BinarySearch(other.ranks, r); return has }); joined {
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

// places are the call sites and tags that send.
func (h *halo) places() []int32 {
	var places []int32
	for c := range h.cells {
		places = append(places, c.site, c.tag)
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// atOnce makes one exchange of those in which, together, every rank sends all before it has got anything, time after time: one call site for
// each direction.
func atOnce(list []*halo) (out []*halo) {
	for _, h := range list {
		at := slices.IndexFunc(out, func(o *halo) bool {
			if o.comm != h.comm || len(o.instances) != len(h.instances) {
				return false
			}
			for k := range h.instances {
				if !sendsFirst(o.instances[k], h.instances[k]) {
					return false
				}
			}
			return true
		})
		if at < 0 {
			out = append(out, h)
		} else {
			out[at].join(h)
		}
	}
	return out
}

// sendsFirst says whether some rank takes part in both sets of messages, and every rank sends all of both before it has got any of them.
func sendsFirst(a, b []*operand) bool {
	sent, got := map[int32]int64{}, map[int32]int64{}
	for _, m := range slices.Concat(a, b) {
		sent[m.src] = max(sent[m.src], m.sendSeq)
		if old, ok := got[m.dst]; !ok || m.doneSeq < old {
			got[m.dst] = m.doneSeq
		}
	}
	for rank, first := range got {
		if last, sends := sent[rank]; sends && last > first {
			return false
		}
	}
	return slices.ContainsFunc(a, func(m *operand) bool {
		return slices.ContainsFunc(b, func(o *operand) bool { return m.src == o.src || m.src == o.dst || m.dst == o.src || m.dst == o.dst })
	})
}

// join adds the k-th instance of another exchange to the k-th of this one.
func (h *halo) join(other *halo) {
	h.ways, h.ranks = append(h.ways, other.ways...), append(h.ranks, other.ranks...)
	slices.SortFunc(h.ways, compareWays)
	slices.Sort(h.ranks)
	h.ways, h.ranks = slices.Compact(h.ways), slices.Compact(h.ranks)
	for c := range other.cells {
		h.cells[c] = true
	}
	for k := range h.instances {
		h.instances[k] = append(h.instances[k], other.instances[k]...)
	}
}

// mutual are the exchanges in which each rank is a neighbour of its neighbours, and those of two that go the same ways there and back: shifts
// along an axis of a grid.
func mutual(list []*halo, bySite map[int32][]*operand) (out []*halo) {
	reversed := func(ways []way) []way {
		back := make([]way, len(ways))
		for i, w := range ways {
			back[i] = way{w.dst, w.src}
		}
		slices.SortFunc(back, compareWays)
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
			return s.comm == h.comm && len(s.instances) == len(h.instances) && slices.Equal(s.ways, back) && turns(s, h, bySite)
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

// turns says whether shifts there and back take turns, among all that the same calls send the same ways: steps of a pipeline go on and on before
// they come back.
func turns(there, back *halo, bySite map[int32][]*operand) bool {
	sites, forth := map[int32]bool{}, map[way]bool{}
	for _, h := range [2]*halo{there, back} {
		for c := range h.cells {
			sites[c.site] = true
		}
		for _, w := range h.ways {
			forth[w] = h == there && !forth[w]
		}
	}
	sends := map[int32][]*operand{}
	for site := range sites {
		for _, m := range bySite[site] {
			if _, same := forth[way{m.src, m.dst}]; same && m.comm == there.comm {
				sends[m.src] = append(sends[m.src], m)
			}
		}
	}
	at := map[*operand]int{}
	for _, of := range sends {
		slices.SortFunc(of, func(a, b *operand) int { return cmp.Compare(a.sendSeq, b.sendSeq) })
		for i, m := range of {
			at[m] = i
		}
	}
	for k := range there.instances {
		first, last, count := map[int32]int{}, map[int32]int{}, map[int32]int{}
		for _, m := range slices.Concat(there.instances[k], back.instances[k]) {
			i := at[m]
			if count[m.src] == 0 {
				first[m.src], last[m.src] = i, i
			}
			first[m.src], last[m.src] = min(first[m.src], i), max(last[m.src], i)
			count[m.src]++
		}
		for rank, n := range count {
			of := sends[rank]
			is := func(i int) bool { return forth[way{of[i].src, of[i].dst}] }
			begins, ends := is(first[rank]), is(last[rank])
			if last[rank]-first[rank] != n-1 || begins != ends &&
				(first[rank] > 0 && is(first[rank]-1) == begins || last[rank] < len(of)-1 && is(last[rank]+1) == ends) {
				return false
			}
		}
	}
	return true
}

// rowsOf are each rank's first and last rows of messages.
func rowsOf(list []*operand) (first, last map[int32]int64) {
	first, last = map[int32]int64{}, map[int32]int64{}
	note := func(rank int32, seq int64) {
		if old, ok := first[rank]; !ok || seq < old {
			first[rank] = seq
		}
		last[rank] = max(last[rank], seq)
	}
	for _, m := range list {
		note(m.src, m.sendSeq)
		note(m.dst, m.doneSeq)
	}
	return first, last
}

// leastHalos is how often an exchange between neighbours must be done to be one.
const leastHalos = 2

// isHalo says whether ranks exchange with neighbours of their own, again and again, one time after the other: somebody has two or more,
// not everybody is everybody's, and no rank that of all others, who have no other. known says that a scope before has found some instances, where these go on among messages of other purposes.
func (d *detector) isHalo(h *halo, known bool) bool {
	n := len(h.ranks)
	if n < max(d.options.MinRanks, 3) || len(h.instances) < leastHalos && !known || len(h.ways) == n*(n-1) || len(h.ways) <= n ||
		n > 3 && h.hub() || n == 3 && d.deals(h) {
		return false
	}
	last := map[int32]int64{}
	for _, in := range h.instances {
		first, end := rowsOf(in)
		for rank, seq := range first {
			if before, ok := last[rank]; ok && seq <= before {
				return false
			}
			last[rank] = end[rank]
		}
	}
	return true
}

// hub says whether one rank has to do with all others, and they only with it: a master with its workers.
func (h *halo) hub() bool {
	return slices.ContainsFunc([]int32{h.ways[0].src, h.ways[0].dst}, func(hub int32) bool {
		return !slices.ContainsFunc(h.ways, func(w way) bool { return w.src != hub && w.dst != hub })
	})
}

// deals says whether the one of three ranks that has to do with both others is a master who has more workers: at the same call sites it exchanges
// with other ranks too, and they with none but it. In a line of three it is in the middle.
func (d *detector) deals(h *halo) bool {
	sites := map[int32]bool{}
	for c := range h.cells {
		sites[c.site] = true
	}
	var hub int32
	for _, r := range h.ranks {
		if !slices.ContainsFunc(h.ways, func(w way) bool { return w.src != r && w.dst != r }) {
			hub = r
		}
	}
	more := false
	for _, of := range d.sample.order {
		if !sites[of.cell.site] || of.cell.comm != h.comm {
			continue
		}
		for w := range of.ways {
			if w.src != hub && w.dst != hub {
				return false
			}
			more = more || !slices.Contains(h.ranks, w.src) || !slices.Contains(h.ranks, w.dst)
		}
	}
	return more
}

// keepHalo makes instances of an exchange between neighbours.
func (d *detector) keepHalo(h *halo) {
	of := &combined{certainty: Inferred}
	sizes, types, twice := map[int64]bool{}, map[int32]bool{}, false
	for _, in := range h.instances {
		twice = twice || len(in) > len(h.ways)
		for _, m := range in {
			sizes[m.bytes], types[m.datatype] = true, true
		}
	}
	op := NeighborAlltoall
	switch {
	case len(types) > 1:
		op = NeighborAlltoallw
	case len(sizes) > 1 && d.differ(h) || twice:
		op = NeighborAlltoallv
	}
	for _, in := range h.instances {
		i := &instance{op: op, root: schema.NullInt32, ranks: h.ranks, segments: 1, of: of}
		sent := map[int32]int64{}
		for _, m := range in {
			sent[m.src] += m.bytes
			i.bytes = max(i.bytes, sent[m.src])
			i.messages = append(i.messages, int32(len(d.messages)))
			m.message.taken = true
			d.messages = append(d.messages, m.message)
		}
		d.found = append(d.found, i)
	}
}

// differ says whether the messages of an instance are of several sizes.
func (d *detector) differ(h *halo) bool {
	return slices.ContainsFunc(h.instances, func(in []*operand) bool {
		return slices.ContainsFunc(in, func(m *operand) bool { return m.bytes != in[0].bytes })
	})
}
