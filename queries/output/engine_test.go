package output_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/writer"
)

func openDuck(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// emptyRun is a run of one rank without rows.
func emptyRun(t *testing.T) queries.Run {
	t.Helper()
	dir, err := example.Write(t.TempDir(), "empty.1", "", example.Manifest(1))
	if err != nil {
		t.Fatal(err)
	}
	m, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	return queries.Run{Name: "empty.1", Dir: dir, Manifest: m}
}

// engineRows are the rows of a query on the engine of queries.
func engineRows(t *testing.T, text string) queries.Rows {
	t.Helper()
	ctx := context.Background()
	db, err := queries.Open(ctx, []queries.Run{emptyRun(t)}, queries.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	kept, err := queries.Keep(rows)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// The row of a run names the run in the name of its folder alone.
func TestRunsRow(t *testing.T) {
	data, err := output.RunsRow(context.Background(), emptyRun(t))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "row.parquet")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := duck(t, "SELECT concat_ws(',', count(*), max(ranks), max(ended)) FROM read_parquet('"+file+"')"); got != "1,1,finalized" {
		t.Errorf("the row is %s", got)
	}
	if got := duck(t, "SELECT count(*) FROM (DESCRIBE FROM read_parquet('"+file+"')) WHERE column_name = 'run'"); got != "0" {
		t.Error("the row has a column run")
	}
}
