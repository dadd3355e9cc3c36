package ingest

import (
	"cmp"
	"slices"
	"time"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/symbols"
	"github.com/commq/commq/schema"
)

// siteKey is equal for frames that are one and the same place in a program, whichever process they are of. It is what
// ids follow, so nothing of it may depend on the run: no address, no number.
type siteKey struct {
	module  string // file name; empty: in no module
	buildID string
	path    string // only where there is no build id: then the path tells files of one name apart
	offset  uint64
}

// compare puts what is in no module last: those addresses differ from run to run, and ids behind them would.
func (k siteKey) compare(o siteKey) int {
	return cmp.Or(boolFirst(k.module != "", o.module != ""), cmp.Compare(k.module, o.module), cmp.Compare(k.buildID, o.buildID), cmp.Compare(k.path, o.path), cmp.Compare(k.offset, o.offset))
}

// siteNode is a frame of the call paths, a tree from the outermost frames that were walked.
type siteNode struct {
	key      siteKey
	address  symbols.Address
	children map[siteKey]*siteNode
	id       int32 // row of the innermost function at its address
}

// siteTable are the call paths of a run.
type siteTable struct {
	root  siteNode
	rows  []schema.Callsite
	stack int32 // frames that were walked; 0: none
}

// unifySites finds the call sites that are the same on all ranks and numbers them: a path's frames one after the other,
// paths in the order of their frames' modules and offsets.
func unifySites(j *job) *siteTable {
	t := &siteTable{}
	mixed := false
	for i, r := range j.ranks {
		stack := int32(r.files[0].Header.Stack)
		mixed = mixed || i > 0 && stack != t.stack
		t.stack = max(t.stack, stack)
	}
	if mixed {
		j.warn("The ranks' call sites have different numbers of frames, at most %d.", t.stack)
	}
	leaves := make([]map[uint32]*siteNode, len(j.ranks))
	for i, r := range j.ranks {
		if r.files[0].Header.Stack > 0 && !r.elsewhere {
			leaves[i] = t.add(&r.sites)
		}
	}
	for _, p := range j.paths {
		t.addPath(p)
	}
	t.number(j)
	for i, r := range j.ranks {
		for number, n := range leaves[i] {
			r.siteID.set(int64(number), n.id)
		}
	}
	return t
}

// add adds a process's paths to the tree and returns their innermost frames.
func (t *siteTable) add(s *symbols.Sites) map[uint32]*siteNode {
	leaves := map[uint32]*siteNode{}
	for _, number := range s.Numbers() {
		n := &t.root
		for _, a := range slices.Backward(s.Path(number)) {
			n = n.child(a)
		}
		leaves[number] = n
	}
	return leaves
}

func (n *siteNode) child(a symbols.Address) *siteNode { return n.childOf(keyOf(a), a) }

func keyOf(a symbols.Address) siteKey {
	key := siteKey{offset: a.Offset}
	if m := a.Module; m != nil {
		key.module, key.buildID = m.Name(), m.BuildID
		if m.BuildID == "" {
			key.path = m.Path
		}
	}
	return key
}

func (n *siteNode) childOf(key siteKey, a symbols.Address) *siteNode {
	c := n.children[key]
	if c == nil {
		if n.children == nil {
			n.children = map[siteKey]*siteNode{}
		}
		c = &siteNode{key: key, address: a}
		n.children[key] = c
	}
	return c
}

// number makes the rows, and the ids with them.
func (t *siteTable) number(j *job) {
	frames := j.frames
	if frames == nil && !j.o.NoSymbols {
		frames = j.resolve(&t.root)
	}
	j.warnModules(j.moduleWarnings)
	t.rowsOf(&t.root, schema.NullInt32, frames)
}

// rowsOf makes the rows of the frames called from a node.
func (t *siteTable) rowsOf(n *siteNode, parent int32, frames map[siteKey][]symbols.Frame) {
	for _, c := range n.sorted() {
		of := frames[c.key]
		if len(of) == 0 {
			of = []symbols.Frame{{}}
		}
		c.id = parent
		for _, f := range slices.Backward(of) { // functions within each other: the innermost is the path's
			c.id = t.addRow(c, c.id, f)
		}
		t.rowsOf(c, c.id, frames)
	}
}

func (n *siteNode) sorted() []*siteNode {
	list := make([]*siteNode, 0, len(n.children))
	for _, c := range n.children {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *siteNode) int { return a.key.compare(b.key) })
	return list
}

func (t *siteTable) addRow(n *siteNode, parent int32, f symbols.Frame) int32 {
	row := schema.NullCallsite
	row.ID, row.Parent, row.Offset = int32(len(t.rows)), parent, int64(n.key.offset)
	if n.key.module != "" {
		row.Module = validText(n.key.module)
	}
	if n.key.buildID != "" {
		row.BuildID = n.key.buildID
	}
	if f.Function != "" {
		row.Function = validText(f.Function)
	}
	if f.File != "" && f.Line > 0 {
		row.File, row.Line = validText(f.File), f.Line
	}
	t.rows = append(t.rows, row)
	return row.ID
}

// resolve looks up the functions of all frames, module by module.
func (j *job) resolve(root *siteNode) map[siteKey][]symbols.Frame {
	nodes := map[siteKey]*siteNode{}
	root.each(func(n *siteNode) {
		if nodes[n.key] == nil {
			nodes[n.key] = n
		}
	})
	list := make([]*siteNode, 0, len(nodes))
	for _, n := range nodes {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b *siteNode) int { return a.key.compare(b.key) })
	r := symbols.Resolver{Started: j.started()}
	frames := map[siteKey][]symbols.Frame{}
	for _, n := range list {
		frames[n.key] = r.Frames(n.address)
	}
	j.warnModules(r.Warnings())
	return frames
}

// warnModules says of which modules functions are not known.
func (j *job) warnModules(warnings []string) {
	for i, w := range warnings {
		if i < maxNamed {
			j.warn("%s", w)
		}
	}
}

// each visits the nodes below n.
func (n *siteNode) each(f func(*siteNode)) {
	for _, c := range n.sorted() {
		f(c)
		c.each(f)
	}
}

// started is when the first process called MPI_Init.
func (j *job) started() time.Time {
	first := j.ranks[0].files[0].Header.RealtimeNs
	for _, r := range j.ranks {
		first = min(first, r.files[0].Header.RealtimeNs)
	}
	return time.Unix(0, first)
}

// write puts the table callsites into the run.
func (t *siteTable) write(out sink) error {
	b := &schema.Callsites{}
	for i := range t.rows {
		b.Append(&t.rows[i])
	}
	return out.Write(0, b)
}

// siteOf is the id of a call's site; null where it has none.
func (r *rankSpool) siteOf(c *spool.Call) int32 {
	if c.Site == 0 || c.Site > 1<<31-1 {
		return schema.NullInt32
	}
	if id, ok := r.siteID.get(int32(c.Site)); ok {
		return id
	}
	return schema.NullInt32
}
