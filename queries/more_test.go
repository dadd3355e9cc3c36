package queries_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
	"github.com/commq/commq/schema"

	"github.com/commq/commq/internal/testenv"
)

func TestCalls(t *testing.T) {
	run := newRun(t, "calls.5", comms+`
events rank seq call class comm instance send_world send_bytes recv_world recv_bytes
0 0 MPI_Init other - - - - - -
3 0 MPI_Send send 0 - 1 4097 - -
3 1 MPI_Send send 0 - 1 3 - -
3 2 MPI_Send send 1 - 2 5 - -
3 3 MPI_Sendrecv sendrecv 0 - 1 9 1 17
4 0 MPI_Barrier collective 3 0 - 0 - 0
`, example.Manifest(5))
	same(t, "calls", ask(t, run, "calls"), `
		0,MPI_Init,,1,0,0
		3,MPI_Send,3,1,5,0
		3,MPI_Send,5,2,4100,0
		3,MPI_Sendrecv,5,1,9,17
		4,MPI_Barrier,5,1,0,0`)
}

func TestUnmatched(t *testing.T) {
	run := newRun(t, "open.5", world+`
events rank seq call class comm send_world send_tag send_bytes recv_world recv_tag recv_bytes posted_any proc_null request init_seq
# rank 1: a matched send, a lost one, one to MPI_PROC_NULL, a persistent one started twice, the second start lost
1 0 MPI_Send send 0 3 9 4097 - - - - 0 - -
1 1 MPI_Send send 0 3 8 17 - - - - 0 - -
1 2 MPI_Send send 0 - - 0 - - - - 1 - -
1 3 MPI_Send_init send 0 3 7 5 - - - - 0 1 -
1 4 MPI_Start send 0 3 7 5 - - - - 0 1 3
1 5 MPI_Start send 0 3 7 5 - - - - 0 1 3
# rank 3: the receives; one left open, one cancelled, one from MPI_PROC_NULL, and a matched probe
3 0 MPI_Recv recv 0 - - - 1 9 4097 0 0 - -
3 1 MPI_Irecv recv 0 - - - 1 7 5 0 0 1 -
3 2 MPI_Irecv recv 0 - - - - 6 - 1 0 2 -
3 3 MPI_Irecv recv 0 - - - 2 5 - 0 0 3 -
3 4 MPI_Cancel complete - - - - - - - - - 3 -
3 5 MPI_Recv recv 0 - - - - - 0 0 2 - -
3 6 MPI_Mprobe probe 0 - - - 4 2 8 0 0 - -
3 7 MPI_Mrecv recv 0 - - - 4 2 8 - - - 6
# rank 4: a Sendrecv whose receive side met nobody
4 0 MPI_Sendrecv sendrecv 0 3 2 8 2 1 - 0 0 - -

messages src dst comm tag bytes send_seq recv_post_seq recv_done_seq
1 3 0 9 4097 0 0 0
1 3 0 7 5 4 1 9
4 3 0 2 8 0 6 7
`, example.Manifest(5))
	for _, r := range []queries.Run{run, withoutSums(run)} {
		same(t, "unmatched", ask(t, r, "unmatched"), `
			1,1,send,MPI_Send,0,3,8,17
			1,5,send,MPI_Start,0,3,7,5
			3,2,recv,MPI_Irecv,0,,6,
			4,0,recv,MPI_Sendrecv,0,2,1,`)
	}
}

func TestQueryRefusesRunWithoutNeeds(t *testing.T) {
	m := example.Manifest(5)
	m.Record = "messages"
	run := newRun(t, "short.5", world, m)
	_, err := open(t, run).Ask(context.Background(), named(t, "calls"), nil)
	want := `query calls: run "short.5" does not keep every call; capture it again with --record all`
	if err == nil || err.Error() != want {
		t.Errorf("error %v; want %s", err, want)
	}
	for filters, refused := range map[string]bool{"-call:MPI_Wait*": false, "call:MPI_*": false,
		"-call:MPI_Send": true, "-call:MPI_Start*": true,
		"call:MPI_Recv": true, "-call:MPI_Wait* pcontrol": false, "call:MPI_* -call:MPI_Ib*": true} {
		run.Manifest.Filters = strings.Fields(filters)
		err := named(t, "unmatched").Check(run)
		if (err != nil) != refused || refused &&
			!strings.Contains(err.Error(), `query unmatched: run "short.5" leaves out sends by request`) {
			t.Errorf("unmatched with filters %s: error %v", filters, err)
		}
	}
	run.Manifest.Filters = nil
	run.Manifest.Record, run.Manifest.Counts.Messages = "collectives", 59
	err = named(t, "density").Check(run)
	if want := `query density: run "short.5" keeps no rows of its messages; capture it again with --record messages`; err == nil || err.Error() != want {
		t.Errorf("error %v; want %s", err, want)
	}
	run.Manifest.Record = "messages"
	run.Manifest.Tables = nil
	if err := named(t, "unmatched").Check(run); err == nil || !strings.Contains(err.Error(), `has no table messages`) {
		t.Errorf("error %v; want one about the missing table", err)
	}
}

// TestQueryRefusesOtherTimes asks runs with other time origins a query that accepts only measured times.
func TestQueryRefusesOtherTimes(t *testing.T) {
	q := *named(t, "overlaps")
	q.Origins = []string{"measured", "simulated"}
	for origin, want := range map[string]string{
		"measured": "", "simulated": "",
		"virtual": `query overlaps: the times of run "when.5" are virtual; the query accepts measured, simulated`,
		"untimed": `query overlaps: run "when.5" is untimed; give it times with commq simulate`,
	} {
		m := example.Manifest(5)
		m.TimeOrigin = origin
		run := newRun(t, "when.5", world, m)
		_, err := open(t, run).Text(context.Background(), &q, nil)
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: error %v; want %q", origin, err, want)
		}
	}
}

// TestQueryOverRuns asks one query over two runs at once, and one that accepts only a single run.
func TestQueryOverRuns(t *testing.T) {
	store := t.TempDir()
	m := example.Manifest(5)
	m.Origin.Label = "it's new"
	db := open(t, newRunIn(t, store, "sp.A.5", world+pingpong, m),
		newRunIn(t, store, "b.2", "messages src dst tag bytes\n0 1 9 3\n", example.Manifest(2)))
	if _, err := db.Text(context.Background(), named(t, "density"), nil); err == nil ||
		err.Error() != "query density is asked of one run at a time, the engine has 2" {
		t.Errorf("density over two runs: %v", err)
	}
	q := *named(t, "density")
	q.OverRuns = true
	rows, err := db.Ask(context.Background(), &q, map[string]string{"collectives": "none"})
	same(t, "density over runs", text(t, rows, err), `
		0,1,1,3
		1,3,1,17
		3,1,3,9194
		3,3,1,0`)
	m.Record = "messages"
	q.Needs = []string{"every-call"}
	short := open(t, newRunIn(t, store, "a.5", world, example.Manifest(5)), newRunIn(t, store, "short.5", world, m))
	if _, err := short.Text(context.Background(), &q, nil); err == nil ||
		!strings.Contains(err.Error(), `run "short.5" does not keep every call`) {
		t.Errorf("a run that lacks what is needed: %v", err)
	}
	rows, err = db.Query(context.Background(), "SELECT run, app, class, ranks, label FROM runs ORDER BY run")
	same(t, "runs", text(t, rows, err), `
		b.2,,,2,
		sp.A.5,sp,A,5,it's new`)
}

func TestUserSQL(t *testing.T) {
	store := t.TempDir()
	a := newRunIn(t, store, "a.5", world+pingpong, example.Manifest(5))
	b := newRunIn(t, store, "b.2", "messages src dst tag bytes\n0 1 9 3\n", example.Manifest(2))
	db := open(t, a, b)
	for _, c := range []struct{ sql, want string }{
		{"SELECT run, src, CAST(sum(bytes) AS BIGINT) FROM messages GROUP BY ALL ORDER BY ALL", `
			a.5,1,17
			a.5,3,9194
			b.2,0,3`},
		{"FROM runs SELECT run, ranks, time_origin, record ORDER BY run;", `
			a.5,5,measured,all
			b.2,2,measured,all`},
		{"WITH w AS (SELECT 3 AS x) SELECT x FROM w -- the end", "3"},
		{"SELECT count(*) FROM events", "0"},
		{"SELECT column_name FROM (DESCRIBE parts) LIMIT 3", `
			run
			rank
			seq`},
	} {
		rows, err := db.Query(context.Background(), c.sql)
		same(t, c.sql, text(t, rows, err), c.want)
	}
	rows, err := db.Query(context.Background(), "EXPLAIN ANALYZE SELECT sum(bytes) FROM messages")
	if plan := text(t, rows, err); !strings.Contains(plan, "READ_PARQUET") {
		t.Errorf("plan:\n%s", plan)
	}
}

// TestUserSQLCannotWriteOrReadElsewhere tries to change a run, to write or read a file, and to change the settings.
func TestUserSQLCannotWriteOrReadElsewhere(t *testing.T) {
	run := newRun(t, "safe.5", world+pingpong, example.Manifest(5))
	other := filepath.Join(t.TempDir(), "other.csv")
	if err := os.WriteFile(other, []byte("a,b\n3,9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(run.Dir, "messages", "0000.parquet")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, run)
	for _, sql := range []string{
		"COPY messages TO '" + other + "'",
		"COPY (SELECT 1) TO '" + file + "' (FORMAT parquet)",
		"EXPLAIN ANALYZE COPY (SELECT 1) TO '" + file + "' (FORMAT parquet)",
		"/* x */ EXPLAIN -- y\n ANALYZE COPY (SELECT 1) TO '" + file + "' (FORMAT parquet)",
		"SELECT 1; COPY (SELECT 1) TO '" + file + "' (FORMAT parquet)",
		"CREATE TABLE t (a INTEGER)",
		"DROP VIEW messages",
		"SET threads = 7",
		"SET enable_external_access = true",
		"RESET lock_configuration",
		"PRAGMA threads = 7",
		"ATTACH '" + filepath.Join(run.Dir, "x.db") + "'",
		"INSTALL httpfs",
		"LOAD httpfs",
		"SELECT * FROM '" + other + "'",
		"SELECT * FROM read_csv('" + other + "')",
		"SELECT * FROM read_text('" + other + "')",
		"SELECT * FROM glob('" + filepath.Dir(other) + "/*')",
		"SELECT * FROM 'https://localhost/x.parquet'",
		"EXPORT DATABASE '" + t.TempDir() + "'",
		"CALL enable_profiling()",
		"PREPARE p AS COPY (SELECT 1) TO '" + file + "'",
		"", ";", "SELEC 1",
	} {
		rows, err := db.Query(context.Background(), sql)
		if err == nil {
			for rows.Next() {
			}
			err = rows.Err()
			rows.Close()
		}
		if err == nil {
			t.Errorf("%s: ran", sql)
		}
	}
	after, err := os.ReadFile(file)
	if err != nil || string(after) != string(before) {
		t.Errorf("the run's file changed (%v)", err)
	}
	if entries, _ := os.ReadDir(run.Dir); len(entries) != len(schema.Tables())+1 {
		t.Errorf("the run's folder has %d entries; want the %d tables and the manifest", len(entries),
			len(schema.Tables()))
	}
}

func TestStrangePaths(t *testing.T) {
	for _, part := range []string{"it's", "a b", "[x]", "st*r", "q?", `back\slash`, "ünï", "{a,b}", `"`, "%20", "a=b"} {
		store := filepath.Join(t.TempDir(), part)
		run := newRunIn(t, store, "pp.5", world+pingpong, example.Manifest(5))
		same(t, part, ask(t, run, "density", "where", "src = 1"), "1,3,1,17")
		// More files than unionFiles, so that the table is read as a list of files.
		for i := range run.Manifest.Tables {
			files := &run.Manifest.Tables[i].Files
			for len(*files) < 40 {
				*files = append(*files, (*files)[0])
			}
		}
		same(t, part+" as a list", ask(t, run, "density", "where", "src = 1"), "1,3,40,680")
	}
}

// The engine splits a pattern at a backslash, so it cannot open a file whose name has a backslash and wildcards.
func TestPathThatEngineCannotOpen(t *testing.T) {
	run := newRunIn(t, filepath.Join(t.TempDir(), `back\slash[x]`), "pp.5", world, example.Manifest(5))
	_, err := queries.Open(t.Context(), []queries.Run{run}, queries.Options{})
	if err == nil || !strings.Contains(err.Error(), "rename the folder") {
		t.Errorf("error %v; want one that says what to do", err)
	}
}

func TestRunBehindALink(t *testing.T) {
	run := newRun(t, "pp.5", world+pingpong, example.Manifest(5))
	link := filepath.Join(t.TempDir(), "linked")
	if err := os.Symlink(run.Dir, link); err != nil {
		testenv.Skip(t, err.Error())
	}
	run.Dir = link
	same(t, "through a link", ask(t, run, "density", "where", "src = 1"), "1,3,1,17")
}

func TestOpenErrors(t *testing.T) {
	run := newRun(t, "pp.5", world+pingpong, example.Manifest(5))
	broken := func(change func(*queries.Run)) queries.Run {
		m := *run.Manifest
		m.Tables = append([]schema.TableInfo(nil), m.Tables...)
		r := queries.Run{Name: run.Name, Dir: run.Dir, Manifest: &m}
		change(&r)
		return r
	}
	lost := broken(func(r *queries.Run) { r.Manifest.Tables[1].Files = []schema.FileInfo{{Path: "messages/0007.parquet"}} })
	outside := broken(func(r *queries.Run) { r.Manifest.Tables[1].Files = []schema.FileInfo{{Path: "../messages.parquet"}} })
	notParquet := broken(func(r *queries.Run) { r.Manifest.Tables[1].Files = []schema.FileInfo{{Path: "manifest.json"}} })
	wrongTable := broken(func(r *queries.Run) { r.Manifest.Tables[1].Files = r.Manifest.Tables[3].Files })
	for _, c := range []struct {
		what string
		runs []queries.Run
		want string
	}{
		{"none", nil, "no run given"},
		{"twice", []queries.Run{run, run}, `run "pp.5" is given twice; give it once`},
		{"lost file", []queries.Run{lost}, "the run is damaged, see commq runs check"},
		{"file outside", []queries.Run{outside}, "not in the run's folder"},
		{"not Parquet", []queries.Run{notParquet}, "manifest.json"},
		{"another table", []queries.Run{wrongTable}, "src"},
	} {
		db, err := queries.Open(context.Background(), c.runs, queries.Options{})
		if err == nil { // files are opened by the first query that names their table
			_, err = db.Query(context.Background(), "SELECT 1 FROM messages")
			db.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v; want one with %q", c.what, err, c.want)
		}
	}
}

func TestCancelEndsALongQuery(t *testing.T) {
	run := newRun(t, "pp.5", world+pingpong, example.Manifest(5))
	db := open(t, run)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(100*time.Millisecond, cancel)
	start := time.Now()
	rows, err := db.Query(ctx, "SELECT count(*) FROM range(100000) a, range(100000) b WHERE hash(a.range, b.range) = 3")
	if err == nil {
		for rows.Next() {
		}
		err = rows.Err()
		rows.Close()
	}
	if !errors.Is(err, context.Canceled) || err.Error() != "the query was interrupted" ||
		time.Since(start) > 10*time.Second {
		t.Errorf("error %v after %v; want to be interrupted at once", err, time.Since(start))
	}
}

// Calls that returned an error sent no message: the manifest does not count them either, and they have no bytes.
func TestErrors(t *testing.T) {
	run := newRun(t, "errors.5", world+`
events rank seq call class comm send_world send_tag send_bytes recv_world recv_tag recv_bytes posted_any proc_null request done_seq error_class
# rank 3: a send to a rank that there is not, one that went and was lost, a receive that failed, a request whose wait did
3 0 MPI_Send send 0 - 9 4097 - - - - 0 - - 6
3 1 MPI_Send send 0 4 9 17 - - - - 0 - - -
3 2 MPI_Recv recv 0 - - - 4 9 - 0 0 - - 16
3 3 MPI_Irecv recv 0 - - - 4 9 - 0 0 1 4 -
3 4 MPI_Wait complete - - - - - - - - - 1 - 18
3 5 MPI_Irecv recv 0 - - - 4 5 - 0 0 2 - -
`, example.Manifest(5))
	same(t, "unmatched", ask(t, run, "unmatched"), `
		3,1,send,MPI_Send,0,4,9,17
		3,5,recv,MPI_Irecv,0,4,5,`)
	same(t, "calls", ask(t, run, "calls"), `
		3,MPI_Irecv,5,2,0,0
		3,MPI_Recv,5,1,0,0
		3,MPI_Send,5,2,17,0
		3,MPI_Wait,,1,0,0`)
}

// The error names the damaged file and what to do.
func TestDamagedFile(t *testing.T) {
	run := newRun(t, "damaged.5", world+"\nevents rank seq call class\n3 0 MPI_Init other\n", example.Manifest(5))
	files, err := filepath.Glob(filepath.Join(run.Dir, "events", "*.parquet"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	if err := os.Truncate(files[0], 40); err != nil {
		t.Fatal(err)
	}
	_, err = queries.Open(t.Context(), []queries.Run{run}, queries.Options{})
	if err == nil || !strings.Contains(err.Error(), "commq runs check "+run.Dir) ||
		!strings.Contains(err.Error(), "events/0000.parquet has 40 bytes") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}
