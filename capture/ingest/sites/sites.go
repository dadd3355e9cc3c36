// Package sites finds the call sites that are the same on all ranks and numbers them for the run: it collects the call
// paths of all ranks in a Tree, looks up functions and lines, and makes the rows of the table callsites.
package sites

import (
	"cmp"
	"slices"
	"time"

	"github.com/commq/commq/capture/ingest/handles"
	"github.com/commq/commq/capture/symbols"
	"github.com/commq/commq/schema"
)

// Key is equal for frames at the same place in a program, whichever process they are from. Ids of call sites follow
// the order of keys, so a key holds nothing that depends on the run: no address, no number.
type Key struct {
	Module  string // file name; empty: in no module
	BuildID string
	Path    string // only without a build id: it then tells files with the same name apart
	Offset  uint64
}

// Compare sorts frames outside all modules last: their addresses differ from run to run, and so would all ids that
// come after them.
func (k Key) Compare(o Key) int {
	return cmp.Or(handles.TrueFirst(k.Module != "", o.Module != ""), cmp.Compare(k.Module, o.Module),
		cmp.Compare(k.BuildID, o.BuildID), cmp.Compare(k.Path, o.Path), cmp.Compare(k.Offset, o.Offset))
}

func keyOf(a symbols.Address) Key {
	key := Key{Offset: a.Offset}
	if m := a.Module; m != nil {
		key.Module, key.BuildID = m.Name(), m.BuildID
		if m.BuildID == "" {
			key.Path = m.Path
		}
	}
	return key
}

// Path is a call path, the outermost frame first.
type Path []Key

// Node is a frame in a Tree. Its parent is the frame that called it.
type Node struct {
	key      Key
	address  symbols.Address
	children map[Key]*Node
	id       int32
}

// ID returns the id of the call site that ends at the frame, once Number has run.
func (n *Node) ID() int32 { return n.id }

// Tree holds the call paths of a run, from the outermost frames that were walked. The zero value is empty.
type Tree struct {
	root Node
}

// Add adds the call paths of a process. It returns the innermost frame of each by the number of the call site.
func (t *Tree) Add(s *symbols.Sites) map[uint32]*Node {
	leaves := map[uint32]*Node{}
	for _, number := range s.Numbers() {
		n := &t.root
		for _, a := range slices.Backward(s.Path(number)) {
			n = n.child(keyOf(a), a)
		}
		leaves[number] = n
	}
	return leaves
}

// AddPath adds a call path of a process whose modules are not known here.
func (t *Tree) AddPath(p Path) {
	n := &t.root
	for _, k := range p {
		n = n.child(k, symbols.Address{Offset: k.Offset})
	}
}

func (n *Node) child(key Key, a symbols.Address) *Node {
	c := n.children[key]
	if c == nil {
		if n.children == nil {
			n.children = map[Key]*Node{}
		}
		c = &Node{key: key, address: a}
		n.children[key] = c
	}
	return c
}

// sorted returns the children in the order of their keys.
func (n *Node) sorted() []*Node {
	list := make([]*Node, 0, len(n.children))
	for _, c := range n.children {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *Node) int { return a.key.Compare(b.key) })
	return list
}

// each visits the nodes below n.
func (n *Node) each(visit func(*Node)) {
	for _, c := range n.sorted() {
		visit(c)
		c.each(visit)
	}
}

// Paths returns the paths to the frames that call nothing. They contain all others: a path that begins another one
// gets its rows with that.
func (t *Tree) Paths() []Path { return t.root.paths(nil, nil) }

func (n *Node) paths(path Path, list []Path) []Path {
	if len(n.children) == 0 && len(path) > 0 {
		return append(list, slices.Clone(path))
	}
	for _, c := range n.sorted() {
		list = c.paths(append(path, c.key), list)
	}
	return list
}

// Resolve looks up the functions of all frames, module by module. started is when the program started: modules that
// changed since then are not used. The warnings tell which modules could not be read.
func (t *Tree) Resolve(started time.Time) (frames map[Key][]symbols.Frame, warnings []string) {
	nodes := map[Key]*Node{}
	t.root.each(func(n *Node) {
		if nodes[n.key] == nil {
			nodes[n.key] = n
		}
	})
	list := make([]*Node, 0, len(nodes))
	for _, n := range nodes {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b *Node) int { return a.key.Compare(b.key) })
	r := symbols.Resolver{Started: started}
	frames = map[Key][]symbols.Frame{}
	for _, n := range list {
		frames[n.key] = r.Frames(n.address)
	}
	return frames, r.Warnings()
}

// Number numbers the call sites and returns their rows: the frames of a path one after the other, paths in the order of
// their frames' keys. frames are the functions at each place, the innermost first; nil: none are known.
func (t *Tree) Number(frames map[Key][]symbols.Frame) []schema.Callsite {
	return t.root.number(nil, schema.NullInt32, frames)
}

// number numbers the frames that n calls and appends their rows.
func (n *Node) number(rows []schema.Callsite, parent int32, frames map[Key][]symbols.Frame) []schema.Callsite {
	for _, c := range n.sorted() {
		functions := frames[c.key]
		if len(functions) == 0 {
			functions = []symbols.Frame{{}}
		}
		c.id = parent
		// inlined functions get a row each; the innermost is the call site
		for _, f := range slices.Backward(functions) {
			id := int32(len(rows))
			rows = append(rows, c.row(id, c.id, f))
			c.id = id
		}
		rows = c.number(rows, c.id, frames)
	}
	return rows
}

func (n *Node) row(id, parent int32, f symbols.Frame) schema.Callsite {
	row := schema.NullCallsite
	row.ID, row.Parent, row.Offset = id, parent, int64(n.key.Offset)
	if n.key.Module != "" {
		row.Module = handles.ValidText(n.key.Module)
	}
	if n.key.BuildID != "" {
		row.BuildID = n.key.BuildID
	}
	if f.Function != "" {
		row.Function = handles.ValidText(f.Function)
	}
	if f.File != "" && f.Line > 0 {
		row.File, row.Line = handles.ValidText(f.File), f.Line
	}
	return row
}
