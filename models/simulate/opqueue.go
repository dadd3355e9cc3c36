package simulate

// Operands of an operation, beyond its type and burst. Each adds a word to the queue.
const (
	hasRequest = 1 << iota
	hasInstance
	hasChain // a wait for several requests: their number, then the requests
)

const (
	// computeBits is the number of bits for the burst in an operation's first word; the other bits hold its type.
	computeBits = 48
	// noType marks an operation that is written in full: there are too many types, or its burst is too long.
	noType = 1<<(64-computeBits) - 1
	// chunkWords is the number of words in a chunk, which is 512 bytes large.
	chunkWords = 63
	// slabChunks is the number of chunks per allocation.
	slabChunks = 64
)

type chunk struct {
	next  *chunk // first, so that the garbage collector can skip the rest
	words [chunkWords]uint64
}

// opQueue holds the operations of a thread that were read and are still to be done, as words; most need only one.
type opQueue struct {
	first, last *chunk
	head, tail  int     // index of the next word to take from first, and to put into last
	put, taken  int64   // seq of the operation put last, and of the one taken last
	acts        int     // number of queued operations for which op.acts is true
	chain       []int32 // requests of the wait taken last
}

func (q *opQueue) empty() bool { return q.first == nil }

// opPool holds the types of operations and the free chunks of all queues.
type opPool struct {
	free     *chunk
	slabs    int // allocated so far
	types    []opType
	ids      map[opType]uint16
	follower []uint16 // by type: the type that came after it last time
	last     uint16   // type of the last operation
}

// id returns the number of a type, or noType when there are too many.
func (p *opPool) id(t *opType) uint16 {
	if p.ids == nil {
		p.types, p.follower, p.ids = []opType{{}}, []uint16{0}, map[opType]uint16{{}: 0}
	}
	if next := p.follower[p.last]; p.types[next] == *t {
		p.last = next
		return next
	}
	id, known := p.ids[*t]
	if !known {
		if len(p.types) == noType {
			return noType
		}
		id = uint16(len(p.types))
		p.types, p.follower = append(p.types, *t), append(p.follower, 0)
		p.ids[*t] = id
	}
	p.follower[p.last], p.last = id, id
	return id
}

// put adds an operation of a rank to a queue. chain has the requests of a wait for more than one. put overwrites the
// operation's fields.
func (p *opPool) put(q *opQueue, o *op, rank int32, chain []int32) {
	step, acts := o.seq-q.put, o.acts()
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
	if acts {
		q.acts++
	}
	if id == noType {
		p.writeOut(q, o, chain)
		return
	}
	p.write(q, uint64(id)<<computeBits|uint64(o.compute))
	if o.operands&hasRequest != 0 {
		p.write(q, uint64(o.req))
	}
	if o.operands&hasInstance != 0 {
		p.write(q, uint64(o.instance))
	}
	if o.operands&hasChain != 0 {
		p.writeChain(q, chain)
	}
}

func (p *opPool) writeChain(q *opQueue, chain []int32) {
	p.write(q, uint64(len(chain)))
	for _, r := range chain {
		p.write(q, uint64(r))
	}
}

func (p *opPool) readChain(q *opQueue, o *op) {
	for n := p.read(q); n > 0; n-- {
		q.chain = append(q.chain, int32(p.read(q)))
	}
	if len(q.chain) > 0 {
		o.req = q.chain[0]
	}
}

// take moves the first operation of a rank from the queue, which must not be empty, to o.
func (p *opPool) take(q *opQueue, o *op, rank int32) {
	q.chain = q.chain[:0]
	w := p.read(q)
	id := w >> computeBits
	if id == noType {
		p.readOut(q, o)
	} else {
		o.opType = p.types[id]
		o.compute, o.seq, o.instance, o.req = int64(w&(1<<computeBits-1)), q.taken+int64(o.step), 0, none
		if o.operands&hasRequest != 0 {
			o.req = int32(p.read(q))
		}
		if o.operands&hasInstance != 0 {
			o.instance = int64(p.read(q))
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
	if o.acts() {
		q.acts--
	}
}

// writeOut writes an operation in full, without a type.
func (p *opPool) writeOut(q *opQueue, o *op, chain []int32) {
	pair := func(a, b int32) uint64 { return uint64(uint32(a))<<32 | uint64(uint32(b)) }
	p.write(q, noType<<computeBits)
	for _, w := range [...]uint64{uint64(o.compute), uint64(o.send), uint64(o.recv), uint64(o.seq),
		uint64(o.instance), pair(o.peer, o.tag), pair(o.comm, o.req),
		pair(o.site, int32(o.call)), uint64(o.kind)<<8 | uint64(o.flags)} {
		p.write(q, w)
	}
	p.writeChain(q, chain)
}

// readOut reads what writeOut wrote, after its first word.
func (p *opPool) readOut(q *opQueue, o *op) {
	var w [9]uint64
	for i := range w {
		w[i] = p.read(q)
	}
	*o = op{compute: int64(w[0]), seq: int64(w[3]), instance: int64(w[4]), req: int32(w[6])}
	o.opType = opType{send: int64(w[1]), recv: int64(w[2]), peer: int32(w[5] >> 32), tag: int32(w[5]),
		comm: int32(w[6] >> 32), site: int32(w[7] >> 32), call: int16(w[7]),
		kind: opKind(w[8] >> 8), flags: uint8(w[8])}
	p.readChain(q, o)
}

// write appends a word to the queue.
func (p *opPool) write(q *opQueue, w uint64) {
	if q.last == nil || q.tail == chunkWords {
		p.grow(q)
	}
	q.last.words[q.tail] = w
	q.tail++
}

// grow appends a chunk to the queue.
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

// read takes a word from the queue.
func (p *opPool) read(q *opQueue) uint64 {
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
