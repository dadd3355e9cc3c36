package queries

import (
	"errors"
	"fmt"

	"github.com/commq/commq/queries/plot"
)

// Keep reads all rows into memory, to be read more than once with Again.
func Keep(rows Rows) (Rows, error) {
	k := &kept{columns: rows.Columns(), at: -1}
	for rows.Next() {
		k.rows = append(k.rows, append([]any(nil), rows.Row()...))
	}
	return k, rows.Err()
}

// Again gives kept rows from the first.
func Again(rows Rows) Rows {
	if k, ok := rows.(*kept); ok {
		return &kept{columns: k.columns, rows: k.rows, at: -1}
	}
	return rows
}

type kept struct {
	columns []Column
	rows    [][]any
	at      int
}

func (k *kept) Columns() []Column { return k.columns }
func (k *kept) Row() []any        { return k.rows[k.at] }
func (k *kept) Err() error        { return nil }
func (k *kept) Close() error      { return nil }

func (k *kept) Next() bool {
	k.at++
	return k.at < len(k.rows)
}

// Matrix makes the matrix that the header's plot names of the query's rows; ranks is its size. Errors say which row does
// not fit.
func (q *Query) Matrix(rows Rows, ranks int32) (*plot.Matrix, error) {
	if q.Plot == nil || q.Plot.Kind != "matrix" {
		return nil, fmt.Errorf("query %s makes no matrix", q.Name)
	}
	var at [3]int
	for i, name := range []string{q.Plot.Row, q.Plot.Column, q.Plot.Value} {
		at[i] = -1
		for j, c := range rows.Columns() {
			if c.Name == name {
				at[i] = j
			}
		}
		if at[i] < 0 {
			return nil, fmt.Errorf("query %s: the rows have no column %s", q.Name, name)
		}
	}
	m, err := plot.NewMatrix(int(ranks))
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		row := rows.Row()
		src, ok1 := number(row[at[0]])
		dst, ok2 := number(row[at[1]])
		value, ok3 := number(row[at[2]])
		if !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("query %s: row %v has a null where the plot needs a number", q.Name, row)
		}
		if err := m.Add(src, dst, value); err != nil {
			return nil, err
		}
	}
	m.Unit = q.column(q.Plot.Value).Unit
	m.Value = q.Plot.Value
	return m, errors.Join(rows.Err())
}

func number(v any) (int64, bool) {
	switch x := v.(type) {
	case int32:
		return int64(x), true
	case int64:
		return x, true
	}
	return 0, false
}
