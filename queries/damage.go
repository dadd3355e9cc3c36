package queries

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/schema"
)

// typed says whether the views have the columns' types: a foreign Parquet file can have the names and others.
func (d *DB) typed(ctx context.Context) error {
	var tables []string // asked for by name: duckdb_columns() binds the engine's own views too, which takes longer than the rest of Open
	for _, t := range schema.Tables() {
		tables = append(tables, "SELECT "+quote(t.Name)+", name, type FROM pragma_table_info("+quote(t.Name)+")")
	}
	rows, err := d.conn.QueryContext(ctx, strings.Join(tables, "\nUNION ALL\n"))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var table, column, typ string
		if err := rows.Scan(&table, &column, &typ); err != nil {
			return err
		}
		if c, _ := tableOf(table).Column(column); c != nil && c.Type.SQL() != typ {
			return fmt.Errorf("column %s of table %s is %s; want %s", column, table, typ, c.Type.SQL())
		}
	}
	return rows.Err()
}

// damagedRe is what the engine says of a Parquet file that it cannot read.
var damagedRe = regexp.MustCompile(`(?i)no magic bytes|too small to be a parquet|TProtocolException|(ZSTD|snappy|LZ4|gzip).{0,20}decompress|corrupt|invalid footer|parquet (file|footer|metadata) `)

// damage is an error of the engine about a run's files as one that says which file it is about, what was found there, and what
// to do. Where nothing is wrong with the columns of any file, it is the engine's own first line.
func (d *DB) damage(ctx context.Context, runs []Run, err error) error {
	var dirs []string
	for _, r := range runs {
		dirs = append(dirs, r.Dir)
		dir, absErr := filepath.Abs(r.Dir)
		if absErr != nil {
			return errors.Join(err, absErr)
		}
		for _, t := range schema.Tables() {
			if found := d.wrongFile(ctx, r, dir, t); found != nil {
				return fmt.Errorf("%w; restore the file or capture the run again; commq runs check %s says more", found, shellquote.Join(r.Dir))
			}
		}
	}
	return fmt.Errorf("%s; a file of the run is damaged or gone: commq runs check %s says more", firstLine(err), shellquote.Join(dirs...))
}

// wrongFile says what is wrong with the first file of a table that does not have its columns.
func (d *DB) wrongFile(ctx context.Context, r Run, dir string, t *schema.Table) error {
	files, err := tableFiles(r, dir, t)
	if err != nil {
		return err
	}
	for i, p := range patterns(files) {
		place := fmt.Sprintf("run %q: %s", r.Name, tableInfo(r.Manifest, t.Name).Files[i].Path)
		types, err := d.columnTypes(ctx, p)
		if err != nil {
			return fmt.Errorf("%s: not a whole Parquet file: %s", place, firstLine(err))
		}
		for _, c := range t.Columns {
			switch typ, ok := types[c.Name]; {
			case !ok:
				return fmt.Errorf("%s: no column %s of table %s among its %d", place, c.Name, t.Name, len(types))
			case typ != c.Type.SQL():
				return fmt.Errorf("%s: column %s is %s; want %s", place, c.Name, typ, c.Type.SQL())
			}
		}
	}
	return nil
}

// columnTypes are the columns of a Parquet file with their types in SQL.
func (d *DB) columnTypes(ctx context.Context, pattern string) (map[string]string, error) {
	rows, err := d.conn.QueryContext(ctx, "SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM read_parquet("+pattern+"))")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	types := map[string]string{}
	for rows.Next() {
		var name, typ string
		if err := rows.Scan(&name, &typ); err != nil {
			return nil, err
		}
		types[name] = typ
	}
	return types, rows.Err()
}

// firstLine is what the engine says is wrong, without its advice.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSpace(line)
}
