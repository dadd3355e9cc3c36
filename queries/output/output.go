// Package output writes the rows of an answer in the formats for people and programs: text tables, CSV, JSON, JSON
// lines, Markdown, Parquet and Arrow. Null stays null if the format has it.
package output

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/commq/commq/internal/nearest"
	"github.com/commq/commq/queries"
)

// Formats lists the formats in the order of help.
func Formats() []string {
	return []string{"table", "csv", "json", "jsonl", "markdown", "parquet", "arrow"}
}

// Binary reports whether a format is for programs only and must not be printed on a terminal.
func Binary(format string) bool { return format == "parquet" || format == "arrow" }

// Known returns an error, listing the formats, if a format does not exist.
func Known(format string) error {
	if !slices.Contains(Formats(), format) {
		return fmt.Errorf("format %q: want one of %s%s", format, strings.Join(Formats(), ", "),
			nearest.Hint(format, Formats()))
	}
	return nil
}

// ByName returns the format for a file name's ending; "" if unknown.
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

// Write writes all rows to w. It does not close rows. Errors come from rows and w.
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
		return writeTable(w, rows, 0)
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

// Limit returns the first n rows of rows; More then reports whether there were others. n = 0 means all.
func Limit(rows queries.Rows, n int) *Limited { return &Limited{Rows: rows, left: n, all: n == 0} }

// Limited is an answer cut after some rows.
type Limited struct {
	queries.Rows
	left int
	all  bool
	more bool
}

// batches returns the function that reads the rows by columns, and nil if there is none or rows are left out.
func (l *Limited) batches() func() *queries.Batch {
	if !l.all {
		return nil
	}
	return queries.Batches(l.Rows)
}

// Next advances to the next row.
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

// More reports, after the last row, whether rows were left out.
func (l *Limited) More() bool { return l.more }
