package simulate

import "math"

// network moves messages. Each needs a link of its sender, one of its receiver and a bus at the same time, and queues
// for those that are busy. Collectives (Dimemas) take all buses. The network schedules the end of each message.
type network struct {
	clock     *clock
	setting   *setting
	messages  messagePool
	nodePorts []port    // links to other nodes, by node
	rankPorts []port    // links inside nodes, by rank; nil without contention
	buses     busPool   // between nodes
	nodeBuses []busPool // inside nodes, by node
	reserved  []int32   // by collective that waits for all buses: how many it has got
	contended bool      // messages can wait for links or buses
}

func newNetwork(c *clock, x *setting) *network {
	n := &network{clock: c, setting: x, messages: messagePool{free: none}, contended: x.contended(),
		nodePorts: make([]port, len(x.nodes)), nodeBuses: make([]busPool, len(x.nodes))}
	n.buses.total = x.machine.Network.Buses
	for i := range x.nodes {
		k := &x.nodes[i]
		n.nodePorts[i] = newPort(k.InputLinks, k.OutputLinks, k.HalfDuplex)
		n.nodeBuses[i].total = k.IntraNode.Buses
	}
	if n.contended {
		n.rankPorts = make([]port, len(x.nodeOf))
		for rank := range n.rankPorts {
			i := &x.nodes[x.nodeOf[rank]].IntraNode
			n.rankPorts[rank] = newPort(i.InputLinks, i.OutputLinks, i.HalfDuplex)
		}
	}
	return n
}

// busPool is a number of buses, and the queue of messages and collectives (see asWaiter) that wait for one.
type busPool struct {
	total, busy int
	queue       ring[int32]
}

// take gets a bus for a message. It returns false when the message has to wait.
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

// asWaiter encodes a collective as a number below none, for queues of buses and for message.channel.
func asWaiter(collective int32) int32 { return -2 - collective }
func isCollective(waiter int32) bool  { return waiter < none }
func collectiveOf(waiter int32) int32 { return -2 - waiter }

// port holds the links of a node or, inside a node, of a rank. A message needs a link of its sender's port and one of
// its receiver's. Half duplex means that a link serves one message at a time, in either direction.
type port struct {
	finite, half bool
	in, out      int     // free links
	holders      []int32 // messages that hold a link outwards, oldest first
	waitIn       list
	waitOut      list
}

func newPort(in, out int, half bool) port {
	finite := in != 0 || out != 0
	if finite && in == 0 { // only the other direction is bounded
		in = math.MaxInt
	}
	if finite && out == 0 {
		out = math.MaxInt
	}
	return port{finite: finite, half: half, in: in, out: out, waitIn: list{none, none}, waitOut: list{none, none}}
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

// replaceHolder replaces a message by another among the holders of links; none just removes it.
func (p *port) replaceHolder(old, m int32) {
	for k, h := range p.holders {
		if h == old {
			if m == none {
				p.holders = append(p.holders[:k], p.holders[k+1:]...)
			} else {
				p.holders[k] = m
			}
			return
		}
	}
}

// newMessage returns a message for the current operation of a thread, sent now.
func (n *network) newMessage(s *thread, dst int32, bytes int64) int32 {
	m := n.messages.add()
	n.messages.items[m] = message{bytes: part(bytes, n.setting.kept(s.rank, &s.op).Bytes), seq: s.op.seq,
		at: n.clock.now, src: s.rank, dst: dst, channel: none, to: none, sender: none, next: none, prev: none,
		site: s.op.site, call: s.op.call}
	return m
}

// send moves the message as far as links and buses allow: to its end, or into a queue.
func (n *network) send(m int32) {
	x := &n.messages.items[m]
	from, to := n.setting.nodeOf[x.src], n.setting.nodeOf[x.dst]
	switch {
	case !n.contended:
	case from == to:
		if !n.takeRankLinks(m) || !n.nodeBuses[from].take(m) {
			return
		}
	default:
		if !n.takeNodeLinks(m, &n.nodePorts[from], &n.nodePorts[to]) || !n.buses.take(m) {
			return
		}
	}
	n.clock.schedule(n.clock.after(n.setting.transfer(from, to, x.bytes)), messageEnds, m)
}

// lender returns the first message that holds a link outwards of the port while it only waits for a link inwards
// elsewhere, or none.
func (n *network) lender(p *port) int32 {
	for _, m := range p.holders {
		if n.messages.items[m].waitsIn {
			return m
		}
	}
	return none
}

// lend takes a link away from its lender and puts the lender at the head of the queue for links.
func (n *network) lend(p *port, m int32) {
	x := &n.messages.items[m]
	n.messages.remove(&n.nodePorts[n.setting.nodeOf[x.dst]].waitIn, m)
	x.waitsIn, x.out = false, false
	n.messages.pushFront(&p.waitOut, m)
}

// takeNodeLinks gets the links between two nodes for a message: first one outwards, then one inwards. A message keeps
// what it has got, but while it waits, its link may be lent to a message that can go at once. Returns false when the
// message has to wait.
func (n *network) takeNodeLinks(m int32, from, to *port) bool {
	x := &n.messages.items[m]
	outLender := none
	if from.finite && !x.out {
		if from.out > 0 {
			from.takeOut(m)
			x.out = true
		} else if outLender = n.lender(from); outLender == none {
			n.messages.pushBack(&from.waitOut, m)
			return false
		}
	}
	if !to.finite {
		return true
	}
	inLender := none // lender of a half-duplex link of the receiver
	if !x.in && to.in == 0 {
		if to.half {
			inLender = n.lender(to)
		}
		if inLender == none {
			if outLender != none {
				n.messages.pushBack(&from.waitOut, m)
			} else {
				x.waitsIn = true
				n.messages.pushBack(&to.waitIn, m)
			}
			return false
		}
	}
	if outLender != none {
		from.replaceHolder(outLender, m)
		x.out = true
		n.lend(from, outLender)
	}
	switch {
	case x.in:
	case inLender != none:
		to.replaceHolder(inLender, none)
		x.in = true
		n.lend(to, inLender)
	default:
		to.takeIn()
		x.in = true
	}
	return true
}

// takeRankLinks gets the links between two ranks of a node for a message. With half-duplex links it takes the lower
// rank's first. Returns false when the message has to wait.
func (n *network) takeRankLinks(m int32) bool {
	x := &n.messages.items[m]
	if x.src == x.dst || !n.rankPorts[x.src].finite {
		return true
	}
	from, to := &n.rankPorts[x.src], &n.rankPorts[x.dst]
	if from.half && x.src > x.dst {
		return n.takeInLink(m, to) && n.takeOutLink(m, from)
	}
	return n.takeOutLink(m, from) && n.takeInLink(m, to)
}

// takeOutLink gets a link outwards for the message, or queues it for one.
func (n *network) takeOutLink(m int32, from *port) bool {
	x := &n.messages.items[m]
	if x.out {
		return true
	}
	if from.out == 0 {
		n.messages.pushBack(&from.waitOut, m)
		return false
	}
	from.takeOut(m)
	x.out = true
	return true
}

// takeInLink gets a link inwards for the message, or queues it for one.
func (n *network) takeInLink(m int32, to *port) bool {
	x := &n.messages.items[m]
	if x.in {
		return true
	}
	if to.in == 0 {
		n.messages.pushBack(&to.waitIn, m)
		return false
	}
	to.takeIn()
	x.in = true
	return true
}

// release returns the message's links and bus, and moves the messages that waited for them. It returns the collective
// that now has all buses and starts, or none.
func (n *network) release(m int32) (collective int32) {
	if !n.contended {
		return none
	}
	x := &n.messages.items[m]
	from, to := n.setting.nodeOf[x.src], n.setting.nodeOf[x.dst]
	buses := &n.buses
	if from == to {
		buses = &n.nodeBuses[from]
		n.releaseLinks(m, &n.rankPorts[x.src], &n.rankPorts[x.dst])
	} else {
		n.releaseLinks(m, &n.nodePorts[from], &n.nodePorts[to])
	}
	if buses.total == 0 {
		return none
	}
	buses.busy--
	if buses.queue.empty() {
		return none
	}
	return n.grantBuses(buses)
}

// releaseLinks returns the message's links, the sender's first. The first message in the queue of each tries again.
func (n *network) releaseLinks(m int32, from, to *port) {
	if x := &n.messages.items[m]; x.out {
		x.out = false
		from.out++
		from.replaceHolder(m, none)
		if from.half {
			from.in++
			n.wakeIn(from)
		}
		n.wakeOut(from)
	}
	if x := &n.messages.items[m]; x.in {
		x.in = false
		to.in++
		if to.half {
			to.out++
			n.wakeOut(to)
		}
		n.wakeIn(to)
	}
}

func (n *network) wakeOut(p *port) {
	if w := n.messages.popFront(&p.waitOut); w != none {
		n.send(w)
	}
}

func (n *network) wakeIn(p *port) {
	if w := n.messages.popFront(&p.waitIn); w != none {
		n.messages.items[w].waitsIn = false
		n.send(w)
	}
}

// grantBuses gives free buses to the head of the queue: one to a message, all to a collective. It returns the
// collective that has all buses now, or none.
func (n *network) grantBuses(b *busPool) (collective int32) {
	first := b.queue.first()
	if !isCollective(first) {
		n.send(b.queue.pop())
		return none
	}
	c := collectiveOf(first)
	n.reserved[c] += int32(b.total - b.busy)
	b.busy = b.total
	if int(n.reserved[c]) < b.total {
		return none
	}
	b.queue.pop()
	return c
}

// takeAllBuses takes all buses for a collective. It returns false when the collective has to wait for some.
func (n *network) takeAllBuses(collective int32) bool {
	b := &n.buses
	free := b.total - b.busy
	waits := b.total != 0 && b.busy != 0
	b.busy = b.total
	if !waits {
		return true
	}
	for len(n.reserved) <= int(collective) {
		n.reserved = append(n.reserved, 0)
	}
	n.reserved[collective] = int32(free)
	b.queue.push(asWaiter(collective))
	return false
}

// releaseAllBuses frees the buses of a collective that ends, and grants them in the order of the queue. It returns
// the collective that has all buses now, or none.
func (n *network) releaseAllBuses() (collective int32) {
	b := &n.buses
	b.busy = 0
	for waiting := b.queue.len(); waiting > 0 && b.busy < b.total; waiting-- {
		if c := n.grantBuses(b); c != none {
			return c
		}
	}
	return none
}
