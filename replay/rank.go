package replay

import (
	"slices"

	"github.com/commq/commq/schema"
)

// rankState has a rank's operations while they are made, and its open requests and windows.
type rankState struct {
	rank         int32
	constructors []constructor
	firstSpare   int64 // index behind the communicators of the run
	spares       int   // communicators that the run does not have

	out      rankSchedule
	pending  int64 // compute time of rows that are left out, ns
	area     area
	requests map[int64]*request   // open, by serial number
	made     map[int64]*request   // persistent, by row
	done     map[int64][]*request // completed by a row, by row
	messages map[int64]int64      // of matched probes, by row
	free     []int64              // slots of requests
	starting []*request           // of an MPI_Startall that more rows may belong to
	startRow schema.Event
	ended    bool
	window   *windowState // of its rows; nil: none
	prologue []int64      // words before the window
}

// request is a request of a rank.
type request struct {
	slot       int64
	piece      piece
	persistent bool
	completed  bool
	call       schema.CallID // that made it
	made       *persistent   // of a persistent receive
}

func newRankState(rank int32, found *rankFindings, comms *commTable) *rankState {
	r := &rankState{rank: rank, constructors: found.constructors, firstSpare: int64(len(comms.list)),
		requests: map[int64]*request{}, made: map[int64]*request{}, done: map[int64][]*request{},
		messages: map[int64]int64{}}
	r.out.self = -1
	for k, c := range comms.list {
		if c.kind == schema.CommSelf && c.groups[0][0] == rank {
			r.out.self = int64(k)
		}
	}
	return r
}

// emit appends an operation: its code, flags and number of arguments, the compute time before it, its row, and the
// arguments.
func (r *rankState) emit(op opcode, e *schema.Event, args ...int64) {
	flags := int64(0)
	if e.ErrorClass != schema.NullInt32 {
		flags = flagMayFail
	}
	compute := r.pending + max(e.ComputeNs, 0)
	r.pending = 0
	r.out.words = append(r.out.words, int64(op)|flags<<16|int64(len(args))<<32, compute, e.Seq)
	r.out.words = append(r.out.words, args...)
}

// leaveOut keeps only the compute time of a row.
func (r *rankState) leaveOut(e *schema.Event) { r.pending += max(e.ComputeNs, 0) }

// post makes a request for a row. recvBytes and sendBytes bound what it receives and sends.
func (r *rankState) post(e *schema.Event, recvBytes, sendBytes int64, persistent bool) *request {
	q := &request{persistent: persistent, call: schema.CallID(e.Call)}
	if recvBytes > 0 {
		q.piece = r.area.allocate(recvBytes)
	}
	r.reserveSend(sendBytes)
	if n := len(r.free); n > 0 {
		q.slot = r.free[n-1]
		r.free = r.free[:n-1]
	} else {
		q.slot = r.out.requests
		r.out.requests++
	}
	if e.Request != schema.NullInt64 {
		r.requests[e.Request] = q
	}
	if persistent {
		r.made[e.Seq] = q
	} else {
		r.activate(e, q)
	}
	return q
}

// activate notes that a request is active, and the row that completes it.
func (r *rankState) activate(e *schema.Event, q *request) {
	q.completed = false
	if r.window != nil && !slices.Contains(r.window.posted[r.rank], q) {
		r.window.posted[r.rank] = append(r.window.posted[r.rank], q)
	}
	if e.DoneSeq != schema.NullInt64 {
		r.done[e.DoneSeq] = append(r.done[e.DoneSeq], q)
	}
}

// complete frees the resources of a completed request, unless it can be started again.
func (r *rankState) complete(q *request) {
	q.completed = true
	if !q.persistent {
		r.free = append(r.free, q.slot)
		r.area.release(q.piece)
	}
}

// reserveSend makes the send area at least this large.
func (r *rankState) reserveSend(bytes int64) { r.out.sendArea = max(r.out.sendArea, bytes) }

// reserveReceive returns the offset of a piece of the receive area that is in use during one call.
func (r *rankState) reserveReceive(bytes int64) int64 {
	p := r.area.allocate(bytes)
	r.area.release(p)
	return p.offset
}

// bsendOverhead is an upper bound of what an MPI library adds to a buffered message, in bytes.
const bsendOverhead = 512

// reserveBuffered makes room for another buffered message. The number of messages that are buffered at the same time
// is not known, so there is room for all of them, up to a bound.
func (r *rankState) reserveBuffered(bytes int64) {
	const most = 256 << 20
	r.out.bsend = max(min(r.out.bsend+bytes+bsendOverhead, most), bytes+bsendOverhead)
}

// spare returns the index of a further communicator that the run does not have.
func (r *rankState) spare() int64 {
	r.spares++
	return r.firstSpare + int64(r.spares-1)
}

// continuesStartall reports whether the row starts another request of the MPI_Startall of the row before: it has no
// compute time of its own, and a different request.
func (r *rankState) continuesStartall(e *schema.Event) bool {
	f := &r.startRow
	if e.Call != f.Call || e.Callsite != f.Callsite || e.ComputeNs != schema.NullInt64 && e.ComputeNs != 0 ||
		e.StartNs != f.EndNs {
		return false
	}
	return !slices.ContainsFunc(r.made[e.InitSeq].siblings(), func(q *request) bool {
		return slices.Contains(r.starting, q)
	})
}

// flushStartall emits the MPI_Startall of the requests gathered so far.
func (r *rankState) flushStartall() {
	if len(r.starting) == 0 {
		return
	}
	args := []int64{int64(len(r.starting))}
	for _, q := range r.starting {
		args = append(args, q.slot)
	}
	r.emit(opcodes["Startall"], &r.startRow, args...)
	r.starting = r.starting[:0]
}

// enterWindow directs the following operations into a window.
func (r *rankState) enterWindow(w *windowState) {
	if r.window == w {
		return
	}
	r.leaveWindow()
	r.window, r.prologue, r.pending = w, r.out.words, 0
	r.out.words = nil
}

// leaveWindow ends the rank's window: it waits for open requests and adds the remaining compute time.
func (r *rankState) leaveWindow() {
	w := r.window
	if w == nil {
		return
	}
	r.flushStartall()
	e := schema.NullEvent
	e.Rank, e.Seq = r.rank, w.begin(r.rank)+w.Rows[r.rank]-1
	args := []int64{0}
	for _, q := range w.posted[r.rank] {
		if !q.completed {
			q.completed = true
			args[0]++
			args = append(args, q.slot)
		}
	}
	clear(r.done) // completed by rows outside the window
	if args[0] > 0 {
		r.emit(opcodes["Waitall"], &e, args...)
	} else {
		r.emit(opcodes["Compute"], &e)
	}
	w.out[r.rank] = r.out.words
	r.window, r.out.words = nil, r.prologue
}

// appendWindows appends the windows to the operations before them.
func (r *rankState) appendWindows(windows []*windowState) {
	e := schema.NullEvent
	e.Rank = r.rank
	for i, w := range windows {
		args := []int64{int64(len(w.variants)), 0}
		for k := range w.variants {
			times := w.times(r.rank, k, w.out[r.rank])
			args[1] = int64(len(times))
			args = append(args, times...)
		}
		r.emit(opcodes["Phase"], &e, args...)
		r.out.words = append(r.out.words, w.out[r.rank]...)
		r.emit(opcodes["Phase_end"], &e, int64(i))
	}
}
