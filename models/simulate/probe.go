package simulate

// probes are the threads that are blocked in a probe.
type probes struct {
	clock    *clock
	setting  *setting
	cpus     *scheduler
	threads  []thread `snapshot:"-"` // the scheduler's
	progress *progress
	network  *network
	channels *channelTable
	blocked  []probing
}

// probing is a thread that is blocked in a probe of a channel.
type probing struct{ thread, channel int32 }

// begin does MPI_Probe, and an MPI_Iprobe that found something: it waits until the next message of the channel can be
// detected.
func (p *probes) begin(i int32) {
	s := &p.threads[i]
	o := &s.op
	c := p.channels.find(channelKey{o.peer, s.rank, o.tag, o.comm})
	if p.noticed(i, &p.channels.channels[c]) {
		p.progress.complete(i, true)
		return
	}
	p.channels.channels[c].refs++
	p.blocked = append(p.blocked, probing{i, c})
	p.cpus.block(i)
}

// noticed reports whether the thread's probe detects the next message: its data have arrived or, if it waits for its
// receiver, its announcement has, which takes a latency.
func (p *probes) noticed(i int32, ch *channel) bool {
	if ch.sends.empty() {
		return false
	}
	x := &p.network.messages.items[ch.sends.first()]
	if !x.arrived {
		if !x.sync {
			return false
		}
		if at := x.at + p.setting.messageLatency(x); at > p.clock.now {
			p.clock.schedule(at, probeWakes, i)
			return false
		}
	}
	return true
}

// wake ends the first probe of a channel that detects a message now.
func (p *probes) wake(ch *channel) {
	for k := 0; k < len(p.blocked); k++ {
		if w := p.blocked[k]; &p.channels.channels[w.channel] == ch && p.noticed(w.thread, ch) {
			p.end(k)
			return
		}
	}
}

// wakeThread ends the probe of a thread if it detects a message now.
func (p *probes) wakeThread(i int32) {
	for k, w := range p.blocked {
		if w.thread == i && p.noticed(i, &p.channels.channels[w.channel]) {
			p.end(k)
			return
		}
	}
}

func (p *probes) end(k int) {
	w := p.blocked[k]
	p.blocked = append(p.blocked[:k], p.blocked[k+1:]...)
	p.channels.channels[w.channel].refs--
	p.progress.resume(w.thread)
}
