package synth

import (
	"github.com/commq/commq/schema"
)

// filler fills the rows of a shard: ranks [first, last).
type filler struct {
	run         *run
	first, last int
	events      schema.Events
	messages    schema.Messages
	section     int // its rows are repeated, except for the values that change in each turn
	turns       int
}

// window is some turns of a section that become an epoch, starting with turn from.
type window struct {
	section int
	from    int64
	turns   int
	epoch   int32
	times   times
}

// fill makes the rows of a window. If the last window had the same section and length, the columns that do not change
// from turn to turn are kept.
func (f *filler) fill(w *window) {
	s := f.run.p.Sections[w.section]
	rows, sends := 0, 0
	for r := f.first; r < f.last; r++ {
		rows += int(f.run.kept(s, r))
		sends += int(s.sends[r])
	}
	same := f.section == w.section && f.turns == w.turns
	f.section, f.turns = w.section, w.turns
	if !same {
		f.events.Resize(rows * w.turns)
		f.messages.Resize(sends * w.turns)
	}
	row, message := 0, 0
	for r := f.first; r < f.last; r++ {
		if !same {
			f.still(s, r, w.turns, row, message)
		}
		f.moving(s, w, r, row, message)
		row += f.run.kept(s, r) * w.turns
		message += int(s.sends[r]) * w.turns
	}
	for i := range f.events.Epoch {
		f.events.Epoch[i] = w.epoch
	}
	for i := range f.messages.Epoch {
		f.messages.Epoch[i] = w.epoch
	}
}

// keeps reports whether the rows of a call are kept.
func (r *run) keeps(o *Op) bool {
	return r.o.Record != recordMessages || !schema.Calls[o.Call].Class.PointToPoint()
}

// kept returns the number of rows of events of a rank in a turn.
func (r *run) kept(s *Section, rank int) int {
	n := int(s.first[rank+1] - s.first[rank])
	if r.o.Record == recordMessages {
		n -= int(s.dropped[rank])
	}
	return n
}

// still fills the columns of a rank that are the same in every turn.
func (f *filler) still(s *Section, rank, turns, row, message int) {
	ops := s.ops[s.first[rank]:s.first[rank+1]]
	n := 0
	for k := range ops {
		if f.run.keeps(&ops[k]) {
			e := f.event(rank, &ops[k])
			f.events.Set(row+n, &e)
			n++
		}
	}
	repeatRows(&f.events, row, n, turns)
	n = 0
	for k := range ops {
		if ops[k].SendTo != None {
			m := f.message(s, rank, int(s.first[rank])+k)
			f.messages.Set(message+n, &m)
			n++
		}
	}
	repeatRows(&f.messages, message, n, turns)
}

// repeatRows fills the n*times rows from row on with copies of the first n.
func repeatRows(b schema.Batch, row, n, times int) {
	for c := range b.Table().Columns {
		switch v := b.Data(c).(type) {
		case []int16:
			repeat(v[row:row+n*times], n)
		case []int32:
			repeat(v[row:row+n*times], n)
		case []int64:
			repeat(v[row:row+n*times], n)
		case []string:
			repeat(v[row:row+n*times], n)
		}
	}
}

func repeat[T any](v []T, n int) {
	for n > 0 && n < len(v) {
		n += copy(v[n:], v[:n])
	}
}

// event returns the row of a call without the changing columns.
func (f *filler) event(rank int, o *Op) schema.Event {
	e := schema.NullEvent
	call := schema.CallID(o.Call)
	e.Rank, e.Call, e.Class, e.Polls, e.PollNs = int32(rank), o.Call, int16(schema.Calls[o.Call].Class), 0, 0
	if f.run.o.Callsites {
		e.Callsite = int32(o.Site)
	}
	if o.Comm != None {
		e.Comm = o.Comm
	}
	if o.Root != None {
		e.RootWorld = o.Root
	}
	if o.Reduce != None {
		e.ReduceOp = int16(o.Reduce)
	}
	t := &datatypes[o.Type]
	switch {
	case o.SendTo != None || o.RecvFrom != None:
		e.ProcNull = 0
		if o.SendTo != None {
			e.SendPeer, e.SendWorld, e.SendTag = o.SendPeer, o.SendTo, int32(o.SendTag)
			e.SendCount, e.SendDatatype, e.SendBytes, e.SendBuffer = int64(o.SendBytes)/t.Bytes, t.ID,
				int64(o.SendBytes), f.run.address(rank, o.SendBuf)
		}
		if o.RecvFrom != None {
			e.RecvPeer, e.RecvWorld, e.RecvTag, e.PostedAny = o.RecvPeer, o.RecvFrom, int32(o.RecvTag), 0
			e.RecvCount, e.RecvDatatype, e.RecvBytes, e.RecvBuffer = int64(o.RecvBytes)/t.Bytes, t.ID,
				int64(o.RecvBytes), f.run.address(rank, o.RecvBuf)
		}
	case schema.Calls[o.Call].Class == schema.ClassCollective:
		e.SendBytes, e.RecvBytes = int64(o.SendBytes), int64(o.RecvBytes)
		if o.SendBuf != None {
			e.SendCount, e.SendDatatype, e.SendBuffer = int64(o.SendBytes)/t.Bytes, t.ID, f.run.address(rank, o.SendBuf)
		}
		if o.RecvBuf != None {
			e.RecvCount, e.RecvDatatype, e.RecvBuffer = int64(o.RecvBytes)/t.Bytes, t.ID, f.run.address(rank, o.RecvBuf)
		}
		if call == schema.CallAlltoall {
			members := int64(f.run.members(o.Comm))
			e.SendCount, e.RecvCount = e.SendCount/members, e.RecvCount/members
		}
	}
	return e
}

// message returns a message without the changing columns; op sends it.
func (f *filler) message(s *Section, rank, op int) schema.Message {
	m, o := schema.NullMessage, &s.ops[op]
	to := s.partner[op]
	t := &datatypes[o.Type]
	m.Src, m.Dst, m.Comm, m.Tag, m.Bytes = int32(rank), o.SendTo, o.Comm, int32(o.SendTag), int64(o.SendBytes)
	m.SendCount, m.SendDatatype = m.Bytes/t.Bytes, t.ID
	m.SrcBuffer, m.DstBuffer = f.run.address(rank, o.SendBuf), f.run.address(int(o.SendTo), s.ops[to].RecvBuf)
	if f.run.o.Callsites {
		m.SendCallsite, m.RecvCallsite = int32(o.Site), int32(s.ops[s.doneBy(to)].Site)
	}
	return m
}

// doneBy returns the op that completes a receive.
func (s *Section) doneBy(receive int32) int32 {
	if d := s.done[receive]; d != None {
		return d
	}
	return receive
}

// address returns the address of a buffer: each process has its own heap and stack.
func (r *run) address(rank int, buf int16) int64 {
	random := mix(r.o.Seed, uint64(rank), 0xadd)
	if buf >= stackBuf {
		return 0x7ffc00000000 + int64(random%(1<<28))<<4 + 8*int64(buf-stackBuf)
	}
	return 0x550000000000 + int64(random>>32%(1<<28))<<12 + 0x42a0 + int64(buf)*r.p.BufferBytes
}

// moving fills the columns of a rank that change from turn to turn.
func (f *filler) moving(s *Section, w *window, rank, row, message int) {
	first, last := int(s.first[rank]), int(s.first[rank+1])
	all, e, mask := len(s.ops), &f.events, f.run.o.TimeResolutionNs-1
	request, turnSeq := f.run.request[rank]+w.from*int64(s.requests[rank]), f.run.seq[rank]+w.from*int64(last-first)
	for turn := range w.turns {
		at := turn * all
		for i := first; i < last; i++ {
			o := &s.ops[i]
			if !f.run.keeps(o) {
				if o.SendTo != None {
					f.movingMessage(s, w, rank, i, turn, turnSeq+int64(i-first), message)
					message++
				}
				continue
			}
			e.Seq[row] = turnSeq + int64(i-first)
			e.StartNs[row], e.EndNs[row], e.ComputeNs[row] = w.times.start[at+i]&^mask, w.times.end[at+i]&^mask,
				int64(w.times.compute[at+i])
			if s.awaits[i][0] != int32(i) || s.groupOf[i] != None {
				f.special(s, w, row, i, first, request, turnSeq, int64(turn))
			}
			if o.SendTo != None {
				f.movingMessage(s, w, rank, i, turn, turnSeq+int64(i-first), message)
				message++
			}
			row++
		}
		request += int64(s.requests[rank])
		turnSeq += int64(last - first)
	}
}

// special fills the changing columns that only some calls have: for requests, waits and collectives.
func (f *filler) special(s *Section, w *window, row, i, first int, request, turnSeq, turn int64) {
	o, e := &s.ops[i], &f.events
	switch call := schema.CallID(o.Call); {
	case o.isRequest():
		e.Request[row] = request + int64(s.requestOf[i])
		e.DoneSeq[row] = turnSeq + int64(int(s.done[i])-first)
	case call == schema.CallWait:
		e.Request[row] = request + int64(s.requestOf[first+int(o.Completes)])
	case s.groupOf[i] != None:
		e.Instance[row] = f.run.instance[o.Comm] + (w.from+turn)*int64(s.perTurn[o.Comm]) + int64(o.Completes)
		if f.run.o.Hash && o.SendBuf != None {
			e.PayloadHash[row] = int64(mix(f.run.o.Seed, uint64(e.Instance[row]), uint64(e.Rank[row])))
			e.PayloadHead[row] = f.run.head(uint64(e.PayloadHash[row]))
		}
	}
}

// head returns the first 8 bytes of a payload.
func (r *run) head(hash uint64) int64 {
	const one = 0x3ff << 52
	random := uint64(1)<<r.p.HeadBits - 1
	return int64(hash*0xd1342543de82ef95>>3&random | one&^random)
}

func (f *filler) movingMessage(s *Section, w *window, rank, i, turn int, seq int64, row int) {
	m, all, mask := &f.messages, turn*len(s.ops), f.run.o.TimeResolutionNs-1
	to := int(s.partner[i])
	done := int(s.doneBy(int32(to)))
	dst := s.ops[i].SendTo
	base := f.run.seq[dst] + (w.from+int64(turn))*int64(s.first[dst+1]-s.first[dst]) - int64(s.first[dst])
	m.SendSeq[row], m.RecvPostSeq[row], m.RecvDoneSeq[row] = seq, base+int64(to), base+int64(done)
	m.SendStartNs[row], m.SendEndNs[row] = w.times.start[all+i]&^mask, w.times.end[all+i]&^mask
	m.RecvPostNs[row], m.RecvStartNs[row], m.RecvEndNs[row] = w.times.start[all+to]&^mask,
		w.times.start[all+done]&^mask, w.times.end[all+done]&^mask
	if f.run.o.Hash {
		m.PayloadHash[row] = int64(mix(f.run.o.Seed, uint64(rank)<<32|uint64(seq), uint64(w.section)))
		m.PayloadHead[row] = f.run.head(uint64(m.PayloadHash[row]))
	}
}
