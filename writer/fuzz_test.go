package writer_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/commq/commq/internal/mutate"
	"github.com/commq/commq/schema/schematest"
	"github.com/commq/commq/writer"
)

// FuzzRunEdited writes runs with rows and a manifest that no program makes, with the right checksums of all files: they
// are checked to the end, and compacted without new problems.
func FuzzRunEdited(f *testing.F) {
	f.Add(uint8(4), []byte{0, 9, 2, 8}, []byte{})
	f.Add(uint8(5), []byte{0, 2, 2, 13, 0, 40, 0, 1}, []byte{0, 9, 0, 6})
	f.Fuzz(func(t *testing.T, which uint8, edits, ofManifest []byte) {
		store := t.TempDir()
		r, err := writer.Create(store, "edited", writer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Abort()
		batches := schematest.ParseRows(t, schematest.TinyRun)
		edited := batches[int(which)%len(batches)]
		mutate.Value(edited, edits)
		if !schematest.HasWholeRows(edited) {
			return
		}
		for _, b := range batches {
			if b.Table().Derived || b.Len() == 0 {
				continue
			}
			if err := r.Write(0, b); err != nil {
				return
			}
		}
		if err := r.Commit(context.Background(), schematest.TinyManifest()); err != nil {
			return
		}
		dir := filepath.Join(store, "edited")
		if err := writer.VerifyRun(context.Background(), dir); err != nil {
			t.Errorf("a new run is damaged: %v", err)
		}
		manifest := filepath.Join(dir, "manifest.json")
		if err := errors.Join(mutate.JSONFile(manifest, ofManifest), schematest.SealManifest(manifest)); err != nil {
			t.Fatal(err)
		}
		before, err := writer.Check(context.Background(), dir)
		if err != nil {
			return
		}
		if err := writer.MakeProfile(context.Background(), dir); err != nil {
			return
		}
		if _, _, err := writer.Compact(context.Background(), dir, 0, nil); err != nil {
			return
		}
		after, err := writer.Check(context.Background(), dir)
		if len(before) == 0 && (err != nil || len(after) > 0) {
			t.Errorf("a run without problems has some after it was compacted: %v, %v", after, err)
		}
	})
}
