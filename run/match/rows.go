package match

import (
	"cmp"
	"slices"

	"github.com/commq/commq/schema"
)

// Rows pairs the sends and receives of an untimed run, epoch by epoch. Its rows must give the source of each receive
// and the row that completes it. The zero value is ready to use.
type Rows struct {
	// Callsite returns the call site of a row of a later epoch that completes a receive of this one, or null. If
	// Callsite is nil, call sites are unknown.
	Callsite func(rank int32, seq int64) int32

	matcher Matcher
	early   []Pair
}

// Epoch pairs the sends and receives of an epoch, given in pieces with ranks in order. It calls paired for the
// messages, source by source, in the order of their sends. It adds receives first, so that a send finds its partner
// at once. Messages whose send has waited since an earlier epoch come before all others.
func (m *Rows) Epoch(pieces []*schema.Events, paired func(s *Send, r *Recv)) {
	m.early = m.early[:0]
	for _, b := range pieces {
		for row := range b.Rank {
			if !receives(b, row) {
				continue
			}
			r := m.recvOf(b, row)
			if s := m.matcher.Recv(&r); s != nil {
				m.early = append(m.early, Pair{*s, r})
			}
		}
	}
	slices.SortFunc(m.early, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(a.Send.Src, b.Send.Src), cmp.Compare(a.Send.Seq, b.Send.Seq))
	})
	early := m.early
	for _, b := range pieces {
		for row := range b.Rank {
			if !sends(b, row) {
				continue
			}
			s := sendOf(b, row)
			for len(early) > 0 && early[0].Send.Src <= s.Src {
				paired(&early[0].Send, &early[0].Recv)
				early = early[1:]
			}
			if r := m.matcher.Send(&s); r != nil {
				paired(&s, r)
			}
		}
	}
	for i := range early {
		paired(&early[i].Send, &early[i].Recv)
	}
	m.matcher.Sweep()
}

// Waiting returns the numbers of sends and receives that have no partner.
func (m *Rows) Waiting() (sends, recvs int64) { return m.matcher.Waiting() }

func sends(b *schema.Events, i int) bool {
	class := schema.Class(b.Class[i])
	return (class == schema.ClassSend || class == schema.ClassSendrecv) && b.SendWorld[i] != schema.NullInt32
}

func receives(b *schema.Events, i int) bool {
	class := schema.Class(b.Class[i])
	return (class == schema.ClassRecv || class == schema.ClassSendrecv) && b.RecvWorld[i] != schema.NullInt32
}

func sendOf(b *schema.Events, i int) Send {
	return Send{Channel: Channel{Comm: b.Comm[i], Src: b.Rank[i], Dst: b.SendWorld[i], Tag: b.SendTag[i]},
		Seq: b.Seq[i], Bytes: b.SendBytes[i], Count: b.SendCount[i], Datatype: b.SendDatatype[i],
		Callsite: b.Callsite[i]}
}

func (m *Rows) recvOf(b *schema.Events, i int) Recv {
	r := Recv{Channel: Channel{Comm: b.Comm[i], Src: b.RecvWorld[i], Dst: b.Rank[i], Tag: b.RecvTag[i]},
		Any: b.PostedAny[i], PostSeq: b.Seq[i], DoneSeq: b.DoneSeq[i], Bytes: b.RecvBytes[i],
		Callsite: schema.NullInt32}
	if b.Request[i] == schema.NullInt64 {
		r.DoneSeq = r.PostSeq
	}
	if r.DoneSeq == schema.NullInt64 {
		return r
	}
	// The rows of a rank are consecutive.
	if at := int64(i) + r.DoneSeq - r.PostSeq; at >= 0 && at < int64(b.Len()) && b.Rank[at] == r.Dst &&
		b.Seq[at] == r.DoneSeq {
		r.Callsite = b.Callsite[at]
	} else if m.Callsite != nil {
		r.Callsite = m.Callsite(r.Dst, r.DoneSeq)
	}
	return r
}
