package run

import (
	"context"

	"github.com/commq/commq/schema"
)

// WindowKey identifies a window: the communicator of the call that made it, and the instance of that call.
type WindowKey struct {
	Comm     int32
	Instance int64
}

// Ungrouped returns the windows with an MPI_Win_post or MPI_Win_start whose group is not recorded. Posts and starts of
// such a window cannot be matched: the n-th of a rank for another one may be the one without a group.
func (r *Run) Ungrouped(ctx context.Context) (map[WindowKey]bool, error) {
	never, err := r.NeverCalls(ctx, schema.CallWinPost, schema.CallWinStart)
	if never || err != nil {
		return nil, err
	}
	type place struct { // of the row that made a window
		rank int32
		seq  int64
	}
	made, lack := map[place]WindowKey{}, map[place]bool{}
	err = r.Events(ctx, "rank", "seq", "call", "comm", "instance", "init_seq", "error_class", "label")(
		func(b *schema.Events) error {
			for i, id := range b.Call {
				switch call := schema.CallID(id); {
				case call.Is(schema.FactCreatesWindow):
					made[place{b.Rank[i], b.Seq[i]}] = WindowKey{b.Comm[i], b.Instance[i]}
				case call.IsAny(schema.FactExposes|schema.FactAccesses) && b.Label[i] == schema.NullText &&
					b.ErrorClass[i] == schema.NullInt32:
					lack[place{b.Rank[i], b.InitSeq[i]}] = true
				}
			}
			return nil
		})
	ungrouped := map[WindowKey]bool{}
	for at := range lack {
		if key, ok := made[at]; ok {
			ungrouped[key] = true
		}
	}
	return ungrouped, err
}
