package output

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/queries"
)

// cell returns a value as text; null is empty.
func cell(v any, typ string) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case bool:
		return strconv.FormatBool(x)
	case int32:
		return strconv.FormatInt(int64(x), 10)
	case int64:
		return strconv.FormatInt(x, 10)
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case float32:
		return strconv.FormatFloat(float64(x), 'g', -1, 32)
	case *big.Int:
		return x.String()
	case time.Time:
		return timeText(x, typ)
	case []byte:
		if typ == "UUID" && len(x) == 16 {
			return fmt.Sprintf("%x-%x-%x-%x-%x", x[:4], x[4:6], x[6:8], x[8:10], x[10:])
		}
		return hex.EncodeToString(x)
	case duckdb.Decimal:
		return decimalText(x)
	case duckdb.Interval:
		return fmt.Sprintf("%d months %d days %d us", x.Months, x.Days, x.Micros)
	case []any, map[string]any, duckdb.OrderedMap:
		return nested(x)
	case fmt.Stringer:
		return x.String()
	}
	return fmt.Sprint(v)
}

// nested returns a list, struct or map as JSON, or as Go prints it if JSON cannot express it.
func nested(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// decimalText writes a decimal with all digits of its scale.
func decimalText(d duckdb.Decimal) string {
	digits := new(big.Int).Abs(d.Value).String()
	if scale := int(d.Scale); scale > 0 {
		digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if d.Value.Sign() < 0 {
		return "-" + digits
	}
	return digits
}

func timeText(t time.Time, typ string) string {
	switch {
	case typ == "DATE":
		return t.Format(time.DateOnly)
	case strings.HasPrefix(typ, "TIME") && !strings.HasPrefix(typ, "TIMESTAMP"):
		return t.Format("15:04:05.999999")
	case strings.HasSuffix(typ, "WITH TIME ZONE") || typ == "TIMESTAMPTZ" || typ == "TIMESTAMP_TZ":
		return t.Format("2006-01-02 15:04:05.999999Z07:00")
	}
	return t.Format("2006-01-02 15:04:05.999999999")
}

// numeric reports whether a column is right-aligned.
func numeric(typ string) bool {
	for _, p := range []string{"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DOUBLE", "FLOAT", "DECIMAL"} {
		if strings.HasPrefix(strings.TrimPrefix(typ, "U"), p) {
			return true
		}
	}
	return false
}

// grid prints rows in columns, with before, between and after the cells.
type grid struct {
	w                      io.Writer
	columns                []queries.Column
	before, between, after string
	head                   func(queries.Column) string
	value                  func(any, queries.Column) string
	escape                 func(string) string
	widths                 []int
	line                   []byte
	err                    error
}

// writeGrid prints aligned rows; rule prints the line under the header.
func writeGrid(g *grid, rows queries.Rows, rule func(g *grid)) error {
	g.columns = rows.Columns()
	head := make([]string, len(g.columns))
	g.widths = make([]int, len(g.columns))
	for i, c := range g.columns {
		head[i] = g.escape(g.head(c))
		g.widths[i] = max(3, utf8.RuneCountInString(head[i]))
	}
	sample, err := g.sample(rows)
	if err != nil {
		return err
	}
	g.row(head)
	rule(g)
	for _, cells := range sample {
		g.row(cells)
	}
	for g.err == nil && rows.Next() {
		g.row(g.cells(rows.Row()))
	}
	if g.err != nil {
		return g.err
	}
	return rows.Err()
}

func (g *grid) sample(rows queries.Rows) ([][]string, error) {
	var sample [][]string
	for len(sample) < sampleRows && rows.Next() {
		cells := g.cells(rows.Row())
		for i, c := range cells {
			g.widths[i] = max(g.widths[i], utf8.RuneCountInString(c))
		}
		sample = append(sample, cells)
	}
	return sample, rows.Err()
}

func (g *grid) cells(row []any) []string {
	cells := make([]string, len(row))
	for i, v := range row {
		cells[i] = g.escape(g.value(v, g.columns[i]))
	}
	return cells
}

func (g *grid) row(cells []string) {
	if g.err != nil {
		return
	}
	b := append(g.line[:0], g.before...)
	for i, c := range cells {
		if i > 0 {
			b = append(b, g.between...)
		}
		pad := max(0, g.widths[i]-utf8.RuneCountInString(c))
		right := numeric(g.columns[i].Type)
		if right {
			b = appendSpaces(b, pad)
		}
		b = append(b, c...)
		if !right {
			b = appendSpaces(b, pad)
		}
	}
	if g.after == "" {
		b = bytes.TrimRight(b, " ")
	}
	b = append(append(b, g.after...), '\n')
	g.line = b
	_, g.err = g.w.Write(b)
}

func appendSpaces(b []byte, n int) []byte {
	for range n {
		b = append(b, ' ')
	}
	return b
}

// writeMarkdown prints rows as a GitHub Markdown table.
func writeMarkdown(w io.Writer, rows queries.Rows) error {
	g := &grid{w: w, before: "| ", between: " | ", after: " |", head: func(c queries.Column) string { return c.Name },
		value:  func(v any, c queries.Column) string { return cell(v, c.Type) },
		escape: printable.Markdown}
	return writeGrid(g, rows, func(g *grid) {
		b := []byte("|")
		for i, c := range g.columns {
			dashes := strings.Repeat("-", g.widths[i]+1)
			if numeric(c.Type) {
				b = append(b, dashes+":|"...)
			} else {
				b = append(b, "-"+dashes+"|"...)
			}
		}
		_, g.err = g.w.Write(append(b, '\n'))
	})
}

// writeCSV writes rows as RFC 4180 CSV with a header line; null is an empty field. A text that a spreadsheet would
// execute gets ' in front.
func writeCSV(w io.Writer, rows queries.Rows) error {
	c := printable.NewCSV(w)
	columns := rows.Columns()
	record := make([]string, len(columns))
	for i, col := range columns {
		record[i] = col.Name
	}
	if err := c.Write(record); err != nil {
		return err
	}
	for rows.Next() {
		for i, v := range rows.Row() {
			record[i] = cell(v, columns[i].Type)
		}
		if err := c.Write(record); err != nil {
			return err
		}
	}
	if err := c.Flush(); err != nil {
		return err
	}
	return rows.Err()
}

// writeJSON writes rows as objects: one array or, with lines, one object per line.
func writeJSON(w io.Writer, rows queries.Rows, lines bool) error {
	columns := rows.Columns()
	keys := make([]string, len(columns))
	for i, c := range columns {
		keys[i] = jsonText(c.Name) + ":"
	}
	open, between, end := "[\n", ",\n", "\n]\n"
	if lines {
		open, between, end = "", "\n", "\n"
	}
	var b []byte
	n := 0
	for ; rows.Next(); n++ {
		b = b[:0]
		if n == 0 {
			b = append(b, open...)
		} else {
			b = append(b, between...)
		}
		b = appendObject(b, keys, columns, rows.Row())
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	switch {
	case n == 0 && lines:
		return nil
	case n == 0:
		end = "[]\n"
	}
	_, err := io.WriteString(w, end)
	return err
}

func appendObject(b []byte, keys []string, columns []queries.Column, row []any) []byte {
	b = append(b, '{')
	for i, v := range row {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, keys[i]...)
		b = appendJSON(b, v, columns[i].Type)
	}
	return append(b, '}')
}

// appendJSON appends a value. JSON has no NaN or infinity: they become null. Integers keep all digits.
func appendJSON(b []byte, v any, typ string) []byte {
	switch x := v.(type) {
	case nil:
		return append(b, "null"...)
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return append(b, "null"...)
		}
		return append(b, jsonText(x)...)
	case float32:
		return appendJSON(b, float64(x), typ)
	case bool, []any, map[string]any, duckdb.OrderedMap:
		return append(b, nested(x)...)
	}
	if text := cell(v, typ); numeric(typ) {
		return append(b, text...)
	} else {
		return append(b, jsonText(text)...)
	}
}

// jsonText encodes a string or number as JSON, which cannot fail.
func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(text)
}
