package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/schema/schematest"
)

// changedRun copies ft.W.16, as a run of this name in a store of its own, with a change of its manifest.
func changedRun(t *testing.T, name, was, is string) (store string) {
	t.Helper()
	store = t.TempDir()
	dir := filepath.Join(store, name)
	err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "testdata", "runs", "ft.W.16")))
	file := filepath.Join(dir, "manifest.json")
	manifest, err2 := os.ReadFile(file)
	changed := strings.Replace(string(manifest), was, is, 1)
	if err := errors.Join(err, err2, os.WriteFile(file, []byte(changed), 0o666), schematest.SealManifest(file)); err != nil {
		t.Fatal(err)
	}
	if changed == string(manifest) {
		t.Fatalf("the manifest has no %s", was)
	}
	return store
}

// TestAnswersNameWhatRunsLack: whatever reads a run that lacks calls says so on stderr, once; of others it is silent.
func TestAnswersNameWhatRunsLack(t *testing.T) {
	store := changedRun(t, "some", `"dropped": 0`, `"dropped": 1000000`)
	whole := changedRun(t, "some", `"record": "all"`, `"record":  "all"`)
	other := filepath.Join(changedRun(t, "other", `"record": "all"`, `"record":  "all"`), "other")
	page := filepath.Join(t.TempDir(), "some.html")
	prv := filepath.Join(t.TempDir(), "some.prv")
	for _, line := range [][]string{
		{"query", "density", "some"}, {"query", "calls", "some", "--format", "json"}, {"detect", "some"},
		{"sql", "some", "SELECT count(*) FROM events"}, {"export", "prv", "some", "-o", prv, "--replace"},
		{"diff", "some", other}, {"diff", "some", "some", "--format", "json"}, {"diff", "--wire", "some", other},
		{"report", "some", "-o", page, "--replace"},
	} {
		status, _, errs := commandLine("", append(line, "--store", store)...)
		if status != 0 || strings.Count(errs, "commq: some lacks 1,000,000 of 1,0") != 1 {
			t.Errorf("%q: status %d, stderr %q", line, status, errs)
		}
		if text, err := os.ReadFile(page); line[0] == "report" && strings.Count(string(text),
			"some lacks 1,000,000 of 1,0") != 1 {
			t.Errorf("the page does not say once what the run lacks: %v", err)
		}
		status, _, errs = commandLine("", append(line, "--store", whole)...)
		if status != 0 || strings.Contains(errs, "lacks") {
			t.Errorf("%q of a whole run: status %d, stderr %q", line, status, errs)
		}
	}
	_, _, errs := commandLine("", "runs", "check", "--store", store, "some")
	if !strings.Contains(errs, "lacks 1,000,000") {
		t.Errorf("runs check: %s", errs)
	}
	_, list, _ := commandLine("", "runs", "list", "--store", store)
	if !strings.Contains(list, "1,000,000 calls lost") {
		t.Errorf("runs list:\n%s", list)
	}
}
