package predict

import (
	"slices"

	"github.com/commq/commq/schema"
)

// A rank that is last in one wave and first in the next receives, then sends, as the ranks in the middle do in one iteration: its text alone cannot tell that
// it did two. The ranks that it talks to can, since a message is sent and received in the same iteration of the same loop.

// mostWaves bounds the calls of loops whose iterations are counted by their messages.
const mostWaves = 1 << 22

// waveCall is a call of a nest of loops whose iterations are counted.
type waveCall struct {
	seq     int64 // among the rank's calls
	place   int32 // among the events of the nest
	begins  bool  // it is the first of an execution of the nest
	message int32 // that it sends or receives, numbered by run; its iteration is that of all who have it
}

// waves are the calls of a nest of loops, by rank.
type waves [][]waveCall

// straighten makes one loop of a nest of loops of sends and receives alone, where so all ranks of a run have the same number of iterations, of which they skip none,
// and every message is sent and received in the same one; only of nests of which ranks of a run have different iterations. Iterations have the least numbers
// that the order of the calls of each rank and its messages allow. It returns the calls, by joint rank and in order, before which an iteration ends though the
// template does not say so; nil where no nest is changed.
func (t *training) straighten() [][]int64 {
	nests := t.uneven()
	if len(nests) == 0 {
		return nil
	}
	calls := t.waves(nests)
	if calls == nil {
		return nil
	}
	var cuts [][]int64
	for _, id := range sortedKeys(nests) {
		add, ok := make([][]int64, len(t.Roots)), true
		for i, run := range t.runs {
			from, to := t.base[i], t.base[i]+run.Ranks
			ok = ok && calls[id][from:to].count(add[from:to])
		}
		if !ok {
			continue
		}
		if cuts == nil {
			cuts = make([][]int64, len(t.Roots))
		}
		for r := range add {
			cuts[r] = append(cuts[r], add[r]...)
		}
		t.nodes[id].Children = nests[id]
	}
	for r := range cuts {
		slices.Sort(cuts[r])
	}
	return cuts
}

// uneven are the outermost loops that have sends and receives alone, of which, or of loops in which, ranks of a run count iterations differently: their
// events, by node.
func (t *training) uneven() map[int32][]*Node {
	s := &slotter{training: t}
	counts := map[int32]bool{} // loops of which they do
	for i, run := range t.runs {
		visited, of := map[[2]int32]bool{}, map[int32]int64{}
		for r := range run.Ranks {
			s.executions(t.nodes[0], t.Roots[t.base[i]+r], visited)
		}
		for k := range visited {
			n := countItems(t.Values[k[0]].Loops[k[1]])
			if before, known := of[k[0]]; known && before != n {
				counts[k[0]] = true
			}
			of[k[0]] = n
		}
	}
	nests := map[int32][]*Node{}
	var visit func(n *Node)
	visit = func(n *Node) {
		if events, uneven := t.messages(n, counts); events != nil && uneven && n.ID != 0 {
			nests[n.ID] = events
			return
		}
		for _, c := range n.Children {
			if c.Loop {
				visit(c)
			}
		}
	}
	visit(t.nodes[0])
	return nests
}

// messages are the events of a loop and of the loops in it, in the order of the template; nil where some are neither a send nor a receive, or none is either.
func (t *training) messages(n *Node, counts map[int32]bool) (events []*Node, uneven bool) {
	sends, receives, other := false, false, false
	var visit func(n *Node)
	visit = func(n *Node) {
		if n.Loop {
			uneven, other = uneven || counts[n.ID], other || n.levels
			for _, c := range n.Children {
				visit(c)
			}
			return
		}
		class := schema.Calls[t.Symbols[n.Symbol].call].Class
		sends, receives = sends || class == schema.ClassSend, receives || class == schema.ClassRecv
		other = other || class != schema.ClassSend && class != schema.ClassRecv
		events = append(events, n)
	}
	visit(n)
	if other || !sends || !receives {
		return nil, false
	}
	return events, uneven
}

// waves are the calls of nests, by their nodes; nil where they are too many.
func (t *training) waves(nests map[int32][]*Node) map[int32]waves {
	type numbered struct {
		channel channel
		number  int32
	}
	calls := map[int32]waves{}
	type placed struct{ nest, place int32 }
	in := make([]placed, len(t.nodes)) // by event; the root is no nest
	for id, events := range nests {
		calls[id] = make(waves, len(t.Roots))
		for place, n := range events {
			in[n.ID] = placed{id, int32(place)}
		}
	}
	all := 0
	for i, run := range t.runs {
		messages := map[numbered]int32{}
		for r := range run.Ranks {
			rank, seq := t.base[i]+r, int64(0)
			sent, received := map[channel]int32{}, map[channel]int32{}
			last := int32(0)
			t.Walk(rank, func(n *Node, c *Call) {
				message := int32(none)
				take := func(count map[channel]int32, k channel) {
					x := numbered{k, count[k]}
					count[k]++
					id, known := messages[x]
					if !known {
						id = int32(len(messages))
						messages[x] = id
					}
					message = id
				}
				class, comm := schema.Calls[t.Symbols[n.Symbol].call].Class, c.Comm.int32()
				switch {
				case class == schema.ClassSend && !peerless(c.Send):
					take(sent, channel{comm, rank, rank + c.Send[SidePeer].int32(), c.Send[SideTag].int32()})
				case class == schema.ClassRecv && !peerless(c.Recv):
					take(received, channel{comm, rank + c.Recv[SidePeer].int32(), rank, c.Recv[SideTag].int32()})
				}
				p := in[n.ID]
				if p.nest != 0 {
					calls[p.nest][rank] = append(calls[p.nest][rank], waveCall{seq, p.place, last != p.nest, message})
					all++
				}
				last = p.nest
				seq++
			})
		}
		if all > mostWaves {
			return nil
		}
	}
	return calls
}

// count numbers the iterations of the calls of the ranks of a run, and adds to cuts, by rank, before which calls they end unsaid; false where they cannot be
// numbered, or ranks would not have the same.
func (w waves) count(cuts [][]int64) bool {
	var executions []waves
	for r, calls := range w {
		number := -1
		for i, c := range calls {
			if c.begins {
				if number++; number == len(executions) {
					executions = append(executions, make(waves, len(w)))
				}
			}
			executions[number][r] = append(executions[number][r], calls[i])
		}
	}
	for _, x := range executions {
		if !x.countOne(cuts) {
			return false
		}
	}
	return true
}

// countOne does so with one execution of the nest by each rank.
func (w waves) countOne(cuts [][]int64) bool {
	at, sides := map[int32]int32{}, map[int32]int{} // iteration of a message; how many of its two sides are here
	most := int32(0)
	for _, calls := range w {
		if len(calls) == 0 {
			return false
		}
		for _, c := range calls {
			if c.message == none {
				return false
			}
			sides[c.message]++
			at[c.message] = 0
		}
		most = max(most, int32(len(calls)))
	}
	for _, n := range sides {
		if n != 2 {
			return false
		}
	}
	for more := true; more; {
		more = false
		for _, calls := range w {
			now := int32(0)
			for i, c := range calls {
				if i > 0 && c.place <= calls[i-1].place {
					now++
				}
				if now = max(now, at[c.message]); now > most { // what comes after itself
					return false
				}
				if now > at[c.message] {
					at[c.message], more = now, true
				}
			}
		}
	}
	end := at[w[0][len(w[0])-1].message]
	for r, calls := range w {
		before := int32(0)
		for i, c := range calls {
			now := at[c.message]
			if now > before+1 || i == 0 && now > 0 {
				return false
			}
			if i > 0 && now > before && c.place > calls[i-1].place {
				cuts[r] = append(cuts[r], c.seq)
			}
			before = now
		}
		if before != end {
			return false
		}
	}
	return true
}
