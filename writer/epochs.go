package writer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/commq/commq/schema"
)

// Epochs reads a table in the order of its epochs, all files side by side: memory is bounded by an epoch.
type Epochs struct {
	buffers *readBuffers
	files   []*epochFile
}

// epochFile is a file of which some row groups are read.
type epochFile struct {
	reader *tableReader
	next   int // row group
	end    int // the one after those that are read with it
	epoch  int64
}

// ReadEpochs begins to read the columns of that name of table t, events or messages, of the run in folder dir; the values of
// all others are null, or zero where they cannot be. It is an error when a column is not the table's, and when the run's
// files cannot be read.
func ReadEpochs(dir string, t *schema.Table, batchRows int, columns ...string) (*Epochs, error) {
	b, err := buffersFor(t, batchRows, columns)
	if err != nil {
		return nil, err
	}
	files, err := tableFiles(dir, t)
	if err != nil {
		return nil, err
	}
	e := &Epochs{buffers: b}
	for _, name := range files {
		r, err := newTableReader(dir, name, b)
		if err != nil {
			return nil, err
		}
		f := &epochFile{reader: r}
		f.begin()
		e.files = append(e.files, f)
	}
	return e, nil
}

// buffersFor are buffers for the columns of that name.
func buffersFor(t *schema.Table, batchRows int, columns []string) (*readBuffers, error) {
	b := newReadBuffers(t, batchRows)
	b.want = make([]bool, len(t.Columns))
	for _, name := range columns {
		_, i := t.Column(name)
		if i < 0 {
			return nil, fmt.Errorf("table %s has no column %q", t.Name, name)
		}
		b.want[i] = true
	}
	b.allNull()
	return b, nil
}

// begin finds the epoch of the next row group, and what is read with it.
func (f *epochFile) begin() {
	if f.next < f.reader.groups() {
		f.epoch, f.end = f.reader.firstEpoch(f.next), f.reader.together(f.next)
	}
}

// Next reads the rows of the next epoch, file by file, and calls fn with up to batchRows rows at a time; fn must not keep
// them. Where a row group has rows of several epochs they come together. It returns io.EOF when there are no more.
func (e *Epochs) Next(ctx context.Context, fn func(schema.Batch) error) error {
	return e.each(func(f *epochFile) error { return f.reader.readTogether(ctx, f.next, f.end, fn) })
}

// All reads the rows of all epochs that are left, as Next does those of one, and returns nil after the last.
func (e *Epochs) All(ctx context.Context, fn func(schema.Batch) error) error {
	for {
		switch err := e.Next(ctx, fn); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// AllLate is All for who seldom needs some of the columns: these are read only where fn asks for them, by calling rest. Values that are not read are
// no row's at all. The next batch is read meanwhile; fn is called
// for one after the other. It is an error when a column is none of those that ReadEpochs was given.
func (e *Epochs) AllLate(ctx context.Context, late []string, fn func(b schema.Batch, rest schema.Rest) error) error {
	if err := e.buffers.delay(late); err != nil {
		return err
	}
	for {
		err := e.each(func(f *epochFile) error { return f.reader.readLate(ctx, f.next, f.end, fn) })
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// Skip goes past the rows of the next epoch without reading them. It returns io.EOF when there are no more.
func (e *Epochs) Skip() error { return e.each(func(*epochFile) error { return nil }) }

// each calls fn at each row group of the next epoch.
func (e *Epochs) each(fn func(*epochFile) error) error {
	epoch, found := e.epoch()
	if !found {
		return io.EOF
	}
	for _, f := range e.files {
		for f.next < f.reader.groups() && f.epoch <= epoch {
			if err := fn(f); err != nil {
				return err
			}
			f.next = f.end
			f.begin()
		}
	}
	return nil
}

// allNull fills the batch with what stands for columns that are not read.
func (b *readBuffers) allNull() {
	b.batch.(resizer).Resize(b.rows)
	for i := range b.table.Columns {
		b.nullColumn(i)
	}
}

// nullColumn fills a column with nulls; with zeros where it cannot be null.
func (b *readBuffers) nullColumn(i int) {
	nullColumn(b.batch, i)
	for _, batch := range b.ahead {
		nullColumn(batch, i)
	}
}

func nullColumn(b schema.Batch, i int) {
	nullable := b.Table().Columns[i].Nullable
	switch v := b.Data(i).(type) {
	case []int32:
		fill(v[:cap(v)], schema.NullInt32, nullable)
	case []int64:
		fill(v[:cap(v)], schema.NullInt64, nullable)
	case []int16:
		fill(v[:cap(v)], schema.NullEnum, nullable)
	case []string:
		fill(v[:cap(v)], schema.NullText, nullable)
	}
}

func fill[T any](v []T, null T, nullable bool) {
	if !nullable {
		clear(v)
		return
	}
	for i := range v {
		v[i] = null
	}
}

// allNull says, by the statistics, that column c has no value in row group g, and sees to it that the batch says so too.
func (r *tableReader) allNull(g, c int) (null bool) {
	defer func() {
		if recover() != nil {
			null = false
		}
	}()
	if !r.table.Columns[c].Nullable {
		return false
	}
	group := r.meta.RowGroup(g)
	chunk, err := group.ColumnChunk(r.columns[c])
	if err != nil {
		return false
	}
	stats, err := chunk.Statistics()
	if err != nil || stats == nil || !stats.HasNullCount() || stats.NullCount() != group.NumRows() {
		return false
	}
	r.nullColumn(c)
	return true
}

// epoch is the epoch that Next reads; false: there is none left.
func (e *Epochs) epoch() (epoch int64, ok bool) {
	for _, f := range e.files {
		if f.next < f.reader.groups() && (!ok || f.epoch < epoch) {
			epoch, ok = f.epoch, true
		}
	}
	return epoch, ok
}
