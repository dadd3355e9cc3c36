package simulate

import (
	"math"

	"github.com/commq/commq/models"
)

// busPool is a number of buses, and what waits for one: messages and collectives, by waiter.
type busPool struct {
	total, busy int
	queue       ring[int32]
}

// port is a node's (or a rank's) links. A message holds a link of its sender's port and one of its receiver's; the links that
// are half duplex are held in both directions at once.
type port struct {
	finite, half bool
	in, out      int     // free links
	holders      []int32 // messages that hold a link outwards, in the order in which they took it
	waitIn       list
	waitOut      list
}

func newPort(in, out int, half bool) port {
	finite := in != 0 || out != 0
	if finite && in == 0 { // only the other direction has a bound
		in = math.MaxInt
	}
	if finite && out == 0 {
		out = math.MaxInt
	}
	return port{finite: finite, half: half, in: in, out: out, waitIn: list{none, none}, waitOut: list{none, none}}
}

// list is a queue of messages, by message.next and message.prev.
type list struct{ first, last int32 }

func (e *engine) pushBack(l *list, m int32) {
	x := &e.messages[m]
	x.next, x.prev = none, l.last
	if l.last == none {
		l.first = m
	} else {
		e.messages[l.last].next = m
	}
	l.last = m
}

func (e *engine) pushFront(l *list, m int32) {
	x := &e.messages[m]
	x.next, x.prev = l.first, none
	if l.first == none {
		l.last = m
	} else {
		e.messages[l.first].prev = m
	}
	l.first = m
}

func (e *engine) remove(l *list, m int32) {
	x := &e.messages[m]
	if x.prev == none {
		l.first = x.next
	} else {
		e.messages[x.prev].next = x.next
	}
	if x.next == none {
		l.last = x.prev
	} else {
		e.messages[x.next].prev = x.prev
	}
}

func (e *engine) popFront(l *list) int32 {
	m := l.first
	if m != none {
		e.remove(l, m)
	}
	return m
}

// takeOut gives the message a free link outwards.
func (p *port) takeOut(m int32) {
	p.out--
	if p.half {
		p.in--
	}
	p.holders = append(p.holders, m)
}

// takeIn gives a message a free link inwards.
func (p *port) takeIn() {
	p.in--
	if p.half {
		p.out--
	}
}

// lender is the first message that holds a link outwards of the port and does no more than wait for one inwards elsewhere; none.
func (e *engine) lender(p *port) int32 {
	for _, m := range p.holders {
		if e.messages[m].waitsIn {
			return m
		}
	}
	return none
}

// lend takes the link away from its lender, which waits for one again, before all others.
func (e *engine) lend(p *port, m int32) {
	x := &e.messages[m]
	e.remove(&e.nodes[e.nodeOf[x.dst]].port.waitIn, m)
	x.waitsIn, x.out = false, false
	e.pushFront(&p.waitOut, m)
}

// holds puts a message in another's place among the holders; none: nobody.
func (p *port) holds(other, m int32) {
	for k, h := range p.holders {
		if h == other {
			if m == none {
				p.holders = append(p.holders[:k], p.holders[k+1:]...)
			} else {
				p.holders[k] = m
			}
			return
		}
	}
}

// networkLinks gets the message its links between two nodes: first one outwards, then one inwards, keeping what it has. A
// link whose holder only waits may be lent to a message that can go at once. False: the message waits.
func (e *engine) networkLinks(m int32, from, to *port) bool {
	x := &e.messages[m]
	borrow := none
	if from.finite && !x.out {
		if from.out > 0 {
			from.takeOut(m)
			x.out = true
		} else if borrow = e.lender(from); borrow == none {
			e.pushBack(&from.waitOut, m)
			return false
		}
	}
	if !to.finite {
		return true
	}
	back := none // who lends a half-duplex link of the receiver
	if !x.in && to.in == 0 {
		if to.half {
			back = e.lender(to)
		}
		if back == none {
			if borrow != none {
				e.pushBack(&from.waitOut, m)
			} else {
				x.waitsIn = true
				e.pushBack(&to.waitIn, m)
			}
			return false
		}
	}
	if borrow != none {
		from.holds(borrow, m)
		x.out = true
		e.lend(from, borrow)
	}
	switch {
	case x.in:
	case back != none:
		to.holds(back, none)
		x.in = true
		e.lend(to, back)
	default:
		to.takeIn()
		x.in = true
	}
	return true
}

// insideLinks gets the message its links between two ranks of a node. Where links are half duplex, the lower rank's comes
// first.
func (e *engine) insideLinks(m int32) bool {
	x := &e.messages[m]
	if x.src == x.dst || e.ports == nil || !e.ports[x.src].finite {
		return true
	}
	from, to := &e.ports[x.src], &e.ports[x.dst]
	out := func() bool {
		if !x.out {
			if from.out == 0 {
				e.pushBack(&from.waitOut, m)
				return false
			}
			from.takeOut(m)
			x.out = true
		}
		return true
	}
	in := func() bool {
		if !x.in {
			if to.in == 0 {
				e.pushBack(&to.waitIn, m)
				return false
			}
			to.takeIn()
			x.in = true
		}
		return true
	}
	if from.half && x.src > x.dst {
		return in() && out()
	}
	return out() && in()
}

// releaseLinks gives the message's links back, first that of the sender. The first who waits for each gets another try.
func (e *engine) releaseLinks(m int32, from, to *port) {
	if x := &e.messages[m]; x.out {
		x.out = false
		from.out++
		from.holds(m, none)
		if from.half {
			from.in++
			e.wakeIn(from)
		}
		e.wakeOut(from)
	}
	if x := &e.messages[m]; x.in {
		x.in = false
		to.in++
		if to.half {
			to.out++
			e.wakeOut(to)
		}
		e.wakeIn(to)
	}
}

func (e *engine) wakeOut(p *port) {
	if w := e.popFront(&p.waitOut); w != none {
		e.transport(w)
	}
}

func (e *engine) wakeIn(p *port) {
	if w := e.popFront(&p.waitIn); w != none {
		e.messages[w].waitsIn = false
		e.transport(w)
	}
}

// transport moves the message as far as links and buses allow: to its end, or to where it waits.
func (e *engine) transport(m int32) {
	x := &e.messages[m]
	from, to := e.nodeOf[x.src], e.nodeOf[x.dst]
	switch {
	case e.free:
	case from == to:
		if !e.insideLinks(m) || !e.nodes[from].buses.take(m) {
			return
		}
	default:
		if !e.networkLinks(m, &e.nodes[from].port, &e.nodes[to].port) || !e.buses.take(m) {
			return
		}
	}
	e.events.push(e.after(e.transfer(from, to, x.bytes)), messageEnds, m)
}

// transfer is how long bytes take from a node to a node.
func (e *engine) transfer(from, to int32, bytes int64) Picoseconds {
	switch {
	case from != to:
		return e.network.transfer(&e.machine.Network, bytes)
	case e.machine.Uneven != nil:
		return e.nodes[from].IntraNode.Transfer(bytes)
	}
	return e.inside.transfer(&e.machine.IntraNode, bytes)
}

// take gets a bus for a message; false: it waits.
func (b *busPool) take(m int32) bool {
	if b.total == 0 {
		return true
	}
	if b.busy >= b.total {
		b.queue.push(m)
		return false
	}
	b.busy++
	return true
}

// release gives the message's links and bus back.
func (e *engine) release(m int32) {
	x := &e.messages[m]
	from, to := e.nodeOf[x.src], e.nodeOf[x.dst]
	buses := &e.buses
	if from == to {
		buses = &e.nodes[from].buses
		if e.ports != nil {
			e.releaseLinks(m, &e.ports[x.src], &e.ports[x.dst])
		}
	} else {
		e.releaseLinks(m, &e.nodes[from].port, &e.nodes[to].port)
	}
	if buses.total == 0 {
		return
	}
	buses.busy--
	if !buses.queue.empty() {
		e.busFree(buses)
	}
}

// busFree gives the buses that are free to the first in the queue: one to a message, all to a collective, which starts when it
// has all.
func (e *engine) busFree(b *busPool) {
	first := b.queue.first()
	if !isCollective(first) {
		e.transport(b.queue.pop())
		return
	}
	c := &e.colls[collectiveOf(first)]
	c.buses += b.total - b.busy
	b.busy = b.total
	if c.buses == b.total {
		b.queue.pop()
		e.startCollective(collectiveOf(first))
	}
}

// In a queue of buses, and as a message's channel, a collective stands as a number below none.
func isCollective(waiter int32) bool  { return waiter < none }
func collectiveOf(waiter int32) int32 { return -2 - waiter }
func collectiveWaiter(c int32) int32  { return -2 - c }

// transferCache remembers how long sizes take.
type transferCache [256]struct {
	bytes int64
	took  Picoseconds
	known bool
}

func (c *transferCache) transfer(i *models.Interconnect, bytes int64) Picoseconds {
	k := &c[uint64(bytes)*0x9e3779b97f4a7c15>>56]
	if k.bytes != bytes || !k.known {
		k.bytes, k.took, k.known = bytes, i.Transfer(bytes), true
	}
	return k.took
}
