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
	compute  int64 // ns of the machine that the run is of
	send     int64 // bytes
	recv     int64 // bytes, of a collective
	seq      int64
	instance int64 // of a collective
	peer     int32 // world rank; of a collective the root
	tag      int32
	comm     int32 // index
	req      int32 // request, or first of a chain
	site     int32
	call     int16
	kind     opKind
	flags    uint8
}

// counts says whether opQueue.acts counts the operation: those that are the last of their row and not only local.
func (o *op) counts() bool { return o.kind != opLocal && o.flags&flagPart == 0 }

// callID is the call of the row.
func (o *op) callID() schema.CallID { return schema.CallID(o.call) }

// chunkOps is the number of operations in a chunk of a stream's queue.
const chunkOps = 64

type chunk struct {
	next *chunk // in front: behind it there is nothing for the garbage collector
	ops  [chunkOps]op
}

// opQueue holds the operations of a stream that are read and not yet taken.
type opQueue struct {
	first, last *chunk
	head, tail  int // in first and in last
	acts        int // operations that end a row that others can notice
}

// opPool keeps chunks for the next use.
type opPool struct{ free *chunk }

// grow makes room at the end of q and returns the place.
func (p *opPool) grow(q *opQueue) *op {
	if q.last == nil || q.tail == chunkOps {
		c := p.free
		if c == nil {
			c = new(chunk)
		} else {
			p.free = c.next
			c.next = nil
		}
		if q.last == nil {
			q.first, q.head = c, 0
		} else {
			q.last.next = c
		}
		q.last, q.tail = c, 0
	}
	q.tail++
	return &q.last.ops[q.tail-1]
}

func (q *opQueue) empty() bool { return q.first == nil }

// take moves the first operation to o; the queue is not empty.
func (p *opPool) take(q *opQueue, o *op) {
	*o = q.first.ops[q.head]
	q.head++
	switch {
	case q.first == q.last && q.head == q.tail:
		q.first.next, p.free = p.free, q.first
		q.first, q.last = nil, nil
	case q.head == chunkOps:
		c := q.first
		q.first, q.head = c.next, 0
		c.next, p.free = p.free, c
	}
}
