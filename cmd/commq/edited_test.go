package main

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/commq/commq/internal/mutate"
	"github.com/commq/commq/schema/schematest"
	"github.com/commq/commq/writer"
)

// ofEdited are command lines that read a run "edited", without the store and where to write.
var ofEdited = [][]string{
	{"simulate", "edited", "--machine", "myrinet"},
	{"simulate", "edited", "--machine", "flat", "--dialect", "dimemas5", "--critical-path"},
	{"simulate", "edited", "--machine", "flat", "--name", "simulated"},
	{"diagnose", "edited"},
	{"detect", "edited"},
	{"phases", "edited"},
	{"critical-path", "edited"},
	{"calibrate", "edited"},
	{"export", "signature", "edited", "-o", "to"},
	{"export", "dim", "edited", "-o", "to"},
	{"export", "prv", "edited", "-o", "to.prv"},
	{"export", "replay", "edited", "-o", "to"},
	{"export", "perfetto", "edited", "-o", "to"},
	{"export", "otf2", "edited", "-o", "to"},
	{"export", "tit", "edited", "-o", "to"},
	{"export", "goal", "edited", "-o", "to"},
	{"export", "chakra", "edited", "-o", "to"},
	{"doctor", "--run", "edited"},
}

// FuzzCommandsOnEditedRuns gives commands runs with rows and a manifest that no program makes, and the right checksums
// of all files: each ends with an answer or an error.
func FuzzCommandsOnEditedRuns(f *testing.F) {
	for i := range ofEdited {
		f.Add(uint8(i), uint8(4), []byte{}, []byte{})
		f.Add(uint8(i), uint8(4), []byte{0, 9, 2, 8, 1, 3, 0, 12}, []byte{})
		f.Add(uint8(i), uint8(4), []byte{}, []byte{0, 9, 2, 8, 1, 3, 0, 12})
	}
	f.Fuzz(func(t *testing.T, which, table uint8, edits, ofManifest []byte) {
		store := t.TempDir()
		if !writeEdited(t, store, int(table), edits) {
			return
		}
		manifest := filepath.Join(store, "edited", "manifest.json")
		if err := errors.Join(mutate.JSONFile(manifest, ofManifest), schematest.SealManifest(manifest)); err != nil {
			t.Fatal(err)
		}
		line := append([]string{"--store", store, "--quiet"}, ofEdited[int(which)%len(ofEdited)]...)
		if last := len(line) - 1; line[last-1] == "-o" {
			line[last] = filepath.Join(t.TempDir(), line[last])
		}
		if x := runLine(line...); x.status < 0 || x.status > 2 || x.status == 2 && x.stderr == "" {
			t.Errorf("%q: exit status %d, %s", line[3:], x.status, x.stderr)
		}
	})
}

// writeEdited writes schematest.TinyRun with a changed table into a store; false if it cannot be written.
func writeEdited(t *testing.T, store string, table int, edits []byte) bool {
	t.Helper()
	r, err := writer.Create(store, "edited", writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Abort()
	batches := schematest.ParseRows(t, schematest.TinyRun)
	edited := batches[table%len(batches)]
	mutate.Value(edited, edits)
	if !schematest.HasWholeRows(edited) {
		return false
	}
	for _, b := range batches {
		if b.Table().Derived || b.Len() == 0 {
			continue
		}
		if err := r.Write(0, b); err != nil {
			return false
		}
	}
	return r.Commit(context.Background(), schematest.TinyManifest()) == nil
}
