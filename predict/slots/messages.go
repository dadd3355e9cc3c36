package slots

import (
	"maps"
	"slices"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// Where ranks skip iterations, as those whose partner in a butterfly does not exist, messages tell which iterations are
// the same: a message is sent and received in one iteration of a loop. If both ends of all messages are in the n-th
// iteration of their ranks, for the same n, no rank skips any.

// maxMessageCalls is the largest number of calls in which messages are matched.
const maxMessageCalls = 1 << 21

// classes are sets of bodies of a loop that are the same iteration.
type classes []int32 // of each body, another one of its set that is nearer to the set's first; the first has itself

// first returns the first body of a body's set.
func (c classes) first(body int32) int32 {
	for c[body] != body {
		body = c[body]
	}
	return body
}

// join makes the sets of two bodies one.
func (c classes) join(a, b int32) {
	a, b = c.first(a), c.first(b)
	c[max(a, b)] = min(a, b)
}

// keys numbers the sets: it returns the number of each body's set, and how many there are. It is nil if each body is a
// set of its own.
func (c classes) keys() (key []int32, keys int) {
	joined := false
	for b := range c {
		first := c.first(int32(b))
		if first == int32(b) {
			key = append(key, int32(keys))
			keys++
			continue
		}
		key, joined = append(key, key[first]), true
	}
	if !joined {
		return nil, 0
	}
	return key, keys
}

// classesByMessage returns the sets of bodies of loops of which ranks skip iterations, by node: bodies that send and
// receive the same message are in one. Loops with inner ones, and all if there are too many calls, have no sets.
func classesByMessage(sig *signature.Signature, runs []Run, loops []*template.Node) map[int32]classes {
	m := &messageMatcher{sig: sig, found: map[int32]classes{}, skipped: map[int32]bool{}}
	for _, n := range loops {
		if slices.ContainsFunc(n.Children, func(c *template.Node) bool { return c.Loop }) {
			continue
		}
		c := make(classes, len(sig.Values[n.ID].Bodies))
		for i := range c {
			c[i] = int32(i)
		}
		m.found[n.ID] = c
	}
	if len(m.found) == 0 {
		return nil
	}
	for _, run := range runs {
		m.open = map[numberedMessage]end{}
		for r := range run.Ranks {
			m.rank = run.First + r
			m.sent, m.received = map[signature.Channel]int32{}, map[signature.Channel]int32{}
			if !m.walk(sig.Nodes()[0], sig.Roots[m.rank]) {
				return nil
			}
		}
	}
	maps.DeleteFunc(m.found, func(loop int32, _ classes) bool { return !m.skipped[loop] })
	return m.found
}

// messageMatcher joins the bodies at both ends of messages.
type messageMatcher struct {
	sig            *signature.Signature
	found          map[int32]classes
	skipped        map[int32]bool          // loops with messages between different iterations of the two ranks
	open           map[numberedMessage]end // messages of which one end was seen
	rank           int32
	sent, received map[signature.Channel]int32
	calls          int
}

// numberedMessage is the number-th message on a channel.
type numberedMessage struct {
	channel signature.Channel
	number  int32
}

// end is the place at which a message is sent or received.
type end struct{ loop, body, iteration int32 }

// walk goes through what the rank did at a loop. It returns false if there are too many calls.
func (m *messageMatcher) walk(n *template.Node, value int32) bool {
	v, iteration := &m.sig.Values[n.ID], int32(-1)
	return fold.Each(v.Loops[value], func(body int32) bool {
		b := v.Bodies[body]
		iteration++
		for i := 0; i < len(b); i += 2 {
			if c := n.Children[b[i]]; c.Loop {
				if !m.walk(c, b[i+1]) {
					return false
				}
			} else {
				m.match(c, m.sig.Values[c.ID].Events[b[i+1]], end{n.ID, body, iteration})
			}
		}
		return m.calls <= maxMessageCalls
	})
}

// match notes the ends of the messages of a call.
func (m *messageMatcher) match(n *template.Node, c *signature.Call, here end) {
	m.calls++
	class := schema.Calls[m.sig.Symbols[n.Symbol].CallID].Class
	both := class == schema.ClassSendrecv
	if (both || class == schema.ClassSend) && c.Send.HasPeer() {
		m.meet(m.sent, c.SendChannel(m.rank), here)
	}
	if (both || class == schema.ClassRecv) && c.Recv.HasPeer() {
		m.meet(m.received, c.RecvChannel(m.rank), here)
	}
}

// meet notes one end of the next message on a channel.
func (m *messageMatcher) meet(count map[signature.Channel]int32, channel signature.Channel, here end) {
	k := numberedMessage{channel, count[channel]}
	count[channel]++
	other, known := m.open[k]
	if !known {
		m.open[k] = here
		return
	}
	delete(m.open, k)
	if c := m.found[here.loop]; c != nil && other.loop == here.loop {
		c.join(here.body, other.body)
		m.skipped[here.loop] = m.skipped[here.loop] || here.iteration != other.iteration
	}
}
