package nsys

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// magic is the begin of a SQLite database.
const magic = "SQLite format 3\x00"

// IsTrace reports whether a file that begins so is a SQLite database, as exports of Nsight Systems are.
func IsTrace(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }

// file is an open export.
type file struct {
	db   *sql.DB
	conn *sql.Conn
	path string
	// columns are those of the tables that it has, by table.
	columns map[string][]string
	// unnumbered are the tables that have no rowid.
	unnumbered map[string]bool
}

// settings are those of a connection: nothing is written, the schema of a file runs no functions, SQLite checks the
// pages that it reads, and sorts in temporary files.
var settings = []string{"query_only(1)", "trusted_schema(0)", "cell_size_check(1)", "temp_store(1)"}

// mostValue is the length of the longest value, or row, that is read, in bytes: texts are names, and what programs
// printed.
const mostValue = 64 << 20

// open opens an export and lists its tables.
func open(ctx context.Context, path string) (*file, error) {
	head := make([]byte, len(magic))
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	n, _ := in.Read(head)
	if err := in.Close(); err != nil {
		return nil, err
	}
	if !IsTrace(head[:n]) {
		return nil, fmt.Errorf("%s begins with %q; want a SQLite database, which nsys export --type sqlite writes: "+
			"unpack a compressed one first, and export a .nsys-rep", path, head[:n])
	}
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		return nil, fmt.Errorf("%s: another program changed it, and what it wrote is still in %s-wal; end that "+
			"program, or export the report again", path, path)
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: "mode=ro&immutable=1&_pragma=" + strings.Join(settings,
		"&_pragma=")}
	db, err := sql.Open("sqlite", strings.Replace(u.String(), "file://", "file:", 1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f := &file{db: db, path: path, columns: map[string][]string{}, unnumbered: map[string]bool{}}
	if err = f.connect(ctx); err == nil {
		err = f.list(ctx)
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// connect opens the only connection.
func (f *file) connect(ctx context.Context) (err error) {
	if f.conn, err = f.db.Conn(ctx); err != nil {
		return f.damaged("sqlite_master", err)
	}
	_, err = sqlite.Limit(f.conn, lib.SQLITE_LIMIT_LENGTH, mostValue)
	return err
}

func (f *file) close() {
	if f.conn != nil {
		f.conn.Close()
	}
	f.db.Close()
}

// list lists the tables and their columns. Views and virtual tables have no pages of their own, and do not count.
func (f *file) list(ctx context.Context) error {
	err := f.pairs(ctx, "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c "+
		"WHERE m.type = 'table' AND m.rootpage > 0 ORDER BY m.name, c.cid", func(table, column string) {
		f.columns[table] = append(f.columns[table], column)
	})
	if err != nil {
		return err
	}
	return f.pairs(ctx, "SELECT name, type FROM pragma_table_list WHERE schema = 'main' AND wr = 1",
		func(table, _ string) { f.unnumbered[table] = true })
}

// pairs calls take for each row of a query of the schema, which has two texts.
func (f *file) pairs(ctx context.Context, text string, take func(a, b string)) error {
	rows, err := f.conn.QueryContext(ctx, text)
	if err != nil {
		return f.damaged("sqlite_master", err)
	}
	defer rows.Close()
	for rows.Next() {
		var a, b string
		if err := rows.Scan(&a, &b); err != nil {
			return f.damaged("sqlite_master", err)
		}
		take(a, b)
	}
	if err := rows.Err(); err != nil {
		return f.damaged("sqlite_master", err)
	}
	return nil
}

// isExport reports whether the tables are those of Nsight Systems.
func (f *file) isExport() bool {
	return f.has("StringIds") && (f.has("META_DATA_EXPORT") || f.has("NVTX_EVENTS") ||
		f.has("CUPTI_ACTIVITY_KIND_KERNEL") || f.has("MPI_RANKS"))
}

func (f *file) has(table string) bool { return f.columns[table] != nil }

func (f *file) hasColumn(table, column string) bool { return slices.Contains(f.columns[table], column) }

// number returns the expression for the number of a row of a table.
func (f *file) number(table string) string {
	if f.unnumbered[table] {
		return "row_number() OVER ()"
	}
	return "rowid"
}

// damaged says where SQLite cannot read the file.
func (f *file) damaged(table string, err error) error {
	return fmt.Errorf("%s: table %s: %w; want an undamaged export: export the report again (nsys export --type sqlite)",
		f.path, table, err)
}

// row is a row of a table. The first value that is not what it should be is in err.
type row struct {
	file    *file
	table   string
	columns []string
	id      int64
	values  []any
	err     error
}

// each calls take for each row of a table, with these columns; those that the table does not have are null. tail is
// what follows the table's name in the query. A table that is not there has no rows.
func (f *file) each(ctx context.Context, table string, columns []string, tail string, take func(r *row)) error {
	if !f.has(table) {
		return nil
	}
	var words []string
	for _, c := range columns {
		if f.hasColumn(table, c) {
			words = append(words, quoted(c))
		} else {
			words = append(words, "NULL")
		}
	}
	return f.query(ctx, table, columns, "SELECT "+f.number(table)+", "+strings.Join(words, ", ")+" FROM "+
		quoted(table)+" "+tail, take)
}

// query calls take for each row of a query whose first column is a number of the row, and whose others have these
// names.
func (f *file) query(ctx context.Context, table string, columns []string, text string, take func(r *row)) error {
	rows, err := f.conn.QueryContext(ctx, text)
	if err != nil {
		return f.damaged(table, err)
	}
	defer rows.Close()
	r := &row{file: f, table: table, columns: columns, values: make([]any, len(columns))}
	into := []any{&r.id}
	for i := range r.values {
		into = append(into, &r.values[i])
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return f.damaged(table, err)
		}
		if take(r); r.err != nil {
			return r.err
		}
	}
	if err := rows.Err(); err != nil {
		return f.damaged(table, err)
	}
	return nil
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// bad notes that a value is not what it should be.
func (r *row) bad(i int, want string) {
	if r.err != nil {
		return
	}
	text := fmt.Sprint(r.values[i])
	switch v := r.values[i].(type) {
	case string:
		text = fmt.Sprintf("%.40q", v)
	case []byte:
		text = fmt.Sprintf("%d bytes", len(v))
	case nil:
		text = "null"
	}
	r.err = fmt.Errorf("%s: table %s, row %d: %s is %s; want %s", r.file.path, r.table, r.id, r.columns[i], text, want)
}

// integer returns a number; or if it is null.
func (r *row) integer(i int, or int64) int64 {
	switch v := r.values[i].(type) {
	case nil:
		return or
	case int64:
		return v
	}
	r.bad(i, "a whole number")
	return or
}

// number returns a number that must be there.
func (r *row) number(i int) int64 {
	if r.values[i] == nil {
		r.bad(i, "a whole number")
		return 0
	}
	return r.integer(i, 0)
}

// mostNs is a time after which none is believed, some 73 years after the start or since 1970.
const mostNs = 1 << 61

// time returns a time in ns.
func (r *row) time(i int) int64 {
	t := r.number(i)
	if t < -mostNs || t > mostNs {
		r.bad(i, "a time in nanoseconds")
		return 0
	}
	return t
}

// text returns a text; empty if it is null.
func (r *row) text(i int) string {
	switch v := r.values[i].(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return string(v)
	}
	r.bad(i, "a text")
	return ""
}
