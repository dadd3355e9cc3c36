package queries

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Drawn is an answer prepared for drawing: each row has one number to draw.
type Drawn struct {
	// Plot names the columns; its More is empty.
	Plot Plot
	// Columns describe Rows.
	Columns []Column
	// Rows are in drawing order.
	Rows [][]any
}

// Drawn prepares the rows of an answer for drawing: several y columns become rows of their own; call sites,
// communicators, datatypes and booleans get names; bars of ranks are sorted by rank; and an axis that a parameter
// selects is named after the parameter's value. args are the query's arguments, runs is how many runs the picture
// shows. The input rows are not changed.
func (q *Query) Drawn(columns []Column, rows [][]any, args map[string]string, runs int) Drawn {
	d := Drawn{Plot: *q.Plot, Columns: slices.Clone(columns), Rows: slices.Clone(rows)}
	for i := range d.Columns {
		if c := q.column(d.Columns[i].Name); c != nil {
			d.Columns[i] = *c
			d.Columns[i].Label = q.fillWords(c.Label, args)
		}
	}
	d.groupHistograms(runs)
	d.nameSites()
	d.nameIDs()
	d.nameBooleans()
	d.nameNumbers()
	d.unpivot(q.fillWords(q.labels[sharedY], args))
	d.sortRanks()
	for column, param := range q.Axes {
		d.nameAxis(column, argument(q.param(param), args))
	}
	return d
}

// groupHistograms draws the histograms of several runs as groups of bars.
func (d *Drawn) groupHistograms(runs int) {
	if d.Plot.Kind != "histogram" {
		return
	}
	if by := d.Plot.Series; runs > 1 {
		d.Plot.Kind, d.Plot.X, d.Plot.Series = "grouped", by, d.Plot.X
	} else {
		d.Plot.Series = ""
	}
}

// argument returns a parameter's value, or its default.
func argument(p *Param, args map[string]string) string {
	if v, ok := args[p.Name]; ok {
		return v
	}
	return p.Default
}

func (d *Drawn) columnIndex(name string) int {
	return slices.IndexFunc(d.Columns, func(c Column) bool { return c.Name == name })
}

// add appends a column; value computes it for each row.
func (d *Drawn) add(c Column, of func(row []any) any) {
	for i, row := range d.Rows {
		d.Rows[i] = append(slices.Clone(row), of(row))
	}
	d.Columns = append(d.Columns, c)
}

// nameSites replaces the numbers of call sites by their places in the source and drops sites with nothing to draw.
// Two sites with the same place keep their numbers.
func (d *Drawn) nameSites() {
	site, y := d.columnIndex("callsite"), d.columnIndex(d.Plot.Y)
	if d.Plot.X != "callsite" || site < 0 || y < 0 {
		return
	}
	if some := func(row []any) bool { return number(row, y) != 0 }; slices.ContainsFunc(d.Rows, some) {
		d.Rows = slices.DeleteFunc(d.Rows, func(row []any) bool { return !some(row) })
	}
	d.nameX(Column{Name: "call_site", Type: "VARCHAR", Label: d.Columns[site].Label}, site, d.siteName)
}

// nameIDs replaces the ids of communicators and datatypes by names. One without a name shows its kind and id.
func (d *Drawn) nameIDs() {
	id := d.columnIndex(d.Plot.X)
	if id < 0 || d.Plot.X != "comm" && d.Plot.X != "datatype" {
		return
	}
	name := map[string]string{"comm": "communicator", "datatype": "type"}[d.Plot.X]
	d.nameX(Column{Name: name, Type: "VARCHAR", Label: d.Columns[id].Label}, id, func(row []any) string {
		for _, column := range []string{"name", "kind", "combiner"} {
			if name := label(row, d.columnIndex(column)); name != "" && column == "name" {
				return name
			} else if name != "" {
				return name + " " + label(row, id)
			}
		}
		return label(row, id)
	})
}

// nameX replaces the ids on the x axis by names. If two ids have the same name, the later one is followed by its id.
func (d *Drawn) nameX(column Column, id int, of func(row []any) string) {
	ids := map[string]string{} // first id with that name
	d.add(column, func(row []any) any {
		name, n := of(row), label(row, id)
		if first, taken := ids[name]; taken && first != n {
			return name + " #" + n
		}
		ids[name] = n
		return name
	})
	d.Plot.X = column.Name
}

// siteName describes a call site: function and line, or function and offset in the module.
func (d *Drawn) siteName(row []any) string {
	of := func(column string) string { return label(row, d.columnIndex(column)) }
	var parts []string
	if f := of("function"); f != "" {
		parts = append(parts, f)
	}
	switch file, offset := of("file"), d.columnIndex("code_offset"); {
	case file != "":
		parts = append(parts, path.Base(file)+":"+of("line"))
	case offset >= 0 && row[offset] != nil:
		n, _ := integer(row[offset])
		parts = append(parts, fmt.Sprintf("%s+%#x", path.Base(of("module")), n))
	}
	if by := of("callers"); by != "" {
		parts = append(parts, "< "+by)
	}
	if len(parts) == 0 {
		return "not known"
	}
	return strings.Join(parts, " ")
}

// nameBooleans names a series of booleans: "same host" and "not same host".
func (d *Drawn) nameBooleans() {
	i := d.columnIndex(d.Plot.Series)
	if i < 0 || d.Columns[i].Type != "BOOLEAN" {
		return
	}
	name := d.Columns[i].Words()
	for k, row := range d.Rows {
		row = slices.Clone(row)
		if yes, ok := row[i].(bool); ok && yes {
			row[i] = name
		} else if ok {
			row[i] = "not " + name
		}
		d.Rows[k] = row
	}
	d.Columns[i].Type = "VARCHAR"
}

// nameNumbers names a series of ids: "communicator 2". Numbers alone would get colours in an order that ids do not
// have.
func (d *Drawn) nameNumbers() {
	i := d.columnIndex(d.Plot.Series)
	if i < 0 || d.Columns[i].Type != "INTEGER" || d.Columns[i].Unit != "" {
		return
	}
	name := d.Columns[i].Words()
	for k, row := range d.Rows {
		row = slices.Clone(row)
		row[i] = name + " " + label(row, i)
		d.Rows[k] = row
	}
	d.Columns[i].Type = "VARCHAR"
}

// partColumn is the column that tells apart the values of several y columns.
const partColumn = "part"

// unpivot makes one row for each y column. together names their axis; "" if the query does not.
func (d *Drawn) unpivot(together string) {
	if len(d.Plot.More) == 0 {
		return
	}
	series := d.columnIndex(d.Plot.Series)
	differ := func(row []any) bool { return label(row, series) != label(d.Rows[0], series) }
	several := slices.ContainsFunc(d.Rows, differ)
	first := d.Columns[d.columnIndex(d.Plot.Y)]
	value := Column{Name: first.Unit, Type: first.Type, Unit: first.Unit, Label: together}
	switch first.Unit {
	case "ns":
		value.Name = "time_ns"
	case "1", "":
		value.Name = "number"
	}
	part := Column{Name: partColumn, Type: "VARCHAR"}
	if several {
		part.Name, part.Label = d.Plot.Series+"_and_part", d.Columns[series].Words()
	}
	var rows [][]any
	for _, row := range d.Rows {
		for _, column := range append([]string{d.Plot.Y}, d.Plot.More...) {
			name := d.Columns[d.columnIndex(column)].Words()
			if several {
				name = label(row, series) + ", " + name
			}
			rows = append(rows, append(slices.Clone(row), name, row[d.columnIndex(column)]))
		}
	}
	d.free(value.Name)
	d.free(part.Name)
	d.Columns, d.Rows = append(d.Columns, part, value), rows
	d.Plot.Y, d.Plot.More, d.Plot.Series = value.Name, nil, part.Name
}

// free renames an undrawn column that already has the name, to make the name available.
func (d *Drawn) free(name string) {
	if i := d.columnIndex(name); i >= 0 {
		d.Columns[i].Name += "_"
	}
}

// sortRanks sorts bars by rank.
func (d *Drawn) sortRanks() {
	rank := d.columnIndex("rank")
	if d.Plot.X != "rank" || rank < 0 || d.Plot.Kind != "bars" && d.Plot.Kind != "grouped" {
		return
	}
	slices.SortStableFunc(d.Rows, func(a, b []any) int { return int(number(a, rank) - number(b, rank)) })
}

// nameAxis names a column after a parameter's value.
func (d *Drawn) nameAxis(column, value string) {
	i := d.columnIndex(column)
	if i < 0 {
		return
	}
	name := strings.ReplaceAll(value, "-", "_")
	c := Column{Name: name, Type: d.Columns[i].Type, Unit: "1", Doc: d.Columns[i].Doc}
	switch {
	case strings.HasSuffix(name, "_ns"):
		c.Unit = "ns"
	case slices.Contains(strings.Split(name, "_"), "bytes"):
		c.Unit = "bytes"
	}
	d.Columns[i].Name = ""
	d.free(name)
	d.Columns[i] = c
	for _, drawn := range []*string{&d.Plot.X, &d.Plot.Y} {
		if *drawn == column {
			*drawn = name
		}
	}
}
