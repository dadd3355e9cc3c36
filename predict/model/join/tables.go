package join

import (
	"slices"

	"github.com/commq/commq/predict/internal/nulls"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// tables numbers what the tables of all runs have.
type tables struct {
	sites     map[string]int32 // joint ids, by key of the call path
	datatypes map[signature.Datatype]int32
	comms     int32 // so far
	runs      []runTables
}

// runTables maps the ids of one run to joint ones.
type runTables struct {
	first     int32           // joint rank of rank 0
	site      map[int32]int32 // of call sites
	level     map[int32]int32 // of a recursion, by the run's own call site
	datatype  map[int32]int32
	comm      map[int32]int32
	signature *signature.Signature
}

// add adds a run, whose rank 0 is the joint rank first, and appends new rows to the joint tables. It returns the run's
// communicators in the order of their joint ids.
func (t *tables) add(s *signature.Signature, first int32, levelsAsIterations bool,
	all *signature.Run) (comms []*signature.Comm) {
	r := runTables{first: first, signature: s, datatype: map[int32]int32{}, comm: map[int32]int32{}}
	r.site, r.level = t.addSites(s, levelsAsIterations, all)
	for _, d := range s.Datatypes {
		key := signature.Datatype{Name: d.Name, Bytes: d.Bytes}
		id, known := t.datatypes[key]
		if !known {
			id = int32(len(t.datatypes))
			t.datatypes[key] = id
			row := schema.NullDatatype
			row.ID, row.Name, row.Bytes, row.ExtentBytes = id, nulls.Text(d.Name), d.Bytes, d.Bytes
			all.Datatypes = append(all.Datatypes, row)
		}
		r.datatype[d.ID] = id
	}
	for i := range s.Comms {
		c := &s.Comms[i]
		id := t.comms
		t.comms++
		r.comm[c.ID] = id
		comms = append(comms, c)
		for group, members := range []signature.Ranks{c.Members, c.Remote} {
			for place, world := range members {
				row := schema.NullComm
				row.Comm, row.Remote, row.CommRank, row.WorldRank = id, int32(group), int32(place), schema.NullInt32
				if world >= 0 {
					row.WorldRank = world + first
				}
				row.Kind, row.Name = int16(max(0, slices.Index(schema.CommKindNames, c.Kind))), nulls.Text(c.Name)
				all.Comms = append(all.Comms, row)
			}
		}
	}
	t.runs = append(t.runs, r)
	return comms
}

// addSites adds the call sites of a run and returns their joint ids and recursion levels.
func (t *tables) addSites(s *signature.Signature, levelsAsIterations bool,
	all *signature.Run) (site, level map[int32]int32) {
	paths, level := signature.CallPaths(s.Frames, levelsAsIterations)
	site = map[int32]int32{}
	for i := range s.Frames { // a frame comes after its parent
		f := &s.Frames[i]
		path, parent := paths[f.ID], schema.NullInt32
		if f.Parent != nil {
			parent = site[*f.Parent]
		}
		id, known := t.sites[path]
		if !known {
			id = int32(len(t.sites))
			t.sites[path] = id
			all.Callsites = append(all.Callsites, f.Row(id, parent))
		}
		site[f.ID] = id
	}
	return site, level
}

// toJoint replaces an id or rank that is not null by a joint one.
func toJoint(id *int32, joint map[int32]int32) {
	if *id != schema.NullInt32 {
		*id = joint[*id]
	}
}

// joinRow makes a row of the run a row of the joint run.
func (r *runTables) joinRow(e *schema.Event) {
	e.Rank += r.first
	for _, world := range []*int32{&e.SendWorld, &e.RecvWorld, &e.RootWorld} {
		if *world != schema.NullInt32 {
			*world += r.first
		}
	}
	toJoint(&e.Comm, r.comm)
	toJoint(&e.SendDatatype, r.datatype)
	toJoint(&e.RecvDatatype, r.datatype)
	toJoint(&e.Callsite, r.site)
}

// joinSide returns a copy of a side with the joint datatype.
func (r *runTables) joinSide(s signature.Side) signature.Side {
	if s == nil {
		return nil
	}
	joint := slices.Clone(s)
	datatype := s[signature.SideDatatype].Int32()
	toJoint(&datatype, r.datatype)
	joint[signature.SideDatatype] = signature.IntOf(datatype)
	return joint
}
