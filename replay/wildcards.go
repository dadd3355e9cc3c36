package replay

import "github.com/commq/commq/schema"

// envelope is what a receive asks for: the source, by its rank in the communicator, and the tag.
type envelope struct{ source, tag int64 }

// envelopeOf returns the envelope of the message that a row received. If it received none, it is that of a message
// that no rank sends.
func envelopeOf(e *schema.Event) envelope {
	switch {
	case receivesProcNull(e):
		return envelope{procNull, int64(max(e.RecvTag, 0))}
	case e.RecvPeer == schema.NullInt32 || e.RecvTag == schema.NullInt32:
		return envelope{0, neverTag}
	}
	return envelope{int64(e.RecvPeer), int64(e.RecvTag)}
}

// wildcard lists the envelopes of what the starts of a persistent wildcard receive got. There is a request for each:
// one with a wildcard could take the message of another receive, which then waits for ever.
type wildcard struct {
	envelopes []envelope
	at        map[envelope]int // place in envelopes
}

// addStart notes what the start of a persistent wildcard receive got.
func (r *rankFindings) addStart(e *schema.Event) {
	if !schema.CallID(e.Call).Is(schema.FactStarts) || e.PostedAny == schema.NullInt32 || e.PostedAny == 0 {
		return
	}
	w := r.wildcards[e.InitSeq]
	if w == nil {
		w = &wildcard{at: map[envelope]int{}}
		r.wildcards[e.InitSeq] = w
	}
	got := envelopeOf(e)
	if _, known := w.at[got]; !known {
		w.at[got] = len(w.envelopes)
		w.envelopes = append(w.envelopes, got)
	}
}

// persistentReceive makes the requests of a persistent receive. args are the count and the datatype.
func (s *scheduler) persistentReceive(r *rankState, e *schema.Event, op opcode, args []int64, bytes int64) {
	w := s.found.ranks[e.Rank].wildcards[e.Seq]
	if w == nil {
		w = &wildcard{envelopes: []envelope{envelopeOf(e)}}
	}
	made := &persistent{wildcard: w}
	row := *e
	for k, from := range w.envelopes {
		q := r.post(e, bytes, 0, true)
		q.made = made
		made.requests = append(made.requests, q)
		r.emit(op, &row, args[0], args[1], from.source, from.tag, s.comms.index(e), q.piece.offset, q.slot)
		if row.ComputeNs = 0; k > 0 {
			s.notes.count("Persistent wildcard receives, made again for each further source and tag of their messages")
		}
	}
}

// persistent has the requests that one row made: of a wildcard receive one for each envelope.
type persistent struct {
	wildcard *wildcard
	requests []*request
}

// started returns the request that a row starts, of those that were made with q.
func (q *request) started(e *schema.Event) *request {
	if q.made == nil {
		return q
	}
	return q.made.requests[q.made.wildcard.at[envelopeOf(e)]]
}

// siblings returns the requests that were made with q, including q; q may be nil.
func (q *request) siblings() []*request {
	if q == nil || q.made == nil {
		return []*request{q}
	}
	return q.made.requests
}
