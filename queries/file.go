package queries

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fileBytes bounds a file that the user gives: its rows become part of the SQL text.
const fileBytes = 64 << 20

// table is a CSV file as a parenthesised table expression with the parameter's columns. The file's first line names its
// columns, in any order; others than the parameter's are left out. An empty field is null. Errors name file and line.
func (p *Param) table(name string) (string, error) {
	if name == noFile {
		return p.nothing(), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, fileBytes+1))
	if err != nil {
		return "", err
	}
	if len(text) > fileBytes {
		return "", fmt.Errorf("%s has more than %d MiB", name, fileBytes>>20)
	}
	rows, err := p.rows(strings.TrimPrefix(string(text), "\ufeff"))
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	if len(rows) == 0 {
		return p.nothing(), nil
	}
	columns, casts := make([]string, len(p.Columns)), make([]string, len(p.Columns))
	for i, c := range p.Columns {
		columns[i] = c.Name
		casts[i] = "CAST(" + c.Name + " AS " + c.Type + ") AS " + c.Name
	}
	return "(SELECT " + strings.Join(casts, ", ") + " FROM (VALUES " + strings.Join(rows, ", ") + ") AS given (" + strings.Join(columns, ", ") + "))", nil
}

// nothing is a table with the parameter's columns and without rows.
func (p *Param) nothing() string {
	nulls := make([]string, len(p.Columns))
	for i, c := range p.Columns {
		nulls[i] = "CAST(NULL AS " + c.Type + ") AS " + c.Name
	}
	return "(SELECT " + strings.Join(nulls, ", ") + " WHERE FALSE)"
}

// rows are the lines of a CSV text as rows of VALUES.
func (p *Param) rows(text string) ([]string, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.TrimLeadingSpace = true
	names, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the file is empty; want CSV with a line of names: %s", p.fileColumns())
	}
	if err != nil {
		return nil, err
	}
	at := make([]int, len(p.Columns))
	for i, c := range p.Columns {
		if at[i] = slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(strings.TrimSpace(n), c.Name) }); at[i] < 0 {
			return nil, fmt.Errorf("line 1: there is no column %s in %q; want CSV with a line of names: %s", c.Name, strings.Join(names, ","), p.fileColumns())
		}
	}
	var rows []string
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		values := make([]string, len(p.Columns))
		for i, c := range p.Columns {
			if values[i], err = fieldLiteral(strings.TrimSpace(record[at[i]]), c.Type); err != nil {
				line, _ := r.FieldPos(at[i])
				return nil, fmt.Errorf("line %d: %s %w", line, c.Name, err)
			}
		}
		rows = append(rows, "("+strings.Join(values, ", ")+")")
	}
}

// fieldLiteral is a field of a CSV file as it stands in SQL.
func fieldLiteral(s, typ string) (string, error) {
	if s == "" {
		return "NULL", nil
	}
	switch typ {
	case "INTEGER", "BIGINT":
		bits := 32
		if typ == "BIGINT" {
			bits = 64
		}
		n, err := strconv.ParseInt(s, 10, bits)
		if err != nil {
			return "", fmt.Errorf("%q: want an integer of %d bits", s, bits)
		}
		return strconv.FormatInt(n, 10), nil
	case "DOUBLE":
		x, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return "", fmt.Errorf("%q: want a number", s)
		}
		return strconv.FormatFloat(x, 'E', -1, 64), nil
	}
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return "", fmt.Errorf("%q is not text", s)
	}
	return quote(s), nil
}
