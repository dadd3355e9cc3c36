package simulate

import "github.com/commq/commq/schema"

// opKind is what an operation does.
type opKind uint8

const (
	opLocal       opKind = iota // nothing that others notice, and takes no time
	opEnd                       // after it there is nothing
	opMark                      // the same; in Dimemas the rank's next burst waits behind the others of its node
	opSend                      // returns when the buffer can be used again
	opIsend                     // request completes then
	opRecv                      //
	opIrecv                     //
	opWait                      // for a chain of requests
	opProbe                     // until the channel's next message is there
	opCollective                //
	opIcollective               //
	opPut                       // one-sided transfer to peer
	opGet                       // and from it
)

// Flags of an operation.
const (
	flagSync     = 1 << iota // a send that waits for its receiver whatever its size
	flagBuffered             // a send that never does
	flagPart                 // the row goes on with the next operation
	flagInter                // on an intercommunicator
	flagFallback             // a collective whose phases stand for another's
	flagRooted               // a collective with a root: peer
	flagAtOnce               // no burst before it, not even one of no time
	flagMessages             // a collective that Dimemas makes of messages
)

// op is an operation of a stream, after a burst of computing.
type op struct {
	opType
	compute  int64 // ns of the machine that the run is of
	seq      int64
	instance int64 // of a collective
	req      int32 // request, or first of a chain
}

// opType is what recurs of operations: programs are loops, and ranks do the same.
type opType struct {
	send     int64 // bytes
	recv     int64 // bytes, of a collective
	peer     int32 // world rank; of a collective the root
	tag      int32
	comm     int32 // index
	site     int32
	call     int16
	step     int16 // seq, from that of the operation before; it and operands are for opPool
	kind     opKind
	flags    uint8
	operands uint8
}

// counts says whether opQueue.acts counts the operation: those that are the last of their row and not only local.
func (o *op) counts() bool { return o.kind != opLocal && o.flags&flagPart == 0 }

// callID is the call of the row.
func (o *op) callID() schema.CallID { return schema.CallID(o.call) }

// Operands of an operation beside its type and what it computes: a word each.
const (
	hasRequest = 1 << iota
	hasInstance
	hasChain // a wait for several requests: how many, and they
)

// relative says whether the peer of an operation is of a message: its type has how far it is from the rank.
func (k opKind) relative() bool {
	return k >= opSend && k <= opIrecv || k == opProbe || k == opPut || k == opGet
}

const (
	// computeBits are those of an operation's first word that hold what it computes; the others hold its type.
	computeBits = 48
	// noType stands for the type of an operation that is written out: there are too many types, or it computes too long.
	noType = 1<<(64-computeBits) - 1
	// chunkWords is the number of words in a chunk of a stream's queue, which has 512 bytes.
	chunkWords = 63
	// slabChunks is how many chunks are made at once.
	slabChunks = 64
)

type chunk struct {
	next  *chunk // in front: behind it there is nothing for the garbage collector
	words [chunkWords]uint64
}

// opQueue holds the operations of a stream that are read and not yet taken, as words: one for most.
type opQueue struct {
	first, last *chunk
	head, tail  int     // in first and in last
	put, taken  int64   // seq of the last operation that came, and that went
	acts        int     // operations that end a row that others can notice
	chain       []int32 // requests of the last operation that went, of a wait
}

func (q *opQueue) empty() bool { return q.first == nil }

// opPool knows the types of operations, and keeps chunks for the next use.
type opPool struct {
	free  *chunk
	slabs int // that were made
	types []opType
	ids   map[opType]uint16
	after []uint16 // by type: the one that came after it last
	last  uint16   // type that came
}

// id is the number of a type; noType when there are too many.
func (p *opPool) id(t *opType) uint16 {
	if p.ids == nil {
		p.types, p.after, p.ids = []opType{{}}, []uint16{0}, map[opType]uint16{{}: 0}
	}
	if next := p.after[p.last]; p.types[next] == *t {
		p.last = next
		return next
	}
	id, known := p.ids[*t]
	if !known {
		if len(p.types) == noType {
			return noType
		}
		id = uint16(len(p.types))
		p.types, p.after = append(p.types, *t), append(p.after, 0)
		p.ids[*t] = id
	}
	p.after[p.last], p.last = id, id
	return id
}

// put adds an operation of a rank to a queue, and leaves it spoilt; chain are a wait's requests, when they are several.
func (p *opPool) put(q *opQueue, o *op, rank int32, chain []int32) {
	step, counts := o.seq-q.put, o.counts()
	o.step = int16(step)
	if o.kind.relative() {
		o.peer -= rank
	}
	switch {
	case len(chain) > 0:
		o.operands |= hasChain
	case o.req != none:
		o.operands |= hasRequest
	}
	if o.instance != 0 {
		o.operands |= hasInstance
	}
	id := uint16(noType)
	if o.compute < 1<<computeBits && int64(o.step) == step {
		id = p.id(&o.opType)
	}
	q.put = o.seq
	if counts {
		q.acts++
	}
	if id == noType {
		p.writeOut(q, o, chain)
		return
	}
	p.word(q, uint64(id)<<computeBits|uint64(o.compute))
	if o.operands&hasRequest != 0 {
		p.word(q, uint64(o.req))
	}
	if o.operands&hasInstance != 0 {
		p.word(q, uint64(o.instance))
	}
	if o.operands&hasChain != 0 {
		p.writeChain(q, chain)
	}
}

func (p *opPool) writeChain(q *opQueue, chain []int32) {
	p.word(q, uint64(len(chain)))
	for _, r := range chain {
		p.word(q, uint64(r))
	}
}

func (p *opPool) readChain(q *opQueue, o *op) {
	for n := p.next(q); n > 0; n-- {
		q.chain = append(q.chain, int32(p.next(q)))
	}
	if len(q.chain) > 0 {
		o.req = q.chain[0]
	}
}

// take moves the first operation of a rank to o; the queue is not empty.
func (p *opPool) take(q *opQueue, o *op, rank int32) {
	q.chain = q.chain[:0]
	w := p.next(q)
	id := w >> computeBits
	if id == noType {
		p.readOut(q, o)
	} else {
		o.opType = p.types[id]
		o.compute, o.seq, o.instance, o.req = int64(w&(1<<computeBits-1)), q.taken+int64(o.step), 0, none
		if o.operands&hasRequest != 0 {
			o.req = int32(p.next(q))
		}
		if o.operands&hasInstance != 0 {
			o.instance = int64(p.next(q))
		}
		if o.operands&hasChain != 0 {
			p.readChain(q, o)
		}
	}
	if o.kind.relative() {
		o.peer += rank
	}
	if o.kind == opWait && o.req != none && len(q.chain) == 0 {
		q.chain = append(q.chain, o.req)
	}
	q.taken = o.seq
	if o.counts() {
		q.acts--
	}
}

// writeOut adds all of an operation.
func (p *opPool) writeOut(q *opQueue, o *op, chain []int32) {
	pair := func(a, b int32) uint64 { return uint64(uint32(a))<<32 | uint64(uint32(b)) }
	p.word(q, noType<<computeBits)
	for _, w := range [...]uint64{uint64(o.compute), uint64(o.send), uint64(o.recv), uint64(o.seq), uint64(o.instance), pair(o.peer, o.tag), pair(o.comm, o.req),
		pair(o.site, int32(o.call)), uint64(o.kind)<<8 | uint64(o.flags)} {
		p.word(q, w)
	}
	p.writeChain(q, chain)
}

// readOut takes what writeOut added.
func (p *opPool) readOut(q *opQueue, o *op) {
	var w [9]uint64
	for i := range w {
		w[i] = p.next(q)
	}
	*o = op{compute: int64(w[0]), seq: int64(w[3]), instance: int64(w[4]), req: int32(w[6])}
	o.opType = opType{send: int64(w[1]), recv: int64(w[2]), peer: int32(w[5] >> 32), tag: int32(w[5]), comm: int32(w[6] >> 32), site: int32(w[7] >> 32), call: int16(w[7]),
		kind: opKind(w[8] >> 8), flags: uint8(w[8])}
	p.readChain(q, o)
}

// word adds a word to the queue.
func (p *opPool) word(q *opQueue, w uint64) {
	if q.last == nil || q.tail == chunkWords {
		p.grow(q)
	}
	q.last.words[q.tail] = w
	q.tail++
}

// grow adds a chunk to the queue.
func (p *opPool) grow(q *opQueue) {
	if p.free == nil {
		slab := make([]chunk, slabChunks)
		p.slabs++
		for i := range slab {
			slab[i].next, p.free = p.free, &slab[i]
		}
	}
	c := p.free
	p.free, c.next = c.next, nil
	if q.last == nil {
		q.first, q.head = c, 0
	} else {
		q.last.next = c
	}
	q.last, q.tail = c, 0
}

// next takes a word out of the queue.
func (p *opPool) next(q *opQueue) uint64 {
	c := q.first
	w := c.words[q.head]
	q.head++
	switch {
	case c == q.last && q.head == q.tail:
		q.first, q.last = nil, nil
		c.next, p.free = p.free, c
	case q.head == chunkWords:
		q.first, q.head = c.next, 0
		c.next, p.free = p.free, c
	}
	return w
}
