package run

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Run is a run on disk that has what its reader needs. It is safe for concurrent use.
type Run struct {
	// Dir is the run's folder, Name the last element of its path.
	Dir, Name string
	// Manifest describes the run.
	Manifest *schema.Manifest
	// Comms are the communicators, by ID.
	Comms []Comm
	// Datatypes are the rows of the table datatypes, by ID.
	Datatypes []schema.Datatype
	// Ranks describes the processes of MPI_COMM_WORLD.
	Ranks Ranks

	sites callsites
}

// Opened is the run for those who read its tables: an error tells if another run has replaced it since it was opened.
func (r *Run) Opened() writer.Opened { return writer.Opened{Dir: r.Dir, Digest: r.Manifest.Digest} }

// Ranks describes the processes of MPI_COMM_WORLD, a slice per column, all indexed by world rank.
type Ranks struct {
	// Threads is the number of threads that called MPI.
	Threads []int32
	// Rows is the number of rows of events: seq counts up from 0 to it in a run that has the rows of all calls.
	Rows []int64
	// Host is the number of the machine that the rank ran on.
	Host []int32
}

// Open reads the manifest and the small tables of the run in folder dir. When the run lacks something of need the
// error names all of it and tells how to capture the run again.
func Open(ctx context.Context, dir string, need Need) (*Run, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	r := &Run{Dir: dir, Name: filepath.Base(dir), Manifest: m}
	if err := need.Check(r.Name, m); err != nil {
		return nil, err
	}
	if r.Comms, err = readComms(ctx, r.Opened()); err != nil {
		return nil, err
	}
	if r.Datatypes, err = Rows[schema.Datatype](ctx, r, &schema.DatatypesTable); err != nil {
		return nil, err
	}
	return r, readRanks(ctx, r.Opened(), m.Ranks, func(t *schema.RankInfos) {
		r.Ranks.Threads = append(r.Ranks.Threads, t.Threads...)
		r.Ranks.Rows = append(r.Ranks.Rows, t.Events...)
		r.Ranks.Host = append(r.Ranks.Host, t.Host...)
	})
}

// ReadManifest reads the manifest of the run in folder dir, for readers that do not Open it but keep something for each
// rank: it is an error if not every rank has its row, as the number alone may be wrong and large. When the run lacks
// something of need the error is that of Open.
func ReadManifest(ctx context.Context, dir string, need Need) (*schema.Manifest, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	if err := need.Check(filepath.Base(dir), m); err != nil {
		return nil, err
	}
	return m, readRanks(ctx, writer.Opened{Dir: dir, Digest: m.Digest}, m.Ranks, func(*schema.RankInfos) {})
}

// readManifest reads the manifest of the run in folder dir and compares its digest.
func readManifest(dir string) (*schema.Manifest, error) {
	m, err := writer.ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	if err := m.CompareDigest(); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return m, nil
}

// readRanks reads the table ranks, which must have a row for each of the ranks.
func readRanks(ctx context.Context, from writer.Opened, ranks int32, add func(*schema.RankInfos)) error {
	rows := 0
	wrong := func(is string) error {
		return fmt.Errorf("%s: the manifest says %d ranks, and the table ranks has %s rows; the run is damaged: copy it or "+
			"capture it again", from.Dir, ranks, is)
	}
	err := from.ReadTable(ctx, &schema.RanksTable, smallRows, func(b schema.Batch) error {
		if rows += b.Len(); rows > int(ranks) {
			return wrong("more")
		}
		add(b.(*schema.RankInfos))
		return nil
	})
	if err == nil && rows < int(ranks) {
		err = wrong(fmt.Sprint(rows))
	}
	return err
}

// smallRows is the number of rows of a small table that are read at once.
const smallRows = 4096

// Rows reads all rows of a table into memory, R being the table's row type: for small tables only.
func Rows[R any](ctx context.Context, r *Run, t *schema.Table) (all []R, err error) {
	err = r.Opened().ReadTable(ctx, t, smallRows, func(b schema.Batch) error {
		rows := b.(interface{ Row(int, *R) })
		for i := range b.Len() {
			var row R
			rows.Row(i, &row)
			all = append(all, row)
		}
		return nil
	})
	return all, err
}
