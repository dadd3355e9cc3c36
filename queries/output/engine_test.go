package output_test

import (
	"context"
	"database/sql"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
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

// engineRows are the rows of a query on the engine of queries.
func engineRows(t *testing.T, text string) queries.Rows {
	t.Helper()
	dir, err := example.Write(t.TempDir(), "empty.1", "", example.Manifest(1))
	if err != nil {
		t.Fatal(err)
	}
	m, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	db, err := queries.Open(ctx, []queries.Run{{Name: "empty.1", Dir: dir, Manifest: m}}, queries.Options{})
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
