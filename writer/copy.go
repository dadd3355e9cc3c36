package writer

import (
	"context"

	"github.com/commq/commq/schema"
)

// CopyTable writes the rows of table t of the run in folder dir into the run r, file by file, changed by fn; fn may be nil. See
// ChangeTable.
func (r *Run) CopyTable(ctx context.Context, dir string, t *schema.Table, batchRows int, fn func(schema.Batch) error) error {
	return r.ChangeTable(ctx, dir, t, batchRows, func(b schema.Batch) (schema.Batch, error) {
		if fn == nil {
			return b, nil
		}
		return b, fn(b)
	})
}

// ChangeTable writes, file by file, the rows that fn makes of those of table t of the run in folder dir into the run r; with fn nil
// the same. A derived table is not copied: the writer makes it again.
func (r *Run) ChangeTable(ctx context.Context, dir string, t *schema.Table, batchRows int, fn func(schema.Batch) (schema.Batch, error)) error {
	if t.Derived {
		return nil
	}
	files, err := tableFiles(dir, t)
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
