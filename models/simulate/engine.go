package simulate

import (
	"github.com/commq/commq/models"
	"github.com/commq/commq/schema"
)

// engine is a simulation in progress: it loops over the events and hands each to its stage. Stages call only those
// above them in this list.
type engine struct {
	setting     *setting
	rules       rules
	clock       *clock
	cpus        *scheduler
	threads     []thread `snapshot:"-"` // the scheduler's
	requests    *requestPool
	comms       *communicators
	network     *network
	input       *translator
	progress    *progress
	probes      *probes
	p2p         *pointToPoint
	collectives *collectives
	locks       *locks

	events int64 // so far
}

func newEngine(m *models.Machine, p *Program, o *Options,
	next func(add func(*schema.Events) error) error) (*engine, error) {
	x, err := newSetting(m, p, o)
	if err != nil {
		return nil, err
	}
	x.next = next
	comms, err := newCommunicators(p, x.nodeOf, len(x.nodes))
	if err != nil {
		return nil, err
	}
	e := &engine{setting: x, rules: x.rules, clock: &clock{}, comms: comms, requests: &requestPool{free: none}}
	ops := &opPool{}
	e.cpus = newScheduler(e.clock, x)
	e.network = newNetwork(e.clock, x)
	e.cpus.lookahead = !e.network.contended && e.cpus.canLookAhead()
	e.input = newTranslator(x, e.cpus, comms, e.requests, ops)
	e.progress = &progress{clock: e.clock, setting: x, rules: x.rules, cpus: e.cpus, requests: e.requests,
		input: e.input, ops: ops}
	channels := &channelTable{}
	e.probes = &probes{clock: e.clock, setting: x, cpus: e.cpus, progress: e.progress, network: e.network,
		channels: channels}
	e.p2p = &pointToPoint{clock: e.clock, setting: x, rules: x.rules, cpus: e.cpus, progress: e.progress,
		requests: e.requests,
		network:  e.network, channels: channels, probes: e.probes}
	e.collectives = &collectives{clock: e.clock, setting: x, cpus: e.cpus, progress: e.progress, requests: e.requests,
		network: e.network, comms: comms}
	e.locks = &locks{cpus: e.cpus, progress: e.progress}
	if o.Keep != nil {
		e.collectives.noLatency = m.WithoutLatency()
	}
	x.memory = e.memory
	e.bind()
	return e, nil
}

// bind copies pointers into the stages that need them at every event, because an indirection costs time there.
// Checkpoints leave these pointers out.
func (e *engine) bind() {
	threads, done := e.cpus.threads, e.setting.options.Done
	e.threads, e.input.threads, e.progress.threads = threads, threads, threads
	e.probes.threads, e.p2p.threads, e.collectives.threads, e.locks.threads = threads, threads, threads, threads
	e.cpus.done, e.progress.done, e.progress.costs = done, done, e.setting.costs
}

// run simulates until no event is left.
func (e *engine) run() error {
	if e.setting.options.State == nil {
		e.begin()
	} else if err := e.restore(); err != nil {
		return err
	}
	var ev event
	for e.progress.err == nil {
		if e.progress.border {
			if err := e.offerCheckpoint(); err != nil {
				return err
			}
		}
		if !e.clock.events.pop(&ev) {
			break
		}
		if ev.at >= models.Forever {
			return tooLong()
		}
		e.clock.now = ev.at
		e.events++
		switch ev.kind {
		case burstEnds:
			e.burstEnds(ev.subject)
		case messageReady:
			e.network.send(ev.subject)
		case messageEnds:
			e.messageEnds(ev.subject)
		case collectiveEnds:
			e.collectives.end(ev.subject)
		case probeWakes:
			e.probes.wakeThread(ev.subject)
		case messageArrives:
			e.p2p.messageArrives(ev.subject)
		case receivePosted:
			e.p2p.receivePosted(ev.subject)
		case messageStarts:
			e.p2p.launch(ev.subject)
		}
		if len(e.cpus.dirty) > 0 || len(e.cpus.going) > 0 {
			e.settle()
		}
	}
	if e.progress.err != nil {
		return e.progress.err
	}
	return e.report().err()
}

// begin makes all threads ready.
func (e *engine) begin() {
	for i := range e.threads {
		if !e.progress.takeNext(int32(i)) {
			e.cpus.finish(int32(i))
			continue
		}
		e.cpus.ready(int32(i), false)
	}
	e.settle()
}

// settle lets the threads that became ready run.
func (e *engine) settle() {
	e.advance()
	e.cpus.dispatchDirty()
}

// burstEnds starts the thread's operation, after a burst of computing or a latency.
func (e *engine) burstEnds(i int32) {
	s := &e.threads[i]
	lookahead := e.cpus.lookahead
	if !lookahead {
		e.cpus.nodes[s.node].busy--
	}
	if s.startup {
		s.startup, s.paid = false, true
		s.times.Latency += s.burst
	} else {
		s.times.Compute += s.burst - s.io
		s.times.IO += s.io
		s.entered = e.clock.now
		if !s.inRow {
			s.rowStart = e.clock.now
		}
	}
	e.operate(i)
	if !lookahead {
		e.cpus.dispatchOne(s.node)
	}
}

// operate starts the thread's operation.
func (e *engine) operate(i int32) {
	s := &e.threads[i]
	switch s.op.kind {
	case opEnd:
		e.cpus.finish(i)
	case opMark:
		e.mark(i)
	case opSend, opIsend:
		e.p2p.send(i)
	case opRecv:
		e.p2p.recv(i)
	case opIrecv:
		e.p2p.irecv(i)
	case opWait:
		e.wait(i)
	case opProbe:
		e.probes.begin(i)
	case opCollective, opIcollective:
		e.collective(i)
	case opPut, opGet:
		e.p2p.oneSided(i)
	case opLock:
		e.locks.begin(i)
	case opUnlock:
		e.locks.end(i)
	}
}

// wait does MPI_Wait and its variants, for the requests of a chain.
func (e *engine) wait(i int32) {
	r := e.threads[i].op.req
	if r == none {
		e.progress.complete(i, true)
		return
	}
	if e.rules.arrivalOrder { // chains have one request
		switch e.requests.items[r].kind {
		case opIrecv:
			e.p2p.waitReceive(i, r)
			return
		case opIcollective:
			e.collectives.wait(i, r)
			return
		}
	}
	e.progress.completeOrBlock(i)
}

// collective enters a collective operation.
func (e *engine) collective(i int32) {
	s := &e.threads[i]
	o, rank := s.op, s.rank
	messages := e.rules.reduceMessages && o.kind == opCollective && o.flags&flagMessages != 0 &&
		o.flags&flagRooted != 0 && !e.setting.machine.NCCL.Does(o.callID())
	if (o.kind == opIcollective || messages) &&
		e.progress.chargeLatency(i, e.setting.keptLatency(e.collectives.startLatency(s.node, o.comm), rank, &o)) {
		return
	}
	if messages {
		if e.collectives.reduce(i) {
			e.continueRunning(i)
		}
		return
	}
	taker := takerOf(i)
	if o.kind == opIcollective {
		taker = o.req
		q := &e.requests.items[taker]
		q.describe(&o)
		q.channel = i
		if e.rules.arrivalOrder {
			e.continueRunning(i)
		} else {
			e.progress.complete(i, true)
		}
	} else {
		e.cpus.block(i)
	}
	e.collectives.enter(&o, e.setting.nodeOf[rank], rank, taker)
}

// mark ends an operation that is an event record in Dimemas: the next operation follows at once if no burst comes
// before it; a burst has to queue behind the ready threads.
func (e *engine) mark(i int32) {
	if e.progress.end(i) && !e.operateAtOnce(i) {
		e.cpus.ready(i, false)
	}
}

// continueRunning completes an operation after which Dimemas keeps the thread running. It does the same as mark and
// then gives the CPU to the next thread.
func (e *engine) continueRunning(i int32) {
	if !e.progress.end(i) {
		return
	}
	node := e.threads[i].node
	if !e.operateAtOnce(i) {
		e.cpus.ready(i, false)
	}
	e.cpus.dispatchOne(node)
}

// operateAtOnce starts the thread's operation if no burst comes before it, not even one of zero length. Otherwise it
// returns false.
func (e *engine) operateAtOnce(i int32) bool {
	s := &e.threads[i]
	if s.op.flags&flagNoBurst == 0 || len(s.locals) > 0 {
		return false
	}
	s.entered = e.clock.now
	if !s.inRow {
		s.rowStart = e.clock.now
	}
	e.operate(i)
	return true
}

// messageEnds frees the links of a message and delivers it.
func (e *engine) messageEnds(m int32) {
	if c := e.network.release(m); c != none {
		e.collectives.start(c)
	}
	if x := &e.network.messages.items[m]; isCollective(x.channel) {
		c, sender := collectiveOf(x.channel), threadOf(x.sender)
		e.network.messages.release(m)
		e.collectives.reduceArrives(c, sender)
		return
	}
	e.p2p.delivered(m)
}

// result adds up what was simulated.
func (e *engine) result() *Result {
	r := &Result{Nodes: len(e.setting.nodes), Events: e.events, Operations: e.progress.operations,
		Messages: e.p2p.messages, Bytes: e.p2p.bytes, Ranks: make([]Times, len(e.setting.program.Threads))}
	for _, n := range e.setting.program.Threads {
		r.Threads = max(r.Threads, n)
	}
	e.collectives.counts.addTo(r)
	for i := range e.threads {
		s := &e.threads[i]
		t := &r.Ranks[s.rank]
		t.Finish = max(t.Finish, s.times.Finish)
		t.Compute += s.times.Compute
		t.IO += s.times.IO
		t.PointToPoint += s.times.PointToPoint
		t.Collective += s.times.Collective
		t.Waiting += s.times.Waiting
		t.Latency += s.times.Latency
		t.CPUWait += s.times.CPUWait
		r.Time = max(r.Time, t.Finish)
	}
	return r
}
