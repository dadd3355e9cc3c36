package queries_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// newRun writes a run of text into a store of its own.
func newRun(t *testing.T, name, text string, m schema.Manifest) queries.Run {
	t.Helper()
	return newRunIn(t, t.TempDir(), name, text, m)
}

func newRunIn(t *testing.T, store, name, text string, m schema.Manifest) queries.Run {
	t.Helper()
	dir, err := example.Write(store, name, text, m)
	if err != nil {
		t.Fatal(err)
	}
	read, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	return queries.Run{Name: name, Dir: dir, Manifest: read}
}

func open(t *testing.T, runs ...queries.Run) *queries.DB {
	t.Helper()
	db, err := queries.Open(context.Background(), runs, queries.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func named(t *testing.T, name string) *queries.Query {
	t.Helper()
	all, err := queries.Named([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// text returns rows as CSV without the line of names.
func text(t *testing.T, rows queries.Rows, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var b strings.Builder
	if err := output.Write(&b, "csv", rows); err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(b.String(), "\n")
	return body
}

func ask(t *testing.T, run queries.Run, name string, args ...string) string {
	t.Helper()
	return askOver(t, []queries.Run{run}, name, args...)
}

// askOver asks a query over several runs at once.
func askOver(t *testing.T, runs []queries.Run, name string, args ...string) string {
	t.Helper()
	return askOpen(t, open(t, runs...), name, args...)
}

// askOpen asks a query of runs that are open: a test with many questions saves the opening.
func askOpen(t *testing.T, db *queries.DB, name string, args ...string) string {
	t.Helper()
	m := map[string]string{}
	for i := 0; i < len(args); i += 2 {
		m[args[i]] = args[i+1]
	}
	rows, err := db.Ask(context.Background(), named(t, name), m)
	return text(t, rows, err)
}

// lines returns expected rows written by hand, without the indentation of the test.
func lines(s string) string {
	var b strings.Builder
	if strings.TrimSpace(s) == "" {
		return ""
	}
	for _, line := range strings.Split(strings.TrimSpace(s), "\n") {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if diff := cmp.Diff(lines(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// world is MPI_COMM_WORLD of five ranks.
const world = `
comms comm comm_rank world_rank kind
0 0 0 world
0 1 1 world
0 2 2 world
0 3 3 world
0 4 4 world
`

// pingpong has 3 messages 3->1 with tag 9, one 1->3 with tag 8, and one from 3 to itself.
const pingpong = `
messages src dst comm tag bytes send_seq recv_post_seq recv_done_seq
1 3 0 8 17 4 8 8
3 1 0 9 4097 5 1 1
3 1 0 9 4097 6 2 2
3 1 0 9 1000 7 3 3
3 3 0 7 0 9 10 11
`

func TestDensityOfPointToPoint(t *testing.T) {
	run := newRun(t, "pp.5", world+pingpong, example.Manifest(5))
	same(t, "all", ask(t, run, "density"), `
		1,3,1,17
		3,1,3,9194
		3,3,1,0`)
	same(t, "where", ask(t, run, "density", "where", "tag = 9 AND bytes > 1024"), `
		3,1,2,8194`)
	same(t, "or does not leak", ask(t, run, "density", "where", "tag = 8 OR bytes = 1000", "collectives", "none"), `
		1,3,1,17
		3,1,1,1000`)
	same(t, "a comment", ask(t, run, "density", "where", "tag = 8 -- acknowledgements"), `
		1,3,1,17`)
	same(t, "most bytes first", ask(t, run, "data-density"), `
		3,1,9194,3
		1,3,17,1
		3,3,0,1`)
}

func TestBadConditions(t *testing.T) {
	run := newRun(t, "pp.5", world+pingpong, example.Manifest(5))
	db := open(t, run)
	for cond, want := range map[string]string{
		"colour = 3":              "columns of messages: src, dst, epoch, comm, tag, bytes",
		"tag = 9) OR (1 = 1":      "a parenthesis closes that was not opened",
		"tag = 9; DROP VIEW runs": "without a semicolon",
		"tag = 'x":                "a quote is not closed",
		"(tag = 9":                "a parenthesis is not closed",
		"":                        "a condition is wanted",
		"tag = 9 /* ) */":         "no /* comment */",
		"tag = $$)$$":             "no $ outside quotes",
		"tag = ":                  "syntax error",
		"sum(bytes) > 3":          "columns of messages",
		"tag = ?":                 "a parameter (? or $1) has no value here",
		// found when it is planned: the line of the query is shown
		"bytes > 'x'":                     "WHERE (bytes > 'x')",
		"CAST(tag || 'z' AS INTEGER) = 3": "WHERE (CAST(tag || 'z' AS INTEGER) = 3)", // found when it runs
	} {
		_, err := db.Ask(context.Background(), named(t, "density"), map[string]string{"where": cond})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("where %q: error %v; want one with %q", cond, err, want)
		}
	}
}

// TestEveryQueryKeepsItsHeader compares the columns that the engine reports for each query with its header, for every
// choice of its parameters, and runs it on runs without rows, of every time origin that it accepts.
func TestEveryQueryKeepsItsHeader(t *testing.T) {
	all, err := queries.All()
	if err != nil {
		t.Fatal(err)
	}
	empty := map[string]*queries.DB{}
	for _, origin := range []string{"measured", "virtual", "simulated"} {
		m := example.Manifest(1)
		m.TimeOrigin = origin
		empty[origin] = open(t, newRun(t, "empty.1", "", m))
	}
	for _, q := range all {
		accepted := q.Origins
		if accepted == nil {
			accepted = []string{"measured"}
		}
		for _, args := range everyChoice(t, q) {
			for _, origin := range accepted {
				keepsItsHeader(t, empty[origin], q, args)
			}
		}
	}
}

func keepsItsHeader(t *testing.T, db *queries.DB, q *queries.Query, args map[string]string) {
	sql, err := db.Text(context.Background(), q, args)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query(context.Background(), "DESCRIBE "+sql)
	if err != nil {
		t.Fatalf("%s %v: %v", q.Name, args, err)
	}
	var got, want []string
	for rows.Next() {
		got = append(got, fmt.Sprint(rows.Row()[0], " ", rows.Row()[1]))
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	for _, c := range q.Columns {
		want = append(want, c.Name+" "+c.Type)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s %v: header and query differ (-header +query):\n%s", q.Name, args, diff)
	}
	rows, err = db.Ask(context.Background(), q, args)
	if out := text(t, rows, err); out != "" {
		t.Errorf("%s %v of an empty run:\n%s", q.Name, args, out)
	}
}

// everyChoice returns the defaults, and each other choice and bound of each parameter but sums, which runs of few
// calls have not.
func everyChoice(t *testing.T, q *queries.Query) []map[string]string {
	sets := []map[string]string{{}}
	for _, p := range q.Params {
		values := p.Choices
		switch p.Kind {
		case "integer":
			values = []string{fmt.Sprint(p.Low), fmt.Sprint(p.High)}
		case "number":
			values = []string{fmt.Sprint(p.Least), fmt.Sprint(p.Most)}
		case "text":
			values = []string{"it's"}
		case "file":
			values = []string{fileOf(t, p)}
		}
		for _, v := range values {
			if v != p.Default && (p.Name != "read" || v != "sums") {
				sets = append(sets, map[string]string{p.Name: v})
			}
		}
	}
	return sets
}

// fileOf writes a file with one row for a parameter.
func fileOf(t *testing.T, p queries.Param) string {
	t.Helper()
	var names, ones []string
	for _, c := range p.Columns {
		names, ones = append(names, c.Name), append(ones, "1")
	}
	name := filepath.Join(t.TempDir(), p.Name+".csv")
	if err := os.WriteFile(name, []byte(strings.Join(names, ",")+"\n"+strings.Join(ones, ",")+"\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	return name
}
