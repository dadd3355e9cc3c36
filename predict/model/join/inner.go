package join

import (
	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/predict/signature/template"
)

// innerLoop has, by joint rank, the executions of a loop.
type innerLoop [][]innerExecution

// innerExecution is an execution of a loop: the number, on the rank, of the execution of the loop around it, and the
// position on the rank of the first call of each iteration.
type innerExecution struct {
	outer  int32
	starts []int64
}

// collectInner fills in the executions of loops, by node. It returns false if there are no loops or too many calls.
func collectInner(t *Training, loops map[int32]innerLoop) bool {
	if len(loops) == 0 {
		return false
	}
	w := innerWalker{t: t, loops: loops}
	for r := range t.Sig.Roots {
		w.rank, w.seq, w.executions = r, 0, make([]int32, len(t.Sig.Nodes()))
		if !w.walk(t.Sig.Nodes()[0], t.Sig.Roots[r]) {
			return false
		}
	}
	return true
}

// innerWalker collects executions of loops.
type innerWalker struct {
	t          *Training
	loops      map[int32]innerLoop
	rank       int
	seq        int64   // of the next call
	executions []int32 // by node, so far on the rank
	total      int
}

// walk goes through what a rank did at a node. It returns false if there are too many calls.
func (w *innerWalker) walk(n *template.Node, value int32) bool {
	if !n.Loop {
		w.seq++
		w.total++
		return w.total <= maxRepeatCalls
	}
	w.executions[n.ID]++
	var x innerExecution
	v, loop := &w.t.Sig.Values[n.ID], w.loops[n.ID]
	ok := fold.Each(v.Loops[value], func(body int32) bool {
		if loop != nil {
			x.starts = append(x.starts, w.seq)
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
		x.outer = w.executions[n.Parent.ID]
		loop[w.rank] = append(loop[w.rank], x)
	}
	return ok
}
