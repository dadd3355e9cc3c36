// Package writer puts a run onto disk and reads it back. It is the only package that knows Parquet.
//
// A run is a folder in a store. It is written into a hidden folder beside its place, synced, and renamed, so a folder
// with a manifest is always a whole run.
package writer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/commq/commq/schema"
)

// maxShards is the number of files a table may have: their names sort by number.
const maxShards = 10000

// Options says how a run is written. The zero value is what commands use.
type Options struct {
	// Check runs Check over the files before the run gets its name, and fails with what it found.
	Check bool
}

// Run is a run that is being written. Write may be called concurrently, the other methods not.
type Run struct {
	store, name string
	dir         string // the hidden folder
	lock        *lock
	options     Options

	encoders sync.Pool // of *columnEncoder: their buffers are large

	mu    sync.Mutex
	files map[shardKey]*tableFile
	done  bool

	whole map[shardKey]PartFile // files that were written before, in parts
	keep  bool                  // the hidden folder stays when the run does not get its name: a later process goes on with it

	waits *schema.WaitSums // of SumWaits; nil: Commit reads the files again

	counting sync.Mutex
	repeats  *schema.RepeatSums // has counted the messages that were written; nil: there were none
}

type shardKey struct {
	table string
	shard int
}

// Create begins a run of that name in the store, which it makes where it is missing. The name is taken from now on: a
// second Create fails until Commit or Abort, in any process, and after Commit. What a killed process left is removed.
func Create(store, name string, o Options) (*Run, error) {
	if err := makeStore(store, name); err != nil {
		return nil, err
	}
	if dir := partsFolder(store, name); isFolder(dir) {
		return nil, fmt.Errorf("run %q in %s is being written in parts by several processes (commq ingest --parts); choose another name, end that, or remove %s", name, store, dir)
	}
	l, err := takeLock(filepath.Join(store, "."+name+".lock"))
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("run %q in %s is being written by another process; choose another name or wait for it to end", name, store)
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w; name a writable one with --store or $COMMQ_STORE", store, err)
	}
	r := &Run{store: store, name: name, dir: filepath.Join(store, "."+name+".partial"), lock: l, options: o, files: map[shardKey]*tableFile{}}
	if err := r.makeFolder(); err != nil {
		l.release()
		return nil, err
	}
	return r, nil
}

// makeStore checks the name of a run that is to be made in the store, and makes the store where it is missing.
func makeStore(store, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := onlyHere(store); err != nil {
		return fmt.Errorf("write run %q: %w; push makes a run of a folder one there", name, err)
	}
	if err := os.MkdirAll(store, 0o777); err != nil {
		return fmt.Errorf("make the store: %w; name another with --store or $COMMQ_STORE", err)
	}
	return nil
}

// target is the folder that the run gets.
func (r *Run) target() string { return filepath.Join(r.store, r.name) }

func (r *Run) makeFolder() error {
	if err := r.targetFree(); err != nil {
		return err
	}
	if err := os.RemoveAll(r.dir); err != nil { // of a process that was killed: we hold its lock
		return fmt.Errorf("remove the unfinished run %s: %w", r.dir, err)
	}
	if err := os.Mkdir(r.dir, 0o777); err != nil {
		return fmt.Errorf("store %s: %w; name a writable one with --store or $COMMQ_STORE", r.store, err)
	}
	return nil
}

// targetFree says whether something already lies where the run is to go.
func (r *Run) targetFree() error {
	_, err := os.Lstat(r.target())
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case isRun(r.target()):
		return fmt.Errorf("run %q already exists in %s; choose another name, or remove it with commq runs remove %s", r.name, r.store, r.name)
	}
	return fmt.Errorf("%s exists and is not a run; choose another name or move it away", r.target())
}

// Write appends the rows of b to the table's file of that shard, as one row group or, when they are many, several. Derived tables the
// Run writes itself.
// Tables that are one file have shard 0 only. Different files may be written concurrently; the batches of one come in
// order. It returns an error when the file cannot be written, and when a row holds what its column cannot: null in a
// column that is not nullable, an enum out of range. Text that is not UTF-8 is written with replacement characters.
func (r *Run) Write(shard int, b schema.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	if b.Table().Derived {
		return fmt.Errorf("write run %q: table %s is made by the writer", r.name, b.Table().Name)
	}
	return r.write(shard, b)
}

// write is Write for any table.
func (r *Run) write(shard int, b schema.Batch) error {
	t := b.Table()
	f, err := r.file(t, shard)
	if err != nil {
		return err
	}
	e, ok := r.encoders.Get().(*columnEncoder)
	if !ok {
		e = newColumnEncoder()
	}
	defer r.encoders.Put(e)
	if err := f.write(e, b, func(rows *schema.Profiles) error { return r.write(shard, rows) }); err != nil {
		return fmt.Errorf("write run %q: %s: %w", r.name, tablePath(t, shard), err)
	}
	if m, ok := b.(*schema.Messages); ok {
		r.count(m)
	}
	return nil
}

// count counts the payloads of messages.
func (r *Run) count(m *schema.Messages) {
	r.counting.Lock()
	defer r.counting.Unlock()
	if r.repeats == nil {
		r.repeats = schema.NewRepeatSums()
	}
	r.repeats.Count(m)
}

// file returns the open file of a shard.
func (r *Run) file(t *schema.Table, shard int) (*tableFile, error) {
	if shard < 0 || shard >= maxShards || shard > 0 && !t.Sharded {
		return nil, fmt.Errorf("write run %q: table %s has no shard %d", r.name, t.Name, shard)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return nil, fmt.Errorf("write run %q: it is already committed or aborted", r.name)
	}
	key := shardKey{t.Name, shard}
	if f := r.files[key]; f != nil {
		return f, nil
	}
	f, err := r.create(t, shard)
	if err == nil {
		r.files[key] = f
	}
	return f, err
}

func (r *Run) create(t *schema.Table, shard int) (*tableFile, error) {
	if err := os.MkdirAll(filepath.Join(r.dir, t.Name), 0o777); err != nil {
		return nil, fmt.Errorf("write run %q: %w", r.name, err)
	}
	f, err := createTableFile(filepath.Join(r.dir, filepath.FromSlash(tablePath(t, shard))), t)
	if err != nil {
		return nil, fmt.Errorf("write run %q: %w", r.name, err)
	}
	return f, nil
}

// SumWaits is for who has all rows of an epoch at hand: the sums want them too, by WaitSums.Epoch, and then Commit does not read them from the files
// again. They need the hosts of ranks and the members of communicators beforehand, and to know whether every row of events is there (dense).
func (r *Run) SumWaits(hosts []int32, comms *schema.Comms, dense bool) *schema.WaitSums {
	r.waits = schema.NewWaitSums(hosts, dense)
	r.waits.AddComms(comms)
	return r.waits
}

// Commit finishes the run: it closes the files, fills in the manifest's SchemaVersion, Tables, Counts.OverlappingCalls, Digest and Origin.Name,
// writes it, syncs everything, and gives the run its name. A table without rows gets a file without rows. On any error
// nothing remains in the store, and m may be partly filled.
func (r *Run) Commit(m *schema.Manifest) error {
	if r.done {
		return fmt.Errorf("commit run %q: it is already committed or aborted", r.name)
	}
	err := r.commit(m)
	if err != nil {
		err = fmt.Errorf("commit run %q: %w", r.name, err)
	}
	return errors.Join(err, r.end())
}

func (r *Run) commit(m *schema.Manifest) error {
	if err := r.seal(context.Background(), m); err != nil {
		return err
	}
	return r.takeName()
}

// takeName gives the whole run in the hidden folder its name.
func (r *Run) takeName() error {
	if err := r.targetFree(); err != nil {
		return err
	}
	if err := os.Rename(r.dir, r.target()); err != nil {
		return err
	}
	return syncFolder(r.store)
}

// seal makes a whole run of the hidden folder; it has no name yet.
func (r *Run) seal(ctx context.Context, m *schema.Manifest) error {
	if err := checkManifest(m); err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	m.SchemaVersion, m.Origin.Name, m.Tables, m.Counts.OverlappingCalls = schema.Version, r.name, nil, 0
	if err := r.endProfiles(); err != nil {
		return err
	}
	var lacks []*schema.Table
	for _, t := range schema.Tables() {
		if t == &schema.WaitsTable { // the first of those that are made of files
			var err error
			if lacks, err = r.writeSums(ctx, r.dir, m); err != nil {
				return err
			}
		}
		if slices.Contains(lacks, t) {
			m.Tables = append(m.Tables, schema.TableInfo{Name: t.Name})
			continue
		}
		info, err := r.closeTable(t)
		if err != nil {
			return err
		}
		m.Tables = append(m.Tables, info)
		m.Counts.OverlappingCalls += r.overlaps(t)
	}
	m.Digest = schema.RunDigest(m).String()
	if err := writeManifest(r.dir, m); err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	return r.syncFolders()
}

// endProfiles writes the sums of events that are still at hand.
func (r *Run) endProfiles() error {
	events := map[int]*tableFile{}
	for key, f := range r.files {
		if f.table == &schema.EventsTable {
			events[key.shard] = f
		}
	}
	for shard, f := range events {
		p := f.profiler
		f.profiler = nil // nothing more comes, and there are many of them
		if err := p.Flush(func(rows *schema.Profiles) error { return r.write(shard, rows) }); err != nil {
			return err
		}
	}
	return nil
}

// check runs Check where the options ask for it.
func (r *Run) check() error {
	if !r.options.Check {
		return nil
	}
	problems, err := Check(context.Background(), r.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range problems {
		errs = append(errs, errors.New(p.String()))
	}
	return errors.Join(errs...)
}

// closeTable closes the files of a table and says what they hold.
func (r *Run) closeTable(t *schema.Table) (schema.TableInfo, error) {
	var shards []int
	for key := range r.files {
		if key.table == t.Name {
			shards = append(shards, key.shard)
		}
	}
	for key := range r.whole {
		if key.table == t.Name {
			shards = append(shards, key.shard)
		}
	}
	slices.Sort(shards)
	if len(shards) == 0 {
		shards = []int{0}
		if _, err := r.file(t, 0); err != nil {
			return schema.TableInfo{}, err
		}
	}
	info := schema.TableInfo{Name: t.Name}
	var sum schema.Digest
	for _, shard := range shards {
		f, err := r.closeFile(shardKey{t.Name, shard})
		if err != nil {
			return info, fmt.Errorf("%s: %w", tablePath(t, shard), err)
		}
		info.Files = append(info.Files, schema.FileInfo{Path: tablePath(t, shard), Rows: f.Rows, Bytes: f.Bytes})
		info.Rows += f.Rows
		sum = sum.Add(f.Digest)
	}
	info.Digest = sum.String()
	return info, nil
}

// overlaps is how many calls overlap in the files of a table. A thread's calls are in one file.
func (r *Run) overlaps(t *schema.Table) (n int64) {
	for key, f := range r.files {
		if key.table == t.Name {
			n += f.overlaps.Count()
		}
	}
	for key, f := range r.whole {
		if key.table == t.Name {
			n += f.Overlaps
		}
	}
	return n
}

// syncFolders makes the names of the run's files durable.
func (r *Run) syncFolders() error {
	for _, t := range schema.Tables() {
		if err := syncFolder(filepath.Join(r.dir, t.Name)); err != nil && !(t.Derived && errors.Is(err, os.ErrNotExist)) { // the run may lack it
			return err
		}
	}
	return syncFolder(r.dir)
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Abort removes what was written so far and frees the name. After Commit it does nothing.
func (r *Run) Abort() error {
	if r.done {
		return nil
	}
	return r.end()
}

// end leaves nothing hidden behind. After a Commit that worked, the hidden folder is not there any more.
func (r *Run) end() error {
	r.mu.Lock()
	r.done = true
	files := r.files
	r.files = nil
	r.mu.Unlock()
	for _, f := range files {
		f.abandon()
	}
	if r.keep {
		return r.lock.release()
	}
	return errors.Join(os.RemoveAll(r.dir), r.lock.release())
}
