package simulate

// Point-to-point messages of Dimemas: a receive takes the message of its channel that arrives first. A send that
// waits for its receiver (rendezvous) starts as soon as receives have been posted for it and for all messages before
// it.

// blocking marks an entry of channel.ahead as a blocking receive, which needs no time.
const blocking = Picoseconds(none)

// sendToArrive starts a message, or queues it until its receiver is ready.
func (p *pointToPoint) sendToArrive(i int32, ch *channel, m int32) {
	x := &p.network.messages.items[m]
	o := &p.threads[i].op
	posted := false // a nonblocking receive was posted, so the message can start
	if !ch.aheadSends && !ch.ahead.empty() {
		at := ch.ahead.pop()
		if posted = at != blocking && at <= p.clock.now; x.sync && at > p.clock.now { // the receiver ran ahead
			ch.refs++
			p.clock.schedule(at, receivePosted, x.channel)
		}
	} else {
		ch.aheadSends = true
		waits := Picoseconds(0)
		if x.sync {
			waits = 1
		}
		ch.ahead.push(waits)
	}
	if !x.sync || posted || !ch.receives.empty() {
		p.launch(m)
		if o.kind == opIsend {
			p.progress.completeRequest(o.req, true)
		}
		p.progress.complete(i, true)
		return
	}
	ch.waiting.push(m)
	if o.kind == opIsend || o.peer == x.src { // a send to itself, for which Dimemas would wait for ever
		p.progress.completeRequest(o.req, true)
		p.progress.complete(i, true)
		return
	}
	x.sender = takerOf(i)
	p.cpus.block(i)
}

// receive takes a message that has arrived, or blocks until one arrives.
func (p *pointToPoint) receive(i int32, ch *channel) {
	if p.arrived(ch, p.clock.now) {
		p.release(ch.sends.pop())
		p.progress.complete(i, true)
		return
	}
	p.startWaiting(ch)
	ch.receives.push(i)
	p.cpus.block(i)
	if !ch.sends.empty() {
		x := &p.network.messages.items[ch.sends.first()]
		p.clock.schedule(x.at, messageArrives, x.channel)
	}
}

// irecvToArrive posts a receive. Another thread of the same rank may be waiting for its request already.
func (p *pointToPoint) irecvToArrive(o *op, c int32) {
	ch := &p.channels.channels[c]
	waiter := none
	if r := &p.requests.items[o.req]; r.orphan {
		p.requests.release(o.req)
	} else {
		r.describe(o)
		ch.refs++
		r.channel, waiter = c, r.waiter
	}
	if ch.post(p.clock.now) {
		p.startWaiting(ch)
	}
	if waiter != none {
		ch.refs--
		p.requests.release(o.req)
		p.threads[waiter].blocked = false
		p.receive(waiter, ch)
	}
}

// waitReceive waits for the request of a receive.
func (p *pointToPoint) waitReceive(i, r int32) {
	q, s := &p.requests.items[r], &p.threads[i]
	if p.progress.chargeLatency(i, p.setting.keptLatency(p.setting.latency(q.peer, s.rank), s.rank, &s.op)) {
		return
	}
	if q.channel == none { // another thread has not posted it yet
		q.waiter = i
		p.cpus.block(i)
		return
	}
	ch := &p.channels.channels[q.channel]
	ch.refs--
	p.requests.release(r)
	p.receive(i, ch)
}

// receivePosted starts the first message that waits for its receiver. Its receive was posted by a thread that ran
// ahead.
func (p *pointToPoint) receivePosted(c int32) {
	ch := &p.channels.channels[c]
	ch.refs--
	p.startWaiting(ch)
}

// startWaiting starts the first message that waits for its receiver, and resumes its sender.
func (p *pointToPoint) startWaiting(ch *channel) {
	m := ch.waiting.pop()
	if m == none {
		return
	}
	sender := p.network.messages.items[m].sender
	p.network.messages.items[m].sender = none
	p.launch(m)
	if sender != none {
		p.progress.complete(threadOf(sender), true)
	}
}

// fly computes the arrival of a message while threads run ahead. Which message a receive gets does not matter, only
// how many have arrived by then. So the arrival becomes an event only if a receiver is blocked.
func (p *pointToPoint) fly(m int32) {
	x := &p.network.messages.items[m]
	ch := &p.channels.channels[x.channel]
	at := p.clock.after(p.setting.transfer(p.setting.nodeOf[x.src], p.setting.nodeOf[x.dst], x.bytes))
	p.arrive(ch, m, at)
	if !ch.receives.empty() {
		p.clock.schedule(at, messageArrives, x.channel)
	}
}

// arrive inserts a message into its channel, which is sorted by arrival time.
func (p *pointToPoint) arrive(ch *channel, m int32, at Picoseconds) {
	messages := p.network.messages.items
	messages[m].at = at
	ch.sends.insert(m, func(other int32) bool { return messages[other].at > at })
}

// messageArrives gives a message to the receiver that is blocked on a channel, unless that has taken an earlier one.
func (p *pointToPoint) messageArrives(c int32) {
	ch := &p.channels.channels[c]
	if ch.receives.empty() || !p.arrived(ch, p.clock.now) {
		return
	}
	p.release(ch.sends.pop())
	p.progress.resume(ch.receives.pop())
}
