package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
)

// table is rows as a page shows them.
type table struct {
	Columns []column
	Rows    [][]cell
	// Note says which rows are left out; "" if none are.
	Note string
}

// column is a column: Name is copied, Head is shown.
type column struct {
	Name, Head, Doc string
	Number          bool
}

// cell is a value as text. Exact is a number as a program writes it, with twelve digits of a fraction, used to sort
// and copy; "" if it equals Text. More digits of a sum could depend on the order in which the engine's threads add.
type cell struct {
	Text, Exact string
	Number      bool
}

// table merges all answers into one table, an equal number of rows for each.
func (b *builder) table(answers []answer) *table {
	t := &table{}
	several := answers[0].run != ""
	if several {
		t.Columns = append(t.Columns, column{Name: "run", Head: "run", Doc: "Run the row belongs to."})
	}
	for _, c := range answers[0].columns {
		doc := c.Doc
		if c.Unit != "" && c.Unit != "1" {
			doc += " [" + c.Unit + "]"
		}
		t.Columns = append(t.Columns, column{c.Name, output.Head(c), doc, c.Type != "VARCHAR" && c.Type != "BOOLEAN"})
	}
	share, total := max(b.o.Rows/len(answers), 1), 0
	for _, a := range answers {
		total += a.total
		for _, values := range a.rows[:min(len(a.rows), share)] {
			var row []cell
			if several {
				row = append(row, cell{Text: Printable(a.run)})
			}
			for i, v := range values {
				row = append(row, cellOf(v, a.columns[i]))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	switch {
	case len(t.Rows) == total:
		t.dropEmpty()
	case several:
		t.Note = fmt.Sprintf("%s of %s rows, at most the first %s of each run; the commands below print all.",
			comma(int64(len(t.Rows))), comma(int64(total)), comma(int64(share)))
	default:
		t.Note = fmt.Sprintf("The first %s of %s rows; the command below prints all.", comma(int64(len(t.Rows))),
			comma(int64(total)))
	}
	return t
}

// dropEmpty removes the columns without a value in any row, as tables on a terminal do.
func (t *table) dropEmpty() {
	columns, kept := t.Columns, []int(nil)
	for i := range columns {
		if slices.ContainsFunc(t.Rows, func(row []cell) bool { return row[i].Text != "" }) {
			kept = append(kept, i)
		}
	}
	if len(kept) == 0 {
		return
	}
	t.Columns = pick(columns, kept)
	for i, row := range t.Rows {
		t.Rows[i] = pick(row, kept)
	}
}

// pick returns the elements at these places.
func pick[T any](list []T, at []int) (out []T) {
	for _, i := range at {
		out = append(out, list[i])
	}
	return out
}

// longText is the number of letters from which on a table shows the beginning and the end of a text, and all of it in a
// tooltip and when it is copied.
const longText = 56

func cellOf(v any, c queries.Column) cell {
	x := cell{Text: Printable(output.Shown(v, c))}
	if text := []rune(x.Text); len(text) > longText {
		x.Exact = x.Text
		x.Text = string(text[:longText/2-1]) + "…" + string(text[len(text)-longText/2:])
	}
	switch n := v.(type) {
	case nil, string, bool:
		return x
	case float64:
		x.Exact = digits(n, 12)
	default:
		x.Exact = Printable(fmt.Sprint(v))
	}
	x.Number = true
	if x.Exact == x.Text {
		x.Exact = ""
	}
	return x
}

// rounded rounds to n significant digits.
func rounded(x float64, n int) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', n, 64), 64)
	if err != nil {
		return x // too large to be rounded up
	}
	return r
}

// digits writes a number with at most n digits.
func digits(x float64, n int) string {
	x = rounded(x, n)
	if a := math.Abs(x); a >= 1e-4 && a < 1e15 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// Printable shows as escapes all characters that are invisible or change how other text appears: control characters,
// marks of writing direction, bytes that are not UTF-8.
func Printable(s string) string {
	if !strings.ContainsFunc(s, hidden) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case hidden(r):
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
		s = s[n:]
	}
	return b.String()
}

func hidden(r rune) bool { return !unicode.IsGraphic(r) }

func cleanLines(lines []string) string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = Printable(l)
	}
	return strings.Join(out, "\n")
}

func comma(n int64) string { return humanize.Comma(n) }

// amount writes a number of a column for people, as tables do.
func amount(x float64, c queries.Column) string {
	if c.Type == "DOUBLE" {
		return output.Shown(x, c)
	}
	return output.Shown(int64(x), c)
}

// number returns a value of a row as a float; false for null and for a missing column.
func number(row []any, at int) (float64, bool) {
	if at < 0 {
		return 0, false
	}
	switch x := row[at].(type) {
	case int32:
		return float64(x), true
	case int64:
		return float64(x), true
	case float64:
		return x, !math.IsNaN(x) && !math.IsInf(x, 0)
	}
	return 0, false
}

// label returns a value of a row as text; "" for null and for a missing column.
func label(row []any, at int) string {
	if at < 0 || row[at] == nil {
		return ""
	}
	if x, ok := row[at].(float64); ok {
		return digits(x, 6)
	}
	return Printable(fmt.Sprint(row[at]))
}

// find returns the index of a column; -1 if there is none.
func find(columns []queries.Column, name string) int {
	for i, c := range columns {
		if c.Name == name {
			return i
		}
	}
	return -1
}
