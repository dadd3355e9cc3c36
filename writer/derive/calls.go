package derive

import (
	"slices"

	"github.com/commq/commq/schema"
)

// epochCalls knows, for the calls of an epoch, which messages they complete and how long they waited for these. A
// call is done when all its messages have been added. Calls that are not done at the end of an epoch are carried to
// the next.
type epochCalls struct {
	dense bool // no row of events is missing

	ranks []rankRows       // by rank
	rows  []callRow        // of this epoch, by rank and seq
	index map[uint64]int32 // rowKey -> place in rows; only where rows are missing
	keys  []uint64         // the inverse of index
	waits []callWaits      // see callRow.waits

	// Sends of earlier epochs without a message so far: rowKey -> seq of the call that completes them.
	pending map[uint64]int64
	carried map[uint64]*carriedCall // calls of other epochs, by rowKey
	tooMany bool                    // more than carriedRows of both; they were dropped
}

// carriedRows is the largest number of rows carried from an epoch to the next, about 1 GB.
const carriedRows = 1 << 22

// rankRows locates the rows of a rank in epochCalls.rows: n rows from base on, with seq from first to last.
type rankRows struct {
	first, last int64
	base        int
	n           int64
}

// callRow is a row of events.
type callRow struct {
	start, end int64
	// for a send: seq of the call that completes it; NullInt64 for other rows, and once its message was added
	done    int64
	open    int32 // messages that it completes and that were not added yet
	waits   int32 // index in epochCalls.waits, plus 1; 0 for none
	present bool  // false: a gap where a row is missing
	known   bool  // the receiver of the send is known
}

// carriedCall is a call of another epoch. A message can refer to it before its own row was added.
type carriedCall struct {
	row   callRow // present is false until the row was added
	waits callWaits
	posts []receivePost // for its sends, until its start and end are known
}

// receivePost is when and where a receive was posted.
type receivePost struct {
	ns  int64
	dst int32
}

// during reports whether the receive was posted between the start and the end of a call.
func (p receivePost) during(start, end int64) bool {
	return p.ns != schema.NullInt64 && start != schema.NullInt64 && end != schema.NullInt64 && p.ns > start &&
		p.ns < end
}

// callWaits describes how a call waited for the messages that it completes.
type callWaits struct {
	// The receives whose message was sent after the call began.
	late       int32 // number of them that ended
	lateSrc    int32 // the last of these
	lateBytes  int64
	lateNs     int64 // from its send to the end of the call
	waited     bool  // there is one
	sendNs     int64 // when the latest of them was sent
	src        int32
	start, end int64 // of the call

	// The send whose receive was posted last, among those posted during the call.
	posted bool
	postNs int64
	dst    int32
}

// post adds a receive that was posted for a send of the call.
func (c *callWaits) post(start, end int64, p receivePost) {
	if !p.during(start, end) || c.posted && (p.ns < c.postNs || p.ns == c.postNs && p.dst >= c.dst) {
		return
	}
	c.posted, c.postNs, c.dst = true, p.ns, p.dst
}

// receive adds a message that was sent after the call that receives it began.
func (c *callWaits) receive(m *schema.Messages, i int) {
	src, sent, start, end := m.Src[i], m.SendStartNs[i], m.RecvStartNs[i], m.RecvEndNs[i]
	if end != schema.NullInt64 {
		c.late++
		c.lateSrc, c.lateBytes, c.lateNs = src, m.Bytes[i], end-sent
	}
	if sent > start && (!c.waited || sent > c.sendNs || sent == c.sendNs && src < c.src) {
		c.waited, c.sendNs, c.src, c.start, c.end = true, sent, src, start, end
	}
}

func newEpochCalls(ranks int, dense bool) epochCalls {
	return epochCalls{dense: dense, ranks: make([]rankRows, ranks), pending: map[uint64]int64{},
		carried: map[uint64]*carriedCall{}}
}

// begin indexes the rows of events of an epoch.
func (c *epochCalls) begin(events []*schema.Events) {
	n := c.place(events)
	c.rows, c.waits = slices.Grow(c.rows[:0], n)[:n], c.waits[:0]
	clear(c.rows)
	c.indexKeys(events, n)
	for _, e := range events {
		for i, rank := range e.Rank {
			if row := c.row(rank, e.Seq[i]); row != nil {
				row.start, row.end, row.done, row.present = e.StartNs[i], e.EndNs[i], schema.NullInt64, true
			}
		}
	}
	c.takeCarried()
	for _, e := range events {
		for i := range e.Rank {
			c.openMessages(e, i)
		}
	}
}

// place finds where the rows of each rank go, and counts them.
func (c *epochCalls) place(events []*schema.Events) (n int) {
	clear(c.ranks)
	for _, e := range events {
		for i, rank := range e.Rank {
			if uint32(rank) >= uint32(len(c.ranks)) {
				continue
			}
			r := &c.ranks[rank]
			if r.n == 0 {
				r.first, r.last = e.Seq[i], e.Seq[i]
			}
			r.first, r.last = min(r.first, e.Seq[i]), max(r.last, e.Seq[i])
			r.n++
		}
	}
	for i := range c.ranks {
		r := &c.ranks[i]
		r.base = n
		n += int(r.n)
		c.dense = c.dense && (r.n == 0 || r.last-r.first+1 == r.n)
	}
	return n
}

// indexKeys finds places for n rows where some are missing.
func (c *epochCalls) indexKeys(events []*schema.Events, n int) {
	if c.dense {
		return
	}
	c.index, c.keys = make(map[uint64]int32, n), c.keys[:0]
	for _, e := range events {
		for i, rank := range e.Rank {
			if key := schema.RowKey(rank, e.Seq[i]); uint32(rank) < uint32(len(c.ranks)) {
				c.index[key] = int32(len(c.keys))
				c.keys = append(c.keys, key)
			}
		}
	}
}

// takeCarried applies the carried calls to the rows of this epoch.
func (c *epochCalls) takeCarried() {
	for key, x := range c.carried {
		if x.row.present {
			continue
		}
		row := c.row(schema.RowOf(key))
		if row == nil || !row.present {
			continue
		}
		row.open = x.row.open
		c.waits = append(c.waits, x.waits)
		row.waits = int32(len(c.waits))
		for _, p := range x.posts {
			c.waits[row.waits-1].post(row.start, row.end, p)
		}
		delete(c.carried, key)
	}
}

// row returns the row of this epoch; nil when it is of another epoch or missing.
func (c *epochCalls) row(rank int32, seq int64) *callRow {
	if uint32(rank) >= uint32(len(c.ranks)) {
		return nil
	}
	if !c.dense {
		if k, ok := c.index[schema.RowKey(rank, seq)]; ok {
			return &c.rows[k]
		}
		return nil
	}
	r := &c.ranks[rank]
	if r.n == 0 || seq < r.first || seq > r.last {
		return nil
	}
	return &c.rows[r.base+int(seq-r.first)]
}

// openMessages notes which calls complete the send and the receive of a row.
func (c *epochCalls) openMessages(e *schema.Events, i int) {
	class := schema.Class(e.Class[i])
	if class != schema.ClassSend && class != schema.ClassRecv && class != schema.ClassSendrecv {
		return
	}
	rank, seq, done := e.Rank[i], e.Seq[i], e.DoneSeq[i]
	if class != schema.ClassRecv {
		by := done
		if by == schema.NullInt64 {
			by = seq
		}
		known := e.SendWorld[i] != schema.NullInt32
		if row := c.row(rank, seq); row != nil {
			row.done, row.known = by, known
		}
		if known {
			c.openMessage(rank, by)
		}
	}
	if class != schema.ClassSend && e.RecvWorld[i] != schema.NullInt32 {
		if done == schema.NullInt64 && e.Request[i] == schema.NullInt64 {
			done = seq
		}
		if done != schema.NullInt64 {
			c.openMessage(rank, done)
		}
	}
}

// openMessage notes a message that a call completes.
func (c *epochCalls) openMessage(rank int32, seq int64) {
	if row := c.row(rank, seq); row != nil {
		row.open++
		return
	}
	c.carry(rank, seq).row.open++
}

// carry returns the carried call of a row of another epoch.
func (c *epochCalls) carry(rank int32, seq int64) *carriedCall {
	key := schema.RowKey(rank, seq)
	x := c.carried[key]
	if x == nil {
		x = &carriedCall{}
		c.carried[key] = x
	}
	return x
}

// sent handles the send side of a message: the call that completed the send learns when the receive was posted.
func (c *epochCalls) sent(m *schema.Messages, i int, w *WaitSums) {
	src, seq := m.Src[i], m.SendSeq[i]
	done := int64(schema.NullInt64)
	if row := c.row(src, seq); row != nil {
		done, row.done = row.done, schema.NullInt64
	} else if by, ok := c.pending[schema.RowKey(src, seq)]; ok {
		done = by
		delete(c.pending, schema.RowKey(src, seq))
	}
	if done == schema.NullInt64 {
		return
	}
	post := receivePost{m.RecvPostNs[i], m.Dst[i]}
	row := c.row(src, done)
	if row == nil {
		x := c.carry(src, done)
		if x.row.present {
			x.waits.post(x.row.start, x.row.end, post)
		} else {
			x.posts = append(x.posts, post)
		}
		c.meet(src, done, x, w)
		return
	}
	row.open--
	if post.during(row.start, row.end) {
		c.waitsOf(row).post(row.start, row.end, post)
	}
}

// received handles the receive side of a message: the call that completed the receive learns when the message was
// sent.
func (c *epochCalls) received(m *schema.Messages, i int, done int64, w *WaitSums) {
	dst := m.Dst[i]
	late := m.SendStartNs[i] != schema.NullInt64 && m.RecvStartNs[i] != schema.NullInt64 &&
		m.SendStartNs[i] >= m.RecvStartNs[i]
	row := c.row(dst, done)
	if row == nil {
		x := c.carry(dst, done)
		if late {
			x.waits.receive(m, i)
		}
		c.meet(dst, done, x, w)
		return
	}
	row.open--
	if late {
		c.waitsOf(row).receive(m, i)
	}
}

// waitsOf returns the waits of a call of this epoch.
func (c *epochCalls) waitsOf(row *callRow) *callWaits {
	if row.waits == 0 {
		c.waits = append(c.waits, callWaits{})
		row.waits = int32(len(c.waits))
	}
	return &c.waits[row.waits-1]
}

// meet adds a message to a call of another epoch, and ends the call with its last message.
func (c *epochCalls) meet(rank int32, seq int64, x *carriedCall, w *WaitSums) {
	if x.row.open--; x.row.open == 0 && x.row.present && c.dense {
		w.addCall(rank, x.row.start, &x.waits)
		delete(c.carried, schema.RowKey(rank, seq))
	}
}

// end ends the epoch: it gives calls with all their messages to done, and carries the others.
func (c *epochCalls) end(done func(rank int32, start int64, waits *callWaits)) {
	if !c.dense {
		for i, key := range c.keys {
			rank, seq := schema.RowOf(key)
			c.endRow(rank, seq, &c.rows[i], done)
		}
	} else {
		for rank := range c.ranks {
			r := &c.ranks[rank]
			for i := range r.n {
				c.endRow(int32(rank), r.first+i, &c.rows[r.base+int(i)], done)
			}
		}
	}
	if len(c.carried)+len(c.pending) > carriedRows {
		c.tooMany = true
		clear(c.carried)
		clear(c.pending)
	}
}

func (c *epochCalls) endRow(rank int32, seq int64, row *callRow,
	done func(rank int32, start int64, waits *callWaits)) {
	if !row.present {
		return
	}
	if row.done != schema.NullInt64 && row.known {
		c.pending[schema.RowKey(rank, seq)] = row.done
	}
	switch {
	case row.open > 0 || !c.dense && (row.waits > 0 || row.open != 0):
		x := c.carry(rank, seq)
		x.row = *row
		if row.waits > 0 {
			x.waits = c.waits[row.waits-1]
		}
	case row.waits > 0:
		done(rank, row.start, &c.waits[row.waits-1])
	}
}

// freeEpoch frees what serves only the current epoch.
func (c *epochCalls) freeEpoch() { c.rows, c.waits, c.index, c.keys = nil, nil, nil, nil }

// endCarried gives the calls that are still carried to done: some of their messages have no partner.
func (c *epochCalls) endCarried(done func(rank int32, start int64, waits *callWaits)) {
	for key, x := range c.carried {
		rank, _ := schema.RowOf(key)
		done(rank, x.row.start, &x.waits)
	}
	clear(c.carried)
}
