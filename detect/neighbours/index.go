package neighbours

import (
	"cmp"
	"slices"

	"github.com/commq/commq/detect/ledger"
)

// index numbers the messages of a search, their streams and lanes, and sorts the events of each rank once, so that all
// stages of the search keep what they learn in slices. A message's At is its number.
type index struct {
	list   []*ledger.Operand
	lane   []int32 // by message: the number of its lane
	stream []int32 // by message: the number of its stream; the messages of a stream are of one lane and cell
	lanes  []lane
	events []event // by rank, each rank's in order
	first  []int32 // by rank: its first event; one more at the end

	perRank perRank
	turns   [][]direction // of takeTurns, by rank
	turn    []int32       // of takeTurns, by message
}

// lane is a call site's messages with one tag from one rank to another.
type lane struct {
	ledger.Way
	comm, site, tag int32
}

// event is one end of a message: twice the number of the message, plus one for the receive.
type event int32

func (e event) message() int32 { return int32(e >> 1) }
func (e event) sends() bool    { return e&1 == 0 }

// newIndex numbers the messages of a list.
func newIndex(list []*ledger.Operand) *index {
	x := &index{list: list, lane: make([]int32, len(list)), stream: make([]int32, len(list))}
	x.number()
	most := int32(-1)
	for _, m := range list {
		most = max(most, m.Src, m.Dst)
	}
	x.perRank.grow(int(most) + 1)
	x.sortEvents(int(most) + 1)
	return x
}

// number sets the numbers of messages, streams and lanes.
func (x *index) number() {
	type stream struct {
		ledger.Cell
		ledger.Way
	}
	streams, lanes := map[stream]int32{}, map[lane]int32{}
	var last stream
	var at, in int32
	for k, m := range x.list {
		m.At = int32(k)
		s := stream{m.Cell(), ledger.Way{Src: m.Src, Dst: m.Dst}}
		if k == 0 || s != last {
			at, last = numberOf(streams, s), s
			l := lane{s.Way, m.Comm, m.SendSite, m.Tag}
			if in = numberOf(lanes, l); int(in) == len(x.lanes) {
				x.lanes = append(x.lanes, l)
			}
		}
		x.stream[k], x.lane[k] = at, in
	}
}

// numberOf numbers keys from 0, in the order in which they are first asked for.
func numberOf[K comparable](numbers map[K]int32, key K) int32 {
	n, known := numbers[key]
	if !known {
		n = int32(len(numbers))
		numbers[key] = n
	}
	return n
}

// sortEvents sorts the events of each rank: what a call sends comes before what it receives.
func (x *index) sortEvents(ranks int) {
	x.first = make([]int32, ranks+1)
	for _, m := range x.list {
		x.first[m.Src+1]++
		x.first[m.Dst+1]++
	}
	for r := range ranks {
		x.first[r+1] += x.first[r]
	}
	type timed struct {
		seq int64
		event
	}
	all, next := make([]timed, 2*len(x.list)), slices.Clone(x.first)
	for k, m := range x.list {
		all[next[m.Src]] = timed{m.SendSeq, event(2 * k)}
		next[m.Src]++
		all[next[m.Dst]] = timed{m.DoneSeq, event(2*k + 1)}
		next[m.Dst]++
	}
	for r := range ranks {
		slices.SortFunc(all[x.first[r]:x.first[r+1]], func(a, b timed) int {
			return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.event&1, b.event&1), cmp.Compare(a.event, b.event))
		})
	}
	x.events = make([]event, len(all))
	for k := range all {
		x.events[k] = all[k].event
	}
}

// eventsOf returns the events of a rank.
func (x *index) eventsOf(rank int32) []event { return x.events[x.first[rank]:x.first[rank+1]] }

// rank returns the rank of an event.
func (x *index) rank(e event) int32 {
	if m := x.list[e.message()]; e.sends() {
		return m.Src
	} else {
		return m.Dst
	}
}

// part is messages that are looked at together, and their events by rank.
type part struct {
	list   []*ledger.Operand
	events []event
}

// divide divides the messages that are not used by a key, in order of first occurrence.
func (x *index) divide(used []bool, key func(m *ledger.Operand) [2]int32) (out []part) {
	numbers, of, counts := map[[2]int32]int32{}, make([]int32, len(x.list)), []int(nil)
	var last [2]int32
	at := int32(-1)
	for k, m := range x.list {
		if used[k] {
			of[k] = ledger.None
			continue
		}
		if next := key(m); at < 0 || next != last {
			if at, last = numberOf(numbers, next), next; int(at) == len(counts) {
				counts = append(counts, 0)
			}
		}
		of[k] = at
		counts[at]++
	}
	for _, n := range counts {
		out = append(out, part{make([]*ledger.Operand, 0, n), make([]event, 0, 2*n)})
	}
	for k, m := range x.list {
		if p := of[k]; p != ledger.None {
			out[p].list = append(out[p].list, m)
		}
	}
	for _, e := range x.events {
		if p := of[e.message()]; p != ledger.None {
			out[p].events = append(out[p].events, e)
		}
	}
	return out
}

// perRank has a range of numbers for each of some ranks.
type perRank struct {
	round       int32
	noted       []int32 // by rank: the round in which it was last noted
	first, last []int64
	count       []int32 // how often a rank was noted in this round
	ranks       []int32 // those noted in this round
}

func (p *perRank) grow(ranks int) {
	p.noted, p.count = make([]int32, ranks), make([]int32, ranks)
	p.first, p.last = make([]int64, ranks), make([]int64, ranks)
}

// clear forgets all ranks.
func (p *perRank) clear() {
	p.round++
	p.ranks = p.ranks[:0]
}

// has reports whether a rank was noted.
func (p *perRank) has(rank int32) bool { return p.noted[rank] == p.round }

// note widens the range of a rank's numbers.
func (p *perRank) note(rank int32, n int64) {
	if !p.has(rank) {
		p.noted[rank], p.first[rank], p.last[rank], p.count[rank] = p.round, n, n, 1
		p.ranks = append(p.ranks, rank)
		return
	}
	p.count[rank]++
	p.first[rank], p.last[rank] = min(p.first[rank], n), max(p.last[rank], n)
}
