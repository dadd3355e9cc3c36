package queries

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// Query is one canned query: its header and its SQL.
type Query struct {
	// Name is what the user types, the stem of its file.
	Name string
	// Summary says what the query answers, in one sentence.
	Summary string
	// Source is the paper and section the measure comes from.
	Source string
	// Needs are the tables and facts that a run must hold.
	Needs []string
	// Origins are the time origins that the query accepts; nil when it needs no times.
	Origins []string
	// OverRuns says that the query is asked once over all runs, and not once for each.
	OverRuns bool
	// Params are the parameters in the order of the header.
	Params []Param
	// Columns are the output columns in order.
	Columns []Column
	// Order is the ORDER BY of the query.
	Order string
	// Cost says what the query reads.
	Cost string
	// Example are arguments of an example that shows more than the defaults; "" where any will do.
	Example string
	// File is the file of a user's own query; "" of those that commq comes with.
	File string
	// Plot says how to draw the rows; nil when they cannot be drawn.
	Plot *Plot
	// Axes has the columns that are called what a parameter says where they are drawn, with the parameter's name.
	Axes map[string]string
	// text is the SQL with includes in place and parameters still open, places where each line of it comes from, and lines where
	// the header's fields stand, by key and name.
	text   string
	places []place
	lines  map[string]int
}

// Column is an output column of a query.
type Column struct {
	// Name is the column's name.
	Name string
	// Type is its SQL type.
	Type string
	// Unit is ns, bytes, bytes/s, elements, 1 (a plain number) or "" (a name or an id, also where it is a number: a rank, a tag).
	Unit string
	// Doc says what the column means.
	Doc string
}

var (
	fieldLine = regexp.MustCompile(`^-- ([a-z]+)(.*?):(?:\s+(.*))?$`)
	columnRe  = regexp.MustCompile(`^ ([a-z][a-z0-9_]*) (INTEGER|BIGINT|DOUBLE|BOOLEAN|VARCHAR) (1|ns|bytes|bytes/s|elements|-)$`)
	// engineLine is how the engine says the line of an error.
	engineLine = regexp.MustCompile(`(?m)^LINE (\d+):`)
	useRe      = regexp.MustCompile(`\{\{[^{}]*\}\}`)
)

const headerHelp = "docs/method/own-queries.md says how a header is written"

// parse reads the text of a query. include gives the text of an included file. Errors name file and line.
func parse(name, text string, include func(string) (string, error)) (*Query, error) {
	return parseFile(name, "sql/"+name+".sql", text, func(name string) (source, error) {
		text, err := include(name)
		return sourceOf(includeFile(name), 1, text), err
	})
}

// parseFile reads the text of a query's file, which is called so in errors.
func parseFile(name, file, text string, include func(string) (source, error)) (*Query, error) {
	q := &Query{Name: name}
	fields, body, err := splitHeader(text)
	if err == nil {
		err = q.read(fields)
	}
	if err == nil {
		begin := strings.Count(text[:len(text)-len(body)], "\n") + 1
		var s source
		s, err = sourceOf(file, begin, body).expand(include, nil)
		q.text, q.places = s.text, s.places
	}
	if err == nil {
		err = errors.Join(q.complete(), q.checkUses(file))
	}
	if err != nil {
		return nil, inFile(file, err)
	}
	return q, nil
}

// inFile puts a file's name before each of several errors.
func inFile(file string, err error) error {
	var errs []error
	for _, line := range strings.Split(err.Error(), "\n") {
		errs = append(errs, fmt.Errorf("%s: %s", file, line))
	}
	return errors.Join(errs...)
}

// field is one field of a header: "-- key rest: text".
type field struct {
	line            int
	key, rest, text string
}

// splitHeader cuts a query file into its header's fields and the SQL after them.
func splitHeader(text string) ([]field, string, error) {
	var fields []field
	for n := 1; ; n++ {
		line, after, _ := strings.Cut(text, "\n")
		if !strings.HasPrefix(line, "--") {
			return fields, text, nil
		}
		if more, ok := strings.CutPrefix(line, "--     "); ok && len(fields) > 0 {
			fields[len(fields)-1].text += " " + strings.TrimSpace(more)
		} else if m := fieldLine.FindStringSubmatch(line); m != nil {
			fields = append(fields, field{n, m[1], m[2], strings.TrimSpace(m[3])})
		} else {
			return nil, "", fmt.Errorf("line %d: %q is not a field; want \"-- key rest: text\" (%s)", n, line, headerHelp)
		}
		text = after
	}
}

// read fills the query from its header's fields.
func (q *Query) read(fields []field) error {
	q.lines = map[string]int{}
	for _, f := range fields {
		name, _, _ := strings.Cut(strings.TrimSpace(f.rest), " ")
		q.lines[strings.TrimSpace(f.key+" "+name)] = f.line
		if err := q.readField(f); err != nil {
			return fmt.Errorf("line %d: %w", f.line, err)
		}
	}
	return nil
}

func (q *Query) readField(f field) error {
	if f.text == "" {
		return fmt.Errorf("%s%s has no text after the colon", f.key, f.rest)
	}
	switch f.key {
	case "summary":
		return set(&q.Summary, f)
	case "source":
		return set(&q.Source, f)
	case "order":
		return set(&q.Order, f)
	case "cost":
		return set(&q.Cost, f)
	case "example":
		return set(&q.Example, f)
	case "needs":
		return q.readNeeds(f)
	case "origins":
		return q.readOrigins(f)
	case "over":
		return q.readOver(f)
	case "param":
		return q.readParam(f)
	case "column":
		return q.readColumn(f)
	case "plot":
		return q.readPlot(f)
	case "axis":
		return q.readAxis(f)
	}
	return fmt.Errorf("no field is called %q (%s)", f.key, headerHelp)
}

// set fills a field that stands at most once.
func set(to *string, f field) error {
	if *to != "" || f.rest != "" {
		return fmt.Errorf("want one line \"-- %s: text\", found %q", f.key, f.key+f.rest)
	}
	*to = f.text
	return nil
}

func (q *Query) readNeeds(f field) error {
	if f.rest != "" || q.Needs != nil {
		return fmt.Errorf("want one line \"-- needs: table, fact, ...\"")
	}
	for _, need := range strings.Split(f.text, ",") {
		need = strings.TrimSpace(need)
		if !knownNeed(need) {
			return fmt.Errorf("needs %q: want a table of the schema or one of %s", need, strings.Join(factNames(), ", "))
		}
		q.Needs = append(q.Needs, need)
	}
	return nil
}

func (q *Query) readOrigins(f field) error {
	if f.rest != "" || q.Origins != nil {
		return fmt.Errorf("want one line \"-- origins: %s\", or some of them", strings.Join(origins[:], ", "))
	}
	for _, origin := range strings.Split(f.text, ",") {
		origin = strings.TrimSpace(origin)
		if !slices.Contains(origins[:], origin) || slices.Contains(q.Origins, origin) {
			return fmt.Errorf("origins %q: want some of %s, each once", origin, strings.Join(origins[:], ", "))
		}
		q.Origins = append(q.Origins, origin)
	}
	return nil
}

func (q *Query) readOver(f field) error {
	if f.rest != "" || q.OverRuns || f.text != "runs" {
		return errors.New("want one line \"-- over: runs\"; without it the query is asked once for each run")
	}
	q.OverRuns = true
	return nil
}

func (q *Query) readColumn(f field) error {
	m := columnRe.FindStringSubmatch(f.rest)
	if m == nil {
		return fmt.Errorf("column%s: want \"column NAME TYPE UNIT\" (%s)", f.rest, headerHelp)
	}
	if q.column(m[1]) != nil {
		return fmt.Errorf("column %s stands twice", m[1])
	}
	unit := m[3]
	if unit == "-" {
		unit = ""
	}
	q.Columns = append(q.Columns, Column{Name: m[1], Type: m[2], Unit: unit, Doc: f.text})
	return nil
}

func (q *Query) readAxis(f field) error {
	column := strings.TrimSpace(f.rest)
	if column == "" || strings.Contains(f.text, " ") || q.Axes[column] != "" {
		return errors.New("want \"-- axis COLUMN: PARAM\", one line for each column")
	}
	if q.Axes == nil {
		q.Axes = map[string]string{}
	}
	q.Axes[column] = f.text
	return nil
}

// complete says which required fields are missing and whether the plot's columns exist.
func (q *Query) complete() error {
	var errs []error
	for _, f := range []struct{ key, text string }{{"summary", q.Summary}, {"source", q.Source}, {"order", q.Order}, {"cost", q.Cost}} {
		if f.text == "" {
			errs = append(errs, fmt.Errorf("the header has no \"-- %s: text\"; add it", f.key))
		}
	}
	if len(q.Needs) == 0 {
		errs = append(errs, errors.New("the header has no \"-- needs: ...\"; add it"))
	}
	if len(q.Columns) == 0 {
		errs = append(errs, errors.New("the header has no \"-- column ...\"; add one for each output column"))
	}
	switch times := slices.Contains(q.Needs, "times"); {
	case times && q.Origins == nil:
		errs = append(errs, errors.New("the query needs times and the header has no \"-- origins: ...\"; add the time origins it accepts"))
	case !times && q.Origins != nil:
		errs = append(errs, errors.New("the header has origins and does not need times; add times to needs"))
	}
	if q.Plot != nil {
		if err := q.Plot.check(q); err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", q.lines["plot"], err))
		}
	}
	for column, name := range q.Axes {
		if p := q.param(name); q.column(column) == nil || p == nil || p.Kind != "choice" {
			errs = append(errs, fmt.Errorf("axis %s: %s: want an output column and a parameter that is a choice", column, name))
		}
	}
	return errors.Join(errs...)
}

// checkUses compares the parameters in the SQL with those of the header.
func (q *Query) checkUses(file string) error {
	var errs []error
	used := map[string]bool{}
	for i, line := range strings.Split(q.text, "\n") {
		at := q.places[i].in(file)
		for _, use := range useRe.FindAllString(line, -1) {
			name := strings.TrimPrefix(use[2:len(use)-2], "default ")
			if !used[name] && q.param(name) == nil {
				errs = append(errs, fmt.Errorf("%s: the SQL uses %s, which the header does not declare; add \"-- param %s ...\"", at, use, name))
			}
			used[name] = true
		}
		if _, comment, ok := strings.Cut(line, "--"); ok && strings.Contains(comment, "{{") {
			errs = append(errs, fmt.Errorf("%s: the comment %q has braces, which would be filled in; name the parameter without them", at, strings.TrimSpace(line)))
		}
		if strings.Contains(line, ";") {
			errs = append(errs, fmt.Errorf("%s: the SQL has a semicolon; a query file holds one SELECT without one", at))
		}
	}
	for _, p := range q.Params {
		if !used[p.Name] {
			errs = append(errs, fmt.Errorf("line %d: param %s is declared and the SQL does not use {{%s}}", q.lines["param "+p.Name], p.Name, p.Name))
		}
	}
	if strings.TrimSpace(q.text) == "" {
		errs = append(errs, errors.New("there is no SQL after the header"))
	}
	return errors.Join(errs...)
}

func (q *Query) param(name string) *Param {
	for i := range q.Params {
		if q.Params[i].Name == name {
			return &q.Params[i]
		}
	}
	return nil
}

func (q *Query) column(name string) *Column {
	for i := range q.Columns {
		if q.Columns[i].Name == name {
			return &q.Columns[i]
		}
	}
	return nil
}

// tableOf is the table of that name, or nil.
func tableOf(name string) *schema.Table {
	for _, t := range schema.Tables() {
		if t.Name == name {
			return t
		}
	}
	return nil
}
