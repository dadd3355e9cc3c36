package writer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// ErrBusy says that another process holds what was to be locked.
var ErrBusy = errors.New("another process is at it")

// Parts is a run that several processes write, on as many machines, each some of the files of its tables: a hidden folder in the store, with what the
// processes tell each other, that stays until the run has its name. What a process has put there is there for the next one, whatever is killed when.
type Parts struct {
	store, name string
}

// PartFile is a whole file of a table of a run that is written in parts.
type PartFile struct {
	// Table is the name of its table, Shard its number there.
	Table string
	Shard int
	// Rows and Bytes are its size.
	Rows, Bytes int64
	// Digest is that of its rows.
	Digest schema.Digest
	// Overlaps is how many calls in it overlap; see schema.Overlaps.
	Overlaps int64
}

func partsFolder(store, name string) string { return filepath.Join(store, "."+name+".parts") }

func isFolder(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// OpenParts begins a run of that name in the store that is written in parts, of a job by its id, or goes on with it. It returns nil where the run is
// there already, and of this job. The error says where the name is taken.
func OpenParts(store, name, job string) (*Parts, error) {
	if err := makeStore(store, name); err != nil {
		return nil, err
	}
	p := &Parts{store: store, name: name}
	done, err := p.Done(job)
	if err == nil && !done {
		err = (&Run{store: store, name: name}).targetFree()
	}
	if done || err != nil {
		return nil, err
	}
	if err := os.MkdirAll(p.rows(), 0o777); err != nil {
		return nil, fmt.Errorf("store %s: %w; name a writable one with --store or $COMMQ_STORE", store, err)
	}
	return p, nil
}

// Done says whether the run has its name and is that of the job, by the manifest's origin. The error says what else has the name.
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
		return false, (&Run{store: p.store, name: p.name}).targetFree()
	}
	return true, nil
}

// Dir is the hidden folder, for messages.
func (p *Parts) Dir() string { return partsFolder(p.store, p.name) }

// rows is the folder that becomes the run.
func (p *Parts) rows() string { return filepath.Join(p.Dir(), "run") }

// Path is the path of a file of that name that processes share.
func (p *Parts) Path(name string) string { return filepath.Join(p.Dir(), name) }

// Put makes the file of that name, whole or not at all, in the place of one that is there.
func (p *Parts) Put(name string, data []byte) error {
	return p.put(name, data, os.Rename)
}

// PutFirst is Put for whoever comes first: where the file is there it stays, and the error is fs.ErrExist.
func (p *Parts) PutFirst(name string, data []byte) error {
	return p.put(name, data, func(from, to string) error {
		return errors.Join(os.Link(from, to), os.Remove(from))
	})
}

func (p *Parts) put(name string, data []byte, move func(from, to string) error) error {
	f, err := os.CreateTemp(p.Dir(), name+".new")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o666), f.Sync(), f.Close()); err == nil {
		err = move(f.Name(), p.Path(name))
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error counts
		return err
	}
	return syncFolder(p.Dir())
}

// Has says whether the file of that name is there.
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

// Lock takes the lock of that name, until release is called or the process ends. The error is ErrBusy where another process has it.
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

// Begin is the run for writing some files, those of shards that no other process writes. It ends with ClosePart, or with Abort, which leaves files to be
// written again.
func (p *Parts) Begin() *Run {
	return &Run{store: p.store, name: p.name, dir: p.rows(), files: map[shardKey]*tableFile{}, keep: true}
}

// ClosePart ends the files that were written and says what they hold.
func (r *Run) ClosePart() ([]PartFile, error) {
	if err := r.endProfiles(); err != nil {
		return nil, err
	}
	var files []PartFile
	for key := range r.files {
		f, err := r.closeFile(key)
		if err != nil {
			return nil, fmt.Errorf("write run %q: table %s: %w", r.name, key.table, err)
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
		if err := syncFolder(filepath.Join(r.dir, f.Table)); err != nil {
			return nil, err
		}
	}
	r.files = nil
	return files, r.end()
}

// closeFile ends a file, if it was not written before, and says what it holds.
func (r *Run) closeFile(key shardKey) (PartFile, error) {
	if f, ok := r.whole[key]; ok {
		return f, nil
	}
	f := r.files[key]
	bytes, err := f.close()
	return PartFile{Table: key.table, Shard: key.shard, Rows: f.digester.Rows(), Bytes: bytes, Digest: f.digester.Sum(), Overlaps: f.overlaps.Count()}, err
}

// Assemble is the run for its end: the files are those of all parts, and what is in none can still be written. Commit gives the run its name. When
// that fails, or the process is killed, the parts stay as they are. The error is ErrBusy where another process is at it.
func (p *Parts) Assemble(files []PartFile) (*Run, error) {
	l, err := takeLock(filepath.Join(p.store, "."+p.name+".lock"))
	if errors.Is(err, errLocked) {
		return nil, ErrBusy
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", p.store, err)
	}
	r := p.Begin()
	r.lock, r.whole = l, map[shardKey]PartFile{}
	keep := map[string]bool{}
	for _, f := range files {
		r.whole[shardKey{f.Table, f.Shard}] = f
		keep[filepath.Join(r.dir, f.Table, fmt.Sprintf("%04d.parquet", f.Shard))] = true // as tablePath has it
	}
	err = filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error { // what one left that was killed here
		if err == nil && !d.IsDir() && !keep[path] {
			err = os.Remove(path)
		}
		return err
	})
	if err == nil {
		err = r.targetFree()
	}
	if err != nil {
		return nil, errors.Join(err, l.release())
	}
	return r, nil
}

// Remove removes what the processes told each other, once the run has its name or nobody wants it any more.
func (p *Parts) Remove() error { return os.RemoveAll(p.Dir()) }
