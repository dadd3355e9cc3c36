package template

import (
	"cmp"
	"slices"
)

// Find returns the template shared by ranks with these flows. first has, by symbol, the earliest position of the
// symbol on any rank; recursive has the symbols that some rank calls below the first level of a recursion. branches
// reports that a recursive function calls itself more than once, so that its levels cannot be treated as iterations
// of a loop.
func Find(flows []Flow, first []int64, recursive []bool) (root *Node, branches bool) {
	n := nesting{classes: classes(flows), first: first, recursive: recursive}
	all := make([]int32, len(first))
	for i := range all {
		all[i] = int32(i)
	}
	root = &Node{Loop: true, Children: n.children(all)}
	return root, n.branches
}

// nesting is the state of Find: the edges that are left, and what was found out about recursion.
type nesting struct {
	classes   []*class
	first     []int64
	recursive []bool
	branches  bool
}

// children returns the events and loops of a region of symbols in program order.
func (n *nesting) children(region []int32) []*Node {
	inside := setOf(region)
	var nodes []*Node
	for _, component := range n.orderedComponents(region, inside) {
		if len(component) == 1 && !n.followsItself(component[0]) {
			nodes = append(nodes, &Node{Symbol: component[0]})
			continue
		}
		nodes = append(nodes, n.loop(component))
	}
	return nodes
}

func setOf(symbols []int32) map[int32]bool {
	set := map[int32]bool{}
	for _, s := range symbols {
		set[s] = true
	}
	return set
}

func (n *nesting) followsItself(s int32) bool {
	for _, c := range n.classes {
		for level := int8(-1); level <= 1; level++ {
			if c.remaining[Edge{s, s, level}] > 0 {
				return true
			}
		}
	}
	return false
}

// loop builds the loop of strongly connected symbols.
func (n *nesting) loop(symbols []int32) *Node {
	l := &Node{Loop: true}
	inside := setOf(symbols)
	if l.RecursionLevels = n.isRecursionLoop(symbols, inside); l.RecursionLevels {
		n.cutLevels(inside)
		l.Children = n.children(symbols)
		return l
	}
	if len(symbols) == 1 {
		for _, c := range n.classes {
			for level := int8(-1); level <= 1; level++ {
				delete(c.remaining, Edge{symbols[0], symbols[0], level})
			}
		}
		l.Children = []*Node{{Symbol: symbols[0]}}
		return l
	}
	for {
		if !n.cutByClass(symbols, inside) && !n.cutTogether(symbols, inside) {
			n.cutLevels(inside)
			n.branches = true
		}
		if len(n.orderedComponents(symbols, inside)) > 1 || n.isRecursionLoop(symbols, inside) {
			break
		}
	}
	l.Children = n.children(symbols)
	return l
}

// isRecursionLoop reports whether the iterations of a loop are levels of a recursion: all its calls are made in a
// recursion, and the level only rises, or only falls, from call to call.
func (n *nesting) isRecursionLoop(symbols []int32, inside map[int32]bool) bool {
	if slices.ContainsFunc(symbols, func(s int32) bool { return !n.recursive[s] }) {
		return false
	}
	var deeper, back bool
	for _, c := range n.classes {
		for e := range c.remaining {
			if inside[e.From] && inside[e.To] {
				deeper, back = deeper || e.Level > 0, back || e.Level < 0
			}
		}
	}
	return deeper != back
}

// cutLevels removes the edges between levels of a recursion, so that only what happens within a level is left.
func (n *nesting) cutLevels(inside map[int32]bool) {
	for _, c := range n.classes {
		for e := range c.remaining {
			if e.Level != 0 && inside[e.From] && inside[e.To] {
				delete(c.remaining, e)
			}
		}
	}
}

// cutByClass removes the edges back to the head of the loop, separately in each class for which all of its symbols in
// the region are connected. Each class has its own head, since ranks that lack the first call of a loop begin it with
// another. A class of which only some symbols are connected has a loop inside and is not changed. The result reports
// whether any edge was removed.
func (n *nesting) cutByClass(symbols []int32, inside map[int32]bool) (removed bool) {
	for _, c := range n.classes {
		var own []int32
		for _, s := range symbols {
			if c.symbols[s] {
				own = append(own, s)
			}
		}
		switch {
		case len(own) == 0:
			continue
		case len(own) == 1:
			e := Edge{own[0], own[0], 0}
			if c.remaining[e] > 0 {
				delete(c.remaining, e)
				removed = true
			}
			continue
		}
		if len(components(own, c.successors(inside))) > 1 {
			continue
		}
		if head := n.head(symbols, inside, c); head != Outside {
			n.cutBackEdges(c, head, inside)
			removed = true
		}
	}
	return removed
}

// cutTogether removes the edges back to one head from all classes, for loops about which the classes disagree. It
// reports whether there is a head.
func (n *nesting) cutTogether(symbols []int32, inside map[int32]bool) bool {
	head := n.head(symbols, inside, n.classes...)
	if head == Outside {
		return false
	}
	for _, c := range n.classes {
		n.cutBackEdges(c, head, inside)
	}
	return true
}

// cutBackEdges removes the edges that lead from the region back to its head. It keeps edges from the head to itself
// and into deeper levels of a recursion: these are loops inside.
func (n *nesting) cutBackEdges(c *class, head int32, inside map[int32]bool) {
	for e := range c.remaining {
		if e.To == head && e.From != head && inside[e.From] && e.Level <= 0 {
			n.branches = n.branches || e.Level < 0
			delete(c.remaining, e)
		}
	}
}

// head returns the symbol by which the loop is entered most often; of several, the earliest. It ignores symbols that
// nothing in the loop leads back to. Outside means that there is no head.
func (n *nesting) head(symbols []int32, inside map[int32]bool, classes ...*class) int32 {
	entered, reentered := map[int32]int64{}, map[int32]bool{}
	for _, c := range classes {
		for e, count := range c.edges {
			switch {
			case !inside[e.To]:
			case inside[e.From] && c.remaining[e] > 0:
				reentered[e.To] = reentered[e.To] || e.From != e.To && e.Level <= 0
			default:
				entered[e.To] += count
			}
		}
	}
	best := int32(Outside)
	for _, s := range symbols {
		if reentered[s] && (best == Outside || cmp.Or(cmp.Compare(entered[s], entered[best]),
			cmp.Compare(n.first[best], n.first[s])) > 0) {
			best = s
		}
	}
	return best
}

// orderedComponents returns the strongly connected components of a region in topological order; where that leaves a
// choice, the one that appears first on some rank comes first.
func (n *nesting) orderedComponents(region []int32, inside map[int32]bool) [][]int32 {
	next := map[int32][]int32{}
	for _, c := range n.classes {
		for from, to := range c.successors(inside) {
			next[from] = append(next[from], to...)
		}
	}
	parts := components(region, next)
	componentOf := map[int32]int{}
	for i, part := range parts {
		for _, s := range part {
			componentOf[s] = i
		}
	}
	predecessors := make([]map[int]bool, len(parts))
	for i := range predecessors {
		predecessors[i] = map[int]bool{}
	}
	for from, list := range next {
		for _, to := range list {
			if componentOf[from] != componentOf[to] {
				predecessors[componentOf[to]][componentOf[from]] = true
			}
		}
	}
	firsts := make([]int64, len(parts))
	for i, part := range parts {
		firsts[i] = n.first[part[0]]
		for _, s := range part {
			firsts[i] = min(firsts[i], n.first[s])
		}
	}
	var order [][]int32
	for done := make([]bool, len(parts)); len(order) < len(parts); {
		best := -1
		for i := range parts {
			if !done[i] && len(predecessors[i]) == 0 &&
				(best < 0 || cmp.Or(cmp.Compare(firsts[i], firsts[best]),
					cmp.Compare(parts[i][0], parts[best][0])) < 0) {
				best = i
			}
		}
		done[best] = true
		order = append(order, parts[best])
		for i := range predecessors {
			delete(predecessors[i], best)
		}
	}
	return order
}
