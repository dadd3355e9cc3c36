package queries_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/commq/commq/bench/gen/synth"
	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
	"github.com/commq/commq/writer"
	"github.com/commq/commq/writer/objects"
)

// registered registers runs on a Trino server and returns them for queries there.
func registered(t *testing.T, address string, runs ...queries.Run) []queries.Run {
	t.Helper()
	ctx := context.Background()
	server, err := queries.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	if err := server.MakeTables(ctx, "local://"+filepath.Dir(runs[0].Dir)); err != nil {
		t.Fatal(err)
	}
	var names []string
	var all []queries.Registration
	for _, r := range runs {
		all = append(all, queries.Registration{Run: r, Location: "local://" + r.Dir})
		names = append(names, r.Name)
	}
	if n, before, err := server.RegisterAll(ctx, all, true); err != nil || n != int64(len(all)) || before != 0 {
		t.Fatalf("%d registered, %d before: %v", n, before, err)
	}
	found, err := server.Find(ctx, names)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The tables come before the runs, and of a run its row in runs comes last.
func TestRegisterAllSQL(t *testing.T) {
	server, err := queries.Dial("http://commq@127.0.0.1:9?catalog=hive&schema=commq")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var runs []queries.Registration
	for _, name := range []string{"mg.W.4", "ft.W.16"} {
		runs = append(runs, queries.Registration{Run: committed(t, name), Location: "file:///store/" + name})
	}
	all, err := server.RegisterAllSQL("file:///store", runs)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, s := range all {
		switch {
		case strings.HasPrefix(s, "CREATE"):
			order = append(order, "make")
		case strings.HasPrefix(s, "INSERT") && strings.Contains(s, "file:///store/mg.W.4"):
			order = append(order, "row of mg.W.4")
		case strings.HasPrefix(s, "INSERT") && strings.Contains(s, "file:///store/ft.W.16"):
			order = append(order, "row of ft.W.16")
		case strings.Contains(s, "register_partition"):
			order = append(order, "tables")
		}
	}
	want := []string{"make", "tables", "row of mg.W.4", "tables", "row of ft.W.16"}
	if got := slices.Compact(order); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// committed returns a run of testdata/runs.
func committed(t *testing.T, name string) queries.Run {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "testdata", "runs", name))
	if err != nil {
		t.Fatal(err)
	}
	m, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	return queries.Run{Name: name, Dir: dir, Manifest: m}
}

// untimed returns a run as an older commq wrote it: without times and derived tables, with a message that was not
// received.
func untimed(t *testing.T) queries.Run {
	t.Helper()
	m := example.Manifest(5)
	m.TimeOrigin, m.EndNs = "untimed", 0
	run := newRun(t, "untimed.5", world+pingpong, m)
	for i, info := range run.Manifest.Tables {
		if info.Name == "profile" || info.Name == "waits" || info.Name == "repeats" {
			run.Manifest.Tables[i].Files, run.Manifest.Tables[i].Rows = nil, 0
			if err := os.RemoveAll(filepath.Join(run.Dir, info.Name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return run
}

func TestRunsOfAServerThatAreNamedTwice(t *testing.T) {
	for _, c := range []struct {
		second queries.Run
		want   string
	}{
		{queries.Run{Name: "a"}, `run "a" is given twice`},
		{queries.Run{Name: "a", Registered: "b"}, `two runs are called "a"`},
	} {
		_, err := queries.Open(context.Background(), []queries.Run{{Name: "a", Registered: "a"}, c.second},
			queries.Options{Trino: "http://localhost:1"})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestTrino tests a server with one node, and then one with two.
func TestTrino(t *testing.T) {
	storage := testenv.StartObjectStorage(t)
	server := testenv.Trino(t, "../scripts", storage.TrinoProperties())
	address := server.Address
	t.Run("every query", func(t *testing.T) { everyQueryOnTrino(t, address) })
	if os.Getenv("COMMQ_TEST_LONG") != "" {
		t.Run("every run", func(t *testing.T) { everyRunOnTrino(t, address) })
	}
	t.Run("errors", func(t *testing.T) { trinoErrors(t, address) })
	t.Run("interrupt", func(t *testing.T) { trinoStopsWhenInterrupted(t, address) })
	t.Run("object storage", func(t *testing.T) { trinoReadsObjects(t, address, storage) })
	t.Run("published tables", func(t *testing.T) { trinoReadsPublishedTables(t, address) })
	t.Run("two nodes", func(t *testing.T) {
		server.Workers(t, 1)
		trinoWithAWorker(t, address)
	})
}

// everyQueryOnTrino asks DuckDB and a Trino server every query of the same runs: the rows must be equal. Fractions
// may differ by 1e-9, because sums depend on the order.
func everyQueryOnTrino(t *testing.T, address string) {
	all, err := queries.All()
	if err != nil {
		t.Fatal(err)
	}
	local := []queries.Run{
		committed(t, "rma.3"),   // one-sided communication, hashes, call sites
		committed(t, "is.W.16"), // MPI_Alltoallv
		untimed(t),
		newRun(t, "empty.1", "", example.Manifest(1)),
	}
	remote := registered(t, address, local...)
	var asked []asking
	for i := range local {
		for _, q := range all {
			if err := q.Check(local[i]); (err == nil) != (q.Check(remote[i]) == nil) {
				t.Errorf("%s of %s: by its manifest %v, by the server's %v", q.Name, local[i].Name, err,
					q.Check(remote[i]))
			} else if of, slow := slowToPlan()[q.Name]; err == nil && slow && of != local[i].Name {
				means(t, address, q, nil, remote[i])
			} else if err == nil {
				asked = append(asked, asking{q, nil, local[i : i+1], remote[i : i+1]})
			}
		}
	}
	is, empty := 1, 3
	files := []queries.Run{committed(t, "bt-io.S.4")} // without hashes
	filesThere := registered(t, address, files...)
	for _, name := range []string{"files", "calls", "callsites"} {
		asked = append(asked, asking{named(t, name), nil, files, filesThere})
	}
	long := []queries.Run{generated(t, 27, 130000)} // with sums over time
	longThere := registered(t, address, long...)
	for _, name := range []string{"over-time", "timeline"} {
		asked = append(asked, asking{named(t, name), map[string]string{"read": "sums"}, long, longThere})
	}
	for _, q := range all {
		if _, slow := slowToPlan()[q.Name]; q.OverRuns && !slow && q.Check(local[0]) == nil { // several at once
			asked = append(asked, asking{q, nil, local[:2], remote[:2]})
		}
		for _, args := range everyChoice(t, q)[1:] {
			_, slow := slowToPlan()[q.Name]
			if q.Name == "density" || q.Name == "callsites" || args["init"] == "include" && !slow {
				asked = append(asked, asking{q, args, local[is : is+1], remote[is : is+1]})
			} else if q.Check(remote[empty]) == nil {
				means(t, address, q, args, remote[empty])
			}
		}
	}
	askBoth(t, address, asked)
	sameStartup(t, address, local[is], remote[is])
}

// everyRunOnTrino asks both every query of each run of testdata, and of a generated one of 10^7 messages whose payloads
// have hashes.
func everyRunOnTrino(t *testing.T, address string) {
	all, err := queries.All()
	if err != nil {
		t.Fatal(err)
	}
	folders, err := os.ReadDir(filepath.Join("..", "testdata", "runs"))
	if err != nil || len(folders) < 20 {
		t.Fatal(len(folders), err)
	}
	var local []queries.Run
	for _, folder := range folders {
		local = append(local, committed(t, folder.Name()))
	}
	long := len(local)
	local = append(local, generatedWith(t, 64, 10_000_000, synth.Options{Seed: 3, Hash: true, Callsites: true}))
	remote := registered(t, address, local...)
	var asked []asking
	for i := range local {
		for _, q := range all {
			if q.Check(local[i]) != nil || q.Check(remote[i]) != nil {
				continue
			}
			var args map[string]string
			if strings.HasPrefix(q.Name, "timeline-") && i == long {
				args = map[string]string{"from-s": "0", "to-s": "0.001"} // else some have a row for each call
			}
			asked = append(asked, asking{q, args, local[i : i+1], remote[i : i+1]})
		}
	}
	askBoth(t, address, asked)
}

// sameStartup compares what DuckDB and the server tell of the time in MPI_Init and MPI_Finalize.
func sameStartup(t *testing.T, address string, local, remote queries.Run) {
	t.Helper()
	var found [2]queries.Startup
	for i, o := range []queries.Options{{Threads: 1}, {Trino: address}} {
		db, err := queries.Open(context.Background(), []queries.Run{[]queries.Run{local, remote}[i]}, o)
		if err != nil {
			t.Fatal(err)
		}
		found[i], err = db.Startup(context.Background())
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if found[0] != found[1] || found[0].Ns == 0 {
		t.Errorf("in MPI_Init and MPI_Finalize: DuckDB %+v, Trino %+v", found[0], found[1])
	}
}

// slowToPlan returns queries that take a server much longer to plan than others, each with the run that it is asked of.
func slowToPlan() map[string]string {
	return map[string]string{"measures": "is.W.16", "unmatched": "untimed.5", "timeline": "rma.3", "timeline-groups": "is.W.16",
		"timeline-waits": "rma.3"}
}

// means reports whether the server understands a query.
func means(t *testing.T, address string, q *queries.Query, args map[string]string, run queries.Run) {
	t.Helper()
	db, err := queries.Open(context.Background(), []queries.Run{run}, queries.Options{Trino: address})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	sql, err := db.Text(context.Background(), q, args)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query(context.Background(), "EXPLAIN (TYPE VALIDATE) "+sql)
	if err != nil {
		t.Errorf("%s %v: %v", q.Name, args, err)
		return
	}
	rows.Close()
}

// asking is a query asked of runs on disk and of the server.
type asking struct {
	q             *queries.Query
	args          map[string]string
	local, remote []queries.Run
}

// askBoth asks all queries, as many at once as there are cores, because the server takes longer to plan a query than
// to run it.
func askBoth(t *testing.T, address string, all []asking) {
	t.Helper()
	var wait sync.WaitGroup
	var mu sync.Mutex
	next := make(chan asking)
	for range runtime.NumCPU() {
		wait.Go(func() {
			for a := range next {
				begin := time.Now()
				wrong, equal, rounded := a.differs(address)
				mu.Lock()
				if wrong != "" {
					t.Errorf("%s %v of %s: %s", a.q.Name, a.args, a.local[0].Name, wrong)
				}
				t.Logf("%s %v of %s: %d rows equal, %d but for rounding: %.1f s", a.q.Name, a.args, a.local[0].Name, equal,
					rounded, time.Since(begin).Seconds())
				mu.Unlock()
			}
		})
	}
	for _, a := range all {
		next <- a
	}
	close(next)
	wait.Wait()
}

// differs describes how the answers differ, and counts rows that are equal and rows that are equal but for the last
// digits of a fraction. It keeps no rows: answers may have millions.
func (a *asking) differs(address string) (wrong string, equal, rounded int) {
	ctx := context.Background()
	var sides [2]queries.Rows
	for i, o := range []queries.Options{{Threads: 1}, {Trino: address}} {
		db, err := queries.Open(ctx, [][]queries.Run{a.local, a.remote}[i], o)
		if err != nil {
			return err.Error(), 0, 0
		}
		defer db.Close()
		if sides[i], err = db.Ask(ctx, a.q, a.args); err != nil {
			return err.Error(), 0, 0
		}
		defer sides[i].Close()
	}
	for {
		more, moreThere := sides[0].Next(), sides[1].Next()
		if more != moreThere || !more {
			if err := errors.Join(sides[0].Err(), sides[1].Err()); err != nil {
				return err.Error(), equal, rounded
			}
			if more != moreThere {
				return fmt.Sprintf("after %d rows: DuckDB has more: %t, Trino: %t", equal+rounded, more, moreThere), equal, rounded
			}
			return "", equal, rounded
		}
		want, got := sides[0].Row(), sides[1].Row()
		same := true
		for k, w := range want {
			if !alike(w, got[k]) {
				return fmt.Sprintf("row %d, column %s: DuckDB %#v, Trino %#v\n%v\n%v", equal+rounded, a.q.Columns[k].Name, w,
					got[k], want, got), equal, rounded
			}
			x, isFraction := w.(float64)
			same = same && (w == got[k] || isFraction && math.IsNaN(x))
		}
		if same {
			equal++
		} else {
			rounded++
		}
	}
}

func alike(a, b any) bool {
	x, okX := a.(float64)
	y, okY := b.(float64)
	if okX && okY {
		return x == y || math.IsNaN(x) && math.IsNaN(y) || math.Abs(x-y) <= 1e-9*math.Max(math.Abs(x), math.Abs(y))
	}
	return a == b
}

// trinoErrors asks a server what it cannot answer.
func trinoErrors(t *testing.T, address string) {
	run := registered(t, address, newRun(t, "pp.5", world+pingpong, example.Manifest(5)))[0]
	ctx := context.Background()
	db, err := queries.Open(ctx, []queries.Run{run}, queries.Options{Trino: address})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for sql, want := range map[string]string{
		"SELECT src FROM messages\nWHERE colour = 3":        "Column 'colour' cannot be resolved\n\nLINE 2: WHERE colour = 3\n              ^",
		"WITH a AS (SELECT colour FROM messages) FROM a":    "mismatched input 'FROM'",
		"WITH a AS (SELECT colour FROM messages)\nTABLE a":  "LINE 1: WITH a AS (SELECT colour FROM messages)\n                          ^",
		"DELETE FROM messages":                              "only SELECT",
		"WITH ranks AS (SELECT 1 AS n) SELECT n FROM ranks": "WITH ranks: this is the name of a table",
		"EXPLAIN ANALYZE DELETE FROM messages":              "only SELECT",
		"SELECT * FROM letters":                             "Table 'hive.commq.letters' does not exist",
		"SELECT CAST('refused: x' AS INTEGER) AS bad":       "x",
	} {
		rows, err := db.Query(ctx, sql)
		if err == nil {
			for rows.Next() {
			}
			err = rows.Err()
			rows.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v; want one with %q", sql, err, want)
		}
	}
	if _, err := db.Ask(ctx, named(t, "density"), map[string]string{"where": "colour = 3"}); err == nil ||
		!strings.Contains(err.Error(), "columns of messages: src, dst") {
		t.Errorf("where colour = 3: %v", err)
	}
	server, err := queries.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if _, err := server.Find(ctx, []string{"nobody.*"}); err == nil ||
		!strings.Contains(err.Error(), `run "nobody.*" is not registered in "hive"."commq"`) {
		t.Errorf("find: %v", err)
	}
	unranked := newRun(t, "pp.0", world+pingpong, example.Manifest(5))
	unranked.Manifest.Ranks = 0
	if err := server.Register(ctx, queries.Registration{Run: unranked, Location: "local://" + unranked.Dir}); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Find(ctx, []string{"pp.0"}); err == nil || !strings.Contains(err.Error(), "ranks is 0") ||
		!strings.Contains(err.Error(), "register the run again") {
		t.Errorf("find a run whose manifest is wrong: %v", err)
	}
	if known, err := server.Unregister(ctx, "pp.5"); err != nil || !known {
		t.Errorf("unregister: %v, %v", known, err)
	}
	if known, err := server.Unregister(ctx, "pp.5"); err != nil || known {
		t.Errorf("unregister again: %v, %v", known, err)
	}
	if _, err := server.Find(ctx, []string{"pp.5"}); err == nil {
		t.Error("a run that is not registered was found")
	}
}

// trinoReadsObjects queries a run that was pushed to object storage and is registered there.
func trinoReadsObjects(t *testing.T, address string, storage *testenv.ObjectStorage) {
	for name, value := range storage.Environment() {
		t.Setenv(name, value)
	}
	store, err := objects.Open("s3://jobs/2026-11")
	if err != nil {
		t.Fatal(err)
	}
	local := committed(t, "cg.A.4")
	if _, err := store.Push(context.Background(), local.Dir, local.Name, false); err != nil {
		t.Fatal(err)
	}
	server, err := queries.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := server.MakeTables(context.Background(), store.URL); err != nil {
		t.Fatal(err)
	}
	if err := server.Register(context.Background(),
		queries.Registration{Run: local, Location: store.URL + "/" + local.Name}); err != nil {
		t.Fatal(err)
	}
	remote, err := server.Find(context.Background(), []string{local.Name})
	if err != nil {
		t.Fatal(err)
	}
	askBoth(t, address, []asking{{named(t, "density"), map[string]string{"where": "tag > 0"}, []queries.Run{local},
		remote}})
	if remote[0].Dir != "s3://jobs/2026-11/cg.A.4" {
		t.Errorf("the run is said to lie in %s", remote[0].Dir)
	}
}

// trinoReadsPublishedTables makes a table of published runs as docs/method/trino.md describes, and queries it.
func trinoReadsPublishedTables(t *testing.T, address string) {
	to := t.TempDir()
	local := []queries.Run{committed(t, "rma.3"), committed(t, "mg.W.16")}
	for i, name := range []string{"rma.3", "mg:W+16"} {
		if _, err := writer.Publish(local[i].Dir, name, to, nil); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("trino", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	server, err := queries.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := server.MakeTables(context.Background(), "local://"+to+"/messages"); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"CREATE SCHEMA hive.months",
		"CREATE TABLE hive.months.messages (LIKE hive.commq.messages)\nWITH (external_location = 'local://" +
			to + "/messages', format = 'PARQUET', partitioned_by = ARRAY['run'])",
		"CALL hive.system.sync_partition_metadata('months', 'messages', 'FULL')",
	} {
		rows, err := db.Query(s)
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		for rows.Next() {
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	var messages, bytes, runs int64
	err = db.QueryRow("SELECT COUNT(*), SUM(bytes), COUNT(DISTINCT run) FROM hive.months.messages WHERE run = 'mg:W+16'").Scan(&messages, &bytes, &runs)
	if want := local[1].Manifest.Counts; err != nil || runs != 1 || messages != want.Messages ||
		bytes != want.MessageBytes {
		t.Errorf("%d messages of %d bytes of %d runs, error %v; want %d of %d of one", messages, bytes, runs, err,
			want.Messages, want.MessageBytes)
	}
}

// trinoStopsWhenInterrupted ends the context of a query that would take hours, and checks that the server ended it,
// too.
func trinoStopsWhenInterrupted(t *testing.T, address string) {
	run := registered(t, address, newRun(t, "pp.5", world+pingpong, example.Manifest(5)))[0]
	db, err := queries.Open(context.Background(), []queries.Run{run}, queries.Options{Trino: address})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Second)
	defer stop()
	const numbers = "UNNEST(sequence(1, 10000))"
	rows, err := db.Query(ctx, "SELECT COUNT(*) AS endless FROM "+numbers+" AS a (x), "+numbers+" AS b (y), "+
		numbers+" AS c (z) WHERE x * y % 7 = z % 5")
	if err == nil {
		for rows.Next() {
		}
		err = rows.Err()
		rows.Close()
	}
	if err == nil || err.Error() != "the query was interrupted" {
		t.Fatalf("interrupted: %v", err)
	}
	for end := time.Now().Add(testenv.Patience); time.Now().Before(end); time.Sleep(time.Second) {
		kept, err := queries.Open(context.Background(), []queries.Run{run}, queries.Options{Trino: address})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := kept.Query(context.Background(),
			"SELECT state FROM system.runtime.queries WHERE query LIKE 'SELECT COUNT(*) AS endless%'")
		state := text(t, rows, err)
		kept.Close()
		if strings.TrimSpace(state) == "FAILED" {
			return
		}
	}
	t.Error("the server still works on the query")
}

// trinoWithAWorker queries a server of two nodes, and checks that both did a part of the work. The server decides which
// node reads which files of a query, so the test counts over all queries, and asks again: a worker on a busy machine may
// come late.
func trinoWithAWorker(t *testing.T, address string) {
	local := []queries.Run{committed(t, "is.W.16")}
	remote := registered(t, address, local...)
	var asked []asking
	for _, name := range []string{"pairs", "sizes", "late-senders"} { // which are planned fast
		asked = append(asked, asking{named(t, name), nil, local, remote})
	}
	db, err := queries.Open(context.Background(), remote, queries.Options{Trino: address})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	nodes := ""
	for range 20 {
		askBoth(t, address, asked)
		rows, err := db.Query(context.Background(), `SELECT t.node_id FROM system.runtime.tasks t JOIN system.runtime.queries q ON q.query_id = t.query_id
			WHERE q.state = 'FINISHED' AND t.completed_splits > 0 GROUP BY t.node_id`)
		nodes = text(t, rows, err)
		if strings.Contains(nodes, "coordinator") && strings.Contains(nodes, "worker-1") {
			return
		}
	}
	t.Errorf("queries were worked on by %q; want the coordinator and the worker", nodes)
}
