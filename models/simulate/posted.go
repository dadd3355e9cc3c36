package simulate

// Point-to-point messages of the dialect paper: the n-th message on a channel goes to the n-th receive posted there.

// sendPosted gives a message to the oldest receive that has none, or queues it for the next receive.
func (p *pointToPoint) sendPosted(i int32, ch *channel, m int32) {
	x := &p.network.messages.items[m]
	o := &p.threads[i].op
	x.to = ch.receives.pop()
	if x.to == none {
		ch.sends.push(m)
		p.probes.wake(ch)
	}
	switch {
	// the receiver ran ahead
	case x.sync && x.to != none && !isThread(x.to) && p.requests.items[x.to].posted > p.clock.now:
		p.clock.schedule(p.requests.items[x.to].posted, messageStarts, m)
	case !x.sync || x.to != none:
		p.launch(m)
	}
	switch {
	case !x.sync:
		if o.kind == opIsend {
			p.progress.completeRequest(o.req, true)
		}
		p.progress.complete(i, true)
	case o.kind == opIsend:
		x.sender = o.req
		p.progress.complete(i, true)
	default:
		x.sender = takerOf(i)
		p.cpus.block(i)
	}
}

// recvPosted takes the oldest message that has no receive, or blocks until one is sent.
func (p *pointToPoint) recvPosted(i int32, ch *channel) {
	m := ch.sends.pop()
	if m == none {
		ch.receives.push(takerOf(i))
		p.cpus.block(i)
		return
	}
	if p.network.messages.items[m].arrived {
		p.release(m)
		p.progress.complete(i, true)
		return
	}
	p.network.messages.items[m].to = takerOf(i)
	p.launchSync(m)
	p.cpus.block(i)
}

// irecvPosted takes the oldest message that has no receive, or queues the receive.
func (p *pointToPoint) irecvPosted(o *op, ch *channel) {
	q := &p.requests.items[o.req]
	q.describe(o)
	switch m := ch.sends.pop(); {
	case m == none:
		q.posted = p.clock.now
		ch.receives.push(o.req)
	case p.network.messages.items[m].arrived:
		p.release(m)
		p.progress.completeRequest(o.req, true)
	default:
		p.network.messages.items[m].to = o.req
		p.launchSync(m)
	}
}

// launchSync starts a message that waited for its receive.
func (p *pointToPoint) launchSync(m int32) {
	if x := &p.network.messages.items[m]; x.sync && !x.started {
		p.launch(m)
	}
}
