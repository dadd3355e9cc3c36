package queries

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/commq/commq/schema"
)

// Query is one canned query: its header and its SQL.
type Query struct {
	// Name is the name that the user types: the file's name without .sql.
	Name string
	// Summary says what the query answers, in one sentence.
	Summary string
	// Source is the paper and section the measure comes from.
	Source string
	// Needs are the tables and facts that a run must contain.
	Needs []string
	// Origins are the accepted time origins; nil if the query needs no times.
	Origins []string
	// OverRuns is true if the query is asked once over all runs instead of once for each.
	OverRuns bool
	// Params are the parameters in the order of the header.
	Params []Param
	// Columns are the output columns in order.
	Columns []Column
	// Order is the ORDER BY of the query.
	Order string
	// Cost says what the query reads.
	Cost string
	// Example has arguments for an example that shows more than the defaults; "" means any will do.
	Example string
	// File is the file of a user's own query; "" for canned queries.
	File string
	// Plot says how to draw the rows; nil when they cannot be drawn.
	Plot *Plot
	// Title is the title of the picture, without the runs; "" is the query's name. See Heading.
	Title string
	// Axes maps a column to the parameter whose value names it in pictures.
	Axes map[string]string
	// text is the SQL with includes inserted and parameters unfilled, places has the origin of each of its lines, and
	// lines where each field of the header is, by key and name.
	text   string
	places []place
	lines  map[string]int
	// blocks are those of included files.
	blocks []includedBlock
	// labels are the names of columns in pictures; that of "y" is for an axis that several columns share.
	labels map[string]string
}

// sharedY stands for an axis of several columns in the field label.
const sharedY = "y"

// SharedY names the axis of several columns that are drawn together; "" if there is none.
func (q *Query) SharedY() string { return q.labels[sharedY] }

// Heading says in words what a picture of the query shows, for its arguments.
func (q *Query) Heading(args map[string]string) string {
	if q.Title != "" {
		return q.fillWords(q.Title, args)
	}
	name := []rune(strings.NewReplacer("-", " ", "_", " ").Replace(q.Name))
	if len(name) > 0 {
		name[0] = unicode.ToUpper(name[0])
	}
	return string(name)
}

// fillWords replaces each {PARAM} in a title or a label by the parameter's value, in words.
func (q *Query) fillWords(text string, args map[string]string) string {
	for _, p := range q.Params {
		text = strings.ReplaceAll(text, "{"+p.Name+"}", strings.ReplaceAll(argument(&p, args), "-", " "))
	}
	return text
}

// Column is an output column of a query.
type Column struct {
	// Name is the column's name.
	Name string
	// Type is its SQL type.
	Type string
	// Unit is ns, bytes, bytes/s, elements, 1 (a plain number or a share) or "" (a name or an id, even a numeric one
	// such as a rank or tag).
	Unit string
	// Share is true for a part of 1, which people read in percent; its Unit is 1.
	Share bool
	// Doc says what the column means.
	Doc string
	// Label names the column in pictures; see Words.
	Label string
}

// Words names the column in pictures, without its unit: "send_bytes" is "send bytes" where no label says more.
func (c Column) Words() string {
	if c.Label != "" {
		return c.Label
	}
	return words(c.Name)
}

var (
	fieldLine = regexp.MustCompile(`^-- ([a-z]+)(.*?):(?:\s+(.*))?$`)
	columnRe  = regexp.MustCompile(`^ ([a-z][a-z0-9_]*) (INTEGER|BIGINT|DOUBLE|BOOLEAN|VARCHAR) (1|share|ns|bytes|bytes/s|elements|-)$`)
	// engineLine matches the line number in an engine error.
	engineLine = regexp.MustCompile(`(?m)^LINE (\d+):`)
	useRe      = regexp.MustCompile(`\{\{[^{}]*\}\}`)
)

const headerHelp = "docs/method/own-queries.md says how a header is written"

// parse parses the text of a query. include returns the text of an included file. Errors name file and line.
func parse(name, text string, include func(string) (string, error)) (*Query, error) {
	return parseFile(name, "sql/"+name+".sql", text, func(name string) (source, error) {
		text, err := include(name)
		return sourceOf(includeFile(name), 1, text), err
	})
}

// parseFile parses a query; file is its name in errors.
func parseFile(name, file, text string, include func(string) (source, error)) (*Query, error) {
	q := &Query{Name: name}
	if err := q.parse(file, text, include, fieldReaders(),
		func() error { return required("summary", q.Summary) }); err != nil {
		return nil, err
	}
	return q, nil
}

// parse fills in the query from a file's text. readers read the fields of its header, and check is called after them.
func (q *Query) parse(file, text string, include func(string) (source, error), readers fieldReader,
	check func() error) error {
	fields, body, err := splitHeader(text)
	if err == nil {
		err = readHeader(q, fields, readers)
	}
	if err == nil {
		begin := strings.Count(text[:len(text)-len(body)], "\n") + 1
		var s source
		if s, err = sourceOf(file, begin, body).expand(include, nil); err == nil {
			s, err = q.ownBlocks(s, file)
		}
		if err == nil {
			s, err = s.replace(q.tableUnless)
		}
		q.text, q.places = s.text, s.places
	}
	if err == nil {
		err = errors.Join(check(), checkComplete(q), checkUses(q, file))
	}
	if err != nil {
		return inFile(file, err)
	}
	return nil
}

// tableUnless puts a table in the place of {{TABLE unless NAME VALUE}} in a query without that parameter: an included
// file is for several queries. Every other use stays as it is.
func (q *Query) tableUnless(use string, _ place) (source, error) {
	if u := unlessOf(use); u != nil && u.value != "" && q.param(u.param) == nil {
		return source{text: u.table.Name}, nil
	}
	return source{text: "{{" + use + "}}"}, nil
}

// inFile puts a file's name in front of each line of an error.
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
			return nil, "", fmt.Errorf("line %d: %q is not a field; want \"-- key rest: text\" (%s)", n, line,
				headerHelp)
		}
		text = after
	}
}

// readHeader fills in the query from its header's fields.
func readHeader(q *Query, fields []field, readers fieldReader) error {
	q.lines = map[string]int{}
	for _, f := range fields {
		name, _, _ := strings.Cut(strings.TrimSpace(f.rest), " ")
		q.lines[strings.TrimSpace(f.key+" "+name)] = f.line
		read := readers[f.key]
		switch {
		case f.text == "":
			return fmt.Errorf("line %d: %s%s has no text after the colon", f.line, f.key, f.rest)
		case read == nil:
			return fmt.Errorf("line %d: no field is called %q (%s)", f.line, f.key, headerHelp)
		}
		if err := read(q, f); err != nil {
			return fmt.Errorf("line %d: %w", f.line, err)
		}
	}
	return nil
}

// fieldReader reads the fields of a header by key.
type fieldReader map[string]func(*Query, field) error

// fieldReaders read the fields of a query's header.
func fieldReaders() fieldReader {
	return fieldReader{
		"summary": func(q *Query, f field) error { return set(&q.Summary, f) },
		"source":  func(q *Query, f field) error { return set(&q.Source, f) },
		"order":   func(q *Query, f field) error { return set(&q.Order, f) },
		"cost":    func(q *Query, f field) error { return set(&q.Cost, f) },
		"example": func(q *Query, f field) error { return set(&q.Example, f) },
		"needs":   readNeeds,
		"origins": readOrigins,
		"over":    readOver,
		"param":   readParam,
		"column":  readColumn,
		"plot":    readPlot,
		"axis":    readAxis,
		"title":   func(q *Query, f field) error { return set(&q.Title, f) },
		"label":   readLabel,
	}
}

// set fills in a field that may occur only once.
func set(to *string, f field) error {
	if *to != "" || f.rest != "" {
		return fmt.Errorf("want one line \"-- %s: text\", found %q", f.key, f.key+f.rest)
	}
	*to = f.text
	return nil
}

func readNeeds(q *Query, f field) error {
	if f.rest != "" || q.Needs != nil {
		return fmt.Errorf("want one line \"-- needs: table, fact, ...\"")
	}
	for _, need := range strings.Split(f.text, ",") {
		need = strings.TrimSpace(need)
		if !knownNeed(need) {
			return fmt.Errorf("needs %q: want a table of the schema or one of %s", need,
				strings.Join(FactNames(), ", "))
		}
		q.Needs = append(q.Needs, need)
	}
	return nil
}

func readOrigins(q *Query, f field) error {
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

func readOver(q *Query, f field) error {
	if f.rest != "" || q.OverRuns || f.text != "runs" {
		return errors.New("want one line \"-- over: runs\"; without it the query is asked once for each run")
	}
	q.OverRuns = true
	return nil
}

func readColumn(q *Query, f field) error {
	m := columnRe.FindStringSubmatch(f.rest)
	if m == nil {
		return fmt.Errorf("column%s: want \"column NAME TYPE UNIT\" (%s)", f.rest, headerHelp)
	}
	if q.column(m[1]) != nil {
		return fmt.Errorf("column %s stands twice", m[1])
	}
	c := Column{Name: m[1], Type: m[2], Unit: m[3], Doc: f.text}
	switch c.Unit {
	case "-":
		c.Unit = ""
	case "share":
		c.Unit, c.Share = "1", true
	}
	q.Columns = append(q.Columns, c)
	return nil
}

func readAxis(q *Query, f field) error {
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

func readLabel(q *Query, f field) error {
	column := strings.TrimSpace(f.rest)
	if column == "" || strings.Contains(column, " ") || q.labels[column] != "" {
		return errors.New("want \"-- label COLUMN: WORDS\", one line for each column")
	}
	if q.labels == nil {
		q.labels = map[string]string{}
	}
	q.labels[column] = f.text
	return nil
}

// checkLabels puts the labels into their columns, and reports those that are for no column.
func checkLabels(q *Query) error {
	var errs []error
	for _, column := range slices.Sorted(maps.Keys(q.labels)) {
		switch c := q.column(column); {
		case q.Plot == nil:
			errs = append(errs, fmt.Errorf("line %d: label %s: the query has no plot", q.lines["label "+column],
				column))
		case c != nil:
			c.Label = q.labels[column]
		case column != sharedY || q.Plot.More == nil:
			errs = append(errs, fmt.Errorf("line %d: label %s: want an output column, or y for the axis of several",
				q.lines["label "+column], column))
		}
	}
	return errors.Join(errs...)
}

// required reports a field that is missing.
func required(key, text string) error {
	if text == "" {
		return fmt.Errorf("the header has no \"-- %s: text\"; add it", key)
	}
	return nil
}

// checkComplete reports missing required fields and plot columns that do not exist.
func checkComplete(q *Query) error {
	errs := []error{required("source", q.Source), required("order", q.Order), required("cost", q.Cost)}
	if len(q.Needs) == 0 {
		errs = append(errs, errors.New("the header has no \"-- needs: ...\"; add it"))
	}
	if len(q.Columns) == 0 {
		errs = append(errs, errors.New("the header has no \"-- column ...\"; add one for each output column"))
	}
	switch times := slices.Contains(q.Needs, "times"); {
	case times && q.Origins == nil:
		errs = append(errs, errors.New("the query needs times and the header has no \"-- origins: ...\"; add the "+
			"time origins it accepts"))
	case !times && q.Origins != nil:
		errs = append(errs, errors.New("the header has origins and does not need times; add times to needs"))
	}
	if q.Plot != nil {
		if err := q.Plot.check(q); err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", q.lines["plot"], err))
		}
	}
	for _, column := range slices.Sorted(maps.Keys(q.Axes)) {
		name := q.Axes[column]
		if p := q.param(name); q.column(column) == nil || p == nil || p.Kind != "choice" {
			errs = append(errs, fmt.Errorf("axis %s: %s: want an output column and a parameter that is a choice",
				column, name))
		}
	}
	return errors.Join(append(errs, checkLabels(q))...)
}

// checkUses compares the parameters in the SQL with those in the header.
func checkUses(q *Query, file string) error {
	var errs []error
	used := map[string]bool{}
	for i, line := range strings.Split(q.text, "\n") {
		at := q.places[i].describe(file)
		for _, use := range useRe.FindAllString(line, -1) {
			name := strings.TrimPrefix(use[2:len(use)-2], "default ")
			if u := unlessOf(name); u != nil {
				name = u.param
			} else if b := blockBegin.FindStringSubmatch(line); b != nil {
				name = b[2]
			} else if strings.TrimSpace(line) == blockEnd {
				continue
			}
			if !used[name] && q.param(name) == nil {
				errs = append(errs, fmt.Errorf("%s: the SQL uses %s, which the header does not declare; add \"-- "+
					"param %s ...\"", at, use, name))
			}
			used[name] = true
		}
		if _, comment, ok := strings.Cut(line, "--"); ok && strings.Contains(comment, "{{") {
			errs = append(errs, fmt.Errorf("%s: the comment %q has braces, which would be filled in; name the "+
				"parameter without them", at, strings.TrimSpace(line)))
		}
		if strings.Contains(line, ";") {
			errs = append(errs, fmt.Errorf("%s: the SQL has a semicolon; a query file holds one SELECT without one",
				at))
		}
	}
	for _, p := range q.Params {
		if !used[p.Name] {
			errs = append(errs, fmt.Errorf("line %d: param %s is declared and the SQL does not use {{%s}}",
				q.lines["param "+p.Name], p.Name, p.Name))
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

// tableOf returns the table with that name, or nil.
func tableOf(name string) *schema.Table {
	for _, t := range schema.Tables() {
		if t.Name == name {
			return t
		}
	}
	return nil
}
