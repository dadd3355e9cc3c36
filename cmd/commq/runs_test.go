package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/schematest"
	"github.com/commq/commq/writer"
)

// storeOfRuns makes a store with a run of one rank that makes one call, under each of the names.
func storeOfRuns(t *testing.T, names ...string) string {
	t.Helper()
	store := t.TempDir()
	for _, name := range names {
		r, err := writer.Create(store, name, writer.Options{Check: true})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Abort()
		ranks, comms, events := &schema.RankInfos{}, &schema.Comms{}, &schema.Events{}
		ranks.Append(&schema.RankInfo{Threads: 1, Ended: schema.EndedFinalized, Events: 1, Polls: 1234})
		comms.Append(&schema.Comm{Name: "MPI_COMM_WORLD", Parent: schema.NullInt32, CartDims: schema.NullText,
			CartPeriods: schema.NullText, GraphEdges: schema.NullText})
		e := schema.NullEvent
		e.Call, e.Class, e.StartNs, e.EndNs = int16(schema.CallInit), int16(schema.ClassOther), 0, 2_500_000_000
		events.Append(&e)
		for _, b := range []schema.Batch{ranks, comms, events} {
			if err := r.Write(0, b); err != nil {
				t.Fatal(err)
			}
		}
		status := 3
		m := &schema.Manifest{Ranks: 1, TimeOrigin: "measured", ComputeClock: "cpu", Record: "all", Hash: "none",
			Ended: "finalized", EndNs: e.EndNs, Epochs: 1,
			Counts: schema.Counts{Calls: 1, Polls: 1234}, Warnings: []string{"the clock drifted"},
			Origin: schema.Origin{Command: []string{"./lonely", "-v"}, MPI: "Open MPI v4.1.4\nand more",
				Hosts: []string{"node1"}, ExitStatus: &status, Started: "2026-01-02T03:04:05Z"}}
		if err := r.Commit(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// commqRuns runs a command line under commq runs and returns what it printed and its exit status.
func commqRuns(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs strings.Builder
	status = execute(context.Background(), append([]string{"runs"}, args...), strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), status
}

func wantRuns(t *testing.T, status int, stdout, stderr string, args ...string) {
	t.Helper()
	out, errs, got := commqRuns(t, args...)
	if got != status || !strings.Contains(out, stdout) || !strings.Contains(errs, stderr) {
		t.Errorf("commq runs %s: exit status %d, stdout %q, stderr %q; want %d, %q, %q", strings.Join(args, " "), got,
			out, errs, status, stdout, stderr)
	}
}

func TestRunsList(t *testing.T) {
	store := storeOfRuns(t, "b.3", "a.3")
	out, _, status := commqRuns(t, "list", "--store", store)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != 0 || len(lines) != 3 || !strings.HasPrefix(lines[0], "run ") ||
		!strings.HasPrefix(lines[1], "a.3 ") || !strings.HasPrefix(lines[2], "b.3 ") {
		t.Errorf("exit status %d:\n%s", status, out)
	}
	out, _, _ = commqRuns(t, "list", "--store", store, "--format", "json")
	var listed []listedRun
	if err := json.Unmarshal([]byte(out), &listed); err != nil {
		t.Fatal(err)
	}
	m, err := writer.ReadManifest(filepath.Join(store, "a.3"))
	if err != nil {
		t.Fatal(err)
	}
	want := listedRun{Name: "a.3", Ranks: 1, Calls: 1, TimeOrigin: "measured", Record: "all", Ended: "finalized",
		Started: "2026-01-02T03:04:05Z", FileBytes: m.FileBytes(), Digest: m.Digest}
	if d := cmp.Diff(want, listed[0]); d != "" || len(listed) != 2 {
		t.Errorf("%d runs, the first (-want +got):\n%s", len(listed), d)
	}
	out, _, _ = commqRuns(t, "list", "--store", store, "--format", "csv")
	if want := strings.Join(listedColumns[:],
		",") + "\na.3,1,1,0,0,0,measured,all,finalized,2026-01-02T03:04:05Z,"; !strings.HasPrefix(out, want) {
		t.Errorf("csv is %q, want it to begin with %q", out, want)
	}
}

func TestRunsListOfNothing(t *testing.T) {
	store := filepath.Join(t.TempDir(), "none")
	wantRuns(t, 0, "", "no runs in "+store, "list", "--store", store)
	wantRuns(t, 0, "[]\n", "", "list", "--store", store, "--format", "json")
	wantRuns(t, 2, "", `--format yaml: want one of table, json, csv`, "list", "--format", "yaml")
	wantRuns(t, 2, "", `runs list: unexpected argument "extra"; want`, "list", "extra")
}

func TestRunsListLeavesOutBrokenOnes(t *testing.T) {
	store := storeOfRuns(t, "a", "b")
	if err := os.WriteFile(filepath.Join(store, "a", "manifest.json"), []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	wantRuns(t, 0, "\nb  ", "left out: "+filepath.Join(store, "a"), "list", "--store", store)
	if err := os.Rename(filepath.Join(store, "a"), filepath.Join(store, "my a")); err != nil {
		t.Fatal(err)
	}
	why := filepath.Join(store, "my a") + `: run name "my a" has the character ' '; use letters, digits and . _ - + @ , :; ` +
		"rename the folder"
	wantRuns(t, 0, "\nb  ", "left out: "+why, "list", "--store", store)
	wantRuns(t, 2, "", why, "show", "--store", store, "my a")
}

func TestRunsShow(t *testing.T) {
	store := storeOfRuns(t, "lonely.1")
	out, _, status := commqRuns(t, "show", "--store", store, "lonely.1")
	screen := regexp.MustCompile(` +`).ReplaceAllString(out, " ")
	for _, want := range []string{"run lonely.1\n", "command ./lonely -v\n", "mpi Open MPI v4.1.4\n",
		"ranks 1 on 1 host\n",
		"ended finalized, exit status 3\n", "time 2.5 s measured, compute clock cpu, 1 epoch\n", "calls 1\n",
		"failed polls 1,234\n", "warning the clock drifted\n", "\nevents 1 ", "\ndatatypes 0 "} {
		if !strings.Contains(screen, want) || status != 0 {
			t.Errorf("show does not print %q, but (exit status %d):\n%s", want, status, out)
		}
	}
	out, _, _ = commqRuns(t, "show", filepath.Join(store, "lonely.1"), "--format", "json")
	var m schema.Manifest
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		t.Fatal(err)
	}
	if want, _ := writer.ReadManifest(filepath.Join(store, "lonely.1")); !cmp.Equal(&m, want) {
		t.Errorf("json is not the manifest:\n%s", cmp.Diff(want, &m))
	}
	wantRuns(t, 0, "table,rows,files,file_bytes,digest\nevents,1,1,", "", "show", "--store", store, "lonely.1",
		"--format", "csv")
	wantRuns(t, 2, "", "did you mean lonely.1?", "show", "--store", store, "lonely.2")
	wantRuns(t, 2, "", "nothing given; want names of runs", "show")
}

func TestRunsCheck(t *testing.T) {
	store := storeOfRuns(t, "good", "bad")
	path := filepath.Join(store, "bad", "manifest.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), `"polls": 1234`, `"polls": 1235`, 1)),
		0o666); err != nil {
		t.Fatal(err)
	}
	if err := schematest.SealManifest(path); err != nil {
		t.Fatal(err)
	}
	wantRuns(t, 0, "good: ok\n", "", "check", "--store", store, "good")
	wantRuns(t, 1, "bad: polls (the sum of ranks.polls): found 1234; the manifest says 1235 (counts)\n", "", "check",
		"--store", store, "good", "bad")
	wantRuns(t, 2, "", "not a run", "check", store)
	wantRuns(t, 2, "", "nothing given; want names of runs", "check")
}

// A run that was copied in part is listed with a remark and the size of what is there.
func TestRunsListIncomplete(t *testing.T) {
	store := storeOfRuns(t, "half", "whole")
	if err := os.Truncate(filepath.Join(store, "half", "events", "0000.parquet"), 3); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(store, "half", "comms")); err != nil {
		t.Fatal(err)
	}
	out, _, _ := commqRuns(t, "list", "--store", store)
	lines := strings.Split(out, "\n")
	if !strings.Contains(lines[1], "incomplete: 2 files missing or cut off") || strings.Contains(lines[2], "incomplete") {
		t.Error(out)
	}
	out, _, _ = commqRuns(t, "list", "--store", store, "--format", "json")
	if strings.Count(out, `"wrong_files": 2`) != 1 || strings.Count(out, `"wrong_files": 0`) != 1 {
		t.Error(out)
	}
}

func TestRunsRemove(t *testing.T) {
	store := storeOfRuns(t, "a", "b")
	for _, path := range []string{filepath.Join(store, "a"), filepath.Join(store, "a") + "/", filepath.Join(store, "[a]")} {
		wantRuns(t, 2, "", "to remove it: commq runs remove --store "+store+" a\n", "remove", "--store", t.TempDir(), path)
	}
	wantRuns(t, 2, "", `no run "c"`, "remove", "--store", store, "c")
	wantRuns(t, 0, "", "removed run a", "remove", "--store", store, "a")
	wantRuns(t, 2, "", `no run "a"`, "remove", "--store", store, "a")
	out, _, _ := commqRuns(t, "list", "--store", store, "--format", "csv")
	if strings.Count(out, "\n") != 2 || !strings.Contains(out, "\nb,") {
		t.Errorf("after the removal: %s", out)
	}
}

// Every command under runs has an example, and completes run names if its arguments are runs.
func TestRunsHelpAndCompletion(t *testing.T) {
	store := storeOfRuns(t, "ring.3")
	for _, name := range []string{"list", "show", "check", "remove"} {
		wantRuns(t, 0, "Examples:\n  commq runs "+name, "", name, "--help")
	}
	for _, name := range []string{"show", "check", "remove"} {
		var out, errs strings.Builder
		execute(context.Background(), []string{"__complete", "--store", store, "runs", name, ""}, strings.NewReader(""),
			&out, &errs)
		if !strings.HasPrefix(out.String(), "ring.3\n") {
			t.Errorf("completion of %s offers %q", name, out.String())
		}
	}
}

func TestReadableNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 617856: "617,856",
		-1234567: "-1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1,023 B", 15360: "15.4 kB", 1 << 20: "1.05 MB",
		999_999: "1.00 MB", 5 << 40: "5.50 TB"} {
		if got := inBytes(n); got != want {
			t.Errorf("inBytes(%d) = %s, want %s", n, got, want)
		}
	}
}

// The summary and runs show describe virtual times: the machine, and choices that real time decided.
func TestVirtualTimesInWords(t *testing.T) {
	m := &schema.Manifest{Ranks: 3, TimeOrigin: "virtual", ComputeClock: "none", EndNs: 7097, Epochs: 1,
		Ended:  "finalized",
		Counts: schema.Counts{Choices: 4097, OutOfOrder: 9, EarlyCollectives: 1},
		Origin: schema.Origin{Name: "r", Simulation: &schema.Simulation{Ranks: 2, Machine: "/m/net.yaml",
			Digest: strings.Repeat("abc", 9)}}}
	var short, long strings.Builder
	printSummary(&short, m)
	a := &app{stdout: &long}
	if err := showScreen(a, run.Found{Name: "r", Dir: "/runs/r", Manifest: m}); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ where, text, want string }{
		{"summary", short.String(), "time          7.10 us virtual, machine /m/net.yaml (SHA-256 abcabcabcabc...), 2 simulator ranks\n"},
		{"summary", short.String(), "open choices  4,097 (MPI_ANY_SOURCE, MPI_Waitany and their like), 9 out of virtual-time order\n"},
		{"summary", short.String(), "early         1 nonblocking collective in a test\n"},
		{"show", long.String(), "time               7.10 us virtual, compute clock none, 1 epoch\n"},
		{"show", long.String(), "open choices       4,097\n"},
		{"show", long.String(), "out of order       9\n"},
		{"show", long.String(), "early collectives  1\n"},
	} {
		if !strings.Contains(x.text, x.want) {
			t.Errorf("%s: no %q in\n%s", x.where, x.want, x.text)
		}
	}
}

// The table with all columns has those of csv, by the same names.
func TestColumnsOfRunsList(t *testing.T) {
	var names []string
	for _, c := range allListColumns {
		names = append(names, c.Name)
	}
	if !slices.Equal(names, listedColumns[:]) {
		t.Errorf("%q, want %q", names, listedColumns)
	}
}
