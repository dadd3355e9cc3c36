package writer

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/commq/commq/internal/bounded"
	"github.com/commq/commq/internal/filehash"
	"github.com/commq/commq/internal/gone"
	"github.com/commq/commq/schema"
)

// ReadTable reads table t of the run in folder dir, its files in order, and calls fn with up to batchRows rows at a
// time. fn must not keep the batch, which is reused. Errors name the file and the place in it. A world rank, a host, a
// thread or the parent of a call site that the run cannot have is an error, and so is a run that was replaced before
// the end of the table.
func ReadTable(ctx context.Context, dir string, t *schema.Table, batchRows int, fn func(schema.Batch) error) error {
	return Opened{Dir: dir}.ReadTable(ctx, t, batchRows, fn)
}

// ReadTable reads a table as the function ReadTable does, if the run is still the same.
func (o Opened) ReadTable(ctx context.Context, t *schema.Table, batchRows int, fn func(schema.Batch) error) error {
	s, files, err := o.table(ctx, t)
	if err != nil {
		return err
	}
	if err := readFiles(ctx, o.Dir, files, t, batchRows, limitsOf(o.Dir, s.manifest, t).checked(fn)); err != nil {
		return s.explain(err)
	}
	return s.check()
}

// readTable does the same for rows that are to have any values.
func readTable(ctx context.Context, dir string, t *schema.Table, batchRows int, fn func(schema.Batch) error) error {
	files, err := listFiles(ctx, dir, t)
	if err != nil {
		return err
	}
	return readFiles(ctx, dir, files, t, batchRows, fn)
}

func readFiles(ctx context.Context, dir string, files []string, t *schema.Table, batchRows int,
	fn func(schema.Batch) error) error {
	for _, name := range files {
		if err := readFile(ctx, dir, name, newReadBuffers(t, batchRows), fn); err != nil {
			return err
		}
	}
	return nil
}

// listFiles lists the files of a table in the run of folder dir, as filesOf does.
func listFiles(ctx context.Context, dir string, t *schema.Table) ([]string, error) {
	_, files, err := manifestAndFiles(ctx, dir, t)
	return files, err
}

// manifestAndFiles reads the manifest of the run in folder dir, nil if it has none, and lists the files of a table. The
// run may be exchanged for another between the two: then it does both again.
func manifestAndFiles(ctx context.Context, dir string, t *schema.Table) (m *schema.Manifest, files []string, err error) {
	if m, err = completeManifest(dir); err != nil {
		return nil, nil, err
	}
	return filesNow(ctx, dir, m, t)
}

// filesNow lists the files of a table in the run of folder dir whose manifest was m. If that is another by now, it
// returns the new one and its files.
func filesNow(ctx context.Context, dir string, m *schema.Manifest, t *schema.Table) (_ *schema.Manifest, files []string,
	err error) {
	files, err = filesOf(ctx, dir, m, t)
	if !filehash.IsDamage(err) || m == nil {
		return m, files, err
	}
	if now, unread := completeManifest(dir); unread == nil && now != nil && !reflect.DeepEqual(m, now) {
		m = now
		files, err = filesOf(ctx, dir, m, t)
	}
	return m, files, err
}

// filesOf lists the files of a table in the run of folder dir, in order, with slashes: those of the manifest, each
// compared with its size and hash there; other files in the folder are not the run's. A run that is not complete has no
// manifest, and all files of the table.
func filesOf(ctx context.Context, dir string, m *schema.Manifest, t *schema.Table) (files []string, err error) {
	if m == nil {
		return filesInFolder(dir, t)
	}
	for _, f := range m.Tables[slices.Index(schema.Tables(), t)].Files {
		sums := filehash.Sums{File: f.Sum, Footer: f.FooterSum, Headers: f.HeadersSum}
		if err := filehash.Quick(ctx, dir, f.Path, f.Bytes, sums); err != nil {
			if err = gone.Check(dir, err); gone.Is(err) || !filehash.IsDamage(err) {
				return nil, fmt.Errorf("%s: %w", dir, err)
			}
			return nil, fmt.Errorf("%s: %w; the run is damaged: copy it or capture it again; commq runs check says more",
				dir, err)
		}
		files = append(files, f.Path)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: the run has no table %s", dir, t.Name)
	}
	return files, nil
}

// filesInFolder lists the files of a table that are in a folder, in order, with slashes.
func filesInFolder(dir string, t *schema.Table) ([]string, error) {
	if !t.Sharded {
		return []string{t.FilePath(0)}, nil
	}
	entries, err := os.ReadDir(filepath.Join(dir, t.Name))
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if p := path.Join(t.Name, e.Name()); t.IsFilePath(p) {
			files = append(files, p)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no file of table %s", dir, t.Name)
	}
	slices.Sort(files)
	return files, nil
}

// readFile reads one file of a table.
func readFile(ctx context.Context, dir, name string, b *readBuffers, fn func(schema.Batch) error) error {
	r, err := newTableReader(dir, name, b)
	if err != nil {
		return err
	}
	for g, end := 0, 0; g < r.groups(); g = end {
		end = r.together(g)
		if err := r.readTogether(ctx, g, end, fn); err != nil {
			return err
		}
	}
	return nil
}

// callerError carries an error of fn or of the context past the code that adds file names to errors.
type callerError struct{ err error }

func (e *callerError) Error() string { return e.err.Error() }

// resizer is implemented by every batch.
type resizer interface {
	schema.Batch
	Resize(n int)
}

// readBuffers are the buffers for reading a table. Files that are read one after the other share them.
type readBuffers struct {
	table  *schema.Table
	batch  schema.Batch
	rows   int
	want   []bool         // by column; nil for all. Columns that are not read stay null
	needed []int          // columns that must have a value in a row group, or it is left out
	late   []bool         // by column: read only on request; nil for none
	ahead  []schema.Batch // batches filled in turn when there are late columns; batch is one of them
	ours   []chunkDecoder // by column; nil where arrow-go decodes
	levels []int16
	int32s []int32
	int64s []int64
	bytes  []parquet.ByteArray
	enums  []map[string]int16
	others []*readBuffers // for merging row groups
}

func newReadBuffers(t *schema.Table, batchRows int) *readBuffers {
	b := &readBuffers{table: t, batch: schema.NewBatch(t), rows: max(1, batchRows)}
	for _, c := range t.Columns {
		index := enumIndex(c.Names)
		b.ours = append(b.ours, newDecoder(&c, index))
		b.enums = append(b.enums, index)
	}
	return b
}

// tableReader reads one file of a table. The file is open only while a row group is read.
type tableReader struct {
	*readBuffers
	dir, name string // the run's folder, and the file's path in it, with slashes
	meta      *metadata.FileMetaData
	columns   []int // index in the file of each column of the table
	epochs    *bool // whether the statistics have the epochs of all row groups; nil: not known yet
}

func newTableReader(dir, name string, b *readBuffers) (*tableReader, error) {
	r := &tableReader{readBuffers: b, dir: dir, name: name}
	err := r.opened(func(p *file.Reader) error {
		r.meta = p.MetaData()
		if err := r.findColumns(); err != nil {
			return err
		}
		r.forget()
		return nil
	})
	if err != nil {
		return nil, r.located(err)
	}
	return r, nil
}

func (r *tableReader) located(err error) error { return fmt.Errorf("%s: %s: %w", r.dir, r.name, err) }

// opened calls fn with the file open.
func (r *tableReader) opened(fn func(*file.Reader) error) (err error) {
	defer recovered(&err)
	f, _, err := bounded.OpenRegular(filepath.Join(r.dir, filepath.FromSlash(r.name)))
	if err != nil {
		return gone.Check(r.dir, err)
	}
	defer f.Close()
	options := []file.ReadOption{file.WithReadProps(parquet.NewReaderProperties(pageAllocator{memory.DefaultAllocator}))}
	if r.meta != nil {
		options = append(options, file.WithMetadata(r.meta))
	}
	p, err := file.NewParquetReader(f, options...)
	if err != nil {
		return fmt.Errorf("not a whole Parquet file: %w", err)
	}
	return fn(p)
}

// findColumns finds the table's columns in the file, by name.
func (r *tableReader) findColumns() error {
	s := r.meta.Schema
	for _, c := range r.table.Columns {
		i := s.ColumnIndexByName(c.Name)
		if i < 0 {
			return fmt.Errorf("no column %s", c.Name)
		}
		d := s.Column(i)
		_, want := parquetType(c.Type)
		if d.PhysicalType() != want || d.MaxRepetitionLevel() != 0 || d.MaxDefinitionLevel() > 1 {
			return fmt.Errorf("column %s is not %s", c.Name, c.Type.SQL())
		}
		r.columns = append(r.columns, i)
	}
	return r.checkCodecs()
}

// boundedCodecs are the kinds of compression that do not unpack a small page to gigabytes: zstd, which commq writes,
// stops at a bound, and a byte of Snappy, which other programs like, makes less than 22.
var boundedCodecs = []compress.Compression{compress.Codecs.Zstd, compress.Codecs.Snappy, compress.Codecs.Uncompressed}

// checkCodecs refuses compression without a bound.
func (r *tableReader) checkCodecs() error {
	for _, group := range r.meta.RowGroups {
		for c, i := range r.columns {
			if i >= len(group.Columns) || group.Columns[i].MetaData == nil {
				continue
			}
			codec := compress.Compression(group.Columns[i].MetaData.Codec)
			if !slices.Contains(boundedCodecs, codec) {
				return fmt.Errorf("column %s is compressed with %v; want one of %v, commq writes the first",
					r.table.Columns[c].Name, codec, boundedCodecs)
			}
		}
	}
	return nil
}

// forget frees the metadata of columns that are not read: a large run has a million of them.
func (r *tableReader) forget() {
	if r.want == nil {
		return
	}
	keep := make([]bool, r.meta.Schema.NumColumns())
	for c, i := range r.columns {
		keep[i] = r.want[c] || r.table.Columns[c].Name == "epoch"
	}
	for _, group := range r.meta.RowGroups {
		for i, chunk := range group.Columns {
			if i < len(keep) && !keep[i] {
				group.Columns[i] = r.meta.RowGroups[0].Columns[i] // arrow-go reads the place of the indexes there
				continue
			}
			if m := chunk.MetaData; m != nil {
				m.EncodingStats = nil
			}
		}
	}
}

// groups returns the number of row groups.
func (r *tableReader) groups() int { return r.meta.NumRowGroups() }

// read reads a row group.
func (r *tableReader) read(ctx context.Context, g int, fn func(schema.Batch) error) error {
	return r.readWith(g, func(p *file.Reader) error { return r.rowGroup(ctx, p, g, fn) })
}

func enumIndex(names []string) map[string]int16 {
	index := make(map[string]int16, len(names))
	for i, n := range names {
		index[n] = int16(i)
	}
	return index
}

// rowGroup reads a row group, a batch at a time over all columns side by side.
func (r *tableReader) rowGroup(ctx context.Context, p *file.Reader, g int, fn func(schema.Batch) error) error {
	readers, rows, err := r.columnReaders(p, g)
	if err != nil {
		return err
	}
	for first := int64(0); first < rows; {
		if err := ctx.Err(); err != nil {
			return &callerError{err}
		}
		n := int(min(int64(r.rows), rows-first))
		r.batch.(resizer).Resize(n)
		for c := range readers {
			if readers[c] == nil {
				continue
			}
			if err := readers[c](r.batch.Data(c)); err != nil {
				return fmt.Errorf("column %s, rows %d to %d: %w", r.table.Columns[c].Name, first, first+int64(n)-1, err)
			}
		}
		if err := fn(r.batch); err != nil {
			return &callerError{err}
		}
		first += int64(n)
	}
	return nil
}

// columnReaders returns functions that fill columns with the next rows of a row group; nil for columns that are not
// read.
func (r *tableReader) columnReaders(p *file.Reader, g int) (readers []func(column any) error, rows int64, err error) {
	group := p.RowGroup(g)
	for c, i := range r.columns {
		if r.want != nil && (!r.want[c] || r.allNull(g, c)) {
			readers = append(readers, nil)
			continue
		}
		reader, err := r.columnReader(group, c, i)
		if err != nil {
			return nil, 0, fmt.Errorf("column %s: %w", r.table.Columns[c].Name, err)
		}
		readers = append(readers, reader)
	}
	return readers, group.NumRows(), nil
}

// columnReader returns a function that reads column c of the table, which is column i of the file. It uses our own
// decoders where they can.
func (r *tableReader) columnReader(group *file.RowGroupReader, c, i int) (func(column any) error, error) {
	chunk, err := group.MetaData().ColumnChunk(i)
	if err != nil {
		return nil, err
	}
	if d := r.ours[c]; d != nil && decodes(chunk.Encodings()) {
		pages, err := group.GetColumnPageReader(i)
		if err != nil {
			return nil, err
		}
		d.reset(pages, r.meta.Schema.Column(i).MaxDefinitionLevel() > 0)
		return d.fill, nil
	}
	reader, err := group.Column(i)
	if err != nil {
		return nil, err
	}
	return func(column any) error { return r.readColumn(reader, c, column) }, nil
}

// readColumn fills column c of the batch by arrow-go's decoder.
func (r *tableReader) readColumn(reader file.ColumnChunkReader, c int, column any) (err error) {
	defer recovered(&err)
	n := r.batch.Len()
	r.levels = slices.Grow(r.levels[:0], n)[:n]
	optional := reader.Descriptor().MaxDefinitionLevel() > 0
	if !optional {
		for i := range r.levels {
			r.levels[i] = 1
		}
	}
	v := r.readBuffers
	switch out := column.(type) {
	case []int32:
		v.int32s = slices.Grow(v.int32s[:0], n)[:n]
		err = readValues(reader.(*file.Int32ColumnChunkReader).ReadBatch, v.int32s, r.levels, optional)
		if err == nil {
			err = spread(out, v.int32s, r.levels, schema.NullInt32)
		}
	case []int64:
		v.int64s = slices.Grow(v.int64s[:0], n)[:n]
		err = readValues(reader.(*file.Int64ColumnChunkReader).ReadBatch, v.int64s, r.levels, optional)
		if err == nil {
			err = spread(out, v.int64s, r.levels, schema.NullInt64)
		}
	case []int16:
		v.bytes = slices.Grow(v.bytes[:0], n)[:n]
		err = readValues(reader.(*file.ByteArrayColumnChunkReader).ReadBatch, v.bytes, r.levels, optional)
		if err == nil {
			err = r.spreadEnums(out, v.bytes, c)
		}
	case []string:
		v.bytes = slices.Grow(v.bytes[:0], n)[:n]
		err = readValues(reader.(*file.ByteArrayColumnChunkReader).ReadBatch, v.bytes, r.levels, optional)
		for i, at := 0, 0; i < n && err == nil; i++ {
			out[i] = schema.NullText
			if r.levels[i] == 1 {
				out[i] = string(v.bytes[at])
				at++
			}
		}
	}
	return err
}

// readValues reads len(levels) rows, across pages.
func readValues[T any](read func(int64, []T, []int16, []int16) (int64, int, error), values []T, levels []int16,
	optional bool) error {
	var defs []int16
	if optional {
		defs = levels
	}
	rows, n, err := read(int64(len(levels)), values, defs, nil)
	if err != nil {
		return err
	}
	want := 0
	for _, l := range levels {
		want += int(l)
	}
	if rows != int64(len(levels)) || n != want {
		return fmt.Errorf("the file has %d of %d rows", rows, len(levels))
	}
	return nil
}

// spread distributes values to the rows whose level is 1, and sets the others to null.
func spread[T int32 | int64](out, values []T, levels []int16, null T) error {
	at := 0
	for i, l := range levels {
		out[i] = null
		if l == 1 {
			out[i] = values[at]
			at++
		}
	}
	return nil
}

func (r *tableReader) spreadEnums(out []int16, values []parquet.ByteArray, c int) error {
	at := 0
	var name parquet.ByteArray // the previous value: the same name often comes several times
	x := schema.NullEnum
	for i, l := range r.levels {
		out[i] = schema.NullEnum
		if l != 1 {
			continue
		}
		if x == schema.NullEnum || !bytes.Equal(name, values[at]) {
			known := false
			name = values[at]
			if x, known = r.enums[c][string(name)]; !known {
				return fmt.Errorf("%q is not one of its names", name)
			}
		}
		out[i] = x
		at++
	}
	return nil
}
