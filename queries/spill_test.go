package queries

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/commq/commq/writer"
)

// TestSpilledRowsArePrivate: the folder that an answer spills to is new, for its owner alone, and goes with the engine.
func TestSpilledRowsArePrivate(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dir := "../testdata/runs/ep.W.4"
	m, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(t.Context(), []Run{{Name: "ep.W.4", Dir: dir, Manifest: m}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(temp, "commq-query-*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	if info, err := os.Stat(found[0]); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%s: %v, %v", found[0], info.Mode(), err)
	}
	folder, err := column(t, d, "SELECT current_setting('temp_directory')")
	if err != nil || len(folder) != 1 || folder[0] != found[0] {
		t.Errorf("the engine spills to %v, %v; want %s", folder, err, found[0])
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(temp); len(left) != 0 {
		t.Errorf("%d files are left", len(left))
	}
}
