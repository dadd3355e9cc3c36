package queries

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

func TestUnordered(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT a\nFROM t\nORDER BY a DESC, t.b\n":        "SELECT a\nFROM t",
		"SELECT a\nFROM t\nORDER BY a LIMIT 3":            "SELECT a\nFROM t\nORDER BY a LIMIT 3",
		"SELECT a\nFROM (SELECT a FROM t\nORDER BY a) AS": "SELECT a\nFROM (SELECT a FROM t\nORDER BY a) AS",
		"SELECT a FROM t ORDER BY a":                      "SELECT a FROM t ORDER BY a",
	} {
		if got := Unordered(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range all {
		text, err := q.SQL(nil)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(q.Name, "timeline") && Unordered(text) == strings.TrimSpace(text) {
			t.Errorf("query %s keeps its order", q.Name)
		}
	}
}

// TestViewsAfterAnEndedQuestion: a question that was ended after it made a view does not stop the next one.
func TestViewsAfterAnEndedQuestion(t *testing.T) {
	db := openCaptured(t, "cg.A.4")
	for i := range db.views.list {
		if v := &db.views.list[i]; v.name() == "messages" {
			if err := exec(context.Background(), db.conn, v.text); err != nil {
				t.Fatal(err)
			}
		}
	}
	rows, err := db.Query(context.Background(), "SELECT COUNT(*) AS n FROM messages")
	if err != nil {
		t.Fatal(err)
	}
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
}

// Without room for temporary files an engine answers what takes none.
func TestNoTemporaryFolder(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	db := openCaptured(t, "pingpong.2")
	if db.temp != noFolder {
		t.Errorf("temporary files are in %s", db.temp)
	}
	rows, err := db.Query(context.Background(), "SELECT count(*) FROM events")
	if err != nil {
		t.Fatal(err)
	}
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
}

// openCaptured starts an engine on a committed run.
func openCaptured(t *testing.T, name string) *DB {
	t.Helper()
	dir := filepath.Join("..", "testdata", "runs", name)
	m, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	db, err := Open(context.Background(), []Run{{Name: name, Dir: dir, Manifest: m}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// A table of a server that an older commq made lacks a column, the table runs too.
func TestMissingColumnOfTheServersTables(t *testing.T) {
	have := map[string]bool{"runs.location": true, "runs.manifest": true}
	for _, table := range schema.Tables() {
		for _, c := range table.Columns {
			have[table.Name+"."+c.Name] = true
		}
	}
	for _, c := range runColumns(Run{Manifest: &schema.Manifest{}}) {
		have["runs."+c.name] = true
	}
	for _, lacking := range []string{"", "events.start_ns", "runs.overlapping_calls", "runs.manifest", "runs.run"} {
		delete(have, lacking)
		table, column := missingColumn(have)
		if got := strings.Trim(table+"."+column, "."); got != lacking {
			t.Errorf("%q is missing, found %q", lacking, got)
		}
		have[lacking] = true
	}
}

// A query in WITH must not have the name of a table of the runs, which stands in the same list.
func TestNamesInWithOnTrino(t *testing.T) {
	r := &remote{views: []remoteView{{name: "messages"}, {name: "runs"}}}
	for text, hidden := range map[string]string{
		"WITH messages AS (SELECT * FROM messages) SELECT count(*) FROM messages":        "messages",
		"WITH a AS (SELECT 1), \"Runs\" (x) AS\n(SELECT 2) SELECT * FROM a":              "runs",
		"EXPLAIN WITH RECURSIVE messages(a) AS (SELECT 1) SELECT * FROM messages":        "messages",
		"WITH long_messages AS (SELECT * FROM messages) SELECT * FROM long_messages":     "",
		"WITH a AS (WITH messages AS (SELECT 1) SELECT * FROM messages) SELECT * FROM a": "",
		"WITH a AS (SELECT ')' AS x) -- messages AS (\nSELECT ' runs AS (' FROM a":       "",
		"SELECT * FROM (WITH messages AS (SELECT 1) SELECT * FROM messages)":             "",
	} {
		err := r.checkReadOnly(text)
		if hidden == "" && err != nil || hidden != "" && (err == nil || !strings.Contains(err.Error(),
			"WITH "+hidden+": this is the name of a table of the runs; give your query another name")) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
