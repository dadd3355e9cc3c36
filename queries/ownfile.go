package queries

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// Answered is SQL of the user that has been answered, to be kept as a query.
type Answered struct {
	// Name is that of the query, and Summary what it answers, in one sentence.
	Name, Summary string
	// SQL is one SELECT, and Columns are those of its answer.
	SQL     string
	Columns []Column
	// Chart is the kind of plot, as in a header: bars, lines or points of Y over X, two of the columns. Empty for none.
	Chart, X, Y string
}

// OwnFile returns the text of a file NAME.sql that Own reads, with a header made from the SQL and its answer, and the
// query. Columns get names and types that a header can have. Errors say what the name or the SQL should be.
func OwnFile(a Answered) (text string, q *Query, err error) {
	a.Summary = strings.Join(strings.Fields(a.Summary), " ")
	switch {
	case !wordRe.MatchString(a.Name):
		return "", nil, fmt.Errorf("name %q: want lower-case letters, digits and -", a.Name)
	case a.Summary == "":
		return "", nil, errors.New("want a sentence that says what the query answers")
	}
	body := strings.TrimRight(strings.TrimSpace(strings.ReplaceAll(a.SQL, "\r\n", "\n")), "; \n\t")
	columns := storable(a.Columns)
	if strings.HasPrefix(body, "--") || !slices.EqualFunc(columns, a.Columns, sameType) {
		body = asColumns(body, columns)
	}
	plot, err := a.plot(columns)
	if err != nil {
		return "", nil, err
	}
	text = ownHeader(a, columns) + plot + body + "\n"
	file := a.Name + ".sql"
	q, err = parseFile(a.Name, file, text, func(name string) (source, error) { return includeOf(files, name) })
	if err != nil {
		return "", nil, err
	}
	q.File = file
	return text, q, nil
}

// sameType reports whether a column has the name and the type of another.
func sameType(a, b Column) bool { return a.Name == b.Name && a.Type == b.Type }

// ownHeader returns the header of the file.
func ownHeader(a Answered, columns []Column) string {
	var b strings.Builder
	needs := ownNeeds(a.SQL)
	fmt.Fprintf(&b, "-- summary: %s\n-- source: kept from commq ui\n-- needs: %s\n", a.Summary, strings.Join(needs, ", "))
	if slices.Contains(needs, "times") {
		fmt.Fprintf(&b, "-- origins: %s\n", strings.Join(origins[:], ", "))
	}
	for i, c := range columns {
		fmt.Fprintf(&b, "-- column %s %s %s: %s\n", c.Name, c.Type, headerUnit(c), meaning(a.Columns[i].Name))
	}
	b.WriteString("-- order: that of the SELECT\n-- cost: what the SELECT reads\n")
	return b.String()
}

// plot returns the field plot of the header; empty for none.
func (a *Answered) plot(columns []Column) (string, error) {
	if a.Chart == "" {
		return "", nil
	}
	x := slices.IndexFunc(a.Columns, func(c Column) bool { return c.Name == a.X })
	y := slices.IndexFunc(a.Columns, func(c Column) bool { return c.Name == a.Y })
	if !slices.Contains([]string{"bars", "lines", "points"}, a.Chart) || x < 0 || y < 0 {
		return "", fmt.Errorf("chart %q of %q over %q: want bars, lines or points of two columns", a.Chart, a.Y, a.X)
	}
	return fmt.Sprintf("-- plot: %s %s %s\n", a.Chart, columns[x].Name, columns[y].Name), nil
}

// ownNeeds returns the tables that SQL names, and times if it names a column of times.
func ownNeeds(text string) (needs []string) {
	words := nameRe.FindAllString(strings.ToLower(text), -1)
	times := false
	for _, t := range schema.Tables() {
		if !slices.Contains(words, t.Name) {
			continue
		}
		needs = append(needs, t.Name)
		for _, c := range t.Columns {
			times = times || c.Unit == "ns" && slices.Contains(words, c.Name)
		}
	}
	if needs == nil {
		needs = []string{"ranks"} // every run has it
	}
	if times {
		needs = append(needs, "times")
	}
	return needs
}

// meaning returns the description of a column: the schema's if it has a column of that name, else the name in words.
func meaning(name string) string {
	for _, t := range schema.Tables() {
		if c, _ := t.Column(name); c != nil {
			return c.Doc
		}
	}
	return strings.ToUpper(name[:1]) + words(name[1:]) + "."
}

// headerUnit returns the unit of a column as a header has it.
func headerUnit(c Column) string {
	switch {
	case strings.HasSuffix(c.Name, "_ns") && c.Unit == "1":
		return "ns"
	case strings.HasSuffix(c.Name, "bytes") && c.Unit == "1":
		return "bytes"
	case c.Unit == "":
		return "-"
	}
	return c.Unit
}

// nonWordRe matches what a column's name in a header cannot have.
var nonWordRe = regexp.MustCompile(`[^a-z0-9]+`)

// storable returns columns with names and types that a header can have, each name once.
func storable(columns []Column) (all []Column) {
	taken := map[string]bool{}
	for i, c := range columns {
		name := strings.Trim(nonWordRe.ReplaceAllString(strings.ToLower(c.Name), "_"), "_")
		if name == "" || name[0] < 'a' || name[0] > 'z' {
			name = fmt.Sprintf("column_%d", i+1)
		}
		for taken[name] {
			name += "_" + fmt.Sprint(i+1)
		}
		taken[name] = true
		c.Name, c.Type = name, storableType(c.Type)
		all = append(all, c)
	}
	return all
}

// storableType returns the type of a header that has the values of another type.
func storableType(typ string) string {
	switch typ {
	case "BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "VARCHAR":
		return typ
	case "TINYINT", "SMALLINT", "UTINYINT", "USMALLINT":
		return "INTEGER"
	case "UINTEGER", "UBIGINT", "HUGEINT", "UHUGEINT":
		return "BIGINT"
	}
	if numberTypeRe.MatchString(typ) {
		return "DOUBLE"
	}
	return "VARCHAR"
}

// asColumns returns SQL whose answer has the rows of another in their order, with other names and types of columns.
// The columns are named by number in between: two names of an answer may differ in case alone.
func asColumns(body string, to []Column) string {
	var casts, numbers []string
	for i, c := range to {
		numbers = append(numbers, fmt.Sprintf("c%d", i+1))
		casts = append(casts, fmt.Sprintf("CAST(c%d AS %s) AS %s", i+1, c.Type, c.Name))
	}
	names := strings.Join(numbers, ", ")
	return "SELECT " + strings.Join(casts, ",\n       ") +
		"\nFROM (SELECT " + names + ", ROW_NUMBER() OVER () AS place\n      FROM (\n" + body +
		"\n      ) AS answer (" + names + ")) AS numbered\nORDER BY place"
}
