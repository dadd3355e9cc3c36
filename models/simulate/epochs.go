package simulate

import (
	"fmt"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Exposures and accesses of windows synchronise by messages of 0 bytes: MPI_Win_post sends one to each origin, for
// which MPI_Win_start waits, and MPI_Win_complete one to each target, for which MPI_Win_wait waits. They have negative
// tags, two for each window. A window that lacks a group has none of them: else the partner of that call would wait for
// ever.
const (
	tagPosted int32 = iota
	tagCompleted
)

// syncGroup makes op what a call does that begins or ends an exposure or an access.
func (r *row) syncGroup(w *initRow) error {
	call := r.op.callID()
	if !call.IsAny(schema.FactExposes | schema.FactAccesses | schema.FactEndsAccess | schema.FactEndsExposure) {
		return nil
	}
	if r.t.setting.program.Ungrouped[run.WindowKey{Comm: r.b.Comm[r.i], Instance: w.instance}] {
		return nil
	}
	group, err := r.group()
	if err != nil {
		return err
	}
	switch {
	case call.Is(schema.FactExposes):
		w.origins = group
		r.signal(opSend, group, w, tagPosted)
	case call.Is(schema.FactAccesses):
		w.targets = group
		r.signal(opRecv, group, w, tagPosted)
	case call.Is(schema.FactEndsAccess):
		r.signal(opSend, w.targets, w, tagCompleted)
		w.targets = nil
	default:
		r.signal(opRecv, w.origins, w, tagCompleted)
		w.origins = nil
	}
	return nil
}

// group is the group in the row's label; nil where it has none.
func (r *row) group() ([]int32, error) {
	group, err := schema.GroupOf(r.b.Label[r.i], len(r.t.ranks))
	if err != nil {
		return nil, fmt.Errorf("rank %d, seq %d: %s: %w", r.rank, r.op.seq, r.op.callID(), err)
	}
	return group, nil
}

// signal sends a message of 0 bytes to each of some ranks, or receives one from each.
func (r *row) signal(kind opKind, ranks []int32, w *initRow, what int32) {
	for _, peer := range ranks {
		if r.op.kind != opLocal {
			r.addOp()
		}
		r.op.kind, r.op.peer, r.op.tag = kind, peer, -2-2*int32(w.instance)-what
		if kind == opSend {
			r.op.flags |= flagBuffered
		}
	}
}
