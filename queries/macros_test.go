package queries_test

import (
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	_ "github.com/duckdb/duckdb-go/v2"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/schematest"
	"github.com/commq/commq/writer"
)

// macros returns the text of commq.sql with a user's own queries.
func macros(t *testing.T, own ...*queries.Query) string {
	t.Helper()
	all, err := queries.All()
	if err != nil {
		t.Fatal(err)
	}
	text, err := queries.Macros(append(all, own...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// plainDuckDB returns a DuckDB that has loaded commq.sql and nothing else of commq.
func plainDuckDB(t *testing.T, store string, own ...*queries.Query) *sql.Conn {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(conn.Close(), db.Close()) })
	for _, s := range []string{"SET threads = 1", "SET VARIABLE commq_store = " + literal(store), macros(t, own...)} {
		if _, err := conn.ExecContext(context.Background(), s); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}

// literal returns a text as an SQL literal.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// duckRows are rows of a plain DuckDB.
type duckRows struct {
	*sql.Rows
	columns []queries.Column
	values  []any
	err     error
}

func (r *duckRows) Columns() []queries.Column { return r.columns }
func (r *duckRows) Row() []any                { return r.values }
func (r *duckRows) Err() error                { return errors.Join(r.err, r.Rows.Err()) }
func (r *duckRows) Next() bool {
	if !r.Rows.Next() {
		return false
	}
	targets := make([]any, len(r.values))
	for i := range r.values {
		targets[i] = &r.values[i]
	}
	r.err = r.Scan(targets...)
	return r.err == nil
}

// plainly returns the answer of a plain DuckDB as CSV with the line of names.
func plainly(conn *sql.Conn, statement string) (string, error) {
	rows, err := conn.QueryContext(context.Background(), statement)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return "", err
	}
	r := &duckRows{Rows: rows, values: make([]any, len(types))}
	for _, c := range types {
		r.columns = append(r.columns, queries.Column{Name: c.Name(), Type: c.DatabaseTypeName()})
	}
	var b strings.Builder
	err = output.Write(&b, "csv", r)
	return b.String(), err
}

// byCommq returns commq's answer as CSV with the line of names.
func byCommq(db *queries.DB, q *queries.Query, args map[string]string) (string, error) {
	rows, err := db.Ask(context.Background(), q, args)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var b strings.Builder
	err = output.Write(&b, "csv", rows)
	return b.String(), err
}

// sameRows compares two answers in CSV: they must have the same rows in the same order. DOUBLEs may differ in the
// last digits, which depend on the order in which an engine adds.
func sameRows(t *testing.T, what string, q *queries.Query, want, got string) {
	t.Helper()
	records := func(text string) [][]string {
		records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v in\n%s", what, err, text)
		}
		return records
	}
	type row map[string]any
	values := func(records [][]string) []row {
		var rows []row
		for _, record := range records {
			r := row{}
			for i, c := range q.Columns {
				r[c.Name] = record[i]
				if x, err := strconv.ParseFloat(record[i], 64); err == nil && c.Type == "DOUBLE" {
					r[c.Name] = x
				}
			}
			rows = append(rows, r)
		}
		return rows
	}
	if diff := cmp.Diff(values(records(want)), values(records(got)), cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("%s (-commq +macro):\n%s", what, diff)
	}
}

// macroCall returns the call of a query's macro as a user types it in the duckdb shell.
func macroCall(q *queries.Query, run string, args map[string]string) string {
	call := strings.ReplaceAll(q.Name, "-", "_") + "(" + run
	for _, p := range q.Params {
		value, given := args[p.Name]
		if !given {
			continue
		}
		name := strings.ReplaceAll(p.Name, "-", "_")
		if name == "where" {
			name = "condition"
		}
		if p.Kind != "integer" && p.Kind != "number" {
			value = literal(value)
		}
		call += ", " + name + " := " + value
	}
	return "FROM " + call + ")"
}

// variants returns the sets of arguments with which a query's macro is tested: the defaults, each other choice and
// bound, conditions, and combinations of locality's parameters.
func variants(t *testing.T, q *queries.Query) []map[string]string {
	sets := everyChoice(t, q)
	for _, p := range q.Params {
		if p.Name == "read" {
			sets = append(sets, map[string]string{p.Name: "sums"})
		}
		if p.Kind == "condition" {
			sets = append(sets, map[string]string{p.Name: "bytes > 100 AND tag IS NOT NULL OR src = 1 -- it's commented"})
		}
	}
	if q.Name == "locality" {
		file := filepath.Join(t.TempDir(), "a map's.csv")
		if err := os.WriteFile(file, []byte("node,rank\n2,0\n0,1\n1,2\n3,3\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		sets = append(sets,
			map[string]string{"topology": "torus", "dims": "2x2", "mapping": "file", "rankmap": file,
				"collectives": "tree"},
			map[string]string{"topology": "tree", "dims": "2x2x2x2", "mapping": "cyclic", "ranks-per-node": "3"})
	}
	return sets
}

// ofRun matches what commq puts before the engine's error.
var ofRun = regexp.MustCompile(`^query [a-z-]+ of (run [^:]+|\d+ runs): `)

// core returns the part of an error that both engines report.
func core(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if _, after, ok := strings.Cut(text, "refused: "); ok { // the cast that fails; the package's comment has it
		text, _, _ = strings.Cut(after, "' to INT")
	} else if strings.Contains(text, "Error: ") {
		_, text, _ = strings.Cut(text, "Error: ")
	} else if m := ofRun.FindString(text); m != "" {
		text = text[len(m):]
	}
	text, _, _ = strings.Cut(text, "\n\nLINE")
	return strings.TrimSpace(text)
}

// sameAnswers compares the answers of macros with those of commq, for several sets of arguments.
func sameAnswers(t *testing.T, conn *sql.Conn, db *queries.DB, q *queries.Query, run string, sets []map[string]string) {
	t.Helper()
	for _, args := range sets {
		want, wantErr := byCommq(db, q, args)
		call := macroCall(q, run, args)
		got, gotErr := plainly(conn, call)
		if errors.Is(wantErr, queries.ErrNoSums) {
			if strings.Count(got, "\n") != 1 || gotErr != nil {
				t.Errorf("%s: %v, and the macro has\n%s%v", call, wantErr, got, gotErr)
			}
			continue
		}
		if diff := cmp.Diff(core(wantErr), core(gotErr)); diff != "" {
			t.Errorf("%s: errors (-commq +macro):\n%s", call, diff)
		} else if wantErr == nil {
			sameRows(t, call, q, want, got)
		}
	}
}

// awkward is the name of a folder that SQL and file patterns could misinterpret.
const awkward = "it's a [st]ore, \"x\" {where}"

// heatRun returns the run of docs/QUERIES.md in a store with an awkward name.
func heatRun(t *testing.T) (store string, run queries.Run) {
	t.Helper()
	text, err := os.ReadFile("internal/gendocs/heat.3.txt")
	if err != nil {
		t.Fatal(err)
	}
	store = filepath.Join(t.TempDir(), awkward)
	return store, newRunIn(t, store, "heat.3", string(text), example.Manifest(3))
}

func TestMacrosAnswerAsQueriesDo(t *testing.T) {
	all, err := queries.All()
	if err != nil {
		t.Fatal(err)
	}
	store, run := heatRun(t)
	conn := plainDuckDB(t, store)
	db := open(t, run)
	rows := 0
	for _, q := range all {
		sameAnswers(t, conn, db, q, "'heat.3'", variants(t, q))
		path := run.Dir + "/"
		if q.OverRuns { // a pattern
			path = strings.NewReplacer("[", "[[]", "]", "[]]").Replace(path)
		}
		got, err := plainly(conn, macroCall(q, literal(path), nil))
		if err != nil {
			t.Errorf("%s of a path: %v", q.Name, err)
		}
		rows += strings.Count(got, "\n") - 1
	}
	if rows < 100 {
		t.Errorf("the macros have %d rows of heat.3 together; the comparison shows little", rows)
	}
}

// captured returns a committed run.
func captured(t *testing.T, name string) queries.Run {
	t.Helper()
	dir := filepath.Join("..", "testdata", "runs", name)
	m, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	return queries.Run{Name: name, Dir: dir, Manifest: m}
}

func TestMacrosOverSeveralRuns(t *testing.T) {
	conn := plainDuckDB(t, "../testdata/runs")
	scaling := named(t, "scaling")
	mg := []queries.Run{captured(t, "mg.W.2"), captured(t, "mg.W.4"), captured(t, "mg.W.8"), captured(t, "mg.W.16"),
		captured(t, "mg.W.32")}
	db := open(t, mg...)
	sameAnswers(t, conn, db, scaling, "'mg.W.*'", everyChoice(t, scaling))
	sameAnswers(t, conn, db, scaling, "'../testdata/runs/mg.W.*'", []map[string]string{nil})
	sameAnswers(t, conn, open(t, mg[0], captured(t, "sp.W.4")), scaling, "['mg.W.2', '../testdata/runs/sp.W.4/']",
		[]map[string]string{nil})
}

// The tables and runs equal those of commq sql with the same names.
func TestTableMacros(t *testing.T) {
	conn := plainDuckDB(t, "../testdata/runs")
	runs := []queries.Run{captured(t, "cg.A.4"), captured(t, "cg.A.16")}
	db := open(t, runs...)
	for _, table := range schema.Tables() {
		macro := table.Name
		if table.Name == "callsites" || table.Name == "datatypes" { // queries have these names
			macro += "_table"
		}
		order := " ORDER BY run, " + strings.Join(table.Key, ", ")
		rows, err := db.Query(context.Background(), "SELECT * FROM "+table.Name+order)
		want := text(t, rows, err)
		got, err := plainly(conn, "SELECT * FROM "+macro+"('cg.A.*')"+order)
		if err != nil {
			t.Fatal(err)
		}
		if _, got, _ = strings.Cut(got, "\n"); got != want {
			t.Errorf("%s: the rows differ: %d bytes by commq, %d by the macro", table.Name, len(want), len(got))
		}
	}
	rows, err := db.Query(context.Background(), "SELECT * FROM runs")
	want := text(t, rows, err)
	for _, store := range []string{"", "'../testdata/runs'", "'../testdata/runs/'"} {
		got, err := plainly(conn, "FROM runs("+store+") WHERE run LIKE 'cg.A%'")
		if err != nil {
			t.Fatal(err)
		}
		_, got, _ = strings.Cut(got, "\n")
		same(t, "runs("+store+")", got, want)
	}
}

// changedCopy returns a copy of a run, beside it, whose manifest is changed: it need not agree with the rows.
func changedCopy(t *testing.T, run queries.Run, name string, change func(*schema.Manifest)) queries.Run {
	t.Helper()
	dir := filepath.Join(filepath.Dir(run.Dir), name)
	if err := os.CopyFS(dir, os.DirFS(run.Dir)); err != nil {
		t.Fatal(err)
	}
	m, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	change(m)
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "manifest.json")
	if err := errors.Join(os.WriteFile(file, text, 0o644), schematest.SealManifest(file)); err != nil {
		t.Fatal(err)
	}
	if read, err := writer.ReadManifest(dir); err == nil {
		m = read
	}
	return queries.Run{Name: name, Dir: dir, Manifest: m}
}

func TestMacrosRefuseLikeQueries(t *testing.T) {
	all, err := queries.All()
	if err != nil {
		t.Fatal(err)
	}
	store, heat := heatRun(t)
	db, size := open(t, heat), map[*queries.Query]int{}
	for _, q := range all {
		text, err := db.Text(context.Background(), q, nil)
		if err != nil {
			t.Fatal(err)
		}
		size[q] = len(text)
	}
	slices.SortStableFunc(all, func(a, b *queries.Query) int { return size[a] - size[b] })
	conn := plainDuckDB(t, store)
	for _, c := range []struct {
		name    string
		refused bool // by some query
		change  func(*schema.Manifest)
	}{
		{"untimed", true, func(m *schema.Manifest) { m.TimeOrigin, m.EndNs = "untimed", 0 }},
		{"virtual", true, func(m *schema.Manifest) { m.TimeOrigin = "virtual" }},
		{"simulated", false, func(m *schema.Manifest) { m.TimeOrigin = "simulated" }},
		{"no-hash", true, func(m *schema.Manifest) { m.Hash = "none" }},
		{"no-callsites", true, func(m *schema.Manifest) { m.Callsites = false }},
		{"messages", true, func(m *schema.Manifest) { m.Record = "messages" }},
		{"collectives", true, func(m *schema.Manifest) { m.Record, m.Counts.Messages = "collectives", 8 }},
		{"poor", true, func(m *schema.Manifest) {
			m.TimeOrigin, m.EndNs, m.Hash, m.Callsites, m.Record = "untimed", 0, "none", false, "messages"
		}},
		{"imported", true, func(m *schema.Manifest) {
			m.Origin.Trace = &schema.Trace{Format: "otf2"}
			m.ComputeClock, m.Hash, m.Callsites, m.Record = "none", "none", false, "messages"
		}},
		{"few-tables", true, func(m *schema.Manifest) { m.Tables = m.Tables[3:7] }},
		{"sends-out", true, func(m *schema.Manifest) { m.Filters = []string{"pcontrol", "-call:MPI_I*"} }},
		{"sends-not-in", true, func(m *schema.Manifest) { m.Filters = []string{"call:MPI_*send", "call:MPI_Allreduce"} }},
		{"sends-by-class", true, func(m *schema.Manifest) { m.Filters = []string{"call:MPI_[^I]*"} }},
		{"all-by-class", false, func(m *schema.Manifest) { m.Filters = []string{"call:MPI_[A-I]*", "call:MPI_[^A-I]*", "call:MPIX_*"} }},
		{"receives-out", false, func(m *schema.Manifest) { m.Filters = []string{"-call:MPI_Recv", "pcontrol"} }},
	} {
		run := changedCopy(t, heat, c.name, c.change)
		refused := false
		asked := map[string]bool{}
		for _, q := range all { // of those with the same needs the one that is planned fastest
			needs := fmt.Sprint(q.Needs, q.Origins)
			if asked[needs] {
				continue
			}
			asked[needs] = true
			err := q.Check(run)
			refused = refused || err != nil
			_, gotErr := plainly(conn, macroCall(q, literal(c.name), nil)+" LIMIT 1")
			if diff := cmp.Diff(core(err), core(gotErr)); diff != "" {
				t.Errorf("%s of %s (-commq +macro):\n%s", q.Name, c.name, diff)
			}
		}
		if refused != c.refused {
			t.Errorf("%s: some query refuses it: %v, want %v", c.name, refused, c.refused)
		}
	}
}

// fails asks a plain DuckDB a statement that must fail, and compares the error.
func fails(t *testing.T, conn *sql.Conn, statement, want string) {
	t.Helper()
	got, err := plainly(conn, statement)
	if err == nil {
		t.Errorf("%s: no error, but\n%s", statement, got)
	} else if !strings.Contains(core(err), want) {
		t.Errorf("%s: error %q, want one with %q", statement, core(err), want)
	}
}

func TestMacrosRefuseDamagedRuns(t *testing.T) {
	store, heat := heatRun(t)
	conn := plainDuckDB(t, store)
	changedCopy(t, heat, "old", func(m *schema.Manifest) { m.SchemaVersion = 1 })
	fails(t, conn, "FROM density('old')", `query density: run "old" has schema version 1, this commq.sql reads 2; take the commq.sql of the commq that wrote it`)
	fails(t, conn, "FROM messages('old')", `table messages: run "old" has schema version 1`)

	changedCopy(t, heat, "listed", func(m *schema.Manifest) {
		m.Tables[0].Files = append(m.Tables[0].Files, schema.FileInfo{Path: "events/0001.parquet"})
	})
	fails(t, conn, "FROM tags('listed')", `query tags: run "listed": table events: there is no events/0001.parquet; the run is damaged, see commq runs check`)

	extra := changedCopy(t, heat, "extra", func(*schema.Manifest) {}).Dir
	if err := os.Link(filepath.Join(extra, "messages/0000.parquet"),
		filepath.Join(extra, "messages/0001.parquet")); err != nil {
		t.Fatal(err)
	}
	fails(t, conn, "FROM density('extra')", `run "extra": its manifest does not name the file messages/0001.parquet; see commq runs check`)

	lacks := changedCopy(t, heat, "lacks", func(m *schema.Manifest) { m.Tables = m.Tables[:7] }).Dir
	for _, missing := range []struct{ file, query string }{{"profile", "calls"}, {"waits", "late_senders"},
		{"repeats", "duplicates"}, {"collective_waits", "collective_wait"},
		{"collective_calls", "collectives"}} {
		if err := os.RemoveAll(filepath.Join(lacks, missing.file)); err != nil {
			t.Fatal(err)
		}
		fails(t, conn, "FROM "+missing.query+"('lacks')", ": it is missing; commq runs profile makes it;")
	}

	bare := changedCopy(t, heat, "bare", func(*schema.Manifest) {}).Dir
	if err := os.Remove(filepath.Join(bare, "manifest.json")); err != nil {
		t.Fatal(err)
	}
	fails(t, conn, "FROM density('bare')", `"bare" is not a run: it has no manifest.json`)
	fails(t, conn, "FROM ranks(['heat.3', 'heat.*'])",
		`table ranks: two runs are called "heat.3"; each may be given once`)
}

func TestMacrosExplainWrongArguments(t *testing.T) {
	store, _ := heatRun(t)
	conn := plainDuckDB(t, store)
	for _, c := range []struct{ statement, want string }{
		{"FROM density('heat.4')", `No files found that match the pattern "` +
			strings.NewReplacer("[", "[[]", "]", "[]]").Replace(store) + "/heat.4/"},
		{"FROM density('./nowhere/heat.3')", `No files found that match the pattern "./nowhere/heat.3/`},
		{"FROM density('heat.*')", `/heat.[*]/`},
		{"FROM density('')", "query density is asked of one run at a time; give its name in the store or its path"},
		{"FROM density(NULL)", "query density is asked of one run at a time"},
		{"FROM density(['heat.3'])", "query density is asked of one run at a time"},
		{"FROM density(3)", "query density is asked of one run at a time"},
		{"FROM scaling('')", "query scaling: no run given"},
		{"FROM scaling(NULL)", "query scaling: no run given"},
		{"FROM density('heat.3', collectives := 'some')",
			`query density: collectives "some": want one of rooted, logical, tree, none`},
		{"FROM density('heat.3', collectives := NULL)", `query density: collectives "NULL": want one of rooted`},
		{"FROM density('heat.3', collectives := 3)", `query density: collectives "3": want one of rooted`},
		{"FROM density('heat.3', condition := NULL)", `query density: condition "NULL": want an SQL condition as text`},
		{"FROM density('heat.3', condition := 'colour = 3')", `"colour" not found`},
		{"FROM density('heat.3', tag := 9)", `Macro density() does not support the supplied arguments`},
		{"FROM over_time('heat.3', bins := 0)", `query over-time: bins "0": want an integer from 1 to 10000`},
		{"FROM over_time('heat.3', bins := 2.5)", `query over-time: bins "2.5": want an integer from 1 to 10000`},
		{"FROM over_time('heat.3', bins := 'many')", `query over-time: bins "many": want an integer`},
		{"FROM over_time('heat.3', bins := NULL)", `query over-time: bins "NULL": want an integer`},
		{"FROM locality('heat.3', dims := NULL)", `query locality: dims "NULL": want text`},
		{"FROM locality('heat.3', mapping := 'file', rankmap := NULL)",
			`query locality: rankmap "NULL": want the name of a CSV file`},
		{"FROM locality('heat.3', mapping := 'file', rankmap := 'no.csv')", `no.csv`},
	} {
		fails(t, conn, c.statement, c.want)
	}
}

func TestMacrosOfOwnQueries(t *testing.T) {
	tables := strings.Replace(strings.Replace(ownSQL, "FROM messages", "FROM ranks r, messages", 1), "{{where}}",
		"src = r.rank AND ({{where}})", 1)
	own, unusable := readOwn(t, ownFolder(t, "busy-pairs.sql", ownHeader+ownSQL, "queries.sql", ownHeader+tables,
		"ranks.sql", ownHeader+ownSQL,
		"part.sql", strings.Replace(ownHeader, "integer 1..99 = 2", "number -1..99 = 0.5", 1)+ownSQL+"-- more of it"))
	if len(own) != 4 || len(unusable) != 0 {
		t.Fatalf("%d queries, %+v", len(own), unusable)
	}
	run := newRun(t, "few.4", few+"\nranks rank\n0\n1\n2\n3\n", example.Manifest(4))
	conn := plainDuckDB(t, filepath.Dir(run.Dir), own...)
	for _, c := range []struct{ from, want string }{
		{"busy_pairs('few.4')", "3,3"},
		{"busy_pairs('few.4', least := 1, condition := 'tag = 9')", "1,1\n3,2"},
		{"queries_query('few.4')", "3,3"},
		{"ranks('few.4')", "3,3"},
		{"part('few.4')", "1,1\n3,3"},
		{"part('few.4', least := 2.5)", "3,3"},
		{"part('few.4', least := -1e0)", "1,1\n3,3"},
	} {
		got, err := plainly(conn, "FROM "+c.from)
		if err != nil {
			t.Errorf("%s: %v", c.from, err)
		} else {
			same(t, c.from, got, "src,messages\n"+c.want)
		}
	}
	fails(t, conn, "FROM part('few.4', least := 'nan')", `query part: least "nan": want a number from -1 to 99`)
	fails(t, conn, "FROM part('few.4', least := 100)", `query part: least "100": want a number from -1 to 99`)
	got, err := plainly(conn, "SELECT rank FROM ranks_table('few.4') WHERE rank > 2")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the table", got, "rank\n3")
}

// Arguments need not be literals.
func TestMacrosTakeExpressions(t *testing.T) {
	store, _ := heatRun(t)
	conn := plainDuckDB(t, store)
	if _, err := conn.ExecContext(context.Background(), "SET VARIABLE mine = 'heat'"); err != nil {
		t.Fatal(err)
	}
	want, err := plainly(conn, "FROM over_time('heat.3', bins := 7)")
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{"over_time(getvariable('mine') || '.3', bins := 3 + 4)",
		"over_time('heat.3', bins => '7')"} {
		got, err := plainly(conn, "FROM "+call)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", call, diff)
		}
	}
	got, err := plainly(conn, "SELECT query FROM queries() WHERE query LIKE 'late_s%'")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "queries", got, `
		query
		late_senders('RUN')`)
}
