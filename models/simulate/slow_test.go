package simulate

import (
	"fmt"
	"math/big"
	"math/rand/v2"

	"github.com/commq/commq/models"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// This file is a second simulator of the dialect paper, for machines on which ranks wait only for partners: links and
// buses are unlimited, and each rank has a CPU. It shares no code with the engine. Every time is an equation over
// other times; they are evaluated until none changes. A program's times are the least solution of all its equations.

// slowCall is a call of a program. It can send, receive, take part in a collective and wait for calls before it.
type slowCall struct {
	call           schema.CallID
	compute        int64 // ns, before it
	sends          *slowEnd
	receives       *slowEnd
	sync           bool  // its send waits for the receiver
	buffered       bool  // its send never waits
	nonblocking    bool  // it returns at once
	waits          []int // for these calls of its rank
	comm           int32 // of a collective; 0 for other calls
	instance       int64
	root           int32
	sent, received int64
}

// slowEnd is one end of a message.
type slowEnd struct {
	peer, tag int32
	bytes     int64
}

type slowProgram struct {
	ranks [][]slowCall
	comms map[int32][]int32
}

// slowMachine has the costs: L and ps per byte, between nodes and inside one, and the phases of collectives.
type slowMachine struct {
	latency, perByte    int64
	insideL, insideByte int64
	node                func(rank int) int
	threshold           int64
	cpuRatio            int64
	phases              map[schema.CallID]models.Phases
	noThreshold         bool
	keep                func(rank int32, seq int64) Kept // nil keeps all
}

// kept is what call k of a rank keeps of its cost.
func (m *slowMachine) kept(rank, k int) Kept {
	if m.keep == nil {
		return KeptAll
	}
	return m.keep(int32(rank), int64(k))
}

// slowTimes are the times at which calls begin and end, and at which the operations that they start are over.
type slowTimes struct{ start, end, over [][]int64 }

// slowly solves the equations. It returns false when they have no solution: the program deadlocks.
func slowly(p *slowProgram, m *slowMachine) (*slowTimes, bool) {
	t := &slowTimes{}
	calls := 0
	for _, r := range p.ranks {
		t.start, t.end, t.over = append(t.start, make([]int64, len(r))), append(t.end, make([]int64, len(r))),
			append(t.over, make([]int64, len(r)))
		calls += len(r)
	}
	sends, receives := p.messages()
	for range 2*calls + 3 {
		changed := false
		set := func(at *int64, x int64) {
			changed = changed || *at != x
			*at = x
		}
		for rank := range p.ranks {
			for k := range p.ranks[rank] {
				c := &p.ranks[rank][k]
				before := int64(0)
				if k > 0 {
					before = t.end[rank][k-1]
				}
				start := before + c.compute*1000/m.cpuRatio
				over := start
				if c.sends != nil {
					over = max(over, t.sendOver(p, m, receives, rank, k))
				}
				if c.receives != nil {
					from, ok := sends[receiveKey(rank, k, receives)]
					if !ok {
						return nil, false
					}
					over = max(over, start, t.arrival(p, m, receives, from[0], from[1]))
				}
				if c.comm != 0 {
					over = max(over, t.collective(p, m, c))
				}
				end := over
				if c.nonblocking {
					end = start
				}
				for _, w := range c.waits {
					end = max(end, t.over[rank][w])
				}
				set(&t.start[rank][k], start)
				set(&t.over[rank][k], over)
				set(&t.end[rank][k], end)
			}
		}
		if !changed {
			return t, true
		}
	}
	return nil, false
}

// slowKey is the n-th message from a rank to a rank with a tag.
type slowKey struct {
	src, dst, tag int32
	n             int
}

// messages returns the rank and call that send, and that receive, each message.
func (p *slowProgram) messages() (sends, receives map[slowKey][2]int) {
	sends, receives = map[slowKey][2]int{}, map[slowKey][2]int{}
	add := func(all map[slowKey][2]int, k slowKey, rank, call int) {
		for _, there := all[k]; there; _, there = all[k] {
			k.n++
		}
		all[k] = [2]int{rank, call}
	}
	for rank := range p.ranks {
		for k, c := range p.ranks[rank] {
			if c.sends != nil {
				add(sends, slowKey{int32(rank), c.sends.peer, c.sends.tag, 0}, rank, k)
			}
			if c.receives != nil {
				add(receives, slowKey{c.receives.peer, int32(rank), c.receives.tag, 0}, rank, k)
			}
		}
	}
	return sends, receives
}

// receiveKey returns the key of the message that a call receives.
func receiveKey(rank, call int, receives map[slowKey][2]int) slowKey {
	for k, at := range receives {
		if at == [2]int{rank, call} {
			return k
		}
	}
	panic("no receive")
}

func (m *slowMachine) waits(c *slowCall, kept Kept) bool {
	return !c.buffered && (c.sync && !kept.Standard || !m.noThreshold && c.sends.bytes >= m.threshold)
}

// receiver returns the rank and call that receive the message of a call.
func (p *slowProgram) receiver(receives map[slowKey][2]int, rank, call int) [2]int {
	n := 0
	s := p.ranks[rank][call].sends
	for k := range call {
		if o := p.ranks[rank][k].sends; o != nil && o.peer == s.peer && o.tag == s.tag {
			n++
		}
	}
	return receives[slowKey{int32(rank), s.peer, s.tag, n}]
}

// arrival returns when the message of a call arrives.
func (t *slowTimes) arrival(p *slowProgram, m *slowMachine, receives map[slowKey][2]int, rank, call int) int64 {
	c, kept := &p.ranks[rank][call], m.kept(rank, call)
	begins := t.start[rank][call]
	if m.waits(c, kept) {
		to := p.receiver(receives, rank, call)
		begins = max(begins, t.start[to[0]][to[1]])
	}
	bytes := keptOf(c.sends.bytes, kept.Bytes)
	if m.node(rank) == m.node(int(c.sends.peer)) {
		return begins + keptOf(m.insideL, kept.Latency) + bytes*m.insideByte
	}
	return begins + keptOf(m.latency, kept.Latency) + bytes*m.perByte
}

// sendOver returns when the buffer of a send can be used again.
func (t *slowTimes) sendOver(p *slowProgram, m *slowMachine, receives map[slowKey][2]int, rank, call int) int64 {
	if !m.waits(&p.ranks[rank][call], m.kept(rank, call)) {
		return t.start[rank][call]
	}
	return t.arrival(p, m, receives, rank, call)
}

// collective returns when an operation is over: after the last rank's start, by equations 2 to 4 of the paper.
func (t *slowTimes) collective(p *slowProgram, m *slowMachine, c *slowCall) int64 {
	last, n, kept := int64(0), int64(0), KeptAll
	var most, least, sum int64
	for _, rank := range p.comms[c.comm] {
		for k, o := range p.ranks[rank] {
			if o.comm != c.comm || o.instance != c.instance {
				continue
			}
			last = max(last, t.start[rank][k])
			of := m.kept(int(rank), k)
			kept.Latency, kept.Bytes = min(kept.Latency, of.Latency), min(kept.Bytes, of.Bytes)
			if c.root >= 0 && rank != c.root {
				continue
			}
			if n++; n == 1 {
				least = min(o.sent, o.received)
			}
			most, least, sum = max(most, o.sent, o.received), min(least, o.sent, o.received), sum+o.sent+o.received
		}
	}
	ranks := int64(len(p.comms[c.comm]))
	steps := int64(0)
	for 1<<steps < ranks {
		steps++
	}
	factor := map[models.Factor]int64{models.None: 0, models.CT: 1, models.LIN: ranks, models.LOG: steps}
	size := map[models.Size]*big.Rat{models.MAX: rat(most, 1), models.MIN: rat(least, 1), models.MEAN: rat(sum, 2*n),
		models.TwoMAX: rat(2*most, 1), models.SumSR: rat(sum, n)}
	phases := m.phases[c.call.Operation()]
	total, forBytes := new(big.Rat), new(big.Rat)
	for _, phase := range []struct {
		f models.Factor
		s models.Size
	}{{phases.FanIn, phases.SizeIn}, {phases.FanOut, phases.SizeOut}} {
		x := new(big.Rat).Mul(size[phase.s], rat(m.perByte, 1))
		forBytes.Add(forBytes, new(big.Rat).Mul(x, rat(factor[phase.f], 1)))
		x.Add(x, rat(m.latency, 1))
		total.Add(total, x.Mul(x, rat(factor[phase.f], 1)))
	}
	f, _ := total.Float64()
	b, _ := forBytes.Float64()
	all, bytes := int64(f+0.5), int64(b+0.5)
	if kept.Latency == kept.Bytes {
		return last + keptOf(all, kept.Latency)
	}
	return last + keptOf(all-bytes, kept.Latency) + keptOf(bytes, kept.Bytes)
}

// keptOf is a fraction of a number, rounded half up.
func keptOf(n int64, fraction float64) int64 { return int64(float64(n)*fraction + 0.5) }

func rat(a, b int64) *big.Rat { return big.NewRat(a, b) }

// rows returns the program as rows of events.
func (p *slowProgram) rows() (*Program, []schema.Event) {
	out := &Program{}
	for id, members := range p.comms {
		out.Comms = append(out.Comms, run.Comm{ID: id, Members: members})
	}
	var rows []schema.Event
	for rank, calls := range p.ranks {
		out.Threads = append(out.Threads, 1)
		mine := make([]schema.Event, len(calls))
		for k, c := range calls {
			e := &mine[k]
			*e = schema.NullEvent
			e.Rank, e.Seq, e.Call, e.Class, e.ComputeNs, e.Comm = int32(rank), int64(k), int16(c.call),
				int16(schema.Calls[c.call].Class), c.compute, 1
			if s := c.sends; s != nil {
				e.SendWorld, e.SendTag, e.SendBytes = s.peer, s.tag, s.bytes
			}
			if r := c.receives; r != nil {
				e.RecvWorld, e.RecvTag, e.RecvBytes = r.peer, r.tag, r.bytes
			}
			if c.comm != 0 {
				e.Comm, e.Instance, e.SendBytes, e.RecvBytes = c.comm, c.instance, c.sent, c.received
				if c.root >= 0 {
					e.RootWorld = c.root
				}
			}
			for _, w := range c.waits {
				mine[w].DoneSeq = int64(k)
			}
		}
		rows = append(rows, mine...)
	}
	return out, rows
}

// randomProgram returns a program that ends, on all its ranks and perhaps a communicator of some of them.
func randomProgram(g *rand.Rand) *slowProgram {
	ranks := 2 + g.IntN(6)
	b := &slowBuilder{Rand: g, slowProgram: &slowProgram{ranks: make([][]slowCall, ranks),
		comms: map[int32][]int32{}}, instances: map[int32]int64{}, open: make([][]int, ranks)}
	for r := range int32(ranks) {
		b.comms[7] = append(b.comms[7], r)
		if g.IntN(2) == 0 {
			b.comms[9] = append(b.comms[9], r)
		}
	}
	if len(b.comms[9]) == 0 {
		delete(b.comms, 9)
	}
	for range 3 + g.IntN(40) {
		switch k := g.IntN(12); {
		case k < 7:
			b.message()
		case k < 9:
			b.exchange()
		case k < 11:
			b.collective()
		default:
			b.waitSome(g.IntN(ranks), false)
		}
	}
	for r := range ranks {
		b.waitSome(r, true)
		b.add(r, slowCall{call: schema.CallFinalize})
	}
	return b.slowProgram
}

// slowBuilder builds a program in an order in which it can run.
type slowBuilder struct {
	*rand.Rand
	*slowProgram
	instances map[int32]int64
	open      [][]int // requests of each rank
	tags      int32
}

func (b *slowBuilder) add(rank int, c slowCall) int {
	c.compute = []int64{0, 1, 977, 3001, b.Int64N(100_000)}[b.IntN(5)]
	b.ranks[rank] = append(b.ranks[rank], c)
	return len(b.ranks[rank]) - 1
}

func (b *slowBuilder) bytes() int64 { return []int64{0, 1, 4097, 65536, b.Int64N(1 << 20)}[b.IntN(5)] }

// message adds a message and its receive. A nonblocking receive may be posted before the send.
func (b *slowBuilder) message() {
	src, dst := b.IntN(len(b.ranks)), b.IntN(len(b.ranks))
	bytes := b.bytes()
	tag := int32(b.IntN(2))
	posted := src == dst || b.IntN(3) == 0
	if posted {
		b.tags++
		tag = 100 + b.tags // so that no other message overtakes it
	}
	end := func(peer int) *slowEnd { return &slowEnd{int32(peer), tag, bytes} }
	irecv := func() {
		b.open[dst] = append(b.open[dst], b.add(dst,
			slowCall{call: schema.CallIrecv, receives: end(src), nonblocking: true}))
	}
	if posted {
		irecv()
	}
	kinds := []slowCall{{call: schema.CallSend}, {call: schema.CallSsend, sync: true},
		{call: schema.CallBsend, buffered: true}, {call: schema.CallRsend},
		{call: schema.CallIsend, nonblocking: true}, {call: schema.CallIssend, nonblocking: true, sync: true},
		{call: schema.CallIbsend, nonblocking: true, buffered: true}}
	c := kinds[b.IntN(len(kinds))]
	c.sends = end(dst)
	at := b.add(src, c)
	if c.nonblocking && b.IntN(4) > 0 { // else no call waits for it
		b.open[src] = append(b.open[src], at)
	}
	if posted {
		return
	}
	if b.IntN(3) == 0 {
		irecv()
		return
	}
	b.add(dst, slowCall{call: schema.CallRecv, receives: end(src)})
}

// exchange adds two ranks that swap messages.
func (b *slowBuilder) exchange() {
	x, y := b.IntN(len(b.ranks)), b.IntN(len(b.ranks))
	if x == y {
		return
	}
	there, back := b.bytes(), b.bytes()
	b.add(x, slowCall{call: schema.CallSendrecv, sends: &slowEnd{int32(y), 3, there},
		receives: &slowEnd{int32(y), 5, back}})
	b.add(y, slowCall{call: schema.CallSendrecv, sends: &slowEnd{int32(x), 5, back},
		receives: &slowEnd{int32(x), 3, there}})
}

func (b *slowBuilder) collective() {
	comm := int32(7)
	if b.comms[9] != nil && b.IntN(2) == 0 {
		comm = 9
	}
	members := b.comms[comm]
	kinds := []struct {
		blocking, nonblocking schema.CallID
		rooted                bool
	}{{schema.CallBarrier, schema.CallIbarrier, false}, {schema.CallBcast, schema.CallIbcast, true},
		{schema.CallReduce, schema.CallIreduce, true},
		{schema.CallAllreduce, schema.CallIallreduce, false}, {schema.CallAlltoallv, schema.CallIalltoallv, false},
		{schema.CallGatherv, schema.CallIgatherv, true},
		{schema.CallExscan, schema.CallIexscan, false},
		{schema.CallReduceScatterBlock, schema.CallIreduceScatterBlock, false}}
	k := kinds[b.IntN(len(kinds))]
	c := slowCall{call: k.blocking, comm: comm, instance: b.instances[comm], root: -1}
	b.instances[comm]++
	if k.rooted {
		c.root = members[b.IntN(len(members))]
	}
	nonblocking := b.IntN(3) == 0
	if nonblocking {
		c.call, c.nonblocking = k.nonblocking, true
	}
	for _, r := range members {
		c.sent, c.received = b.bytes(), b.bytes()
		at := b.add(int(r), c)
		if nonblocking && b.IntN(5) > 0 {
			b.open[r] = append(b.open[r], at)
		}
	}
}

// waitSome adds a call that completes some of a rank's requests, or all.
func (b *slowBuilder) waitSome(rank int, all bool) {
	var now, later []int
	for _, r := range b.open[rank] {
		if all || b.IntN(2) == 0 {
			now = append(now, r)
		} else {
			later = append(later, r)
		}
	}
	b.open[rank] = later
	calls := []schema.CallID{schema.CallWaitall, schema.CallWaitsome, schema.CallTestall, schema.CallTestsome}
	if len(now) == 1 {
		calls = []schema.CallID{schema.CallWait, schema.CallTest, schema.CallWaitany, schema.CallTestany}
	}
	if len(now) > 0 {
		b.add(rank, slowCall{call: calls[b.IntN(len(calls))], waits: now})
	}
}

// String lists the calls of each rank, for a failure.
func (p *slowProgram) String() (text string) {
	for rank, calls := range p.ranks {
		for k, c := range calls {
			text += fmt.Sprintf("%d.%d %v after %d ns", rank, k, c.call, c.compute)
			if c.sends != nil {
				text += fmt.Sprintf(", sends %+v", *c.sends)
			}
			if c.receives != nil {
				text += fmt.Sprintf(", receives %+v", *c.receives)
			}
			if c.comm != 0 {
				text += fmt.Sprintf(", comm %d, operation %d, root %d, %d and %d bytes", c.comm, c.instance, c.root,
					c.sent, c.received)
			}
			text += fmt.Sprintln(", waits for", c.waits)
		}
	}
	return text
}
