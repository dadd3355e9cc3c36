package writer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/commq/commq/schema"
)

// ReadTable reads table t of the run in folder dir, its files in order, and calls fn with up to batchRows rows at a
// time. fn must not keep the batch: it is used again. Errors name the file and the place; a broken file is an error.
func ReadTable(ctx context.Context, dir string, t *schema.Table, batchRows int, fn func(schema.Batch) error) error {
	files, err := tableFiles(dir, t)
	if err != nil {
		return err
	}
	for _, name := range files {
		if err := readFile(ctx, dir, name, t, batchRows, fn); err != nil {
			return err
		}
	}
	return nil
}

// tableFiles lists the files of a table that are there, in order, with slashes.
func tableFiles(dir string, t *schema.Table) ([]string, error) {
	if !t.Folder {
		return []string{tablePath(t, 0)}, nil
	}
	entries, err := os.ReadDir(filepath.Join(dir, t.Name))
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if p := path.Join(t.Name, e.Name()); isTableFile(t, p) {
			files = append(files, p)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no file of table %s", dir, t.Name)
	}
	slices.Sort(files)
	return files, nil
}

// readFile reads one file of a table. It opens it, so that ReadTable has one file open at a time.
func readFile(ctx context.Context, dir, name string, t *schema.Table, batchRows int, fn func(schema.Batch) error) error {
	f, err := os.Open(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	defer f.Close()
	r := tableReader{table: t, batch: schema.NewBatch(t), rows: max(1, batchRows)}
	if err := r.open(f); err != nil {
		return fmt.Errorf("%s: %s: %w", dir, name, err)
	}
	for g := range r.parquet.NumRowGroups() {
		if err := r.rowGroup(ctx, g, fn); err != nil {
			var ours *callerError
			if errors.As(err, &ours) {
				return ours.err
			}
			return fmt.Errorf("%s: %s: row group %d: %w", dir, name, g, err)
		}
	}
	return nil
}

// callerError carries an error of fn or of the context past the wrapping that names files.
type callerError struct{ err error }

func (e *callerError) Error() string { return e.err.Error() }

// resizer is what every batch has.
type resizer interface {
	schema.Batch
	Resize(n int)
}

// readScratch are buffers for the values of one column after another.
type readScratch struct {
	int32s []int32
	int64s []int64
	bytes  []parquet.ByteArray
}

// tableReader reads one file.
type tableReader struct {
	table   *schema.Table
	batch   schema.Batch
	rows    int
	parquet *file.Reader
	columns []int // index in the file of each column of the table

	levels []int16
	values readScratch
	enums  []map[string]int16
}

func (r *tableReader) open(f *os.File) (err error) {
	defer recovered(&err)
	r.parquet, err = file.NewParquetReader(f)
	if err != nil {
		return fmt.Errorf("not a whole Parquet file: %w", err)
	}
	s := r.parquet.MetaData().Schema
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
		r.enums = append(r.enums, enumIndex(c.Names))
	}
	return nil
}

func enumIndex(names []string) map[string]int16 {
	index := make(map[string]int16, len(names))
	for i, n := range names {
		index[n] = int16(i)
	}
	return index
}

// rowGroup reads a row group, a batch at a time over all columns side by side.
func (r *tableReader) rowGroup(ctx context.Context, g int, fn func(schema.Batch) error) error {
	readers, rows, err := r.columnReaders(g)
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
			if err := r.readColumn(readers[c], c); err != nil {
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

func (r *tableReader) columnReaders(g int) (readers []file.ColumnChunkReader, rows int64, err error) {
	defer recovered(&err)
	group := r.parquet.RowGroup(g)
	for c, i := range r.columns {
		reader, err := group.Column(i)
		if err != nil {
			return nil, 0, fmt.Errorf("column %s: %w", r.table.Columns[c].Name, err)
		}
		readers = append(readers, reader)
	}
	return readers, group.NumRows(), nil
}

// readColumn fills column c of the batch.
func (r *tableReader) readColumn(reader file.ColumnChunkReader, c int) (err error) {
	defer recovered(&err)
	n := r.batch.Len()
	r.levels = slices.Grow(r.levels[:0], n)[:n]
	optional := reader.Descriptor().MaxDefinitionLevel() > 0
	if !optional {
		for i := range r.levels {
			r.levels[i] = 1
		}
	}
	v := &r.values
	switch out := r.batch.Data(c).(type) {
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

// readValues reads exactly as many rows as levels is long, across pages.
func readValues[T any](read func(int64, []T, []int16, []int16) (int64, int, error), values []T, levels []int16, optional bool) error {
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
		return fmt.Errorf("%d of %d rows are there", rows, len(levels))
	}
	return nil
}

// spread puts the values that are not null where levels says.
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
	for i, l := range r.levels {
		out[i] = schema.NullEnum
		if l != 1 {
			continue
		}
		x, ok := r.enums[c][string(values[at])]
		if !ok {
			return fmt.Errorf("%q is not one of its names", values[at])
		}
		out[i] = x
		at++
	}
	return nil
}
