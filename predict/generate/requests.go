package generate

import (
	"slices"

	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/model/law"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/predict/slots"
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
func drains(g *generator, n *template.Node) *model.Site {
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
	x := drains(w.g, n)
	if x == nil {
		return iterations, false
	}
	open := w.countOpen(x.Completes)
	if mayBeMore(w.g, x) {
		return law.Estimate{Value: open, High: law.Unbounded}, true
	}
	return law.Estimate{Value: open, Low: open, High: open, Exact: true}, true
}

// mayBeMore reports whether it is not certain how many requests the calls of a site find: the number of calls that make
// them, or of other calls that complete them, follows from a loop whose number of iterations is uncertain.
func mayBeMore(g *generator, x *model.Site) bool {
	return len(g.result.Loops) > 0 && slices.ContainsFunc(g.model.Sites, func(y *model.Site) bool {
		return y != x && (x.Completes.Events[y.Event.ID] || y.Completes != nil && y.Completes.SharesWith(x.Completes)) &&
			isUncertainBeside(g, y.Event, x.Event)
	})
}

// isUncertainBeside reports whether a loop around an event, and not around another one, has an uncertain number of
// iterations.
func isUncertainBeside(g *generator, event, other *template.Node) bool {
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

// followsRequests reports whether the rank makes a call that follows from its requests: one is open, and no law of who
// makes the call says otherwise. It notes where that law has the call on a rank without requests; that requests stay
// open where the law does not have it, doubtCompletions notes.
func (w *rankWriter) followsRequests(x *model.Site, index []int32) bool {
	if w.countOpen(x.Completes) == 0 {
		if hasRank(w.g.peers.callersIfKnown(x, index), w.rank) {
			w.g.lacksRequests[x.Event.ID] = true
		}
		return false
	}
	if mayBeLeft(w.g, x) {
		return false
	}
	callers := w.g.peers.peersOf(x, index).in
	return callers == nil || hasRank(callers, w.rank)
}

// loopsBeginAsSeen reports whether all loops around a call that follows from its requests begin with the same iteration
// in all runs, as other calls in them show. Then the call may be made in earlier iterations than in the runs only as
// there are requests earlier, which does not tell where the loops begin.
func loopsBeginAsSeen(g *generator, x *model.Site) bool {
	for _, c := range x.Calls.Components {
		if drains(g, c.Loop) != x && !slices.ContainsFunc(g.model.Sites, func(y *model.Site) bool {
			return !y.FollowsRequests() && y.Event.IsIn(c.Loop) && beginsFirst(y, c.Loop, len(g.model.Training))
		}) {
			return false
		}
	}
	return true
}

// beginsFirst reports whether a site has calls in the first iteration of a loop in each of so many runs.
func beginsFirst(y *model.Site, loop *template.Node, runs int) bool {
	component := slices.IndexFunc(y.Calls.Components, func(c slots.Component) bool { return c.Loop == loop && !c.Within })
	if component < 0 {
		return false
	}
	isSeen := make([]bool, runs)
	for _, s := range y.Calls.Slots {
		for i, calls := range s.Runs {
			isSeen[i] = isSeen[i] || s.Place[component] == 0 &&
				slices.ContainsFunc(calls, func(c *signature.Call) bool { return c != nil })
		}
	}
	return !slices.Contains(isSeen, false)
}

// doubtRequests notes calls that follow from their requests, if it is not certain how many these are and the number of
// calls depends on it. That of loops which drained knows has an interval instead. It also notes calls that a law has on
// ranks without requests, though who makes these is known: the one law or the other is wrong.
func doubtRequests(g *generator) {
	for _, x := range g.model.Sites {
		if g.lacksRequests[x.Event.ID] && !lacksMakers(g, x) && !mayBeLeft(g, x) {
			why := "the law of who makes it has ranks without requests to complete"
			g.unknown.addDoubt(x.Event.ID, g.model.NodeName(x.Event), why)
			for event := range x.Completes.Events {
				g.unknown.addDoubt(event, g.model.NodeName(g.model.SiteOf(event).Event),
					"the law of who completes its requests has other ranks than make it")
			}
		}
		if x.FollowsRequests() && drains(g, x.Event.Parent) != x && mayBeMore(g, x) &&
			(x.Completes.Choice != model.CompleteAll || mayBeNone(g, x)) {
			g.unknown.addDoubt(x.Event.ID, g.model.NodeName(x.Event),
				"it completes requests of a loop whose number of iterations is uncertain")
		}
	}
}

// lacksMakers reports whether it is not known who makes the requests that a site completes.
func lacksMakers(g *generator, x *model.Site) bool {
	for event := range x.Completes.Events {
		if g.unknown.lacksCalls(event) {
			return true
		}
	}
	return false
}

// mayBeNone reports whether there may be no requests for a call, as a loop around those that make them may have no
// iteration or other calls may complete them.
func mayBeNone(g *generator, x *model.Site) bool {
	return slices.ContainsFunc(g.model.Sites, func(y *model.Site) bool {
		switch {
		case y == x || !isUncertainBeside(g, y.Event, x.Event):
			return false
		case y.Completes != nil && y.Completes.SharesWith(x.Completes):
			return true
		}
		return x.Completes.Events[y.Event.ID] && slices.ContainsFunc(g.result.Loops, func(l UncertainLoop) bool {
			return l.Low <= 0 && y.Event.IsIn(g.model.Joint.Sig.Nodes()[l.Node])
		})
	})
}

// addLeftRequests adds the gaps of calls whose number follows from the requests that are open, if other calls complete
// some of these and are not known.
func addLeftRequests(g *generator) {
	for changed := true; changed; {
		changed = false
		for _, x := range g.model.Sites {
			if (x.FollowsRequests() || drains(g, x.Event.Parent) == x) && !g.unknown.lacksCalls(x.Event.ID) && mayBeLeft(g, x) {
				changed = true
			}
		}
	}
}

// mayBeLeft reports whether the requests that are left for a site are not known, as other calls complete some of them
// and are not known. It adds the gap that follows.
func mayBeLeft(g *generator, x *model.Site) bool {
	for _, y := range sharersOf(g, x) {
		if g.unknown.lacksCalls(y.Event.ID) {
			g.unknown.follow(x.Event.ID, "it completes requests that "+g.model.NodeName(y.Event)+" leaves")
			return true
		}
	}
	return false
}

// sharersOf returns the other sites that complete requests of the same calls as a site.
func sharersOf(g *generator, x *model.Site) []*model.Site {
	all, known := g.sharers[x.Event.ID]
	if !known {
		for _, y := range g.model.Sites {
			if y != x && y.Completes != nil && y.Completes.SharesWith(x.Completes) {
				all = append(all, y)
			}
		}
		g.sharers[x.Event.ID] = all
	}
	return all
}
