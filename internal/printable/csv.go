package printable

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// CSV writes records of text as encoding/csv does, with cells that a spreadsheet shows and does not execute.
type CSV struct{ w *csv.Writer }

// NewCSV returns a writer of records to w.
func NewCSV(w io.Writer) CSV { return CSV{csv.NewWriter(w)} }

// Write writes a record.
func (c CSV) Write(record []string) error {
	for _, text := range record {
		if Cell(text) != text {
			safe := make([]string, len(record))
			for i, text := range record {
				safe[i] = Cell(text)
			}
			return c.w.Write(safe)
		}
	}
	return c.w.Write(record)
}

// WriteAll writes records, and what is buffered.
func (c CSV) WriteAll(records [][]string) error {
	for _, record := range records {
		if err := c.Write(record); err != nil {
			return err
		}
	}
	return c.Flush()
}

// Flush writes what is buffered.
func (c CSV) Flush() error {
	c.w.Flush()
	return c.w.Error()
}

// Cell returns a text that a spreadsheet takes for a text: one that would be a formula (=HYPERLINK(...), +1+cmd|...,
// -2+3, @SUM, also in full-width characters) gets ' in front, which spreadsheets do not show. Numbers, and a sign
// alone, stay as they are.
func Cell(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if len(s) == size || !strings.ContainsRune("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20", first) {
		return s
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s
	}
	return "'" + s
}
