package compare

import "strings"

// TableColumn is a column of Table: its name and SQL type.
type TableColumn struct{ Name, Type string }

// Table returns the comparison as a table with a row per measure. Unknown values are nil.
func (d *Comparison) Table() (columns []TableColumn, values [][]any) {
	columns = []TableColumn{{"measure", "VARCHAR"}, {"item", "VARCHAR"}, {"unit", "VARCHAR"}, {"exact", "BOOLEAN"},
		{"what", "VARCHAR"},
		{"base_runs", "BIGINT"}, {"base_low", "BIGINT"}, {"base_high", "BIGINT"}, {"base_center", "DOUBLE"},
		{"new_runs", "BIGINT"}, {"new_low", "BIGINT"}, {"new_high", "BIGINT"}, {"new_center", "DOUBLE"},
		{"ratio", "DOUBLE"}, {"p", "DOUBLE"}, {"file", "VARCHAR"}, {"line", "BIGINT"}, {"notes", "VARCHAR"}}
	for i := range d.Changes {
		c := &d.Changes[i]
		row := append([]any{c.Measure, c.Item, c.Unit, c.Exact, c.What}, append(c.Base.cells(), c.New.cells()...)...)
		var ratio, file, line any
		if x, known := c.Ratio(); known {
			ratio = x
		}
		if c.New.File != "" {
			file, line = c.New.File, int64(c.New.Line)
		}
		values = append(values, append(row, ratio, c.P, file, line, strings.Join(c.Notes, "; ")))
	}
	return columns, values
}

// cells returns the number of runs and the least, greatest and central value.
func (s Side) cells() []any {
	if s.N == 0 {
		return []any{int64(0), nil, nil, nil}
	}
	return []any{int64(s.N), s.Low, s.High, s.Center}
}
