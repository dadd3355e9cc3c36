package diagnose

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/commq/commq/internal/kept"
	"github.com/commq/commq/models"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/run"
)

// diagnosisText is the diagnosis of the run in a folder, with all evidence, and whether its rows were read for it.
func diagnosisText(t *testing.T, dir string, o Options) (text string, read bool) {
	t.Helper()
	o.Progress = func(step string) {
		read = read || strings.HasPrefix(step, "explain waits") || strings.HasPrefix(step, "read ")
	}
	r, err := run.Open(context.Background(), dir, Need)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Run(context.Background(), r, o)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), read
}

// A diagnosis from sums that were kept is that from the rows, whether gains are simulated or bounds, and on any
// machine.
func TestKeptSumsGiveTheSameDiagnosis(t *testing.T) {
	flat, err := models.Named("flat")
	if err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob("../testdata/runs/*")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, dir := range all {
		if _, err := run.Open(context.Background(), dir, Need); err != nil {
			continue // it does not have what a diagnosis needs
		}
		compared++
		options := []Options{{MostCalls: 1}, {MostCalls: 1, Finding: 1}, {MostCalls: 1, Target: &simulate.Target{Machine: flat}}}
		if filepath.Base(dir) == "uneven.4" {
			options = append(options, Options{})
		}
		for _, o := range options {
			want, _ := diagnosisText(t, dir, o)
			o.Kept = kept.ResultsOf(dir, t.TempDir())
			for _, wantRead := range []bool{true, false} {
				got, read := diagnosisText(t, dir, o)
				if got != want {
					t.Errorf("%s: %s\nwant %s", dir, got, want)
				}
				if read != wantRead {
					t.Errorf("%s: rows read: %v, want %v", dir, read, wantRead)
				}
			}
		}
	}
	if compared < 5 {
		t.Errorf("%d runs were compared", compared)
	}
}

// Sums of a changed run and damaged ones are made again. A run that cannot be written is diagnosed all the same, and
// nothing is ever written into a run.
func TestKeptSumsAreMadeAgain(t *testing.T) {
	dir, in := filepath.Join(t.TempDir(), "uneven.4"), filepath.Join(t.TempDir(), "results")
	if err := os.CopyFS(dir, os.DirFS("../testdata/runs/uneven.4")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	before := filesOf(t, dir)
	want, _ := diagnosisText(t, dir, Options{MostCalls: 1, Finding: 1})
	expect := func(when string, wantRead bool) {
		t.Helper()
		got, read := diagnosisText(t, dir, Options{MostCalls: 1, Finding: 1, Kept: kept.ResultsOf(dir, in)})
		if got != want || read != wantRead {
			t.Errorf("%s: rows read: %v; %s\nwant %s", when, read, got, want)
		}
	}
	expect("first", true)
	expect("again", false)
	files := filesOf(t, in)
	if len(files) != 2 {
		t.Fatalf("kept %v, want the sums and those of the finding", files)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2] ^= 1
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expect("after damage", true)
	expect("made again after damage", false)
	events, err := filepath.Glob(filepath.Join(dir, "events", "*"))
	if err != nil || len(events) == 0 {
		t.Fatal("no events", err)
	}
	if err := os.Chtimes(events[0], time.Now(), time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	expect("of a run with another file", true)
	if after := filesOf(t, dir); !slices.Equal(before, after) {
		t.Errorf("the run has files %v, had %v", after, before)
	}
}

// filesOf lists the files of a folder and of its folders.
func filesOf(t *testing.T, dir string) (files []string) {
	t.Helper()
	for _, pattern := range []string{"*", "*/*"} {
		some, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, some...)
	}
	return files
}
