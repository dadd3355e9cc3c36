package writer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/commq/commq/internal/disk"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/digest"
)

// ErrBusy means that another process holds the lock. On a file system without locks an error that is ErrBusy names the
// file that stands for the lock.
var ErrBusy = errors.New("another process is working on it")

// Parts is a run that several processes on several machines write together, each some of the files. It is a hidden
// folder in the store, through which the processes also exchange data. It stays until the run has its name. What a
// process wrote there stays when the process is killed, so that another can continue.
type Parts struct {
	store, name string
	replaces    bool // a run of that name may be replaced
}

// PartFile describes a complete file of a run that is written in parts.
type PartFile struct {
	// Table is the name of its table, Shard its number there.
	Table string
	Shard int
	// Rows and Bytes are its size.
	Rows, Bytes int64
	// Sum, FooterSum and HeadersSum are its hashes, as in schema.FileInfo.
	Sum, FooterSum, HeadersSum string
	// Digest is the digest of its rows.
	Digest digest.Sum
	// Overlaps is the number of overlapping calls in it; see derive.Overlaps.
	Overlaps int64
}

// check reports what ClosePart does not list: others' lists come from files.
func (f *PartFile) check() error {
	sharded := slices.ContainsFunc(schema.Tables(), func(t *schema.Table) bool { return t.Sharded && t.Name == f.Table })
	if !sharded || f.Shard < 0 || f.Rows < 0 || f.Bytes < 0 || f.Overlaps < 0 {
		return fmt.Errorf("a part lists file %d of table %s with %d rows, %d bytes and %d overlapping calls", f.Shard,
			f.Table, f.Rows, f.Bytes, f.Overlaps)
	}
	return nil
}

func partsFolder(store, name string) string { return filepath.Join(store, "."+name+".parts") }

func isFolder(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// OpenParts begins a run that is written in parts, or continues it. job is the id of the captured job. It returns nil
// when the run of this job is complete already, and an error when something else has the name; with replaces, that may
// be a run.
func OpenParts(store, name, job string, replaces bool) (*Parts, error) {
	if err := makeStore(store, name); err != nil {
		return nil, err
	}
	p := &Parts{store: store, name: name, replaces: replaces}
	done, err := p.Done(job)
	if err == nil && !done {
		err = CheckFree(store, name, replaces)
	}
	if done || err != nil {
		return nil, err
	}
	if err := disk.MkdirAll(p.rows(), 0o777); err != nil {
		return nil, fmt.Errorf("store %s: %w; name a writable one with --store or $COMMQ_STORE", store, err)
	}
	return p, nil
}

// Done reports whether the run is complete; by its manifest's origin it must be of the job. It returns an error when
// something else has the name.
func (p *Parts) Done(job string) (bool, error) {
	dir := filepath.Join(p.store, p.name)
	if !isRun(dir) {
		return false, nil
	}
	m, err := ReadManifest(dir)
	if err != nil {
		return false, err
	}
	if m.Origin.Job != job {
		return false, CheckFree(p.store, p.name, p.replaces)
	}
	return true, nil
}

// Dir returns the hidden folder, for messages.
func (p *Parts) Dir() string { return partsFolder(p.store, p.name) }

// rows returns the folder that becomes the run.
func (p *Parts) rows() string { return filepath.Join(p.Dir(), "run") }

// Path returns the path of a shared file of that name.
func (p *Parts) Path(name string) string { return filepath.Join(p.Dir(), name) }

// Put creates or replaces the file of that name, completely or not at all.
func (p *Parts) Put(name string, data []byte) error {
	return p.put(name, data, disk.Rename)
}

// PutFirst does the same as Put, but keeps an existing file and returns fs.ErrExist.
func (p *Parts) PutFirst(name string, data []byte) error {
	return p.put(name, data, func(from, to string) error {
		return errors.Join(disk.Link(from, to), disk.Remove(from))
	})
}

func (p *Parts) put(name string, data []byte, move func(from, to string) error) error {
	f, err := disk.CreateTemp(p.Dir(), name+".new", 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = move(f.Name(), p.Path(name))
	}
	if err != nil {
		_ = disk.Remove(f.Name()) // the first error counts
		return err
	}
	return disk.SyncFolder(p.Dir())
}

// Has reports whether the file of that name exists.
func (p *Parts) Has(name string) bool {
	_, err := os.Stat(p.Path(name))
	return err == nil
}

// List lists the files with names of that ending, sorted.
func (p *Parts) List(ending string) ([]string, error) {
	entries, err := os.ReadDir(p.Dir())
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ending) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Lock takes the lock of that name until release is called or the process ends. The error is ErrBusy when another
// process holds it.
func (p *Parts) Lock(name string) (release func() error, err error) {
	l, err := takeLock(p.Path(name + ".lock"))
	if errors.Is(err, errLocked) {
		return nil, ErrBusy
	}
	if err != nil {
		return nil, fmt.Errorf("lock a part of run %q: %w", p.name, err)
	}
	return l.release, nil
}

// Begin returns the run for writing files of shards that no other process writes. End it with ClosePart, or with Abort,
// after which the files must be written again.
func (p *Parts) Begin() *Run {
	place := &place{store: p.store, name: p.name, dir: p.rows(), replaces: p.replaces, keep: true}
	return &Run{place: place, files: newTableFiles(place)}
}

// ClosePart completes the files that were written and describes them.
func (r *Run) ClosePart() ([]PartFile, error) {
	if err := r.files.endProfiles(); err != nil {
		return nil, err
	}
	var files []PartFile
	for key := range r.files.open {
		f, err := r.files.closeFile(key)
		if err != nil {
			return nil, fmt.Errorf("write run %q: table %s: %w", r.place.name, key.table, err)
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b PartFile) int {
		return strings.Compare(fmt.Sprintf("%s %09d", a.Table, a.Shard), fmt.Sprintf("%s %09d", b.Table, b.Shard))
	})
	for i, f := range files {
		if i > 0 && files[i-1].Table == f.Table {
			continue
		}
		if err := disk.SyncFolder(filepath.Join(r.place.dir, f.Table)); err != nil {
			return nil, err
		}
	}
	// the folders themselves too: a note that the files are whole must not outlive them
	if err := errors.Join(disk.SyncFolder(r.place.dir), disk.SyncFolder(filepath.Dir(r.place.dir))); err != nil {
		return nil, err
	}
	r.files.open = nil
	return files, r.end()
}

// Assemble returns the run for its last stage. files are those of all parts; files that no part wrote can still be
// written. Commit gives the run its name. If that fails, or the process is killed, the parts stay as they are. The
// error is ErrBusy when another process is assembling the run.
func (p *Parts) Assemble(files []PartFile) (*Run, error) {
	for i := range files {
		if err := files[i].check(); err != nil {
			return nil, err
		}
	}
	l, err := takeLock(lockPath(p.store, p.name))
	if errors.Is(err, errLocked) {
		return nil, ErrBusy
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", p.store, err)
	}
	r := p.Begin()
	r.place.lock, r.files.finished = l, map[shardKey]PartFile{}
	keep := map[string]bool{}
	for _, f := range files {
		r.files.finished[shardKey{f.Table, f.Shard}] = f
		keep[filepath.Join(r.place.dir, f.Table, fmt.Sprintf("%04d.parquet", f.Shard))] = true // as tablePath names it
	}
	// left by a process that was killed at this stage
	err = filepath.WalkDir(r.place.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !keep[path] {
			err = disk.Remove(path)
		}
		return err
	})
	if err == nil {
		err = CheckFree(p.store, p.name, p.replaces)
	}
	if err != nil {
		return nil, errors.Join(err, l.release())
	}
	return r, nil
}

// Remove removes the hidden folder, when the run has its name or is abandoned.
func (p *Parts) Remove() error { return disk.RemoveAll(p.Dir()) }
