package simulate

import (
	"fmt"

	"github.com/commq/commq/schema"
)

// Columns are the columns of events that a simulation reads; the others may be null.
var Columns = []string{"rank", "seq", "thread", "call", "start_ns", "end_ns", "compute_ns", "comm", "instance",
	"send_world", "send_tag", "send_count", "send_bytes", "recv_world", "recv_tag", "recv_bytes", "root_world",
	"request", "done_seq", "init_seq", "error_class", "label", "callsite"}

// Labels of collectives from a Dimemas trace whose synchronism differs from that of Dimemas' own translator: 1, a
// single operation, for an MPI_Reduce, and 3, a message from every rank to the root, for other operations.
const (
	DimemasSync1 = "dimemas sync 1"
	DimemasSync3 = "dimemas sync 3"
)

// Error classes of a receive that took its message nevertheless: MPI_ERR_TRUNCATE in MPICH and Open MPI.
const (
	truncatedMPICH   = 14
	truncatedOpenMPI = 15
)

// translator turns rows of events into operations, and puts them into the queues of threads.
type translator struct {
	setting     *setting
	rules       rules
	cpus        *scheduler
	threads     []thread `snapshot:"-"` // the scheduler's
	comms       *communicators
	requests    *requestPool
	ops         *opPool
	ranks       []rankRows
	requestInfo []requestInfo // by request

	op              op      // the operation being made
	chain           []int32 // requests of the wait being made
	comm, commIndex int32   // the communicator looked up last
}

// rankRows is the state of the translation of a rank.
type rankRows struct {
	free        int32                 // first of the rank's own requests that can be reused
	completions []completion          // requests that a row still to come completes
	inits       map[int64]initRow     // rows that made persistent requests and windows, by seq
	probed      map[int64]int32       // requests of messages taken by a matched probe, by the probe's seq
	partitioned map[int64]partitioned // partitioned sends that were started but are not ready, by request
	fileWaits   map[int64]bool        // seqs of rows still to come that complete MPI-IO; false: and sends
}

// requestInfo belongs to a request while rows are translated. A rank waits for its requests in the order of its rows.
// So once the row that waits for a request has been read, a later operation of the rank can reuse the request, long
// before either is simulated. This is not possible if threads share requests, nor for Dimemas' nonblocking
// collectives, where a wait takes any of them.
type requestInfo struct {
	next int32 // in the chain of a wait, or in the list of a rank's free requests
	kind opKind
	comm int32 // index of a collective's communicator
}

// completion is a row and the chain of requests that it completes.
type completion struct {
	seq         int64
	first, last int32
}

// initRow is a row that made a persistent request or a window.
type initRow struct {
	call     schema.CallID
	standard bool    // Kept.Standard of a persistent send
	instance int64   // of a window: its constructor's instance on the communicator
	fences   int64   // so far
	pending  []int32 // transfers of the window that have not been waited for
	targets  []int32 // of the access that was started last: world ranks
	origins  []int32 // of the exposure that was posted last
}

// partitioned is a partitioned send whose partitions are not all ready.
type partitioned struct {
	op      op
	missing int64 // partitions
}

func newTranslator(x *setting, cpus *scheduler, comms *communicators, requests *requestPool, ops *opPool) *translator {
	t := &translator{setting: x, rules: x.rules, cpus: cpus, comms: comms, requests: requests, ops: ops,
		ranks: make([]rankRows, len(x.program.Threads)), comm: schema.NullInt32}
	for i := range t.ranks {
		t.ranks[i].free = none
	}
	return t
}

// add translates a batch of rows.
func (t *translator) add(b *schema.Events) error {
	for i := range b.Rank {
		if err := t.addRow(b, i); err != nil {
			return err
		}
	}
	return nil
}

func (t *translator) addRow(b *schema.Events, i int) error {
	rank := b.Rank[i]
	if rank < 0 || int(rank) >= len(t.ranks) {
		return fmt.Errorf("rank %d, seq %d: the run has %d ranks", rank, b.Seq[i], len(t.ranks))
	}
	if b.Call[i] < 0 || int(b.Call[i]) >= len(roles) {
		return fmt.Errorf("rank %d, seq %d: no MPI call has the number %d", rank, b.Seq[i], b.Call[i])
	}
	threads := max(t.setting.program.Threads[rank], 1)
	if b.Thread[i] < 0 || b.Thread[i] >= threads {
		return fmt.Errorf("rank %d, seq %d: it belongs to thread %d, but only %d threads of the rank call MPI "+
			"(table ranks)", rank, b.Seq[i], b.Thread[i], threads)
	}
	t.op = op{opType: opType{comm: b.Comm[i], site: b.Callsite[i], call: b.Call[i]}, compute: max(b.ComputeNs[i], 0),
		seq: b.Seq[i], req: none}
	if b.ComputeNs[i] == schema.NullInt64 {
		t.op.flags = flagNoBurst
	}
	r := &row{t: t, b: b, i: i, rank: rank, op: &t.op, known: &t.ranks[rank],
		queue: &t.threads[t.setting.firstThread[rank]+b.Thread[i]].queue}
	if err := r.translate(); err != nil {
		return err
	}
	t.ops.put(r.queue, &t.op, rank, t.chain)
	t.chain = t.chain[:0]
	return nil
}

// row is a row being translated. Its operations before op are in the queue already.
type row struct {
	t     *translator
	b     *schema.Events
	i     int
	rank  int32
	op    *op
	known *rankRows
	queue *opQueue

	standard bool // of a started send: Kept.Standard of the row that made it
}

// addOp puts op into the queue and begins a further operation of the same row.
func (r *row) addOp() {
	r.op.flags |= flagPart
	r.t.ops.put(r.queue, r.op, r.rank, r.t.chain)
	r.t.chain = r.t.chain[:0]
	*r.op = op{opType: opType{comm: r.b.Comm[r.i], site: r.op.site, call: r.op.call}, seq: r.op.seq, req: none}
}

// translate makes the operations of the row.
func (r *row) translate() error {
	b, i := r.b, r.i
	call := r.op.callID()
	does := roles[call]
	if does == roleStart {
		made, ok := r.known.inits[b.InitSeq[i]]
		if !ok {
			return nil
		}
		call, r.standard = made.call, made.standard
		does = startedRole(b, i)
	}
	switch does {
	case roleMark:
		if r.t.rules.arrivalOrder {
			r.op.kind = opMark
		}
	case roleSend, roleIsend:
		r.send(call, does == roleIsend)
	case roleRecv, roleIrecv:
		r.recv(does == roleIrecv, b.DoneSeq[i])
	case roleSendrecv, roleIsendrecv:
		r.sendrecv(does == roleIsendrecv)
	case roleProbe, roleMprobe:
		r.probe(does == roleMprobe)
	case roleMrecv, roleImrecv:
		r.matchedRecv(does == roleImrecv)
	case roleComplete:
		r.complete()
	case roleInit:
		r.known.rememberInit(b.Seq[i], initRow{call: call, standard: r.t.setting.kept(r.rank, r.op).Standard})
	case roleCollective, roleIcollective:
		return r.collective(call, does == roleIcollective)
	case roleWindow:
		r.known.rememberInit(b.Seq[i], initRow{call: call, instance: b.Instance[i]})
		return r.collective(call, false)
	case roleTransfer:
		r.transfer()
	case roleSync:
		return r.syncWindow()
	case roleReady:
		r.partitionReady()
	case roleFile:
		r.file()
	}
	return nil
}

// startedRole returns the role of a start of a persistent request: whether it sends or receives.
func startedRole(b *schema.Events, i int) role {
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

// rememberInit keeps a row that made a persistent request or a window, by its seq.
func (k *rankRows) rememberInit(seq int64, made initRow) {
	if k.inits == nil {
		k.inits = map[int64]initRow{}
	}
	k.inits[seq] = made
}

// sends reports whether row i sends a message to a rank of the run.
func sends(b *schema.Events, i int) bool {
	if b.SendWorld[i] == schema.NullInt32 || b.SendBytes[i] == schema.NullInt64 { // to a rank outside, or cancelled
		return false
	}
	does := roles[b.Call[i]]
	return b.ErrorClass[i] == schema.NullInt32 || does == roleSendrecv || does == roleIsendrecv
}

// receives reports whether row i posts a receive that takes a message.
func receives(b *schema.Events, i int, nonblocking bool) bool {
	if b.RecvWorld[i] == schema.NullInt32 || b.RecvTag[i] == schema.NullInt32 {
		return false
	}
	if nonblocking { // one that ended without bytes was cancelled; MPICH 4.0 has none for MPI_Isendrecv
		return b.DoneSeq[i] == schema.NullInt64 || b.RecvBytes[i] != schema.NullInt64 ||
			roles[b.Call[i]] == roleIsendrecv
	}
	err := b.ErrorClass[i]
	return err == schema.NullInt32 || err == truncatedMPICH || err == truncatedOpenMPI
}

// send makes op the send that a call does.
func (r *row) send(call schema.CallID, nonblocking bool) {
	if !sends(r.b, r.i) {
		return
	}
	o := r.op
	o.kind, o.peer, o.tag, o.send = opSend, r.b.SendWorld[r.i], r.b.SendTag[r.i], r.b.SendBytes[r.i]
	o.flags |= sendFlags[call]
	if r.standard || r.t.setting.kept(r.rank, o).Standard {
		o.flags &^= flagSync
	}
	r.t.checkOrder(o, r.rank)
	if !nonblocking {
		return
	}
	o.kind = opIsend
	switch done := r.b.DoneSeq[r.i]; {
	case done == schema.NullInt64:
	case !r.t.rules.arrivalOrder:
		o.req = r.newRequest(opIsend, false)
		r.completeLater(o.req)
	case r.known.fileWaits != nil: // the row that completes it waits for more than MPI-IO
		r.known.fileWaits[done] = false
	}
	if call.Is(schema.FactPartitioned) {
		r.delayUntilReady()
	}
}

// recv makes op a receive. If it is nonblocking, the row with seq done completes it.
func (r *row) recv(nonblocking bool, done int64) {
	if !receives(r.b, r.i, nonblocking) {
		return
	}
	o := r.op
	o.kind, o.peer, o.tag = opRecv, r.b.RecvWorld[r.i], r.b.RecvTag[r.i]
	if !nonblocking {
		return
	}
	o.kind = opIrecv
	o.req = r.newRequest(opIrecv, done == schema.NullInt64)
	if done != schema.NullInt64 {
		r.completeLater(o.req)
	}
}

// newRequest returns a request that op starts, of an operation of a kind. No call waits for an orphan.
func (r *row) newRequest(kind opKind, orphan bool) int32 {
	t := r.t
	id := none
	switch owned := !orphan && t.setting.program.Threads[r.rank] <= 1 &&
		(kind != opIcollective || !t.rules.arrivalOrder); {
	case owned && r.known.free != none:
		id = r.known.free
		r.known.free = t.requestInfo[id].next
	case owned:
		id = t.requests.addOwned()
	default:
		id = t.requests.add()
		r.op.kind = kind
		t.requests.items[id].describe(r.op)
		t.requests.items[id].orphan = orphan
	}
	for len(t.requestInfo) <= int(id) {
		t.requestInfo = append(t.requestInfo, requestInfo{})
	}
	t.requestInfo[id] = requestInfo{none, kind, r.op.comm}
	return id
}

// completeLater adds a request to those that the row given by done_seq completes.
func (r *row) completeLater(id int32) {
	done := r.b.DoneSeq[r.i]
	k := r.known
	for j := len(k.completions) - 1; j >= 0; j-- {
		if k.completions[j].seq == done {
			r.t.requestInfo[k.completions[j].last].next = id
			k.completions[j].last = id
			return
		}
	}
	k.completions = append(k.completions, completion{done, id, id})
}

// complete makes op wait for the requests that the row completes. A row that completes only MPI-IO is input or output
// itself.
func (r *row) complete() {
	k := r.known
	io := k.fileWaits[r.op.seq]
	delete(k.fileWaits, r.op.seq)
	for j := range k.completions {
		if k.completions[j].seq != r.op.seq {
			continue
		}
		first := k.completions[j].first
		k.completions = append(k.completions[:j], k.completions[j+1:]...)
		r.wait(first)
		return
	}
	if io {
		r.ioBurst()
	}
}

// wait makes op wait for a chain of requests. In Dimemas each request takes an operation of its own.
func (r *row) wait(first int32) {
	r.sendLatePartitions(first)
	r.op.kind = opWait
	for id := first; id != none; {
		info := r.t.requestInfo[id]
		if r.t.requests.items[id].owned { // the rank can reuse it
			r.t.requestInfo[id].next, r.known.free = r.known.free, id
		}
		if r.op.req = id; r.t.rules.arrivalOrder {
			if info.kind == opIcollective {
				r.op.comm = info.comm
			}
			if info.next != none {
				r.addOp()
				r.op.kind = opWait
			}
		} else if info.next != none || len(r.t.chain) > 0 {
			r.t.chain = append(r.t.chain, id)
		}
		id = info.next
	}
}

// sendrecv makes a nonblocking receive, a send, and a wait for the receive.
func (r *row) sendrecv(nonblocking bool) {
	if !receives(r.b, r.i, nonblocking) {
		r.send(r.op.callID(), nonblocking)
		return
	}
	if !sends(r.b, r.i) {
		r.recv(nonblocking, r.b.DoneSeq[r.i])
		return
	}
	if nonblocking {
		r.recv(true, r.b.DoneSeq[r.i])
		r.addOp()
		r.send(r.op.callID(), true)
		return
	}
	r.op.kind, r.op.peer, r.op.tag = opIrecv, r.b.RecvWorld[r.i], r.b.RecvTag[r.i]
	id := r.newRequest(opIrecv, false)
	r.op.req = id
	r.addOp()
	r.send(r.op.callID(), false)
	r.addOp()
	r.wait(id)
}

// probe makes op wait for the message that the probe found. A matched probe takes it, too.
func (r *row) probe(matched bool) {
	if r.b.RecvWorld[r.i] == schema.NullInt32 || r.t.rules.arrivalOrder {
		return
	}
	r.op.kind, r.op.peer, r.op.tag = opProbe, r.b.RecvWorld[r.i], r.b.RecvTag[r.i]
	if !matched {
		return
	}
	r.addOp()
	r.op.kind, r.op.peer, r.op.tag = opIrecv, r.b.RecvWorld[r.i], r.b.RecvTag[r.i]
	r.op.req = r.newRequest(opIrecv, false)
	if r.known.probed == nil {
		r.known.probed = map[int64]int32{}
	}
	r.known.probed[r.op.seq] = r.op.req
}

// matchedRecv makes op wait for the message that a matched probe took.
func (r *row) matchedRecv(nonblocking bool) {
	if r.t.rules.arrivalOrder {
		r.recv(nonblocking, r.b.DoneSeq[r.i])
		return
	}
	id, ok := r.known.probed[r.b.InitSeq[r.i]]
	if !ok {
		return
	}
	delete(r.known.probed, r.b.InitSeq[r.i])
	switch {
	case !nonblocking:
		r.wait(id)
	case r.b.DoneSeq[r.i] != schema.NullInt64:
		r.completeLater(id)
	}
}

// delayUntilReady keeps the partitioned send in op until all its partitions are ready.
func (r *row) delayUntilReady() {
	if r.b.Request[r.i] == schema.NullInt64 || r.b.SendCount[r.i] <= 0 {
		return
	}
	if r.known.partitioned == nil {
		r.known.partitioned = map[int64]partitioned{}
	}
	r.known.partitioned[r.b.Request[r.i]] = partitioned{*r.op, r.b.SendCount[r.i]}
	r.op.kind, r.op.req = opLocal, none
}

// partitionReady makes op a partitioned send if this row made its last partition ready.
func (r *row) partitionReady() {
	request := r.b.Request[r.i]
	p, ok := r.known.partitioned[request]
	if !ok {
		return
	}
	if p.missing -= max(r.b.SendCount[r.i], 0); p.missing > 0 {
		r.known.partitioned[request] = p
		return
	}
	delete(r.known.partitioned, request)
	r.op.become(&p.op)
}

// become replaces an operation by one of an earlier row that is to be done now.
func (o *op) become(earlier *op) {
	now := *o
	*o = *earlier
	o.compute, o.seq, o.site, o.call = now.compute, now.seq, now.site, now.call
}

// sendLatePartitions does the partitioned sends in a chain that is being waited for, although the run does not report
// all their partitions as ready.
func (r *row) sendLatePartitions(first int32) {
	for id := first; id != none && len(r.known.partitioned) > 0; id = r.t.requestInfo[id].next {
		for request, p := range r.known.partitioned {
			if p.op.req == id {
				delete(r.known.partitioned, request)
				r.op.become(&p.op)
				r.addOp()
				break
			}
		}
	}
}

// findComm returns the index of the communicator of row i.
func (t *translator) findComm(b *schema.Events, i int) (int32, error) {
	id := b.Comm[i]
	if id == t.comm {
		return t.commIndex, nil
	}
	k, ok := t.setting.commIndex[id]
	if !ok {
		return none, fmt.Errorf("rank %d, seq %d: %s: communicator %d is not in the table comms", b.Rank[i], b.Seq[i],
			schema.CallID(b.Call[i]), id)
	}
	t.comm, t.commIndex = id, k
	return k, nil
}

// collective makes op a collective operation: a collective call, or one that all ranks of a communicator make
// together.
func (r *row) collective(call schema.CallID, nonblocking bool) error {
	if r.b.Instance[r.i] == schema.NullInt64 || r.b.Comm[r.i] == schema.NullInt32 ||
		schema.Refused(r.b.ErrorClass[r.i]) {
		return nil
	}
	k, err := r.t.findComm(r.b, r.i)
	if err != nil {
		return err
	}
	r.enter(call, k, r.b.Instance[r.i])
	if nonblocking {
		r.op.kind = opIcollective
		done := r.b.DoneSeq[r.i]
		r.op.req = r.newRequest(opIcollective, done == schema.NullInt64)
		if done != schema.NullInt64 {
			r.completeLater(r.op.req)
		}
	}
	r.t.checkOrder(r.op, r.rank)
	return nil
}

// enter makes op enter an instance of a collective operation.
func (r *row) enter(call schema.CallID, comm int32, instance int64) {
	o := r.op
	o.kind, o.call, o.comm, o.instance = opCollective, int16(call), comm, instance
	o.send, o.recv = r.b.SendBytes[r.i], r.b.RecvBytes[r.i]
	inter := r.t.setting.program.Comms[comm].Inter
	if inter {
		o.flags |= flagInter
	} else if root := r.b.RootWorld[r.i]; root != schema.NullInt32 {
		o.flags |= flagRooted
		o.peer = root
	}
	if operation := call.Operation(); operation == 0 || inter || r.t.setting.machine.Fallback(operation) {
		o.flags |= flagFallback
	}
	if label := r.b.Label[r.i]; call.Operation() == schema.CallReduce && label != DimemasSync1 ||
		label == DimemasSync3 {
		o.flags |= flagMessages
	}
}

// transfer makes op a one-sided transfer, which needs no call by its target.
func (r *row) transfer() {
	b, i := r.b, r.i
	sends, fetches := schema.Sides(r.op.callID())
	o := r.op
	switch {
	case fetches && b.RecvWorld[i] != schema.NullInt32:
		o.kind, o.peer, o.recv = opGet, b.RecvWorld[i], max(b.RecvBytes[i], b.SendBytes[i], 0)
	case sends && b.SendWorld[i] != schema.NullInt32:
		o.kind, o.peer, o.send = opPut, b.SendWorld[i], max(b.SendBytes[i], 0)
	default:
		return
	}
	w, ok := r.known.inits[b.InitSeq[i]]
	done := b.DoneSeq[i] != schema.NullInt64
	o.req = r.newRequest(o.kind, !done && !ok)
	switch {
	case done:
		r.completeLater(o.req)
		return
	case !ok:
		return
	}
	w.pending = append(w.pending, o.req)
	r.known.inits[b.InitSeq[i]] = w
}

// syncWindow makes op wait for the transfers of a window. A fence is also a collective; exposures and accesses are in
// epochs.go.
func (r *row) syncWindow() error {
	call := r.op.callID()
	fence := call.Is(schema.FactFence)
	w, ok := r.known.inits[r.b.InitSeq[r.i]]
	if !ok {
		return nil
	}
	if call.Is(schema.FactCompletesTransfers) && len(w.pending) > 0 {
		for k, id := range w.pending[1:] {
			r.t.requestInfo[w.pending[k]].next = id
		}
		first := w.pending[0]
		w.pending = nil
		r.wait(first)
		if fence {
			r.addOp()
		}
	}
	if fence && w.instance != schema.NullInt64 {
		k, err := r.t.findComm(r.b, r.i)
		if err != nil {
			return err
		}
		r.enter(call, k, -1-(w.instance<<32|w.fences))
		w.fences++
	}
	r.lockTarget(&w)
	err := r.syncGroup(&w)
	r.known.inits[r.b.InitSeq[r.i]] = w
	return err
}

// file makes op the burst of input or output that its call was, and notes the row that completes it.
func (r *row) file() {
	if done := r.b.DoneSeq[r.i]; done > r.op.seq { // not null, and not this row
		if r.known.fileWaits == nil {
			r.known.fileWaits = map[int64]bool{}
		}
		if _, sends := r.known.fileWaits[done]; !sends {
			r.known.fileWaits[done] = true
		}
	}
	r.ioBurst()
}

// ioBurst makes op a burst of input or output, as long as the row took in the run.
func (r *row) ioBurst() {
	b, i := r.b, r.i
	if b.StartNs[i] == schema.NullInt64 || b.EndNs[i] == schema.NullInt64 {
		return
	}
	r.addOp()
	kept := r.t.setting.kept(r.rank, r.op)
	r.op.compute = part(b.EndNs[i]-b.StartNs[i], max(kept.Latency, kept.Bytes))
	r.op.flags |= flagIO
}
