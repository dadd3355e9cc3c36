package regress

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

	"github.com/commq/commq/internal/bounded"
)

// Table is a table of values by number of ranks.
type Table struct {
	// Value is the name of the column of values; "value" when it has none.
	Value  string
	Points []Point
}

// ranksNames are usual names of a column with numbers of ranks, in lower case.
var ranksNames = []string{"ranks", "rank", "processes", "procs", "nprocs", "nranks", "num_ranks", "mpi_ranks", "np",
	"p"}

// ReadTableFile reads a table from a file, or from stdin for "-". name is what errors call the file. columns are as in
// ReadTable.
func ReadTableFile(file string, stdin io.Reader, columns []string) (t *Table, name string, err error) {
	if file == "-" {
		t, err = ReadTable(stdin, "stdin", columns)
		return t, "stdin", err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, file, fmt.Errorf("fit: %w", err)
	}
	defer f.Close()
	t, err = ReadTable(f, file, columns)
	return t, file, err
}

// ReadTable reads two columns of a CSV table, whose separator is a comma, a semicolon or a tab. columns names the
// columns of ranks and values; nil finds them by their names and places. Errors begin with "fit: name:line".
func ReadTable(r io.Reader, name string, columns []string) (*Table, error) {
	in := newCSV(&bounded.Reader{From: r, Left: mostBytes, Err: errLong})
	t := &Table{Value: "value"}
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
			header := !isNumber(record[0])
			if ranks, value, err = findColumns(record, header, columns); err != nil {
				return nil, fmt.Errorf("fit: %s:%d: %w", name, line, err)
			}
			width = len(record)
			if header {
				t.Value = record[value]
				continue
			}
		}
		if len(record) != width {
			return nil, fmt.Errorf("fit: %s:%d: %d columns, the first line has %d", name, line, len(record), width)
		}
		p, err := parsePoint(record[ranks], record[value])
		if err != nil {
			return nil, fmt.Errorf("fit: %s:%d: %w", name, line, err)
		}
		t.Points = append(t.Points, p)
	}
	if len(t.Points) == 0 {
		return nil, fmt.Errorf("fit: %s: no values; want lines with a number of ranks and a value, separated by a comma",
			name)
	}
	return t, nil
}

// mostBytes is more than any table of numbers has: the CSV reader keeps a line, however long it is.
const mostBytes = 64 << 20

var errLong = fmt.Errorf("more than %d MiB; want a table of numbers of ranks and values", mostBytes>>20)

// newCSV reads records separated by what separates those of the first line.
func newCSV(r io.Reader) *csv.Reader {
	buffered := bufio.NewReader(r)
	if start, _ := buffered.Peek(3); string(start) == "\xef\xbb\xbf" { // the byte order mark of spreadsheets
		buffered.Discard(3)
	}
	in := csv.NewReader(buffered)
	in.Comma, in.Comment = findSeparator(buffered), '#'
	in.TrimLeadingSpace, in.ReuseRecord, in.FieldsPerRecord = true, true, -1
	return in
}

// tableError adds the line to an error of the CSV reader.
func tableError(name string, err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("fit: %s:%d: %w", name, parse.Line, parse.Err)
	}
	return fmt.Errorf("fit: %s: %w", name, err)
}

// findSeparator returns the separator of the first line that is not a comment: a comma if it has one, else a semicolon
// or a tab.
func findSeparator(r *bufio.Reader) rune {
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

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// findColumns finds the columns of ranks and values in the first line.
func findColumns(record []string, header bool, columns []string) (ranks, value int, err error) {
	if !header {
		if columns != nil {
			return 0, 0, fmt.Errorf("%q is not the name of a column, and --columns wants %s; "+
				"give the table a first line with names", record[0], strings.Join(columns, " and "))
		}
		if len(record) != 2 {
			return 0, 0, fmt.Errorf("%d columns and no names; want two, a number of ranks and a value, "+
				"or a first line with names and --columns", len(record))
		}
		return 0, 1, nil
	}
	if columns != nil {
		ranks, value = slices.Index(record, columns[0]), slices.Index(record, columns[1])
		for i, index := range []int{ranks, value} {
			if index < 0 {
				return 0, 0, fmt.Errorf("no column %q; there are %s", columns[i], strings.Join(record, ", "))
			}
		}
		return ranks, value, nil
	}
	if len(record) == 1 {
		return 0, 0, fmt.Errorf("%q is one column; want two, separated by a comma", record[0])
	}
	ranks = max(0, slices.IndexFunc(record,
		func(s string) bool { return slices.Contains(ranksNames, strings.ToLower(s)) }))
	if len(record) == 2 {
		return ranks, 1 - ranks, nil
	}
	if value = slices.IndexFunc(record, func(s string) bool { return strings.EqualFold(s, "value") }); value >= 0 &&
		value != ranks {
		return ranks, value, nil
	}
	return 0, 0, fmt.Errorf("columns %s: it is not clear which have ranks and values; name the two with --columns",
		strings.Join(record, ", "))
}

// MaxRanks is the largest number of ranks: MPI counts them with an int.
const MaxRanks = math.MaxInt32

// parsePoint reads the two values of a line.
func parsePoint(ranks, value string) (p Point, err error) {
	x, err := strconv.ParseFloat(ranks, 64)
	if err != nil || x != math.Trunc(x) || x < 1 || x > MaxRanks {
		return p, fmt.Errorf("%q is not a number of ranks; want a whole number from 1 to %d", ranks, MaxRanks)
	}
	y, err := strconv.ParseFloat(value, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return p, fmt.Errorf("value %q is too large; want a number below 1.8e308", value)
	case err != nil:
		return p, fmt.Errorf("value %q is not a number; want digits with a point for fractions, and no units", value)
	case math.IsNaN(y) || math.IsInf(y, 0):
		return p, fmt.Errorf("value %q: want a finite number; leave the line out where there is no value", value)
	}
	return Point{Ranks: int64(x), Value: y}, nil
}
