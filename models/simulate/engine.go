package simulate

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/commq/commq/models"
	"github.com/commq/commq/schema"
)

// stream is what a thread of a rank does, one operation after the other.
type stream struct {
	queue opQueue
	op    op
	burst Picoseconds // what it computes, or is busy, next

	entered, blockedAt, readyAt, rowStart Picoseconds

	rank, node int32
	next       int32 // in a node's queue
	wait       int   // how many of the requests that it waits for it has passed

	locals []localRow // rows in the burst

	going   bool // it has a burst to begin, at readyAt
	startup bool // the burst is the latency of op
	paid    bool // op's latency is over
	inRow   bool // op goes on with a row
	blocked bool
	over    bool

	collectives, collectiveWaits int32 // Dimemas: nonblocking ones that are over, and that it waits for

	times Times
}

// localRow is a row that only computes: when it begins and ends, from the beginning of its burst.
type localRow struct {
	seq        int64
	begin, end Picoseconds
}

// node is a node of the machine: CPUs, and a queue of the streams that want one.
type node struct {
	models.Node
	cpus, busy  int32
	first, last int32 // streams that are ready
	dirty       bool
	port        port    // to the network
	buses       busPool // inside
}

// request is what a stream can wait for.
type request struct {
	next    int32 // free one
	waiter  int32 // stream
	channel int32
	peer    int32 // of a receive: the source; of a send: the destination; of a collective: the communicator
	site    int32
	posted  Picoseconds // of a receive
	seq     int64       // of the row that made it, and its call
	call    int16
	kind    opKind // that made it
	done    bool
	orphan  bool // nobody waits for it
	own     bool // of a rank, whose later operations use it again: rankRows.free
}

// engine is a simulation under way.
type engine struct {
	rules
	machine *models.Machine `snapshot:"-"`
	program *Program        `snapshot:"-"`
	options *Options        `snapshot:"-"`
	input   *rows
	more    func(add func(*schema.Events) error) error `snapshot:"-"`
	epochs  int                                        // that were read
	ended   bool                                       // there are no more rows
	border  bool                                       // rows were read since the state could be kept last

	now      Picoseconds
	events   eventQueue
	streams  []stream
	nodes    []node
	nodeOf   []int32 // of each rank
	paces    []pace  // of each node
	ports    []port  // of ranks, inside their nodes
	dirty    []int32
	requests []request
	freeReq  int32
	pool     opPool

	messages []message
	freeMsg  int32
	channels channelTable
	buses    busPool
	comms    []comm
	colls    []collective
	freeColl []int32
	network  transferCache
	inside   transferCache

	probing []probing
	free    bool // messages never wait for links or buses

	lookahead bool    // streams run ahead of the events: see ahead.go
	going     []int32 // streams that have a burst to begin
	current   int32   // the stream that runs ahead; none

	running int
	result  Result
	err     error `snapshot:"-"`
}

// run simulates.
func (e *engine) run() error {
	if e.options.State == nil {
		e.begin()
	} else if err := e.restore(); err != nil {
		return err
	}
	var ev event
	for e.err == nil {
		if e.border {
			if err := e.keep(); err != nil {
				return err
			}
		}
		if !e.events.pop(&ev) {
			break
		}
		if ev.at >= models.Forever {
			return fmt.Errorf("the program takes longer than %d days of simulated time; is the machine's bandwidth that of a file of other units?", int64(models.Forever)/86_400_000_000_000_000)
		}
		e.now = ev.at
		e.result.Events++
		switch ev.kind {
		case burstEnds:
			e.burstEnds(ev.what)
		case messageReady:
			e.transport(ev.what)
		case messageEnds:
			e.messageEnds(ev.what)
		case collectiveEnds:
			e.collectiveEnds(ev.what)
		case probeWakes:
			e.probeWakes(ev.what)
		case messageArrives:
			e.messageArrives(ev.what)
		case receivePosted:
			e.receivePosted(ev.what)
		case messageStarts:
			e.launch(ev.what)
		}
		if len(e.dirty) > 0 || len(e.going) > 0 {
			e.settle()
		}
	}
	if e.err != nil {
		return e.err
	}
	return e.left()
}

// begin makes the streams ready.
func (e *engine) begin() {
	for i := range e.streams {
		if !e.next(int32(i)) {
			e.finish(int32(i))
			continue
		}
		e.ready(int32(i), false)
	}
	e.settle()
}

// fail ends the simulation.
func (e *engine) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// next takes the stream's next operation, with what comes before it that only computes; false when there is none.
func (e *engine) next(i int32) bool {
	s := &e.streams[i]
	s.inRow = s.op.flags&flagPart != 0
	s.burst = 0
	begin, inLocal, atOnce := Picoseconds(0), false, true
	for {
		if s.queue.empty() && !e.refill(s) {
			if len(s.locals) == 0 {
				return false
			}
			if e.arrivalOrder && atOnce { // Dimemas wants no CPU for that
				e.doneLocals(s)
				return false
			}
			s.op = op{opType: opType{kind: opEnd}}
			return true
		}
		e.pool.take(&s.queue, &s.op, s.rank)
		e.result.Operations++
		atOnce = atOnce && s.op.flags&flagAtOnce != 0
		s.burst = min(s.burst+e.paces[s.node].scaled(s.op.compute), models.Forever)
		if s.op.kind != opLocal {
			return true
		}
		if !inLocal {
			begin = s.burst
		}
		if inLocal = s.op.flags&flagPart != 0; !inLocal {
			s.locals = append(s.locals, localRow{s.op.seq, begin, s.burst})
		}
	}
}

// refill reads rows until the stream has an operation; false when it has none left.
func (e *engine) refill(s *stream) bool {
	for s.queue.empty() {
		if e.ended || e.err != nil {
			return false
		}
		err := e.more(e.input.add)
		switch {
		case errors.Is(err, io.EOF):
			e.ended, err = true, nil
		case err == nil:
			e.epochs++
			e.border = true
			err = e.fits(s)
		}
		if err != nil {
			e.fail(err)
		}
	}
	return true
}

// pace is what everything on a node asks for: that of many nodes is in the cache.
type pace struct {
	cpuRatio        float64
	latency, inside Picoseconds // to other nodes, and between its ranks
}

// scaled is how long a burst takes on the node.
func (n *pace) scaled(ns int64) Picoseconds {
	switch {
	case ns <= 0 || n.cpuRatio == 0:
		return 0
	case n.cpuRatio == 1:
		if ns > int64(models.Forever)/1000 {
			return models.Forever
		}
		return Picoseconds(ns * 1000)
	}
	return Picoseconds(min(math.Round(float64(ns)*1000/n.cpuRatio), float64(models.Forever)))
}

// after is a time so much later.
func (e *engine) after(d Picoseconds) Picoseconds { return min(e.now+d, models.Forever) }

// finish ends a stream.
func (e *engine) finish(i int32) {
	s := &e.streams[i]
	s.over = true
	e.running--
	s.times.Finish = e.now
}

// ready puts a stream into its node's queue, at the front when it had the CPU until now.
func (e *engine) ready(i int32, front bool) {
	s := &e.streams[i]
	s.readyAt = e.now
	if e.lookahead {
		s.going = true
		if i != e.current {
			e.going = append(e.going, i)
		}
		return
	}
	n := &e.nodes[s.node]
	switch {
	case n.first == none:
		n.first, n.last, s.next = i, i, none
	case front:
		s.next, n.first = n.first, i
	default:
		e.streams[n.last].next, n.last, s.next = i, i, none
	}
	if !n.dirty {
		n.dirty = true
		e.dirty = append(e.dirty, s.node)
	}
}

// dispatch gives the node's CPUs to what is ready there.
func (e *engine) dispatch(n *node) {
	for n.first != none && n.busy < n.cpus {
		e.dispatchOne(n)
	}
}

// settle dispatches on the nodes where something became ready, in their order.
func (e *engine) settle() {
	e.advance()
	if len(e.dirty) > 1 {
		slices.Sort(e.dirty)
	}
	for _, i := range e.dirty {
		n := &e.nodes[i]
		n.dirty = false
		e.dispatch(n)
	}
	e.dirty = e.dirty[:0]
}

// burstEnds goes on with what the stream does after computing.
func (e *engine) burstEnds(i int32) {
	s := &e.streams[i]
	ahead := e.lookahead
	if !ahead {
		e.nodes[s.node].busy--
	}
	if s.startup {
		s.startup, s.paid = false, true
		s.times.Latency += s.burst
	} else {
		s.times.Compute += s.burst
		s.entered = e.now
		if !s.inRow {
			s.rowStart = e.now
		}
	}
	e.step(i)
	if ahead {
		return
	}
	if n := &e.nodes[s.node]; n.first != none && n.busy < n.cpus {
		e.dispatchOne(n)
	}
}

// dispatchOne gives a free CPU to the first stream that is ready.
func (e *engine) dispatchOne(n *node) {
	i := n.first
	s := &e.streams[i]
	n.first = s.next
	n.busy++
	s.times.CPUWait += e.now - s.readyAt
	if len(s.locals) > 0 && !s.startup {
		e.doneLocals(s)
	}
	e.events.push(e.after(s.burst), burstEnds, i)
}

// doneLocals tells of the rows in the burst that begins.
func (e *engine) doneLocals(s *stream) {
	if e.options.Done != nil {
		for _, l := range s.locals {
			e.options.Done(s.rank, l.seq, e.after(l.begin), e.after(l.end))
		}
	}
	s.locals = s.locals[:0]
}

// step does the stream's operation.
func (e *engine) step(i int32) {
	s := &e.streams[i]
	switch s.op.kind {
	case opEnd:
		e.finish(i)
	case opMark:
		e.marked(i)
	case opSend, opIsend:
		e.send(i)
	case opRecv:
		e.recv(i)
	case opIrecv:
		e.irecv(i)
	case opWait:
		e.wait(i)
	case opProbe:
		e.probe(i)
	case opCollective, opIcollective:
		e.collective(i)
	case opPut, opGet:
		e.oneSided(i)
	}
}

// leastLatency is the shortest latency of CPUs in Dimemas: less than a nanosecond is none.
const leastLatency = Picoseconds(1000)

// pays makes the stream busy for a latency before its operation; false when it need not, or was.
func (e *engine) pays(i int32, latency Picoseconds) bool {
	s := &e.streams[i]
	if s.paid || latency < leastLatency || !e.cpuLatency {
		s.paid = false
		return false
	}
	s.startup, s.burst = true, latency
	e.ready(i, true)
	return true
}

// block stops the stream until something completes its operation.
func (e *engine) block(i int32) {
	s := &e.streams[i]
	s.blocked, s.blockedAt = true, e.now
}

// completed ends the stream's operation, and it goes on to the next: front when it still has the CPU.
func (e *engine) completed(i int32, front bool) bool {
	if !e.ends(i) {
		return false
	}
	e.ready(i, front)
	return true
}

// ends ends the stream's operation and takes the next; false when there is none.
func (e *engine) ends(i int32) bool {
	s := &e.streams[i]
	in := e.now - s.entered
	if s.op.kind >= opSend {
		if s.op.kind >= opCollective && s.op.kind <= opIcollective {
			s.times.Collective += in
		} else {
			s.times.PointToPoint += in
		}
	}
	if s.blocked {
		s.blocked = false
		s.times.Waiting += e.now - s.blockedAt
	}
	if s.op.flags&flagPart == 0 && e.options.Done != nil {
		e.options.Done(s.rank, s.op.seq, s.rowStart, e.now)
	}
	if !e.next(i) {
		e.finish(i)
		return false
	}
	return true
}

// marked goes on after a mark, by the rule of Dimemas for its event records: an operation without a burst before it comes at once, a
// burst waits behind those that are ready.
func (e *engine) marked(i int32) {
	if !e.ends(i) {
		return
	}
	if !e.atOnce(i) {
		e.ready(i, false)
	}
}

// atOnce does the stream's operation when there is no burst before it, not even one of no time; else false.
func (e *engine) atOnce(i int32) bool {
	s := &e.streams[i]
	if s.op.flags&flagAtOnce == 0 || len(s.locals) > 0 {
		return false
	}
	s.entered = e.now
	if !s.inRow {
		s.rowStart = e.now
	}
	e.step(i)
	return true
}

// continues is completed for a stream that Dimemas lets run on: an operation without a burst before it comes at once, and a burst
// waits behind those that are ready.
func (e *engine) continues(i int32) {
	if !e.ends(i) {
		return
	}
	s := &e.streams[i]
	if !e.atOnce(i) {
		e.ready(i, false)
	}
	if n := &e.nodes[s.node]; n.first != none && n.busy < n.cpus {
		e.dispatchOne(n)
	}
}

// resumed is completed for a stream that was blocked; where a CPU of its node is free it goes on at once.
func (e *engine) resumed(i int32) {
	if e.completed(i, false) && !e.lookahead {
		if n := &e.nodes[e.streams[i].node]; n.first != none && n.busy < n.cpus {
			e.dispatchOne(n)
		}
	}
}

// newRequest is a request of an operation that will be read.
func (e *engine) newRequest() int32 {
	r := e.freeReq
	if r == none {
		e.requests = append(e.requests, request{})
		r = int32(len(e.requests) - 1)
	} else {
		e.freeReq = e.requests[r].next
	}
	e.requests[r] = request{next: none, waiter: none, channel: none}
	return r
}

// freeRequest is when nobody needs a request any more.
func (e *engine) freeRequest(r int32) {
	if q := &e.requests[r]; q.own { // whose it was stays: a deadlock may be told of it
		q.waiter, q.channel, q.done = none, none, false
	} else {
		q.next, e.freeReq = e.freeReq, r
	}
}

// of says whose request it is.
func (q *request) of(o *op) {
	q.kind, q.peer, q.seq, q.site, q.call = o.kind, o.peer, o.seq, o.site, o.call
	if o.kind == opIcollective {
		q.peer = o.comm
	}
}
