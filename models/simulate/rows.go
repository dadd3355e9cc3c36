package simulate

import (
	"fmt"
	"strings"

	"github.com/commq/commq/schema"
)

// rows makes operations of rows of events.
type rows struct {
	e     *engine
	ranks []rankRows
	made  []madeRequest // by request
	chain []int32       // requests of the wait that is being made

	op              op    // that is being made
	comm, commIndex int32 // the last communicator that was looked up
}

// rankRows is what is known of a rank's rows so far.
type rankRows struct {
	free   int32            // first request of the rank's own that rows which are read wait for no more
	ends   []ending         // requests that a later row completes, by that row
	inits  map[int64]maker  // rows that made persistent requests and windows, by seq
	probed map[int64]int32  // requests of messages that a matched probe took, by the probe's seq
	parted map[int64]parted // partitioned sends that are started and not ready, by request
}

// madeRequest is what is known of a request while rows are read. What a rank waits for is in the order of its rows, so that the next
// operation of the rank can have the request of one that is waited for, long before either is simulated. Where threads share requests
// that is not so, and of Dimemas' collectives, of which any serves a wait.
type madeRequest struct {
	next int32 // in the chain of a wait, or of a rank's own that are free
	kind opKind
	comm int32 // index, of a collective
}

// ending is a row and the chain of requests that it completes.
type ending struct {
	seq         int64
	first, last int32
}

// maker is a row that made something.
type maker struct {
	call     schema.CallID
	instance int64   // of a window: the constructor's on its communicator
	fences   int64   // so far
	pending  []int32 // transfers of the window that nothing waited for yet
}

// parted is a partitioned send whose partitions are not all ready.
type parted struct {
	op    op
	count int64
}

func newRows(e *engine) *rows {
	r := &rows{e: e, ranks: make([]rankRows, len(e.program.Threads)), comm: schema.NullInt32}
	for i := range r.ranks {
		r.ranks[i].free = none
	}
	return r
}

// role is what a call does here, by its recorder in schema/calls.csv.
type role uint8

const (
	roleLocal role = iota
	roleMark
	roleSend
	roleIsend
	roleRecv
	roleIrecv
	roleSendrecv
	roleIsendrecv
	roleProbe
	roleMprobe
	roleMrecv
	roleImrecv
	roleComplete
	roleStart
	roleInit
	roleCollective
	roleIcollective
	roleWindow
	roleTransfer
	roleSync
	roleReady
	roleFile
)

// calls is what is known of every call; it is made once and only read.
var calls = func() []struct {
	role                     role
	sync, buffered, waitsRMA bool
	fence, partitioned       bool
} {
	byRecorder := map[string]role{"send": roleSend, "isend": roleIsend, "recv": roleRecv, "irecv": roleIrecv, "sendrecv": roleSendrecv,
		"isendrecv": roleIsendrecv, "probe": roleProbe, "iprobe": roleProbe, "mprobe": roleMprobe, "improbe": roleMprobe,
		"mrecv": roleMrecv, "imrecv": roleImrecv, "start": roleStart, "startall": roleStart, "send_init": roleInit, "recv_init": roleInit,
		"psend_init": roleInit, "precv_init": roleInit, "collective_init": roleInit, "collective": roleCollective, "comm_new": roleCollective,
		"spawn": roleCollective, "comm_connect": roleCollective, "comm_from_group": roleCollective, "file_open": roleCollective, "icollective": roleIcollective, "comm_idup": roleIcollective, "win_new": roleWindow, "rma": roleTransfer,
		"rma_request": roleTransfer, "win_sync": roleSync, "win_target": roleSync, "win_free": roleSync, "pready": roleReady,
		"pready_list": roleReady, "pready_range": roleReady, "mark": roleMark, "pcontrol": roleMark}
	t := make([]struct {
		role                     role
		sync, buffered, waitsRMA bool
		fence, partitioned       bool
	}, len(schema.Calls))
	for i, c := range schema.Calls {
		t[i].role = byRecorder[c.Recorder]
		name := strings.ToLower(c.Name)
		switch {
		case t[i].role != roleLocal:
		case c.Class == schema.ClassComplete:
			t[i].role = roleComplete
		case c.Class == schema.ClassIO:
			t[i].role = roleFile
		}
		t[i].sync = strings.Contains(name, "ssend")
		t[i].buffered = strings.Contains(name, "bsend")
		t[i].fence = c.ID == schema.CallWinFence
		t[i].partitioned = c.Recorder == "psend_init"
		if t[i].role == roleSync {
			t[i].waitsRMA = t[i].fence || strings.Contains(name, "flush") || strings.Contains(name, "unlock") || strings.Contains(name, "complete") || strings.Contains(name, "free")
		}
	}
	return t
}()

// Error classes of a receive that took its message all the same: MPI_ERR_TRUNCATE in MPICH and Open MPI.
const (
	truncatedMPICH   = 14
	truncatedOpenMPI = 15
)

// add takes rows in.
func (r *rows) add(b *schema.Events) error {
	for i := range b.Rank {
		if err := r.row(b, i); err != nil {
			return err
		}
	}
	return nil
}

// row makes the operations of row i.
func (r *rows) row(b *schema.Events, i int) error {
	rank := b.Rank[i]
	if rank < 0 || int(rank) >= len(r.ranks) {
		return fmt.Errorf("rank %d, seq %d: the run has %d ranks", rank, b.Seq[i], len(r.ranks))
	}
	if b.Call[i] < 0 || int(b.Call[i]) >= len(calls) {
		return fmt.Errorf("rank %d, seq %d: no MPI call has the number %d", rank, b.Seq[i], b.Call[i])
	}
	threads := max(r.e.program.Threads[rank], 1)
	if b.Thread[i] < 0 || b.Thread[i] >= threads {
		return fmt.Errorf("rank %d, seq %d: it is of thread %d, and the table ranks says that %d call MPI", rank, b.Seq[i], b.Thread[i], threads)
	}
	r.op = op{opType: opType{comm: b.Comm[i], site: b.Callsite[i], call: b.Call[i]}, compute: max(b.ComputeNs[i], 0), seq: b.Seq[i], req: none}
	if b.ComputeNs[i] == schema.NullInt64 {
		r.op.flags = flagAtOnce
	}
	c := &rowOf{rows: r, b: b, i: i, rank: rank, op: &r.op, known: &r.ranks[rank], queue: &r.e.streams[r.e.program.first[rank]+b.Thread[i]].queue}
	if err := c.make(); err != nil {
		return err
	}
	r.e.pool.put(c.queue, c.op, rank, r.chain)
	r.chain = r.chain[:0]
	return nil
}

// rowOf is a row whose operations are being made. The last of them is op.
type rowOf struct {
	*rows
	b     *schema.Events
	i     int
	rank  int32
	op    *op
	known *rankRows
	queue *opQueue
}

// more adds another operation to the row.
func (c *rowOf) more() {
	c.op.flags |= flagPart
	c.e.pool.put(c.queue, c.op, c.rank, c.chain)
	c.chain = c.chain[:0]
	*c.op = op{opType: opType{comm: c.b.Comm[c.i], site: c.op.site, call: c.op.call}, seq: c.op.seq, req: none}
}

func (c *rowOf) make() error {
	b, i := c.b, c.i
	known := calls[c.op.call]
	call := c.op.callID()
	what := known.role
	if what == roleStart {
		made, ok := c.known.inits[b.InitSeq[i]]
		if !ok {
			return nil
		}
		call = made.call
		known = calls[call]
		what = c.started()
	}
	switch what {
	case roleMark:
		if c.e.arrivalOrder {
			c.op.kind = opMark
		}
	case roleSend, roleIsend:
		c.send(what == roleIsend, known.sync, known.buffered, known.partitioned)
	case roleRecv, roleIrecv:
		c.recv(what == roleIrecv, b.DoneSeq[i])
	case roleSendrecv, roleIsendrecv:
		c.sendrecv(what == roleIsendrecv)
	case roleProbe, roleMprobe:
		c.probe(what == roleMprobe)
	case roleMrecv, roleImrecv:
		c.matched(what == roleImrecv)
	case roleComplete:
		c.completes()
	case roleInit:
		c.inits(maker{call: call})
	case roleCollective, roleIcollective:
		return c.collective(call, what == roleIcollective)
	case roleWindow:
		c.inits(maker{call: call, instance: b.Instance[i]})
		return c.collective(call, false)
	case roleTransfer:
		c.transfer()
	case roleSync:
		return c.sync(known.waitsRMA, known.fence)
	case roleReady:
		c.ready()
	case roleFile:
		c.file()
	}
	return nil
}

// started is what the start of a request that call made is, by the side that its row has.
func (c *rowOf) started() role {
	b, i := c.b, c.i
	switch {
	case b.Instance[i] != schema.NullInt64:
		return roleIcollective
	case b.SendTag[i] != schema.NullInt32:
		return roleIsend
	case b.RecvTag[i] != schema.NullInt32:
		return roleIrecv
	}
	return roleLocal
}

func (c *rowOf) inits(made maker) {
	if c.known.inits == nil {
		c.known.inits = map[int64]maker{}
	}
	c.known.inits[c.op.seq] = made
}

// sends says whether the row sends a message.
func (c *rowOf) sends() bool {
	b, i := c.b, c.i
	switch {
	case b.SendWorld[i] == schema.NullInt32 || b.SendBytes[i] == schema.NullInt64: // to nobody of the run, or cancelled
		return false
	case b.ErrorClass[i] != schema.NullInt32 && calls[c.op.call].role != roleSendrecv && calls[c.op.call].role != roleIsendrecv:
		return false
	}
	return true
}

// receives says whether the row posts a receive that takes a place.
func (c *rowOf) receives(nonblocking bool) bool {
	b, i := c.b, c.i
	if b.RecvWorld[i] == schema.NullInt32 || b.RecvTag[i] == schema.NullInt32 {
		return false
	}
	if nonblocking {
		return b.DoneSeq[i] == schema.NullInt64 || b.RecvBytes[i] != schema.NullInt64 // else it was cancelled
	}
	err := b.ErrorClass[i]
	return err == schema.NullInt32 || err == truncatedMPICH || err == truncatedOpenMPI
}

// send makes a send of the operation.
func (c *rowOf) send(nonblocking, sync, buffered, partitioned bool) {
	if !c.sends() {
		return
	}
	o := c.op
	o.kind, o.peer, o.tag, o.send = opSend, c.b.SendWorld[c.i], c.b.SendTag[c.i], c.b.SendBytes[c.i]
	if sync {
		o.flags |= flagSync
	}
	if buffered {
		o.flags |= flagBuffered
	}
	c.e.keepsOrder(o, c.rank)
	if !nonblocking {
		return
	}
	o.kind = opIsend
	if c.b.DoneSeq[c.i] != schema.NullInt64 && !c.e.arrivalOrder {
		o.req = c.request(opIsend, false)
		c.ends(o.req)
	}
	if partitioned {
		c.partitioned()
	}
}

// recv makes a receive of the operation.
func (c *rowOf) recv(nonblocking bool, done int64) {
	if !c.receives(nonblocking) {
		return
	}
	o := c.op
	o.kind, o.peer, o.tag = opRecv, c.b.RecvWorld[c.i], c.b.RecvTag[c.i]
	if !nonblocking {
		return
	}
	o.kind = opIrecv
	o.req = c.request(opIrecv, done == schema.NullInt64)
	if done != schema.NullInt64 {
		c.ends(o.req)
	}
}

// request is a request of the operation, which makes it what kind is; orphan: nobody waits for it.
func (c *rowOf) request(kind opKind, orphan bool) int32 {
	r := none
	switch own := !orphan && c.e.program.Threads[c.rank] <= 1 && (kind != opIcollective || !c.e.arrivalOrder); {
	case own && c.known.free != none:
		r = c.known.free
		c.known.free = c.made[r].next
	case own:
		c.e.requests = append(c.e.requests, request{waiter: none, channel: none, own: true})
		r = int32(len(c.e.requests) - 1)
	default:
		r = c.e.newRequest()
		c.op.kind = kind
		c.e.requests[r].of(c.op)
		c.e.requests[r].orphan = orphan
	}
	for len(c.made) <= int(r) {
		c.made = append(c.made, madeRequest{})
	}
	c.made[r] = madeRequest{none, kind, c.op.comm}
	return r
}

// waited is when a row that waits for the request was read.
func (c *rowOf) waited(r int32) {
	if c.e.requests[r].own {
		c.made[r].next, c.known.free = c.known.free, r
	}
}

// ends notes that the row that done_seq names completes the request.
func (c *rowOf) ends(r int32) {
	done := c.b.DoneSeq[c.i]
	k := c.known
	for j := len(k.ends) - 1; j >= 0; j-- {
		if k.ends[j].seq == done {
			c.made[k.ends[j].last].next = r
			k.ends[j].last = r
			return
		}
	}
	k.ends = append(k.ends, ending{done, r, r})
}

// completes makes waits of a call that completes requests.
func (c *rowOf) completes() {
	k := c.known
	for j := range k.ends {
		if k.ends[j].seq != c.op.seq {
			continue
		}
		first := k.ends[j].first
		k.ends = append(k.ends[:j], k.ends[j+1:]...)
		c.waits(first)
		return
	}
}

// waits makes the operation wait for a chain of requests: in Dimemas for one after the other.
func (c *rowOf) waits(first int32) {
	c.lateSends(first)
	c.op.kind = opWait
	for r := first; r != none; {
		made := c.made[r]
		c.waited(r)
		if c.op.req = r; c.e.arrivalOrder {
			if made.kind == opIcollective {
				c.op.comm = made.comm
			}
			if made.next != none {
				c.more()
				c.op.kind = opWait
			}
		} else if made.next != none || len(c.chain) > 0 {
			c.chain = append(c.chain, r)
		}
		r = made.next
	}
}

// sendrecv makes a receive that does not block, a send, and a wait for the receive.
func (c *rowOf) sendrecv(nonblocking bool) {
	if !c.receives(nonblocking) {
		c.send(nonblocking, false, false, false)
		return
	}
	if !c.sends() {
		c.recv(nonblocking, c.b.DoneSeq[c.i])
		return
	}
	if nonblocking {
		c.recv(true, c.b.DoneSeq[c.i])
		c.more()
		c.send(true, false, false, false)
		return
	}
	c.op.kind, c.op.peer, c.op.tag = opIrecv, c.b.RecvWorld[c.i], c.b.RecvTag[c.i]
	r := c.request(opIrecv, false)
	c.op.req = r
	c.more()
	c.send(false, false, false, false)
	c.more()
	c.waits(r)
}

// probe makes a wait for the message that the probe found. A matched probe takes it.
func (c *rowOf) probe(matched bool) {
	if c.b.RecvWorld[c.i] == schema.NullInt32 || c.e.arrivalOrder {
		return
	}
	c.op.kind, c.op.peer, c.op.tag = opProbe, c.b.RecvWorld[c.i], c.b.RecvTag[c.i]
	if !matched {
		return
	}
	c.more()
	c.op.kind, c.op.peer, c.op.tag = opIrecv, c.b.RecvWorld[c.i], c.b.RecvTag[c.i]
	c.op.req = c.request(opIrecv, false)
	if c.known.probed == nil {
		c.known.probed = map[int64]int32{}
	}
	c.known.probed[c.op.seq] = c.op.req
}

// matched makes a wait for what a matched probe took.
func (c *rowOf) matched(nonblocking bool) {
	if c.e.arrivalOrder {
		c.recv(nonblocking, c.b.DoneSeq[c.i])
		return
	}
	r, ok := c.known.probed[c.b.InitSeq[c.i]]
	if !ok {
		return
	}
	delete(c.known.probed, c.b.InitSeq[c.i])
	switch {
	case !nonblocking:
		c.waits(r)
	case c.b.DoneSeq[c.i] != schema.NullInt64:
		c.ends(r)
	}
}

// partitioned keeps a send until all its partitions are ready.
func (c *rowOf) partitioned() {
	if c.b.Request[c.i] == schema.NullInt64 || c.b.SendCount[c.i] <= 0 {
		return
	}
	if c.known.parted == nil {
		c.known.parted = map[int64]parted{}
	}
	c.known.parted[c.b.Request[c.i]] = parted{*c.op, c.b.SendCount[c.i]}
	c.op.kind, c.op.req = opLocal, none
}

// ready makes the send of a partitioned request whose last partition this is.
func (c *rowOf) ready() {
	p, ok := c.known.parted[c.b.Request[c.i]]
	if !ok {
		return
	}
	if p.count -= max(c.b.SendCount[c.i], 0); p.count > 0 {
		c.known.parted[c.b.Request[c.i]] = p
		return
	}
	delete(c.known.parted, c.b.Request[c.i])
	now := *c.op
	*c.op = p.op
	c.op.compute, c.op.seq, c.op.site, c.op.call = now.compute, now.seq, now.site, now.call
}

// lateSends makes the sends of a chain whose partitions were not all reported.
func (c *rowOf) lateSends(first int32) {
	for request, p := range c.known.parted {
		for r := first; r != none; r = c.made[r].next {
			if p.op.req != r {
				continue
			}
			delete(c.known.parted, request)
			now := *c.op
			*c.op = p.op
			c.op.compute, c.op.seq, c.op.site, c.op.call = now.compute, now.seq, now.site, now.call
			c.more()
			break
		}
	}
}

// index is the place of the row's communicator.
func (c *rowOf) index() (int32, error) {
	id := c.b.Comm[c.i]
	if id == c.comm {
		return c.commIndex, nil
	}
	k, ok := c.e.program.commOf[id]
	if !ok {
		return none, fmt.Errorf("rank %d, seq %d: %s: communicator %d is not in the table comms", c.rank, c.op.seq, c.op.callID(), id)
	}
	c.comm, c.commIndex = id, k
	return k, nil
}

// collective makes a collective operation, of a call that is one or that all ranks of a communicator make together.
func (c *rowOf) collective(call schema.CallID, nonblocking bool) error {
	if c.b.Instance[c.i] == schema.NullInt64 || c.b.Comm[c.i] == schema.NullInt32 {
		return nil
	}
	k, err := c.index()
	if err != nil {
		return err
	}
	c.enters(call, k, c.b.Instance[c.i])
	if nonblocking {
		c.op.kind = opIcollective
		done := c.b.DoneSeq[c.i]
		c.op.req = c.request(opIcollective, done == schema.NullInt64)
		if done != schema.NullInt64 {
			c.ends(c.op.req)
		}
	}
	c.e.keepsOrder(c.op, c.rank)
	return nil
}

// enters makes a collective of the operation.
func (c *rowOf) enters(call schema.CallID, comm int32, instance int64) {
	o := c.op
	o.kind, o.call, o.comm, o.instance = opCollective, int16(call), comm, instance
	o.send, o.recv = c.b.SendBytes[c.i], c.b.RecvBytes[c.i]
	inter := c.e.program.Comms[comm].Inter
	if inter {
		o.flags |= flagInter
	} else if root := c.b.RootWorld[c.i]; root != schema.NullInt32 {
		o.flags |= flagRooted
		o.peer = root
	}
	if operation := call.Operation(); operation == 0 || inter || c.e.machine.Fallback(operation) {
		o.flags |= flagFallback
	}
	if label := c.b.Label[c.i]; call.Operation() == schema.CallReduce && label != DimemasSync1 || label == DimemasSync3 {
		o.flags |= flagMessages
	}
}

// Labels of collectives that come from a Dimemas trace, and have there another synchronism than the one that Dimemas' own
// translator writes: 1, a single operation, for an MPI_Reduce, and 3, a message from everyone to the root, for any other.
const (
	DimemasSync1 = "dimemas sync 1"
	DimemasSync3 = "dimemas sync 3"
)

// transfer makes a one-sided transfer. Nobody need call at the other side.
func (c *rowOf) transfer() {
	b, i := c.b, c.i
	sends, fetches := schema.Sides(c.op.callID())
	o := c.op
	switch {
	case fetches && b.RecvWorld[i] != schema.NullInt32:
		o.kind, o.peer, o.recv = opGet, b.RecvWorld[i], max(b.RecvBytes[i], b.SendBytes[i], 0)
	case sends && b.SendWorld[i] != schema.NullInt32:
		o.kind, o.peer, o.send = opPut, b.SendWorld[i], max(b.SendBytes[i], 0)
	default:
		return
	}
	w, ok := c.known.inits[b.InitSeq[i]]
	done := b.DoneSeq[i] != schema.NullInt64
	o.req = c.request(o.kind, !done && !ok)
	switch {
	case done:
		c.ends(o.req)
		return
	case !ok:
		return
	}
	w.pending = append(w.pending, o.req)
	c.known.inits[b.InitSeq[i]] = w
}

// sync makes a wait for the transfers of a window, and of a fence a collective too.
func (c *rowOf) sync(waits, fence bool) error {
	w, ok := c.known.inits[c.b.InitSeq[c.i]]
	if !ok {
		return nil
	}
	if waits && len(w.pending) > 0 {
		for k, r := range w.pending[1:] {
			c.made[w.pending[k]].next = r
		}
		first := w.pending[0]
		w.pending = nil
		c.waits(first)
		if fence {
			c.more()
		}
	}
	if fence && w.instance != schema.NullInt64 {
		k, err := c.index()
		if err != nil {
			return err
		}
		c.enters(c.op.callID(), k, -1-(w.instance<<32|w.fences))
		w.fences++
	}
	c.known.inits[c.b.InitSeq[c.i]] = w
	return nil
}

// file makes a burst of the time that I/O took.
func (c *rowOf) file() {
	b, i := c.b, c.i
	if b.StartNs[i] == schema.NullInt64 || b.EndNs[i] == schema.NullInt64 {
		return
	}
	c.more()
	c.op.compute = b.EndNs[i] - b.StartNs[i]
}

// Columns are the columns of events that a simulation reads; the others may be null.
var Columns = []string{"rank", "seq", "thread", "call", "start_ns", "end_ns", "compute_ns", "comm", "instance", "send_world", "send_tag",
	"send_count", "send_bytes", "recv_world", "recv_tag", "recv_bytes", "root_world", "request", "done_seq", "init_seq", "error_class", "label", "callsite"}
