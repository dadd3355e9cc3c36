// Package rows carries answers of queries from the SQL engine to the packages that interpret them. Columns are found by
// name, so a query may gain columns or change their order.
package rows

import (
	"context"
	"fmt"
)

// Ask asks a named query with these arguments and calls each with every row, in the order of the answer. It returns
// the engine's error or the first error of each.
type Ask func(ctx context.Context, query string, args map[string]string, each func(Row) error) error

// Header finds the columns of an answer.
type Header map[string]int

// NewHeader makes the header of an answer with these columns.
func NewHeader(columns ...string) Header {
	h := Header{}
	for i, name := range columns {
		h[name] = i
	}
	return h
}

// Row is one row of an answer: Values by column, which Header names. Its accessors panic if the answer has no such
// column, since the queries are commq's own, and return the zero value if the column is null or of another type.
type Row struct {
	Header Header
	Values []any
}

func (r Row) value(column string) any {
	i, ok := r.Header[column]
	if !ok {
		panic(fmt.Sprintf("no column %s in %v", column, r.Header))
	}
	return r.Values[i]
}

// Int returns a column of integers of any width.
func (r Row) Int(column string) int64 {
	n, _ := r.OptionalInt(column)
	return n
}

// OptionalInt returns a column of integers that may be null; known is false there.
func (r Row) OptionalInt(column string) (n int64, known bool) {
	switch v := r.value(column).(type) {
	case int16:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	}
	return 0, false
}

// OptionalFloat returns a column of DOUBLE that may be null; known is false there.
func (r Row) OptionalFloat(column string) (x float64, known bool) {
	x, known = r.value(column).(float64)
	return x, known
}

// Text returns a column of VARCHAR.
func (r Row) Text(column string) string {
	s, _ := r.value(column).(string)
	return s
}

// Bool returns a column of BOOLEAN.
func (r Row) Bool(column string) bool {
	b, _ := r.value(column).(bool)
	return b
}
