package join

import (
	"maps"
	"slices"

	"github.com/commq/commq/predict/signature/sign"
	"github.com/commq/commq/predict/signature/template"
)

// A loop whose iterations end in one of two ways looks like a loop in a loop: the calls that only some iterations make
// at their end seem to end an outer iteration. For example, along axes with more than two ranks a program sends to a
// second neighbour. Ranks and runs then differ in the numbers of outer and inner iterations, but not in the number of
// all inner ones.

// flattenEven replaces each such nest of two loops by a single loop. It returns, by joint rank, where iterations end;
// nil if there is no such nest.
func flattenEven(t *Training) [][]sign.Cut {
	loops := map[int32]innerLoop{}
	for _, n := range t.Sig.Nodes() {
		if inner := onlyInner(n); inner != nil {
			loops[inner.ID] = make(innerLoop, len(t.Sig.Roots))
		}
	}
	if !collectInner(t, loops) {
		return nil
	}
	var cuts [][]sign.Cut
	for _, id := range slices.Sorted(maps.Keys(loops)) {
		if !loops[id].isEven(t) {
			continue
		}
		if cuts == nil {
			cuts = make([][]sign.Cut, len(t.Sig.Roots))
		}
		inner := t.Sig.Nodes()[id]
		outer := inner.Parent
		t.Reshaped[outer] = true
		for r, executions := range loops[id] {
			for _, x := range executions {
				for _, seq := range x.starts[1:] {
					cuts[r] = append(cuts[r], sign.Cut{Seq: seq, Loop: outer})
				}
			}
		}
		i := slices.Index(outer.Children, inner)
		outer.Children = slices.Concat(outer.Children[:i], inner.Children, outer.Children[i+1:])
	}
	sortCuts(cuts)
	return cuts
}

// onlyInner returns the only loop in a loop, if that contains only events and is followed by events; otherwise nil.
func onlyInner(n *template.Node) *template.Node {
	isLoop := func(c *template.Node) bool { return c.Loop }
	if !n.Loop || n.ID == 0 || n.RecursionLevels {
		return nil
	}
	i := slices.IndexFunc(n.Children, isLoop)
	if i < 0 || i == len(n.Children)-1 || slices.ContainsFunc(n.Children[i+1:], isLoop) ||
		slices.ContainsFunc(n.Children[i].Children, isLoop) || n.Children[i].RecursionLevels {
		return nil
	}
	return n.Children[i]
}

// isEven reports whether all executions of the outer loop in a run have as many inner iterations, but not as many
// executions of the inner loop in all of them, or in those of other runs that have as many inner iterations.
func (m innerLoop) isEven(t *Training) bool {
	shapes, uneven := map[int64]int64{}, false // executions of the inner loop, by inner iterations
	for i, run := range t.Runs {
		total := int64(0)
		for _, executions := range m[t.First[i] : t.First[i]+run.Ranks] {
			for from := 0; from < len(executions); {
				iterations, to := int64(0), from
				for ; to < len(executions) && executions[to].outer == executions[from].outer; to++ {
					if len(executions[to].starts) == 0 {
						return false
					}
					iterations += int64(len(executions[to].starts))
				}
				if total != 0 && iterations != total {
					return false
				}
				total = iterations
				n, known := shapes[total]
				uneven = uneven || known && n != int64(to-from)
				shapes[total] = int64(to - from)
				from = to
			}
		}
	}
	return uneven
}
