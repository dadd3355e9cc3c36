package predict

import (
	"fmt"
	"slices"

	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/schema"
)

// A persistent request is made by one call (MPI_Send_init), and started by others (MPI_Start, MPI_Startall), whose rows do what it says and refer to the
// call that made it.

// initRule is which of the calls that made persistent requests a start refers to.
type initRule struct {
	of map[int32]bool // events that made them; nil: the site starts none
	// latest takes of each event the last call, else all so far. The starts of a site go round them in the order in which they were made.
	latest bool
	about  bool // they are not started, but freed or the like
}

// class is the class of the row of a call, empty where it is that of the MPI function, and which sides the row has. A call that starts a persistent request
// sends or receives, as that does: where a site has both, who has a destination sends.
func (w *rankWriter) class(x *siteModel, at place, a *askedMaps) (class string, sends, receives bool) {
	if !x.mixed {
		return x.like.Class, true, true
	}
	class = x.classes[at] // of MPI_PROC_NULL
	switch {
	case takesPart(a.to, w.rank):
		class = schema.ClassSend.String()
	case takesPart(a.from, w.rank):
		class = schema.ClassRecv.String()
	}
	return class, class != schema.ClassRecv.String(), class != schema.ClassSend.String()
}

func takesPart(m *pattern.Map, rank int32) bool {
	if m == nil {
		return false
	}
	_, takes := m.Dst(rank)
	return takes
}

// persistent says of a site what its calls do that start persistent requests, or make them: those have a peer each, as what they start.
func (m *Model) persistent(x *siteModel) {
	sends, receives := false, false
	recorder := schema.Calls[m.t.Symbols[x.node.Symbol].call].Recorder
	x.classes = map[place]string{}
	for _, s := range x.slots {
		for _, run := range s.runs {
			for _, c := range run {
				if c == nil {
					continue
				}
				x.classes[s.place] = c.Class
				if c.Recv != nil {
					x.postedAny = c.PostedAny
				}
				sends = sends || c.Class == schema.ClassSend.String() || recorder == "send_init"
				receives = receives || c.Class == schema.ClassRecv.String() || recorder == "recv_init"
			}
		}
	}
	x.mixed = sends && receives
	x.sends, x.receives = x.sends || sends, x.receives || receives
}

// starts finds which calls made the requests that others start.
func (m *Model) starts() {
	makers := map[int32]bool{}
	for _, x := range m.sites {
		for _, c := range m.t.Values[x.node.ID].Events {
			made := c.madeBy()
			if made == nil {
				continue
			}
			if x.inits.of == nil {
				x.inits.of, x.inits.about = map[int32]bool{}, c.About != nil
			}
			x.inits.of[made[0]], makers[made[0]] = true, true
		}
	}
	if len(makers) == 0 {
		return
	}
	m.makers = makers
	wrong := map[int32][2]bool{} // by node: going round all, the latest ones
	for rank := range int32(len(m.t.Roots)) {
		made := make([]int32, len(m.t.nodes))
		follow := m.newStarter()
		m.t.Walk(rank, func(n *Node, c *Call) {
			if x := m.byNode[n.ID]; x.inits.of != nil {
				w, turn := wrong[n.ID], follow.times[n.ID]
				for i := range w {
					follow.times[n.ID] = turn
					p, some := follow.next(n.ID, &initRule{of: x.inits.of, latest: i == 1})
					by := c.madeBy()
					w[i] = w[i] || some != (by != nil) || some && p != (post{by[0], made[by[0]] - 1 - by[1]})
				}
				wrong[n.ID] = w
			}
			follow.note(n, made[n.ID])
			made[n.ID]++
		})
	}
	for _, x := range m.sites {
		w, some := wrong[x.node.ID]
		if x.inits.latest = w[0] && !w[1]; some && w[0] && w[1] {
			m.Warnings = append(m.Warnings, fmt.Sprintf("%s starts persistent requests in an order that has no rule; they are taken in turn", m.t.name(x.node)))
		}
	}
}

// madeBy is the call that made the persistent request which the call starts or is about; nil where there is none.
func (c *Call) madeBy() *Completion {
	if c.About == nil && c.Class != "" {
		return c.Init
	}
	return c.About
}

// init is the call that made the request which a site starts now; nil where it starts none.
func (w *rankWriter) init(x *siteModel) *Completion {
	if x.inits.of == nil {
		return nil
	}
	p, some := w.started.next(x.node.ID, &x.inits)
	if !some {
		return nil
	}
	return &Completion{p.node, w.p.made[p.node] - 1 - p.number, 1}
}

// starter follows the persistent requests of a rank.
type starter struct {
	made  []post          // by calls that make them, in their order
	times map[int32]int64 // starts by a site so far, by node
	kinds map[int32]bool  // of nodes that make them
}

func (m *Model) newStarter() starter {
	return starter{times: map[int32]int64{}, kinds: m.makers}
}

// note notes a call: the number-th of an event.
func (s *starter) note(n *Node, number int32) {
	if s.kinds[n.ID] {
		s.made = append(s.made, post{n.ID, number})
	}
}

// next is which call made the request that a site starts next.
func (s *starter) next(node int32, r *initRule) (made post, some bool) {
	var mine []post
	for _, p := range s.made {
		if !r.of[p.node] {
			continue
		}
		if r.latest {
			mine = slices.DeleteFunc(mine, func(q post) bool { return q.node == p.node })
		}
		mine = append(mine, p)
	}
	if len(mine) == 0 {
		return post{}, false
	}
	made = mine[s.times[node]%int64(len(mine))]
	s.times[node]++
	return made, true
}
