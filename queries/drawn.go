package queries

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Drawn is an answer as it is drawn: with one number in each row.
type Drawn struct {
	// Plot names the columns, with no More.
	Plot Plot
	// Columns are the columns of Rows.
	Columns []Column
	// Rows are in the order in which they are drawn.
	Rows [][]any
}

// Drawn makes of an answer's rows what is drawn of them: several columns of the axis y become rows of their own, call sites,
// communicators, datatypes and booleans get names, bars of ranks the order of ranks, and axes that a parameter names its value. args are those that the
// query was asked with. The rows are not changed.
func (q *Query) Drawn(columns []Column, rows [][]any, args map[string]string) Drawn {
	d := Drawn{Plot: *q.Plot, Columns: slices.Clone(columns), Rows: slices.Clone(rows)}
	for i := range d.Columns {
		if c := q.column(d.Columns[i].Name); c != nil {
			d.Columns[i] = *c
		}
	}
	d.nameSites()
	d.nameIDs()
	d.nameBooleans()
	d.unpivot()
	d.sortRanks()
	for column, param := range q.Axes {
		d.nameAxis(column, argument(q.param(param), args))
	}
	return d
}

// argument is a parameter's value.
func argument(p *Param, args map[string]string) string {
	if v, ok := args[p.Name]; ok {
		return v
	}
	return p.Default
}

func (d *Drawn) at(name string) int {
	return slices.IndexFunc(d.Columns, func(c Column) bool { return c.Name == name })
}

// add appends a column, whose value of each row is of that row.
func (d *Drawn) add(c Column, of func(row []any) any) {
	for i, row := range d.Rows {
		d.Rows[i] = append(slices.Clone(row), of(row))
	}
	d.Columns = append(d.Columns, c)
}

// nameSites puts the places in the source, which people know, where call sites have numbers, which they do not, and leaves out
// those that have nothing to draw. Two places of one name keep their numbers.
func (d *Drawn) nameSites() {
	site, y := d.at("callsite"), d.at(d.Plot.Y)
	if d.Plot.X != "callsite" || site < 0 || y < 0 {
		return
	}
	if some := func(row []any) bool { return number(row, y) != 0 }; slices.ContainsFunc(d.Rows, some) {
		d.Rows = slices.DeleteFunc(d.Rows, func(row []any) bool { return !some(row) })
	}
	d.nameX("call_site", site, d.place)
}

// nameIDs puts names where communicators and datatypes have ids, and how they were made before the id of those without a name.
func (d *Drawn) nameIDs() {
	id := d.at(d.Plot.X)
	if id < 0 || d.Plot.X != "comm" && d.Plot.X != "datatype" {
		return
	}
	d.nameX(map[string]string{"comm": "communicator", "datatype": "type"}[d.Plot.X], id, func(row []any) string {
		for _, column := range []string{"name", "kind", "combiner"} {
			if name := label(row, d.at(column)); name != "" && column == "name" {
				return name
			} else if name != "" {
				return name + " " + label(row, id)
			}
		}
		return label(row, id)
	})
}

// nameX puts names in the place of the ids of the axis x. An id whose name another one has keeps its number behind it.
func (d *Drawn) nameX(column string, id int, of func(row []any) string) {
	ids := map[string]string{} // by name
	d.add(Column{Name: column, Type: "VARCHAR"}, func(row []any) any {
		name, n := of(row), label(row, id)
		if first, taken := ids[name]; taken && first != n {
			return name + " #" + n
		}
		ids[name] = n
		return name
	})
	d.Plot.X = column
}

// place is a call site in words: its function with the line, else with the place in the module.
func (d *Drawn) place(row []any) string {
	of := func(column string) string { return label(row, d.at(column)) }
	var parts []string
	if f := of("function"); f != "" {
		parts = append(parts, f)
	}
	switch file, offset := of("file"), d.at("code_offset"); {
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

// nameBooleans makes names of a series of booleans: "same host" and "not same host".
func (d *Drawn) nameBooleans() {
	i := d.at(d.Plot.Series)
	if i < 0 || d.Columns[i].Type != "BOOLEAN" {
		return
	}
	name := words(d.Columns[i].Name)
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

// unpivot makes a row for each of the columns of the axis y.
func (d *Drawn) unpivot() {
	if len(d.Plot.More) == 0 {
		return
	}
	series := d.at(d.Plot.Series)
	differ := func(row []any) bool { return label(row, series) != label(d.Rows[0], series) }
	several := slices.ContainsFunc(d.Rows, differ)
	first := d.Columns[d.at(d.Plot.Y)]
	value := Column{Name: first.Unit, Type: first.Type, Unit: first.Unit}
	switch first.Unit {
	case "ns":
		value.Name = "time_ns"
	case "1", "":
		value.Name = "number"
	}
	part := Column{Name: "part", Type: "VARCHAR"}
	if several {
		part.Name = d.Plot.Series + "_and_part"
	}
	var rows [][]any
	for _, row := range d.Rows {
		for _, column := range append([]string{d.Plot.Y}, d.Plot.More...) {
			name := words(column)
			if several {
				name = label(row, series) + ", " + name
			}
			rows = append(rows, append(slices.Clone(row), name, row[d.at(column)]))
		}
	}
	d.free(value.Name)
	d.free(part.Name)
	d.Columns, d.Rows = append(d.Columns, part, value), rows
	d.Plot.Y, d.Plot.More, d.Plot.Series = value.Name, nil, part.Name
}

// free gives a column that has a name, and is not drawn, another one.
func (d *Drawn) free(name string) {
	if i := d.at(name); i >= 0 {
		d.Columns[i].Name += "_"
	}
}

// sortRanks puts the bars of ranks in order.
func (d *Drawn) sortRanks() {
	rank := d.at("rank")
	if d.Plot.X != "rank" || rank < 0 || d.Plot.Kind != "bars" && d.Plot.Kind != "grouped" {
		return
	}
	slices.SortStableFunc(d.Rows, func(a, b []any) int { return int(number(a, rank) - number(b, rank)) })
}

// nameAxis calls a column what a parameter says.
func (d *Drawn) nameAxis(column, value string) {
	i := d.at(column)
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
