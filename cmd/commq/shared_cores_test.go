package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/diagnose"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/run"
)

// Answers about times warn of the runs that commq diagnose warns of, with the same share, and of no others.
func TestSharedCoresLikeDiagnose(t *testing.T) {
	store := filepath.Join("..", "..", "testdata", "runs")
	entries, err := os.ReadDir(store)
	if err != nil {
		t.Fatal(err)
	}
	compared, warned := 0, 0
	for _, e := range entries {
		found, err := run.Find(store, e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if m := found.Manifest; m.Record != "all" || m.TimeResolutionNs > 1 {
			continue // diagnose refuses it
		}
		r, err := run.Open(t.Context(), found.Dir, diagnose.Need)
		if err != nil {
			t.Fatal(err)
		}
		d, err := diagnose.Run(context.Background(), r, diagnose.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		for _, w := range d.Warnings {
			if _, rest, cut := strings.Cut(w, "the ranks had a CPU for "); cut {
				want, _, _ = strings.Cut(rest, " of the time")
			}
		}
		status, _, errs := commandLine("", "query", "efficiency", "--store", store, e.Name(), "--format", "json")
		_, rest, noted := strings.Cut(errs, "commq: between calls the ranks of "+e.Name()+" had a CPU for ")
		got, _, _ := strings.Cut(rest, " of the time")
		if status != 0 || got != want || noted != (want != "") {
			t.Errorf("%s: status %d, stderr %q; diagnose says %q", e.Name(), status, errs, want)
		}
		compared++
		if noted {
			warned++
		}
	}
	if compared < 8 || warned < 4 || warned == compared {
		t.Errorf("%d runs compared, %d with shared cores", compared, warned)
	}
}

// The note is about times, on stderr, and not with --quiet.
func TestSharedCoresNote(t *testing.T) {
	store := filepath.Join("..", "..", "testdata", "runs")
	const note = "commq: between calls the ranks of mg.W.16 had a CPU for 39.6 % of the time only, usually because there were " +
		"more ranks than cores: measured times include waiting for a core; commq simulate mg.W.16 --machine ethernet-40g --name NAME " +
		"makes a run with a core for each rank\n"
	for _, c := range []struct {
		line string
		want int
	}{
		{"query callsite-time mg.W.16", 1},
		{"query callsite-time mg.W.16 --format csv", 1},
		{"query wait-states mg.W.16 uneven.4 --format csv", 1},
		{"critical-path mg.W.16 --format json", 1},
		{"phases mg.W.16 --threshold 0", 1},
		{"calibrate mg.W.16", 1},
		{"calibrate mg.W.16 --format json", 1},
		{"query late-senders mg.W.16 --quiet", 0},
		{"critical-path mg.W.16 --quiet", 0},
		{"calibrate mg.W.16 --quiet", 0},
		{"phases uneven.4", 0},
		{"query density mg.W.16", 0},
		{"query compute mg.W.16", 0},
		{"query callsite-time uneven.4", 0},
	} {
		status, out, errs := commandLine("", append(strings.Fields(c.line), "--store", store)...)
		if status != 0 || strings.Count(errs, note) != c.want || strings.Contains(out, "had a CPU") {
			t.Errorf("%s: status %d, stderr %q; want the note %d times", c.line, status, errs, c.want)
		}
	}
}

// Of many runs the note comes once, and the others are counted.
func TestSharedCoresOfManyRuns(t *testing.T) {
	var errs strings.Builder
	a := &app{stderr: &errs}
	var shared []queries.SharedCores
	for _, name := range []string{"a.1", "a.2", "a.3", "a.4"} {
		shared = append(shared, queries.SharedCores{Run: name})
	}
	noteSharedCores(a, shared)
	if got := errs.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "a.1") ||
		!strings.Contains(got, "commq: the ranks of 3 more runs likewise, from a.2 to a.4\n") {
		t.Error(got)
	}
}

// What ranks with a core each neither compute nor do in MPI is missing in answers about computing and in simulations,
// which say so.
func TestLeftOutNote(t *testing.T) {
	store := t.TempDir()
	found, err := run.Find(filepath.Join("..", "..", "testdata", "runs"), "mg.W.16")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(store, "asleep")
	if err := os.CopyFS(dir, os.DirFS(found.Dir)); err != nil {
		t.Fatal(err)
	}
	host := func(cores string) {
		text, err := os.ReadFile(filepath.Join(found.Dir, "manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(text), `"origin": {`,
			`"origin": {"cores": [{"host": 0, "ranks": 16, `+cores+`}],`, 1)
		if err := os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const note = "commq: between calls the ranks of asleep had a CPU for 39.6 % of the time only although there was a core for each " +
		"(other processes, a limit of CPU time, files, sleep; commq capture --clock wall counts such time as computing): " +
		"compute times are without the rest\n"
	const (
		oneEach   = `"cores": 16, "least": 1, "most": 1`
		twoForAll = `"cores": 2, "least": 2, "most": 2, "sharing_ranks": 16, "shared_cores": 2`
	)
	for _, c := range []struct {
		line, cores string
		want        int
	}{
		{"query compute asleep", oneEach, 1},
		{"query callsite-time asleep", oneEach, 0},
		{"simulate asleep --machine flat", oneEach, 1},
		{"simulate asleep --machine flat --quiet", oneEach, 0},
		{"query compute asleep", twoForAll, 0},
		{"simulate asleep --machine flat", twoForAll, 0},
	} {
		host(c.cores)
		status, _, errs := commandLine("", append(strings.Fields(c.line), "--store", store)...)
		if status != 0 || strings.Count(errs, note) != c.want {
			t.Errorf("%s with %s: status %d, stderr %q; want the note %d times", c.line, c.cores, status, errs, c.want)
		}
	}
}
