package exectrace

import (
	"cmp"
	"slices"

	"github.com/commq/commq/formats/training"
)

// Told is what the execution trace of a process tells of its operations. It has no times.
type Told struct {
	File string
	// Rank is the rank of the process, or training.Unknown: traces of Gloo do not tell it.
	Rank int32
	// Groups are the groups that the process is in; HasGroups tells that they are all.
	Groups    []training.Group
	HasGroups bool
	// ByNumber are the calls of c10d, of its backends, and record_param_comms by the number of their function (rf_id).
	// InOrder are those of record_param_comms in the order in which the program asked for them. Group is an index into
	// Groups.
	ByNumber map[int64]training.Op
	InOrder  []training.Op
}

// Tell reads the execution trace of a process.
func Tell(path string) (*Told, error) {
	t, err := read(path)
	if err != nil {
		return nil, err
	}
	told := &Told{File: path, Rank: t.own, Groups: t.Groups, HasGroups: t.HasGroups, ByNumber: t.told}
	slices.SortStableFunc(t.moments, func(a, b moment) int { return cmp.Compare(a.id, b.id) })
	for _, m := range t.moments {
		if m.op >= 0 {
			told.InOrder = append(told.InOrder, t.Ops[m.op])
		}
	}
	return told, nil
}
