package schema

// half is one side of a message as an event's row or the message's row has it. The halves of one side meet in a map;
// what is left at the end never met. Events and messages come by epoch, so the map holds what is in flight.
type half struct {
	peer, comm, tag         int32
	bytes, start, end, done int64
	message                 bool
}

// sideKey names the row that began a side of a message.
func sideKey(rank int32, seq int64) uint64 { return uint64(uint32(rank))<<40 | uint64(seq)&(1<<40-1) }

func sideOf(key uint64) (rank int32, seq int64) { return int32(key >> 40), int64(key & (1<<40 - 1)) }

func checkMessages(c *Checker, b Batch) {
	if !c.all() {
		return
	}
	switch t := b.(type) {
	case *Events:
		for i, class := range t.Class {
			switch Class(class) {
			case ClassSend:
				c.sendRow(t, i)
			case ClassRecv:
				c.recvRow(t, i)
			case ClassSendrecv:
				c.sendRow(t, i)
				c.recvRow(t, i)
			}
		}
	case *Messages:
		for i := range t.Src {
			c.messageRow(t, i)
		}
	}
}

func (c *Checker) sendRow(e *Events, i int) {
	if e.SendWorld[i] == NullInt32 {
		return
	}
	c.meet(c.sends, "send", sideKey(e.Rank[i], e.Seq[i]), half{peer: e.SendWorld[i], comm: e.Comm[i], tag: e.SendTag[i],
		bytes: e.SendBytes[i], start: e.StartNs[i], end: e.EndNs[i], done: NullInt64})
}

// recvRow: a matched receive's message begins at the probe that matched it, which the row itself does not time.
func (c *Checker) recvRow(e *Events, i int) {
	if p := e.ProcNull[i]; p != NullInt32 && p&ProcNullRecv != 0 {
		return
	}
	seq, start := e.Seq[i], e.StartNs[i]
	if call := withoutLarge(CallID(e.Call[i])); (call == CallMrecv || call == CallImrecv) && e.InitSeq[i] != NullInt64 {
		seq, start = e.InitSeq[i], NullInt64
	}
	done := e.DoneSeq[i]
	if e.Request[i] == NullInt64 && done == NullInt64 {
		done = e.Seq[i] // a blocking call completes itself
	}
	c.meet(c.receives, "receive", sideKey(e.Rank[i], seq), half{peer: e.RecvWorld[i], comm: e.Comm[i], tag: e.RecvTag[i],
		bytes: e.RecvBytes[i], start: start, end: NullInt64, done: done})
}

func (c *Checker) messageRow(m *Messages, i int) {
	c.meet(c.sends, "send", sideKey(m.Src[i], m.SendSeq[i]), half{peer: m.Dst[i], comm: m.Comm[i], tag: m.Tag[i],
		bytes: m.Bytes[i], start: m.SendStartNs[i], end: m.SendEndNs[i], done: NullInt64, message: true})
	c.meet(c.receives, "receive", sideKey(m.Dst[i], m.RecvPostSeq[i]), half{peer: m.Src[i], comm: m.Comm[i], tag: m.Tag[i],
		bytes: m.Bytes[i], start: m.RecvPostNs[i], end: NullInt64, done: m.RecvDoneSeq[i], message: true})
}

// meet compares the two halves of a side once both are there.
func (c *Checker) meet(waiting map[uint64]half, side string, key uint64, h half) {
	other, ok := waiting[key]
	if ok && other.message == h.message {
		rank, seq := sideOf(key)
		if h.message {
			c.bad(rank, seq, "two messages have this row as their %s", side)
		}
		return // two rows of one seq: the rule seq says so
	}
	if !ok {
		waiting[key] = h
		return
	}
	delete(waiting, key)
	row, message := h, other
	if h.message {
		row, message = other, h
	}
	rank, seq := sideOf(key)
	for _, x := range [...]struct {
		name         string
		row, message int64
	}{
		{"peer", wide(row.peer), wide(message.peer)}, {"comm", wide(row.comm), wide(message.comm)}, {"tag", wide(row.tag), wide(message.tag)},
		{"bytes", row.bytes, message.bytes}, {"start_ns", row.start, message.start}, {"end_ns", row.end, message.end}, {"done_seq", row.done, message.done},
	} {
		if x.row != x.message && x.row != NullInt64 && x.message != NullInt64 {
			c.bad(rank, seq, "the %s has %s %d, its message %d", side, x.name, x.row, x.message)
		}
	}
}

// wide widens an integer, null to null.
func wide(x int32) int64 {
	if x == NullInt32 {
		return NullInt64
	}
	return int64(x)
}

func finishMessages(c *Checker) {
	if !c.all() {
		return
	}
	c.leftOver("send", c.sends, c.manifest.Counts.UnmatchedSends)
	c.leftOver("receive", c.receives, c.manifest.Counts.UnmatchedReceives)
}

// leftOver reports messages without their row. Rows without a message are unmatched, or were cancelled or failed.
func (c *Checker) leftOver(side string, waiting map[uint64]half, unmatched int64) {
	rows := int64(0)
	for _, key := range sortedKeys(waiting) {
		if waiting[key].message {
			if c.filtered() && side == "receive" { // a message is left out with the row that sent it alone
				continue
			}
			rank, seq := sideOf(key)
			c.bad(rank, seq, "a message says that this row is its %s; there is no such row", side)
		} else {
			rows++
		}
	}
	if rows < unmatched && !c.filtered() {
		c.wrong("%d %s rows have no message; the manifest says %d are unmatched", rows, side, unmatched)
	}
}

func checkMessageRows(c *Checker, b Batch) {
	m := b.(*Messages)
	for i, bytes := range m.Bytes {
		if bytes < 0 {
			c.bad(m.Src[i], m.SendSeq[i], "bytes is %d", bytes)
		}
		if done := m.RecvDoneSeq[i]; done != NullInt64 && done < m.RecvPostSeq[i] {
			c.bad(m.Src[i], m.SendSeq[i], "recv_done_seq %d before recv_post_seq %d at rank %d", done, m.RecvPostSeq[i], m.Dst[i])
		}
	}
}

// partsState holds calls whose parts have not come, and parts whose call has not come.
type partsState struct {
	shapes []partsShape // by CallID
	calls  map[uint64]partSum
	sums   map[uint64]partSum
	open   uint64 // the call whose parts are coming
	sum    partSum
	any    bool
}

// partsShape says which parts a call has.
type partsShape uint8

const (
	partsNone    partsShape = iota
	partsVector             // what each peer is sent, or sends, has a count of its own
	partsGather             // only what is received has
	partsNearest            // a neighbourhood collective: all of it is in parts
)

// partSum are the bytes of a call or of its parts.
type partSum struct {
	send, recv int64
	all        bool // of a call: the parts are all of it, on both sides
}

func newPartsState() partsState {
	p := partsState{calls: map[uint64]partSum{}, sums: map[uint64]partSum{}, shapes: make([]partsShape, len(Calls))}
	for id := range Calls {
		switch op := CallID(id).Operation(); {
		case CallID(id).IsNeighborhood():
			p.shapes[id] = partsNearest
		case op == CallAllgatherv:
			p.shapes[id] = partsGather
		case op == CallGatherv || op == CallScatterv || op == CallAlltoallv || op == CallAlltoallw:
			p.shapes[id] = partsVector
		}
	}
	return p
}

func checkParts(c *Checker, b Batch) {
	switch t := b.(type) {
	case *Events:
		for i, class := range t.Class {
			if Class(class) == ClassCollective {
				c.partsOfRow(t, i)
			}
		}
	case *Parts:
		p := &c.parts
		for i := range t.Rank {
			key := sideKey(t.Rank[i], t.Seq[i])
			if key != p.open {
				c.closeParts()
			}
			p.open, p.any = key, true
			p.sum.send += t.SendBytes[i]
			p.sum.recv += t.RecvBytes[i]
		}
	}
}

// partsOfRow takes in the row of a collective, and compares it with its parts where they came before it.
func (c *Checker) partsOfRow(e *Events, i int) {
	p := &c.parts
	call := c.collectiveOf(e, i)
	if c.orphan(e, i) { // it may have parts
		key := sideKey(e.Rank[i], e.Seq[i])
		if _, ok := p.sums[key]; !ok {
			p.calls[key] = partSum{send: NullInt64, recv: NullInt64}
		}
		delete(p.sums, key)
		return
	}
	if call < 0 || int(call) >= len(p.shapes) || p.shapes[call] == partsNone {
		return
	}
	s := partSum{send: e.SendBytes[i], recv: e.RecvBytes[i]}
	switch p.shapes[call] {
	case partsGather:
		s.send = NullInt64
	case partsNearest:
		m := c.comms[e.Comm[i]]
		s.all = m != nil && !m.alien && e.ErrorClass[i] == NullInt32
	}
	key := sideKey(e.Rank[i], e.Seq[i])
	if parts, ok := p.sums[key]; ok {
		delete(p.sums, key)
		c.compareParts(key, s, parts)
	} else if e.SendBytes[i] != 0 || e.RecvBytes[i] != 0 {
		p.calls[key] = s
	}
}

// compareParts compares a call with its parts. A side without a count per peer has no parts.
func (c *Checker) compareParts(key uint64, call, parts partSum) {
	rank, seq := sideOf(key)
	if (parts.send != 0 || call.all) && call.send != NullInt64 && parts.send != call.send {
		c.bad(rank, seq, "the parts send %d bytes, the call %d", parts.send, call.send)
	}
	if (parts.recv != 0 || call.all) && call.recv != NullInt64 && parts.recv != call.recv {
		c.bad(rank, seq, "the parts receive %d bytes, the call %d", parts.recv, call.recv)
	}
}

// closeParts ends the call whose parts were coming.
func (c *Checker) closeParts() {
	p := &c.parts
	if !p.any {
		return
	}
	if call, ok := p.calls[p.open]; ok {
		delete(p.calls, p.open)
		c.compareParts(p.open, call, p.sum)
	} else {
		p.sums[p.open] = p.sum
	}
	p.sum, p.any = partSum{}, false
}

// finishParts reports parts without a call, and neighbourhood collectives without parts. Another call need not have parts:
// its peers may all get nothing from it.
func finishParts(c *Checker) {
	c.closeParts()
	for _, key := range sortedKeys(c.parts.sums) {
		rank, seq := sideOf(key)
		c.bad(rank, seq, "parts of a row that is no collective call with a count per peer")
	}
	for _, key := range sortedKeys(c.parts.calls) {
		c.compareParts(key, c.parts.calls[key], partSum{})
	}
}

// checkCausality compares the ends of a message where all times are on one clock. Measured clocks have errors.
func checkCausality(c *Checker, b Batch) {
	if origin := c.manifest.TimeOrigin; origin != "virtual" && origin != "simulated" {
		return
	}
	m := b.(*Messages)
	for i, end := range m.RecvEndNs {
		if start := m.SendStartNs[i]; end < start && end != NullInt64 {
			c.bad(m.Src[i], m.SendSeq[i], "received %d ns before it was sent", start-end)
		}
	}
}
