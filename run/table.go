package run

import (
	"context"
	"slices"

	"github.com/commq/commq/schema"
)

// Callsites passes all rows of the table callsites to add, which must not keep them.
func (r *Run) Callsites(ctx context.Context, add func(*schema.Callsites) error) error {
	return r.Opened().ReadTable(ctx, &schema.CallsitesTable, smallRows,
		func(b schema.Batch) error { return add(b.(*schema.Callsites)) })
}

// NeverCalls reports whether the run's profile shows that no rank made any of these calls. It is false for a run
// without a profile, which may have them or not.
func (r *Run) NeverCalls(ctx context.Context, calls ...schema.CallID) (bool, error) {
	profiled := slices.ContainsFunc(r.Manifest.Tables, func(t schema.TableInfo) bool {
		return t.Name == schema.ProfileTable.Name && len(t.Files) > 0
	})
	if !profiled {
		return false, nil
	}
	never := true
	err := r.Opened().ReadTable(ctx, &schema.ProfileTable, smallRows, func(b schema.Batch) error {
		never = never && !slices.ContainsFunc(b.(*schema.Profiles).Call, func(call int16) bool {
			return slices.Contains(calls, schema.CallID(call))
		})
		return nil
	})
	return never, err
}
