package simulate

// request is an MPI request that a thread can wait for.
type request struct {
	next    int32       // next free one
	waiter  int32       // thread that is blocked in a wait for it
	channel int32       // of a receive (Dimemas): its channel; of a collective: the thread that started it
	peer    int32       // of a receive: the source; of a send: the destination; of a collective: the communicator
	site    int32       // call site of the operation that started it
	posted  Picoseconds // when a receive was posted
	seq     int64       // row that started it
	call    int16       // call of that row
	kind    opKind      // of the operation that started it
	done    bool
	orphan  bool // no call waits for it
	owned   bool // belongs to one rank, which reuses it for later operations: rankRows.free
}

// describe copies from the operation that starts a request what error texts need.
func (q *request) describe(o *op) {
	q.kind, q.peer, q.seq, q.site, q.call = o.kind, o.peer, o.seq, o.site, o.call
	if o.kind == opIcollective {
		q.peer = o.comm
	}
}

// requestPool holds the requests of all ranks.
type requestPool struct {
	items []request
	free  int32
}

// add returns a new request.
func (p *requestPool) add() int32 {
	r := p.free
	if r == none {
		p.items = append(p.items, request{})
		r = int32(len(p.items) - 1)
	} else {
		p.free = p.items[r].next
	}
	p.items[r] = request{next: none, waiter: none, channel: none}
	return r
}

// addOwned returns a new request for one rank to reuse.
func (p *requestPool) addOwned() int32 {
	p.items = append(p.items, request{waiter: none, channel: none, owned: true})
	return int32(len(p.items) - 1)
}

// release frees a request.
func (p *requestPool) release(r int32) {
	if q := &p.items[r]; q.owned { // not freed: its description stays for the report of a deadlock
		q.waiter, q.channel, q.done = none, none, false
	} else {
		q.next, p.free = p.free, r
	}
}
