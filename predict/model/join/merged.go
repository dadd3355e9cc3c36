package join

import (
	"maps"
	"slices"

	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/predict/signature/sign"
	"github.com/commq/commq/predict/signature/template"
)

// A rank that has nothing to do between two executions of an inner loop seems to execute it once, for longer. The ranks
// that do something there show where one execution ends. For example, in a pipeline whose last rank sends a result to
// the first one after each sweep, the ranks in the middle seem to be in one sweep all the time.

// mergedLoop has what each joint rank does in a loop whose executions some ranks seem to merge.
type mergedLoop [][]mergedExecution

// mergedExecution is an execution of a loop: the position on the rank of the first call of each iteration.
type mergedExecution []int64

// splitMerged ends executions of loops where those of other ranks end, if then all ranks of a run have as many
// iterations in each execution. It returns, by joint rank, where they end; nil if there is no such loop.
func splitMerged(t *Training) (cuts [][]sign.Cut) {
	loops := map[int32]mergedLoop{}
	for id := range unevenLoops(t) {
		if n := t.Sig.Nodes()[id]; id != 0 && n.Parent.ID != 0 && !n.RecursionLevels && !n.Parent.RecursionLevels {
			loops[id] = make(mergedLoop, len(t.Sig.Roots))
		}
	}
	if len(loops) == 0 {
		return nil
	}
	w := mergedWalker{t: t, loops: loops}
	for r := range t.Sig.Roots {
		w.rank, w.seq = r, 0
		if !w.walk(t.Sig.Nodes()[0], t.Sig.Roots[r]) {
			return nil
		}
	}
	for _, id := range slices.Sorted(maps.Keys(loops)) {
		added := loops[id].split(t, t.Sig.Nodes()[id].Parent)
		if added == nil {
			continue
		}
		if cuts == nil {
			cuts = make([][]sign.Cut, len(t.Sig.Roots))
		}
		for r := range added {
			cuts[r] = append(cuts[r], added[r]...)
		}
	}
	sortCuts(cuts)
	return cuts
}

// split returns the cuts of a loop in an outer one; nil if there are none, or a run does not allow them.
func (m mergedLoop) split(t *Training, outer *template.Node) [][]sign.Cut {
	cuts, any := make([][]sign.Cut, len(m)), false
	for i, run := range t.Runs {
		ranks := m[t.First[i] : t.First[i]+run.Ranks]
		finest := slices.MaxFunc(ranks, func(a, b []mergedExecution) int { return len(a) - len(b) })
		for r, executions := range ranks {
			ends, ok := endsWithin(executions, finest)
			if !ok {
				return nil
			}
			for _, seq := range ends {
				cuts[t.First[i]+int32(r)] = append(cuts[t.First[i]+int32(r)], sign.Cut{Seq: seq, Loop: outer})
				any = true
			}
		}
	}
	if !any {
		return nil
	}
	return cuts
}

// endsWithin returns the calls before which executions end if they are to be as long as those of another rank. ok is
// false if they cannot be. A rank that does not execute the loop has none.
func endsWithin(executions, finest []mergedExecution) (ends []int64, ok bool) {
	if len(executions) == 0 {
		return nil, true
	}
	next := 0
	for _, x := range executions {
		for at := 0; at < len(x); next++ {
			if at > 0 {
				ends = append(ends, x[at])
			}
			if next == len(finest) || at+len(finest[next]) > len(x) {
				return nil, false
			}
			at += len(finest[next])
		}
	}
	return ends, next == len(finest)
}

// mergedWalker collects executions of loops.
type mergedWalker struct {
	t     *Training
	loops map[int32]mergedLoop
	rank  int
	seq   int64 // of the next call
	total int
}

// walk goes through what a rank did at a node. It returns false if there are too many calls.
func (w *mergedWalker) walk(n *template.Node, value int32) bool {
	if !n.Loop {
		w.seq++
		w.total++
		return w.total <= maxRepeatCalls
	}
	var x mergedExecution
	v, loop := &w.t.Sig.Values[n.ID], w.loops[n.ID]
	ok := fold.Each(v.Loops[value], func(body int32) bool {
		if loop != nil {
			x = append(x, w.seq)
		}
		b := v.Bodies[body]
		for i := 0; i < len(b); i += 2 {
			if !w.walk(n.Children[b[i]], b[i+1]) {
				return false
			}
		}
		return true
	})
	if loop != nil {
		loop[w.rank] = append(loop[w.rank], x)
	}
	return ok
}
