package schema

//go:generate go run ./internal/gen

import "math"

// Version is the version of the tables. It is part of every run's digest, its manifest and the metadata of its Parquet
// files. It changes when a column changes its name, type, unit or meaning.
const Version = 2

// Type is the type of a column. DuckDB, Trino and Spark all read these types from Parquet in the same way: signed
// integers and strings, nothing nested, nothing unsigned (a hash is an int64 bit pattern).
type Type int8

const (
	// Int32 is a 32-bit signed integer, in memory []int32; NullInt32 is null.
	Int32 Type = iota
	// Int64 is a 64-bit signed integer, in memory []int64; NullInt64 is null.
	Int64
	// Enum is one of the column's Names, in memory []int16, an index into Names; NullEnum is null.
	// On disk it is a dictionary-encoded string.
	Enum
	// Text is a UTF-8 string, in memory []string; NullText is null.
	Text
)

// Nulls of columns in memory; the writer turns them into Parquet nulls. A null means not applicable or not known.
const (
	NullInt32 int32 = math.MinInt32
	NullInt64 int64 = math.MinInt64
	NullEnum  int16 = -1
	// NullText is invalid UTF-8, so no text can equal it.
	NullText = "\xff"
)

// Column describes one column of a table.
type Column struct {
	// Name is the column's name on disk and in SQL, lower case with underscores; names of times end in _ns.
	Name string
	// Type is its type.
	Type Type
	// Nullable reports whether the column may hold null.
	Nullable bool
	// Unit is ns, bytes, elements, 1 (a plain number) or "" (a name or an id).
	Unit string
	// Counts tells that a plain number (unit 1) is a count, which can be added up. Ranks, tags and positions are plain
	// numbers too, but no counts.
	Counts bool
	// Doc describes the column in one or two sentences.
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
	// Doc describes the rows.
	Doc string
	// Sharded tells that the table has a file for each range of ranks (events/0000.parquet, events/0001.parquet, ...);
	// other tables have one file (comms/0000.parquet).
	Sharded bool
	// Derived tells that the rows follow from those of other tables: the writer makes them, the run's digest ignores
	// them, and a run of an older commq may lack them.
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

// MaxRanks is the most ranks that a run may have: readers keep something for each, and a damaged number must not make
// them allocate without limit.
const MaxRanks = 1 << 24

// MaxThreads is the most threads of a rank that a run may have. Each that calls MPI has a number of its own, from 0.
const MaxThreads = 1 << 15

// WorldColumns returns the names of the columns that hold world ranks.
func (t *Table) WorldColumns() []string {
	switch t {
	case &EventsTable:
		return []string{"rank", "send_world", "recv_world", "root_world"}
	case &MessagesTable:
		return []string{"src", "dst"}
	case &PartsTable:
		return []string{"rank", "peer_world"}
	case &ProfileTable:
		return []string{"rank", "recv_world"}
	case &WaitsTable, &RepeatsTable:
		return []string{"src", "dst"}
	case &CollectiveWaitsTable:
		return []string{"rank"}
	case &CommsTable:
		return []string{"world_rank"}
	}
	return nil
}

// Batch holds rows of one table, as one slice per column.
type Batch interface {
	// Table returns the table that the rows belong to.
	Table() *Table
	// Len returns the number of rows.
	Len() int
	// Data returns the slice of column i: []int32, []int64, []int16 (Enum) or []string.
	Data(i int) any
}

// Rest reads columns of a batch that were left unread, for the rows [first, end): those with the given names, or all of
// them without names. Later calls may ask for the same or later rows; rows of a column that were skipped stay unread.
type Rest func(first, end int, columns ...string) error
