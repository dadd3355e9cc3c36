package check

import "github.com/commq/commq/schema"

// checkMessages compares each message with the rows that sent and received it.
func checkMessages(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	if !r.recordsAll() {
		return nil, nil
	}
	p := pairing{out: out, sends: newSides(), receives: newSides()}
	batch = func(b schema.Batch) {
		switch t := b.(type) {
		case *schema.Events:
			p.addEvents(t)
		case *schema.Messages:
			for i := range t.Src {
				p.addMessage(t, i)
			}
		}
	}
	return batch, func() {
		m := &r.manifest.Counts
		p.reportLeftOver("send", p.sends, m.UnmatchedSends, r.filtered())
		p.reportLeftOver("receive", p.receives, m.UnmatchedReceives, r.filtered())
	}
}

// pairing compares the two descriptions of each side of a message: the one in events and the one in messages. Both
// tables come by epoch, so only messages in flight wait. Their keys are the schema.RowKey of the row that began the
// side.
type pairing struct {
	out             *reporter
	sends, receives *sides
}

// half describes one side of a message, by a row of events or by the row of messages.
type half struct {
	peer, comm, tag         int32
	bytes, start, end, done int64
	message                 bool // from messages
}

func (p *pairing) addEvents(e *schema.Events) {
	for i, class := range e.Class {
		switch schema.Class(class) {
		case schema.ClassSend:
			p.addSend(e, i)
		case schema.ClassRecv:
			p.addReceive(e, i)
		case schema.ClassSendrecv:
			p.addSend(e, i)
			p.addReceive(e, i)
		}
	}
}

func (p *pairing) addSend(e *schema.Events, i int) {
	if e.SendWorld[i] == schema.NullInt32 {
		return
	}
	p.pair(p.sends, "send", schema.RowKey(e.Rank[i], e.Seq[i]), &half{peer: e.SendWorld[i], comm: e.Comm[i],
		tag: e.SendTag[i], bytes: e.SendBytes[i], start: e.StartNs[i], end: e.EndNs[i], done: schema.NullInt64})
}

// addReceive adds the receive side of a row. The message of a matched receive was taken by its probe: it has the
// probe's seq, and the row's own start is not compared.
func (p *pairing) addReceive(e *schema.Events, i int) {
	if x := e.ProcNull[i]; x != schema.NullInt32 && x&schema.ProcNullRecv != 0 {
		return
	}
	seq, start := e.Seq[i], e.StartNs[i]
	if schema.CallID(e.Call[i]).Is(schema.FactMatched|schema.FactReceives) && e.InitSeq[i] != schema.NullInt64 {
		seq, start = e.InitSeq[i], schema.NullInt64
	}
	done := e.DoneSeq[i]
	if e.Request[i] == schema.NullInt64 && done == schema.NullInt64 {
		done = e.Seq[i] // a blocking call completes itself
	}
	p.pair(p.receives, "receive", schema.RowKey(e.Rank[i], seq), &half{peer: e.RecvWorld[i], comm: e.Comm[i],
		tag: e.RecvTag[i], bytes: e.RecvBytes[i], start: start, end: schema.NullInt64, done: done})
}

func (p *pairing) addMessage(m *schema.Messages, i int) {
	p.pair(p.sends, "send", schema.RowKey(m.Src[i], m.SendSeq[i]), &half{peer: m.Dst[i], comm: m.Comm[i], tag: m.Tag[i],
		bytes: m.Bytes[i], start: m.SendStartNs[i], end: m.SendEndNs[i], done: schema.NullInt64, message: true})
	p.pair(p.receives, "receive", schema.RowKey(m.Dst[i], m.RecvPostSeq[i]), &half{peer: m.Src[i], comm: m.Comm[i],
		tag: m.Tag[i], bytes: m.Bytes[i], start: m.RecvPostNs[i], end: schema.NullInt64, done: m.RecvDoneSeq[i],
		message: true})
}

// pair keeps the first description of a side, and compares it with the second when that comes.
func (p *pairing) pair(waiting *sides, side string, key uint64, h *half) {
	other := waiting.find(key)
	switch {
	case other == nil:
		waiting.add(key, h)
		return
	case other.message == h.message: // two rows of events with one seq are reported by the rule seq
		if h.message {
			rank, seq := schema.RowOf(key)
			p.out.bad(rank, seq, "two messages have this row as their %s", side)
		}
		return
	case h.message:
		p.compare(side, key, other, h)
	default:
		p.compare(side, key, h, other)
	}
	waiting.remove(key)
}

func (p *pairing) compare(side string, key uint64, row, message *half) {
	if row.agrees(message) {
		return
	}
	rank, seq := schema.RowOf(key)
	for _, x := range [...]struct {
		name         string
		row, message int64
	}{
		{"peer", widen(row.peer), widen(message.peer)}, {"comm", widen(row.comm), widen(message.comm)},
		{"tag", widen(row.tag), widen(message.tag)}, {"bytes", row.bytes, message.bytes},
		{"start_ns", row.start, message.start}, {"end_ns", row.end, message.end}, {"done_seq", row.done, message.done},
	} {
		if !agree(x.row, x.message, schema.NullInt64) {
			p.out.bad(rank, seq, "the %s has %s %d, its message %d", side, x.name, x.row, x.message)
		}
	}
}

// agrees reports whether the descriptions differ in nothing that both have.
func (h *half) agrees(o *half) bool {
	return agree(h.peer, o.peer, schema.NullInt32) && agree(h.comm, o.comm, schema.NullInt32) &&
		agree(h.tag, o.tag, schema.NullInt32) && agree(h.bytes, o.bytes, schema.NullInt64) &&
		agree(h.start, o.start, schema.NullInt64) && agree(h.end, o.end, schema.NullInt64) &&
		agree(h.done, o.done, schema.NullInt64)
}

func agree[T int32 | int64](a, b, null T) bool { return a == b || a == null || b == null }

// widen converts an int32 to int64, and null to null.
func widen(x int32) int64 {
	if x == schema.NullInt32 {
		return schema.NullInt64
	}
	return int64(x)
}

// reportLeftOver reports messages whose row is missing. Rows without a message are unmatched, cancelled or failed.
func (p *pairing) reportLeftOver(side string, waiting *sides, unmatched int64, filtered bool) {
	rows := int64(0)
	waiting.each(func(key uint64, h *half) {
		switch {
		case !h.message:
			rows++
		case filtered && side == "receive": // a filter drops a message only with the row that sent it
		default:
			rank, seq := schema.RowOf(key)
			p.out.bad(rank, seq, "a message names this row as its %s; there is no such row", side)
		}
	})
	if rows < unmatched && !filtered {
		p.out.wrong("%d %s rows have no message; the manifest says %d are unmatched", rows, side, unmatched)
	}
}

func checkMessageRows(_ *run, out *reporter) (batch func(schema.Batch), finish func()) {
	return func(b schema.Batch) {
		m := b.(*schema.Messages)
		for i, bytes := range m.Bytes {
			if bytes < 0 {
				out.badRow(b, i, "bytes is %d", bytes)
			}
			if done := m.RecvDoneSeq[i]; done != schema.NullInt64 && done < m.RecvPostSeq[i] {
				out.badRow(b, i, "recv_done_seq %d before recv_post_seq %d at rank %d", done, m.RecvPostSeq[i],
					m.Dst[i])
			}
		}
	}, nil
}

// checkHashes reports hashes in a run whose manifest says that there are none, and counts messages hashed at both
// ends. The manifest also counts dropped messages.
func checkHashes(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	verified, mismatches := int64(0), int64(0)
	batch = func(b schema.Batch) {
		if r.manifest.Hash == "none" {
			for _, name := range []string{"payload_hash", "payload_sum", "payload_head"} {
				reportFirst(out, b, name, "hash is none")
			}
		}
		m, ok := b.(*schema.Messages)
		if !ok {
			return
		}
		if !r.manifest.HashVerify {
			reportFirst(out, b, "recv_hash", "hash_verify is false")
		}
		for i, sent := range m.PayloadHash {
			if got := m.RecvHash[i]; sent != schema.NullInt64 && got != schema.NullInt64 {
				verified++
				if sent != got {
					mismatches++
				}
			}
		}
	}
	return batch, func() {
		m := &r.manifest.Counts
		dropped := r.filtered() || r.manifest.Record == "collectives"
		if verified > m.HashesVerified || !dropped && verified != m.HashesVerified {
			out.wrong("hashes_verified: found %d; the manifest says %d", verified, m.HashesVerified)
		}
		if mismatches > m.HashMismatches || !dropped && mismatches != m.HashMismatches {
			out.wrong("hash_mismatches: found %d; the manifest says %d", mismatches, m.HashMismatches)
		}
	}
}

// reportFirst reports the first value of a column that must be null throughout; why quotes the manifest.
func reportFirst(out *reporter, b schema.Batch, column, why string) {
	_, k := b.Table().Column(column)
	for i, x := range b.Data(k).([]int64) {
		if x != schema.NullInt64 {
			out.badRow(b, i, "%s is %d; the manifest's %s", column, x, why)
			return
		}
	}
}
