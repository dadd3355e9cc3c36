package main

import (
	"database/sql"
	"encoding/csv"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
)

// shell runs statements in a fresh DuckDB, as its shell would, and returns the last one's rows as CSV.
func shell(t *testing.T, statements string) string {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(statements)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	out := csv.NewWriter(&b)
	write := func(record []string) {
		if err := out.Write(record); err != nil {
			t.Fatal(err)
		}
	}
	write(names)
	record, targets := make([]string, len(names)), make([]any, len(names))
	for i := range record {
		targets[i] = &record[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		write(record)
	}
	out.Flush()
	return b.String()
}
