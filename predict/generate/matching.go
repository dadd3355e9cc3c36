package generate

import (
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
)

// What is sent is received. Where the laws of sends and those of receives, each without doubt by itself, give different
// messages, one of them is wrong, and it is not known which.

// route is a pair of ranks between which a group of sites has messages.
type route struct{ group, from, to int32 }

// visitSides calls visit with each side of a message of groups in a signature, in the order of calls; its ranks are those
// from first on.
func visitSides(a *model.Exchanges, s *signature.Signature, first, ranks int32, groups map[int32]bool,
	visit func(k route, n *template.Node, side signature.Side, sends bool)) {
	if len(groups) == 0 {
		return
	}
	for r := range ranks {
		s.Walk(first+r, func(n *template.Node, c *signature.Call) {
			g, some := a.GroupOf(n.ID)
			if !some || !groups[g] {
				return
			}
			if c.Send.HasPeer() {
				visit(route{g, r, c.Send.PeerOf(r)}, n, c.Send, true)
			}
			if c.Recv.HasPeer() {
				visit(route{g, c.Recv.PeerOf(r), r}, n, c.Recv, false)
			}
		})
	}
}

// countMessages returns the messages that ranks send less those that they receive.
func countMessages(a *model.Exchanges, s *signature.Signature, first, ranks int32, groups map[int32]bool) map[route]int {
	routes := map[route]int{}
	visitSides(a, s, first, ranks, groups, func(k route, _ *template.Node, _ signature.Side, sends bool) {
		if sends {
			routes[k]++
		} else {
			routes[k]--
		}
	})
	return routes
}

// unmatched returns the groups, of those given, that have messages with one side only.
func unmatched(routes map[route]int) map[int32]bool {
	groups := map[int32]bool{}
	for k, n := range routes {
		if n != 0 {
			groups[k.group] = true
		}
	}
	return groups
}

// knownGroups returns the groups of sites of whose calls all seems to be known.
func (g *generator) knownGroups(a *model.Exchanges) map[int32]bool {
	groups := map[int32]bool{}
	for _, x := range g.model.Sites {
		if group, some := a.GroupOf(x.Event.ID); some {
			groups[group] = true
		}
	}
	for _, x := range g.model.Sites {
		event := x.Event.ID
		if gap := g.unknown.gaps[event]; gap != nil && gap.Calls != "" || g.isInUncertainLoop(event) {
			group, _ := a.GroupOf(event)
			delete(groups, group)
		}
	}
	return groups
}

// checkMatches makes unknown the calls of groups of sites that send other messages than they receive, though all that
// they do seems to be known and they do not in the runs.
func (g *generator) checkMatches() {
	a := g.model.Exchanges()
	wrong := unmatched(countMessages(a, g.sig, 0, g.ranks, g.knownGroups(a)))
	if len(wrong) == 0 {
		return
	}
	t := g.model.Joint
	for i, run := range t.Runs {
		for group := range unmatched(countMessages(a, t.Sig, t.First[i], run.Ranks, wrong)) {
			delete(wrong, group)
		}
	}
	for _, x := range g.model.Sites {
		if group, some := a.GroupOf(x.Event.ID); some && wrong[group] {
			g.unknown.addCalls(x.Event.ID, g.model.NodeName(x.Event),
				"the laws of its sends and of their receives give different messages there")
		}
	}
}

// isInUncertainLoop reports whether an event is in a loop whose number of iterations is not known for certain.
func (g *generator) isInUncertainLoop(event int32) bool {
	for n := g.model.SiteOf(event).Event; n != nil; n = n.Parent {
		for _, l := range g.result.Loops {
			if l.Node == n.ID {
				return true
			}
		}
	}
	return false
}
