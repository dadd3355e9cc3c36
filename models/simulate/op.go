package simulate

import "github.com/commq/commq/schema"

// opKind is the kind of an operation.
type opKind uint8

const (
	opLocal       opKind = iota // takes no time and affects nobody else
	opEnd                       // the last operation of a thread
	opMark                      // like opLocal; in Dimemas the next burst queues behind the other threads of the node
	opSend                      // ends when the buffer can be reused
	opIsend                     // its request completes then
	opRecv                      // ends when the message is there
	opIrecv                     // its request completes then
	opWait                      // ends when all requests of a chain are complete
	opProbe                     // ends when the channel's next message can be detected
	opCollective                // ends when all ranks have entered and its phases are over
	opIcollective               // its request completes then
	opPut                       // one-sided transfer to peer
	opGet                       // one-sided transfer from peer
	opLock                      // ends when the thread has a window's lock on peer
	opUnlock                    // gives it back
)

// Flags of an operation.
const (
	flagSync     = 1 << iota // a send that waits for its receiver, whatever its size
	flagBuffered             // a send that never waits for its receiver
	flagPart                 // the next operation is of the same row
	flagInter                // on an intercommunicator
	flagFallback             // a collective that uses the phases of another operation
	flagRooted               // a collective with a root, which is in peer
	flagNoBurst              // no burst comes before it, not even one of zero length
	flagMessages             // a collective that Dimemas performs by messages
)

// flagExclusive is, of a lock, that no other thread has it at the same time.
const flagExclusive = flagSync

// flagIO is, of a local operation, that its burst is input or output: it takes as long on every node.
// Only sends have the other meaning of the bit.
const flagIO = flagBuffered

// op is an operation of a thread, after a burst of computing.
type op struct {
	opType
	compute  int64 // burst before it, in ns on the machine where the run was captured
	seq      int64 // row
	instance int64 // of a collective
	req      int32 // request, or first of a chain
}

// opType is the part of an operation that recurs: programs have loops, and ranks run the same code.
type opType struct {
	send     int64 // bytes
	recv     int64 // bytes, of a collective or a get
	peer     int32 // world rank; the root of a collective
	tag      int32
	comm     int32 // index
	site     int32
	call     int16
	step     int16 // difference to the seq of the previous operation; only opPool uses step and operands
	kind     opKind
	flags    uint8
	operands uint8
}

// acts reports whether the operation is the last one of its row and more than local; opQueue.acts counts those.
func (o *op) acts() bool { return o.kind != opLocal && o.flags&flagPart == 0 }

// callID is the call of the row.
func (o *op) callID() schema.CallID { return schema.CallID(o.call) }

// relative reports whether peer is the partner of a message. Then the type stores the distance from the rank instead
// of the peer, so that more ranks share a type.
func (k opKind) relative() bool {
	return k >= opSend && k <= opIrecv || k == opProbe || k == opPut || k == opGet
}
