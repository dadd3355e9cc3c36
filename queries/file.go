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

// fileBytes limits a file given by the user: its rows become part of the SQL text.
const fileBytes = 64 << 20

// table turns a CSV file into a parenthesised table expression with the parameter's columns. The file's first line
// names its columns, in any order; additional columns are ignored. An empty field is null. Errors name file and line.
func (p *Param) table(name string) (string, error) {
	if name == noFile {
		return p.emptyTable(), nil
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
		return p.emptyTable(), nil
	}
	columns, casts := make([]string, len(p.Columns)), make([]string, len(p.Columns))
	for i, c := range p.Columns {
		columns[i] = c.Name
		casts[i] = "CAST(" + c.Name + " AS " + c.Type + ") AS " + c.Name
	}
	return "(SELECT " + strings.Join(casts, ", ") + " FROM (VALUES " + strings.Join(rows, ", ") + ") AS given (" +
		strings.Join(columns, ", ") + "))", nil
}

// emptyTable returns a table expression with the parameter's columns and no rows.
func (p *Param) emptyTable() string {
	nulls := make([]string, len(p.Columns))
	for i, c := range p.Columns {
		nulls[i] = "CAST(NULL AS " + c.Type + ") AS " + c.Name
	}
	return "(SELECT " + strings.Join(nulls, ", ") + " WHERE FALSE)"
}

// rows turns the lines of a CSV text into rows of VALUES.
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
		if at[i] = slices.IndexFunc(names,
			func(n string) bool { return strings.EqualFold(strings.TrimSpace(n), c.Name) }); at[i] < 0 {
			return nil, fmt.Errorf("line 1: there is no column %s in %q; want CSV with a line of names: %s", c.Name,
				strings.Join(names, ","), p.fileColumns())
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

// fieldLiteral returns a field of a CSV file as an SQL literal.
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
