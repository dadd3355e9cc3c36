package queries_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
)

// ownHeader is a header of ten lines, so that the SELECT begins at line 11.
const ownHeader = `-- summary: Pairs of ranks with more than so many messages.
-- source: what we look at on Mondays
-- needs: messages
-- param least integer 1..99 = 2: How many.
-- param where condition messages = TRUE: Which messages.
-- column src INTEGER -: Who sends.
-- column messages BIGINT 1: How many.
-- order: src
-- cost: One column of messages.

`

const ownSQL = `SELECT src, COUNT(*) AS messages
FROM messages
WHERE {{where}}
GROUP BY src
HAVING COUNT(*) >= {{least}}
ORDER BY src
`

// ownFolder writes files into a folder. The arguments are names and texts in turn.
func ownFolder(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		name := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func readOwn(t *testing.T, dir string) ([]*queries.Query, []queries.Unusable) {
	t.Helper()
	return queries.Own(dir, queries.Names())
}

// three messages of rank 3 and one of rank 1.
const few = `
messages src dst tag bytes send_seq
1 3 9 4097 0
3 1 9 17 0
3 1 9 17 1
3 2 5 17 2
`

func TestOwnQueriesAreAsked(t *testing.T) {
	dir := ownFolder(t, "busy-pairs.sql", ownHeader+ownSQL, "windows.sql",
		strings.ReplaceAll(ownHeader+ownSQL, "\n", "\r\n"),
		"folded.sql", strings.Replace(ownHeader, "-- param where",
			"-- param collectives choice none|rooted|logical|tree = none: How.\n-- param where", 1)+
			"WITH {{include traffic}},\n{{include big_ones}}\nSELECT src, CAST(SUM(messages) AS BIGINT) AS messages FROM traffic WHERE src >= 0 GROUP BY src HAVING COUNT(*) >= 1 AND {{least}} > 0 ORDER BY src\n",
		"include/big_ones.sql", "-- what is mine\nbig_ones AS (SELECT 3 AS n)\n", "notes.txt", "nothing",
		".hidden.sql", "nothing")
	own, unusable := readOwn(t, dir)
	if len(own) != 3 || len(unusable) != 0 || own[0].File != filepath.Join(dir, "busy-pairs.sql") {
		t.Fatalf("%d queries, %+v", len(own), unusable)
	}
	run := newRun(t, "few.4", few, example.Manifest(4))
	db := open(t, run)
	for i, want := range []string{"3,3\n", "1,1\n3,3\n", "3,3\n"} {
		rows, err := db.Ask(context.Background(), own[i], nil)
		if got := text(t, rows, err); got != want {
			t.Errorf("%s: %q; want %q", own[i].Name, got, want)
		}
	}
	rows, err := db.Ask(context.Background(), own[0], map[string]string{"least": "1", "where": "tag = 9"})
	if got, want := text(t, rows, err), "1,1\n3,2\n"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}

// TestBlocksThatNoQueryHas: a block of an included file is for a value that one of the queries has.
func TestBlocksThatNoQueryHas(t *testing.T) {
	query := func(values string) string {
		return strings.Replace(ownHeader, "-- param where", "-- param by choice "+values+": How.\n-- param where", 1) +
			"WITH {{include shared}},\n{{include rank_groups}}\n" + strings.Replace(ownSQL, "GROUP", "AND {{by}} <> '' GROUP", 1)
	}
	const shared = "shared AS (\n{{only by host}}\nSELECT 1 AS n\n{{end}}\n{{unless by hots}}\nSELECT 2 AS n\n{{end}}\n)"
	dir := ownFolder(t, "first.sql", query("host|rank = rank"), "second.sql", query("hots|rank = rank"),
		"include/shared.sql", shared)
	if own, unusable := readOwn(t, dir); len(own) != 2 || len(unusable) != 0 {
		t.Errorf("%d queries, %+v", len(own), unusable)
	}
	dir = ownFolder(t, "busy.sql", ownHeader+ownSQL, "first.sql", query("host|rank = rank"), "include/shared.sql", shared)
	own, unusable := readOwn(t, dir)
	if len(own) != 1 || len(unusable) != 1 || unusable[0].Name != "first" {
		t.Fatalf("%d queries, %+v", len(own), unusable)
	}
	want := filepath.Join(dir, "first.sql") + ": the block {{unless by hots}} has no effect: no query that includes the " +
		"file has a parameter of kind choice with that name and value (" + filepath.Join(dir, "include", "shared.sql") +
		", line 5)"
	if got := unusable[0].Err.Error(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestInvalidOwnQueriesAreReported(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"density.sql", ownHeader + ownSQL, "density.sql: commq has a query of its own called density, which this one does not replace"},
		{"Busy.sql", ownHeader + ownSQL, "Busy.sql: a query is called as its file; want a name of lower-case letters"},
		{"busy.sql", "SELECT 1", "busy.sql: the header has no \"-- summary: text\""},
		{"busy.sql", strings.Replace(ownHeader, "messages BIGINT 1", "messages BIGINT miles", 1) + ownSQL,
			"busy.sql: line 7: column messages BIGINT miles"},
		{"busy.sql", strings.Replace(ownHeader, "param least", "param run", 1) + ownSQL,
			"busy.sql: line 4: param run: every query has a flag of that name"},
		{"busy.sql", ownHeader + ownSQL + "LIMIT {{most}}", "busy.sql: line 17: the SQL uses {{most}}"},
		{"busy.sql", strings.Replace(ownHeader, "-- order", "-- plot: bars src missing\n-- order", 1) + ownSQL,
			`busy.sql: line 8: plot names "missing"`},
		{"busy.sql", ownHeader + "WITH {{include nothing}}\n" + ownSQL,
			`busy.sql: line 11: include "nothing": there is no `},
		{"busy.sql", ownHeader + "WITH {{include ../../etc/passwd}}\n" + ownSQL,
			`busy.sql: line 11: include "../../etc/passwd": there is no `},
		{"busy.sql", ownHeader + "SELECT 1;\n" + ownSQL, "busy.sql: line 11: the SQL has a semicolon"},
		{"busy.sql", strings.Repeat("-", 2<<20), "2097152 bytes; a query has at most"},
		{"busy.sql/x", "", "busy.sql: not a file"},
	} {
		own, unusable := readOwn(t, ownFolder(t, c.file, c.text))
		if len(own) != 0 || len(unusable) != 1 || !strings.Contains(unusable[0].Err.Error(), c.want) {
			t.Errorf("%.200q: %d queries, %+v; want none and %q", c.text, len(own), unusable, c.want)
		}
	}
	own, unusable := readOwn(t, ownFolder(t, "busy.sql", ownHeader+"WITH {{include traffic}}\n"+ownSQL,
		"include/traffic.sql", "x AS (SELECT 1)"))
	if len(own) != 0 || len(unusable) != 1 || !strings.Contains(unusable[0].Err.Error(), "commq has one too; give ") {
		t.Errorf("%d queries, %+v", len(own), unusable)
	}
	if own, unusable := readOwn(t, filepath.Join(t.TempDir(), "nowhere")); own != nil || unusable != nil {
		t.Errorf("of no folder: %v, %v", own, unusable)
	}
	file := filepath.Join(ownFolder(t, "folder", ""), "folder")
	if own, unusable := readOwn(t, file); own != nil || len(unusable) != 1 ||
		!strings.Contains(unusable[0].Err.Error(), "the folder of your own queries") {
		t.Errorf("of a file: %v, %v", own, unusable)
	}
}

// TestErrorsOfOwnSQLNameFileAndLine: the engine's errors name lines of the user's file, also if text was inserted
// before them.
func TestErrorsOfOwnSQLNameFileAndLine(t *testing.T) {
	include := "-- of three lines\nfirst AS (SELECT 3 AS n),\nsecond AS (SELECT tag FORM messages)\n"
	for _, c := range []struct{ sql, want string }{
		{strings.Replace(ownSQL, "FROM messages", "FORM messages", 1), "busy.sql, line 12: "},
		{strings.Replace(ownSQL, "SELECT src", "SELECT source", 1), "busy.sql, line 11: "},
		{"WITH {{include mine}}\n" + ownSQL, filepath.Join("include", "mine.sql") + ", line 3: "},
		{"WITH {{include fine}}\n" + strings.Replace(ownSQL, "ORDER BY src", "ORDER BY nothing", 1),
			"busy.sql, line 17: "},
		{strings.Replace(ownSQL, "AS messages", "AS n", 1),
			"busy.sql, line 7: column 2 of the SELECT is n BIGINT, in the header it is messages BIGINT"},
		{strings.Replace(ownSQL, "COUNT(*) AS", "SUM(bytes) AS", 1),
			"busy.sql, line 7: column 2 of the SELECT is messages HUGEINT"},
		{strings.Replace(ownSQL, ", COUNT(*) AS messages", "", 1),
			"busy.sql, line 7: the SELECT has 1 columns and the header 2: there is no messages"},
		{strings.Replace(ownSQL, "SELECT src", "SELECT src, 3 AS more", 1), "column 2 of the SELECT is more INTEGER"},
		{strings.Replace(ownSQL, "AS messages", "AS messages, 3 AS more", 1),
			"the SELECT has 3 columns and the header 2: describe more there too"},
		{"CREATE TABLE t AS " + ownSQL, "only SELECT"},
	} {
		own, unusable := readOwn(t, ownFolder(t, "busy.sql", ownHeader+c.sql, "include/mine.sql", include,
			"include/fine.sql", strings.Replace(include, "FORM", "FROM", 1)))
		if len(own) != 1 {
			t.Errorf("%s: %+v", c.sql, unusable)
			continue
		}
		db := open(t, newRun(t, "few.4", few, example.Manifest(4)))
		rows, err := db.Ask(context.Background(), own[0], map[string]string{"where": "tag = 9 -- mine\n\n"})
		if err == nil {
			rows.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "query busy of run few.4: ") {
			t.Errorf("%s: error %v; want %q", c.sql, err, c.want)
		}
	}
}
