package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/writer"
	"github.com/commq/commq/writer/objects"
)

// objectStorage starts an S3 server on loopback that ends with the test, with the bucket jobs, and sets the
// environment for it.
func objectStorage(t *testing.T) *testenv.ObjectStorage {
	t.Helper()
	storage := testenv.StartObjectStorage(t)
	t.Setenv("COMMQ_DUCKDB_EXTENSIONS", testenv.DuckDBExtensions(t, "../../scripts"))
	for name, value := range storage.Environment() {
		t.Setenv(name, value)
	}
	return storage
}

// refused runs a command that must end with status 2, and returns its message.
func refused(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if status := execute(context.Background(), args, strings.NewReader(""), &out, &errs); status != 2 {
		t.Errorf("commq %s: exit status %d\n%s%s", strings.Join(args, " "), status, errs.String(), out.String())
	}
	return errs.String()
}

// Runs in object storage are listed, shown and asked like those in a folder, and pulling them gives the same files.
func TestRunsInObjectStorage(t *testing.T) {
	objectStorage(t)
	local := t.TempDir()
	for _, name := range []string{"cg.A.4", "mg.W.2", "mg.W.4", "rma.3"} {
		if err := os.CopyFS(filepath.Join(local, name),
			os.DirFS(filepath.Join("../../testdata/runs", name))); err != nil {
			t.Fatal(err)
		}
	}
	const there = "s3://jobs/2026/11"
	commq(t, "store", "push", there, "--store", local)
	for _, args := range [][]string{
		{"runs", "list"},
		{"runs", "list", "--format", "csv"},
		{"runs", "show", "rma.3", "--format", "json"},
		{"query", "density", "--run", "cg.A.4", "--format", "csv"},
		{"query", "sizes", "--run", "mg.W.*", "--format", "csv"},
		{"query", "collectives", "--run", "rma.3", "--run", "cg.A.4", "--format", "csv"},
		{"query", "callsites", "--run", "cg.A.4", "--format", "csv"},
		{"query", "late-senders", "--run", "mg.W.4", "--format", "csv"},
		{"query", "imbalance", "--run", "cg.A.4", "--format", "csv"},
		{"sql", "SELECT run, count(*) AS n, min(start_ns) AS first FROM events GROUP BY run ORDER BY run", "--run",
			"*"},
	} {
		want, got := commq(t, append(args, "--store", local)...), commq(t, append(args, "--store", there)...)
		if got != want || want == "" {
			t.Errorf("commq %s: %s", strings.Join(args, " "), diff.Diff(want, got))
		}
	}
	checkObjects(t, local, there)
	back := filepath.Join(t.TempDir(), "back")
	commq(t, "store", "pull", there, "--store", back, "mg.W.*", "rma.3")
	for _, name := range []string{"mg.W.2", "mg.W.4", "rma.3"} {
		commq(t, "runs", "check", name, "--store", back)
		one, err1 := writer.ReadManifest(filepath.Join(local, name))
		two, err2 := writer.ReadManifest(filepath.Join(back, name))
		if err1 != nil || err2 != nil || one.Digest != two.Digest {
			t.Errorf("%s: %v %v", name, err1, err2)
		}
	}
	if entries, err := os.ReadDir(back); err != nil || len(entries) != 3 {
		t.Errorf("pulled: %v %v", entries, err)
	}
	commq(t, "store", "pull", there, "--store", back, "--run", "rma.3") // again: it exists already
	otherRunOfTheName(t, local, there, back)
	damagedRuns(t, local, there, back)

	for _, bad := range []struct {
		args []string
		want string
	}{
		{[]string{"query", "density", "--run", "nobody", "--store", there}, `no run "nobody" in s3://jobs/2026/11`},
		{[]string{"detect", "--run", "cg.A.4", "--store", there},
			`the store s3://jobs/2026/11 is object storage, and this needs a folder`},
		{[]string{"runs", "check", "cg.A.4", "--store", there}, `copy them with commq store pull s3://jobs/2026/11`},
		{[]string{"runs", "remove", "nobody", "--store", there}, "s3://jobs/2026/11/nobody/manifest.json: file does not exist"},
		{[]string{"runs", "remove", "a/b", "--store", there}, "want the name of a run in the store " + there},
		{[]string{"export", "benchfmt", "cg.A.4", "--store", there}, `is object storage, and this needs a folder`},
		{[]string{"report", "cg.A.4", "--store", there}, `is object storage, and this needs a folder`},
		{[]string{"sql", "FROM read_parquet('s3://jobs/2026/11/mg.W.2/events/0000.parquet')", "--run", "cg.A.4",
			"--store", there}, `SQL reads no files, found "s3://jobs/2026/11/mg.W.2/events/0000.parquet"`},
		{[]string{"runs", "list", "--store", "s3://nobucket/x"}, `make the bucket first`},
		{[]string{"store", "push", "s3:///x", "--store", local}, `want s3://BUCKET or s3://BUCKET/PREFIX`},
	} {
		if got := refused(t, bad.args...); !strings.Contains(got, bad.want) {
			t.Errorf("commq %s: %q, want %q", strings.Join(bad.args, " "), got, bad.want)
		}
	}
	t.Setenv("COMMQ_DUCKDB_EXTENSIONS", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	if got := refused(t, "query", "density", "--run", "cg.A.4", "--store", there); !strings.Contains(got,
		"pip install duckdb-extension-httpfs==1.5.5) and name its folder with $COMMQ_DUCKDB_EXTENSIONS") {
		t.Errorf("without the extension: %q", got)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "another secret")
	if got := refused(t, "runs", "list", "--store", there); !strings.Contains(got,
		"; keys come from $AWS_ACCESS_KEY_ID") || strings.Contains(got, ".;") || strings.Contains(got, "another secret") {
		t.Errorf("with a wrong key: %q", got)
	}
}

// checkObjects checks runs in object storage with a baseline of runs in a folder. A rule that reads files says what to
// do.
func checkObjects(t *testing.T, local, there string) {
	t.Helper()
	dir := t.TempDir()
	baseline, rules := filepath.Join(dir, "base.yaml"), filepath.Join(dir, "rules.yaml")
	commq(t, "check", "--write-baseline", "--store", local, "--run", "mg.W.*", "--baseline", baseline)
	text := "commq_check: 1\nbaseline: " + baseline + "\nrules:\n  - {name: same, same: [messages]}\n" +
		"  - {name: rows, no_rows: SELECT 1 FROM ranks WHERE rank < 0}\n"
	for _, c := range []struct {
		rules, want string
		status      int
	}{
		{text, "2 rules passed", exitDone},
		{text + "  - {name: hand, no_manual: [all]}\n", "is object storage, and this needs a folder", exitCannot},
		{text + "  - {name: causes, no_finding: [all]}\n", "is object storage, and this needs a folder", exitCannot},
	} {
		if err := os.WriteFile(rules, []byte(c.rules), 0o644); err != nil {
			t.Fatal(err)
		}
		status, out, errs := commandLine("", "check", "--rules", rules, "--store", there, "--run", "mg.W.*")
		if status != c.status || !strings.Contains(out, c.want) {
			t.Errorf("%s: status %d\n%s%s", c.rules, status, out, errs)
		}
	}
}

// otherRunOfTheName: push and pull overwrite another run of the same name only with --replace.
func otherRunOfTheName(t *testing.T, local, there, back string) {
	t.Helper()
	other := t.TempDir()
	if err := os.CopyFS(filepath.Join(other, "rma.3"), os.DirFS(filepath.Join(local, "mg.W.2"))); err != nil {
		t.Fatal(err)
	}
	push, pull := []string{"store", "push", there, "--store", other}, []string{"store", "pull", there, "--store", back,
		"rma.3"}
	if got := refused(t, push...); !strings.Contains(got, `another run "rma.3" is in `+there+
		"; overwrite it with --replace") {
		t.Error(got)
	}
	commq(t, append(push, "--replace")...)
	if got := refused(t, pull...); !strings.Contains(got, "overwrite it with --replace") {
		t.Error(got)
	}
	commq(t, append(pull, "--replace")...)
	m, err := writer.ReadManifest(filepath.Join(back, "rma.3"))
	if err != nil || m.Ranks != 2 {
		t.Errorf("%v, %+v", err, m)
	}
	commq(t, "store", "push", there, "--store", local, "--replace")
}

// damagedRuns: --replace puts the run again at either side, and runs remove removes it from the bucket.
func damagedRuns(t *testing.T, local, there, back string) {
	t.Helper()
	again := []string{"store", "pull", there, "--store", back, "mg.W.2", "--replace"}
	file := filepath.Join(back, "mg.W.2/events/0000.parquet")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 4
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	commq(t, again...)
	commq(t, "runs", "check", "mg.W.2", "--store", back)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := refused(t, again[:len(again)-1]...); !strings.Contains(got, "overwrite it with --replace") {
		t.Error(got)
	}
	commq(t, again...)
	commq(t, "runs", "check", "mg.W.2", "--store", back)

	s, err := objects.Open(there + "/removed")
	if err != nil {
		t.Fatal(err)
	}
	push := func() { commq(t, "store", "push", s.URL, "--store", local, "mg.W.2", "mg.W.4", "--replace") }
	push()
	push() // also over what is there
	commq(t, "runs", "remove", "--store", s.URL, "mg.W.2")
	if left, err := s.List(t.Context()); err != nil || len(left) != 1 || left[0].Name != "mg.W.4" {
		t.Errorf("%v %v", left, err)
	}
	commq(t, "runs", "remove", "--store", s.URL, "mg.*")
	if left, err := s.List(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
}

// An interrupted push leaves no run; pushing again completes it. A run that replaces another is never a mixture of
// both.
func TestPushIsKilled(t *testing.T) {
	storage := objectStorage(t)
	halves := 0
	for _, file := range []string{"events", "messages/0000.parquet", "ranks", "profile", "repeats"} {
		to := "killed-" + strings.ReplaceAll(file, "/", "-")
		killedOnce(t, file+" is in object storage", func() bool { return storage.Has(to + "/cg.A.4/" + file) },
			"store", "push", "s3://jobs/"+to, "cg.A.4", "--store", "../../testdata/runs")
		listed := commq(t, "runs", "list", "--store", "s3://jobs/"+to, "--format", "json")
		status, _, errs := commandLine("", "query", "density", "--run", "cg.A.4", "--store", "s3://jobs/"+to)
		// A manifest that is not there now was not there before either; what was on its way at the kill may still arrive.
		if !storage.Has(to + "/cg.A.4/manifest.json") {
			halves++
			if strings.TrimSpace(listed) != "[]" {
				t.Errorf("half a run is listed: %s", listed)
			}
			if status != exitCannot || !strings.Contains(errs, `no run "cg.A.4"`) {
				t.Errorf("half a run is asked: status %d, %s", status, errs)
			}
		}
		commq(t, "store", "push", "s3://jobs/"+to, "cg.A.4", "--store", "../../testdata/runs", "--replace")
		back := t.TempDir()
		commq(t, "store", "pull", "s3://jobs/"+to, "--store", back)
		commq(t, "runs", "check", "cg.A.4", "--store", back)
	}
	if halves < 2 {
		t.Errorf("killed in the middle %d times of 5", halves)
	}
}
