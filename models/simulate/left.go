package simulate

import (
	"fmt"
	"strings"

	"github.com/commq/commq/schema"
)

// mostNamed is how many ranks or messages an error names.
const mostNamed = 8

// at says where a call stands: " at file.c:17".
func (e *engine) at(site int32) string {
	if e.program.Callsite == nil || site == schema.NullInt32 {
		return ""
	}
	if where := e.program.Callsite(site); where != "" {
		return " at " + where
	}
	return ""
}

// left is an error when something is left when nothing happens any more: ranks that wait, or messages without a partner.
func (e *engine) left() error {
	if e.running > 0 {
		return e.deadlock()
	}
	return e.unmatched()
}

// deadlock says who waits for what.
func (e *engine) deadlock() error {
	var lines []string
	stuck := 0
	for i := range e.streams {
		s := &e.streams[i]
		if s.over {
			continue
		}
		if stuck++; stuck <= mostNamed {
			lines = append(lines, e.waitsFor(int32(i)))
		}
	}
	if stuck > mostNamed {
		lines = append(lines, fmt.Sprintf("and %d more", stuck-mostNamed))
	}
	return fmt.Errorf("deadlock: %d of %d ranks wait for ever:\n  %s\n%s", stuck, len(e.program.Threads), strings.Join(lines, "\n  "), e.deadlockHint())
}

// deadlockHint says what may be the reason.
func (e *engine) deadlockHint() string {
	if e.machine.EagerThresholdGiven {
		return "the program may count on sends that do not wait for their receivers; simulate it with --set eager_threshold_bytes=unlimited"
	}
	return "is the run complete, and did the program end by itself? commq runs show says so, commq query unmatched lists messages without a partner"
}

// waitsFor is a stream that is stuck, in words.
func (e *engine) waitsFor(i int32) string {
	s := &e.streams[i]
	o := &s.op
	text := fmt.Sprintf("rank %d, seq %d: %s%s", s.rank, o.seq, o.callID(), e.at(o.site))
	switch o.kind {
	case opSend, opIsend:
		return text + fmt.Sprintf(" to rank %d, tag %d, %d bytes, communicator %d, waits for its receive", o.peer, o.tag, o.send, o.comm)
	case opRecv, opProbe:
		return text + fmt.Sprintf(" from rank %d, tag %d, communicator %d", o.peer, o.tag, o.comm)
	case opCollective:
		return text + e.missing(o)
	case opWait:
		if s.wait < len(s.queue.chain) {
			return text + " waits for " + e.requestText(s.queue.chain[s.wait])
		}
	}
	return text
}

// requestText is a request in words.
func (e *engine) requestText(r int32) string {
	q := &e.requests[r]
	text := fmt.Sprintf("%s%s (seq %d)", schema.CallID(q.call), e.at(q.site), q.seq)
	switch q.kind {
	case opIrecv:
		return text + fmt.Sprintf(" from rank %d", q.peer)
	case opIsend:
		return text + fmt.Sprintf(" to rank %d", q.peer)
	case opIcollective:
		return text + fmt.Sprintf(" on communicator %d", e.comms[q.peer].id)
	}
	return text
}

// missing says which ranks have not come to a collective.
func (e *engine) missing(o *op) string {
	g := &e.comms[o.comm]
	for _, c := range g.open {
		x := &e.colls[c]
		if x.instance == o.instance {
			return fmt.Sprintf(" on communicator %d (operation %d): %d of its %d ranks have come, not %s", g.id, o.instance, len(x.takers), g.size, e.absent(g, x))
		}
	}
	return ""
}

// absent are the ranks of the communicator that have not come to the collective.
func (e *engine) absent(g *comm, x *collective) string {
	come := map[int32]bool{}
	for _, t := range x.takers {
		if !isStream(t) {
			t = takerOf(e.requests[t].channel)
		}
		come[e.streams[streamOf(t)].rank] = true
	}
	var names []string
	more := 0
	for _, rank := range g.world {
		if come[rank] {
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

// unmatched is an error when a message was not received, or a receive got none.
func (e *engine) unmatched() error {
	var sends, receives []string
	many, more := 0, 0
	for k := range e.channels.channels {
		ch := &e.channels.channels[k]
		if e.arrivalOrder {
			switch n := ch.ahead.len(); {
			case n == 0:
			case ch.aheadSends:
				many += n
				sends = append(sends, fmt.Sprintf("rank %d: %d to rank %d, tag %d, communicator %d%s", ch.src, n, ch.dst, ch.tag, ch.comm, e.firstOf(ch)))
			default:
				more += n
				receives = append(receives, fmt.Sprintf("rank %d: %d from rank %d, tag %d, communicator %d", ch.dst, n, ch.src, ch.tag, ch.comm))
			}
			continue
		}
		for _, m := range ch.sends.all() {
			x := &e.messages[m]
			if many++; many <= mostNamed {
				sends = append(sends, fmt.Sprintf("rank %d, seq %d: %s%s to rank %d, tag %d, %d bytes, communicator %d", x.src, x.seq, schema.CallID(x.call), e.at(x.site), x.dst, ch.tag, x.bytes, ch.comm))
			}
		}
		for _, r := range ch.receives.all() {
			if more++; more <= mostNamed {
				q := &e.requests[r]
				receives = append(receives, fmt.Sprintf("rank %d, seq %d: %s%s from rank %d, tag %d, communicator %d", ch.dst, q.seq, schema.CallID(q.call), e.at(q.site), ch.src, ch.tag, ch.comm))
			}
		}
	}
	sends, receives = sends[:min(len(sends), mostNamed)], receives[:min(len(receives), mostNamed)]
	if many+more == 0 {
		return nil
	}
	var parts []string
	if many > 0 {
		parts = append(parts, fmt.Sprintf("sends without a receive, %d:\n  %s", many, strings.Join(sends, "\n  ")))
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("receives without a send, %d:\n  %s", more, strings.Join(receives, "\n  ")))
	}
	return fmt.Errorf("messages without a partner: %s\ncommq query unmatched lists them", strings.Join(parts, "\n"))
}

// firstOf is the first message of a channel that nobody received, in words.
func (e *engine) firstOf(ch *channel) string {
	m := none
	switch {
	case !ch.sends.empty():
		m = ch.sends.first()
	case !ch.waiting.empty():
		m = ch.waiting.first()
	default:
		return ""
	}
	x := &e.messages[m]
	return fmt.Sprintf("; the first that is left: seq %d: %s%s, %d bytes", x.seq, schema.CallID(x.call), e.at(x.site), x.bytes)
}
