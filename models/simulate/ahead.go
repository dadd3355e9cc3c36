package simulate

import (
	"slices"

	"github.com/commq/commq/models"
)

// Where no message waits for a link or a bus and no stream for a CPU, streams only wait for messages and collectives. What a stream does
// then changes nothing for others before the messages that it sends arrive, and it runs ahead of the events: through bursts, receives that
// do not block, sends that do not wait for their receiver, and receives and waits for what is there already. Everything else happens
// in the order of time, as an event. When that comes every stream has done what it does before it.
//
// In Dimemas it can matter what of two things at the same time was planned first: which of several ranks comes last to a collective,
// and whether a message that waits for its receiver comes before another arrives. That follows from everything before. Once a call
// is read where it can matter, streams stay with the events.

// roomy says that a stream finds a CPU of its node whenever it wants one, and that no two streams share requests.
func (e *engine) roomy() bool {
	on := make([]int32, len(e.nodes))
	for i := range e.streams {
		on[e.streams[i].node]++
		if i > 0 && e.streams[i].rank == e.streams[i-1].rank {
			return false
		}
	}
	for i := range e.nodes {
		if e.nodes[i].cpus < on[i] {
			return false
		}
	}
	return true
}

// sizesOf are what each rank of a communicator's collectives without a root sends and receives, from the first on that not all have
// entered.
type sizesOf struct {
	first int64 // its instance
	sizes []struct {
		known      bool
		send, recv int64
	}
}

// same says whether the sizes are those of the ranks of the same collective that were read before.
func (c *sizesOf) same(o *op) bool {
	if len(c.sizes) == 0 {
		c.first = o.instance
	}
	k := o.instance - c.first
	if k < 0 || k > 1<<20 {
		return false
	}
	for int64(len(c.sizes)) <= k {
		c.sizes = append(c.sizes, struct {
			known      bool
			send, recv int64
		}{})
	}
	s := &c.sizes[k]
	if !s.known {
		s.known, s.send, s.recv = true, o.send, o.recv
	}
	return s.send == o.send && s.recv == o.recv
}

// entered forgets a collective that all have entered, and those before it.
func (c *sizesOf) entered(instance int64) {
	if k := instance - c.first + 1; k > 0 && k <= int64(len(c.sizes)) {
		c.sizes, c.first = c.sizes[k:], instance+1
	}
}

// keepsOrder ends running ahead where the order matters in which a call that was read comes among others at the same time.
func (e *engine) keepsOrder(o *op, rank int32) {
	if !e.lookahead || !e.arrivalOrder {
		return
	}
	switch o.kind {
	case opSend, opIsend:
		e.lookahead = o.peer == rank || !e.waitsForReceiver(o, rank)
	case opIcollective:
		e.lookahead = false
	case opCollective:
		e.lookahead = o.flags&flagRooted != 0 || e.comms[o.comm].sizes.same(o)
	}
}

// advance lets all streams that are ready run as far ahead as they can.
func (e *engine) advance() {
	for k := 0; k < len(e.going); k++ {
		e.current = e.going[k]
		e.advanceOne(e.current)
	}
	e.going, e.current = e.going[:0], none
}

// advanceOne lets a stream run ahead until it has to wait for an event.
func (e *engine) advanceOne(i int32) {
	s := &e.streams[i]
	for s.going && e.err == nil {
		s.going = false
		e.now = s.readyAt
		if len(s.locals) > 0 && !s.startup {
			e.doneLocals(s)
		}
		at := e.after(s.burst)
		if at >= models.Forever || !e.private(s, at) {
			e.events.push(at, burstEnds, i)
			return
		}
		e.now = at
		e.burstEnds(i)
	}
}

// private says whether what the stream does after its burst, at that time, can be done before the events that come first: it cannot be changed by
// them, and afterwards there is another operation to do.
func (e *engine) private(s *stream, at Picoseconds) bool {
	if !e.lookahead || s.queue.acts == 0 && !e.ended {
		return false
	}
	o := &s.op
	switch o.kind {
	case opSend, opIsend:
		return !e.waitsForReceiver(o, s.rank)
	case opIrecv:
		return true
	case opRecv:
		return e.paysFirst(s, o.peer) || e.isThere(&e.channels.channels[e.channels.find(channelKey{o.peer, s.rank, o.tag, o.comm})], at)
	case opWait:
		return e.nothingToWaitFor(s, at)
	}
	return false
}

// paysFirst says whether the stream is busy for a latency before its receive from a rank, after this burst.
func (e *engine) paysFirst(s *stream, src int32) bool {
	return e.cpuLatency && !s.startup && e.latency(src, s.rank) >= leastLatency
}

// isThere says whether the next message of a channel has arrived, at the latest at that time.
func (e *engine) isThere(ch *channel, at Picoseconds) bool {
	if ch.sends.empty() {
		return false
	}
	x := &e.messages[ch.sends.first()]
	return x.arrived || e.arrivalOrder && x.at <= at
}

// nothingToWaitFor says whether a wait of the stream at that time ends at once.
func (e *engine) nothingToWaitFor(s *stream, at Picoseconds) bool {
	if r := s.op.req; r != none && e.arrivalOrder {
		switch q := &e.requests[r]; q.kind {
		case opIrecv:
			return e.paysFirst(s, q.peer) || q.channel != none && e.isThere(&e.channels.channels[q.channel], at)
		case opIcollective:
			return false
		}
	}
	return !slices.ContainsFunc(s.queue.chain, func(r int32) bool { return !e.requests[r].done })
}

// flies sends a message of Dimemas on its way. Which message a receive gets changes nothing, only how many have arrived when it comes: so
// that when one arrives is an event only for a receiver that waits.
func (e *engine) flies(m int32) {
	x := &e.messages[m]
	ch := &e.channels.channels[x.channel]
	at := e.after(e.transfer(e.nodeOf[x.src], e.nodeOf[x.dst], x.bytes))
	e.arrives(ch, m, at)
	if !ch.receives.empty() {
		e.events.push(at, messageArrives, x.channel)
	}
}

// arrives puts a message among those of its channel, in the order in which they arrive.
func (e *engine) arrives(ch *channel, m int32, at Picoseconds) {
	e.messages[m].at = at
	ch.sends.insert(m, func(other int32) bool { return e.messages[other].at > at })
}

// messageArrives gives a message to the receiver that waits on a channel. It may have had another that came before.
func (e *engine) messageArrives(c int32) {
	ch := &e.channels.channels[c]
	if ch.receives.empty() || !e.isThere(ch, e.now) {
		return
	}
	e.freeMessage(ch.sends.pop())
	e.resumed(ch.receives.pop())
}
