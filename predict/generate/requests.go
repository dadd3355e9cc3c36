package generate

import (
	"slices"

	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/model/law"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
)

// countOpen returns how many requests a rule has to complete.
func (w *rankWriter) countOpen(r *model.CompletionRule) (open int64) {
	for _, p := range w.open {
		if r.Events[p.Node] {
			open++
		}
	}
	return open
}

// drains returns the site of a loop that completes one request after the other until none is open; nil for other loops.
func (g *generator) drains(n *template.Node) *model.Site {
	if len(n.Children) != 1 || n.Children[0].Loop {
		return nil
	}
	x := g.model.SiteOf(n.Children[0].ID)
	if r := x.Completes; r == nil || !r.Always || !r.Drains || !r.Single || r.Choice == model.CompleteAll {
		return nil
	}
	return x
}

// drained returns how many iterations a loop has that completes one request after the other until none is open; false
// for other loops.
func (w *rankWriter) drained(n *template.Node) (iterations law.Estimate, is bool) {
	x := w.g.drains(n)
	if x == nil {
		return iterations, false
	}
	open := w.countOpen(x.Completes)
	if w.g.mayBeMore(x) {
		return law.Estimate{Value: open, High: law.Unbounded}, true
	}
	return law.Estimate{Value: open, Low: open, High: open, Exact: true}, true
}

// mayBeMore reports whether it is not certain how many requests the calls of a site find: the number of calls that make
// them, or of other calls that complete them, follows from a loop whose number of iterations is uncertain.
func (g *generator) mayBeMore(x *model.Site) bool {
	return len(g.result.Loops) > 0 && slices.ContainsFunc(g.model.Sites, func(y *model.Site) bool {
		return y != x && (x.Completes.Events[y.Event.ID] || y.Completes != nil && y.Completes.SharesWith(x.Completes)) &&
			g.isUncertainBeside(y.Event, x.Event)
	})
}

// isUncertainBeside reports whether a loop around an event, and not around another one, has an uncertain number of
// iterations.
func (g *generator) isUncertainBeside(event, other *template.Node) bool {
	for n := event.Parent; n != nil; n = n.Parent {
		if !other.IsIn(n) && slices.ContainsFunc(g.result.Loops, func(l UncertainLoop) bool { return l.Node == n.ID }) {
			return true
		}
	}
	return false
}

// complete completes open requests by the site's rule, and refers to the calls that made them.
func (w *rankWriter) complete(x *model.Site) (refs []signature.Backref) {
	if x.Completes == nil {
		return nil
	}
	var chosen []int
	for i, p := range w.open {
		if x.Completes.Events[p.Node] {
			chosen = append(chosen, i)
		}
	}
	switch {
	case len(chosen) == 0:
		return nil
	case x.Completes.Choice == model.CompleteLatest:
		chosen = chosen[len(chosen)-1:]
	case x.Completes.Choice != model.CompleteAll:
		chosen = chosen[:1]
	}
	for _, i := range chosen {
		refs = w.path.AppendBackref(refs, w.open[i])
	}
	for _, i := range slices.Backward(chosen) {
		w.open = slices.Delete(w.open, i, i+1)
	}
	return refs
}

// doubtCompletions notes calls that complete fewer requests than are made, if those of the runs leave none.
func doubtCompletions(w *rankWriter) {
	for _, x := range w.g.model.Sites {
		if x.Completes != nil && x.Completes.LeavesNone && w.countOpen(x.Completes) > 0 {
			w.g.unknown.addDoubt(x.Event.ID, w.g.model.NodeName(x.Event),
				"it is not known how often it is made: requests would stay open, and the runs complete all")
		}
	}
}
