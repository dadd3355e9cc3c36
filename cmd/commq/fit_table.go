package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/predict/regress"
)

// fitTable is a table of values by ranks.
type fitTable struct {
	value  string // the name of the column, or "value"
	points []regress.Point
}

// ranksNames are names of a column of numbers of ranks, in small letters.
var ranksNames = []string{"ranks", "rank", "processes", "procs", "nprocs", "nranks", "num_ranks", "mpi_ranks", "np", "p"}

// readFitFile reads a table from a file, or from stdin for "-", and says what errors call it.
func readFitFile(file string, stdin io.Reader, columns []string) (t *fitTable, name string, err error) {
	if file == "-" {
		t, err = readFitTable(stdin, "stdin", columns)
		return t, "stdin", err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, file, fmt.Errorf("fit: %w", err)
	}
	defer f.Close()
	t, err = readFitTable(f, file, columns)
	return t, file, err
}

// readFitTable reads a table of two columns; columns names them, nil leaves it to their names and places. Errors begin with name:line.
func readFitTable(r io.Reader, name string, columns []string) (*fitTable, error) {
	buffered := bufio.NewReader(r)
	if start, _ := buffered.Peek(3); string(start) == "\xef\xbb\xbf" { // a byte order mark, as spreadsheets write it
		buffered.Discard(3)
	}
	in := csv.NewReader(buffered)
	in.Comma, in.Comment, in.TrimLeadingSpace, in.ReuseRecord, in.FieldsPerRecord = separator(buffered), '#', true, true, -1
	t := &fitTable{value: "value"}
	ranks, value, width := -1, -1, 0
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, tableError(name, err)
		}
		line, _ := in.FieldPos(0)
		for i := range record {
			record[i] = strings.TrimSpace(record[i])
		}
		if ranks < 0 {
			header := !number(record[0])
			if ranks, value, err = findColumns(record, header, columns); err != nil {
				return nil, fmt.Errorf("fit: %s:%d: %w", name, line, err)
			}
			width = len(record)
			if header {
				t.value = record[value]
				continue
			}
		}
		if len(record) != width {
			return nil, fmt.Errorf("fit: %s:%d: %d columns, the first line has %d", name, line, len(record), width)
		}
		p, err := fitPoint(record[ranks], record[value])
		if err != nil {
			return nil, fmt.Errorf("fit: %s:%d: %w", name, line, err)
		}
		t.points = append(t.points, p)
	}
	if len(t.points) == 0 {
		return nil, fmt.Errorf("fit: %s: no values; want lines of a number of ranks and a value, with a comma", name)
	}
	return t, nil
}

// tableError is an error of the CSV with the place that it has.
func tableError(name string, err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("fit: %s:%d: %w", name, parse.Line, parse.Err)
	}
	return fmt.Errorf("fit: %s: %w", name, err)
}

// separator is what stands between the columns of the first line that is no comment: a tab or semicolon where there is no comma.
func separator(r *bufio.Reader) rune {
	start, _ := r.Peek(r.Size())
	for line := range strings.Lines(string(start)) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		for _, c := range []rune{',', ';', '\t'} {
			if strings.ContainsRune(line, c) {
				return c
			}
		}
	}
	return ','
}

func number(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// findColumns says where the ranks and the value are in a first line.
func findColumns(record []string, header bool, columns []string) (ranks, value int, err error) {
	if !header {
		if columns != nil {
			return 0, 0, fmt.Errorf("%q is no name of a column, and --columns asks for %s; give the table a first line with names", record[0], strings.Join(columns, " and "))
		}
		if len(record) != 2 {
			return 0, 0, fmt.Errorf("%d columns and no names; want two, a number of ranks and a value, or a first line with names and --columns", len(record))
		}
		return 0, 1, nil
	}
	if columns != nil {
		ranks, value = slices.Index(record, columns[0]), slices.Index(record, columns[1])
		for i, at := range []int{ranks, value} {
			if at < 0 {
				return 0, 0, fmt.Errorf("no column %q; there are %s", columns[i], strings.Join(record, ", "))
			}
		}
		return ranks, value, nil
	}
	if len(record) == 1 {
		return 0, 0, fmt.Errorf("%q is one column; want two, with a comma between them", record[0])
	}
	ranks = max(0, slices.IndexFunc(record, func(s string) bool { return slices.Contains(ranksNames, strings.ToLower(s)) }))
	if len(record) == 2 {
		return ranks, 1 - ranks, nil
	}
	if value = slices.IndexFunc(record, func(s string) bool { return strings.EqualFold(s, "value") }); value >= 0 && value != ranks {
		return ranks, value, nil
	}
	return 0, 0, fmt.Errorf("columns %s: which are ranks and value? name the two with --columns", strings.Join(record, ", "))
}

// mostMPIRanks is the largest number of ranks that is one: MPI counts them with an int.
const mostMPIRanks = math.MaxInt32

// fitPoint reads a line.
func fitPoint(ranks, value string) (p regress.Point, err error) {
	x, err := strconv.ParseFloat(ranks, 64)
	if err != nil || x != math.Trunc(x) || x < 1 || x > mostMPIRanks {
		return p, fmt.Errorf("%q is no number of ranks; want a whole number from 1 to %d", ranks, mostMPIRanks)
	}
	y, err := strconv.ParseFloat(value, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return p, fmt.Errorf("value %q is too large; want a number below 1.8e308", value)
	case err != nil:
		return p, fmt.Errorf("value %q is no number; want digits with a point for fractions, no unit and no other commas", value)
	case math.IsNaN(y) || math.IsInf(y, 0):
		return p, fmt.Errorf("value %q: want a finite number; leave the line out where there is no value", value)
	}
	return regress.Point{Ranks: int64(x), Value: y}, nil
}
