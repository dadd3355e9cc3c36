package writer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/derive"
	"github.com/commq/commq/writer/digest"
)

// Options say how a run is written. Commands use the zero value.
type Options struct {
	// Check runs Check over the files before the run gets its name, and makes Commit fail with what it finds.
	Check bool
	// Replace allows that a run has the name already: Commit then puts the new run in its place and removes it.
	Replace bool
}

// Run is a run that is being written. Write may be called concurrently, the other methods not.
type Run struct {
	place   *place
	files   *tableFiles
	sums    sums
	options Options
	check   bool // see CheckFirst
}

// Create begins a run of that name in the store, and makes the store if it does not exist. From now on the name is
// taken: a second Create fails in any process, until Abort, and for good after Commit unless it may replace the run.
// What a killed process left is removed.
func Create(store, name string, o Options) (*Run, error) {
	p, err := takePlace(store, name, o.Replace)
	if err != nil {
		return nil, err
	}
	return &Run{place: p, files: newTableFiles(p), options: o}, nil
}

// Write appends the rows of b to the table's file of that shard, in one row group or, if there are many, several.
// Only tables with several files have shards other than 0. The Run itself writes derived tables. Different files may
// be written concurrently; the batches of one file must come in order. It returns an error when the file cannot be
// written, a row has a value that its column does not allow (null in a column that is not nullable, an enum out of
// range), or a rank has more than schema.MaxThreads threads, which readers refuse. It replaces invalid UTF-8 in texts.
func (r *Run) Write(shard int, b schema.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	if b.Table().Derived {
		return fmt.Errorf("write run %q: table %s is made by the writer", r.place.name, b.Table().Name)
	}
	if rows, ok := b.(*schema.RankInfos); ok {
		if err := checkThreadsOf(r.place.name, rows); err != nil {
			return err
		}
	}
	if err := r.files.write(shard, b); err != nil {
		return err
	}
	switch rows := b.(type) {
	case *schema.Messages:
		r.sums.count(rows)
		r.sums.addActivity(rows)
	case *schema.Events:
		r.sums.countCollectives(rows)
		r.sums.addActivity(rows)
	}
	return nil
}

// SumWaits returns the sums of the tables waits, transfers and collective_waits, and begins those of activity, so it
// comes before the first row of events or messages. Callers that hold all rows of an
// epoch give them to WaitSums.Epoch, so that Commit need not read the files again. hosts are by rank, comms is the
// whole table, and dense promises that no row of events is missing.
func (r *Run) SumWaits(hosts []int32, comms *schema.Comms, dense bool) *derive.WaitSums {
	r.sums.waits = derive.NewWaitSums(hosts, dense)
	r.sums.waits.AddComms(comms)
	r.sums.activity = derive.NewActivitySums(len(hosts))
	r.sums.activity.AddComms(comms)
	return r.sums.waits
}

// Commit finishes the run: it closes the files, fills in the manifest's SchemaVersion, Tables, Counts.OverlappingCalls,
// Digest, Origin.Name and Sum, writes it, syncs everything, and gives the run its name. A table without rows gets a file
// without rows. When it fails, or ctx ends before the run has its name, nothing remains in the store, unless the error
// is ErrInPlace, and m may be partly filled in.
func (r *Run) Commit(ctx context.Context, m *schema.Manifest) error {
	if r.files.closed {
		return fmt.Errorf("commit run %q: it is already committed or aborted", r.place.name)
	}
	err := r.seal(ctx, m)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = r.place.takeName()
	}
	named := err == nil || errors.Is(err, ErrInPlace)
	if err != nil {
		err = fmt.Errorf("commit run %q: %w", r.place.name, err)
	}
	if err = errors.Join(err, r.end()); named {
		err = inPlace(err)
	}
	return err
}

// seal completes the run in the hidden folder; it has no name yet.
func (r *Run) seal(ctx context.Context, m *schema.Manifest) error {
	if err := m.Check(); err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	m.SchemaVersion, m.Origin.Name = schema.Version, r.place.name
	if err := r.files.endProfiles(); err != nil {
		return err
	}
	if err := r.closeTables(ctx, m); err != nil {
		return err
	}
	m.Digest = digest.OfRun(m).String()
	if err := writeManifest(r.place.dir, m); err != nil {
		return err
	}
	written, err := ReadManifest(r.place.dir)
	if err == nil {
		err = verifyRun(ctx, r.place.dir, written)
	}
	if err != nil {
		return fmt.Errorf("what was written does not read back: %w", err)
	}
	if r.options.Check || r.check {
		if err := checkSealed(ctx, r.place.dir); err != nil {
			return err
		}
	}
	return r.place.sync()
}

// closeTables closes all files, makes the derived tables that need them, and lists the tables in the manifest.
func (r *Run) closeTables(ctx context.Context, m *schema.Manifest) error {
	m.Tables, m.Counts.OverlappingCalls = nil, 0
	var lacks []*schema.Table
	for _, t := range schema.Tables() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if t == &schema.WaitsTable { // the first of the tables that are made from files
			var err error
			if lacks, err = r.sums.write(ctx, r.place.dir, m, r.files); err != nil {
				return err
			}
		}
		if slices.Contains(lacks, t) {
			m.Tables = append(m.Tables, schema.TableInfo{Name: t.Name})
			continue
		}
		info, err := r.files.closeTable(t)
		if err != nil {
			return err
		}
		m.Tables = append(m.Tables, info)
		m.Counts.OverlappingCalls += r.files.overlaps(t)
	}
	return nil
}

// checkSealed returns what Check finds in the folder as an error.
func checkSealed(ctx context.Context, dir string) error {
	problems, err := Check(ctx, dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range problems {
		errs = append(errs, errors.New(p.String()))
	}
	return errors.Join(errs...)
}

// CheckFirst makes Commit run Check over the files before the run gets its name, as Options.Check does: for runs from
// records that are not whole.
func (r *Run) CheckFirst() { r.check = true }

// Abort removes what was written so far and frees the name. After Commit it does nothing.
func (r *Run) Abort() error {
	if r.files.closed {
		return nil
	}
	return r.end()
}

// end leaves nothing hidden behind. After a successful Commit the hidden folder has become the run.
func (r *Run) end() error {
	r.files.end()
	return r.place.leave()
}
