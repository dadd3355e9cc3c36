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

	pairs       pairTable
	recent      [256]*pairWaits
	sizes       map[sizeKey]*int64
	recentSizes [256]recentSize
	times       map[transferKey]*transferTimes
	tooMany     bool // different sizes and times
	tooLong     bool // what is carried

	lastTimed lastTimed

	collectives collectiveSums

	events  []*Events // that were added and are not laid out yet: the columns that are looked at
	last    int32     // the epoch of the last row of events that was added
	laidOut bool      // the rows of events that were added are, and their messages come
	later   Messages  // of epochs whose rows of events have not come
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

// recentSize is a size that came lately, with its count; nil: none did.
type recentSize struct {
	key      sizeKey
	messages *int64
}

// pairWaits is a row of waits. It has no pointers: there may be many millions.
type pairWaits struct {
	key        uint64 // src<<32 | dst
	messages   int64
	send, recv waitSum
	sameHost   int32
}

// pairTable finds pairs by their keys. They lie in chunks and stay where they are: a slice of all would have to be copied as it grows.
type pairTable struct {
	chunks [][]pairWaits
	n      int
	slots  []int32 // an open hash table of places of pairs, plus 1; its size is a power of two
}

const pairChunk = 1 << 9

// at is the pair at a place.
func (t *pairTable) at(place int32) *pairWaits { return &t.chunks[place/pairChunk][place%pairChunk] }

// of is the pair of that key; added says that it was not there.
func (t *pairTable) of(key uint64) (p *pairWaits, added bool) {
	if 2*t.n >= len(t.slots) {
		t.grow()
	}
	slot := t.slot(key)
	if at := t.slots[slot]; at != 0 {
		return t.at(at - 1), false
	}
	if t.n%pairChunk == 0 {
		t.chunks = append(t.chunks, make([]pairWaits, 0, pairChunk))
	}
	last := &t.chunks[len(t.chunks)-1]
	*last = append(*last, pairWaits{key: key})
	t.n++
	t.slots[slot] = int32(t.n)
	return t.at(int32(t.n - 1)), true
}

// slot is where the key's place is in slots, or would be.
func (t *pairTable) slot(key uint64) uint64 {
	mask := uint64(len(t.slots) - 1)
	h := key * 0x9e3779b97f4a7c15
	for i := (h ^ h>>32) & mask; ; i = (i + 1) & mask {
		if at := t.slots[i]; at == 0 || t.at(at-1).key == key {
			return i
		}
	}
}

func (t *pairTable) grow() {
	t.slots = make([]int32, max(1<<8, 2*len(t.slots)))
	for at := range int32(t.n) {
		t.slots[t.slot(t.at(at).key)] = at + 1
	}
}

// sorted are the places of all pairs, in the order of their keys.
func (t *pairTable) sorted() []int32 {
	order := make([]int32, t.n)
	for at := range order {
		order[at] = int32(at)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(t.at(a).key, t.at(b).key) })
	return order
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
		sizes: map[sizeKey]*int64{}, times: map[transferKey]*transferTimes{}, collectives: newCollectiveSums(len(hosts))}
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
	n := e.Len()
	if n == 0 {
		return
	}
	if w.laidOut || len(w.events) > 0 && e.Epoch[0] > w.last {
		w.flush(w.last)
	}
	w.last = e.Epoch[n-1]
	w.collectives.keep(e)
	w.events = append(w.events, &Events{Rank: slices.Clone(e.Rank), Seq: slices.Clone(e.Seq), Class: slices.Clone(e.Class), StartNs: slices.Clone(e.StartNs),
		EndNs: slices.Clone(e.EndNs), DoneSeq: slices.Clone(e.DoneSeq), SendWorld: slices.Clone(e.SendWorld), RecvWorld: slices.Clone(e.RecvWorld), Request: slices.Clone(e.Request)})
}

// AddMessages adds rows of messages. Those of an epoch come behind all rows of events of it, and before those of the next.
func (w *WaitSums) AddMessages(m *Messages) {
	if w.tooLong || m.Len() == 0 {
		return
	}
	if len(w.events) > 0 {
		w.lay()
	}
	for i, epoch := range m.Epoch {
		if w.laidOut && epoch <= w.last {
			w.message(m, i)
			continue
		}
		var row Message
		w.later.Append(waitMessage(m, i, &row))
	}
}

// lay lays out the rows of events that were kept, which are not needed as such any more.
func (w *WaitSums) lay() {
	w.begin(w.events)
	w.events, w.laidOut = nil, true
}

// flush sums what is left of the rows of events that were kept, and messages up to that epoch: the row that sent a message is in no later one.
func (w *WaitSums) flush(epoch int32) {
	if !w.laidOut {
		w.lay()
	}
	var row Message
	later := w.later
	w.later = Messages{}
	for i, of := range later.Epoch {
		if of <= epoch {
			w.message(&later, i)
		} else {
			w.later.Append(waitMessage(&later, i, &row))
		}
	}
	w.finish()
	w.laidOut = false
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
	w.begin(events)
	for _, m := range messages {
		for i := range m.Src {
			w.message(m, i)
		}
		if w.tooLong { // and there will be no rows of waits and transfers
			break
		}
	}
	w.finish()
}

// begin lays out the rows of events of an epoch.
func (w *WaitSums) begin(events []*Events) {
	w.layOut(events)
	for _, e := range events {
		for i := range e.Rank {
			w.post(e, i)
		}
	}
}

// finish ends the epoch, all messages of which were added.
func (w *WaitSums) finish() {
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
	w.size(sizeKey{m.Bytes[i], pair.sameHost})
	w.sent(m, i)
	if done := m.RecvDoneSeq[i]; done != NullInt64 {
		w.received(m, i, done)
	}
}

// size counts a message of a size.
func (w *WaitSums) size(key sizeKey) {
	last := &w.recentSizes[(uint64(key.bytes)*0x9e3779b97f4a7c15^uint64(key.sameHost)<<56)>>56]
	if last.messages == nil || last.key != key {
		n := w.sizes[key]
		if n == nil {
			if w.tooMany = w.tooMany || len(w.sizes) == transferRows; w.tooMany {
				return
			}
			n = new(int64)
			w.sizes[key] = n
		}
		*last = recentSize{key, n}
	}
	*last.messages++
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
	if *at != nil && (*at).key == key {
		return *at
	}
	p, added := w.pairs.of(key)
	if added && w.hosts[src] == w.hosts[dst] {
		p.sameHost = 1
	}
	*at = p
	return p
}

// givenRows is how many rows of a table are made at a time: those of a row group.
const givenRows = 1 << 20

// Rows ends the sums and gives the rows of waits, transfers and collective_waits to full, some at a time, in order; it returns the tables that there are: no
// transfers where they would be too many, and no table for which too much would have to be kept. It returns full's error.
func (w *WaitSums) Rows(full func(Batch) error) (tables []*Table, err error) {
	w.flush(math.MaxInt32)
	w.rows, w.calls, w.index, w.keys = nil, nil, nil, nil
	if !w.tooLong {
		tables = append(tables, &WaitsTable)
		if err := w.waits(full); err != nil {
			return nil, err
		}
		if t := w.transfers(); t != nil {
			tables = append(tables, &TransfersTable)
			if err := full(t); err != nil {
				return nil, err
			}
		}
	}
	w.pairs = pairTable{}
	clear(w.recent[:])
	there, err := w.collectives.rows(full)
	if there {
		tables = append(tables, &CollectiveWaitsTable)
	}
	return tables, err
}

// waits gives the rows of waits.
func (w *WaitSums) waits(full func(Batch) error) error {
	for key, c := range w.carried { // messages without a partner
		rank, _ := sideOf(key)
		w.add(rank, c.start, &c.waits)
	}
	clear(w.carried)
	out := &Waits{}
	for _, at := range w.pairs.sorted() {
		p := w.pairs.at(at)
		out.Append(&Wait{Src: int32(p.key >> 32), Dst: int32(p.key), Messages: p.messages,
			LateSends: p.send.waits, LateSendNs: p.send.ns, LateSendMaxNs: p.send.max,
			LateReceives: p.recv.waits, LateReceiveNs: p.recv.ns, LateReceiveMaxNs: p.recv.max})
		if out.Len() == givenRows {
			if err := full(out); err != nil {
				return err
			}
			out.Resize(0)
		}
	}
	return full(out)
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
