package writer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/commq/commq/schema"
)

// batchesAhead is the number of batches in use: one with the caller, one waiting, one being read.
const batchesAhead = 3

// delay marks these columns as late.
func (b *readBuffers) delay(columns []string) error {
	b.late = make([]bool, len(b.table.Columns))
	for _, name := range columns {
		_, i := b.table.Column(name)
		if i < 0 || !b.want[i] {
			return fmt.Errorf("column %q of table %s cannot be read late, as it is not read at all", name, b.table.Name)
		}
		b.late[i] = true
	}
	b.ahead = []schema.Batch{b.batch}
	for len(b.ahead) < batchesAhead {
		b.ahead = append(b.ahead, schema.NewBatch(b.table))
		b.ahead[len(b.ahead)-1].(resizer).Resize(b.rows)
	}
	for i, want := range b.want {
		if !want {
			b.nullColumn(i)
		}
	}
	return nil
}

// readLate reads the row groups [g, end), which are read together. If there are several, they must be merged, and no
// column is late.
func (r *tableReader) readLate(ctx context.Context, g, end int, fn func(b schema.Batch, rest schema.Rest) error) error {
	if end > g+1 {
		return r.readTogether(ctx, g, end, func(b schema.Batch) error {
			return fn(b, func(int, int, ...string) error { return nil })
		})
	}
	return r.readWith(g, func(p *file.Reader) error { return r.rowGroupLate(ctx, p, g, fn) })
}

// aheadBatch is a batch that was read, except for its late columns.
type aheadBatch struct {
	batch schema.Batch
	first int64 // its first row in the row group
}

// rowGroupLate reads a row group, a batch ahead of fn.
func (r *tableReader) rowGroupLate(ctx context.Context, p *file.Reader, g int,
	fn func(b schema.Batch, rest schema.Rest) error) error {
	late := &lateColumns{tableReader: r, group: p.RowGroup(g)}
	readers, err := late.readers(g)
	if err != nil {
		return err
	}
	free, full := make(chan schema.Batch, len(r.ahead)), make(chan aheadBatch, len(r.ahead))
	for _, b := range r.ahead {
		free <- b
	}
	var failed atomic.Bool
	done := make(chan error, 1)
	go func() {
		var err error
		for x := range full {
			if err == nil {
				err = late.visit(x, fn)
				failed.Store(err != nil)
			}
			free <- x.batch
		}
		done <- err
	}()
	rows := late.group.NumRows()
	for first := int64(0); first < rows && err == nil && !failed.Load(); {
		x := aheadBatch{<-free, first}
		n := min(int64(r.rows), rows-first)
		r.batch = x.batch // arrow-go's decoder looks there
		x.batch.(resizer).Resize(int(n))
		if err = ctx.Err(); err != nil {
			err = &callerError{err}
			break
		}
		if err = fillColumns(readers, x); err == nil {
			full <- x
		}
		first += n
	}
	close(full)
	if broken := <-done; broken != nil { // from an earlier batch
		return broken
	}
	return err
}

// fillColumns fills columns with the next rows.
func fillColumns(readers []func(column any) error, x aheadBatch) error {
	for c := range readers {
		if readers[c] == nil {
			continue
		}
		if err := readers[c](x.batch.Data(c)); err != nil {
			return locatedRows(c, x, err)
		}
	}
	return nil
}

func locatedRows(c int, x aheadBatch, err error) error {
	return fmt.Errorf("column %s, rows %d to %d: %w", x.batch.Table().Columns[c].Name, x.first,
		x.first+int64(x.batch.Len())-1, err)
}

// lateColumns are the columns of a row group that are read only on request.
type lateColumns struct {
	*tableReader
	group *file.RowGroupReader
	list  []lateColumn
}

// lateColumn is a late column. Its decoder is made on the first request; at is the next row it would read.
type lateColumn struct {
	column  int
	decoder chunkDecoder
	at      int64
}

// readers returns functions that fill the columns that are not late; nil for the others. A column that arrow-go has to
// decode is never late.
func (l *lateColumns) readers(g int) (readers []func(column any) error, err error) {
	for c, i := range l.columns {
		if !l.want[c] || l.allNull(g, c) {
			readers = append(readers, nil)
			continue
		}
		chunk, err := l.group.MetaData().ColumnChunk(i)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", l.table.Columns[c].Name, err)
		}
		if l.late[c] && l.ours[c] != nil && decodes(chunk.Encodings()) {
			l.list = append(l.list, lateColumn{column: c})
			readers = append(readers, nil)
			continue
		}
		reader, err := l.columnReader(l.group, c, i)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", l.table.Columns[c].Name, err)
		}
		readers = append(readers, reader)
	}
	return readers, nil
}

// visit calls fn with a batch.
func (l *lateColumns) visit(x aheadBatch, fn func(b schema.Batch, rest schema.Rest) error) error {
	var broken error
	err := fn(x.batch, func(first, end int, columns ...string) error {
		if broken == nil {
			broken = l.fill(x, first, end, columns)
		}
		return broken
	})
	if broken != nil {
		return broken
	}
	if err != nil {
		return &callerError{err}
	}
	return nil
}

// fill reads late columns of the rows [first, end) of a batch: those with the given names, or all without names.
func (l *lateColumns) fill(x aheadBatch, first, end int, columns []string) error {
	for k := range l.list {
		c := &l.list[k]
		if len(columns) > 0 && !slices.Contains(columns, l.table.Columns[c.column].Name) {
			continue
		}
		from := max(first, int(c.at-x.first)) // earlier rows were read, or skipped for good
		if from >= end {
			continue
		}
		if err := c.fill(l, x, from, end); err != nil {
			return locatedRows(c.column, x, err)
		}
	}
	return nil
}

func (c *lateColumn) fill(l *lateColumns, x aheadBatch, first, end int) (err error) {
	defer recovered(&err)
	if c.decoder == nil {
		i := l.columns[c.column]
		pages, err := l.group.GetColumnPageReader(i)
		if err != nil {
			return err
		}
		c.decoder = l.ours[c.column]
		c.decoder.reset(pages, l.meta.Schema.Column(i).MaxDefinitionLevel() > 0)
	}
	if err := c.decoder.skip(int(x.first + int64(first) - c.at)); err != nil {
		return err
	}
	c.at = x.first + int64(end)
	return c.decoder.fillPart(x.batch.Data(c.column), first, end)
}

// readWith calls fn with the file open, for row group g.
func (r *tableReader) readWith(g int, fn func(p *file.Reader) error) error {
	err := r.opened(fn)
	var ours *callerError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ours):
		return ours.err
	}
	return r.located(fmt.Errorf("row group %d: %w", g, err))
}
