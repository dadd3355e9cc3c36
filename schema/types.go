// Package schema holds the words of commq: the tables of a run with their columns, types and units, the MPI calls and
// their stable ids, the manifest, the invariants and the digest. It knows no file, no database and no MPI library;
// the C shim, the Go packages, the SQL views and docs/SCHEMA.md are all made from what stands here.
package schema

//go:generate go run ./internal/gen

import "math"

// Version is the version of the tables. It is part of every run's digest and stands in the manifest and in the
// metadata of every Parquet file. It changes when a column changes its name, type, unit or meaning.
const Version = 2

// Type is the type of a column. The set is what DuckDB, Trino and Spark all read alike from Parquet: signed
// integers, strings, nothing nested, nothing unsigned (a hash is an int64 bit pattern).
type Type int8

const (
	// Int32 is a 32-bit signed integer, in memory []int32; NullInt32 is null.
	Int32 Type = iota
	// Int64 is a 64-bit signed integer, in memory []int64; NullInt64 is null.
	Int64
	// Enum is a string out of the column's Names, in memory []int16, the index into Names; NullEnum is null.
	// On disk it is a dictionary-encoded string.
	Enum
	// Text is a UTF-8 string, in memory []string; NullText is null.
	Text
)

// Nulls of the in-memory columns. They never reach a file: the writer turns them into Parquet nulls. A null means
// not applicable or not known.
const (
	NullInt32 int32 = math.MinInt32
	NullInt64 int64 = math.MinInt64
	NullEnum  int16 = -1
	// NullText is a string no program can produce by accident (an invalid UTF-8 sequence).
	NullText = "\xff"
)

// Column describes one column of a table.
type Column struct {
	// Name is the column's name on disk and in SQL, lower case with underscores; names of times end in _ns.
	Name string
	// Type is its type.
	Type Type
	// Nullable says whether a row may hold null there.
	Nullable bool
	// Unit is ns, bytes, elements, 1 (a plain number) or "" (a name or an id).
	Unit string
	// Counts says of a plain number (unit 1) that it is how many, and not which one: ranks, tags and places in an order are
	// numbers too, and nobody adds them up.
	Counts bool
	// Doc says what the column means, in one or two sentences.
	Doc string
	// Names are the values of an Enum column; a row holds an index into them.
	Names []string
	// Goname is the field's name in the generated Go structs.
	Goname string
}

// Table describes one table of a run.
type Table struct {
	// Name is the table's name in SQL and of its folder in a run.
	Name string
	// Doc says what a row is.
	Doc string
	// Sharded says that the table's rows are in a file for each range of ranks (events/0000.parquet, events/0001.parquet, ...); other tables have
	// one file (comms/0000.parquet).
	Sharded bool
	// Derived says that the rows follow from those of other tables: the writer makes them, the run's digest is without them, and a run of an
	// older commq may lack them.
	Derived bool
	// Key are the columns that order the rows within a file; together they make a row unique.
	Key []string
	// Columns are the table's columns in the order they are written.
	Columns []Column
	// Goname is the name of the generated row struct; the batch (slices per column) has the plural.
	Goname string
}

// Column returns the column of that name and its index, or nil and -1.
func (t *Table) Column(name string) (*Column, int) {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return &t.Columns[i], i
		}
	}
	return nil, -1
}

// Batch is a number of rows of one table, held as one slice per column.
type Batch interface {
	// Table says which table the rows belong to.
	Table() *Table
	// Len is the number of rows.
	Len() int
	// Data returns the slice of column i: []int32, []int64, []int16 (Enum) or []string.
	Data(i int) any
}

// Rest reads columns of a batch that were not read with it, for the rows from first to before end: those of that name, or all where none is named. It may
// be called again, for the same rows and those behind them: what was passed over of a column stays unread.
type Rest func(first, end int, columns ...string) error
