// Package clock runs the logical clock of PAS2P over the calls of a signature. Every call gets a tick:
//
//   - A call is at least one tick after the call before it on its rank.
//   - A call that receives, or completes receives, is at least one tick after each of the sends.
//   - A call that ends a collective operation is as late as the last rank that entered it.
//   - Sends do not wait. What a call sends does not wait for what it receives: it is sent one tick after the call
//     before it.
//
// On the way the clock finds ranks that would wait forever, and messages without a partner (faults.go). Repetitions
// that only add a constant to all ticks are skipped (repeat.go), so that a run of many iterations takes no longer than
// one of a few.
package clock

import (
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// Result is the end of a run of the clock.
type Result struct {
	// Last is the largest tick.
	Last int32
	// Unmatched describes the channels on which messages are sent and not received, or received and not sent.
	Unmatched []string
}

// Run calls visit with the tick of every call, each rank's calls in order. Ticks count from 1. The error names ranks
// that wait forever. Memory grows with what is in flight, not with the number of calls.
func Run(sig *signature.Signature, visit func(rank int32, seq int64, tick int32)) (Result, error) {
	return RunSome(sig, nil, visit)
}

// RunSome is Run for callers that need the ticks of some calls only: wanted returns the seq of the next call of a rank
// whose tick is needed. Calls before it need not be visited. A nil wanted means that all are.
func RunSome(sig *signature.Signature, wanted func(rank int32) int64,
	visit func(rank int32, seq int64, tick int32)) (Result, error) {
	return newClock(sig, wanted, visit).run()
}

// newClock returns a clock before the first calls.
func newClock(sig *signature.Signature, wanted func(rank int32) int64,
	visit func(rank int32, seq int64, tick int32)) *clock {
	c := &clock{sig: sig, visit: visit, wanted: wanted, channels: map[signature.Channel]int32{},
		open: map[signature.Operation]int32{}, waiting: map[need][]int32{}, ranks: make([]rankState, sig.Ranks),
		mostDone: mostDone, sweepAt: mostDone}
	for r := range c.ranks {
		c.ranks[r] = rankState{cursor: sig.Cursor(int32(r)), made: make([]int32, len(sig.Nodes())),
			open: map[signature.Position][]need{}, operations: map[int32]int64{}}
		c.ready = append(c.ready, int32(r))
	}
	return c
}

// run runs the clock until all ranks are at their ends or wait.
func (c *clock) run() (Result, error) {
	for len(c.ready) > 0 || c.resume() {
		now := c.ready
		c.ready = nil
		for _, rank := range now {
			c.advance(rank)
		}
	}
	if err := c.checkFinished(); err != nil {
		return Result{}, err
	}
	return Result{c.last, c.unmatched()}, nil
}

// need is something that a call waits for: a message, by the channel's index and the message's number on it, or a
// collective operation, by its index.
type need struct {
	index      int32
	number     int32
	collective bool
}

const none = -1

// mostDone is the number of channels from which on those without messages in flight are forgotten. Most programs use
// fewer, again and again; others have a channel for each message, as its tag counts them.
const mostDone = 1 << 21

// clock is the state of Run.
type clock struct {
	sig         *signature.Signature
	visit       func(rank int32, seq int64, tick int32)
	channels    map[signature.Channel]int32 // index in queues
	queues      []queue
	unused      []int32                       // indexes of queues without a channel
	mostDone    int                           // the constant; less in tests
	sweepAt     int                           // forgetDone is called when there are so many channels
	open        map[signature.Operation]int32 // index in collectives
	collectives []collective
	free        []int32 // indexes of collectives that have ended
	waiting     map[need][]int32
	ready       []int32 // ranks that can go on
	ranks       []rankState
	last        int32

	wanted func(rank int32) int64
	pauses pauses
}

// queue has the messages of a channel. They are counted from one at which all before had been received: it differs
// from channel to channel.
type queue struct {
	sent   []int32 // tick of each send; received for messages that have been received
	first  int32   // number of the message sent[0]
	done   int32   // how many at the start of sent have been received
	posted int32   // receives
}

// isDone reports whether all that is sent is received, and no receive waits.
func (q *queue) isDone() bool {
	return int(q.done) == len(q.sent) && q.first+q.done == q.posted
}

const received = -1

// collective is a collective operation that some ranks have entered and not all have left.
type collective struct {
	operation        signature.Operation
	size             int32 // ranks of the communicator
	entered, leaving int32 // ranks that have entered; ranks that have not left
	latest           int32 // tick at which the last rank entered
}

// rankState is the position of a rank.
type rankState struct {
	cursor     signature.Cursor
	event      *template.Node // of the next call; nil: not read yet
	send       int32          // channel that the next call sends on, or none
	enters     int32          // collective that the next call enters, or none
	needs      []need         // what the next call waits for
	later      []need         // what a call that completes the next call waits for
	seq        int64          // of the next call
	tick       int32          // of the call before
	made       []int32        // calls so far, by node
	open       map[signature.Position][]need
	operations map[int32]int64 // so far, by communicator
}

// blockingReceive are the facts of calls that receive before they return.
const blockingReceive = schema.FactPointToPoint | schema.FactBlocking | schema.FactReceives

// read reads a rank's next call. It returns false at the end, and where the rank pauses between two repetitions.
func (c *clock) read(rank int32) bool {
	if len(c.channels) >= c.sweepAt {
		c.forgetDone()
	}
	p := &c.ranks[rank]
	n, value, again := p.cursor.NextOrRepeat()
	for ; again; n, value, again = p.cursor.NextOrRepeat() {
		if c.wanted != nil {
			c.pause(rank)
			return false
		}
	}
	p.event = n
	if n == nil {
		c.pauses.ended++
		return false
	}
	call := c.sig.Values[n.ID].Events[value]
	class := c.sig.Class(n, call)
	p.send, p.enters, p.needs, p.later = none, none, p.needs[:0], nil
	if sends(class, call) {
		p.send = c.channel(call.SendChannel(rank))
	}
	if receives(class, call) {
		index := c.channel(call.RecvChannel(rank))
		x := need{index, c.queues[index].posted, false}
		c.queues[index].posted++
		c.pauses.pending++
		if c.sig.Symbols[n.Symbol].CallID.Is(blockingReceive) {
			p.needs = append(p.needs, x)
		} else {
			p.later = append(p.later, x)
		}
	}
	comm := call.Comm.Int32()
	if call.Instance && class == schema.ClassCollective && call.Init == nil {
		p.enters = c.collective(signature.Operation{Comm: comm, Number: p.operations[comm]})
		x := need{p.enters, 0, true}
		if call.Request {
			p.later = append(p.later, x)
		} else {
			p.needs = append(p.needs, x)
		}
	}
	if call.Instance {
		p.operations[comm]++
	}
	for _, b := range call.Completes {
		for k := range b[2] {
			q := b.Position(p.made, k)
			p.needs = append(p.needs, p.open[q]...)
			delete(p.open, q)
		}
	}
	if p.later != nil {
		p.open[signature.Position{Node: n.ID, Number: p.made[n.ID]}] = p.later
	}
	p.made[n.ID]++
	return true
}

// channel returns the index of a channel.
func (c *clock) channel(k signature.Channel) int32 {
	index, known := c.channels[k]
	if known {
		return index
	}
	if n := len(c.unused); n > 0 {
		index, c.unused = c.unused[n-1], c.unused[:n-1]
	} else {
		index = int32(len(c.queues))
		c.queues = append(c.queues, queue{})
	}
	c.channels[k] = index
	return index
}

// forgetDone forgets channels without messages in flight, when all calls that were read have sent, and sets when it is called next: not before there are twice
// as many as are left.
func (c *clock) forgetDone() {
	for k, index := range c.channels {
		if q := &c.queues[index]; q.isDone() {
			delete(c.channels, k)
			*q = queue{sent: q.sent[:0]}
			c.unused = append(c.unused, index)
		}
	}
	c.sweepAt = max(c.mostDone, 2*len(c.channels))
}

// collective returns the index of a collective operation.
func (c *clock) collective(op signature.Operation) int32 {
	index, known := c.open[op]
	if known {
		return index
	}
	if n := len(c.free); n > 0 {
		index, c.free = c.free[n-1], c.free[:n-1]
	} else {
		index = int32(len(c.collectives))
		c.collectives = append(c.collectives, collective{})
	}
	c.open[op] = index
	size := int32(0)
	if comm := c.sig.CommByID(op.Comm); comm != nil {
		for _, group := range [2]signature.Ranks{comm.Members, comm.Remote} {
			for _, world := range group {
				if world >= 0 {
					size++
				}
			}
		}
	}
	c.collectives[index] = collective{operation: op, size: size, leaving: size}
	return index
}

// quantum is the number of calls that a rank makes before other ranks get their turn, so that no rank runs far ahead
// of the receivers of its messages.
const quantum = 256

// advance lets a rank go on until it has to wait or its quantum is used up.
func (c *clock) advance(rank int32) {
	p := &c.ranks[rank]
	for range quantum {
		if p.event == nil && !c.read(rank) {
			return
		}
		tick := p.tick + 1
		if index := p.send; index != none {
			p.send = none // a call that both sends and receives comes here again after it waited
			q := &c.queues[index]
			q.sent = append(q.sent, tick)
			c.pauses.pending++
			c.wake(need{index, q.first + int32(len(q.sent)) - 1, false})
		}
		if index := p.enters; index != none {
			p.enters = none // the call comes here again after it waited
			x := &c.collectives[index]
			x.entered++
			x.latest = max(x.latest, tick)
			if x.entered == x.size {
				c.wake(need{index, 0, true})
			}
		}
		for _, x := range p.needs {
			earliest, met := c.earliest(x)
			if !met {
				c.waiting[x] = append(c.waiting[x], rank)
				return
			}
			tick = max(tick, earliest)
		}
		for _, x := range p.needs {
			c.release(x)
		}
		c.visit(rank, p.seq, tick)
		c.last = max(c.last, tick)
		p.event, p.tick = nil, tick
		p.seq++
	}
	c.ready = append(c.ready, rank)
}

// wake makes the ranks ready that wait for x.
func (c *clock) wake(x need) {
	if ranks, found := c.waiting[x]; found {
		delete(c.waiting, x)
		c.ready = append(c.ready, ranks...)
	}
}

// earliest returns the first possible tick of a call that needs x. met is false while x has not happened.
func (c *clock) earliest(x need) (tick int32, met bool) {
	if x.collective {
		k := &c.collectives[x.index]
		return k.latest, k.entered >= k.size
	}
	q := &c.queues[x.index]
	if i := int(x.number - q.first); i < len(q.sent) {
		return q.sent[i] + 1, true
	}
	return 0, false
}

// release frees what a call has waited for.
func (c *clock) release(x need) {
	if x.collective {
		k := &c.collectives[x.index]
		if k.leaving--; k.leaving == 0 {
			delete(c.open, k.operation)
			c.free = append(c.free, x.index)
		}
		return
	}
	c.pauses.pending -= 2 // the message and its receive
	q := &c.queues[x.index]
	q.sent[x.number-q.first] = received
	for int(q.done) < len(q.sent) && q.sent[q.done] == received {
		q.done++
	}
	if 2*int(q.done) >= len(q.sent) {
		q.sent = append(q.sent[:0], q.sent[q.done:]...)
		q.first, q.done = q.first+q.done, 0
	}
}
