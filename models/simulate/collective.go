package simulate

import (
	"fmt"

	"github.com/commq/commq/models"
	"github.com/commq/commq/schema"
)

// comm is a communicator.
type comm struct {
	id    int32
	size  int32
	open  []int32 // its collectives that not all have entered, or that are not over
	nodes int32   // how many its ranks are on
	sizes sizesOf // while streams run ahead
	world []int32 // its members' world ranks
	// Dimemas counts who takes part per communicator, over all its collectives that are under way.
	shares []models.NodeShare
	at     []int32 // by node: its place in shares + 1
	// Its root is whose call of a blocking one had a root last, also that of a Reduce of messages, which forgets neither it nor
	// who took part: the next collective that is none does.
	root int32
}

// entered is what a rank brings to a collective of Dimemas.
type entered struct {
	rank, taker    int32
	sent, received int64
}

// collective is one that some ranks have entered.
type collective struct {
	instance int64
	comm     int32
	root     int32 // world rank; none
	call     int16
	site     int32
	first    int32 // world rank of who came first
	rank     int32 // whose bytes count in Dimemas: the root's, else those of who came last
	taker    int32 // who stands for all while the buses are got: of rank
	buses    int
	ended    int // of a Reduce of messages: ranks whose message is there
	sent     int64
	received int64
	bytes    int64 // that all send and receive
	sizes    models.Sizes
	takers   []int32 // of those that have come
	entries  []entered
	waiting  int32 // the root of a Reduce of messages
}

// collective does a collective operation: it enters.
func (e *engine) collective(i int32) {
	s := &e.streams[i]
	o := &s.op
	messages := e.reduceMessages && o.kind == opCollective && o.flags&flagMessages != 0 && o.flags&flagRooted != 0
	if o.kind == opIcollective || messages {
		if e.pays(i, e.startLatency(s.node, &e.comms[o.comm])) {
			return
		}
	}
	if messages {
		e.reduce(i)
		return
	}
	enters := s.op
	rank := s.rank
	taker := takerOf(i)
	if o.kind == opIcollective {
		taker = o.req
		e.requests[taker].of(o)
		e.requests[taker].channel = i
		if e.arrivalOrder {
			e.continues(i)
		} else {
			e.completed(i, true)
		}
	} else {
		e.block(i)
	}
	e.enter(&enters, i, rank, taker)
}

// startLatency is what a nonblocking collective costs its caller in Dimemas: to another node and inside one, whichever is longer.
func (e *engine) startLatency(on int32, c *comm) Picoseconds {
	n := &e.nodes[on]
	var l Picoseconds
	if c.nodes > 1 {
		l = n.Latency
	}
	if c.nodes < c.size {
		l = max(l, n.IntraNode.Latency)
	}
	return l / 1000 * 1000 // whole nanoseconds
}

// enter counts a rank in, and starts the collective when it was the last.
func (e *engine) enter(o *op, i, rank, taker int32) {
	c := e.opened(o, rank)
	if c == none {
		return
	}
	x := &e.colls[c]
	if x.root == none || x.root == rank {
		x.rank, x.taker, x.sent, x.received = rank, taker, max(o.send, 0), max(o.recv, 0)
		x.sizes.Add(o.send, o.recv)
	}
	if x.taker == none {
		x.taker = taker
	}
	x.takers = append(x.takers, taker)
	x.bytes += max(o.send, 0) + max(o.recv, 0)
	g := &e.comms[x.comm]
	if e.wholeNodes {
		g.share(int(e.streams[i].node), len(e.nodes))
	}
	if e.wholeNodes && o.kind == opCollective {
		x.entries = append(x.entries, entered{rank, taker, max(o.send, 0), max(o.recv, 0)})
		if x.root == rank {
			g.root = rank
		}
	}
	if len(x.takers) < int(g.size) {
		return
	}
	e.result.collective(o, x.bytes)
	g.sizes.entered(o.instance)
	if len(x.entries) > 0 && g.root != none {
		x.represents(g.root)
	}
	if e.busCollectives && e.buses.total != 0 && e.buses.busy != 0 {
		x.buses = e.buses.total - e.buses.busy
		e.buses.busy = e.buses.total
		e.buses.queue.push(collectiveWaiter(c))
		return
	}
	e.startCollective(c)
}

// represents makes the rank the one that stands for all.
func (x *collective) represents(rank int32) {
	for _, in := range x.entries {
		if in.rank == rank {
			x.rank, x.taker, x.sent, x.received = rank, in.taker, in.sent, in.received
			return
		}
	}
}

// share counts a rank of a node in.
func (g *comm) share(node, nodes int) {
	if g.at == nil {
		g.at = make([]int32, nodes)
	}
	if g.at[node] == 0 {
		g.shares = append(g.shares, models.NodeShare{Node: node})
		g.at[node] = int32(len(g.shares))
	}
	g.shares[g.at[node]-1].Ranks++
}

// unshared forgets who took part.
func (g *comm) unshared() {
	for _, s := range g.shares {
		g.at[s.Node] = 0
	}
	g.shares = g.shares[:0]
}

// opened is the collective that a rank enters; none after an error.
func (e *engine) opened(o *op, rank int32) int32 {
	g := &e.comms[o.comm]
	root := none
	if o.flags&flagRooted != 0 {
		root = o.peer
	}
	for _, c := range g.open {
		x := &e.colls[c]
		if x.instance != o.instance {
			continue
		}
		if what := mismatch(x, o, root); what != "" {
			e.fail(fmt.Errorf("mismatched collectives: operation %d on communicator %d: rank %d calls %s%s, rank %d calls %s%s%s", o.instance, g.id,
				x.first, schema.CallID(x.call), e.at(x.site), rank, o.callID(), e.at(o.site), what))
			return none
		}
		return c
	}
	c := e.newCollective()
	e.colls[c] = collective{instance: o.instance, comm: o.comm, root: root, call: o.call, site: o.site, first: rank, taker: none, rank: none,
		waiting: none, takers: e.colls[c].takers[:0], entries: e.colls[c].entries[:0]}
	g.open = append(g.open, c)
	return c
}

// mismatch says what is wrong with a call that is to be part of a collective.
func mismatch(x *collective, o *op, root int32) string {
	a, b := schema.CallID(x.call), o.callID()
	if a != b && (a.Operation() != b.Operation() || a.Operation() == 0) {
		return "; ranks must call the same operation in the same order"
	}
	if x.root != root && o.flags&flagInter == 0 {
		return fmt.Sprintf("; their roots are ranks %d and %d", x.root, root)
	}
	return ""
}

func (e *engine) newCollective() int32 {
	if n := len(e.freeColl); n > 0 {
		c := e.freeColl[n-1]
		e.freeColl = e.freeColl[:n-1]
		return c
	}
	e.colls = append(e.colls, collective{})
	return int32(len(e.colls) - 1)
}

// startCollective begins a collective that all have entered, and that has what it needs.
func (e *engine) startCollective(c int32) {
	x := &e.colls[c]
	if e.busCollectives {
		e.buses.busy = e.buses.total
	}
	var took Picoseconds
	phases := e.phases(schema.CallID(x.call))
	if e.wholeNodes {
		took = e.machine.DimemasCollective(phases, x.sent, x.received, int(e.nodeOf[x.rank]), len(e.nodes), e.comms[x.comm].shares)
	} else {
		took = e.machine.Network.Collective(phases, len(x.takers), &x.sizes)
	}
	e.events.push(e.after(took), collectiveEnds, c)
}

// phases are those of a call's operation.
func (e *engine) phases(call schema.CallID) models.Phases {
	operation := call.Operation()
	if e.reduceMessages && operation == schema.CallReduce {
		return models.Phases{FanIn: models.CT, SizeIn: models.CURRENT, FanOut: models.CT, SizeOut: models.CURRENT}
	}
	if p, ok := e.machine.Collectives[operation]; ok {
		return p
	}
	return e.machine.Collectives[schema.CallBarrier]
}

// collectiveEnds lets all go on: in the order in which they came, who stands for them last.
func (e *engine) collectiveEnds(c int32) {
	x := &e.colls[c]
	if e.busCollectives && e.buses.total != 0 {
		e.freeAllBuses()
	}
	x = &e.colls[c]
	g := &e.comms[x.comm]
	g.unshared()
	if len(x.entries) > 0 {
		g.root = none
	}
	g.closed(c)
	takers, last := x.takers, x.taker
	for _, t := range takers {
		if t != last {
			e.leaves(t)
		}
	}
	e.leaves(last)
	e.colls[c].takers = takers[:0]
	e.freeColl = append(e.freeColl, c)
}

// leaves lets a taker go on after a collective.
func (e *engine) leaves(taker int32) {
	if isStream(taker) {
		e.completed(streamOf(taker), false)
		return
	}
	if !e.arrivalOrder {
		e.doneLater(taker)
		return
	}
	q := &e.requests[taker]
	i := q.channel // the stream that started it
	if q.orphan || q.done {
		e.freeRequest(taker)
	} else {
		q.done = true
	}
	if q.orphan {
		return
	}
	if s := &e.streams[i]; s.collectiveWaits > 0 {
		s.collectiveWaits--
		e.completed(i, false)
	} else {
		s.collectives++
	}
}

// doneLater is done, without a CPU at once: all who leave get one together.
func (e *engine) doneLater(r int32) {
	q := &e.requests[r]
	if q.orphan {
		e.freeRequest(r)
		return
	}
	q.done = true
	if i := q.waiter; i != none && e.waits(i) {
		e.completed(i, false)
	}
}

// closed takes a collective off the communicator's list.
func (g *comm) closed(c int32) {
	for k, o := range g.open {
		if o == c {
			g.open = append(g.open[:k], g.open[k+1:]...)
			return
		}
	}
}

// freeAllBuses frees the buses that a collective had: those who wait for one get them in turn.
func (e *engine) freeAllBuses() {
	b := &e.buses
	b.busy = 0
	for n := b.queue.len(); n > 0 && b.busy < b.total; n-- {
		e.busFree(b)
	}
}

// waitCollective is Dimemas' wait for a nonblocking collective: for any of those that the stream started.
func (e *engine) waitCollective(i, r int32) {
	s := &e.streams[i]
	if e.pays(i, e.startLatency(s.node, &e.comms[s.op.comm])) {
		return
	}
	if q := &e.requests[r]; q.done { // who of the two comes last frees its place
		e.freeRequest(r)
	} else {
		q.done = true
	}
	if s.collectives > 0 {
		s.collectives--
		e.completed(i, true)
		return
	}
	s.collectiveWaits++
	e.block(i)
}

// reduce does an MPI_Reduce as Dimemas does those that its translator writes: everyone sends a message to the root.
func (e *engine) reduce(i int32) {
	s := &e.streams[i]
	c := e.opened(&s.op, s.rank)
	if c == none {
		return
	}
	x := &e.colls[c]
	x.takers = append(x.takers, takerOf(i))
	x.bytes += max(s.op.send, 0) + max(s.op.recv, 0)
	if len(x.takers) == int(e.comms[x.comm].size) {
		e.result.collective(&s.op, x.bytes)
	}
	g := &e.comms[x.comm]
	g.share(int(s.node), len(e.nodes))
	if s.rank != x.root {
		e.block(i)
		to := x.root
		if schema.CallID(x.call).Operation() != schema.CallReduce {
			to = 0 // where Dimemas reads the root's rank, only a Reduce has it
		}
		m := e.newMessage(i, to, s.op.send)
		e.messages[m].channel, e.messages[m].sender = collectiveWaiter(c), takerOf(i)
		e.transport(m)
		return
	}
	g.root = s.rank
	if x.ended++; x.ended < int(g.size) {
		x.waiting = takerOf(i)
		e.block(i)
		return
	}
	e.reduced(c)
	e.continues(i)
}

// reduceArrived is when a message of a Reduce is there: its sender goes on, and the root when it was the last.
func (e *engine) reduceArrived(c, sender int32) {
	x := &e.colls[c]
	if x.ended++; x.ended == int(e.comms[x.comm].size) {
		root := streamOf(x.waiting)
		e.reduced(c)
		e.completed(root, false)
	}
	e.completed(sender, false)
}

func (e *engine) reduced(c int32) {
	e.comms[e.colls[c].comm].closed(c)
	e.freeColl = append(e.freeColl, c)
}
