package queries

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/schema"
)

// SQL returns the query's SQL with the parameters filled in, those missing in args by their defaults. It runs
// wherever the run's tables are. Errors name the parameter, what was found and what is allowed.
func (q *Query) SQL(args map[string]string) (string, error) {
	s, err := q.filled(args)
	return s.text, err
}

// filled returns the SQL with the places of its lines.
func (q *Query) filled(args map[string]string) (source, error) {
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if q.param(name) == nil {
			return source{}, fmt.Errorf("query %s has no parameter %q", q.Name, name)
		}
	}
	literals := map[string]string{}
	for i := range q.Params {
		p := &q.Params[i]
		value, given := args[p.Name]
		if !given {
			value = p.Default
		}
		text, err := p.literal(value)
		if err != nil {
			return source{}, fmt.Errorf("query %s: %w", q.Name, err)
		}
		literals[p.Name] = text
		literals["default "+p.Name] = strings.ToUpper(strconv.FormatBool(value == p.Default))
	}
	text, err := source{q.text, q.places}.withBlocks(literals)
	if err != nil {
		return source{}, fmt.Errorf("query %s: %w", q.Name, err)
	}
	return text.replace(func(use string, _ place) (source, error) {
		if u := unlessOf(use); u != nil {
			return source{text: u.from(literals)}, nil
		}
		return source{text: literals[use]}, nil
	})
}

// unless is a use such as {{messages unless default where}} or {{events unless collectives none}}: a table, or where
// the parameter has that value one without rows, so that the table's files are not opened.
type unless struct {
	table        *schema.Table
	param, value string // an empty value is the parameter's default
}

var unlessRe = regexp.MustCompile(`^(\w+) unless (?:default ([\w-]+)|([\w-]+) ([\w-]+))$`)

// unlessOf returns the parts of a use of that kind; nil for another use.
func unlessOf(use string) *unless {
	m := unlessRe.FindStringSubmatch(use)
	if m == nil || tableOf(m[1]) == nil {
		return nil
	}
	return &unless{tableOf(m[1]), m[2] + m[3], m[4]}
}

// from returns what stands for the use; literals has the values of the parameters.
func (u *unless) from(literals map[string]string) string {
	if u.value == "" && literals["default "+u.param] == "TRUE" || u.value != "" && literals[u.param] == quote(u.value) {
		return noRows(u.table)
	}
	return u.table.Name
}

// noRows returns SQL for a table without rows.
func noRows(t *schema.Table) string {
	columns := []string{"CAST(NULL AS VARCHAR) AS run"}
	for _, c := range t.Columns {
		columns = append(columns, "CAST(NULL AS "+c.Type.SQL()+") AS "+quoteName(c.Name))
	}
	return "(SELECT " + strings.Join(columns, ", ") + " WHERE FALSE)"
}

// quote makes an SQL string literal.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// quoteName makes an SQL identifier.
func quoteName(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// closed checks that a condition stays within the parentheses around it: it closes every parenthesis, quote and
// comment that it opens and no others. The engine checks the rest.
func closed(cond string) error {
	depth := 0
	for i := 0; i < len(cond); {
		n, err := token(cond[i:], i > 0 && isWord(cond[i-1]))
		if err != nil {
			return err
		}
		switch cond[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return fmt.Errorf("a parenthesis closes that was not opened; want one condition, as bytes > 1024")
			}
		case ';':
			return fmt.Errorf("one condition is wanted, without a semicolon")
		case 0:
			return fmt.Errorf("a zero byte")
		}
		i += n
	}
	if depth > 0 {
		return fmt.Errorf("a parenthesis is not closed")
	}
	if strings.TrimSpace(cond) == "" {
		return fmt.Errorf("a condition is wanted, for example tag = 9 AND bytes > 1024")
	}
	return nil
}

// token returns the length of the quoted text or comment at the start of s; 1 for anything else.
func token(s string, inWord bool) (int, error) {
	switch {
	case s[0] == '\'':
		return quoted(s, 0, false)
	case s[0] == '"':
		return quoted(s, 0, false)
	case (s[0] == 'e' || s[0] == 'E') && !inWord && len(s) > 1 && s[1] == '\'':
		return quoted(s, 1, true)
	case strings.HasPrefix(s, "--"):
		if end := strings.IndexAny(s, "\n\r"); end >= 0 {
			return end, nil
		}
		return len(s), nil
	case strings.HasPrefix(s, "/*"):
		return 0, fmt.Errorf("no /* comment */ here")
	case s[0] == '$': // $$ would open another kind of quote
		return 0, fmt.Errorf("no $ outside quotes; write strings as 'text'")
	}
	return 1, nil
}

// quoted returns the length of the quoted text whose opening quote is s[open].
func quoted(s string, open int, backslash bool) (int, error) {
	q := s[open]
	for i := open + 1; i < len(s); i++ {
		switch {
		case backslash && s[i] == '\\':
			i++
		case s[i] == q && i+1 < len(s) && s[i+1] == q:
			i++
		case s[i] == q:
			return i + 1, nil
		}
	}
	return 0, fmt.Errorf("a quote is not closed")
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
