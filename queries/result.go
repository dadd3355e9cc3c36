package queries

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/commq/commq/schema"
)

// Rows are the rows of an answer, to be read once, first to last.
type Rows interface {
	// Columns describe the answer's columns in order.
	Columns() []Column
	// Next advances to the next row; false at the end or on an error.
	Next() bool
	// Row returns the current row, valid until Next: nil (null), bool, signed and unsigned integers, float32,
	// float64, string, []byte, time.Time, *big.Int, or what the engine uses for its other types.
	Row() []any
	// Err returns the error that ended the rows; nil at their end.
	Err() error
	// Close stops reading.
	Close() error
}

// Query runs the user's own SQL, one reading statement. Errors are the engine's.
func (d *DB) Query(ctx context.Context, text string) (Rows, error) {
	if err := d.checkReadOnly(ctx, text); err != nil {
		return nil, err
	}
	return d.query(ctx, nil, text)
}

// query runs a statement with arguments for its parameters. If described is not nil, it describes the rows. Tables that
// are named otherwise than in commq's own SQL must have been opened: prepare does so.
func (d *DB) query(ctx context.Context, described []Column, text string, args ...any) (Rows, error) {
	if d.remote != nil {
		return d.remote.query(ctx, d.conn, described, text)
	}
	names := cannedNames(text)
	for _, arg := range args {
		if text, ok := arg.(string); ok {
			names = append(names, cannedNames(text)...)
		}
	}
	if err := d.open(ctx, names); err != nil {
		return nil, err
	}
	if d.byColumn {
		rows, err := d.queryColumns(ctx, described, text, args...)
		return rows, d.explain(ctx, err)
	}
	rows, err := d.conn.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, d.explain(ctx, err)
	}
	r := &engineRows{rows: rows, columns: described, plain: plain}
	if err := r.prepare(); err != nil {
		rows.Close()
		return nil, err
	}
	return r, nil
}

// explain rewrites an error of the engine, and says which file is damaged if one is.
func (d *DB) explain(ctx context.Context, err error) error {
	if err = plain(err); err != nil && damagedRe.MatchString(err.Error()) {
		return damage(ctx, d.conn, d.runs, err)
	}
	return err
}

// Ask runs a canned query and returns its rows, described as in its header. A query that is not over runs is asked of
// one run: the engine must have been opened on that run alone. Errors say what a run lacks or what is wrong with an
// argument. The changes are made to its SQL, as Unordered.
func (d *DB) Ask(ctx context.Context, q *Query, args map[string]string, changes ...func(string) string) (Rows, error) {
	text, err := d.Text(ctx, q, args)
	if err != nil {
		return nil, err
	}
	for _, change := range changes {
		text = change(text)
	}
	rows, err := d.ask(ctx, q, args, text)
	if err != nil {
		return nil, d.describeError(q, args, err)
	}
	return rows, nil
}

// Unordered returns SQL without a last line that is ORDER BY and no more: the rows come in any order, which takes less
// time.
func Unordered(text string) string {
	text = strings.TrimRight(text, " \n")
	if at := strings.LastIndexByte(text, '\n'); lastOrder.MatchString(text[at+1:]) {
		return text[:max(at, 0)]
	}
	return text
}

// lastOrder matches a line that orders all rows.
var lastOrder = regexp.MustCompile(`^ORDER BY [\w.]+( DESC| ASC)?(, [\w.]+( DESC| ASC)?)*$`)

// ask runs the text of a canned query. The driver prepares a statement before running it, and a statement that reads
// Parquet files is then planned again. A text passed as an argument is not prepared, so it is planned only once. A
// text with the user's own SQL runs as it is, because then the engine shows the line of an error.
func (d *DB) ask(ctx context.Context, q *Query, args map[string]string, text string) (Rows, error) {
	if d.remote != nil || q.File != "" { // tests cover commq's own queries
		if err := d.checkReadOnly(ctx, text); err != nil {
			return nil, err
		}
		return d.query(ctx, q.Columns, text)
	}
	for name := range args {
		if q.param(name).Kind == "condition" {
			return d.query(ctx, q.Columns, text)
		}
	}
	return d.query(ctx, q.Columns, "FROM query($1)", text)
}

// IsBroken reports whether an error is of an engine that can answer nothing any more: an internal error of DuckDB makes
// its database unusable. A new engine on the same runs may answer the same question.
func IsBroken(err error) bool {
	var said *duckdb.Error
	return errors.As(err, &said) && (said.Type == duckdb.ErrorTypeInternal || said.Type == duckdb.ErrorTypeFatal)
}

// describeError adds to an engine error the query, the runs and, for a user's own query, the place in its file.
func (d *DB) describeError(q *Query, args map[string]string, err error) error {
	var column columnError
	switch s, bad := q.filled(args); {
	case q.File == "" || bad != nil:
	case errors.As(err, &column) && q.lines["column "+column.name] == 0: // a column of every finding
		err = fmt.Errorf("%s: %w", q.File, err)
	case errors.As(err, &column):
		err = fmt.Errorf("%s, line %d: %w", q.File, q.lines["column "+column.name], err)
	default:
		err = s.located(err)
	}
	return fmt.Errorf("query %s of %s: %w", q.Name, nameRuns(d.runs), err)
}

// nameRuns names runs in a message.
func nameRuns(runs []Run) string {
	if len(runs) == 1 {
		return "run " + runs[0].Name
	}
	return fmt.Sprintf("%d runs", len(runs))
}

// Text returns the SQL that Ask runs, after the same checks.
func (d *DB) Text(ctx context.Context, q *Query, args map[string]string) (string, error) {
	if !q.OverRuns && len(d.runs) != 1 {
		return "", fmt.Errorf("query %s is asked of one run at a time, the engine has %d", q.Name, len(d.runs))
	}
	for _, run := range d.runs {
		if err := q.Check(run); err != nil {
			return "", err
		}
	}
	args, err := d.chooseRead(ctx, q, args)
	if err != nil {
		return "", err
	}
	text, err := q.SQL(args)
	if err != nil {
		return "", err
	}
	for _, p := range q.Params {
		cond, given := args[p.Name]
		if !given || p.Kind != "condition" {
			continue
		}
		if err := d.CheckCondition(ctx, p.Table, cond); err != nil {
			return "", fmt.Errorf("query %s: %s %q: %w", q.Name, p.Name, cond, err)
		}
	}
	return text, d.open(ctx, cannedNames(text))
}

// engineRows are rows of the engine.
type engineRows struct {
	rows    *sql.Rows
	columns []Column
	values  []any
	targets []any
	err     error
	// plain rewrites the engine's errors, fix its values; nil if not needed.
	plain func(error) error
	fix   func(typ string, value any) any
}

// columnError reports an answer whose columns differ from the query's header.
type columnError struct {
	// name is the first column of the header that differs.
	name, text string
}

func (e columnError) Error() string { return e.text }

// columnType is a column as the engine names it.
type columnType struct{ name, typ string }

// compare reports how the engine's columns differ from the header's.
func compare(types []columnType, header []Column) error {
	for i, c := range header {
		if i == len(types) {
			return columnError{c.Name, fmt.Sprintf("the SELECT has %d columns and the header %d: there is no %s",
				len(types), len(header), c.Name)}
		}
		if t := types[i]; t.name != c.Name || t.typ != c.Type {
			return columnError{c.Name, fmt.Sprintf("column %d of the SELECT is %s %s, in the header it is %s %s; "+
				"cast or rename it, or change the header", i+1, t.name, t.typ, c.Name, c.Type)}
		}
	}
	if len(types) > len(header) {
		return columnError{header[len(header)-1].Name,
			fmt.Sprintf("the SELECT has %d columns and the header %d: describe %s there too", len(types), len(header),
				types[len(header)].name)}
	}
	return nil
}

// describe returns the columns of an answer: those of the header, compared with the engine's, or without a header the
// engine's.
func describe(types []columnType, header []Column) ([]Column, error) {
	if header != nil {
		return header, compare(types, header)
	}
	var columns []Column
	for _, t := range types {
		columns = append(columns, Column{Name: t.name, Type: t.typ, Unit: unitOf(t.name, t.typ)})
	}
	return columns, nil
}

// prepare takes names and types from the engine if no header describes the columns.
func (r *engineRows) prepare() error {
	sqlTypes, err := r.rows.ColumnTypes()
	if err != nil {
		return err
	}
	types := make([]columnType, len(sqlTypes))
	for i, t := range sqlTypes {
		types[i] = columnType{t.Name(), typeName(t.DatabaseTypeName())}
	}
	if r.columns, err = describe(types, r.columns); err != nil {
		return err
	}
	r.values, r.targets = make([]any, len(types)), make([]any, len(types))
	for i := range r.values {
		r.targets[i] = &r.values[i]
	}
	return nil
}

// numberTypeRe matches DuckDB's names of numeric types.
var numberTypeRe = regexp.MustCompile(`^(U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|FLOAT|DOUBLE|DECIMAL.*)$`)

// unitOf guesses the unit of a column of the user's own SQL: that of the schema's column with the same name, else 1
// for numbers.
func unitOf(name, typ string) string {
	if !numberTypeRe.MatchString(typ) {
		return ""
	}
	for _, t := range schema.Tables() {
		if c, _ := t.Column(name); c != nil && (c.Type == schema.Int32 || c.Type == schema.Int64) {
			if c.Unit == "1" && !c.Counts {
				return ""
			}
			return c.Unit
		}
	}
	return "1"
}

// typeName returns a type's DuckDB name: Trino says varchar(3) for VARCHAR.
func typeName(engines string) string {
	name, _, _ := strings.Cut(strings.ToUpper(engines), "(")
	if name == "DECIMAL" {
		return engines
	}
	return name
}

func (r *engineRows) Columns() []Column { return r.columns }
func (r *engineRows) Row() []any        { return r.values }

func (r *engineRows) Next() bool {
	if r.err != nil || !r.rows.Next() {
		return false
	}
	r.err = r.rows.Scan(r.targets...)
	if r.fix != nil {
		for i, c := range r.columns {
			r.values[i] = r.fix(c.Type, r.values[i])
		}
	}
	return r.err == nil
}

func (r *engineRows) Err() error {
	if r.err != nil {
		return r.err
	}
	return r.plain(r.rows.Err())
}

// interrupted reports a query whose context ended; it wraps the context's error.
type interrupted struct{ cause error }

func (interrupted) Error() string   { return "the query was interrupted" }
func (i interrupted) Unwrap() error { return i.cause }

// plain replaces the driver's several errors about an interrupt by one.
func plain(err error) error {
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, cause) {
			return interrupted{cause}
		}
	}
	if err == nil {
		return nil
	}
	if m := refusedRe.FindStringSubmatch(err.Error()); m != nil {
		return errors.New(m[1])
	}
	return err
}

// refusedRe matches the failed cast by which a query refuses its arguments (see the package comment).
var refusedRe = regexp.MustCompile(`(?:Could not convert string|Cannot cast) 'refused: (.*?)' to INT`)

func (r *engineRows) Close() error { return r.rows.Close() }

// InRun adds the column run, with one value, in front of rows.
func InRun(run string, rows Rows) Rows {
	column := Column{Name: "run", Type: "VARCHAR", Doc: "Run the row belongs to."}
	return &inRun{Rows: rows, run: run, columns: append([]Column{column}, rows.Columns()...)}
}

type inRun struct {
	Rows
	run     string
	columns []Column
	values  []any
}

func (r *inRun) Columns() []Column { return r.columns }

func (r *inRun) Row() []any {
	r.values = append(append(r.values[:0], r.run), r.Rows.Row()...)
	return r.values
}

// Concat returns the rows of several answers with the same columns, one after the other. next opens the next answer
// and returns nil after the last. Each answer is closed before the next is opened.
func Concat(next func() (Rows, error)) (Rows, error) {
	first, err := next()
	if err != nil || first == nil {
		return nil, err
	}
	return &concat{now: first, columns: first.Columns(), next: next}, nil
}

type concat struct {
	now     Rows
	columns []Column
	next    func() (Rows, error)
	err     error
}

func (c *concat) Columns() []Column { return c.columns }
func (c *concat) Row() []any        { return c.now.Row() }
func (c *concat) Err() error        { return c.err }

func (c *concat) Next() bool {
	for c.err == nil && c.now != nil {
		if c.now.Next() {
			return true
		}
		c.advance()
	}
	return false
}

// advance closes the answer that has ended and opens the next.
func (c *concat) advance() {
	if c.err = c.now.Err(); c.err == nil {
		c.err = c.now.Close()
		c.now = nil
	}
	if c.err == nil {
		c.now, c.err = c.next()
	}
}

func (c *concat) Close() error {
	if c.now == nil {
		return nil
	}
	return c.now.Close()
}

// RowsOf returns rows in memory.
func RowsOf(columns []Column, rows [][]any) Rows {
	return &keptRows{columns: columns, rows: rows, at: -1}
}
