package model

import (
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
)

// Exchanges groups sites whose slots are the two sides of the same messages in the runs: slot by slot, or all slots of
// one site against all of the other.
type Exchanges struct {
	group map[int32]int32   // by event: an event of its group
	whole map[int32][]int32 // by event: the events at the other side of all its messages
}

// Exchanges returns the groups. They are found when they are first needed.
func (m *Model) Exchanges() *Exchanges { return m.exchanges() }

// findExchanges returns the groups of the model's sites.
func (m *Model) findExchanges() *Exchanges {
	e := &Exchanges{map[int32]int32{}, map[int32][]int32{}}
	byFamily := map[string]int32{}
	for _, x := range m.Sites {
		for _, family := range []string{x.To, x.From} {
			if family != "" {
				byFamily[family], e.group[x.Event.ID] = x.Event.ID, x.Event.ID
			}
		}
	}
	for _, x := range m.Sites {
		for _, slot := range x.Calls.Slots {
			for _, family := range []string{x.To, x.From} {
				for _, partner := range m.Partners(family, slot) {
					if y, some := byFamily[partner]; some {
						e.join(x.Event.ID, y)
					}
				}
			}
		}
	}
	sent, received := m.sumMessages()
	receivers := map[uint64][]int32{}
	for event, sum := range received {
		receivers[sum] = append(receivers[sum], event)
	}
	for event, sum := range sent {
		for _, other := range receivers[sum] {
			e.join(event, other)
			e.whole[event], e.whole[other] = append(e.whole[event], other), append(e.whole[other], event)
		}
	}
	return e
}

// Pairs returns groups of two: a site that sends, and the only site whose receives match its sends, rank by rank and
// equally often, in all runs.
func (e *Exchanges) Pairs() *Exchanges {
	pairs := &Exchanges{map[int32]int32{}, map[int32][]int32{}}
	for event, others := range e.whole {
		if len(others) == 1 && len(e.whole[others[0]]) == 1 {
			pairs.group[event] = min(event, others[0])
		}
	}
	return pairs
}

// join makes one group of those of two events.
func (e *Exchanges) join(a, b int32) {
	x, some := e.GroupOf(a)
	if y, also := e.GroupOf(b); some && also {
		e.group[y] = x
	}
}

// GroupOf returns the group of an event; false if it has no messages.
func (e *Exchanges) GroupOf(event int32) (group int32, some bool) {
	group, some = e.group[event]
	for some && e.group[group] != group {
		group = e.group[group]
	}
	return group, some
}

// OtherSides returns the events whose calls have all messages of an event at their other side.
func (e *Exchanges) OtherSides(event int32) []int32 { return e.whole[event] }

// sumMessages returns, by event, a checksum of the messages that its calls send in the runs, and one of those that they
// receive. It does not depend on the order of messages.
func (m *Model) sumMessages() (sent, received map[int32]uint64) {
	sent, received = map[int32]uint64{}, map[int32]uint64{}
	for i, run := range m.Joint.Runs {
		for r := range run.Ranks {
			signature.WalkTimes(m.Joint.Sig, m.Joint.First[i]+r, func(n *template.Node, c *signature.Call, times int64) {
				if c.Send.HasPeer() {
					sent[n.ID] += pattern.HashPair(int32(i), r, c.Send.PeerOf(r)) * uint64(times)
				}
				if c.Recv.HasPeer() {
					received[n.ID] += pattern.HashPair(int32(i), c.Recv.PeerOf(r), r) * uint64(times)
				}
			})
		}
	}
	return sent, received
}
