package ingest

import (
	"context"
	"errors"
	"fmt"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// ErrNoJob means that a spool folder has no records.
var ErrNoJob = errors.New("no rank recorded anything: none called MPI_Init under the shim, or none could write to the spool; there is no run")

// IngestAll writes a run for each job in a spool folder, because a script may start several MPI programs. The first
// becomes out, the others NAME.2, NAME.3 and so on in the store. done gets the manifest of each run that was written,
// and the number of its ranks that have no records. A folder without a job is ErrNoJob.
func IngestAll(ctx context.Context, spoolDir string, out *writer.Run, store, name string, o Options,
	done func(m *schema.Manifest, absent int)) error {
	jobs, err := Jobs(spoolDir)
	if err != nil {
		return err
	}
	if len(jobs) == 0 {
		return ErrNoJob
	}
	for i, j := range jobs {
		if i > 0 {
			name := fmt.Sprintf("%s.%d", name, i+1)
			if out, err = writer.Create(store, name, writer.Options{Replace: o.Replace}); err != nil {
				return err
			}
			defer out.Abort()
		}
		o.Job = j.ID
		m, recorded, err := ingest(ctx, spoolDir, out, o)
		if err != nil {
			_ = out.Abort() // the first error counts
			return err
		}
		done(m, int(m.Ranks)-recorded)
	}
	return nil
}
