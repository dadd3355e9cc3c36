package predict

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// training are runs of a program at several numbers of ranks, with one template: calls are the same when their call paths are. It is a signature of
// all runs side by side, as if they were one with the ranks of all.
type training struct {
	*Signature
	runs []*Signature // by number of ranks
	base []int32      // the first rank of a run
	// levels says that levels of a recursion are iterations of loops.
	levels bool
	// Of the joint tables: the run and its own id of a communicator.
	commOf []commOf
}

type commOf struct {
	run  int
	comm *Comm
}

// join puts runs together. It is an error when two have the same number of ranks, and when they are fewer than two.
func join(runs []*Signature) (*training, error) {
	t, _, err := sideBySide(runs)
	return t, err
}

// sideBySide is join, with all runs as one. Where a recursion branches its levels stay calls of their own.
func sideBySide(runs []*Signature) (*training, *Run, error) {
	t, all, err := sideBySideBy(runs, true)
	if errors.Is(err, errBranches) {
		return sideBySideBy(runs, false)
	}
	return t, all, err
}

// sideBySideBy is sideBySide, with levels of a recursion as iterations or not.
func sideBySideBy(runs []*Signature, levels bool) (*training, *Run, error) {
	t := &training{runs: slices.Clone(runs), levels: levels}
	slices.SortFunc(t.runs, func(a, b *Signature) int { return int(a.Ranks) - int(b.Ranks) })
	for i := 1; i < len(t.runs); i++ {
		if t.runs[i].Ranks == t.runs[i-1].Ranks {
			return nil, nil, fmt.Errorf("%q and %q both have %d ranks; give one of them", t.runs[i-1].Run, t.runs[i].Run, t.runs[i].Ranks)
		}
	}
	if len(t.runs) < 2 {
		return nil, nil, fmt.Errorf("%d runs: nothing can be said of other numbers of ranks from less than two, and little from less than four", len(t.runs))
	}
	all := &Run{Name: "all", Manifest: &schema.Manifest{Record: "all"}}
	j := joiner{training: t, sites: map[string]int32{}, datatypes: map[Datatype]int32{}}
	for i, s := range t.runs {
		t.base = append(t.base, all.Manifest.Ranks)
		all.Manifest.Ranks += s.Ranks
		j.read(i, s, all)
	}
	all.Events = j.rows
	s := emptySigner(all)
	t.Signature = s.sig
	if err := s.signFrom(j.restate()); err != nil {
		return t, all, err
	}
	if s.cuts = t.straighten(); s.cuts == nil {
		return t, all, nil
	}
	s.sig.link()
	return t, all, s.readValues(j.values) // call by call: what is repeated may end in the middle now
}

// joiner gives the ids of runs' tables joint ones.
type joiner struct {
	*training
	sites     map[string]int32 // by what the call path says
	datatypes map[Datatype]int32
	siteOf    []map[int32]int32 // by run
	levelOf   []map[int32]int32 // of call sites, by run: the level of a recursion; none: there is none
	typeOf    []map[int32]int32
	commIDs   []map[int32]int32
}

func (j *joiner) read(run int, s *Signature, all *Run) {
	paths, levels := s.callPaths(j.training.levels)
	sites := map[int32]int32{}
	j.levelOf = append(j.levelOf, levels)
	for i := range s.Frames { // a frame comes behind its parent
		f := &s.Frames[i]
		path, parent := paths[f.ID], schema.NullInt32
		if f.Parent != nil {
			parent = sites[*f.Parent]
		}
		id, known := j.sites[path]
		if !known {
			id = int32(len(j.sites))
			j.sites[path] = id
			row := schema.NullCallsite
			row.ID, row.Parent = id, parent
			row.Module, row.BuildID, row.Function, row.File = orNull(f.Module), orNull(f.BuildID), orNull(f.Function), orNull(f.File)
			row.Offset, row.Line = value(f.Offset, schema.NullInt64), value(f.Line, schema.NullInt32)
			all.Callsites = append(all.Callsites, row)
		}
		sites[f.ID] = id
	}
	j.siteOf = append(j.siteOf, sites)
	types := map[int32]int32{}
	for _, d := range s.Datatypes {
		key := Datatype{Name: d.Name, Bytes: d.Bytes}
		id, known := j.datatypes[key]
		if !known {
			id = int32(len(j.datatypes))
			j.datatypes[key] = id
			row := schema.NullDatatype
			row.ID, row.Name, row.Bytes, row.ExtentBytes = id, orNull(d.Name), d.Bytes, d.Bytes
			all.Datatypes = append(all.Datatypes, row)
		}
		types[d.ID] = id
	}
	j.typeOf = append(j.typeOf, types)
	comms := map[int32]int32{}
	for i := range s.Comms {
		c := &s.Comms[i]
		id := int32(len(j.commOf))
		comms[c.ID] = id
		j.commOf = append(j.commOf, commOf{run, c})
		for group, members := range []Ranks{c.Members, c.Remote} {
			for place, world := range members {
				row := schema.NullComm
				row.Comm, row.Remote, row.CommRank, row.WorldRank = id, int32(group), int32(place), schema.NullInt32
				if world >= 0 {
					row.WorldRank = world + j.base[run]
				}
				row.Kind = int16(max(0, slices.Index(schema.CommKindNames, c.Kind)))
				all.Comms = append(all.Comms, row)
			}
		}
	}
	j.commIDs = append(j.commIDs, comms)
}

// key is what a frame is known by in another run: place in the module, else in the source.
func (f *Frame) key() string {
	if f.Offset != nil {
		return fmt.Sprintf("|%s+%d", f.Module, *f.Offset)
	}
	return fmt.Sprintf("|%s %s:%d", f.Function, f.File, value(f.Line, 0))
}

// callPaths are what frames are known by in other runs: those of the call path; and at which level of a recursion each is, from 0. A function that calls itself at one
// place has one frame at all levels, if they are iterations of a loop, however many there are with more ranks; else each is another path, of level 0.
func (s *Signature) callPaths(iterations bool) (paths map[int32]string, levels map[int32]int32) {
	paths, levels = map[int32]string{}, map[int32]int32{}
	by := map[int32]*Frame{}
	for i := range s.Frames { // a frame comes behind its parent
		f := &s.Frames[i]
		by[f.ID] = f
		path, level := f.key(), int32(0)
		if f.Parent != nil {
			caller := by[*f.Parent]
			level = levels[caller.ID]
			if iterations && caller.key() == path && caller.Function == f.Function && value(caller.Line, 0) == value(f.Line, 0) {
				path = ""
				level++
			}
			path = paths[caller.ID] + path
		}
		paths[f.ID], levels[f.ID] = path, level
	}
	return paths, levels
}

func orNull(t string) string {
	if t == "" {
		return schema.NullText
	}
	return t
}

// row makes a row of a run one of all.
func (j *joiner) row(run int, e *schema.Event) {
	base := j.base[run]
	e.Rank += base
	for _, world := range []*int32{&e.SendWorld, &e.RecvWorld, &e.RootWorld} {
		if *world != schema.NullInt32 {
			*world += base
		}
	}
	renumber(&e.Comm, j.commIDs[run])
	renumber(&e.SendDatatype, j.typeOf[run])
	renumber(&e.RecvDatatype, j.typeOf[run])
	renumber(&e.Callsite, j.siteOf[run])
}

func renumber(id *int32, to map[int32]int32) {
	if *id != schema.NullInt32 {
		*id = to[*id]
	}
}

// ranksText lists numbers of ranks.
func (t *training) ranksText() string {
	var all []string
	for _, s := range t.runs {
		all = append(all, fmt.Sprint(s.Ranks))
	}
	return strings.Join(all, ", ")
}
