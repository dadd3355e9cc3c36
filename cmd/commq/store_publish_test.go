package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/schema"
)

// tablesOf makes a store with copies of some captured runs, one of them with a colon in its name, and publishes it.
func tablesOf(t *testing.T) (store, to string) {
	t.Helper()
	store, to = t.TempDir(), filepath.Join(t.TempDir(), "tables")
	for name, as := range map[string]string{"cg.A.4": "cg.A.4", "sp.A.4": "sp:A+4", "rma.3": "2024-01-07"} {
		if err := os.CopyFS(filepath.Join(store, as),
			os.DirFS(filepath.Join("../../testdata/runs", name))); err != nil {
			t.Fatal(err)
		}
	}
	commq(t, "store", "publish", "--to", to, "--store", store)
	return store, to
}

// duck returns the answer of a plain DuckDB as CSV, in which null is empty.
func duck(t *testing.T, tables, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "answer.csv")
	shell(t, tables+"COPY ("+strings.TrimRight(text, "; \n")+"\n) TO '"+file+"' (FORMAT csv, HEADER)")
	answer, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// duckTables returns SQL that makes views of published tables, from only the paths.
func duckTables(to string) string {
	var b strings.Builder
	for _, t := range []string{"events", "messages", "comms", "ranks", "callsites", "datatypes", "parts", "profile",
		"waits", "transfers", "collective_waits", "repeats", "channels", "collective_calls", "collective_parts",
		"runs"} {
		b.WriteString("CREATE VIEW " + t + " AS FROM read_parquet('" + to + "/" +
			t + "/*/*.parquet', hive_partitioning = true, hive_types = {'run': VARCHAR});\n")
	}
	return b.String()
}

// DuckDB reads the published files as one table with a column run. Its answers to canned queries, and its counts, are
// those of commq for the runs themselves.
func TestDuckDBReadsPublishedRuns(t *testing.T) {
	store, to := tablesOf(t)
	tables := duckTables(to)
	all := []string{"--run", "cg.A.4", "--run", "sp:A+4", "--run", "2024-01-07", "--store", store, "--format", "csv"}
	for _, text := range []string{
		"SELECT run, count(*) AS n, CAST(sum(send_bytes) AS BIGINT) AS bytes FROM events GROUP BY run ORDER BY run",
		"SELECT run, src, dst, count(*) AS n, CAST(sum(bytes) AS BIGINT) AS bytes FROM messages GROUP BY run, src, dst ORDER BY run, src, dst",
		"SELECT run, app, ranks, calls, messages, message_bytes, collectives, end_ns, epochs, digest, mpi FROM runs ORDER BY run",
		"SELECT run, world_rank, count(*) AS n FROM comms GROUP BY run, world_rank ORDER BY run, world_rank",
	} {
		want := commq(t, append([]string{"sql", text}, all...)...)
		if got := duck(t, tables, text); lines(got) != lines(want) || strings.Count(got, "\n") < 4 {
			t.Errorf("%s\n%s", text, diff.Diff(want, got))
		}
	}
	every, err := queries.Named([]string{"density", "data-density", "sizes"})
	if err != nil {
		t.Fatal(err)
	}
	one := strings.ReplaceAll(tables, "VARCHAR})", "VARCHAR}) WHERE run = 'sp:A+4'")
	for _, q := range every {
		text, err := q.SQL(nil)
		if err != nil {
			t.Fatal(err)
		}
		want := commq(t, "query", q.Name, "--run", "sp:A+4", "--store", store, "--format", "csv")
		got := duck(t, one, text)
		if strings.Count(got, "\n") < 4 || lines(got) != lines(want) {
			t.Errorf("%s:\n%s", q.Name, diff.Diff(want, got))
		}
	}
}

// lines returns the lines of a text, sorted.
func lines(s string) string {
	all := strings.Split(strings.ReplaceAll(s, `"`, ""), "\n")
	for i := range all {
		for j := i; j > 0 && all[j] < all[j-1]; j-- {
			all[j], all[j-1] = all[j-1], all[j]
		}
	}
	return strings.Join(all, "\n")
}

// Publishing again changes nothing; a changed run is replaced; an unpublished run is removed, and its store stays
// untouched.
func TestPublishAgainAndUnpublish(t *testing.T) {
	store, to := tablesOf(t)
	file := filepath.Join(to, "events", "run=cg.A.4", "0000.parquet")
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if own, err := os.Stat(filepath.Join(store, "cg.A.4/events/0000.parquet")); err != nil ||
		!os.SameFile(own, before) {
		t.Errorf("the file of the run and the published one are two (%v)", err)
	}
	commq(t, "store", "publish", "--to", to, "--store", store)
	if after, err := os.Stat(file); err != nil || !os.SameFile(before, after) {
		t.Errorf("published again the file is another: %v", err)
	}
	commq(t, "store", "compact", "cg.A.4", "--store", store, "--rows-per-file", "1000")
	commq(t, "store", "publish", "--to", to, "--store", store, "cg.A.4")
	if after, err := os.Stat(file); err != nil || os.SameFile(before, after) {
		t.Errorf("the compacted run was not published: %v", err)
	}
	commq(t, "store", "unpublish", "--to", to, "--store", store, "cg.A.4", "sp:A+4", "2024-01-07")
	left, err := filepath.Glob(filepath.Join(to, "*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
	commq(t, "runs", "check", "cg.A.4", "--store", store)
}

// killedOnce starts commq in a process of its own and kills it once something is so, which may be over before it is
// seen: then the process ends.
func killedOnce(t *testing.T, what string, is func() bool, args ...string) {
	t.Helper()
	cmd := exec.Command("commq", args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	waitUntil(t, what+", or the command ended", func() bool { return len(ended) > 0 || is() })
	_ = cmd.Process.Signal(syscall.SIGKILL)
	<-ended
}

// A publish that is killed leaves no row in runs; the next one completes it.
func TestPublisherIsKilled(t *testing.T) {
	store, _ := tablesOf(t)
	halves := 0
	for round := range 6 {
		to := filepath.Join(t.TempDir(), "tables")
		place := []string{"_commq/cg.A.4.partial", "_commq/cg.A.4.partial/events", "events", "messages", "profile",
			"repeats"}[round]
		killedOnce(t, place+" is there", func() bool {
			_, err := os.Stat(filepath.Join(to, place))
			return err == nil
		}, "store", "publish", "--to", to, "--store", store, "cg.A.4")
		if _, err := os.Stat(filepath.Join(to, "runs", "run=cg.A.4")); err != nil {
			halves++
		}
		commq(t, "store", "publish", "--to", to, "--store", store, "cg.A.4")
		tables, err := filepath.Glob(filepath.Join(to, "*", "run=cg.A.4", "*.parquet"))
		if err != nil || len(tables) < 12 {
			t.Errorf("published after %s: %v %v", place, tables, err)
		}
		if left, _ := filepath.Glob(filepath.Join(to, "_commq", "*")); len(left) != 1 {
			t.Errorf("left after %s: %v", place, left)
		}
	}
	if halves == 0 {
		t.Error("nobody was killed before the end")
	}
}

// Another file system gets copies.
func TestPublishToAnotherFileSystem(t *testing.T) {
	to := "/dev/shm"
	var here, there syscall.Stat_t
	store := t.TempDir()
	if syscall.Stat(store, &here) != nil || syscall.Stat(to, &there) != nil || here.Dev == there.Dev {
		testenv.Skip(t, "/dev/shm is no other file system")
	}
	to, err := os.MkdirTemp(to, "commq-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(to) })
	if err := os.CopyFS(filepath.Join(store, "rma.3"), os.DirFS("../../testdata/runs/rma.3")); err != nil {
		t.Fatal(err)
	}
	commq(t, "store", "publish", "--to", to, "--store", store)
	want, err := os.ReadFile(filepath.Join(store, "rma.3/events/0000.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(to, "events/run=rma.3/0000.parquet")); err != nil ||
		string(got) != string(want) {
		t.Errorf("the copy differs (%v)", err)
	}
}

// A file without rows is published only if no run has rows of that table, so that the table can still be read.
func TestPublishedFilesHaveRows(t *testing.T) {
	store, to := t.TempDir(), t.TempDir()
	message := schema.NullMessage
	message.Src, message.Dst, message.Comm, message.Bytes, message.SendSeq, message.RecvPostSeq = 3, 5, 0, 4097, 1, 0
	for _, name := range []string{"a.6", "b.6", "c.6"} {
		var rows []schema.Message
		if name == "b.6" {
			rows = append(rows, message)
		}
		writeSmall(t, store, name, 6, rows...)
	}
	published := func(run string) {
		t.Helper()
		commq(t, "store", "publish", "--to", to, "--store", store, run)
	}
	files := func(table string) string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(to, table, "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range found {
			found[i] = strings.TrimPrefix(found[i], filepath.Join(to, table)+"/")
		}
		return strings.Join(found, " ")
	}
	for _, step := range []struct{ run, messages, parts string }{
		{"a.6", "run=a.6/empty.parquet", "run=a.6/empty.parquet"},
		{"b.6", "run=b.6/0000.parquet", "run=a.6/empty.parquet"},
		{"c.6", "run=b.6/0000.parquet", "run=a.6/empty.parquet"},
	} {
		published(step.run)
		if m, p := files("messages"), files("parts"); m != step.messages || p != step.parts {
			t.Errorf("with %s messages has %q, parts %q; want %q, %q", step.run, m, p, step.messages, step.parts)
		}
	}
	commq(t, "store", "unpublish", "--to", to, "a.6")
	commq(t, "store", "unpublish", "--to", to, "c.6")
	if left := files("*"); strings.Contains(left, "a.6") || strings.Contains(left, "c.6") {
		t.Errorf("unpublished runs have left %s", left)
	}
}
