package simulate

import (
	"slices"

	"github.com/commq/commq/models"
)

// If no message ever waits for a link or a bus and no thread for a CPU, threads wait only for messages and
// collectives. Then nothing that a thread does affects others before its messages arrive. So the thread runs ahead of
// the event queue: through bursts, nonblocking receives, sends that do not wait for their receiver, and receives and
// waits for messages that have already arrived. All other operations remain events, in order of time. Before such an
// event is processed, all threads have run ahead to it.
//
// In Dimemas the order of two simultaneous events can matter: which rank enters a collective last, and whether a
// message that waits for its receiver comes before another one arrives. That order depends on the whole history. Once
// a call is read for which it can matter, threads stop running ahead.

// canLookAhead reports whether threads may run ahead: every thread always finds a free CPU on its node, and no two
// threads share requests.
func (c *scheduler) canLookAhead() bool {
	on := make([]int32, len(c.nodes))
	for i := range c.threads {
		on[c.threads[i].node]++
		if i > 0 && c.threads[i].rank == c.threads[i-1].rank {
			return false
		}
	}
	for i := range c.nodes {
		if c.nodes[i].cpus < on[i] {
			return false
		}
	}
	return true
}

// collectiveSizes records the sizes of a communicator's rootless collectives, beginning with the first one that some
// rank has not entered yet.
type collectiveSizes struct {
	first int64 // instance of sizes[0]
	sizes []struct {
		known      bool
		send, recv int64
	}
}

// matches reports whether an operation has the same sizes as the calls of other ranks in the same collective so far.
func (c *collectiveSizes) matches(o *op) bool {
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

// forget drops a collective that all ranks have entered, and those before it.
func (c *collectiveSizes) forget(instance int64) {
	if k := instance - c.first + 1; k > 0 && k <= int64(len(c.sizes)) {
		c.sizes, c.first = c.sizes[k:], instance+1
	}
}

// checkOrder stops threads from running ahead when an operation is read whose order among simultaneous events
// matters.
func (t *translator) checkOrder(o *op, rank int32) {
	if !t.cpus.lookahead || !t.rules.arrivalOrder {
		return
	}
	switch o.kind {
	case opSend, opIsend:
		t.cpus.lookahead = o.peer == rank || !t.setting.waitsForReceiver(o, rank)
	case opIcollective:
		t.cpus.lookahead = false
	case opCollective:
		t.cpus.lookahead = o.flags&flagRooted != 0 || t.comms.items[o.comm].sizes.matches(o)
	}
}

// advance lets all ready threads run as far ahead as they can.
func (e *engine) advance() {
	for k := 0; k < len(e.cpus.going); k++ {
		e.cpus.current = e.cpus.going[k]
		e.advanceThread(e.cpus.current)
	}
	e.cpus.going, e.cpus.current = e.cpus.going[:0], none
}

// advanceThread runs a thread ahead until it has to wait for an event.
func (e *engine) advanceThread(i int32) {
	s := &e.threads[i]
	for s.going && e.progress.err == nil {
		s.going = false
		e.clock.now = s.readyAt
		if len(s.locals) > 0 && !s.startup {
			e.cpus.reportLocals(s)
		}
		at := e.clock.after(s.burst)
		if at >= models.Forever || !e.independent(s, at) {
			e.clock.schedule(at, burstEnds, i)
			return
		}
		e.clock.now = at
		e.burstEnds(i)
	}
}

// independent reports whether the thread may do its next operation, due at a time after its burst, before the events
// until then: they cannot affect it, and another operation follows it.
func (e *engine) independent(s *thread, at Picoseconds) bool {
	if !e.cpus.lookahead || s.queue.acts == 0 && !e.progress.ended {
		return false
	}
	o := &s.op
	switch o.kind {
	case opSend, opIsend:
		return !e.setting.waitsForReceiver(o, s.rank)
	case opIrecv:
		return true
	case opRecv:
		channels := e.p2p.channels
		return e.paysFirst(s, o.peer) ||
			e.p2p.arrived(&channels.channels[channels.find(channelKey{o.peer, s.rank, o.tag, o.comm})], at)
	case opWait:
		return e.waitEndsAtOnce(s, at)
	}
	return false
}

// paysFirst reports whether the thread, after this burst, is busy for a latency before it receives from a rank.
func (e *engine) paysFirst(s *thread, src int32) bool {
	return e.rules.cpuLatency && !s.startup &&
		e.setting.keptLatency(e.setting.latency(src, s.rank), s.rank, &s.op) >= leastLatency
}

// waitEndsAtOnce reports whether a wait of the thread at a time has nothing to wait for.
func (e *engine) waitEndsAtOnce(s *thread, at Picoseconds) bool {
	if r := s.op.req; r != none && e.rules.arrivalOrder {
		switch q := &e.requests.items[r]; q.kind {
		case opIrecv:
			return e.paysFirst(s, q.peer) || q.channel != none && e.p2p.arrived(&e.p2p.channels.channels[q.channel], at)
		case opIcollective:
			return false
		}
	}
	return !slices.ContainsFunc(s.queue.chain, func(r int32) bool { return !e.requests.items[r].done })
}
