package sign

import (
	"slices"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/predict/signature/template"
)

// Path is the position of a rank in the template while its calls are recorded.
type Path struct {
	// Made has, by node, how many calls of each event the rank has made.
	Made []int32

	open  []openLoop     // loops that the rank is in, the root first
	last  *template.Node // event of the last call; nil: none
	level int32          // recursion level of the last call
	calls int64          // so far
	cuts  []Cut          // to come

	// Of rows: calls that complete later, by the seq of the completing call; calls that later ones refer to, by seq;
	// and those of them that made a persistent request, by its number.
	pending      map[int64][]signature.Position
	initializers map[int64]signature.Position
	persistent   map[int64]signature.Position
}

// openLoop is an execution of a loop that has not ended.
type openLoop struct {
	node                  *template.Node
	firstLevel, lastLevel int32         // of a recursion
	body                  []int32       // the current iteration
	iterations            fold.Sequence // those before
	unfolded              []int32       // instead of iterations: see EndUnfolded
}

// NewPath returns a path at the start of the template.
func (r *Recorder) NewPath() *Path {
	nodes := r.sig.Nodes()
	return &Path{open: []openLoop{{node: nodes[0]}}, Made: make([]int32, len(nodes))}
}

func (p *Path) innermost() *openLoop { return &p.open[len(p.open)-1] }

// Enter begins an execution of a loop.
func (p *Path) Enter(loop *template.Node) { p.open = append(p.open, openLoop{node: loop}) }

// IterationEmpty reports whether nothing was recorded in the current iteration of the innermost loop.
func (p *Path) IterationEmpty() bool { return len(p.innermost().body) == 0 }

// RepeatIteration appends a body to the iterations of the innermost loop several times.
func (p *Path) RepeatIteration(body int32, times int64) { p.innermost().iterations.Repeat(body, times) }

// DropIfEmpty forgets the innermost loop if it has no iterations, and reports whether it did.
func (p *Path) DropIfEmpty() bool {
	if l := p.innermost(); len(l.iterations.Items)+len(l.unfolded) > 0 {
		return false
	}
	p.open = p.open[:len(p.open)-1]
	return true
}

// Cut is a place where an iteration ends even if the template allows it to go on.
type Cut struct {
	// Seq is the position, on the rank, of the call before which it ends.
	Seq int64
	// Loop is the loop whose iteration ends; nil means the innermost one with the calls before and after.
	Loop *template.Node
}

// cutHere returns the cut before the next call, nil if there is none, and drops cuts that have passed. Of several, it
// is the one of the outermost loop.
func (p *Path) cutHere() (here *Cut) {
	for len(p.cuts) > 0 && p.cuts[0].Seq < p.calls {
		p.cuts = p.cuts[1:]
	}
	for i := 0; i < len(p.cuts) && p.cuts[i].Seq == p.calls; i++ {
		c := &p.cuts[i]
		if here == nil || c.Loop != nil && (here.Loop == nil || c.Loop.Depth < here.Loop.Depth) {
			here = c
		}
	}
	return here
}

// Snapshot is a copy of a path's open loops.
type Snapshot struct {
	open  []openLoop
	last  *template.Node
	level int32
}

// Snapshot copies the state of a path that GrowRepetition compares with.
func (p *Path) Snapshot() *Snapshot {
	open := slices.Clone(p.open)
	for i := range open {
		open[i].body = slices.Clone(open[i].body)
		open[i].iterations.Items = slices.Clone(open[i].iterations.Items)
	}
	return &Snapshot{open, p.last, p.level}
}

// GrowRepetition checks whether the path is in the same state as at the snapshot, except for one repetition in one
// sequence whose count has grown. If so, it adds that growth to the count once more for each of times, and returns
// true. Later steps depend on a count only where it is compared with another one, so it returns false if the count
// could become equal to such a one on the way.
func (p *Path) GrowRepetition(before *Snapshot, times int64) bool {
	if before.last != p.last || before.level != p.level || len(before.open) != len(p.open) {
		return false
	}
	var grown *fold.Item
	var growth int64
	for i := range before.open {
		a, b := &before.open[i], &p.open[i]
		was, now := a.iterations.Items, b.iterations.Items
		if a.node != b.node || !slices.Equal(a.body, b.body) || len(was) != len(now) {
			return false
		}
		for k := range now {
			if was[k].Equal(&now[k]) {
				continue
			}
			growth = now[k].Times - was[k].Times
			if grown != nil || growth <= 0 || was[k].Times == 0 || !fold.EqualItems(was[k].Items, now[k].Items) {
				return false
			}
			// What comes in between is shorter than the repetition.
			if (was[k].Times-growth)*fold.Len(was[k].Items) <= fold.Len(now[k+1:]) ||
				hasLongerRepetition(now[:k], &was[k]) || hasLongerRepetition(now[k+1:], &was[k]) {
				return false
			}
			grown = &now[k]
		}
	}
	if grown == nil {
		return false
	}
	grown.Times += times * growth
	return true
}

// hasLongerRepetition reports whether items repeat, at any depth, what x repeats at least as often.
func hasLongerRepetition(items []fold.Item, x *fold.Item) bool {
	return slices.ContainsFunc(items, func(i fold.Item) bool {
		return i.Times >= x.Times && fold.EqualItems(i.Items, x.Items) || hasLongerRepetition(i.Items, x)
	})
}

// AppendBackref appends a reference to a call of the path. It extends the last reference if the call is the next one
// of the same event.
func (p *Path) AppendBackref(refs []signature.Backref, q signature.Position) []signature.Backref {
	ago := p.Made[q.Node] - 1 - q.Number
	if n := len(refs); n > 0 && refs[n-1][0] == q.Node && refs[n-1][1]-refs[n-1][2] == ago {
		refs[n-1][2]++
		return refs
	}
	return append(refs, signature.Backref{q.Node, ago, 1})
}

// Backref returns a reference to one call of the path.
func (p *Path) Backref(q signature.Position) *signature.Backref {
	return &signature.Backref{q.Node, p.Made[q.Node] - 1 - q.Number, 1}
}
