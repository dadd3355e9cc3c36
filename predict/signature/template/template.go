// Package template finds the loop structure of a program from the order of its calls.
//
// An event is a call at one place in the program (one call path). Walking through a rank's calls is walking through
// the program's text with all functions inlined, so the template can be found from which event follows which, as a
// compiler finds loops in a control flow graph:
//
//   - A Flow counts, for one rank, how often which event follows which.
//   - Strongly connected events form a loop. Without the edges that lead back to the loop's head, the events that are
//     still strongly connected form the loops inside it (Bourdoncle's recursion).
//   - The result is a tree of Nodes, events and loops, shared by all ranks. An iteration of a loop has each of its
//     children once or not at all, so ranks that skip calls need no template of their own.
//
// This infers expressions in which each symbol appears once (Bex, Neven, Schwentick and Tuyls, "Inference of Concise
// DTDs from XML Data", VLDB 2006).
package template

// Node is a node of a template: an event, or a loop of nodes.
type Node struct {
	// ID numbers the nodes in reading order: a loop before what is in it. The root has 0.
	ID int32 `json:"id"`
	// Loop is true for loops. The root is one; a rank goes through it once, as a rule.
	Loop bool `json:"loop,omitempty"`
	// Symbol is the event's index in the signature's symbols.
	Symbol int32 `json:"symbol,omitempty"`
	// Children are the nodes of a loop in program order.
	Children []*Node `json:"children,omitempty"`

	// RecursionLevels marks a loop whose iterations are the levels of a recursion. It is set only while several runs
	// are joined.
	RecursionLevels bool `json:"-"`
	// Parent, Place (the index among the parent's children) and Depth (0 for the root) are set by Link.
	Parent *Node `json:"-"`
	Place  int32 `json:"-"`
	Depth  int32 `json:"-"`
}

// IsIn reports whether the node is in a loop.
func (n *Node) IsIn(loop *Node) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if p == loop {
			return true
		}
	}
	return false
}

// Link numbers the nodes below a root, sets Parent, Place and Depth, and returns the nodes by ID.
func (n *Node) Link() (nodes []*Node) {
	var visit func(x *Node)
	visit = func(x *Node) {
		x.ID = int32(len(nodes))
		nodes = append(nodes, x)
		for i, c := range x.Children {
			c.Parent, c.Place, c.Depth = x, int32(i), x.Depth+1
			visit(c)
		}
	}
	visit(n)
	return nodes
}

// CommonLoop returns the innermost loop that contains both events, and the places of its children that are, or
// contain, each of them.
func CommonLoop(a, b *Node) (loop *Node, placeA, placeB int32) {
	for a.Depth > b.Depth {
		a = a.Parent
	}
	for b.Depth > a.Depth {
		b = b.Parent
	}
	if a == b { // the same event again
		return a.Parent, a.Place, b.Place
	}
	for a.Parent != b.Parent {
		a, b = a.Parent, b.Parent
	}
	return a.Parent, a.Place, b.Place
}

// LoopsAndEvents returns the numbers of loops and events below the node.
func (n *Node) LoopsAndEvents() (loops, events int) {
	for _, c := range n.Children {
		if !c.Loop {
			events++
			continue
		}
		l, e := c.LoopsAndEvents()
		loops, events = loops+l+1, events+e
	}
	return loops, events
}

// RecursionLoop returns the innermost loop around n, or n itself, whose iterations are levels of a recursion; nil if
// there is none.
func (n *Node) RecursionLoop() *Node {
	for n != nil && !n.RecursionLevels {
		n = n.Parent
	}
	return n
}

// Clone copies the tree below a linked root. Link the copy before use.
func (n *Node) Clone() *Node {
	c := &Node{Loop: n.Loop, Symbol: n.Symbol}
	for _, x := range n.Children {
		c.Children = append(c.Children, x.Clone())
	}
	return c
}
