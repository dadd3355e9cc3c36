package evidence

import (
	"cmp"
	"slices"

	"github.com/commq/commq/detect/ledger"
)

// mostAsked is the number of instances of a finding whose messages are examined.
const mostAsked = 16

// arrival is a message received by a rank.
type arrival struct {
	seq, sent int64 // rows of the receive and of the send
	src       int32
}

// inbox has the known messages to a rank, by source.
type inbox struct {
	ways   []*ledger.WaySample
	tokens []arrival // empty messages, in order
}

// inboxes indexes the messages by receiver, once.
func (w *Weigher) inboxes() map[int32]*inbox {
	if w.received != nil {
		return w.received
	}
	w.received = map[int32]*inbox{}
	of := func(rank int32) *inbox {
		in := w.received[rank]
		if in == nil {
			in = &inbox{}
			w.received[rank] = in
		}
		return in
	}
	for _, cell := range w.sample.Order {
		for way, list := range cell.Ways {
			if way.Src != way.Dst {
				of(way.Dst).ways = append(of(way.Dst).ways, list)
			}
		}
	}
	for k := range w.messages {
		if m := &w.messages[k]; m.Bytes == 0 && m.Carrier == ledger.None { // the sample has no empty ones
			of(m.Dst).tokens = append(of(m.Dst).tokens, arrival{m.DoneSeq, m.SendSeq, m.Src})
		}
	}
	for _, in := range w.received {
		slices.SortFunc(in.tokens, func(a, b arrival) int { return cmp.Compare(a.seq, b.seq) })
	}
	return w.received
}

// last returns the last message that a rank received before a row; its seq is -1 if there is none.
func (in *inbox) last(before int64) arrival {
	out := arrival{seq: -1}
	if in == nil {
		return out
	}
	if n, _ := slices.BinarySearchFunc(in.tokens, before, func(a arrival, seq int64) int { return cmp.Compare(a.seq, seq) }); n > 0 {
		out = in.tokens[n-1]
	}
	for _, way := range in.ways {
		n, _ := slices.BinarySearchFunc(way.List, before, func(m ledger.Operand, seq int64) int { return cmp.Compare(m.DoneSeq, seq) })
		if n > 0 && way.List[n-1].DoneSeq > out.seq {
			m := &way.List[n-1]
			out = arrival{m.DoneSeq, m.SendSeq, m.Src}
		}
	}
	return out
}

// crossed reports whether messages of two ranks to each other were in flight at the same time. in is the inbox of a
// rank that sent a message at row sent, which other received at row done.
func (in *inbox) crossed(other int32, sent, done int64) bool {
	if in == nil {
		return false
	}
	for _, way := range in.ways {
		n, _ := slices.BinarySearchFunc(way.List, sent, func(m ledger.Operand, seq int64) int { return cmp.Compare(m.DoneSeq, seq) })
		if n < len(way.List) && way.List[n].Src == other && way.List[n].SendSeq <= done {
			return true
		}
	}
	return false
}

// arePulled reports whether at least three quarters of a finding's messages answer a request, so that receivers decide
// who gets a payload. A request is the last message that the sender received: from the receiver, not answered before,
// and not part of the finding. Messages that cross are no requests, for example counts that ranks exchange before their
// blocks.
func (w *Weigher) arePulled(f *Finding) bool {
	own := map[*ledger.Instance]bool{}
	for _, i := range f.Instances {
		own[i] = true
	}
	answers, all := 0, 0
	for _, i := range f.Instances[:min(len(f.Instances), mostAsked)] {
		answered := map[int32]int64{} // by rank: the row of the last request that it answered
		list := slices.Clone(i.Messages)
		slices.SortFunc(list, func(a, b int32) int { return cmp.Compare(w.messages[a].SendSeq, w.messages[b].SendSeq) })
		for _, k := range list {
			m := &w.messages[k]
			asked := w.inboxes()[m.Src].last(m.SendSeq)
			before, some := answered[m.Src]
			if all++; asked.seq < 0 || asked.src != m.Dst || some && asked.seq <= before ||
				own[w.owners.Owner(asked.src, asked.sent)] || w.inboxes()[m.Dst].crossed(m.Src, asked.sent, asked.seq) {
				continue
			}
			answers++
			answered[m.Src] = asked.seq
		}
	}
	return 4*answers >= 3*all
}

// independent returns the fraction of a finding's messages with causes of their own. Two ranks that exchange, each
// sending before it receives or in the same call, have one cause for both messages.
func (w *Weigher) independent(f *Finding) float64 {
	paired, all := 0, 0
	for _, i := range f.Instances[:min(len(f.Instances), mostAsked)] {
		ways := map[ledger.Way][]*ledger.Message{}
		for _, k := range i.Messages {
			m := &w.messages[k]
			ways[ledger.Way{Src: m.Src, Dst: m.Dst}] = append(ways[ledger.Way{Src: m.Src, Dst: m.Dst}], m)
		}
		for way, list := range ways {
			back := ways[ledger.Way{Src: way.Dst, Dst: way.Src}]
			for _, m := range list {
				if all++; slices.ContainsFunc(back, func(b *ledger.Message) bool { return b.SendSeq <= m.DoneSeq && m.SendSeq <= b.DoneSeq }) {
					paired++
				}
			}
		}
	}
	return 1 - float64(paired)/float64(2*all)
}
