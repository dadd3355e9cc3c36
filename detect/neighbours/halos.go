package neighbours

import (
	"cmp"
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
}

// Input is the input of Find.
type Input struct {
	MinRanks int
	Comms    []run.Comm
	Room     int64 // the number of messages that may be read completely
	// Whole reads all messages of the wanted cells.
	Whole func(want map[ledger.Cell]bool) (*ledger.Sample, error)
}

// Find searches for exchanges between neighbours and adds them to the ledger. It looks only at who sends to whom and
// when, because each neighbour gets different data. Messages of instances found before are skipped. The exchanges are
// found among the first messages of each cell, then all their messages are read and divided into instances. beyond is
// the number of messages of exchanges that exceed in.Room.
func Find(in *Input, l *ledger.Ledger, first *ledger.Sample) (beyond int64, err error) {
	taken := ledger.NewOwners(l.Messages, l.Found) // a message is also taken if one of its pieces is
	s := search{minRanks: in.MinRanks, taken: taken, first: first}
	found := s.find(first)
	all, beyond, err := in.complete(first, func(visit func(map[ledger.Cell]bool)) {
		for _, h := range found {
			visit(h.cells)
		}
	})
	if err != nil || beyond > 0 {
		return beyond, err
	}
	if all != first {
		found = s.find(all)
	}
	for _, h := range found {
		h.record(l)
	}
	return 0, nil
}

// search searches a sample for exchanges between neighbours.
type search struct {
	minRanks int
	taken    *ledger.Owners
	first    *ledger.Sample // the first messages of each cell
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
	list, known := s.Untaken(x.taken), map[string]bool{}
	bySite := map[int32][]*ledger.Operand{}
	for _, m := range list {
		bySite[m.SendSite] = append(bySite[m.SendSite], m)
	}
	for _, scope := range haloScopes {
		byScope := map[[2]int32][]*ledger.Operand{}
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
			parts = append(parts, mergeDisjoint(classify(bundles(byScope[k], scope.endsAtRepeat)))...)
		}
		parts = slices.DeleteFunc(mergeSimultaneous(mutual(parts, bySite)), func(h *halo) bool {
			key := fmt.Sprint(h.comm, h.ways, h.sendPlaces())
			if !x.isHalo(h, known[key]) {
				return true
			}
			known[key] = true
			return false
		})
		if len(parts) == 0 {
			continue
		}
		used := map[*ledger.Operand]bool{}
		for _, h := range parts {
			for _, in := range h.instances {
				for _, m := range in {
					used[m] = true
				}
			}
		}
		list = slices.DeleteFunc(list, func(m *ledger.Operand) bool { return used[m] })
		out = append(out, parts...)
	}
	return out
}

// bundles cuts messages into sets in which each rank takes part once: it sends, and all its receives complete after
// its sends. again is haloScope.endsAtRepeat.
func bundles(list []*ledger.Operand, again bool) [][]*ledger.Operand {
	byRank := map[int32][]ledger.Event{}
	for _, m := range list {
		byRank[m.Src] = append(byRank[m.Src], ledger.Event{M: m, Send: true})
		byRank[m.Dst] = append(byRank[m.Dst], ledger.Event{M: m, Send: false})
	}
	type end struct {
		tag, site, peer int32
		send            bool
	}
	connected := rankset.Groups{}
	sends, recvs := map[*ledger.Operand]int32{}, map[*ledger.Operand]int32{}
	var rankOf []int32 // by bundle
	for rank, events := range byRank {
		slices.SortStableFunc(events, ledger.CompareEvents)
		seen, got := map[end]bool{}, false
		for k, e := range events {
			id := end{e.M.Tag, e.M.SendSite, e.M.Src, false}
			if e.Send {
				id.peer, id.send = e.M.Dst, true
			}
			if k == 0 || e.Send && got || again && seen[id] {
				rankOf = append(rankOf, rank)
				got = false
				clear(seen)
			}
			seen[id] = true
			got = got || !e.Send
			if b := int32(len(rankOf) - 1); e.Send {
				sends[e.M] = b
			} else {
				recvs[e.M] = b
			}
		}
	}
	for _, m := range list {
		connected.Join(sends[m], recvs[m])
	}
	ranks, twice := map[int32]map[int32]bool{}, map[int32]bool{}
	for b, rank := range rankOf {
		c := connected.Root(int32(b))
		if ranks[c] == nil {
			ranks[c] = map[int32]bool{}
		}
		twice[c] = twice[c] || ranks[c][rank]
		ranks[c][rank] = true
	}
	return ledger.GroupBy(list, func(_ int, m *ledger.Operand) (int32, bool) {
		c := connected.Root(sends[m])
		return c, !twice[c]
	})
}

// classify joins the sets whose messages have the same sources, destinations, call sites and order of tags, which may
// carry the number of the step. The instances are in the order of their ranks' calls.
func classify(sets [][]*ledger.Operand) (out []*halo) {
	index := map[string]*halo{}
	type line struct {
		ledger.Way
		site, tag int32
	}
	for _, set := range sets {
		lines, tags := make([]line, 0, len(set)), tagsOf(set)
		for _, m := range set {
			tag, _ := slices.BinarySearch(tags, m.Tag)
			lines = append(lines, line{ledger.Way{Src: m.Src, Dst: m.Dst}, m.SendSite, int32(tag)})
		}
		slices.SortFunc(lines, func(a, b line) int {
			return cmp.Or(ledger.CompareWays(a.Way, b.Way), cmp.Compare(a.site, b.site), cmp.Compare(a.tag, b.tag))
		})
		key := fmt.Sprint(set[0].Comm, lines)
		h := index[key]
		if h == nil {
			h = &halo{comm: set[0].Comm, cells: map[ledger.Cell]bool{}}
			for _, l := range lines {
				h.ways = append(h.ways, l.Way)
				h.ranks = append(h.ranks, l.Src, l.Dst)
			}
			h.ways = slices.Compact(h.ways)
			slices.Sort(h.ranks)
			h.ranks = slices.Compact(h.ranks)
			index[key] = h
			out = append(out, h)
		}
		h.instances = append(h.instances, set)
		for _, m := range set {
			h.cells[ledger.Cell{Comm: m.Comm, Datatype: m.Datatype, Tag: m.Tag, Site: m.SendSite, Bytes: m.Bytes}] = true
		}
	}
	for _, h := range out {
		rank := h.ranks[0]
		slices.SortFunc(h.instances, func(a, b []*ledger.Operand) int { return cmp.Compare(firstRow(a, rank), firstRow(b, rank)) })
	}
	return out
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
func mergeSimultaneous(list []*halo) (out []*halo) {
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

// sendsFirst reports whether two sets of messages share a rank, and every rank sends all of both before it receives
// any of them.
func sendsFirst(a, b []*ledger.Operand) bool {
	sent, got := map[int32]int64{}, map[int32]int64{}
	for _, m := range slices.Concat(a, b) {
		sent[m.Src] = max(sent[m.Src], m.SendSeq)
		if old, ok := got[m.Dst]; !ok || m.DoneSeq < old {
			got[m.Dst] = m.DoneSeq
		}
	}
	for rank, first := range got {
		if last, sends := sent[rank]; sends && last > first {
			return false
		}
	}
	return slices.ContainsFunc(a, func(m *ledger.Operand) bool {
		return slices.ContainsFunc(b, func(o *ledger.Operand) bool {
			return m.Src == o.Src || m.Src == o.Dst ||
				m.Dst == o.Src || m.Dst == o.Dst
		})
	})
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
// such as shifts along an axis of a grid.
func mutual(list []*halo, bySite map[int32][]*ledger.Operand) (out []*halo) {
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
				takeTurns(s, h, bySite)
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

// takeTurns reports whether two opposite shifts alternate among all messages that the same calls send the same ways.
// The steps of a pipeline do not: they repeat in one direction before they come back.
func takeTurns(there, back *halo, bySite map[int32][]*ledger.Operand) bool {
	sites, forth := map[int32]bool{}, map[ledger.Way]bool{}
	for _, h := range [2]*halo{there, back} {
		for c := range h.cells {
			sites[c.Site] = true
		}
		for _, w := range h.ways {
			forth[w] = h == there && !forth[w]
		}
	}
	sends := map[int32][]*ledger.Operand{}
	for site := range sites {
		for _, m := range bySite[site] {
			if _, same := forth[ledger.Way{Src: m.Src, Dst: m.Dst}]; same && m.Comm == there.comm {
				sends[m.Src] = append(sends[m.Src], m)
			}
		}
	}
	at := map[*ledger.Operand]int{}
	for _, of := range sends {
		slices.SortFunc(of, func(a, b *ledger.Operand) int { return cmp.Compare(a.SendSeq, b.SendSeq) })
		for i, m := range of {
			at[m] = i
		}
	}
	for k := range there.instances {
		first, last, count := map[int32]int{}, map[int32]int{}, map[int32]int{}
		for _, m := range slices.Concat(there.instances[k], back.instances[k]) {
			i := at[m]
			if count[m.Src] == 0 {
				first[m.Src], last[m.Src] = i, i
			}
			first[m.Src], last[m.Src] = min(first[m.Src], i), max(last[m.Src], i)
			count[m.Src]++
		}
		for rank, n := range count {
			of := sends[rank]
			is := func(i int) bool { return forth[ledger.Way{Src: of[i].Src, Dst: of[i].Dst}] }
			begins, ends := is(first[rank]), is(last[rank])
			if last[rank]-first[rank] != n-1 || begins != ends &&
				(first[rank] > 0 && is(first[rank]-1) == begins || last[rank] < len(of)-1 && is(last[rank]+1) == ends) {
				return false
			}
		}
	}
	return true
}

// rowsOf returns the seq of each rank's first and last event among the messages.
func rowsOf(list []*ledger.Operand) (first, last map[int32]int64) {
	first, last = map[int32]int64{}, map[int32]int64{}
	note := func(rank int32, seq int64) {
		if old, ok := first[rank]; !ok || seq < old {
			first[rank] = seq
		}
		last[rank] = max(last[rank], seq)
	}
	for _, m := range list {
		note(m.Src, m.SendSeq)
		note(m.Dst, m.DoneSeq)
	}
	return first, last
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
	for _, of := range x.first.Order {
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
	for _, in := range h.instances {
		twice = twice || len(in) > len(h.ways)
		for _, m := range in {
			sizes[m.Bytes], types[m.Datatype] = true, true
		}
	}
	op := ledger.NeighborAlltoall
	switch {
	case len(types) > 1:
		op = ledger.NeighborAlltoallw
	case len(sizes) > 1 && h.sizesDiffer() || twice:
		op = ledger.NeighborAlltoallv
	}
	for _, in := range h.instances {
		i := &ledger.Instance{Op: op, Root: schema.NullInt32, Ranks: h.ranks, Segments: 1, Proof: of}
		sent := map[int32]int64{}
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
