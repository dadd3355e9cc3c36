package simulate

import (
	"fmt"
	"strings"

	"github.com/commq/commq/schema"
)

// report explains why a simulation stopped early: ranks that wait for ever, or messages without a partner.
type report struct {
	setting  *setting
	cpus     *scheduler
	requests *requestPool
	messages []message
	channels []channel
	comms    []comm
	open     []collective
}

func (e *engine) report() *report {
	return &report{e.setting, e.cpus, e.requests, e.network.messages.items, e.p2p.channels.channels, e.comms.items,
		e.collectives.items}
}

// mostNamed is the largest number of ranks or messages that an error lists.
const mostNamed = 8

// err returns an error when a rank still waits or a message has no partner.
func (r *report) err() error {
	if r.cpus.running > 0 {
		return r.deadlock()
	}
	return r.unmatched()
}

// deadlock is the error that names the ranks that wait.
func (r *report) deadlock() error {
	var lines []string
	stuck := 0
	for i := range r.cpus.threads {
		s := &r.cpus.threads[i]
		if s.over {
			continue
		}
		if stuck++; stuck <= mostNamed {
			lines = append(lines, r.stuck(s))
		}
	}
	if stuck > mostNamed {
		lines = append(lines, fmt.Sprintf("and %d more", stuck-mostNamed))
	}
	return fmt.Errorf("deadlock: %d of %d ranks wait for ever:\n  %s\n%s", stuck, len(r.setting.program.Threads),
		strings.Join(lines, "\n  "), r.hint())
}

// hint names a possible reason for a deadlock.
func (r *report) hint() string {
	if r.setting.machine.EagerThresholdGiven {
		return "the program may rely on sends that do not wait for their receivers; simulate it with --set " +
			"eager_threshold_bytes=unlimited"
	}
	return "is the run complete, and did the program end normally (commq runs show)? commq query unmatched lists " +
		"messages without a partner"
}

// stuck describes what a thread waits for.
func (r *report) stuck(s *thread) string {
	o := &s.op
	text := fmt.Sprintf("rank %d, seq %d: %s%s", s.rank, o.seq, o.callID(), r.setting.site(o.site))
	switch o.kind {
	case opSend, opIsend:
		return text + fmt.Sprintf(" to rank %d, tag %d, %d bytes, communicator %d, waits for its receive", o.peer,
			o.tag, o.send, o.comm)
	case opRecv, opProbe:
		return text + fmt.Sprintf(" from rank %d, tag %d, communicator %d", o.peer, o.tag, o.comm)
	case opLock:
		return text + fmt.Sprintf(" waits for the lock on rank %d", o.peer)
	case opCollective:
		return text + r.missing(o)
	case opWait:
		if s.waitDone < len(s.queue.chain) {
			return text + " waits for " + r.request(s.queue.chain[s.waitDone])
		}
	}
	return text
}

// request describes a request.
func (r *report) request(id int32) string {
	q := &r.requests.items[id]
	text := fmt.Sprintf("%s%s (seq %d)", schema.CallID(q.call), r.setting.site(q.site), q.seq)
	switch q.kind {
	case opIrecv:
		return text + fmt.Sprintf(" from rank %d", q.peer)
	case opIsend:
		return text + fmt.Sprintf(" to rank %d", q.peer)
	case opIcollective:
		return text + fmt.Sprintf(" on communicator %d", r.comms[q.peer].id)
	}
	return text
}

// missing describes which ranks have not entered a collective.
func (r *report) missing(o *op) string {
	g := &r.comms[o.comm]
	for _, c := range g.open {
		x := &r.open[c]
		if x.instance == o.instance {
			return fmt.Sprintf(" on communicator %d (operation %d): %d of its %d ranks have entered it, all but %s",
				g.id,
				o.instance, len(x.takers), g.size, r.absent(g, x))
		}
	}
	return ""
}

// absent lists the ranks of the communicator that have not entered the collective.
func (r *report) absent(g *comm, x *collective) string {
	entered := map[int32]bool{}
	for _, t := range x.takers {
		i := r.requestThread(t)
		entered[r.cpus.threads[i].rank] = true
	}
	var names []string
	more := 0
	for _, rank := range g.world {
		if entered[rank] {
			continue
		}
		if len(names) == mostNamed {
			more++
			continue
		}
		names = append(names, fmt.Sprint(rank))
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// requestThread returns the thread that a taker of a collective belongs to.
func (r *report) requestThread(taker int32) int32 {
	if isThread(taker) {
		return threadOf(taker)
	}
	return r.requests.items[taker].channel
}

// unmatched returns an error when a message was not received, or a receive got none.
func (r *report) unmatched() error {
	var sends, receives []string
	sent, received := 0, 0
	for k := range r.channels {
		ch := &r.channels[k]
		if r.setting.rules.arrivalOrder {
			switch n := ch.ahead.len(); {
			case n == 0:
			case ch.aheadSends:
				sent += n
				sends = append(sends, fmt.Sprintf("rank %d: %d to rank %d, tag %d, communicator %d%s", ch.src, n,
					ch.dst, ch.tag, ch.comm, r.firstSend(ch)))
			default:
				received += n
				receives = append(receives, fmt.Sprintf("rank %d: %d from rank %d, tag %d, communicator %d", ch.dst,
					n, ch.src, ch.tag, ch.comm))
			}
			continue
		}
		for _, m := range ch.sends.values() {
			x := &r.messages[m]
			if sent++; sent <= mostNamed {
				sends = append(sends, fmt.Sprintf("rank %d, seq %d: %s%s to rank %d, tag %d, %d bytes, communicator %d",
					x.src, x.seq, schema.CallID(x.call), r.setting.site(x.site), x.dst, ch.tag, x.bytes, ch.comm))
			}
		}
		for _, id := range ch.receives.values() {
			if received++; received <= mostNamed {
				q := &r.requests.items[id]
				receives = append(receives, fmt.Sprintf("rank %d, seq %d: %s%s from rank %d, tag %d, communicator %d",
					ch.dst, q.seq, schema.CallID(q.call), r.setting.site(q.site), ch.src, ch.tag, ch.comm))
			}
		}
	}
	if sent+received == 0 {
		return nil
	}
	var parts []string
	if sent > 0 {
		parts = append(parts, fmt.Sprintf("sends without a receive, %d:\n  %s", sent,
			strings.Join(sends[:min(len(sends), mostNamed)], "\n  ")))
	}
	if received > 0 {
		parts = append(parts, fmt.Sprintf("receives without a send, %d:\n  %s", received,
			strings.Join(receives[:min(len(receives), mostNamed)], "\n  ")))
	}
	return fmt.Errorf("messages without a partner: %s\ncommq query unmatched lists them; only with partners do they "+
		"have times in a simulation", strings.Join(parts, "\n"))
}

// firstSend describes the first message of a channel that nobody received.
func (r *report) firstSend(ch *channel) string {
	m := none
	switch {
	case !ch.sends.empty():
		m = ch.sends.first()
	case !ch.waiting.empty():
		m = ch.waiting.first()
	default:
		return ""
	}
	x := &r.messages[m]
	return fmt.Sprintf("; the first of them: seq %d: %s%s, %d bytes", x.seq, schema.CallID(x.call),
		r.setting.site(x.site), x.bytes)
}
