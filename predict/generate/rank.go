package generate

import (
	"fmt"
	"math"
	"slices"

	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/model/law"
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/sign"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/predict/slots"
)

// maxRankCalls is the largest number of calls of a rank.
const maxRankCalls = 1 << 28

// maxDifferent is the largest number of iterations, of all loops whose iterations differ, that a rank goes through.
const maxDifferent = 1 << 18

// rankWriter records what one rank does.
type rankWriter struct {
	g         *generator
	rank      int32
	path      *sign.Path
	iteration map[int32]int32      // of the loops whose iterations differ that the rank is in, by node
	open      []signature.Position // calls whose requests are not completed, in order
	requests  *model.RequestTracker
	templates map[callAt]*callTemplate
	calls     int64
	// iterations counts those of loops whose iterations differ.
	iterations int64
	err        error
}

// callTemplate is a call that the rank repeats at a place, without the calls that it refers to.
type callTemplate struct {
	call         signature.Call
	value        int32 // of the call without references; unset until it is needed
	makesRequest bool
}

const unset = -1

// generateRank records what a rank does and returns its number of calls.
func (g *generator) generateRank(rank int32) (calls int64, err error) {
	w := &rankWriter{g: g, rank: rank, path: g.recorder.NewPath(), iteration: map[int32]int32{},
		templates: map[callAt]*callTemplate{}, requests: model.NewRequestTracker(g.model.RequestMakers)}
	w.children(g.model.Joint.Sig.Nodes()[0])
	g.recorder.Finish(w.path)
	doubtCompletions(w)
	doubtChanges(w)
	return w.calls, w.err
}

// doubtChanges notes calls in reshaped loops that all ranks of all runs make equally often, and this one another number
// of times: loops may be other ones than the template's. Laws that are accepted in spite of rivals may do so.
func doubtChanges(w *rankWriter) {
	if w.g.peers.takeSimplest {
		return
	}
	for _, x := range w.g.model.Sites {
		gap, n := w.g.unknown.gaps[x.Event.ID], w.g.constant[x.Event.ID]
		if n > 0 && w.path.Made[x.Event.ID] != n && x.IsReshaped(w.g.model) && (gap == nil || gap.Calls == "") {
			w.g.unknown.addDoubt(x.Event.ID, w.g.model.NodeName(x.Event),
				"its loops give another number of calls than all ranks of all runs make")
		}
	}
}

// children records what the rank does in one iteration of a loop.
func (w *rankWriter) children(n *template.Node) {
	for _, c := range n.Children {
		if c.Loop {
			w.loop(c)
		} else if x := w.g.model.SiteOf(c.ID); w.makes(x, w.indexOf(x)) {
			w.call(x)
		}
	}
}

// makes reports whether the rank makes a site's call at a place.
func (w *rankWriter) makes(x *model.Site, index []int32) bool {
	comm := x.CommOf(index)
	switch {
	case x.FollowsRequests():
		return w.followsRequests(x, index)
	case w.g.comms.unknown[comm]:
		return false
	case x.MembersCall && comm == nil: // no run shows that iteration: setComm says so
		return true
	case x.MembersCall:
		return w.g.comms.ids[comm][w.rank] >= 0
	}
	return w.g.peers.participates(x, w.rank, index)
}

// loop records all iterations of a loop.
func (w *rankWriter) loop(n *template.Node) {
	if !w.participatesIn(n) {
		return
	}
	p := law.Point{Ranks: w.g.ranks, Rank: w.rank, PeerRank: pattern.None, Index: w.indexAround(n)}
	times, known := w.g.iterationsOf(n, &p)
	if open, drains := w.drained(n); drains {
		times, known = open, true
	}
	if !known || times.Value < 0 || times.Value == 0 && !times.Exact {
		w.g.unknown.addLoop(n, w.g.model.NodeName(n), "the number of iterations is not known")
		return
	}
	if !times.Exact {
		w.g.noteUncertain(n, times)
	}
	w.g.doubtCalls(n, times)
	if w.g.isUnknown(n) {
		return
	}
	w.path.Enter(w.g.sig.Nodes()[n.ID])
	if w.g.model.Uniform[n.ID] {
		w.equalIterations(n, times.Value)
	} else {
		w.differentIterations(n, times.Value)
	}
	if w.err != nil {
		return
	}
	if !w.path.DropIfEmpty() {
		w.g.recorder.Leave(w.path)
	}
}

// doubtCalls notes the calls in a loop whose iterations differ that its number of iterations does not tell: those that
// are not the same in each iteration if that number is uncertain, those that are if ranks of one run have different
// numbers of iterations, for which there is no law.
func (g *generator) doubtCalls(n *template.Node, times law.Estimate) {
	k := doubtedLoop{n.ID, times.Exact}
	if g.model.Uniform[n.ID] || g.doubted[k] || times.Exact && !g.model.Ragged[n.ID] {
		return
	}
	g.doubted[k] = true
	for _, x := range g.model.Sites {
		switch differs := x.Calls.DiffersAlong(n); {
		case !x.Event.IsIn(n):
		case !times.Exact && (differs || g.variesAlong(x.Event, n)):
			g.unknown.addDoubt(x.Event.ID, g.model.NodeName(x.Event),
				fmt.Sprintf("there may be %s iterations of %s, in which its calls differ",
					RangeText(times.Low, times.High), g.model.NodeName(n)))
		case x.Completes != nil && x.Completes.Always: // it is made as often as there are requests
		case !differs && g.model.Ragged[n.ID]:
			g.unknown.addDoubt(x.Event.ID, g.model.NodeName(x.Event),
				"ranks repeat "+g.model.NodeName(n)+" differently often, and no law tells how often")
		}
	}
}

// variesAlong reports whether a loop around an event, inside another loop, has a number of iterations that depends on
// those of loops around it.
func (g *generator) variesAlong(event, loop *template.Node) bool {
	for n := event.Parent; n != nil && n != loop; n = n.Parent {
		if g.model.Iterations[n.ID].DependsOnIndex() {
			return true
		}
	}
	return false
}

// noteUncertain notes a loop whose number of iterations is uncertain, with the range that ranks may have.
func (g *generator) noteUncertain(n *template.Node, times law.Estimate) {
	if times.High >= law.Unbounded {
		times.High = math.MaxInt64
	}
	i := slices.IndexFunc(g.result.Loops, func(l UncertainLoop) bool { return l.Node == n.ID })
	if i < 0 {
		g.result.Loops = append(g.result.Loops, UncertainLoop{Loop: g.model.NodeName(n), Node: n.ID, Value: times.Value,
			Low: times.Low, High: times.High, Least: times.Value, Most: times.Value,
			Widened: len(g.shares[n.ID]) > 0 || mayFollowData(g, n) || mayReachFurther(g, n)})
		return
	}
	l := &g.result.Loops[i]
	l.Low, l.High = min(l.Low, times.Low), max(l.High, times.High)
	l.Least, l.Most = min(l.Least, times.Value), max(l.Most, times.Value)
}

// equalIterations records iterations that are all equal. Once an iteration is like the one before and leaves the same
// requests open, the rest is repeated without being generated.
func (w *rankWriter) equalIterations(n *template.Node, times int64) {
	last := int32(unset)
	for i := int64(0); i < times && w.err == nil; i++ {
		made, open, calls := slices.Clone(w.path.Made), slices.Clone(w.open), w.calls
		w.children(n)
		if w.path.IterationEmpty() {
			return
		}
		id := w.g.recorder.EndIteration(w.path)
		if id == last && slices.Equal(open, w.open) {
			left := times - i - 1
			w.path.RepeatIteration(id, left)
			for k := range w.path.Made {
				w.path.Made[k] += (w.path.Made[k] - made[k]) * int32(left)
			}
			w.count((w.calls - calls) * left)
			return
		}
		last = id
	}
}

// differentIterations records iterations that differ.
func (w *rankWriter) differentIterations(n *template.Node, times int64) {
	for i := int64(0); i < times && w.err == nil && !w.g.isUnknown(n); i++ {
		if w.iterations++; w.iterations > maxDifferent {
			w.g.unknown.addLoop(n, w.g.model.NodeName(n), fmt.Sprintf("a rank would have more than %d iterations in which "+
				"calls differ", maxDifferent))
			break
		}
		w.iteration[n.ID] = int32(i)
		w.children(n)
		if !w.path.IterationEmpty() {
			w.g.recorder.EndUnfolded(w.path)
		}
	}
	delete(w.iteration, n.ID)
}

// isUnknown reports whether nothing is known of the calls in a loop: they are not known themselves, or complete
// requests of calls that are not. Its iterations then need not be gone through, of which there can be millions: loops
// around others whose calls differ, too.
func (g *generator) isUnknown(n *template.Node) bool {
	hasGap := func(event int32) bool {
		gap := g.unknown.gaps[event]
		return gap != nil && gap.Calls != ""
	}
	for _, c := range n.Children {
		switch x := g.model.SiteOf(c.ID); {
		case c.Loop && g.isUnknown(c), !c.Loop && hasGap(c.ID):
		case c.Loop || x.Completes == nil || !anyEvent(x.Completes.Events, hasGap):
			return false
		}
	}
	return true
}

// anyEvent reports whether a condition holds for one of some events.
func anyEvent(events map[int32]bool, holds func(event int32) bool) bool {
	for event := range events {
		if holds(event) {
			return true
		}
	}
	return false
}

// count counts calls of the rank.
func (w *rankWriter) count(calls int64) {
	if w.calls += calls; w.calls > maxRankCalls && w.err == nil {
		w.err = fmt.Errorf("rank %d has more than %d calls", w.rank, maxRankCalls)
	}
}

// participatesIn reports whether the rank makes any call of a loop.
func (w *rankWriter) participatesIn(n *template.Node) bool {
	for _, c := range n.Children {
		if c.Loop {
			if w.participatesIn(c) {
				return true
			}
			continue
		}
		x := w.g.model.SiteOf(c.ID)
		if x.FollowsRequests() {
			if w.countOpen(x.Completes) > 0 {
				return true
			}
			continue
		}
		inner := false // the site's place depends on a loop that has not been entered yet
		for _, l := range x.Calls.Components {
			_, entered := w.iteration[l.Loop.ID]
			inner = inner || !entered
		}
		if inner || w.g.peers.participates(x, w.rank, w.indexOf(x)) {
			return true
		}
	}
	return false
}

// indexOf returns the current place of a site.
func (w *rankWriter) indexOf(x *model.Site) (index []int32) {
	for _, c := range x.Calls.Components {
		index = append(index, c.Index(w.iteration[c.Loop.ID]))
	}
	return index
}

// indexAround returns the current place in the loops around a node whose iterations differ.
func (w *rankWriter) indexAround(n *template.Node) (index []int32) {
	for l := n.Parent; l != nil; l = l.Parent {
		if !w.g.model.Uniform[l.ID] {
			var own []int32
			for _, c := range slots.Components(l, w.g.model.Periods[l.ID]) {
				own = append(own, c.Index(w.iteration[l.ID]))
			}
			index = append(own, index...)
		}
	}
	return index
}

// iterationsOf returns how many iterations a loop has at a point. If its iterations differ, the families of slots in it
// tell.
func (g *generator) iterationsOf(n *template.Node, p *law.Point) (law.Estimate, bool) {
	if g.model.Uniform[n.ID] {
		l := g.model.Iterations[n.ID]
		e, known := l.Evaluate(p)
		if known && !e.Exact && !l.IsExact() { // it may depend on data: then a rank has as many as any rank had
			seen := g.model.IterationsSeen[n.ID]
			e.Low, e.High = min(e.Low, seen.Least), max(e.High, seen.Most)
		}
		if known && mayFollowData(g, n) {
			e.High, e.Exact = max(e.High, 2*e.Value), false
		}
		return widenByShares(g, n, e), known
	}
	if e, known := g.iterations[n.ID]; known {
		return e, true
	}
	e, known := g.familyIterations(n, g.ranks)
	l := g.model.Iterations[n.ID]
	constant, same := l.Unvarying()
	// Slots without a family, or calls that are equal in all iterations, may come after the last slot of the families.
	if !known || same && constant > e.High || g.goesOn(n) {
		e, known = l.Evaluate(p)
	} else if same && constant < e.Low && !g.model.Ragged[n.ID] { // a slot may come after the last iteration
		e.Low, e.Exact = constant, false
	}
	if rival, ok := l.Evaluate(p); ok && known && endsAsSeen(g, n) {
		e.Low, e.High = min(e.Low, rival.Low), max(e.High, rival.High)
		e.Exact = e.Exact && e.Low == e.High
	}
	if known && (mayReachFurther(g, n) || mayFollowData(g, n)) {
		e.High, e.Exact = max(e.High, 2*e.Value), false // a second step along each axis, twice as many levels
	}
	if known {
		e = widenByShares(g, n, e)
		g.iterations[n.ID] = e
	}
	return e, known
}

// goesOn reports whether a loop had more iterations in the largest run than the families of slots in it need there.
func (g *generator) goesOn(n *template.Node) bool {
	e, found := g.familyIterations(n, g.model.LargestRun())
	return found && !g.model.Ragged[n.ID] && e.High < g.model.IterationsSeen[n.ID].Most
}

// familyIterations returns how many iterations of a loop the families of slots in it need on this number of ranks;
// false if there are none.
func (g *generator) familyIterations(n *template.Node, ranks int32) (e law.Estimate, found bool) {
	for _, x := range g.model.Sites {
		component := slices.IndexFunc(x.Calls.Components,
			func(c slots.Component) bool { return c.Loop == n && !c.Within })
		if component < 0 {
			continue
		}
		period := int64(max(x.Calls.Components[component].Period, 1))
		for _, family := range []string{x.To, x.From, x.In} {
			for _, l := range g.peers.families[family] {
				if least, most, ok := l.Last(ranks, component); ok {
					e.Low, e.High = max(e.Low, (int64(least)+1)*period), max(e.High, (int64(most)+1)*period)
					found = true
				}
			}
		}
	}
	e.Value, e.Exact = e.Low, e.Low == e.High
	return e, found
}

// call records the next call of a site.
func (w *rankWriter) call(x *model.Site) {
	if x.Completes != nil && x.Completes.Always && w.countOpen(x.Completes) == 0 {
		return
	}
	index := w.indexOf(x)
	t := w.templateOf(x, index)
	n := w.g.sig.Nodes()[x.Event.ID]
	value := t.value
	if completes, maker := w.complete(x), w.nextRequest(x); completes != nil || maker != nil {
		c := t.call
		c.Completes, c.Request = completes, x.Like.Request
		if x.Maker != nil && x.Maker.StartsNone {
			c.About = maker
		} else {
			c.Init = maker
		}
		value = w.g.recorder.Intern(n, &c)
	} else if value == unset {
		value = w.g.recorder.Intern(n, &t.call)
		t.value = value
	}
	if t.makesRequest {
		w.open = append(w.open, signature.Position{Node: n.ID, Number: w.path.Made[n.ID]})
	}
	w.requests.Add(n.ID, w.path.Made[n.ID])
	w.g.recorder.Take(w.path, n, value)
	w.count(1)
}

// templateOf returns the call of a site at a place.
func (w *rankWriter) templateOf(x *model.Site, index []int32) *callTemplate {
	k := callAt{x.Event.ID, slots.PlaceOf(index)}
	t, known := w.templates[k]
	if !known {
		e := w.row(x, index)
		t = &callTemplate{call: sign.NewCall(&w.g.sig.Symbols[x.Event.Symbol], &e), value: unset,
			makesRequest: x.Like.Request && x.Completes == nil}
		t.call.Instance, t.call.Request = x.Like.Instance, t.makesRequest
		t.call.ComputeNs = w.g.times.Before(k.event, k.place, w.rank)
		t.call.Parts = w.partsOf(x, k, &e, index)
		w.templates[k] = t
	}
	return t
}

// nextRequest refers to the call that made the persistent request which a site uses next; nil if it uses none.
func (w *rankWriter) nextRequest(x *model.Site) *signature.Backref {
	if x.Maker == nil {
		return nil
	}
	p, found := w.requests.Next(x.Event.ID, x.Maker)
	if !found {
		return nil
	}
	return w.path.Backref(p)
}
