package writer

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/commq/commq/internal/disk"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/digest"
)

// maxShards limits the number of files of a table, so that their names sort by number.
const maxShards = 10000

// tableFiles are the files of a run while they are written. write may be called concurrently, the other methods not.
type tableFiles struct {
	name string // of the run, for errors
	dir  string

	mu     sync.Mutex
	open   map[shardKey]*tableFile
	closed bool // write takes no more rows

	finished map[shardKey]PartFile // files that other processes wrote
}

// encoders are *columnEncoder that nobody uses, of all runs of the process: their buffers are large.
var encoders sync.Pool

type shardKey struct {
	table string
	shard int
}

func newTableFiles(p *place) *tableFiles {
	return &tableFiles{name: p.name, dir: p.dir, open: map[shardKey]*tableFile{}}
}

// write appends rows to the table's file of that shard. Complete rows of profile follow those of events.
func (f *tableFiles) write(shard int, b schema.Batch) error {
	t := b.Table()
	file, err := f.file(t, shard)
	if err != nil {
		return err
	}
	e, ok := encoders.Get().(*columnEncoder)
	if !ok {
		e = newColumnEncoder()
	}
	defer encoders.Put(e)
	if err := file.write(e, b, func(rows *schema.Profiles) error { return f.write(shard, rows) }); err != nil {
		return fmt.Errorf("write run %q: %s: %w", f.name, t.FilePath(shard), err)
	}
	return nil
}

// file returns the open file of a shard, which it creates for the first rows.
func (f *tableFiles) file(t *schema.Table, shard int) (*tableFile, error) {
	if shard < 0 || shard >= maxShards || shard > 0 && !t.Sharded {
		return nil, fmt.Errorf("write run %q: table %s has no shard %d", f.name, t.Name, shard)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, fmt.Errorf("write run %q: it is already committed or aborted", f.name)
	}
	key := shardKey{t.Name, shard}
	if file := f.open[key]; file != nil {
		return file, nil
	}
	file, err := f.create(t, shard)
	if err != nil {
		return nil, fmt.Errorf("write run %q: %w", f.name, err)
	}
	f.open[key] = file
	return file, nil
}

func (f *tableFiles) create(t *schema.Table, shard int) (*tableFile, error) {
	if err := disk.MkdirAll(filepath.Join(f.dir, t.Name), 0o777); err != nil {
		return nil, err
	}
	return createTableFile(filepath.Join(f.dir, filepath.FromSlash(t.FilePath(shard))), t)
}

// endProfiles writes the rows of profile that are not complete before the last rows of events.
func (f *tableFiles) endProfiles() error {
	events := map[int]*tableFile{}
	for key, file := range f.open {
		if file.table == &schema.EventsTable {
			events[key.shard] = file
		}
	}
	for shard, file := range events {
		p := file.profiler
		file.profiler = nil // freed, because there are many files and no more rows
		if err := p.Flush(func(rows *schema.Profiles) error { return f.write(shard, rows) }); err != nil {
			return err
		}
	}
	return nil
}

// closeTable closes the files of a table and describes them. A table without rows gets a file without rows.
func (f *tableFiles) closeTable(t *schema.Table) (schema.TableInfo, error) {
	var shards []int
	for key := range f.open {
		if key.table == t.Name {
			shards = append(shards, key.shard)
		}
	}
	for key := range f.finished {
		if key.table == t.Name {
			shards = append(shards, key.shard)
		}
	}
	slices.Sort(shards)
	if len(shards) == 0 {
		shards = []int{0}
		if _, err := f.file(t, 0); err != nil {
			return schema.TableInfo{}, err
		}
	}
	info := schema.TableInfo{Name: t.Name}
	var sum digest.Sum
	for _, shard := range shards {
		part, err := f.closeFile(shardKey{t.Name, shard})
		if err != nil {
			return info, fmt.Errorf("%s: %w", t.FilePath(shard), err)
		}
		info.Files = append(info.Files, schema.FileInfo{Path: t.FilePath(shard), Rows: part.Rows,
			Bytes: part.Bytes, Sum: part.Sum, FooterSum: part.FooterSum, HeadersSum: part.HeadersSum})
		info.Rows += part.Rows
		sum = sum.Add(part.Digest)
	}
	info.Digest = sum.String()
	return info, nil
}

// closeFile closes a file, unless another process wrote it, and describes it.
func (f *tableFiles) closeFile(key shardKey) (PartFile, error) {
	if part, ok := f.finished[key]; ok {
		return part, nil
	}
	file := f.open[key]
	sums, err := file.close()
	return PartFile{Sum: sums.File, FooterSum: sums.Footer, HeadersSum: sums.Headers,
		Table: key.table, Shard: key.shard, Rows: file.digester.Rows(), Bytes: file.sink.size,
		Digest: file.digester.Sum(), Overlaps: file.overlaps.Count()}, err
}

// overlaps counts the overlapping calls in the files of a table. All calls of a thread are in one file.
func (f *tableFiles) overlaps(t *schema.Table) (n int64) {
	for key, file := range f.open {
		if key.table == t.Name {
			n += file.overlaps.Count()
		}
	}
	for key, part := range f.finished {
		if key.table == t.Name {
			n += part.Overlaps
		}
	}
	return n
}

// end closes open files without finishing them; write then takes no more rows.
func (f *tableFiles) end() {
	f.mu.Lock()
	f.closed = true
	open := f.open
	f.open = nil
	f.mu.Unlock()
	for _, file := range open {
		file.abandon()
	}
}
