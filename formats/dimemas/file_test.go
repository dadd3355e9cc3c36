package dimemas

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/writer"
)

// A file becomes a run named like it, unless told otherwise. What is no regular file cannot be read several times.
func TestImportFile(t *testing.T) {
	dir := t.TempDir()
	store, path := filepath.Join(dir, "runs"), filepath.Join(dir, "pair of two.dim")
	text := file("d:1:1:2:0:1 1:0.5 10:0:1:0:0:0:0 1:0", "1:0.25 10:0:1:0:0:0:0 1:0")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, folder := range map[string]string{"": writer.NameFor("pair of two"), "other": "other"} {
		m, err := ImportFile(context.Background(), path, store, name, Options{})
		if err != nil || m.Ranks != 2 || m.Origin.Trace.File != "pair of two.dim" {
			t.Fatalf("%q: %+v, %v", name, m, err)
		}
		if onDisk, err := writer.ReadManifest(filepath.Join(store, folder)); err != nil || onDisk.Digest != m.Digest {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := ImportFile(context.Background(), dir, store, "", Options{}); err == nil ||
		!strings.Contains(err.Error(), dir+" is not a regular file") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := ImportFile(context.Background(), path, store, "other", Options{}); err == nil ||
		!strings.Contains(err.Error(), `run "other" already exists`) {
		t.Errorf("a name that is taken: %v", err)
	}
}
