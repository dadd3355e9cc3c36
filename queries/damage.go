package queries

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/internal/gone"
	"github.com/commq/commq/schema"
)

// checkTypes compares the types of a view's columns with the schema's: a foreign Parquet file can have columns of the
// same names and other types.
func checkTypes(ctx context.Context, conn *sql.Conn, t *schema.Table) error {
	rows, err := conn.QueryContext(ctx, "SELECT name, type FROM pragma_table_info("+quote(t.Name)+")")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var column, typ string
		if err := rows.Scan(&column, &typ); err != nil {
			return err
		}
		if c, _ := t.Column(column); c != nil && c.Type.SQL() != typ {
			return fmt.Errorf("column %s of table %s is %s; want %s", column, t.Name, typ, c.Type.SQL())
		}
	}
	return rows.Err()
}

// damagedRe matches what the engine reports about a Parquet file that it cannot read.
var damagedRe = regexp.MustCompile(`(?i)no magic bytes|too small to be a parquet|TProtocolException|(ZSTD|snappy|LZ4|gzip).{0,20}decompress|corrupt|invalid footer|parquet (file|footer|metadata) `)

// damage turns an error of the engine about a run's files into one that names the file, what was found there, and
// what to do. If the columns of all files are right, it returns the first line of the engine's error.
func damage(ctx context.Context, conn *sql.Conn, runs []Run, err error) error {
	var dirs []string
	for _, r := range runs {
		dirs = append(dirs, r.Dir)
		dir, absErr := filepath.Abs(r.Dir)
		if absErr != nil {
			return errors.Join(err, absErr)
		}
		for _, t := range schema.Tables() {
			if found := wrongFile(ctx, conn, r, dir, t); gone.Is(found) {
				return found
			} else if found != nil {
				return fmt.Errorf("%w; restore the file or capture the run again; commq runs check %s says more",
					found, shellquote.Join(r.Dir))
			}
		}
	}
	return fmt.Errorf("%s; a file of the run is damaged or gone: commq runs check %s says more", firstLine(err),
		shellquote.Join(dirs...))
}

// wrongFile describes what is wrong with the first file of a table that does not have its columns.
func wrongFile(ctx context.Context, conn *sql.Conn, r Run, dir string, t *schema.Table) error {
	files, err := tableFiles(r, dir, t)
	if err != nil {
		return err
	}
	for i, p := range patterns(files) {
		place := fmt.Sprintf("run %q: %s", r.Name, tableInfo(r.Manifest, t.Name).Files[i].Path)
		types, err := columnTypes(ctx, conn, p)
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

// columnTypes returns the columns of a Parquet file with their types in SQL.
func columnTypes(ctx context.Context, conn *sql.Conn, pattern string) (map[string]string, error) {
	rows, err := conn.QueryContext(ctx, "SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM "+
		"read_parquet("+pattern+"))")
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

// firstLine returns the engine's description of an error, without its advice.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSpace(line)
}
