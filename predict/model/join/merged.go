package join

import (
	"maps"
	"slices"

	"github.com/commq/commq/predict/signature/sign"
	"github.com/commq/commq/predict/signature/template"
)

// A rank that has nothing to do between two executions of an inner loop seems to execute it once, for longer. The ranks
// that do something there show where one execution ends. For example, in a pipeline whose last rank sends a result to
// the first one after each sweep, the ranks in the middle seem to be in one sweep all the time.

// splitMerged ends executions of loops where those of other ranks end, if then all ranks of a run have as many
// iterations in each execution. It returns, by joint rank, where they end; nil if there is no such loop.
func splitMerged(t *Training) (cuts [][]sign.Cut) {
	loops := map[int32]innerLoop{}
	for id := range unevenLoops(t) {
		if n := t.Sig.Nodes()[id]; id != 0 && n.Parent.ID != 0 && !n.RecursionLevels && !n.Parent.RecursionLevels {
			loops[id] = make(innerLoop, len(t.Sig.Roots))
		}
	}
	if !collectInner(t, loops) {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(loops)) {
		added := loops[id].split(t, t.Sig.Nodes()[id].Parent)
		if added == nil {
			continue
		}
		if cuts == nil {
			cuts = make([][]sign.Cut, len(t.Sig.Roots))
		}
		t.Reshaped[t.Sig.Nodes()[id].Parent] = true
		for r := range added {
			cuts[r] = append(cuts[r], added[r]...)
		}
	}
	sortCuts(cuts)
	return cuts
}

// split returns the cuts of a loop in an outer one; nil if there are none, a run does not allow them, or no rank of a
// run executes the loop twice in one execution of the outer one: that run does not show how often its ranks do.
func (m innerLoop) split(t *Training, outer *template.Node) [][]sign.Cut {
	cuts, any := make([][]sign.Cut, len(m)), false
	for i, run := range t.Runs {
		ranks := m[t.First[i] : t.First[i]+run.Ranks]
		finest := slices.MaxFunc(ranks, func(a, b []innerExecution) int { return len(a) - len(b) })
		if len(finest) > 0 && !repeatsWithin(finest) {
			return nil
		}
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

// repeatsWithin reports whether the loop is executed twice in one execution of the outer one.
func repeatsWithin(executions []innerExecution) bool {
	for i := 1; i < len(executions); i++ {
		if executions[i].outer == executions[i-1].outer {
			return true
		}
	}
	return false
}

// endsWithin returns the calls before which executions end if they are to be as long as those of another rank. ok is
// false if they cannot be. A rank that does not execute the loop has none.
func endsWithin(executions, finest []innerExecution) (ends []int64, ok bool) {
	if len(executions) == 0 {
		return nil, true
	}
	next := 0
	for _, x := range executions {
		for at := 0; at < len(x.starts); next++ {
			if at > 0 {
				ends = append(ends, x.starts[at])
			}
			if next == len(finest) || at+len(finest[next].starts) > len(x.starts) {
				return nil, false
			}
			at += len(finest[next].starts)
		}
	}
	return ends, next == len(finest)
}
