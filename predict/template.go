package predict

// Node is a node of a template: an event or a loop of nodes.
type Node struct {
	// ID numbers the nodes of a template as it is read: a loop before what is in it. The root has 0.
	ID int32 `json:"id"`
	// Loop says that it is a loop. The root is one that every rank goes through once, as a rule.
	Loop bool `json:"loop,omitempty"`
	// Symbol is the index in the signature's symbols, of an event.
	Symbol int32 `json:"symbol,omitempty"`
	// Children are what a loop is made of, in the order of the program. An iteration has each of them once or not at all.
	Children []*Node `json:"children,omitempty"`

	levels bool // a loop whose iterations are levels of a recursion, while runs are put together
	parent *Node
	place  int32 // among its parent's children
	depth  int32 // the root's is 0
}

// link numbers the nodes below a root and tells them where they are.
func (n *Node) link() (nodes []*Node) {
	var visit func(x *Node)
	visit = func(x *Node) {
		x.ID = int32(len(nodes))
		nodes = append(nodes, x)
		for i, c := range x.Children {
			c.parent, c.place, c.depth = x, int32(i), x.depth+1
			visit(c)
		}
	}
	visit(n)
	return nodes
}

// template makes the template of all ranks; it says whether a recursion in it branches.
func template(flows []flow, first []int64, deep []bool) (root *Node, branches bool) {
	n := nesting{classes: classes(flows), first: first, deep: deep}
	region := make([]int32, len(first))
	for i := range region {
		region[i] = int32(i)
	}
	root = &Node{Loop: true, Children: n.children(region)}
	return root, n.branches
}

// common is the deepest loop that two events are in, and the places of its children which they are or are in.
func common(a, b *Node) (loop *Node, ofA, ofB int32) {
	for a.depth > b.depth {
		a = a.parent
	}
	for b.depth > a.depth {
		b = b.parent
	}
	if a == b { // the same event again
		return a.parent, a.place, b.place
	}
	for a.parent != b.parent {
		a, b = a.parent, b.parent
	}
	return a.parent, a.place, b.place
}

// level is the innermost loop that a node is in, or is, whose iterations are levels of a recursion; nil: none.
func (n *Node) level() *Node {
	for n != nil && !n.levels {
		n = n.parent
	}
	return n
}

// clone is a copy of the nodes below a root, which has to be linked.
func (n *Node) clone() *Node {
	c := &Node{Loop: n.Loop, Symbol: n.Symbol}
	for _, x := range n.Children {
		c.Children = append(c.Children, x.clone())
	}
	return c
}
