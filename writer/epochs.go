package writer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/commq/commq/schema"
)

// Epochs reads a table in the order of its epochs, all files side by side. Only one epoch is in memory.
type Epochs struct {
	buffers *readBuffers
	files   []*epochFile
	limits  *rowLimits // nil: rows may have any values
	from    *snapshot  // nil: the run has no manifest yet
}

// epochFile is a file that is read up to a row group.
type epochFile struct {
	reader *tableReader
	next   int   // the next row group
	end    int   // the first row group that is not read together with next
	epoch  int64 // of next
}

// ReadEpochs begins to read the given columns of table t, events or messages, of the run in folder dir. All other
// columns are null, or zero when they are not nullable. It returns an error for a column that the table does not
// have, and when the run's files cannot be read. Rows with values that the run cannot have are errors, as in ReadTable,
// and so is a run that was replaced before the last epoch was read.
func ReadEpochs(dir string, t *schema.Table, batchRows int, columns ...string) (*Epochs, error) {
	return Opened{Dir: dir}.ReadEpochs(t, batchRows, columns...)
}

// ReadEpochs begins to read a table as the function ReadEpochs does, if the run is still the same.
func (o Opened) ReadEpochs(t *schema.Table, batchRows int, columns ...string) (*Epochs, error) {
	s, files, err := o.table(context.Background(), t)
	if err != nil {
		return nil, err
	}
	e, err := readEpochsOf(o.Dir, files, t, batchRows, columns...)
	if err != nil {
		return nil, s.explain(err)
	}
	l := limitsOf(o.Dir, s.manifest, t)
	l.leaveOut(func(c int) bool { return !e.buffers.want[c] })
	e.limits, e.from = l, s
	return e, nil
}

// readEpochs does the same for rows that are to have any values.
func readEpochs(dir string, t *schema.Table, batchRows int, columns ...string) (*Epochs, error) {
	files, err := listFiles(context.Background(), dir, t)
	if err != nil {
		return nil, err
	}
	return readEpochsOf(dir, files, t, batchRows, columns...)
}

// readEpochsOf does the same with these files of the table.
func readEpochsOf(dir string, files []string, t *schema.Table, batchRows int, columns ...string) (*Epochs, error) {
	b, err := buffersFor(t, batchRows, columns)
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
	b.shrink(e.files)
	b.fillUnread()
	return e, nil
}

// shrink makes batches no larger than the largest file: a small run needs small buffers.
func (b *readBuffers) shrink(files []*epochFile) {
	largest := int64(1)
	for _, f := range files {
		largest = max(largest, f.reader.meta.NumRows)
	}
	b.rows = int(min(int64(b.rows), largest))
}

// buffersFor returns buffers for the given columns. fillUnread must be called before they are read into.
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
	return b, nil
}

// Need leaves out row groups in which, by the statistics, a column has no value, for callers that look only at rows
// with a value there. Where point-to-point rows of events have row groups of their own (splitEvents), these have none
// in instance. Call it before Next and All.
func (e *Epochs) Need(column string) error {
	_, i := e.buffers.table.Column(column)
	if i < 0 || !e.buffers.want[i] {
		return fmt.Errorf("column %q of table %s cannot be needed, as it is not read", column, e.buffers.table.Name)
	}
	e.buffers.needed = append(e.buffers.needed, i)
	return nil
}

// begin finds the epoch of the next row group, and the row groups read together with it.
func (f *epochFile) begin() {
	if f.next < f.reader.groups() {
		f.epoch, f.end = f.reader.firstEpoch(f.next), f.reader.together(f.next)
	}
}

// Next reads the rows of the next epoch, file by file, and calls fn with up to batchRows rows at a time; fn must not
// keep them. Epochs that share a row group come together. It returns io.EOF after the last epoch.
func (e *Epochs) Next(ctx context.Context, fn func(schema.Batch) error) error {
	if e.limits != nil {
		fn = e.limits.checked(fn)
	}
	return e.each(func(f *epochFile) error { return f.reader.readTogether(ctx, f.next, f.end, fn) })
}

// All calls Next for all remaining epochs. It returns nil after the last.
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

// AllLate does the same as All, for callers that need the columns late only for a few rows. These columns are
// undefined until fn calls rest, which reads them for the rows that fn names. The next batch is read while fn runs,
// but fn is not called concurrently. A late column that ReadEpochs was not given is an error.
func (e *Epochs) AllLate(ctx context.Context, late []string, fn func(b schema.Batch, rest schema.Rest) error) error {
	if err := e.buffers.delay(late); err != nil {
		return err
	}
	if e.limits != nil {
		e.limits.leaveOut(func(c int) bool { return e.buffers.late[c] })
		given := fn
		fn = func(b schema.Batch, rest schema.Rest) error {
			if err := e.limits.check(b); err != nil {
				return err
			}
			return given(b, rest)
		}
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

// Skip skips the next epoch without reading it. It returns io.EOF after the last.
func (e *Epochs) Skip() error { return e.each(func(*epochFile) error { return nil }) }

// each calls fn for each row group of the next epoch.
func (e *Epochs) each(fn func(*epochFile) error) error {
	epoch, found := e.Epoch()
	if !found {
		return io.EOF
	}
	for _, f := range e.files {
		for f.next < f.reader.groups() && f.epoch <= epoch {
			if err := fn(f); err != nil {
				return e.explain(err)
			}
			f.next = f.end
			f.begin()
		}
	}
	if _, more := e.Epoch(); more || e.from == nil {
		return nil
	}
	return e.from.check()
}

// explain says of an error that the run was replaced, if it was.
func (e *Epochs) explain(err error) error {
	if e.from == nil {
		return err
	}
	return e.from.explain(err)
}

// fillUnread fills the batch with the values of columns that are not read.
func (b *readBuffers) fillUnread() {
	b.batch.(resizer).Resize(b.rows)
	for i := range b.table.Columns {
		b.nullColumn(i)
	}
}

// nullColumn fills a column with nulls, or with zeros when it is not nullable.
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

// allNull reports whether, by the statistics, column c has no value in row group g. If so, it fills the column with
// nulls.
func (r *tableReader) allNull(g, c int) bool {
	null := r.hasNoValue(g, c)
	if null {
		r.nullColumn(c)
	}
	return null
}

// hasNoValue reports whether, by the statistics, column c has no value in row group g.
func (r *tableReader) hasNoValue(g, c int) (null bool) {
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
	return err == nil && stats != nil && stats.HasNullCount() && stats.NullCount() == group.NumRows()
}

// Epoch returns the epoch that Next reads; ok is false after the last.
func (e *Epochs) Epoch() (epoch int64, ok bool) {
	for _, f := range e.files {
		if f.next < f.reader.groups() && (!ok || f.epoch < epoch) {
			epoch, ok = f.epoch, true
		}
	}
	return epoch, ok
}
