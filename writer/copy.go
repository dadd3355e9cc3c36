package writer

import (
	"context"

	"github.com/commq/commq/schema"
)

// CopyTable writes the rows of table t of the run in folder dir into the run r, file by file, changed by fn; fn may be nil.
func (r *Run) CopyTable(ctx context.Context, dir string, t *schema.Table, batchRows int, fn func(schema.Batch) error) error {
	files, err := tableFiles(dir, t)
	if err != nil {
		return err
	}
	for shard, name := range files {
		err := readFile(ctx, dir, name, t, batchRows, func(b schema.Batch) error {
			if fn != nil {
				if err := fn(b); err != nil {
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
