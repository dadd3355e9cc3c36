package join

import (
	"cmp"
	"maps"
	"slices"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/predict/signature/sign"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// In a sweep over a grid, a rank that is last in one wave and first in the next one receives, then sends, as the ranks
// in the middle do in one iteration. Its own calls do not show that it was in two iterations. The messages do, since a
// message is sent and received in the same iteration of the same loop.

// maxWaveCalls is the largest number of calls in loops whose iterations are counted by their messages.
const maxWaveCalls = 1 << 22

// waveCall is a call in a nest of loops whose iterations are counted.
type waveCall struct {
	seq     int64 // on the rank
	place   int32 // of the event among those of the nest
	begins  bool  // it is the first of an execution of the nest
	message int32 // number of the message in the run; unset if the call has none
}

// waves has the calls of a nest of loops by rank.
type waves [][]waveCall

// flattenWaves replaces each nest of loops that has only sends and receives, and whose iterations ranks count
// differently, by a single loop. It does so only if afterwards all ranks of a run have the same number of iterations,
// skip none, and every message is sent and received in the same iteration. Iterations get the lowest numbers that the
// order of each rank's calls and the messages allow. The result has, by joint rank, the seqs of calls before which an
// iteration ends though the template does not show it; nil if no nest was changed.
func flattenWaves(t *Training) [][]sign.Cut {
	nests := unevenNests(t)
	if len(nests) == 0 {
		return nil
	}
	calls := collectWaves(t, nests)
	if calls == nil {
		return nil
	}
	var cuts [][]sign.Cut
	for _, id := range slices.Sorted(maps.Keys(nests)) {
		added, ok := make([][]int64, len(t.Sig.Roots)), true
		for i, run := range t.Runs {
			from, to := t.First[i], t.First[i]+run.Ranks
			ok = ok && calls[id][from:to].cut(added[from:to])
		}
		if !ok {
			continue
		}
		if cuts == nil {
			cuts = make([][]sign.Cut, len(t.Sig.Roots))
		}
		for r := range added {
			for _, seq := range added[r] {
				cuts[r] = append(cuts[r], sign.Cut{Seq: seq})
			}
		}
		t.Sig.Nodes()[id].Children = nests[id]
	}
	sortCuts(cuts)
	return cuts
}

// sortCuts orders the cuts of each rank.
func sortCuts(cuts [][]sign.Cut) {
	for r := range cuts {
		slices.SortStableFunc(cuts[r], func(a, b sign.Cut) int { return cmp.Compare(a.Seq, b.Seq) })
	}
}

// unevenLoops returns, by node, the loops whose iterations ranks of a run count differently.
func unevenLoops(t *Training) map[int32]bool {
	uneven := map[int32]bool{}
	for i, run := range t.Runs {
		before, seen := map[int32][]int64{}, map[int32]bool{}
		for r := range run.Ranks {
			root := t.Sig.Roots[t.First[i]+r]
			if seen[root] {
				continue
			}
			seen[root] = true
			for loop, lengths := range lengthsOf(t.Sig, root) {
				if b, known := before[loop]; known && !slices.Equal(b, lengths) {
					uneven[loop] = true
				}
				before[loop] = lengths
			}
		}
	}
	return uneven
}

// unevenNests returns the events of the outermost loops that have only sends and receives, and of which, or of loops in
// which, ranks of a run count the iterations differently.
func unevenNests(t *Training) map[int32][]*template.Node {
	uneven := unevenLoops(t)
	nests := map[int32][]*template.Node{}
	var visit func(n *template.Node)
	visit = func(n *template.Node) {
		if events, isUneven := messageEvents(t.Sig, n, uneven); events != nil && isUneven && n.ID != 0 {
			nests[n.ID] = events
			return
		}
		for _, c := range n.Children {
			if c.Loop {
				visit(c)
			}
		}
	}
	visit(t.Sig.Nodes()[0])
	return nests
}

// lengthsOf returns the numbers of iterations that executions of each loop have, in order and each once, on ranks with
// a root.
func lengthsOf(sig *signature.Signature, root int32) map[int32][]int64 {
	visited, lengths := map[[2]int32]bool{}, map[int32][]int64{}
	sig.VisitExecutions(sig.Nodes()[0], root, visited)
	for k := range visited {
		lengths[k[0]] = append(lengths[k[0]], fold.Len(sig.Values[k[0]].Loops[k[1]]))
	}
	for loop, l := range lengths {
		slices.Sort(l)
		lengths[loop] = slices.Compact(l)
	}
	return lengths
}

// messageEvents returns the events in a nest of loops in template order; nil unless there are sends and receives and
// nothing else. isUneven reports whether a loop of the nest is uneven.
func messageEvents(sig *signature.Signature, n *template.Node,
	uneven map[int32]bool) (events []*template.Node, isUneven bool) {
	sends, receives, other := false, false, false
	var visit func(n *template.Node)
	visit = func(n *template.Node) {
		if n.Loop {
			isUneven, other = isUneven || uneven[n.ID], other || n.RecursionLevels
			for _, c := range n.Children {
				visit(c)
			}
			return
		}
		class := schema.Calls[sig.Symbols[n.Symbol].CallID].Class
		sends, receives = sends || class == schema.ClassSend, receives || class == schema.ClassRecv
		other = other || class != schema.ClassSend && class != schema.ClassRecv
		events = append(events, n)
	}
	visit(n)
	if other || !sends || !receives {
		return nil, false
	}
	return events, isUneven
}

// numberedMessage is the number-th message on a channel.
type numberedMessage struct {
	channel signature.Channel
	number  int32
}

// collectWaves returns the calls of nests by node; nil if there are too many.
func collectWaves(t *Training, nests map[int32][]*template.Node) map[int32]waves {
	calls := map[int32]waves{}
	type placeInNest struct{ nest, place int32 }
	in := make([]placeInNest, len(t.Sig.Nodes())) // by event; nest 0 means none, since the root is not a nest
	for id, events := range nests {
		calls[id] = make(waves, len(t.Sig.Roots))
		for place, n := range events {
			in[n.ID] = placeInNest{id, int32(place)}
		}
	}
	total := 0
	for i, run := range t.Runs {
		messages := map[numberedMessage]int32{}
		number := func(count map[signature.Channel]int32, k signature.Channel) int32 {
			x := numberedMessage{k, count[k]}
			count[k]++
			id, known := messages[x]
			if !known {
				id = int32(len(messages))
				messages[x] = id
			}
			return id
		}
		for r := range run.Ranks {
			rank, seq := t.First[i]+r, int64(0)
			sent, received := map[signature.Channel]int32{}, map[signature.Channel]int32{}
			last := int32(0)
			t.Sig.Walk(rank, func(n *template.Node, c *signature.Call) {
				message := int32(unset)
				switch class := schema.Calls[t.Sig.Symbols[n.Symbol].CallID].Class; {
				case class == schema.ClassSend && c.Send.HasPeer():
					message = number(sent, c.SendChannel(rank))
				case class == schema.ClassRecv && c.Recv.HasPeer():
					message = number(received, c.RecvChannel(rank))
				}
				p := in[n.ID]
				if p.nest != 0 {
					calls[p.nest][rank] = append(calls[p.nest][rank],
						waveCall{seq, p.place, last != p.nest, message})
					total++
				}
				last = p.nest
				seq++
			})
		}
		if total > maxWaveCalls {
			return nil
		}
	}
	return calls
}

// cut numbers the iterations of a run's calls, and appends to cuts, by rank, the seqs of calls before which they end
// without a sign in the template. It returns false if that is impossible.
func (w waves) cut(cuts [][]int64) bool {
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
		if !x.cutExecution(cuts) {
			return false
		}
	}
	return true
}

// cutExecution does the same for one execution of the nest by each rank.
func (w waves) cutExecution(cuts [][]int64) bool {
	iterations, ok := w.numberMessages()
	if !ok {
		return false
	}
	end := iterations[w[0][len(w[0])-1].message]
	for r, calls := range w {
		before := int32(0)
		for i, c := range calls {
			now := iterations[c.message]
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

// numberMessages returns the lowest iteration that each message can have. It fails if a rank has no calls, a call has
// no message, a message has only one side, or a message would have to come after itself.
func (w waves) numberMessages() (iterations map[int32]int32, ok bool) {
	iterations, sides := map[int32]int32{}, map[int32]int{}
	most := int32(0)
	for _, calls := range w {
		if len(calls) == 0 {
			return nil, false
		}
		for _, c := range calls {
			if c.message == unset {
				return nil, false
			}
			sides[c.message]++
			iterations[c.message] = 0
		}
		most = max(most, int32(len(calls)))
	}
	for _, n := range sides {
		if n != 2 {
			return nil, false
		}
	}
	for changed := true; changed; {
		changed = false
		for _, calls := range w {
			now := int32(0)
			for i, c := range calls {
				if i > 0 && c.place <= calls[i-1].place {
					now++
				}
				if now = max(now, iterations[c.message]); now > most {
					return nil, false
				}
				if now > iterations[c.message] {
					iterations[c.message], changed = now, true
				}
			}
		}
	}
	return iterations, true
}
