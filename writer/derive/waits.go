package derive

import (
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

// WaitSums makes the rows of the tables waits, transfers and collective_waits from those of events and messages.
// docs/method/wait-states.md defines waits and the times of messages. Its memory is bounded by an epoch, by the
// messages and collective operations in flight between epochs, by the pairs of ranks and members of communicators,
// and by transferRows.
//
// Rows come by increasing epoch, in one of two ways: Epoch takes all rows of an epoch at once; AddEvents and
// AddMessages take them in batches, the messages of an epoch after all its events. Rows ends the sums.
type WaitSums struct {
	calls       epochCalls
	pairs       pairSums
	transfers   transferSums
	collectives collectiveSums

	// Kept by AddEvents and AddMessages until the epoch is complete.
	events  []*schema.Events // not indexed yet; only the columns that are read
	last    int32            // epoch of the last row of events
	indexed bool             // the epoch's events are indexed; its messages follow
	later   schema.Messages  // messages of epochs whose events were not added yet
}

// NewWaitSums returns the sums of a run; hosts has the host of each rank. dense promises that the run has every row
// of events; otherwise every call that waited is kept until the end.
func NewWaitSums(hosts []int32, dense bool) *WaitSums {
	return &WaitSums{calls: newEpochCalls(len(hosts), dense), pairs: pairSums{hosts: hosts},
		transfers: newTransferSums(), collectives: newCollectiveSums(len(hosts))}
}

// AddComms adds members of communicators. Add all of them before any row of events.
func (w *WaitSums) AddComms(c *schema.Comms) { w.collectives.addComms(c) }

// waitEventColumns and waitMessageColumns are the columns that WaitSums reads.
var (
	waitEventColumns = []string{"rank", "seq", "epoch", "class", "start_ns", "end_ns", "send_world", "recv_world",
		"request", "done_seq", "call", "comm", "instance", "root_world", "init_seq", "error_class"}
	waitMessageColumns = []string{"src", "dst", "epoch", "bytes", "send_seq", "send_start_ns", "recv_done_seq",
		"recv_post_ns", "recv_start_ns", "recv_end_ns"}
)

// WaitColumns lists the columns of events, or of messages, that WaitSums reads.
func WaitColumns(t *schema.Table) []string {
	if t == &schema.EventsTable {
		return slices.Clone(waitEventColumns)
	}
	return slices.Clone(waitMessageColumns)
}

// AddEvents adds rows of events, by increasing epoch.
func (w *WaitSums) AddEvents(e *schema.Events) {
	n := e.Len()
	if n == 0 {
		return
	}
	if w.indexed || len(w.events) > 0 && e.Epoch[0] > w.last {
		w.flush(w.last)
	}
	w.last = e.Epoch[n-1]
	w.collectives.keep(e)
	w.events = append(w.events, &schema.Events{Rank: slices.Clone(e.Rank), Seq: slices.Clone(e.Seq),
		Class: slices.Clone(e.Class), StartNs: slices.Clone(e.StartNs), EndNs: slices.Clone(e.EndNs),
		DoneSeq: slices.Clone(e.DoneSeq), SendWorld: slices.Clone(e.SendWorld),
		RecvWorld: slices.Clone(e.RecvWorld), Request: slices.Clone(e.Request)})
}

// AddMessages adds rows of messages. Add the messages of an epoch after all its rows of events, and before the
// messages of the next.
func (w *WaitSums) AddMessages(m *schema.Messages) {
	if w.calls.tooMany || m.Len() == 0 {
		return
	}
	if len(w.events) > 0 {
		w.index()
	}
	var row schema.Message
	for i, epoch := range m.Epoch {
		if w.indexed && epoch <= w.last {
			w.message(m, i)
			continue
		}
		w.later.Append(waitMessage(m, i, &row))
	}
}

// index indexes the events that were kept, and frees them.
func (w *WaitSums) index() {
	w.calls.begin(w.events)
	w.events, w.indexed = nil, true
}

// flush ends an epoch: it adds the messages kept for it and for earlier epochs. A send's row is never in a later
// epoch than its message.
func (w *WaitSums) flush(epoch int32) {
	if !w.indexed {
		w.index()
	}
	var row schema.Message
	later := w.later
	w.later = schema.Messages{}
	for i, e := range later.Epoch {
		if e <= epoch {
			w.message(&later, i)
		} else {
			w.later.Append(waitMessage(&later, i, &row))
		}
	}
	w.endEpoch()
	w.indexed = false
}

// waitMessage copies the columns that WaitSums reads into m.
func waitMessage(b *schema.Messages, i int, m *schema.Message) *schema.Message {
	m.Src, m.Dst, m.Epoch, m.Bytes, m.SendSeq, m.SendStartNs = b.Src[i], b.Dst[i], b.Epoch[i], b.Bytes[i],
		b.SendSeq[i], b.SendStartNs[i]
	m.RecvDoneSeq, m.RecvPostNs, m.RecvStartNs, m.RecvEndNs = b.RecvDoneSeq[i], b.RecvPostNs[i], b.RecvStartNs[i],
		b.RecvEndNs[i]
	return m
}

// Epoch adds all rows of one or several epochs. Epochs come in order. It reads only the columns WaitColumns.
func (w *WaitSums) Epoch(events []*schema.Events, messages []*schema.Messages) {
	for _, e := range events {
		w.collectives.keep(e)
	}
	w.calls.begin(events)
	for _, m := range messages {
		for i := range m.Src {
			w.message(m, i)
		}
		if w.calls.tooMany { // there will be no rows of waits and transfers
			break
		}
	}
	w.endEpoch()
}

// endEpoch ends an epoch whose messages have all been added.
func (w *WaitSums) endEpoch() {
	w.collectives.epoch(&w.calls)
	w.calls.end(w.addCall)
}

// message adds a message.
func (w *WaitSums) message(m *schema.Messages, i int) {
	src, dst := m.Src[i], m.Dst[i]
	if ranks := uint32(len(w.pairs.hosts)); uint32(src) >= ranks || uint32(dst) >= ranks {
		return
	}
	pair := w.pairs.pair(src, dst)
	pair.messages++
	w.transfers.count(sizeKey{m.Bytes[i], pair.sameHost})
	w.calls.sent(m, i, w)
	if done := m.RecvDoneSeq[i]; done != schema.NullInt64 {
		w.calls.received(m, i, done, w)
	}
}

// addCall adds a call of that rank that began at start, when all its messages were added.
func (w *WaitSums) addCall(rank int32, start int64, c *callWaits) {
	if c.waited {
		ns := c.sendNs - c.start
		if c.end != schema.NullInt64 {
			ns = min(ns, c.end-c.start)
		}
		if ns > 0 {
			w.pairs.pair(c.src, rank).send.add(ns)
		}
	} else if c.posted {
		w.pairs.pair(rank, c.dst).recv.add(c.postNs - start)
	}
	if c.late == 1 {
		w.transfers.time(sizeKey{c.lateBytes, w.pairs.pair(c.lateSrc, rank).sameHost}, c.lateNs)
	}
}

// batchRows is the number of rows in a batch for a derived table, the same as in a row group.
const batchRows = 1 << 20

// Rows ends the sums and gives the rows of waits, transfers and collective_waits, in that order, to full in batches.
// It returns the tables that the run gets: not transfers if it would have too many rows, nor any table that would
// have taken too much memory. The error is full's.
func (w *WaitSums) Rows(full func(schema.Batch) error) (tables []*schema.Table, err error) {
	w.flush(math.MaxInt32)
	w.calls.freeEpoch()
	if !w.calls.tooMany {
		w.calls.endCarried(w.addCall)
		tables = append(tables, &schema.WaitsTable)
		if err := w.pairs.rows(full); err != nil {
			return nil, err
		}
		if t := w.transfers.rows(); t != nil {
			tables = append(tables, &schema.TransfersTable)
			if err := full(t); err != nil {
				return nil, err
			}
		}
	}
	w.pairs.free()
	ok, err := w.collectives.rows(full)
	if ok {
		tables = append(tables, &schema.CollectiveWaitsTable)
	}
	return tables, err
}
