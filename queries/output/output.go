// Package output writes the rows of an answer in the formats that people and programs read: text tables, CSV, JSON,
// JSON lines, Markdown, Parquet and Arrow. Null stays null where the format knows it.
package output

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/commq/commq/queries"
)

// Formats are the names of the formats, in the order help shows them.
func Formats() []string {
	return []string{"table", "csv", "json", "jsonl", "markdown", "parquet", "arrow"}
}

// Binary says whether a format is for programs only, not to be printed on a terminal.
func Binary(format string) bool { return format == "parquet" || format == "arrow" }

// Known says whether a format exists; the error lists those that do.
func Known(format string) error {
	if !slices.Contains(Formats(), format) {
		return fmt.Errorf("format %q: want one of %s", format, strings.Join(Formats(), ", "))
	}
	return nil
}

// ByName is the format that a file's name asks for by its ending; "" when it does not say.
func ByName(file string) string {
	switch ext := strings.ToLower(strings.TrimPrefix(filepath.Ext(file), ".")); ext {
	case "csv", "json", "jsonl", "parquet", "arrow":
		return ext
	case "ndjson":
		return "jsonl"
	case "md":
		return "markdown"
	case "txt":
		return "table"
	}
	return ""
}

// Write writes all rows to w. It does not close rows. Errors are those of rows and w.
func Write(w io.Writer, format string, rows queries.Rows) error {
	if err := Known(format); err != nil {
		return err
	}
	b := bufio.NewWriterSize(w, 1<<16)
	if err := write(b, format, rows); err != nil {
		return err
	}
	return b.Flush()
}

func write(w io.Writer, format string, rows queries.Rows) error {
	switch format {
	case "table":
		return writeTable(w, rows)
	case "csv":
		return writeCSV(w, rows)
	case "json":
		return writeJSON(w, rows, false)
	case "jsonl":
		return writeJSON(w, rows, true)
	case "markdown":
		return writeMarkdown(w, rows)
	case "parquet":
		return writeParquet(w, rows)
	}
	return writeArrow(w, rows)
}

// Limit gives at most n rows of rows and then says whether there were more; n = 0 gives all.
func Limit(rows queries.Rows, n int) *Limited { return &Limited{Rows: rows, left: n, all: n == 0} }

// Limited are the first rows of an answer.
type Limited struct {
	queries.Rows
	left int
	all  bool
	more bool
}

// Next makes the next row current.
func (l *Limited) Next() bool {
	if l.all {
		return l.Rows.Next()
	}
	if l.left == 0 {
		l.more = l.more || l.Rows.Next()
		return false
	}
	l.left--
	return l.Rows.Next()
}

// More says, after the last row, whether rows were left out.
func (l *Limited) More() bool { return l.more }
