package exectrace

import (
	"cmp"
	"slices"

	"github.com/commq/commq/formats/training"
)

// Operations are the operations of a process, as its execution trace has them: without times.
type Operations struct {
	File string
	// Rank is the world rank of the process, or training.Unknown: traces of Gloo do not have it.
	Rank int32
	// PID is the number of the process in its system, or training.Unknown.
	PID int64
	// Groups are the groups that the process is in; HasGroups tells that they are all.
	Groups    []training.Group
	HasGroups bool
	// ByNumber are the calls of c10d, of its backends, and record_param_comms by the number of their function (rf_id).
	// InOrder are those of record_param_comms in the order in which the program asked for them. Group is an index into
	// Groups.
	ByNumber map[int64]training.Op
	InOrder  []training.Op
}

// ReadOperations reads the execution trace of a process.
func ReadOperations(path string) (*Operations, error) {
	t, err := read(path)
	if err != nil {
		return nil, err
	}
	x := &Operations{File: path, Rank: t.own, PID: t.pid, Groups: t.Groups, HasGroups: t.HasGroups, ByNumber: t.byNumber}
	slices.SortStableFunc(t.moments, func(a, b moment) int { return cmp.Compare(a.id, b.id) })
	for _, m := range t.moments {
		if m.op >= 0 {
			x.InOrder = append(x.InOrder, t.Ops[m.op])
		}
	}
	return x, nil
}
