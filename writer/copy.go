package writer

import (
	"context"

	"github.com/commq/commq/schema"
)

// CopyTable copies table t of the run in folder dir to r, file by file. fn may change the rows of a batch in place;
// it may be nil. Derived tables are not copied, see ChangeTable.
func (r *Run) CopyTable(ctx context.Context, dir string, t *schema.Table, batchRows int,
	fn func(schema.Batch) error) error {
	return r.ChangeTable(ctx, dir, t, batchRows, func(b schema.Batch) (schema.Batch, error) {
		if fn == nil {
			return b, nil
		}
		return b, fn(b)
	})
}

// ChangeTable copies table t of the run in folder dir to r, file by file, and replaces each batch by what fn returns
// for it; fn may be nil. Derived tables are not copied, as the writer makes them again.
func (r *Run) ChangeTable(ctx context.Context, dir string, t *schema.Table, batchRows int,
	fn func(schema.Batch) (schema.Batch, error)) error {
	if t.Derived {
		return nil
	}
	files, err := listFiles(ctx, dir, t)
	if err != nil {
		return err
	}
	for shard, name := range files {
		err := readFile(ctx, dir, name, newReadBuffers(t, batchRows), func(b schema.Batch) error {
			if fn != nil {
				var err error
				if b, err = fn(b); err != nil {
					return err
				}
			}
			return r.Write(shard, b)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
