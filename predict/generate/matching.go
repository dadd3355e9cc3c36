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

// sideOfMessage is one side of equal messages of a rank, times of them: the call that sends or receives them.
type sideOfMessage struct {
	route
	event *template.Node
	side  signature.Side
	sends bool
	times int64
}

// sides are the messages of groups of sites in a signature; its ranks are those from first on.
type sides struct {
	exchanges    *model.Exchanges
	sig          *signature.Signature
	first, ranks int32
	groups       map[int32]bool
}

// visit calls f with each side of a message, equal ones together.
func (s *sides) visit(f func(x *sideOfMessage)) {
	for r := range s.ranksWithSides() {
		signature.WalkTimes(s.sig, s.first+r, func(n *template.Node, c *signature.Call, times int64) { s.visitCall(r, n, c, times, f) })
	}
}

// ranksWithSides returns the number of ranks, 0 if there are no groups.
func (s *sides) ranksWithSides() int32 {
	if len(s.groups) == 0 {
		return 0
	}
	return s.ranks
}

// visitCall calls f with the sides of messages that a call of a rank has.
func (s *sides) visitCall(r int32, n *template.Node, c *signature.Call, times int64, f func(x *sideOfMessage)) {
	g, some := s.exchanges.GroupOf(n.ID)
	if !some || !s.groups[g] {
		return
	}
	if c.Send.HasPeer() {
		f(&sideOfMessage{route{g, r, c.Send.PeerOf(r)}, n, c.Send, true, times})
	}
	if c.Recv.HasPeer() {
		f(&sideOfMessage{route{g, c.Recv.PeerOf(r), r}, n, c.Recv, false, times})
	}
}

// countMessages returns the messages that ranks send less those that they receive.
func (s *sides) countMessages() map[route]int64 {
	routes := map[route]int64{}
	s.visit(func(x *sideOfMessage) {
		if x.sends {
			routes[x.route] += x.times
		} else {
			routes[x.route] -= x.times
		}
	})
	return routes
}

// unmatched returns the groups, of those given, that have messages with one side only.
func unmatched(routes map[route]int64) map[int32]bool {
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
	return groupsWithout(g.model, a, func(event int32) bool {
		return g.unknown.lacksCalls(event) || g.isInUncertainLoop(event)
	})
}

// groupsWithout returns the groups that have none of the sites for whose events without returns true.
func groupsWithout(m *model.Model, a *model.Exchanges, without func(event int32) bool) map[int32]bool {
	groups := map[int32]bool{}
	for _, x := range m.Sites {
		if group, some := a.GroupOf(x.Event.ID); some {
			groups[group] = true
		}
	}
	for _, x := range m.Sites {
		if without(x.Event.ID) {
			group, _ := a.GroupOf(x.Event.ID)
			delete(groups, group)
		}
	}
	return groups
}

// checkMatches makes unknown the calls of groups of sites that send other messages than they receive, though all that
// they do seems to be known and they do not in the runs. Pairs of sites are compared too: both may be known where a
// third one of their group is not.
func (g *generator) checkMatches() {
	all := g.model.Exchanges()
	checkGroups(g, all)
	checkGroups(g, all.Pairs())
}

// checkGroups compares, group by group, what sites send with what they receive.
func checkGroups(g *generator, a *model.Exchanges) {
	here := sides{a, g.sig, 0, g.ranks, g.knownGroups(a)}
	wrong := unmatched(here.countMessages())
	if len(wrong) == 0 {
		return
	}
	t := g.model.Joint
	for i, run := range t.Runs {
		there := sides{a, t.Sig, t.First[i], run.Ranks, wrong}
		for group := range unmatched(there.countMessages()) {
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
