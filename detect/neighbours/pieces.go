package neighbours

import (
	"cmp"
	"slices"

	"github.com/commq/commq/detect/ledger"
)

// contact is a message of a rank as it sees it: the row in which it is sent or received, and the rank at the other end.
type contact struct {
	seq        int64
	comm, line int32
	peer       int32
}

// WithdrawPieces withdraws operations over part of a communicator if their ranks, while they do it, also exchange
// messages of the same line with other ranks: they are pieces of a larger exchange.
func WithdrawPieces(in *Input, l *ledger.Ledger, all *ledger.Sample) {
	size := map[int32]int{}
	for _, c := range in.Comms {
		size[c.ID] = len(c.Members)
	}
	p := &pieces{lines: in.Lines, messages: l.Messages, of: map[int32][]contact{}}
	type place struct {
		op         ledger.Operation
		comm, line int32
	}
	byPlace := map[place][]*ledger.Instance{}
	for _, i := range l.Found {
		m := &l.Messages[i.Messages[0]]
		if i.Op.Neighborly() || len(i.Ranks) >= size[m.Comm] {
			continue
		}
		k := place{i.Op, m.Comm, p.line(m.SendSite)}
		byPlace[k] = append(byPlace[k], i)
		for _, r := range i.Ranks {
			p.of[r] = nil
		}
	}
	if len(byPlace) == 0 {
		return
	}
	p.collect(l, all)
	gone := map[*ledger.Instance]bool{}
	for _, list := range byPlace {
		some := 0
		for _, i := range list {
			if gone[i] = p.isPiece(i); gone[i] {
				some++
			}
		}
		if 2*some >= len(list) {
			for _, i := range list {
				gone[i] = true
			}
		}
	}
	l.Found = slices.DeleteFunc(l.Found, func(i *ledger.Instance) bool {
		if gone[i] {
			l.Release(i)
		}
		return gone[i]
	})
}

// pieces has the contacts of ranks with instances over part of a communicator.
type pieces struct {
	lines    map[int32]int32
	messages []ledger.Message
	of       map[int32][]contact // by rank, in order
}

// line returns the line of a call site, or a number of its own.
func (p *pieces) line(site int32) int32 {
	if line, known := p.lines[site]; known {
		return line
	}
	return ^site
}

// collect notes the contacts of the ranks in p.of.
func (p *pieces) collect(l *ledger.Ledger, all *ledger.Sample) {
	add := func(m *ledger.Message) {
		if m.Src == m.Dst {
			return
		}
		line := p.line(m.SendSite)
		if list, is := p.of[m.Src]; is {
			p.of[m.Src] = append(list, contact{m.SendSeq, m.Comm, line, m.Dst})
		}
		if list, is := p.of[m.Dst]; is {
			p.of[m.Dst] = append(list, contact{m.DoneSeq, m.Comm, line, m.Src})
		}
	}
	for _, of := range all.Order {
		for _, w := range of.Ways {
			for k := range w.List {
				add(&w.List[k].Message)
			}
		}
	}
	for k := range l.Messages {
		if m := &l.Messages[k]; m.Bytes == 0 && m.Carrier == ledger.None { // the sample has no empty ones
			add(m)
		}
	}
	for _, list := range p.of {
		slices.SortFunc(list, func(a, b contact) int { return cmp.Compare(a.seq, b.seq) })
	}
}

// isPiece reports whether a rank exchanges messages of the instance's lines with ranks outside between its first and
// its last call for the instance.
func (p *pieces) isPiece(i *ledger.Instance) bool {
	begin, end := map[int32]int64{}, map[int32]int64{}
	type where struct{ comm, line int32 }
	lines := map[where]bool{}
	note := func(rank int32, seq int64) {
		if old, known := begin[rank]; !known || seq < old {
			begin[rank] = seq
		}
		end[rank] = max(end[rank], seq)
	}
	for _, k := range i.Messages {
		m := &p.messages[k]
		note(m.Src, m.SendSeq)
		note(m.Dst, m.DoneSeq)
		lines[where{m.Comm, p.line(m.SendSite)}] = true
	}
	for rank, first := range begin {
		list := p.of[rank]
		at, _ := slices.BinarySearchFunc(list, first, func(c contact, seq int64) int { return cmp.Compare(c.seq, seq) })
		for ; at < len(list) && list[at].seq <= end[rank]; at++ {
			if c := &list[at]; lines[where{c.comm, c.line}] {
				if _, inside := slices.BinarySearch(i.Ranks, c.peer); !inside {
					return true
				}
			}
		}
	}
	return false
}
