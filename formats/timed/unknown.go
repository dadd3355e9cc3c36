package timed

import (
	"github.com/commq/commq/run/match"
	"github.com/commq/commq/schema"
)

// pattern is the envelope that a receive of a rank asks for: a null source or tag matches all.
type pattern struct{ comm, src, tag int32 }

// patterns have, by pattern, the row of the first receive that asks for it.
type patterns map[pattern]int64

func (p patterns) add(asks pattern, seq int64) {
	if first, ok := p[asks]; !ok || seq < first {
		p[asks] = seq
	}
}

// before reports whether a receive of a row before seq may have taken a message of that channel.
func (p patterns) before(c *match.Channel, seq int64) bool {
	if len(p) == 0 {
		return false
	}
	for _, src := range [...]int32{c.Src, null32} {
		for _, tag := range [...]int32{c.Tag, null32} {
			if first, ok := p[pattern{c.Comm, src, tag}]; ok && first < seq {
				return true
			}
		}
	}
	return false
}

// asks returns what a receive asks for, or got.
func (s *slot) asks() pattern { return pattern{s.row.Comm, s.row.RecvWorld, s.row.RecvTag} }

// receives reports whether the row is a receive, from any rank but MPI_PROC_NULL.
func (s *slot) receives() bool {
	class := schema.Class(s.row.Class)
	return (class == schema.ClassRecv || class == schema.ClassSendrecv) && !s.cancelled &&
		(s.row.ProcNull == null32 || s.row.ProcNull&schema.ProcNullRecv == 0)
}

// unknown reports whether the row is a receive with a wildcard whose message is unknown. It may have taken the message
// of a later receive, so the messages of later receives are uncertain too.
func (s *slot) unknown() bool {
	return s.receives() && s.row.PostedAny != null32 && s.row.PostedAny != 0 &&
		(s.row.RecvWorld == null32 || s.row.RecvTag == null32)
}

// posting is a receive that the first pass read and did not match yet.
type posting struct {
	open *slot // its request was not completed when it was read; nil: it was
	recv match.Recv
}

// post takes the receive of a row in the first pass.
func (l *learner) post(s *slot) {
	switch {
	case !s.receives():
	case s.waiting > 0:
		l.posted = append(l.posted, posting{open: s})
	case s.unknown():
		l.r.unknown.add(s.asks(), s.row.Seq)
	default:
		if r, ok := recvSide(s); ok {
			l.posted = append(l.posted, posting{recv: learned(s, r)})
		}
	}
}

// learned is a receive as the first pass matches it: without a size if that is not to be found out.
func learned(s *slot, r match.Recv) match.Recv {
	if !s.atMost {
		r.Bytes = null64
	}
	return r
}

// settle hands over the receives that may be matched, in the order of their rows: those before which no receive is
// open, or unknown, that may have taken their message.
func (l *learner) settle() {
	open, left := patterns{}, l.posted[:0]
	for _, p := range l.posted {
		if s := p.open; s != nil {
			switch r, ok := recvSide(s); {
			case s.waiting > 0 && !l.done:
				open.add(s.asks(), s.row.Seq)
				left = append(left, p)
				continue
			case s.unknown():
				l.r.unknown.add(s.asks(), s.row.Seq)
				continue
			case !ok || !s.receives(): // cancelled
				continue
			default:
				p = posting{recv: learned(s, r)}
			}
		}
		if open.before(&p.recv.Channel, p.recv.PostSeq) {
			left = append(left, p)
		} else if !l.r.unknown.before(&p.recv.Channel, p.recv.PostSeq) {
			l.recvs = append(l.recvs, p.recv)
		}
	}
	clear(l.posted[len(left):])
	l.posted = left
}
