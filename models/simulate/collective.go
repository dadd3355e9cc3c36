package simulate

import (
	"fmt"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/nccl"
	"github.com/commq/commq/schema"
)

// communicators are those of the program, in its order.
type communicators struct{ items []comm }

// comm is the state of a communicator.
type comm struct {
	id    int32
	size  int32
	open  []int32         // collectives that some ranks have not entered, or that are not over
	nodes int32           // number of nodes that its ranks are on
	sizes collectiveSizes // while threads run ahead
	world []int32         // its members' world ranks

	// Dimemas counts the participants of a communicator over all its collectives in progress.
	shares  []models.NodeShare
	shareOf []int32 // by node: index in shares + 1

	// root is the rank that last called a blocking collective, or a Reduce made of messages, as its root. Such a
	// Reduce resets neither root nor shares; the next other collective does.
	root int32
}

// newCommunicators sets up the communicators of a program whose ranks are on the given nodes.
func newCommunicators(p *Program, nodeOf []int32, nodes int) (*communicators, error) {
	all := &communicators{}
	seen := make([]int32, nodes) // last communicator that has a rank on the node, + 1
	for k := range p.Comms {
		c := &p.Comms[k]
		world := c.Inside()
		g := comm{id: c.ID, size: int32(len(world)), world: world, root: none}
		for _, rank := range world {
			if rank < 0 || int(rank) >= len(p.Threads) {
				return nil, fmt.Errorf("communicator %d has rank %d, and the run has %d", c.ID, rank, len(p.Threads))
			}
			if n := nodeOf[rank]; seen[n] != int32(k)+1 {
				seen[n] = int32(k) + 1
				g.nodes++
			}
		}
		all.items = append(all.items, g)
	}
	return all, nil
}

// addShare counts a participant on a node.
func (g *comm) addShare(node int32, nodes int) {
	if g.shareOf == nil {
		g.shareOf = make([]int32, nodes)
	}
	if g.shareOf[node] == 0 {
		g.shares = append(g.shares, models.NodeShare{Node: int(node)})
		g.shareOf[node] = int32(len(g.shares))
	}
	g.shares[g.shareOf[node]-1].Ranks++
}

// resetShares clears the participants.
func (g *comm) resetShares() {
	for _, s := range g.shares {
		g.shareOf[s.Node] = 0
	}
	g.shares = g.shares[:0]
}

// closeCollective removes a collective from the open ones.
func (g *comm) closeCollective(c int32) {
	for k, other := range g.open {
		if other == c {
			g.open = append(g.open[:k], g.open[k+1:]...)
			return
		}
	}
}

// collective is a collective operation that some ranks have entered.
type collective struct {
	instance int64
	comm     int32
	root     int32 // world rank, or none
	call     int16
	site     int32
	first    int32 // world rank that entered first
	rank     int32 // world rank whose sizes Dimemas uses: the root, else the rank that entered last
	taker    int32 // taker of that rank: it leaves last
	arrived  int   // in a Reduce made of messages: number of ranks whose message has arrived
	sent     int64
	received int64
	bytes    int64 // sent by all
	sizes    models.Sizes
	takers   []int32 // of the ranks that have entered
	entries  []entry
	waiting  int32 // in a Reduce made of messages: taker of the root
}

// entry is what a rank contributes to a collective (Dimemas).
type entry struct {
	rank, taker    int32
	sent, received int64
}

// represent uses a rank's sizes for the whole collective.
func (x *collective) represent(rank int32) {
	for _, in := range x.entries {
		if in.rank == rank {
			x.rank, x.taker, x.sent, x.received = rank, in.taker, in.sent, in.received
			return
		}
	}
}

// mismatch says why an operation cannot be part of the collective; "" means that it can.
func (x *collective) mismatch(o *op, root int32) string {
	if !schema.CallID(x.call).MatchesCollective(o.callID()) {
		return "; ranks must call the same operation in the same order"
	}
	if x.root != root && o.flags&flagInter == 0 {
		return fmt.Sprintf("; their roots are ranks %d and %d", x.root, root)
	}
	return ""
}

// collectiveCounts count collectives, as in Result.
type collectiveCounts struct {
	all, bytes, fallback, fallbackBytes int64
	objects                             int64 // operations on communicators, windows and files
	// those that NCCL does
	nccl [nccl.Algorithms][nccl.Protocols]int64
}

func (c *collectiveCounts) add(o *op, bytes int64) {
	if o.callID().Operation() == 0 {
		c.objects++
		return
	}
	c.all++
	c.bytes += bytes
	if o.flags&flagFallback != 0 {
		c.fallback++
		c.fallbackBytes += bytes
	}
}

func (c *collectiveCounts) addTo(r *Result) {
	r.Collectives, r.CollectiveBytes = c.all, c.bytes
	r.FallbackCollectives, r.FallbackCollectiveBytes, r.ObjectOperations = c.fallback, c.fallbackBytes, c.objects
	for a, byProtocol := range c.nccl {
		for p, n := range byProtocol {
			if n > 0 {
				r.NCCL = append(r.NCCL, NCCLCount{nccl.Algorithm(a), nccl.Protocol(p), n})
			}
		}
	}
}

// collectives simulates collective operations: ranks enter; after the last one has, the machine's phases take their
// time and all ranks leave together.
type collectives struct {
	clock    *clock
	setting  *setting
	cpus     *scheduler
	threads  []thread `snapshot:"-"` // the scheduler's
	progress *progress
	requests *requestPool
	network  *network
	comms    *communicators
	items    []collective
	free     []int32
	counts   collectiveCounts
	// of Options.Keep: what each of the items keeps of its cost, and the machine on which messages have no latency
	kept      []Kept          `snapshot:"-"`
	noLatency *models.Machine `snapshot:"-"`
}

// startLatency returns the time that a nonblocking collective costs its caller in Dimemas: the longer one of the
// latencies to another node and inside a node.
func (k *collectives) startLatency(node, comm int32) Picoseconds {
	n, c := &k.setting.costs[node], &k.comms.items[comm]
	var l Picoseconds
	if c.nodes > 1 {
		l = n.latency
	}
	if c.nodes < c.size {
		l = max(l, n.inside)
	}
	return l / 1000 * 1000 // whole nanoseconds
}

// enter adds a rank to its collective. The collective starts when the last rank has entered.
func (k *collectives) enter(o *op, node, rank, taker int32) {
	c := k.find(o, rank)
	if c == none {
		return
	}
	k.keep(c, rank, o)
	rules := &k.setting.rules
	x := &k.items[c]
	if x.root == none || x.root == rank {
		x.rank, x.taker, x.sent, x.received = rank, taker, max(o.send, 0), max(o.recv, 0)
		x.sizes.Add(o.send, o.recv)
	}
	if x.taker == none {
		x.taker = taker
	}
	x.takers = append(x.takers, taker)
	x.bytes += max(o.send, 0)
	g := &k.comms.items[x.comm]
	if rules.wholeNodes {
		g.addShare(node, len(k.setting.nodes))
	}
	if rules.wholeNodes && o.kind == opCollective {
		x.entries = append(x.entries, entry{rank, taker, max(o.send, 0), max(o.recv, 0)})
		if x.root == rank {
			g.root = rank
		}
	}
	if len(x.takers) < int(g.size) {
		return
	}
	k.counts.add(o, x.bytes)
	g.sizes.forget(o.instance)
	if len(x.entries) > 0 && g.root != none {
		x.represent(g.root)
	}
	if !rules.busCollectives || k.network.takeAllBuses(c) {
		k.start(c)
	}
}

// find returns the collective that a rank enters; none after an error.
func (k *collectives) find(o *op, rank int32) int32 {
	g := &k.comms.items[o.comm]
	root := none
	if o.flags&flagRooted != 0 {
		root = o.peer
	}
	for _, c := range g.open {
		x := &k.items[c]
		if x.instance != o.instance {
			continue
		}
		if why := x.mismatch(o, root); why != "" {
			k.progress.fail(fmt.Errorf("mismatched collectives: operation %d on communicator %d: rank %d calls %s%s, "+
				"rank %d calls %s%s%s", o.instance, g.id, x.first, schema.CallID(x.call), k.setting.site(x.site), rank,
				o.callID(), k.setting.site(o.site), why))
			return none
		}
		return c
	}
	c := k.add()
	k.items[c] = collective{instance: o.instance, comm: o.comm, root: root, call: o.call, site: o.site, first: rank,
		taker: none, rank: none, waiting: none, takers: k.items[c].takers[:0], entries: k.items[c].entries[:0]}
	g.open = append(g.open, c)
	return c
}

// add returns an unused collective.
func (k *collectives) add() int32 {
	if n := len(k.free); n > 0 {
		c := k.free[n-1]
		k.free = k.free[:n-1]
		return c
	}
	k.items = append(k.items, collective{})
	return int32(len(k.items) - 1)
}

// start begins a collective that all ranks have entered and that holds all buses.
func (k *collectives) start(c int32) {
	took, e := k.duration(c, k.setting.machine)
	if e.Algorithm != nccl.Any {
		k.counts.nccl[e.Algorithm][e.Protocol]++
	}
	if k.setting.options.Keep != nil {
		quick, _ := k.duration(c, k.noLatency)
		took = k.keptOf(c, took, quick)
	}
	k.clock.schedule(k.clock.after(took), collectiveEnds, c)
}

// duration is how long a collective takes on a machine after all ranks have entered, and how NCCL does it, with the
// algorithm nccl.Any if it does not.
func (k *collectives) duration(c int32, m *models.Machine) (Picoseconds, nccl.Estimate) {
	x := &k.items[c]
	byNCCL := k.byNCCL(x, m)
	if e, ok := byNCCL.Estimate(); ok {
		return byNCCL.Time(e), e
	}
	return k.phaseTime(x, m), nccl.Estimate{}
}

// phaseTime is how long the phases of a collective take on a machine.
func (k *collectives) phaseTime(x *collective, m *models.Machine) Picoseconds {
	phases := k.phases(schema.CallID(x.call))
	if k.setting.rules.wholeNodes {
		return m.DimemasCollective(phases, x.sent, x.received, int(k.setting.nodeOf[x.rank]), len(k.setting.nodes),
			k.comms.items[x.comm].shares)
	}
	return m.Network.Collective(phases, len(x.takers), &x.sizes)
}

// byNCCL is a collective on a machine as NCCL has it.
func (k *collectives) byNCCL(x *collective, m *models.Machine) models.NCCLCollective {
	group := nccl.Group{Ranks: len(x.takers), Nodes: int(k.comms.items[x.comm].nodes)}
	return models.NCCLCollective{Machine: m, Operation: schema.CallID(x.call).Operation(), Group: group, Sizes: &x.sizes}
}

// phases returns the phases of a call's operation; an operation without phases of its own gets those of a barrier.
func (k *collectives) phases(call schema.CallID) models.Phases {
	operation := call.Operation()
	if k.setting.rules.reduceMessages && operation == schema.CallReduce {
		return models.Phases{FanIn: models.CT, SizeIn: models.CURRENT, FanOut: models.CT, SizeOut: models.CURRENT}
	}
	if p, ok := k.setting.machine.Collectives[operation]; ok {
		return p
	}
	return k.setting.machine.Collectives[schema.CallBarrier]
}

// end lets all ranks leave in the order in which they entered; the rank whose sizes were used leaves last.
func (k *collectives) end(c int32) {
	if k.setting.rules.busCollectives && k.network.buses.total != 0 {
		if next := k.network.releaseAllBuses(); next != none {
			k.start(next)
		}
	}
	x := &k.items[c]
	g := &k.comms.items[x.comm]
	g.resetShares()
	if len(x.entries) > 0 {
		g.root = none
	}
	g.closeCollective(c)
	takers, last := x.takers, x.taker
	for _, t := range takers {
		if t != last {
			k.leave(t)
		}
	}
	k.leave(last)
	k.items[c].takers = takers[:0]
	k.free = append(k.free, c)
}

// leave lets a taker continue after a collective.
func (k *collectives) leave(taker int32) {
	if isThread(taker) {
		k.progress.complete(threadOf(taker), false)
		return
	}
	if !k.setting.rules.arrivalOrder {
		k.progress.completeRequest(taker, false)
		return
	}
	q := &k.requests.items[taker]
	i, orphan := q.channel, q.orphan // i: the thread that started it
	if q.orphan || q.done {
		k.requests.release(taker)
	} else {
		q.done = true
	}
	if orphan {
		return
	}
	if s := &k.threads[i]; s.collectiveWaits > 0 {
		s.collectiveWaits--
		k.progress.complete(i, false)
	} else {
		s.collectives++
	}
}

// wait waits for a nonblocking collective as Dimemas does: any one that the thread started will do.
func (k *collectives) wait(i, r int32) {
	s := &k.threads[i]
	if k.progress.chargeLatency(i, k.setting.keptLatency(k.startLatency(s.node, s.op.comm), s.rank, &s.op)) {
		return
	}
	if q := &k.requests.items[r]; q.done { // whichever of wait and leave comes second frees the request
		k.requests.release(r)
	} else {
		q.done = true
	}
	if s.collectives > 0 {
		s.collectives--
		k.progress.complete(i, true)
		return
	}
	s.collectiveWaits++
	k.cpus.block(i)
}

// reduce does an MPI_Reduce as Dimemas does those of its own translator: every rank sends a message to the root. It
// returns true when the thread is the root and does not have to wait.
func (k *collectives) reduce(i int32) bool {
	s := &k.threads[i]
	c := k.find(&s.op, s.rank)
	if c == none {
		return false
	}
	x := &k.items[c]
	x.takers = append(x.takers, takerOf(i))
	x.bytes += max(s.op.send, 0)
	g := &k.comms.items[x.comm]
	if len(x.takers) == int(g.size) {
		k.counts.add(&s.op, x.bytes)
	}
	g.addShare(s.node, len(k.setting.nodes))
	if s.rank != x.root {
		k.cpus.block(i)
		to := x.root
		if schema.CallID(x.call).Operation() != schema.CallReduce {
			to = 0 // Dimemas stores a root only for a Reduce and reads 0 for others
		}
		m := k.network.newMessage(s, to, s.op.send)
		k.network.messages.items[m].channel, k.network.messages.items[m].sender = asWaiter(c), takerOf(i)
		k.network.send(m)
		return false
	}
	g.root = s.rank
	if x.arrived++; x.arrived < int(g.size) {
		x.waiting = takerOf(i)
		k.cpus.block(i)
		return false
	}
	k.endReduce(c)
	return true
}

// reduceArrives resumes the sender of a Reduce's message, and after the last message the root.
func (k *collectives) reduceArrives(c, sender int32) {
	x := &k.items[c]
	if x.arrived++; x.arrived == int(k.comms.items[x.comm].size) {
		root := threadOf(x.waiting)
		k.endReduce(c)
		k.progress.complete(root, false)
	}
	k.progress.complete(sender, false)
}

func (k *collectives) endReduce(c int32) {
	k.comms.items[k.items[c].comm].closeCollective(c)
	k.free = append(k.free, c)
}
