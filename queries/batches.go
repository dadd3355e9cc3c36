package queries

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"unsafe"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// Batch is some rows of an answer as columns.
type Batch struct {
	// Rows is their number, at least 1.
	Rows int
	// Columns are the values by column: []int32, []int64, []float64, []bool or []string, valid until the next batch.
	Columns []any
	// Valid says which values of a column are not null; nil means all. The others are 0 or anything.
	Valid [][]bool
}

// Batches returns a function that returns the next rows as columns, and nil at the end or on an error, which rows.Err
// then returns. It returns nil if rows can only be read one by one: those of a Trino server, of several runs, of an
// engine opened without Options.ByColumn, or with a column that has none of the types of a Batch. Rows are read in one
// way, not in both.
func Batches(rows Rows) func() *Batch {
	switch r := rows.(type) {
	case *columnRows:
		if r.byColumn() {
			return r.nextBatch
		}
	case *concat:
		if only, ok := r.now.(*columnRows); ok && only.byColumn() {
			return r.nextBatch
		}
	}
	return nil
}

// nextBatch returns the next batch of this answer or of the next.
func (c *concat) nextBatch() *Batch {
	for c.err == nil && c.now != nil {
		now, ok := c.now.(*columnRows)
		if !ok {
			c.err = errors.New("an answer by columns is followed by one by rows")
			return nil
		}
		if b := now.nextBatch(); b != nil {
			return b
		}
		c.advance()
	}
	return nil
}

// columnRows are rows of the engine that can be read by columns. The rows of database/sql hide the driver's, and the
// driver's hide the engine's chunks unless everything is built with a tag; so the chunks are found in them by
// reflection.
type columnRows struct {
	ctx     context.Context
	rows    driver.Rows
	columns []Column
	values  []driver.Value
	row     []any
	result  *mapping.Result // nil if the driver keeps it elsewhere
	chunk   mapping.DataChunk
	err     error
	ended   bool
}

// queryColumns runs a statement for reading its answer by columns.
func (d *DB) queryColumns(ctx context.Context, described []Column, text string, args ...any) (Rows, error) {
	named := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	var rows driver.Rows
	err := d.conn.Raw(func(conn any) (err error) {
		q, ok := conn.(driver.QueryerContext)
		if !ok {
			return fmt.Errorf("the engine's driver has a %T", conn)
		}
		rows, err = q.QueryContext(ctx, text, named)
		return err
	})
	if err != nil {
		return nil, err
	}
	r := &columnRows{ctx: ctx, rows: rows, result: resultOf(rows)}
	if r.columns, err = describe(driverTypes(rows), described); err != nil {
		return nil, errors.Join(err, rows.Close())
	}
	r.values, r.row = make([]driver.Value, len(r.columns)), make([]any, len(r.columns))
	return r, nil
}

// driverTypes are the columns that the driver names.
func driverTypes(rows driver.Rows) []columnType {
	types := make([]columnType, len(rows.Columns()))
	typed, _ := rows.(driver.RowsColumnTypeDatabaseTypeName)
	for i, name := range rows.Columns() {
		types[i].name = name
		if typed != nil {
			types[i].typ = typeName(typed.ColumnTypeDatabaseTypeName(i))
		}
	}
	return types
}

// resultOf returns the engine's result in the driver's rows; nil if it is not where duckdb-go v2.10505.0 has it.
func resultOf(rows driver.Rows) *mapping.Result {
	v := reflect.ValueOf(rows)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	field := v.Elem().FieldByName("res")
	if !field.IsValid() || field.Type() != reflect.TypeFor[mapping.Result]() {
		return nil
	}
	return (*mapping.Result)(unsafe.Pointer(field.UnsafeAddr()))
}

// batchTypes are the SQL types that a batch can have.
var batchTypes = []string{"INTEGER", "BIGINT", "DOUBLE", "BOOLEAN", "VARCHAR"}

func (r *columnRows) byColumn() bool {
	return r.result != nil &&
		!slices.ContainsFunc(r.columns, func(c Column) bool { return !slices.Contains(batchTypes, c.Type) })
}

func (r *columnRows) nextBatch() *Batch {
	r.freeChunk()
	if r.ended || r.err != nil {
		return nil
	}
	if r.err = r.ctx.Err(); r.err != nil {
		return nil
	}
	r.chunk = mapping.FetchChunk(*r.result)
	if r.chunk.Ptr == nil {
		r.ended = true
		return nil
	}
	n := int(mapping.DataChunkGetSize(r.chunk))
	if n == 0 {
		return r.nextBatch()
	}
	b := &Batch{Rows: n, Columns: make([]any, len(r.columns)), Valid: make([][]bool, len(r.columns))}
	for i, c := range r.columns {
		vector := mapping.DataChunkGetVector(r.chunk, mapping.IdxT(i))
		b.Valid[i] = validity(vector, n)
		b.Columns[i] = valuesOf(vector, c.Type, b.Valid[i], n)
	}
	return b
}

// validity tells which of the first n values of a vector are not null; nil if all are.
func validity(vector mapping.Vector, n int) []bool {
	mask := mapping.VectorGetValidity(vector)
	if mask == nil {
		return nil
	}
	words := unsafe.Slice((*uint64)(mask), (n+63)/64)
	valid, all := make([]bool, n), true
	for i := range valid {
		valid[i] = words[i/64]>>(i%64)&1 == 1
		all = all && valid[i]
	}
	if all {
		return nil
	}
	return valid
}

// valuesOf returns the first n values of a vector of this type.
func valuesOf(vector mapping.Vector, typ string, valid []bool, n int) any {
	data := mapping.VectorGetData(vector)
	switch typ {
	case "INTEGER":
		return unsafe.Slice((*int32)(data), n)
	case "BIGINT":
		return unsafe.Slice((*int64)(data), n)
	case "DOUBLE":
		return unsafe.Slice((*float64)(data), n)
	case "BOOLEAN":
		return unsafe.Slice((*bool)(data), n)
	}
	texts, all := unsafe.Slice((*engineText)(data), n), make([]string, n)
	for i := range texts {
		if valid == nil || valid[i] {
			all[i] = texts[i].text()
		}
	}
	return all
}

// engineText is duckdb_string_t: up to 12 bytes stand in it, longer texts elsewhere.
type engineText struct {
	length  uint32
	inlined [4]byte
	pointer *byte // where the text is long; else its bytes 4 to 11
}

const inlinedBytes = 12

// text returns the text, valid as long as the chunk.
func (t *engineText) text() string {
	if t.length <= inlinedBytes {
		return unsafe.String(&t.inlined[0], t.length)
	}
	return unsafe.String(t.pointer, t.length)
}

func (r *columnRows) freeChunk() {
	if r.chunk.Ptr != nil {
		mapping.DestroyDataChunk(&r.chunk)
		r.chunk.Ptr = nil
	}
}

func (r *columnRows) Columns() []Column { return r.columns }
func (r *columnRows) Row() []any        { return r.row }

func (r *columnRows) Next() bool {
	if r.ended || r.err != nil {
		return false
	}
	if r.err = r.ctx.Err(); r.err != nil {
		return false
	}
	switch err := r.rows.Next(r.values); {
	case errors.Is(err, io.EOF):
		r.ended = true
		return false
	case err != nil:
		r.err = err
		return false
	}
	for i, v := range r.values {
		r.row[i] = v
	}
	return true
}

func (r *columnRows) Err() error { return plain(r.err) }

func (r *columnRows) Close() error {
	r.freeChunk()
	return r.rows.Close()
}
