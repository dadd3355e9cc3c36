package simulate

// message is a message under way.
type message struct {
	bytes, seq int64
	at         Picoseconds // when it was sent, or, of one that is in channel.sends of Dimemas, when it arrives
	src, dst   int32       // ranks
	channel    int32       // none: one-sided; below it: of a Reduce, collectiveWaiter
	to         int32       // taker: who has the receive that it goes to
	sender     int32       // taker: who goes on when the receiver has it, or (Dimemas) when it starts
	next, prev int32       // in a queue for links
	site       int32
	call       int16
	sync       bool // waits for its receiver
	started    bool
	arrived    bool
	out, in    bool // has links
	waitsIn    bool // has the one outwards and is in the queue for the other
}

// A taker is a stream that is blocked, or the request of a nonblocking operation; none is none.
func takerOf(stream int32) int32 { return -2 - stream }
func isStream(taker int32) bool  { return taker < none }
func streamOf(taker int32) int32 { return -2 - taker }

func (e *engine) newMessage(i int32, dst int32, bytes int64) int32 {
	m := e.freeMsg
	if m == none {
		e.messages = append(e.messages, message{})
		m = int32(len(e.messages) - 1)
	} else {
		e.freeMsg = e.messages[m].next
	}
	s := &e.streams[i]
	e.messages[m] = message{bytes: bytes, seq: s.op.seq, at: e.now, src: s.rank, dst: dst, channel: none, to: none, sender: none,
		next: none, prev: none, site: s.op.site, call: s.op.call}
	return m
}

func (e *engine) freeMessage(m int32) {
	if c := e.messages[m].channel; c > none {
		e.channels.channels[c].refs--
	}
	e.messages[m].next = e.freeMsg
	e.freeMsg = m
}

// latency is that of a message between two ranks.
func (e *engine) latency(src, dst int32) Picoseconds {
	from, to := e.nodeOf[src], e.nodeOf[dst]
	if from == to {
		return e.paces[from].inside
	}
	return e.paces[from].latency
}

// waitsForReceiver says whether the stream's send does.
func (e *engine) waitsForReceiver(o *op, src int32) bool {
	byTrace := o.flags&flagSync != 0
	switch {
	case e.selfWaits && o.peer == src:
		return true
	case e.thresholdDecides && e.machine.EagerThresholdGiven:
		return o.send >= e.machine.EagerThresholdBytes
	case o.flags&flagBuffered != 0:
		return false
	}
	return byTrace || o.send >= e.machine.EagerThresholdBytes
}

// send does MPI_Send and MPI_Isend in all their modes.
func (e *engine) send(i int32) {
	s := &e.streams[i]
	o := &s.op
	if e.pays(i, e.latency(s.rank, o.peer)) {
		return
	}
	c := e.channels.find(channelKey{s.rank, o.peer, o.tag, o.comm})
	ch := &e.channels.channels[c]
	m := e.newMessage(i, o.peer, o.send)
	x := &e.messages[m]
	x.channel = c
	ch.refs++
	x.sync = e.waitsForReceiver(o, s.rank)
	e.result.Messages++
	e.result.Bytes += o.send
	if e.arrivalOrder {
		e.sendToArrive(i, ch, m)
	} else {
		e.sendInOrder(i, ch, m)
	}
}

// sendInOrder meets the oldest receive that is posted, or waits for one.
func (e *engine) sendInOrder(i int32, ch *channel, m int32) {
	x := &e.messages[m]
	o := &e.streams[i].op
	x.to = ch.receives.pop()
	if x.to == none {
		ch.sends.push(m)
		e.wakeProbes(ch)
	}
	switch {
	case x.sync && x.to != none && !isStream(x.to) && e.requests[x.to].posted > e.now: // its receiver is ahead
		e.events.push(e.requests[x.to].posted, messageStarts, m)
	case !x.sync || x.to != none:
		e.launch(m)
	}
	switch {
	case !x.sync:
		if o.kind == opIsend {
			e.done(o.req)
		}
		e.completed(i, true)
	case o.kind == opIsend:
		x.sender = o.req
		e.completed(i, true)
	default:
		x.sender = takerOf(i)
		e.block(i)
	}
}

// launch starts a message whose latency the network has, not the CPUs.
func (e *engine) launch(m int32) {
	x := &e.messages[m]
	x.started = true
	if e.lookahead && e.arrivalOrder && x.channel > none {
		e.flies(m)
		return
	}
	if l := e.latency(x.src, x.dst); l != 0 && !e.cpuLatency {
		from, to := e.nodeOf[x.src], e.nodeOf[x.dst]
		if e.free {
			e.events.push(e.after(l+e.transfer(from, to, x.bytes)), messageEnds, m)
			return
		}
		e.events.push(e.after(l), messageReady, m)
		return
	}
	e.transport(m)
}

// sendToArrive sends in the manner of Dimemas, where messages meet receives when they arrive.
func (e *engine) sendToArrive(i int32, ch *channel, m int32) {
	x := &e.messages[m]
	o := &e.streams[i].op
	posted := false // a nonblocking receive lets it start
	if !ch.aheadSends && !ch.ahead.empty() {
		at := ch.ahead.pop()
		if posted = at != blocking && at <= e.now; x.sync && at > e.now { // its receiver is ahead
			ch.refs++
			e.events.push(at, receivePosted, x.channel)
		}
	} else {
		ch.aheadSends = true
		ch.ahead.push(truth(x.sync))
	}
	if !x.sync || posted || !ch.receives.empty() {
		e.launch(m)
		if o.kind == opIsend {
			e.done(o.req)
		}
		e.completed(i, true)
		return
	}
	ch.waiting.push(m)
	if o.kind == opIsend || o.peer == x.src { // to itself: Dimemas would wait for ever
		e.done(o.req)
		e.completed(i, true)
		return
	}
	x.sender = takerOf(i)
	e.block(i)
}

// blocking stands for a blocking receive in channel.ahead.
const blocking = Picoseconds(none)

func truth(b bool) Picoseconds {
	if b {
		return 1
	}
	return 0
}

// reached notes that a receive was posted, at that time or blocking, and says whether the send that it belongs to was before, and
// waits for its receiver.
func (ch *channel) reached(at Picoseconds) bool {
	if ch.aheadSends && !ch.ahead.empty() {
		return ch.ahead.pop() != 0
	}
	ch.aheadSends = false
	ch.ahead.push(at)
	return false
}

// receivePosted starts the first message that waits for its receiver, which was ahead when the message was sent.
func (e *engine) receivePosted(c int32) {
	ch := &e.channels.channels[c]
	ch.refs--
	e.startWaiting(ch)
}

// startWaiting starts the first message that waits for its receiver; its sender goes on.
func (e *engine) startWaiting(ch *channel) {
	m := ch.waiting.pop()
	if m == none {
		return
	}
	sender := e.messages[m].sender
	e.messages[m].sender = none
	e.launch(m)
	if sender != none {
		e.completed(streamOf(sender), true)
	}
}

// recv does MPI_Recv.
func (e *engine) recv(i int32) {
	s := &e.streams[i]
	o := &s.op
	if e.pays(i, e.latency(o.peer, s.rank)) {
		return
	}
	ch := &e.channels.channels[e.channels.find(channelKey{o.peer, s.rank, o.tag, o.comm})]
	if e.arrivalOrder {
		ch.reached(blocking)
		e.receive(i, ch)
		return
	}
	m := ch.sends.pop()
	if m == none {
		ch.receives.push(takerOf(i))
		e.block(i)
		return
	}
	if e.messages[m].arrived {
		e.freeMessage(m)
		e.completed(i, true)
		return
	}
	e.messages[m].to = takerOf(i)
	e.startSync(m)
	e.block(i)
}

// startSync starts a message that was waiting for a receive, which it has now.
func (e *engine) startSync(m int32) {
	if x := &e.messages[m]; x.sync && !x.started {
		e.launch(m)
	}
}

// receive takes a message that is there, or blocks until one is.
func (e *engine) receive(i int32, ch *channel) {
	if e.isThere(ch, e.now) {
		e.freeMessage(ch.sends.pop())
		e.completed(i, true)
		return
	}
	e.startWaiting(ch)
	ch.receives.push(i)
	e.block(i)
	if !ch.sends.empty() {
		m := ch.sends.first()
		e.events.push(e.messages[m].at, messageArrives, e.messages[m].channel)
	}
}

// irecv does MPI_Irecv.
func (e *engine) irecv(i int32) {
	s := &e.streams[i]
	o := &s.op
	c := e.channels.find(channelKey{o.peer, s.rank, o.tag, o.comm})
	ch := &e.channels.channels[c]
	if e.arrivalOrder {
		waiter := none
		if r := &e.requests[o.req]; r.orphan {
			e.freeRequest(o.req)
		} else {
			r.of(o)
			ch.refs++
			r.channel, waiter = c, r.waiter
		}
		if ch.reached(e.now) {
			e.startWaiting(ch)
		}
		if waiter != none { // of another thread
			ch.refs--
			e.freeRequest(o.req)
			e.streams[waiter].blocked = false
			e.receive(waiter, ch)
		}
		e.completed(i, true)
		return
	}
	e.requests[o.req].of(o)
	switch m := ch.sends.pop(); {
	case m == none:
		e.requests[o.req].posted = e.now
		ch.receives.push(o.req)
	case e.messages[m].arrived:
		e.freeMessage(m)
		e.done(o.req)
	default:
		e.messages[m].to = o.req
		e.startSync(m)
	}
	e.completed(i, true)
}

// wait does MPI_Wait and its kin: for a request after the other of its chain.
func (e *engine) wait(i int32) {
	s := &e.streams[i]
	r := s.op.req
	if r == none {
		e.completed(i, true)
		return
	}
	q := &e.requests[r]
	if e.arrivalOrder && q.kind == opIrecv { // a chain of one
		if e.pays(i, e.latency(q.peer, s.rank)) {
			return
		}
		if q.channel == none { // another thread has not posted it yet
			q.waiter = i
			e.block(i)
			return
		}
		ch := &e.channels.channels[q.channel]
		ch.refs--
		e.freeRequest(r)
		e.receive(i, ch)
		return
	}
	if e.arrivalOrder && q.kind == opIcollective {
		e.waitCollective(i, r)
		return
	}
	if s.wait = 0; e.waits(i) {
		e.completed(i, true)
	} else {
		e.block(i)
	}
}

// waits says whether all requests that the stream waits for are done. If not, the first that is not has it as its waiter.
func (e *engine) waits(i int32) bool {
	s := &e.streams[i]
	for ; s.wait < len(s.queue.chain); s.wait++ {
		r := s.queue.chain[s.wait]
		q := &e.requests[r]
		if !q.done {
			q.waiter = i
			return false
		}
		e.freeRequest(r)
	}
	return true
}

// done completes a request; who waits for it may go on.
func (e *engine) done(r int32) {
	if r == none {
		return
	}
	q := &e.requests[r]
	if q.orphan {
		e.freeRequest(r)
		return
	}
	q.done = true
	if i := q.waiter; i != none && e.waits(i) {
		e.resumed(i)
	}
}

// gives tells a taker that it has what it waited for.
func (e *engine) gives(taker int32) {
	if isStream(taker) {
		e.resumed(streamOf(taker))
	} else {
		e.done(taker)
	}
}

// messageEnds is when the message has left its links and its receiver has it.
func (e *engine) messageEnds(m int32) {
	if !e.free {
		e.release(m)
	}
	x := &e.messages[m]
	switch {
	case isCollective(x.channel):
		c, sender := collectiveOf(x.channel), streamOf(x.sender)
		e.freeMessage(m)
		e.reduceArrived(c, sender)
		return
	case x.channel == none: // one-sided
		to := x.to
		e.freeMessage(m)
		e.done(to)
		return
	}
	ch := &e.channels.channels[x.channel]
	if e.arrivalOrder {
		c := x.channel
		e.arrives(ch, m, e.now)
		e.messageArrives(c)
		return
	}
	x.arrived = true
	sender, to := x.sender, x.to
	if to == none {
		e.wakeProbes(ch)
		return
	}
	e.freeMessage(m)
	e.gives(to)
	if sender != none {
		e.gives(sender)
	}
}

// probe does MPI_Probe and MPI_Iprobe that found something: it waits until the next message of the channel can be noticed.
func (e *engine) probe(i int32) {
	s := &e.streams[i]
	o := &s.op
	c := e.channels.find(channelKey{o.peer, s.rank, o.tag, o.comm})
	if e.noticed(i, &e.channels.channels[c]) {
		e.completed(i, true)
		return
	}
	e.channels.channels[c].refs++
	e.probing = append(e.probing, probing{i, c})
	e.block(i)
}

// probing is a stream that is blocked in a probe.
type probing struct{ stream, channel int32 }

// noticed says whether the stream's probe sees the next message: its data is there, or of one that waits for its receiver the word
// that it does.
func (e *engine) noticed(i int32, ch *channel) bool {
	if ch.sends.empty() {
		return false
	}
	x := &e.messages[ch.sends.first()]
	if !x.arrived {
		if !x.sync {
			return false
		}
		if at := x.at + e.latency(x.src, x.dst); at > e.now {
			e.events.push(at, probeWakes, i)
			return false
		}
	}
	return true
}

// wakeProbes looks again for the streams that probe the channel.
func (e *engine) wakeProbes(ch *channel) {
	for k := 0; k < len(e.probing); k++ {
		if p := e.probing[k]; &e.channels.channels[p.channel] == ch && e.noticed(p.stream, ch) {
			e.probed(k)
			return
		}
	}
}

// probeWakes looks again for a stream.
func (e *engine) probeWakes(i int32) {
	for k, p := range e.probing {
		if p.stream == i && e.noticed(i, &e.channels.channels[p.channel]) {
			e.probed(k)
			return
		}
	}
}

func (e *engine) probed(k int) {
	p := e.probing[k]
	e.probing = append(e.probing[:k], e.probing[k+1:]...)
	e.channels.channels[p.channel].refs--
	e.resumed(p.stream)
}

// oneSided does a transfer that needs no call of the other side.
func (e *engine) oneSided(i int32) {
	s := &e.streams[i]
	o := &s.op
	if e.pays(i, e.latency(s.rank, o.peer)) {
		return
	}
	src, dst := s.rank, o.peer
	bytes := o.send
	asks := Picoseconds(0)
	if o.kind == opGet {
		asks = e.latency(src, dst)
		src, dst, bytes = dst, src, o.recv
	}
	e.requests[o.req].of(o)
	m := e.newMessage(i, dst, bytes)
	x := &e.messages[m]
	x.src, x.to = src, o.req
	if asks += e.latency(src, dst); asks != 0 && !e.cpuLatency {
		x.started = true
		e.events.push(e.after(asks), messageReady, m)
	} else {
		e.launch(m)
	}
	e.completed(i, true)
}
