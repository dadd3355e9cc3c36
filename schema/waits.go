package schema

import (
	"cmp"
	"math"
	"slices"
)

// WaitSums makes the rows of the tables waits, transfers and collective_waits of those of events and messages, as docs/method/wait-states.md defines
// waits and times of messages. Its memory is bounded by an epoch, by the messages and collective operations in flight between epochs, by the pairs of
// ranks and members of communicators, and by transferRows.
type WaitSums struct {
	hosts []int32 // by rank
	dense bool    // no row of events is missing

	ranks   []waitRank       // by rank: where its rows of this epoch are
	rows    []waitRow        // of this epoch, by rank and seq
	index   map[uint64]int32 // where rows are missing: the places in rows, by sideKey
	keys    []uint64         // and the other way
	calls   []callWaits
	pending map[uint64]int64     // sends of earlier epochs without a message: sideKey -> seq of the call that completes them
	carried map[uint64]*carryRow // calls of other epochs

	pairs   map[uint64]*pairWaits // by src<<32 | dst
	recent  [256]recentPair
	sizes   map[sizeKey]*int64
	times   map[transferKey]*transferTimes
	tooMany bool // different sizes and times
	tooLong bool // what is carried

	lastTimed lastTimed

	collectives collectiveSums

	events   Events // that were added and are not summed yet
	messages Messages
}

// transferRows is the most rows of the table transfers: a run with more has none.
const transferRows = 1 << 20

// waitRank is where the rows of a rank are in WaitSums.rows: n of them from base on, the first of which has seq first.
type waitRank struct {
	first, last int64
	base        int
	n           int64
}

// waitRow is what is needed of a row of events.
type waitRow struct {
	start, end int64
	done       int64 // seq of the call that completes the send that it is; NullInt64: it is none, or its message was met
	open       int32 // messages that it completes and that were not met yet
	calls      int32 // index in WaitSums.calls, plus 1; 0: none
	there      bool
	known      bool // whom it sends to
}

// carryRow is a row of another epoch.
type carryRow struct {
	waitRow
	waits callWaits
	posts []postedAt // of its sends, while start and end are not known
}

type postedAt struct {
	ns  int64
	dst int32
}

// callWaits is what is known of the messages that a call completes.
type callWaits struct {
	// Messages that were sent when the call had begun.
	late       int32 // how many, of those whose receive ended
	lateSrc    int32 // the last of these
	lateBytes  int64
	lateNs     int64 // from its send to the end of the call
	waited     bool  // for one that was sent after the call had begun
	sendNs     int64 // the latest send of those
	src        int32
	start, end int64

	// The sends whose receive was posted during the call: the last.
	posted bool
	postNs int64
	dst    int32
}

type recentPair struct {
	key  uint64
	pair *pairWaits
}

// pairWaits is a row of waits.
type pairWaits struct {
	messages     int64
	send, recv   waitSum
	sameHost     int32
	lastBytes    int64
	lastMessages *int64
}

type waitSum struct{ waits, ns, max int64 }

func (s *waitSum) add(ns int64) {
	s.waits++
	s.ns += ns
	s.max = max(s.max, ns)
}

type sizeKey struct {
	bytes    int64
	sameHost int32
}

type transferKey struct {
	sizeKey
	step int32
}

type transferTimes struct{ messages, min, max int64 }

// NewWaitSums returns the sums of a run whose ranks are on these hosts; dense says that it has every row of events. Where it has not, every call
// that waited is kept until the end.
func NewWaitSums(hosts []int32, dense bool) *WaitSums {
	return &WaitSums{hosts: hosts, dense: dense, ranks: make([]waitRank, len(hosts)), pending: map[uint64]int64{}, carried: map[uint64]*carryRow{},
		pairs: map[uint64]*pairWaits{}, sizes: map[sizeKey]*int64{}, times: map[transferKey]*transferTimes{}, collectives: newCollectiveSums(len(hosts))}
}

// AddComms takes in who is who in communicators. All of them are added before any row of events.
func (w *WaitSums) AddComms(c *Comms) { w.collectives.addComms(c) }

// waitEventColumns and waitMessageColumns are the columns that WaitSums looks at.
var (
	waitEventColumns = []string{"rank", "seq", "epoch", "class", "start_ns", "end_ns", "send_world", "recv_world", "request", "done_seq",
		"call", "comm", "instance", "root_world", "init_seq"}
	waitMessageColumns = []string{"src", "dst", "epoch", "bytes", "send_seq", "send_start_ns", "recv_done_seq", "recv_post_ns", "recv_start_ns", "recv_end_ns"}
)

// WaitColumns are the columns of events, or of messages, that WaitSums looks at.
func WaitColumns(t *Table) []string {
	if t == &EventsTable {
		return slices.Clone(waitEventColumns)
	}
	return slices.Clone(waitMessageColumns)
}

// AddEvents keeps rows of events. They come by increasing epoch.
func (w *WaitSums) AddEvents(e *Events) {
	if n := w.events.Len(); n > 0 && e.Len() > 0 && e.Epoch[0] > w.events.Epoch[n-1] {
		w.flush(w.events.Epoch[n-1])
	}
	w.collectives.keep(e)
	x := &w.events
	x.Rank, x.Seq, x.Epoch, x.Class = append(x.Rank, e.Rank...), append(x.Seq, e.Seq...), append(x.Epoch, e.Epoch...), append(x.Class, e.Class...)
	x.StartNs, x.EndNs, x.DoneSeq = append(x.StartNs, e.StartNs...), append(x.EndNs, e.EndNs...), append(x.DoneSeq, e.DoneSeq...)
	x.SendWorld, x.RecvWorld, x.Request = append(x.SendWorld, e.SendWorld...), append(x.RecvWorld, e.RecvWorld...), append(x.Request, e.Request...)
}

// AddMessages keeps rows of messages. Those of an epoch come before the rows of events of the next.
func (w *WaitSums) AddMessages(m *Messages) {
	if w.tooLong {
		return
	}
	x := &w.messages
	x.Src, x.Dst, x.Epoch, x.Bytes = append(x.Src, m.Src...), append(x.Dst, m.Dst...), append(x.Epoch, m.Epoch...), append(x.Bytes, m.Bytes...)
	x.SendSeq, x.SendStartNs, x.RecvDoneSeq = append(x.SendSeq, m.SendSeq...), append(x.SendStartNs, m.SendStartNs...), append(x.RecvDoneSeq, m.RecvDoneSeq...)
	x.RecvPostNs, x.RecvStartNs, x.RecvEndNs = append(x.RecvPostNs, m.RecvPostNs...), append(x.RecvStartNs, m.RecvStartNs...), append(x.RecvEndNs, m.RecvEndNs...)
}

// flush sums what was kept, messages up to that epoch: the row that sent a message is in no later one.
func (w *WaitSums) flush(epoch int32) {
	later := Messages{}
	if m := &w.messages; m.Len() > 0 && slices.Max(m.Epoch) > epoch {
		var row Message
		now := Messages{}
		for i, of := range m.Epoch {
			x := waitMessage(m, i, &row)
			if of > epoch {
				later.Append(x)
			} else {
				now.Append(x)
			}
		}
		w.messages = now
	}
	w.epoch([]*Events{&w.events}, []*Messages{&w.messages})
	w.events.Resize(0)
	w.messages.Resize(0)
	if later.Len() > 0 {
		w.AddMessages(&later)
	}
}

// waitMessage copies the columns that WaitSums looks at into m.
func waitMessage(b *Messages, i int, m *Message) *Message {
	m.Src, m.Dst, m.Epoch, m.Bytes, m.SendSeq, m.SendStartNs = b.Src[i], b.Dst[i], b.Epoch[i], b.Bytes[i], b.SendSeq[i], b.SendStartNs[i]
	m.RecvDoneSeq, m.RecvPostNs, m.RecvStartNs, m.RecvEndNs = b.RecvDoneSeq[i], b.RecvPostNs[i], b.RecvStartNs[i], b.RecvEndNs[i]
	return m
}

// Epoch adds the rows of an epoch, or of several. Epochs come in their order; all rows of one come together. It looks at no other columns than
// WaitColumns.
func (w *WaitSums) Epoch(events []*Events, messages []*Messages) {
	for _, e := range events {
		w.collectives.keep(e)
	}
	w.epoch(events, messages)
}

// epoch is Epoch, whose collectives are kept.
func (w *WaitSums) epoch(events []*Events, messages []*Messages) {
	w.layOut(events)
	for _, e := range events {
		for i := range e.Rank {
			w.post(e, i)
		}
	}
	for _, m := range messages {
		for i := range m.Src {
			w.message(m, i)
		}
		if w.tooLong { // and there will be no rows of waits and transfers
			break
		}
	}
	w.collectives.epoch(w)
	w.endEpoch()
}

// layOut makes a row of each row of events, and gives those that were carried to this epoch what is known of them.
func (w *WaitSums) layOut(events []*Events) {
	clear(w.ranks)
	for _, e := range events {
		for i, rank := range e.Rank {
			if uint32(rank) >= uint32(len(w.ranks)) {
				continue
			}
			r := &w.ranks[rank]
			if r.n == 0 {
				r.first, r.last = e.Seq[i], e.Seq[i]
			}
			r.first, r.last = min(r.first, e.Seq[i]), max(r.last, e.Seq[i])
			r.n++
		}
	}
	n := 0
	for i := range w.ranks {
		r := &w.ranks[i]
		r.base = n
		n += int(r.n)
		w.dense = w.dense && (r.n == 0 || r.last-r.first+1 == r.n)
	}
	w.rows, w.calls = slices.Grow(w.rows[:0], n)[:n], w.calls[:0]
	clear(w.rows)
	w.layOutKeys(events, n)
	for _, e := range events {
		for i, rank := range e.Rank {
			if row := w.row(rank, e.Seq[i]); row != nil {
				row.start, row.end, row.done, row.there = e.StartNs[i], e.EndNs[i], NullInt64, true
			}
		}
	}
	for key, c := range w.carried {
		if c.there {
			continue
		}
		rank, seq := sideOf(key)
		row := w.row(rank, seq)
		if row == nil || !row.there {
			continue
		}
		row.open = c.open
		w.calls = append(w.calls, c.waits)
		row.calls = int32(len(w.calls))
		for _, p := range c.posts {
			w.calls[row.calls-1].post(row.start, row.end, p)
		}
		delete(w.carried, key)
	}
}

// layOutKeys finds places for n rows where some are missing.
func (w *WaitSums) layOutKeys(events []*Events, n int) {
	if w.dense {
		return
	}
	w.index, w.keys = make(map[uint64]int32, n), w.keys[:0]
	for _, e := range events {
		for i, rank := range e.Rank {
			if key := sideKey(rank, e.Seq[i]); uint32(rank) < uint32(len(w.ranks)) {
				w.index[key] = int32(len(w.keys))
				w.keys = append(w.keys, key)
			}
		}
	}
}

// row is the row of this epoch; nil: it is of another, or missing.
func (w *WaitSums) row(rank int32, seq int64) *waitRow {
	if uint32(rank) >= uint32(len(w.ranks)) {
		return nil
	}
	if !w.dense {
		if at, ok := w.index[sideKey(rank, seq)]; ok {
			return &w.rows[at]
		}
		return nil
	}
	r := &w.ranks[rank]
	if r.n == 0 || seq < r.first || seq > r.last {
		return nil
	}
	return &w.rows[r.base+int(seq-r.first)]
}

// post notes which call completes what a row sends and receives.
func (w *WaitSums) post(e *Events, i int) {
	class := Class(e.Class[i])
	if class != ClassSend && class != ClassRecv && class != ClassSendrecv {
		return
	}
	rank, seq, done := e.Rank[i], e.Seq[i], e.DoneSeq[i]
	if class != ClassRecv {
		by := done
		if by == NullInt64 {
			by = seq
		}
		known := e.SendWorld[i] != NullInt32
		if row := w.row(rank, seq); row != nil {
			row.done, row.known = by, known
		}
		if known {
			w.open(rank, by, 1)
		}
	}
	if class != ClassSend && e.RecvWorld[i] != NullInt32 {
		if done == NullInt64 && e.Request[i] == NullInt64 {
			done = seq
		}
		if done != NullInt64 {
			w.open(rank, done, 1)
		}
	}
}

// open adds n to the messages that a call completes and that were not met yet.
func (w *WaitSums) open(rank int32, seq int64, n int32) {
	if row := w.row(rank, seq); row != nil {
		row.open += n
		return
	}
	w.carry(rank, seq).open += n
}

// carry is the row of another epoch.
func (w *WaitSums) carry(rank int32, seq int64) *carryRow {
	key := sideKey(rank, seq)
	c := w.carried[key]
	if c == nil {
		c = &carryRow{}
		w.carried[key] = c
	}
	return c
}

// message adds a message.
func (w *WaitSums) message(m *Messages, i int) {
	src, dst := m.Src[i], m.Dst[i]
	if uint32(src) >= uint32(len(w.hosts)) || uint32(dst) >= uint32(len(w.hosts)) {
		return
	}
	pair := w.pair(src, dst)
	pair.messages++
	w.size(pair, m.Bytes[i])
	w.sent(m, i)
	if done := m.RecvDoneSeq[i]; done != NullInt64 {
		w.received(m, i, done)
	}
}

// size counts a message of a size.
func (w *WaitSums) size(p *pairWaits, bytes int64) {
	if p.lastMessages == nil || p.lastBytes != bytes {
		key := sizeKey{bytes, p.sameHost}
		n := w.sizes[key]
		if n == nil {
			if w.tooMany = w.tooMany || len(w.sizes) == transferRows; w.tooMany {
				return
			}
			n = new(int64)
			w.sizes[key] = n
		}
		p.lastBytes, p.lastMessages = bytes, n
	}
	*p.lastMessages++
}

// sent tells the call that completed the send when its receive was posted.
func (w *WaitSums) sent(m *Messages, i int) {
	src, seq := m.Src[i], m.SendSeq[i]
	done := int64(NullInt64)
	if row := w.row(src, seq); row != nil {
		done, row.done = row.done, NullInt64
	} else if by, ok := w.pending[sideKey(src, seq)]; ok {
		done = by
		delete(w.pending, sideKey(src, seq))
	}
	if done == NullInt64 {
		return
	}
	post := postedAt{m.RecvPostNs[i], m.Dst[i]}
	row := w.row(src, done)
	if row == nil {
		c := w.carry(src, done)
		if c.there {
			c.waits.post(c.start, c.end, post)
		} else {
			c.posts = append(c.posts, post)
		}
		w.met(src, done, c)
		return
	}
	row.open--
	if post.during(row.start, row.end) {
		w.of(row).post(row.start, row.end, post)
	}
}

// of is what is known of the messages of a call of this epoch.
func (w *WaitSums) of(row *waitRow) *callWaits {
	if row.calls == 0 {
		w.calls = append(w.calls, callWaits{})
		row.calls = int32(len(w.calls))
	}
	return &w.calls[row.calls-1]
}

// during says whether a receive was posted between start and end of a call.
func (p postedAt) during(start, end int64) bool {
	return p.ns != NullInt64 && start != NullInt64 && end != NullInt64 && p.ns > start && p.ns < end
}

func (c *callWaits) post(start, end int64, p postedAt) {
	if !p.during(start, end) || c.posted && (p.ns < c.postNs || p.ns == c.postNs && p.dst >= c.dst) {
		return
	}
	c.posted, c.postNs, c.dst = true, p.ns, p.dst
}

// received tells the call that completed the receive when the message was sent.
func (w *WaitSums) received(m *Messages, i int, done int64) {
	dst := m.Dst[i]
	late := m.SendStartNs[i] != NullInt64 && m.RecvStartNs[i] != NullInt64 && m.SendStartNs[i] >= m.RecvStartNs[i]
	row := w.row(dst, done)
	if row == nil {
		c := w.carry(dst, done)
		if late {
			c.waits.receive(m, i)
		}
		w.met(dst, done, c)
		return
	}
	row.open--
	if late {
		w.of(row).receive(m, i)
	}
}

func (c *callWaits) receive(m *Messages, i int) {
	src, sent, start, end := m.Src[i], m.SendStartNs[i], m.RecvStartNs[i], m.RecvEndNs[i]
	if end != NullInt64 {
		c.late++
		c.lateSrc, c.lateBytes, c.lateNs = src, m.Bytes[i], end-sent
	}
	if sent > start && (!c.waited || sent > c.sendNs || sent == c.sendNs && src < c.src) {
		c.waited, c.sendNs, c.src, c.start, c.end = true, sent, src, start, end
	}
}

// met notes that a message of a call of another epoch was met, and adds the call up when it was the last.
func (w *WaitSums) met(rank int32, seq int64, c *carryRow) {
	if c.open--; c.open == 0 && c.there && w.dense {
		w.add(rank, c.start, &c.waits)
		delete(w.carried, sideKey(rank, seq))
	}
}

// endEpoch adds up the calls all of whose messages were met, and keeps the others.
func (w *WaitSums) endEpoch() {
	if !w.dense {
		for i, key := range w.keys {
			rank, seq := sideOf(key)
			w.endRow(rank, seq, &w.rows[i])
		}
	} else {
		for rank := range w.ranks {
			r := &w.ranks[rank]
			for i := range r.n {
				w.endRow(int32(rank), r.first+i, &w.rows[r.base+int(i)])
			}
		}
	}
	if len(w.carried)+len(w.pending) > carriedRows {
		w.tooLong = true
		clear(w.carried)
		clear(w.pending)
	}
}

// carriedRows is the most rows that are carried from an epoch to the next: about 1 GB.
const carriedRows = 1 << 22

// endRow ends the epoch for a row.
func (w *WaitSums) endRow(rank int32, seq int64, row *waitRow) {
	if !row.there {
		return
	}
	if row.done != NullInt64 && row.known {
		w.pending[sideKey(rank, seq)] = row.done
	}
	switch {
	case row.open > 0 || !w.dense && (row.calls > 0 || row.open != 0):
		c := w.carry(rank, seq)
		c.waitRow = *row
		if row.calls > 0 {
			c.waits = w.calls[row.calls-1]
		}
	case row.calls > 0:
		w.add(rank, row.start, &w.calls[row.calls-1])
	}
}

// add adds up a call of that rank that began at start.
func (w *WaitSums) add(rank int32, start int64, c *callWaits) {
	if c.waited {
		ns := c.sendNs - c.start
		if c.end != NullInt64 {
			ns = min(ns, c.end-c.start)
		}
		if ns > 0 {
			w.pair(c.src, rank).send.add(ns)
		}
	} else if c.posted {
		w.pair(rank, c.dst).recv.add(c.postNs - start)
	}
	if c.late == 1 {
		w.timed(sizeKey{c.lateBytes, w.pair(c.lateSrc, rank).sameHost}, c.lateNs)
	}
}

// timed counts a message whose time is known.
func (w *WaitSums) timed(size sizeKey, ns int64) {
	last := &w.lastTimed
	if last.times != nil && last.ns == ns && last.size == size { // as with rounded times nearly always
		last.times.messages++
		return
	}
	key := transferKey{size, transferStep(ns)}
	t := w.times[key]
	if t == nil {
		if w.tooMany = w.tooMany || len(w.times) == transferRows; w.tooMany {
			return
		}
		t = &transferTimes{min: ns, max: ns}
		w.times[key] = t
	}
	t.messages++
	t.min, t.max = min(t.min, ns), max(t.max, ns)
	*last = lastTimed{size, ns, t}
}

// lastTimed is the time that was counted last, and where.
type lastTimed struct {
	size  sizeKey
	ns    int64
	times *transferTimes
}

// transferStep is the number of the step of 1/128 of a natural logarithm that a time is in; -1 of no time and less.
func transferStep(ns int64) int32 {
	if ns <= 0 {
		return -1
	}
	return int32(math.Floor(math.Log(float64(ns)) * 128))
}

// pair is the row of waits of a pair of ranks.
func (w *WaitSums) pair(src, dst int32) *pairWaits {
	key := uint64(uint32(src))<<32 | uint64(uint32(dst))
	at := &w.recent[(key*0x9e3779b97f4a7c15)>>56]
	if at.pair != nil && at.key == key {
		return at.pair
	}
	p := w.pairs[key]
	if p == nil {
		p = &pairWaits{}
		if w.hosts[src] == w.hosts[dst] {
			p.sameHost = 1
		}
		w.pairs[key] = p
	}
	*at = recentPair{key, p}
	return p
}

// Rows ends the sums and returns the rows of waits, transfers and collective_waits, those that there are: no transfers where they would be too many,
// and no table for which too much would have to be kept.
func (w *WaitSums) Rows() (rows []Batch) {
	w.flush(math.MaxInt32)
	if !w.tooLong {
		rows = append(rows, w.waits())
		if t := w.transfers(); t != nil {
			rows = append(rows, t)
		}
	}
	if c := w.collectives.rows(); c != nil {
		rows = append(rows, c)
	}
	return rows
}

// waits are the rows of waits.
func (w *WaitSums) waits() *Waits {
	for key, c := range w.carried { // messages without a partner
		rank, _ := sideOf(key)
		w.add(rank, c.start, &c.waits)
	}
	clear(w.carried)
	out := &Waits{}
	for _, key := range sorted(w.pairs) {
		p := w.pairs[key]
		out.Append(&Wait{Src: int32(key >> 32), Dst: int32(key), Messages: p.messages,
			LateSends: p.send.waits, LateSendNs: p.send.ns, LateSendMaxNs: p.send.max,
			LateReceives: p.recv.waits, LateReceiveNs: p.recv.ns, LateReceiveMaxNs: p.recv.max})
	}
	return out
}

func sorted[V any](m map[uint64]V) []uint64 {
	keys := make([]uint64, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// transfers are the rows of transfers: of each size all, and behind them those that are timed, by step.
func (w *WaitSums) transfers() *Transfers {
	if w.tooMany {
		return nil
	}
	out := &Transfers{}
	var rows []Transfer
	for key, t := range w.times {
		rows = append(rows, Transfer{SameHost: key.sameHost, Bytes: key.bytes, Timed: 1, Step: key.step, Messages: t.messages, MinNs: t.min, MaxNs: t.max})
	}
	for key, n := range w.sizes {
		rows = append(rows, Transfer{SameHost: key.sameHost, Bytes: key.bytes, Messages: *n, MinNs: NullInt64, MaxNs: NullInt64})
	}
	slices.SortFunc(rows, func(a, b Transfer) int {
		return cmp.Or(cmp.Compare(a.SameHost, b.SameHost), cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.Timed, b.Timed), cmp.Compare(a.Step, b.Step))
	})
	for i := range rows {
		out.Append(&rows[i])
	}
	return out
}
