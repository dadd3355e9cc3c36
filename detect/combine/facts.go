package combine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/detect/rankset"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// facts is the data that all searches of this package share.
type facts struct {
	rules     *ledger.Rules
	comms     []run.Comm
	check     *checker
	takers    *ledger.Owners
	sample    *ledger.Sample              // the first messages of all cells, and the number of all
	records   map[int32][]*ledger.Operand // by rank, in program order: commq_send_to_self and messages to itself
	sends     map[int32][]*ledger.Operand // by rank, in program order: all sends, to compare with results
	tokens    map[int32][]ledger.Message  // by rank, in program order: empty messages that it sends
	stars     map[int32][]star            // by communicator
	received  map[receiver]map[int32]bool // the call sites whose messages a call receives
	oversized int64                       // messages not examined as their rank sets need too much memory
}

// survey notes what calls do besides the messages that may be read completely later: these are of some cells only.
func (f *facts) survey(first *ledger.Sample) {
	f.sample = first
	f.indexStars(first)
	f.received = map[receiver]map[int32]bool{}
}

// index lists the sends and the records of every rank in program order, and notes where messages are received.
func (f *facts) index(s *ledger.Sample, selves []Self) {
	f.indexReceivers(s)
	f.sends, f.records = map[int32][]*ledger.Operand{}, map[int32][]*ledger.Operand{}
	for i := range selves {
		r := &selves[i]
		f.records[r.Rank] = append(f.records[r.Rank],
			&ledger.Operand{Message: ledger.Message{Src: r.Rank, Dst: r.Rank, Comm: schema.NullInt32, Datatype: r.Datatype,
				Bytes: r.Bytes, Hash: r.Hash, Head: r.Head, SendSeq: r.Seq, PostSeq: r.Seq, DoneSeq: r.Seq,
				Buffer: r.Buffer, DstBuffer: r.Buffer, SendSite: schema.NullInt32, RecvSite: schema.NullInt32},
				Sum: r.Sum})
	}
	for _, of := range s.Order {
		for w, list := range of.Ways {
			for i := range list.List {
				m := &list.List[i]
				f.sends[w.Src] = append(f.sends[w.Src], m)
				if w.Src == w.Dst {
					f.records[w.Src] = append(f.records[w.Src], m)
				}
			}
		}
	}
	for _, lists := range []map[int32][]*ledger.Operand{f.sends, f.records} {
		for _, list := range lists {
			slices.SortFunc(list, func(a, b *ledger.Operand) int { return cmp.Compare(a.SendSeq, b.SendSeq) })
		}
	}
}

// indexTokens lists the empty messages of every rank in program order.
func (f *facts) indexTokens(messages []ledger.Message) {
	f.tokens = map[int32][]ledger.Message{}
	for k := range messages {
		if m := &messages[k]; m.Bytes == 0 && m.Carrier == ledger.None {
			f.tokens[m.Src] = append(f.tokens[m.Src], *m)
		}
	}
	for _, list := range f.tokens {
		slices.SortFunc(list, func(a, b ledger.Message) int { return cmp.Compare(a.SendSeq, b.SendSeq) })
	}
}

// tells reports whether a rank sends an empty message to another between two of its events.
func (f *facts) tells(rank, to int32, after, before int64) bool {
	list := f.tokens[rank]
	at, _ := slices.BinarySearchFunc(list, after+1,
		func(m ledger.Message, seq int64) int { return cmp.Compare(m.SendSeq, seq) })
	for ; at < len(list) && list[at].SendSeq < before; at++ {
		if list[at].Dst == to {
			return true
		}
	}
	return false
}

// sizesDiffer reports whether the lines of a group send messages of other sizes from one rank to the root than from
// another, at any time: what has several sizes cannot be added up.
func (f *facts) sizesDiffer(g *group, root int32) bool {
	lines, comm := map[int32]bool{}, g.cells[0].Cell.Comm
	for _, of := range g.cells {
		lines[f.rules.Line(of.Cell.Site)] = true
	}
	sizes := map[int32]map[int64]int64{}
	for _, of := range f.sample.Order {
		if of.Cell.Comm != comm || !lines[f.rules.Line(of.Cell.Site)] {
			continue
		}
		for _, rank := range g.ranks {
			list := of.Ways[ledger.Way{Src: rank, Dst: root}]
			if rank == root || list == nil {
				continue
			}
			if sizes[rank] == nil {
				sizes[rank] = map[int64]int64{}
			}
			sizes[rank][of.Cell.Bytes] += list.Count
		}
	}
	other := g.ranks[0]
	if other == root {
		other = g.ranks[1]
	}
	return slices.ContainsFunc(g.ranks, func(rank int32) bool {
		return rank != root && !maps.Equal(sizes[rank], sizes[other])
	})
}

// owner returns the instance that a message belongs to, or nil.
func (f *facts) owner(m *ledger.Operand) *ledger.Instance {
	if !m.OwnerKnown {
		m.OwnerKnown, m.Owner = true, f.takers.Owner(m.Src, m.SendSeq)
	}
	return m.Owner
}

// markOversized counts the messages of an occurrence whose rank sets did not fit in memory.
func (f *facts) markOversized(room *rankset.Room, o *occurrence) {
	if !room.Exhausted() {
		return
	}
	for _, m := range o.messages {
		if !m.Oversized {
			m.Oversized = true
			f.oversized++
		}
	}
}

// lastRecorded returns the last payload of this size and datatype that a rank recorded between two of its events, or
// nil.
func (f *facts) lastRecorded(rank int32, after, before, bytes int64, datatype int32) *ledger.Operand {
	list := f.records[rank]
	at, _ := slices.BinarySearchFunc(list, before,
		func(m *ledger.Operand, seq int64) int { return cmp.Compare(m.SendSeq, seq) })
	for at--; at >= 0 && list[at].SendSeq > after; at-- {
		if m := list[at]; m.Bytes == bytes && (m.Datatype == datatype || !f.rules.Named[m.Datatype] || !f.rules.Named[datatype]) {
			return m
		}
	}
	return nil
}

// firstRecorded returns the first payload of this size and datatype that a rank recorded between two of its events,
// or nil.
func (f *facts) firstRecorded(rank int32, after, before, bytes int64, datatype int32) *ledger.Operand {
	list := f.records[rank]
	at, _ := slices.BinarySearchFunc(list, after+1,
		func(m *ledger.Operand, seq int64) int { return cmp.Compare(m.SendSeq, seq) })
	if at < len(list) && list[at].SendSeq < before && list[at].Bytes == bytes && list[at].Datatype == datatype {
		return list[at]
	}
	return nil
}

// coversComm reports whether the group has all ranks of the communicator that it uses.
func (f *facts) coversComm(g *group) bool {
	id := g.cells[0].Cell.Comm
	for k := range f.comms {
		if c := &f.comms[k]; c.ID == id {
			return len(c.Members) == len(g.ranks)
		}
	}
	return false
}

// sendsNothingElse reports whether the calls that send a group's messages send nothing else between its ranks, of any
// size. Irregular traffic can have any shape by chance if only one size is considered.
func (f *facts) sendsNothingElse(g *group) bool {
	place := func(c ledger.Cell) ledger.Cell {
		c.Bytes = 0
		if c.Site != schema.NullInt32 {
			c.Tag = 0
		}
		return c
	}
	places, ways := map[ledger.Cell]bool{}, map[ledger.Way]bool{}
	for _, of := range g.cells {
		places[place(of.Cell)] = true
	}
	for _, w := range g.ways {
		ways[w] = true
	}
	for _, of := range f.sample.Order {
		if !places[place(of.Cell)] {
			continue
		}
		for w := range of.Ways {
			_, src := slices.BinarySearch(g.ranks, w.Src)
			_, dst := slices.BinarySearch(g.ranks, w.Dst)
			if w.Src != w.Dst && (src || dst) && !ways[w] {
				return false
			}
		}
	}
	return true
}

// anyOwned reports whether any payload already belongs to an instance.
func (f *facts) anyOwned(list []*occurrence) bool {
	return slices.ContainsFunc(list, func(o *occurrence) bool {
		return slices.ContainsFunc(o.messages, func(m *ledger.Operand) bool { return f.owner(m) != nil })
	})
}

// order returns the ranks of a group in the order of their communicator if the communicator has exactly these ranks,
// else in ascending order.
func (f *facts) order(g *group) []int32 {
	id := g.cells[0].Cell.Comm
	for k := range f.comms {
		if m := &f.comms[k]; m.ID == id && len(m.Members) == len(g.ranks) && ledger.HasRanks(m, g.ranks) {
			return m.Members
		}
	}
	return g.ranks
}

// Datatype describes an MPI datatype.
type Datatype struct {
	ID int32
	// Named reports that this is a predefined MPI datatype. A derived one may have the same elements as a predefined
	// one.
	Named bool
	// Name is the MPI name, Bytes the size of an element.
	Name  string
	Bytes int64
}

// Self is a payload that a rank recorded with commq_send_to_self: data that it has without sending it.
type Self struct {
	Rank, Datatype          int32
	Seq, Bytes              int64
	Hash, Sum, Head, Buffer int64 // as in messages
}
