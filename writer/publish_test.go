package writer_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/schematest"
	"github.com/commq/commq/writer"
)

// TestTablesStayReadableAfterUnpublish publishes a run without parts, then one with some, and unpublishes this: the
// table parts keeps a file, with which engines find its columns. Publishing the first run again adds it too.
func TestTablesStayReadableAfterUnpublish(t *testing.T) {
	store, to := t.TempDir(), t.TempDir()
	write := func(name string, parts bool) {
		t.Helper()
		r, err := writer.Create(store, name, writer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Abort()
		batches := schematest.ParseRows(t, schematest.TinyRun)
		if parts {
			b := &schema.Parts{}
			b.Append(&schema.Part{})
			batches = append(batches, b)
		}
		for _, b := range batches {
			if !b.Table().Derived && (parts || b.Table() != &schema.PartsTable) {
				if err := r.Write(0, b); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := r.Commit(context.Background(), schematest.TinyManifest()); err != nil {
			t.Fatal(err)
		}
	}
	publish := func(name string) {
		t.Helper()
		if _, err := writer.Publish(filepath.Join(store, name), name, to, []byte("a row of runs")); err != nil {
			t.Fatal(err)
		}
	}
	wantParts := func(what, want string) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(to, "parts", "run=*", "*.parquet"))
		if err != nil || len(files) != 1 || files[0] != filepath.Join(to, "parts", want) {
			t.Errorf("%s: %q, %v; want %s", what, files, err, want)
		}
	}
	write("a", false)
	write("b", true)
	publish("a")
	wantParts("a run without rows", "run=a/empty.parquet")
	publish("b")
	wantParts("one with rows", "run=b/0000.parquet")
	if err := writer.Unpublish("b", to); err != nil {
		t.Fatal(err)
	}
	wantParts("that one unpublished", "run=a/empty.parquet")
	if err := os.RemoveAll(filepath.Join(to, "parts")); err != nil { // as an older commq left it
		t.Fatal(err)
	}
	publish("a")
	wantParts("the first one again", "run=a/empty.parquet")
	if err := writer.Unpublish("a", to); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(to, "parts")); !os.IsNotExist(err) {
		t.Errorf("without runs: %v", err)
	}
}

// TestPublishFollowsNoLinkOutOfTheRun publishes a run in which somebody has replaced a file, a folder or the manifest
// by a link to a file that is not the run's, on its file system and on another one.
func TestPublishFollowsNoLinkOutOfTheRun(t *testing.T) {
	other, err := os.MkdirTemp("/dev/shm", "commq-publish-")
	if err != nil {
		testenv.Skip(t, err.Error())
	}
	t.Cleanup(func() { os.RemoveAll(other) })
	for _, linked := range []string{"", "ranks/0000.parquet", "ranks", "manifest.json"} {
		for _, to := range []string{t.TempDir(), filepath.Join(other, filepath.Base(linked))} {
			run := filepath.Join(t.TempDir(), "rma.3")
			if err := os.CopyFS(run, os.DirFS("../testdata/runs/rma.3")); err != nil {
				t.Fatal(err)
			}
			if linked != "" {
				private := filepath.Join(t.TempDir(), "private")
				if err := os.Rename(filepath.Join(run, linked), private); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(private, filepath.Join(run, linked)); err != nil {
					t.Fatal(err)
				}
			}
			p, err := writer.Publish(run, "rma.3", to, []byte("a row of runs"))
			tables, _ := filepath.Glob(filepath.Join(to, "*", "run=rma.3"))
			if linked == "" {
				if err != nil || p.Linked+p.Copied == 0 || len(tables) == 0 {
					t.Errorf("without a link: %+v, %v, %q", p, err, tables)
				}
				continue
			}
			if err == nil || len(tables) > 0 {
				t.Errorf("%s is a link: %+v, %v, %q are published", linked, p, err, tables)
			}
		}
	}
}
