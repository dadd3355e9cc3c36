package otf2

import "github.com/commq/commq/schema"

// sites are the call paths of a location as a tree: regions that were entered, outside calls of MPI. A node is an
// index; its parent has a smaller one.
type sites struct {
	j      *job
	nodes  []site
	byKey  map[siteKey]int32
	byCtx  map[uint32]int32
	ids    []int32 // by node: the id in the run, after the first pass
	lastP  int32
	lastR  uint32
	lastID int32
}

type site struct {
	parent int32
	region uint32
	source uint32 // where in it the call is, undefined32 if unknown
	used   bool
}

type siteKey struct {
	parent         int32
	region, source uint32
}

func newSites(j *job) *sites {
	return &sites{j: j, byKey: map[siteKey]int32{}, byCtx: map[uint32]int32{}, lastID: -1}
}

// child returns the node of a region that was entered below another; context is that of a sampled trace, or -1.
func (s *sites) child(parent int32, region uint32, context int64) int32 {
	if context >= 0 {
		return s.context(uint32(context), true)
	}
	if s.lastID >= 0 && s.lastP == parent && s.lastR == region {
		return s.lastID
	}
	s.lastP, s.lastR, s.lastID = parent, region, s.node(siteKey{parent, region, undefined32})
	return s.lastID
}

func (s *sites) node(k siteKey) int32 {
	n, ok := s.byKey[k]
	if !ok {
		n = int32(len(s.nodes))
		s.nodes = append(s.nodes, site{parent: k.parent, region: k.region, source: k.source})
		s.byKey[k] = n
	}
	return n
}

// context returns the node of a calling context: its region too, or only the callers of it.
func (s *sites) context(id uint32, own bool) int32 {
	c, ok := s.j.contexts[id]
	if !ok {
		return null32
	}
	if !own {
		// The source of a context is the place in its region; that of a call of MPI is in the caller.
		if c.parent == undefined32 {
			return null32
		}
		return s.context(c.parent, true)
	}
	if n, ok := s.byCtx[id]; ok {
		return n
	}
	s.byCtx[id] = null32 // ends a circle of parents
	parent := int32(null32)
	if c.parent != undefined32 {
		parent = s.context(c.parent, true)
	}
	n := s.node(siteKey{parent, c.region, c.source})
	s.byCtx[id] = n
	return n
}

// use marks a node as one of a call's row.
func (s *sites) use(n int32) {
	for ; n != null32 && !s.nodes[n].used; n = s.nodes[n].parent {
		s.nodes[n].used = true
	}
}

// id returns the id in the run; in the first pass, which makes the ids, the node.
func (s *sites) id(n int32) int32 {
	if n == null32 || s.ids == nil {
		return n
	}
	return s.ids[n]
}

// siteTable makes the table callsites of all locations' call paths.
type siteTable struct {
	rows  schema.Callsites
	byKey map[siteKey]int32
}

// add gives ids to the nodes of a location that calls of MPI use.
func (t *siteTable) add(s *sites) {
	s.ids = make([]int32, len(s.nodes))
	for n, x := range s.nodes {
		s.ids[n] = null32
		if !x.used {
			continue
		}
		k := siteKey{null32, x.region, x.source}
		if x.parent != null32 {
			k.parent = s.ids[x.parent]
		}
		id, ok := t.byKey[k]
		if !ok {
			id = int32(len(t.byKey))
			t.byKey[k] = id
			t.append(s.j, id, k)
		}
		s.ids[n] = id
	}
}

// append adds a row. Only commq itself writes the line of a call as the first line of its region; all others write
// that of the function.
func (t *siteTable) append(j *job, id int32, k siteKey) {
	row := schema.NullCallsite
	row.ID, row.Parent = id, k.parent
	r := j.regions[k.region]
	if name := j.strings[r.name]; name != "" && name != unknownFrame {
		row.Function = name
	}
	if file := j.strings[r.file]; file != "" {
		row.File = file
		if j.ours && r.line != 0 && r.line < 1<<31 {
			row.Line = int32(r.line)
		}
	}
	if source, ok := j.sources[k.source]; ok && k.source != undefined32 && source.line < 1<<31 {
		row.File, row.Line = j.strings[source.file], int32(source.line)
	}
	t.rows.Append(&row)
}

// unknownFrame is the name of the region that the export writes for a frame without a function.
const unknownFrame = "(unknown)"
