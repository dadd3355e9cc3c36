package model

import (
	"slices"

	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/predict/slots"
)

// markFirstIterations marks ranges of laws that fall as the number of ranks grows, of loops that begin with iteration 0
// in all runs: the range ends there. Without another call that begins with iteration 0, as in a loop over levels of
// which larger runs have finer ones, an iteration below may be one that no run shows.
func markFirstIterations(m *Model) {
	falls := func(r *pattern.Range) bool {
		return slices.ContainsFunc(r.Low, func(b pattern.Bound) bool { return b.Of == pattern.FromFall })
	}
	for i := range m.Pattern.Laws {
		l := &m.Pattern.Laws[i]
		site := slices.IndexFunc(m.Sites, func(x *Site) bool { return slices.Contains([]string{x.In, x.To, x.From}, l.Site) })
		if site < 0 {
			continue
		}
		components := m.Sites[site].Calls.Components
		for c := range l.Ranges {
			if r := &l.Ranges[c]; c < len(components) && falls(r) {
				loop := components[c].Loop
				r.FromFirst = slices.ContainsFunc(m.Sites, func(x *Site) bool { return x.beginsWith(loop) })
			}
		}
	}
}

// beginsWith reports whether calls of a site are made in the first iteration of a loop in all runs.
func (x *Site) beginsWith(loop *template.Node) bool {
	for c, component := range x.Calls.Components {
		if component.Loop != loop || component.Period != 0 {
			continue
		}
		var first []bool // by run
		for _, s := range x.Calls.Slots {
			if first == nil {
				first = make([]bool, len(s.Runs))
			}
			for run, calls := range s.Runs {
				first[run] = first[run] || s.Place[c] == 0 && slices.ContainsFunc(calls, func(c *signature.Call) bool { return c != nil })
			}
		}
		return first != nil && !slices.Contains(first, false)
	}
	return false
}

// ChangesPeers reports whether a rank of the largest run has different peers in the iterations of the loop around it.
func (x *Site) ChangesPeers() bool {
	component := slices.IndexFunc(x.Calls.Components, func(c slots.Component) bool { return c.Loop == x.Event.Parent })
	if component < 0 {
		return false
	}
	type execution struct {
		place slots.Place // with 0 for the loop
		rank  int32
	}
	first := map[execution]int32{} // peer
	for _, s := range x.Calls.Slots {
		at := execution{place: s.Place}
		at.place[component] = 0
		for r, c := range s.Runs[len(s.Runs)-1] {
			if at.rank = int32(r); c == nil {
				continue
			}
			for _, side := range []signature.Side{c.Send, c.Recv} {
				if !side.HasPeer() {
					continue
				}
				if peer, known := first[at]; known && peer != side.PeerOf(at.rank) {
					return true
				}
				first[at] = side.PeerOf(at.rank)
				break
			}
		}
	}
	return false
}
