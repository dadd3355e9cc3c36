package simulate

// pointToPoint does sends, receives and one-sided transfers. Messages are matched with receives in posting order in
// the dialect paper (posted.go), and in order of arrival in Dimemas (arrival.go).
type pointToPoint struct {
	clock    *clock
	setting  *setting
	rules    rules
	cpus     *scheduler
	threads  []thread `snapshot:"-"` // the scheduler's
	progress *progress
	requests *requestPool
	network  *network
	channels *channelTable
	probes   *probes

	messages, bytes int64 // sent so far
}

// send does MPI_Send and MPI_Isend in all their modes.
func (p *pointToPoint) send(i int32) {
	s := &p.threads[i]
	o := &s.op
	if p.progress.chargeLatency(i, p.setting.keptLatency(p.setting.latency(s.rank, o.peer), s.rank, o)) {
		return
	}
	c := p.channels.find(channelKey{s.rank, o.peer, o.tag, o.comm})
	ch := &p.channels.channels[c]
	m := p.network.newMessage(s, o.peer, o.send)
	x := &p.network.messages.items[m]
	x.channel = c
	x.sync = p.setting.waitsForReceiver(o, s.rank)
	ch.refs++
	if roles[o.call] != roleSync { // syncGroup's
		p.messages++
		p.bytes += o.send
	}
	if p.rules.arrivalOrder {
		p.sendToArrive(i, ch, m)
	} else {
		p.sendPosted(i, ch, m)
	}
}

// launch starts a message: it enters the network when its latency is over.
func (p *pointToPoint) launch(m int32) {
	x := &p.network.messages.items[m]
	x.started = true
	if p.cpus.lookahead && p.rules.arrivalOrder && x.channel > none {
		p.fly(m)
		return
	}
	if l := p.setting.messageLatency(x); l != 0 && !p.rules.cpuLatency {
		if p.network.contended {
			p.clock.schedule(p.clock.after(l), messageReady, m)
			return
		}
		took := p.setting.transfer(p.setting.nodeOf[x.src], p.setting.nodeOf[x.dst], x.bytes)
		p.clock.schedule(p.clock.after(l+took), messageEnds, m)
		return
	}
	p.network.send(m)
}

// recv does MPI_Recv.
func (p *pointToPoint) recv(i int32) {
	s := &p.threads[i]
	o := &s.op
	if p.progress.chargeLatency(i, p.setting.keptLatency(p.setting.latency(o.peer, s.rank), s.rank, o)) {
		return
	}
	ch := &p.channels.channels[p.channels.find(channelKey{o.peer, s.rank, o.tag, o.comm})]
	if p.rules.arrivalOrder {
		ch.post(blocking)
		p.receive(i, ch)
		return
	}
	p.recvPosted(i, ch)
}

// irecv does MPI_Irecv.
func (p *pointToPoint) irecv(i int32) {
	s := &p.threads[i]
	o := &s.op
	c := p.channels.find(channelKey{o.peer, s.rank, o.tag, o.comm})
	if p.rules.arrivalOrder {
		p.irecvToArrive(o, c)
	} else {
		p.irecvPosted(o, &p.channels.channels[c])
	}
	p.progress.complete(i, true)
}

// delivered hands a message that has left its links to its receiver.
func (p *pointToPoint) delivered(m int32) {
	x := &p.network.messages.items[m]
	if x.channel == none { // one-sided
		to := x.to
		p.release(m)
		p.progress.completeRequest(to, true)
		return
	}
	if p.rules.arrivalOrder {
		c := x.channel
		p.arrive(&p.channels.channels[c], m, p.clock.now)
		p.messageArrives(c)
		return
	}
	x.arrived = true
	sender, to := x.sender, x.to
	if to == none {
		p.probes.wake(&p.channels.channels[x.channel])
		return
	}
	p.release(m)
	p.progress.completeTaker(to)
	if sender != none {
		p.progress.completeTaker(sender)
	}
}

// release frees a message that has been received.
func (p *pointToPoint) release(m int32) {
	if c := p.network.messages.items[m].channel; c > none {
		p.channels.channels[c].refs--
	}
	p.network.messages.release(m)
}

// arrived reports whether the next message of a channel has arrived at a time.
func (p *pointToPoint) arrived(ch *channel, at Picoseconds) bool {
	if ch.sends.empty() {
		return false
	}
	x := &p.network.messages.items[ch.sends.first()]
	return x.arrived || p.rules.arrivalOrder && x.at <= at
}

// oneSided does a transfer that needs no call by its target.
func (p *pointToPoint) oneSided(i int32) {
	s := &p.threads[i]
	o := &s.op
	if p.progress.chargeLatency(i, p.setting.keptLatency(p.setting.latency(s.rank, o.peer), s.rank, o)) {
		return
	}
	src, dst, bytes := s.rank, o.peer, o.send
	latency := p.setting.latency(src, dst)
	if o.kind == opGet { // first the request travels, then the data come back
		src, dst, bytes = dst, src, o.recv
		latency += p.setting.latency(src, dst)
	}
	latency = p.setting.keptLatency(latency, s.rank, o)
	p.requests.items[o.req].describe(o)
	m := p.network.newMessage(s, dst, bytes)
	x := &p.network.messages.items[m]
	x.src, x.to, x.started = src, o.req, true
	if latency != 0 && !p.rules.cpuLatency {
		p.clock.schedule(p.clock.after(latency), messageReady, m)
	} else {
		p.network.send(m)
	}
	p.progress.complete(i, true)
}
