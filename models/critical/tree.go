package critical

import (
	"cmp"
	"slices"

	"github.com/commq/commq/schema"
)

// tree has the critical path to the start of each row that was visited: those of all rows join on their way back, so
// together they are a tree. Parts of it that no explanation can end in are joined into one (compact), so that its size
// depends on the number of threads and call sites, not on the number of rows.
type tree struct {
	nodes []node // each after its parent
	segs  []seg
	kept  int // number of nodes after the last compact
}

// node is the start of a row. Its segments lead back to its parent, the last one first; joined ones are in any order.
type node struct {
	at       int64 // ns
	parent   int32 // noNode at the begin of a thread
	from, to int32 // its segments
}

const (
	noNode  = -1
	onStack = -2 // of a row that is being visited
)

// seg is a part of a path: an activity of a rank.
type seg struct {
	rank, activity int32 // activity is an index in places times Kinds, plus the kind
	ns             int64
}

func activityOf(place int32, kind Kind) int32 { return place*int32(Kinds) + int32(kind) }

// site is a call site and the call there.
type site struct {
	site int32
	call schema.CallID
}

// places numbers the call sites.
type places struct {
	index map[site]int32
	all   []site // by the value in index
}

// number returns the number of a call site.
func (p *places) number(at int32, call schema.CallID) int32 {
	k := site{at, call}
	i, known := p.index[k]
	if !known {
		i = int32(len(p.all))
		p.index[k] = i
		p.all = append(p.all, k)
	}
	return i
}

// activity names the activity of a segment.
func (p *places) activity(rank, activity int32) Activity {
	at := p.all[activity/int32(Kinds)]
	return Activity{rank, at.site, at.call, Kind(activity % int32(Kinds))}
}

// exit is the path from the end of a row: back to at, and from there through one segment to node.
type exit struct {
	at          int64
	node, place int32
	kind        Kind
}

// visit makes the node of a row, after the nodes that it depends on.
func (g *Graph) visit(rank, i int32) {
	if g.ranks[rank].rowAt(i).node != noNode {
		return
	}
	stack := append(g.stack[:0], entry{rank, i})
	for len(stack) > 0 {
		e := stack[len(stack)-1]
		r := &g.ranks[e.rank]
		w := r.rowAt(e.row)
		w.node = onStack
		if w.prev >= r.dropped {
			p := r.rowAt(w.prev)
			if p.node == noNode {
				stack = append(stack, entry{e.rank, w.prev})
				continue
			}
			if c := g.ranks.cause(p, w.start); c != nil && c.node == noNode {
				stack = append(stack, entry{p.waitedRank, p.waitedRow})
				continue
			}
		}
		w.node = g.newNode(e.rank, w)
		stack = stack[:len(stack)-1]
	}
	g.stack = stack
}

// exitOf returns the path from the end of row p, or from at if that is earlier.
func (g *Graph) exitOf(p *row, at int64) exit {
	x := exit{p.lastTime(), p.node, p.place, p.kindWithoutWait()}
	if p.left {
		x.node, x.kind = p.waitedRow, p.kind
	} else if c := g.ranks.cause(p, at); c != nil && c.node >= 0 {
		x.node, x.kind = c.node, p.kind
	}
	if x.at == unknown {
		x.at = g.tree.nodes[x.node].at
	}
	return x
}

// newNode makes the node of a row of a rank.
func (g *Graph) newNode(rank int32, w *row) int32 {
	r, t := &g.ranks[rank], &g.tree
	at, first := w.start, int32(len(t.segs))
	var x exit
	switch {
	case w.prev < 0:
		x = exit{at: r.beginOr(g.firstNs), node: int32(len(t.nodes))}
		t.nodes = append(t.nodes, node{at: x.at, parent: noNode, from: first, to: first})
	case w.prev >= r.dropped:
		x = g.exitOf(r.rowAt(w.prev), at)
	default:
		x = r.tails[w.thread].exit
	}
	if at == unknown {
		at = x.at
	}
	if x.at < at {
		t.segs = append(t.segs, seg{rank, activityOf(w.place, Compute), at - x.at})
	}
	parent := g.tree.addExit(rank, x, at)
	at = max(at, t.nodes[parent].at)
	t.nodes = append(t.nodes, node{at, parent, first, int32(len(t.segs))})
	return int32(len(t.nodes) - 1)
}

// addExit adds the segments from a time at the end of a row, or before it, to a node, and returns that. Where clocks
// disagree the node may be later; then its path is cut.
func (t *tree) addExit(rank int32, x exit, at int64) int32 {
	if ns := min(x.at, at) - t.nodes[x.node].at; ns > 0 {
		t.segs = append(t.segs, seg{rank, activityOf(x.place, x.kind), ns})
	}
	n := &t.nodes[x.node]
	for n.at > at && n.parent >= 0 {
		skip := n.at - at
		for k := n.from; k < n.to && t.nodes[n.parent].at < at; k++ {
			s := t.segs[k]
			if s.ns > skip {
				s.ns -= skip
				t.segs = append(t.segs, s)
				skip = 0
				continue
			}
			skip -= s.ns
		}
		x.node = n.parent
		n = &t.nodes[x.node]
	}
	return x.node
}

// walkBack calls fn with the segments from a node back to a time.
func (t *tree) walkBack(n int32, since int64, fn func(s seg)) {
	for n >= 0 {
		left := t.nodes[n].at - since
		for _, s := range t.segs[t.nodes[n].from:t.nodes[n].to] {
			if left <= 0 {
				return
			}
			s.ns = min(s.ns, left)
			left -= s.ns
			fn(s)
		}
		if left <= 0 {
			return
		}
		n = t.nodes[n].parent
	}
}

// compact drops the nodes that no live node leads to, and joins nodes between which the path does not branch and no cut
// lies. A cut is a time at which an explanation may end. live has pointers to all nodes that will be used; they are
// changed.
func (t *tree) compact(live []*int32, cuts []int64) {
	slices.Sort(cuts)
	children := make([]int32, len(t.nodes)) // of nodes that live ones lead to; 2 for live ones, which stay
	for _, n := range live {
		if *n >= 0 {
			children[*n] = 2
		}
	}
	for n := len(t.nodes) - 1; n >= 0; n-- {
		if p := t.nodes[n].parent; children[n] > 0 && p >= 0 {
			children[p]++
		}
	}
	stays := make([]bool, len(t.nodes))
	for n := len(t.nodes) - 1; n >= 0; n-- {
		if stays[n] = stays[n] || children[n] > 1 || children[n] == 1 && t.nodes[n].parent < 0; stays[n] {
			if top := t.top(int32(n), children, cuts); top >= 0 {
				stays[top] = true
			}
		}
	}
	t.keep(stays, live)
}

// top returns the node that becomes the parent of a node that stays.
func (t *tree) top(n int32, children []int32, cuts []int64) int32 {
	to := t.nodes[n].at
	p := t.nodes[n].parent
	for p >= 0 && children[p] == 1 && t.nodes[p].parent >= 0 && !hasCut(cuts, t.nodes[t.nodes[p].parent].at, to) {
		p = t.nodes[p].parent
	}
	return p
}

// hasCut reports whether one of the sorted cuts lies between two times.
func hasCut(cuts []int64, from, to int64) bool {
	i, _ := slices.BinarySearch(cuts, from+1)
	return i < len(cuts) && cuts[i] < to
}

// keep keeps some of the nodes, with the segments of all others on their way.
func (t *tree) keep(stays []bool, live []*int32) {
	number := make([]int32, len(t.nodes))
	next := tree{}
	for n := range t.nodes {
		if !stays[n] {
			continue
		}
		from, parent := len(next.segs), t.nodes[n].parent
		next.segs = append(next.segs, t.segs[t.nodes[n].from:t.nodes[n].to]...)
		for parent >= 0 && !stays[parent] {
			p := &t.nodes[parent]
			next.segs, parent = append(next.segs, t.segs[p.from:p.to]...), p.parent
		}
		if parent != t.nodes[n].parent {
			next.segs = next.segs[:from+len(joined(next.segs[from:]))]
		}
		if parent >= 0 {
			parent = number[parent]
		}
		number[n] = int32(len(next.nodes))
		next.nodes = append(next.nodes, node{t.nodes[n].at, parent, int32(from), int32(len(next.segs))})
	}
	for _, n := range live {
		if *n >= 0 {
			*n = number[*n]
		}
	}
	next.kept = len(next.nodes)
	*t = next
}

// joined sums segments of the same activity in place.
func joined(segs []seg) []seg {
	slices.SortFunc(segs, func(a, b seg) int {
		return cmp.Or(cmp.Compare(a.activity, b.activity), cmp.Compare(a.rank, b.rank))
	})
	n := 0
	for _, s := range segs {
		if n > 0 && segs[n-1].rank == s.rank && segs[n-1].activity == s.activity {
			segs[n-1].ns += s.ns
		} else {
			segs[n] = s
			n++
		}
	}
	return segs[:n]
}
