package signature

import (
	"fmt"
	"slices"

	"github.com/commq/commq/predict/internal/nulls"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// CallName describes the event with this node ID for people: the call, and function, file and line as far as known.
func (s *Signature) CallName(event int32) string { return s.NodeName(s.nodes[event]) }

// NodeName describes a node for people.
func (s *Signature) NodeName(n *template.Node) string {
	if n.Loop {
		return fmt.Sprintf("loop %d", n.ID)
	}
	sym := &s.Symbols[n.Symbol]
	var f *Frame
	if sym.Frame != nil {
		f = findFrame(s.Frames, *sym.Frame)
	}
	switch {
	case f == nil:
		return fmt.Sprintf("%s (%d)", sym.Call, n.ID)
	case f.Line != nil:
		return fmt.Sprintf("%s in %s, %s:%d (%d)", sym.Call, f.Function, f.File, *f.Line, n.ID)
	}
	return fmt.Sprintf("%s in %s+%#x (%d)", sym.Call, f.Function, nulls.Value(f.Offset, 0), n.ID)
}

// findFrame returns the frame with an id; nil if there is none. frames are ordered by id.
func findFrame(frames []Frame, id int32) *Frame {
	i, found := slices.BinarySearchFunc(frames, id, func(f Frame, id int32) int { return int(f.ID) - int(id) })
	if !found {
		return nil
	}
	return &frames[i]
}

// key identifies a frame in any run of the program: by its place in the module, else in the source.
func (f *Frame) key() string {
	if f.Offset != nil {
		return fmt.Sprintf("|%s+%d", f.Module, *f.Offset)
	}
	return fmt.Sprintf("|%s %s:%d", f.Function, f.File, nulls.Value(f.Line, 0))
}

// Row returns a row of the table callsites for the frame, with another id and parent.
func (f *Frame) Row(id, parent int32) schema.Callsite {
	row := schema.NullCallsite
	row.ID, row.Parent = id, parent
	row.Module, row.BuildID = nulls.Text(f.Module), nulls.Text(f.BuildID)
	row.Function, row.File = nulls.Text(f.Function), nulls.Text(f.File)
	row.Offset, row.Line = nulls.Value(f.Offset, schema.NullInt64), nulls.Value(f.Line, schema.NullInt32)
	return row
}

// CallPaths returns, by the id of a signature's frames, a key of the call path that is the same in all runs of the
// program, and the level of recursion, from 0. If levelsAsIterations is set, a function that calls itself at one place
// has the same key at all levels, however many there are with more ranks; else every level has its own key and is level
// 0.
func CallPaths(all []Frame, levelsAsIterations bool) (paths map[int32]string, levels map[int32]int32) {
	paths, levels = map[int32]string{}, map[int32]int32{}
	frames := map[int32]*Frame{}
	for i := range all { // a frame comes after its parent
		f := &all[i]
		frames[f.ID] = f
		path, level := f.key(), int32(0)
		if f.Parent != nil {
			caller := frames[*f.Parent]
			level = levels[caller.ID]
			if levelsAsIterations && caller.key() == path && caller.Function == f.Function &&
				nulls.Value(caller.Line, 0) == nulls.Value(f.Line, 0) {
				path = ""
				level++
			}
			path = paths[caller.ID] + path
		}
		paths[f.ID], levels[f.ID] = path, level
	}
	return paths, levels
}

// EventPaths returns, by node ID, a key of each event that is the same in all runs of the program: call and call path.
func (s *Signature) EventPaths(levelsAsIterations bool) []string {
	paths, _ := CallPaths(s.Frames, levelsAsIterations)
	all := make([]string, len(s.nodes))
	for _, n := range s.nodes {
		if !n.Loop {
			sym := &s.Symbols[n.Symbol]
			all[n.ID] = sym.Call + " " + paths[nulls.Value(sym.Frame, -1)]
		}
	}
	return all
}
