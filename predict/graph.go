package predict

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// The template is found from which call follows which, as compilers find loops in the graph of a program's flow: a call path is a place in the
// program, so that the calls that a rank makes are a walk through the program's text with all functions in line. Strongly connected
// places are a loop; without the way back to where it is entered, those that still are one another's successors are loops inside of it. This
// is the inference of expressions in which each symbol stands once (Bex, Neven, Schwentick and Tuyls, "Inference of Concise DTDs from XML Data",
// VLDB 2006), with Bourdoncle's recursion for the nesting.

// edge is that one symbol comes after another, at the same level of a recursion, a deeper one (level 1) or one that is less deep (-1); outside stands before the first
// and behind the last.
type edge struct {
	from, to int32
	level    int8
}

const outside = -1

// flow is how often which symbol follows which, on one rank or on ranks that have the same edges.
type flow map[edge]int64

// class is ranks whose flows have the same edges: the same ways through the program.
type class struct {
	edges   flow           // all
	left    flow           // those that lead not back to the head of a loop that is found
	symbols map[int32]bool // that it has
}

// classes puts flows with the same edges together, the one with most symbols first.
func classes(flows []flow) []*class {
	byEdges := map[string]*class{}
	var all []*class
	var keys []string
	for _, f := range flows {
		key := f.key()
		c := byEdges[key]
		if c == nil {
			c = &class{edges: flow{}, left: flow{}, symbols: map[int32]bool{}}
			byEdges[key] = c
			all, keys = append(all, c), append(keys, key)
		}
		for e, n := range f {
			c.edges[e] += n
			c.left[e] += n
			for _, s := range [2]int32{e.from, e.to} {
				if s != outside {
					c.symbols[s] = true
				}
			}
		}
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(len(all[b].symbols), len(all[a].symbols)), cmp.Compare(keys[a], keys[b]))
	})
	sorted := make([]*class, len(all))
	for i, k := range order {
		sorted[i] = all[k]
	}
	return sorted
}

// key is what flows with the same edges have in common.
func (f flow) key() string {
	edges := make([]edge, 0, len(f))
	for e := range f {
		edges = append(edges, e)
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.level, b.level))
	})
	var key []byte
	for _, e := range edges {
		key = binary.AppendVarint(binary.AppendVarint(key, int64(e.from)), int64(e.to))
		key = append(key, byte(e.level))
	}
	return string(key)
}

// nesting finds loops.
type nesting struct {
	classes []*class
	deep    []bool // by symbol: some rank has it at a level of a recursion that is not the first
	// branches says that a way between levels of a recursion is neither deeper nor back in a loop of levels: the function calls itself more than once.
	branches bool
	first    []int64 // by symbol: the least place at which a rank has it
}

// children are the events and loops that a region of symbols is made of, in the order of the program.
func (n *nesting) children(region []int32) []*Node {
	in := map[int32]bool{}
	for _, s := range region {
		in[s] = true
	}
	var nodes []*Node
	for _, part := range n.parts(region, in) {
		if len(part) == 1 && !n.repeats(part[0]) {
			nodes = append(nodes, &Node{Symbol: part[0]})
			continue
		}
		nodes = append(nodes, n.loop(part))
	}
	return nodes
}

// repeats says whether a symbol follows itself.
func (n *nesting) repeats(s int32) bool {
	for _, c := range n.classes {
		for level := int8(-1); level <= 1; level++ {
			if c.left[edge{s, s, level}] > 0 {
				return true
			}
		}
	}
	return false
}

// loop is the loop of strongly connected symbols.
func (n *nesting) loop(part []int32) *Node {
	l := &Node{Loop: true}
	in := map[int32]bool{}
	for _, s := range part {
		in[s] = true
	}
	if l.levels = n.oneWay(part, in); l.levels {
		n.cutLevels(in)
		l.Children = n.children(part)
		return l
	}
	if len(part) == 1 {
		for _, c := range n.classes {
			for level := int8(-1); level <= 1; level++ {
				delete(c.left, edge{part[0], part[0], level})
			}
		}
		l.Children = []*Node{{Symbol: part[0]}}
		return l
	}
	for {
		if !n.cut(part, in) && !n.cutAll(part, in) {
			n.cutLevels(in)
			n.branches = true
		}
		if len(n.parts(part, in)) > 1 || n.oneWay(part, in) {
			break
		}
	}
	l.Children = n.children(part)
	return l
}

// oneWay says whether all calls of a loop are made in a recursion, and only deeper levels come after others there, or only levels that are less deep: then its
// iterations are the levels.
func (n *nesting) oneWay(part []int32, in map[int32]bool) bool {
	if slices.ContainsFunc(part, func(s int32) bool { return !n.deep[s] }) {
		return false
	}
	var deeper, back bool
	for _, c := range n.classes {
		for e := range c.left {
			if in[e.from] && in[e.to] {
				deeper, back = deeper || e.level > 0, back || e.level < 0
			}
		}
	}
	return deeper != back
}

// cutLevels takes the ways from level to level out of a region. What is left is done at a level.
func (n *nesting) cutLevels(in map[int32]bool) {
	for _, c := range n.classes {
		for e := range c.left {
			if e.level != 0 && in[e.from] && in[e.to] {
				delete(c.left, e)
			}
		}
	}
}

// cut takes the ways back out of the classes in which the loop is all of its symbols that they have. Each class has its own: where a rank has not
// the first call of a loop, another is its first. Where only some are connected these are a loop inside.
func (n *nesting) cut(part []int32, in map[int32]bool) (did bool) {
	for _, c := range n.classes {
		var has []int32
		for _, s := range part {
			if c.symbols[s] {
				has = append(has, s)
			}
		}
		switch {
		case len(has) == 0:
			continue
		case len(has) == 1:
			e := edge{has[0], has[0], 0}
			if c.left[e] > 0 {
				delete(c.left, e)
				did = true
			}
			continue
		}
		if len(strong(has, c.successors(in))) > 1 {
			continue
		}
		if head := n.head(part, in, c); head != outside {
			n.cutAt(c, head, in)
			did = true
		}
	}
	return did
}

// cutAll takes the ways back to one head out of all classes: they do not agree what the loop is. It says whether there is one.
func (n *nesting) cutAll(part []int32, in map[int32]bool) bool {
	head := n.head(part, in, n.classes...)
	if head == outside {
		return false
	}
	for _, c := range n.classes {
		n.cutAt(c, head, in)
	}
	return true
}

// cutAt takes away what leads from the region to its head, but from the head itself, and deeper into a recursion: these are loops inside.
func (n *nesting) cutAt(c *class, head int32, in map[int32]bool) {
	for e := range c.left {
		if e.to == head && e.from != head && in[e.from] && e.level <= 0 {
			n.branches = n.branches || e.level < 0
			delete(c.left, e)
		}
	}
}

// head is where a loop is entered most often; of several the one that comes first. One that nothing in the loop leads to any more is none.
func (n *nesting) head(part []int32, in map[int32]bool, classes ...*class) int32 {
	entered, inner := map[int32]int64{}, map[int32]bool{}
	for _, c := range classes {
		for e, count := range c.edges {
			switch {
			case !in[e.to]:
			case in[e.from] && c.left[e] > 0:
				inner[e.to] = inner[e.to] || e.from != e.to && e.level <= 0
			default:
				entered[e.to] += count
			}
		}
	}
	best := int32(outside)
	for _, s := range part {
		if inner[s] && (best == outside || cmp.Or(cmp.Compare(entered[s], entered[best]), cmp.Compare(n.first[best], n.first[s])) > 0) {
			best = s
		}
	}
	return best
}

// successors are those in a region that come after a symbol.
func (c *class) successors(in map[int32]bool) map[int32][]int32 {
	next := map[int32][]int32{}
	for e := range c.left {
		if in[e.from] && in[e.to] {
			next[e.from] = append(next[e.from], e.to)
		}
	}
	return next
}

// parts are the strongly connected parts of a region, each before those that come after it, and where that is open the one first that a rank has
// earlier.
func (n *nesting) parts(region []int32, in map[int32]bool) [][]int32 {
	next := map[int32][]int32{}
	for _, c := range n.classes {
		for from, to := range c.successors(in) {
			next[from] = append(next[from], to...)
		}
	}
	parts := strong(region, next)
	of := map[int32]int{}
	for i, part := range parts {
		for _, s := range part {
			of[s] = i
		}
	}
	before := make([]map[int]bool, len(parts)) // parts that come before one
	for i := range before {
		before[i] = map[int]bool{}
	}
	for from, list := range next {
		for _, to := range list {
			if of[from] != of[to] {
				before[of[to]][of[from]] = true
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
			if !done[i] && len(before[i]) == 0 && (best < 0 || cmp.Or(cmp.Compare(firsts[i], firsts[best]), cmp.Compare(parts[i][0], parts[best][0])) < 0) {
				best = i
			}
		}
		done[best] = true
		order = append(order, parts[best])
		for i := range before {
			delete(before[i], best)
		}
	}
	return order
}

// strong are the strongly connected components of a graph (Tarjan's algorithm), the symbols of each in order.
func strong(region []int32, next map[int32][]int32) [][]int32 {
	t := tarjan{next: next, index: map[int32]int{}, low: map[int32]int{}, on: map[int32]bool{}}
	for _, s := range region {
		if t.index[s] == 0 {
			t.visit(s)
		}
	}
	return t.parts
}

type tarjan struct {
	next  map[int32][]int32
	index map[int32]int // 0: not visited
	low   map[int32]int
	on    map[int32]bool
	stack []int32
	parts [][]int32
}

func (t *tarjan) visit(s int32) {
	t.index[s] = len(t.index) + 1
	t.low[s] = t.index[s]
	t.stack, t.on[s] = append(t.stack, s), true
	for _, to := range t.next[s] {
		if t.index[to] == 0 {
			t.visit(to)
			t.low[s] = min(t.low[s], t.low[to])
		} else if t.on[to] {
			t.low[s] = min(t.low[s], t.index[to])
		}
	}
	if t.low[s] != t.index[s] {
		return
	}
	at := slices.Index(t.stack, s)
	part := slices.Clone(t.stack[at:])
	for _, x := range part {
		t.on[x] = false
	}
	t.stack = t.stack[:at]
	slices.Sort(part)
	t.parts = append(t.parts, part)
}
