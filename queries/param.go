package queries

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/internal/nearest"
)

// Param is a parameter of a query.
type Param struct {
	// Name is the parameter's name and that of its flag.
	Name string
	// Kind is choice, integer, number, text, condition or file.
	Kind string
	// Choices are the allowed words of a choice.
	Choices []string
	// Low and High are the bounds of an integer, inclusive.
	Low, High int64
	// Least and Most are the bounds of a number, inclusive.
	Least, Most float64
	// Table is the table whose columns a condition uses.
	Table string
	// Columns are the columns of a file, each with its type: INTEGER, BIGINT, DOUBLE or VARCHAR.
	Columns []Column
	// Default is used when no value is given.
	Default string
	// Doc says what the parameter does.
	Doc string
}

// reserved are the flags that commq query has for every query.
var reserved = [...]string{"dsn", "engine", "exact", "format", "help", "limit", "list", "memory", "output", "plot",
	"quiet", "replace", "run", "sql", "store", "threads", "verify", "version"}

// noFile is the value of a file parameter that means a table without rows.
const noFile = "none"

var (
	paramRest  = regexp.MustCompile(`^ ([a-z][a-z0-9-]*) (choice|integer|number|condition|file) (\S+) = (\S+)$`)
	textRest   = regexp.MustCompile(`^ ([a-z][a-z0-9-]*) text = '([^']*)'$`)
	rangeRe    = regexp.MustCompile(`^(-?[0-9]+)\.\.(-?[0-9]+)$`)
	numbersRe  = regexp.MustCompile(`^(` + numberRe + `)\.\.(` + numberRe + `)$`)
	wordRe     = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	fileColumn = regexp.MustCompile(`^([a-z][a-z0-9_]*):(INTEGER|BIGINT|DOUBLE|VARCHAR)$`)
)

const numberRe = `-?[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?`

func readParam(q *Query, f field) error {
	var p Param
	domain := ""
	if m := paramRest.FindStringSubmatch(f.rest); m != nil {
		p, domain = Param{Name: m[1], Kind: m[2], Default: m[4], Doc: f.text}, m[3]
	} else if m := textRest.FindStringSubmatch(f.rest); m != nil {
		p = Param{Name: m[1], Kind: "text", Default: m[2], Doc: f.text}
	} else {
		return fmt.Errorf("param%s: want \"param NAME choice A|B = A\", \"param NAME integer 1..9 = 5\", \"param "+
			"NAME number 0..1 = 0.5\", "+
			"\"param NAME text = ''\", \"param NAME condition TABLE = TRUE\" or \"param NAME file "+
			"a:INTEGER,b:VARCHAR = none\"", f.rest)
	}
	if q.param(p.Name) != nil {
		return fmt.Errorf("param %s stands twice", p.Name)
	}
	if slices.Contains(reserved[:], p.Name) {
		return fmt.Errorf("param %s: every query has a flag of that name; call it otherwise", p.Name)
	}
	if err := p.readDomain(domain); err != nil {
		return fmt.Errorf("param %s: %w", p.Name, err)
	}
	if p.Kind == "file" && p.Default != noFile {
		return fmt.Errorf("param %s: the default of a file is %s", p.Name, noFile)
	}
	if _, err := p.literal(p.Default); err != nil {
		return fmt.Errorf("default of %w", err)
	}
	q.Params = append(q.Params, p)
	return nil
}

// readDomain parses the allowed values.
func (p *Param) readDomain(s string) error {
	switch p.Kind {
	case "choice":
		p.Choices = strings.Split(s, "|")
		for _, c := range p.Choices {
			if !wordRe.MatchString(c) {
				return fmt.Errorf("choice %q: want lower-case words separated by |", c)
			}
		}
	case "integer":
		return p.readRange(s)
	case "number":
		return p.readNumbers(s)
	case "condition":
		if p.Table = s; tableOf(s) == nil {
			return fmt.Errorf("no table is called %q", s)
		}
	case "file":
		return p.readColumns(s)
	}
	return nil
}

func (p *Param) readRange(s string) error {
	m := rangeRe.FindStringSubmatch(s)
	if m == nil {
		return fmt.Errorf("range %q: want LOW..HIGH", s)
	}
	var err1, err2 error
	p.Low, err1 = strconv.ParseInt(m[1], 10, 64)
	p.High, err2 = strconv.ParseInt(m[2], 10, 64)
	if err1 != nil || err2 != nil || p.Low > p.High {
		return fmt.Errorf("range %q: want LOW..HIGH, 64-bit integers in order", s)
	}
	return nil
}

func (p *Param) readNumbers(s string) error {
	m := numbersRe.FindStringSubmatch(s)
	if m == nil {
		return fmt.Errorf("range %q: want LOW..HIGH, for example 0.5..1e9", s)
	}
	var err1, err2 error
	p.Least, err1 = strconv.ParseFloat(m[1], 64)
	p.Most, err2 = strconv.ParseFloat(m[2], 64)
	if err1 != nil || err2 != nil || p.Least > p.Most {
		return fmt.Errorf("range %q: want LOW..HIGH, numbers in order", s)
	}
	return nil
}

func (p *Param) readColumns(s string) error {
	for _, word := range strings.Split(s, ",") {
		m := fileColumn.FindStringSubmatch(word)
		if m == nil || slices.ContainsFunc(p.Columns, func(c Column) bool { return c.Name == m[1] }) {
			return fmt.Errorf("columns %q: want a:INTEGER,b:VARCHAR, of INTEGER, BIGINT, DOUBLE and VARCHAR, each "+
				"name once", s)
		}
		p.Columns = append(p.Columns, Column{Name: m[1], Type: m[2]})
	}
	return nil
}

// Domain describes the allowed values.
func (p *Param) Domain() string {
	switch p.Kind {
	case "choice":
		return strings.Join(p.Choices, "|")
	case "integer":
		return fmt.Sprintf("%d..%d", p.Low, p.High)
	case "number":
		return fmt.Sprintf("%s..%s", shortNumber(p.Least), shortNumber(p.Most))
	case "file":
		return "FILE.csv"
	}
	return strings.ToUpper(p.Kind)
}

// fileColumns lists the columns of a file as in the header.
func (p *Param) fileColumns() string {
	words := make([]string, len(p.Columns))
	for i, c := range p.Columns {
		words[i] = c.Name + ":" + c.Type
	}
	return strings.Join(words, ",")
}

// shownDefault returns the default as shown to users.
func (p *Param) shownDefault() string {
	if p.Kind == "text" {
		return quote(p.Default)
	}
	return p.Default
}

func shortNumber(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// Check checks a value, as far as that is possible without a run.
func (p *Param) Check(value string) error {
	_, err := p.literal(value)
	return err
}

// literal returns the value as SQL.
func (p *Param) literal(value string) (string, error) {
	switch p.Kind {
	case "choice":
		if !slices.Contains(p.Choices, value) {
			return "", fmt.Errorf("%s %q: want one of %s%s", p.Name, value, strings.Join(p.Choices, ", "),
				nearest.Hint(value, p.Choices))
		}
		return quote(value), nil
	case "integer":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < p.Low || n > p.High {
			return "", fmt.Errorf("%s %q: want an integer from %d to %d", p.Name, value, p.Low, p.High)
		}
		return signed(strconv.FormatInt(n, 10)), nil
	case "number":
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(x) || x < p.Least || x > p.Most {
			return "", fmt.Errorf("%s %q: want a number from %s to %s", p.Name, value, shortNumber(p.Least),
				shortNumber(p.Most))
		}
		return signed(strconv.FormatFloat(x, 'E', -1, 64)), nil // the exponent makes it a DOUBLE, not a DECIMAL
	case "text":
		if strings.ContainsRune(value, 0) {
			return "", fmt.Errorf("%s: a zero byte", p.Name)
		}
		return quote(value), nil
	case "file":
		text, err := p.table(value)
		if err != nil {
			return "", fmt.Errorf("%s: %w", p.Name, err)
		}
		return text, nil
	}
	if err := closed(value); err != nil {
		return "", fmt.Errorf("%s %q: %w", p.Name, value, err)
	}
	if strings.Contains(value, "--") { // a comment to the end of the line must not swallow the parenthesis
		value += "\n"
	}
	return "(" + value + ")", nil
}

// BothConditions returns the condition that holds where two conditions of the parameter do.
func (p *Param) BothConditions(first, second string) string {
	switch p.Default {
	case first:
		return second
	case second:
		return first
	}
	return "(" + first + "\n) AND (" + second + "\n)" // each may end in a comment
}

// signed puts a negative number in parentheses: after another minus sign it would begin a comment.
func signed(number string) string {
	if number[0] == '-' {
		return "(" + number + ")"
	}
	return number
}
