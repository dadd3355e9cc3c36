package writer_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

const wasReplaced = "the run was replaced while it was read"

// TestRunsThatAreReplacedBetweenTables replaces a run after a reader has opened it: its next table is refused. Derived
// tables that are made again change nothing.
func TestRunsThatAreReplacedBetweenTables(t *testing.T) {
	store := t.TempDir()
	dir := filepath.Join(store, "r")
	write := func(tag int32) {
		t.Helper()
		if err := tiny(t, store, "r", tag, writer.Options{Replace: true}); err != nil {
			t.Fatal(err)
		}
	}
	write(9)
	m, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	opened := writer.Opened{Dir: dir, Digest: m.Digest}
	read := func() (tables, epochs error) {
		_, epochs = opened.ReadEpochs(&schema.EventsTable, 10, "rank")
		return opened.ReadTable(t.Context(), &schema.MessagesTable, 10, func(schema.Batch) error { return nil }), epochs
	}
	if err := writer.MakeProfile(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if tables, epochs := read(); tables != nil || epochs != nil {
		t.Errorf("with new derived tables: %v, %v", tables, epochs)
	}
	write(5)
	tables, epochs := read()
	for _, err := range []error{tables, epochs} {
		if err == nil || !strings.Contains(err.Error(), wasReplaced) {
			t.Errorf("after the run was replaced: %v", err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if tables, _ := read(); tables == nil || !strings.Contains(tables.Error(), "removed while it was read") {
		t.Errorf("after the run was removed: %v", tables)
	}
}

// TestRunsThatAreReplacedWithinATable replaces a run while one of its tables is read, to whose end an error comes. A
// reader's own error stays.
func TestRunsThatAreReplacedWithinATable(t *testing.T) {
	own := errors.New("own")
	for _, end := range []error{nil, own} {
		store := t.TempDir()
		dir := filepath.Join(store, "r")
		if err := tiny(t, store, "r", 9, writer.Options{}); err != nil {
			t.Fatal(err)
		}
		replace := func(schema.Batch) error {
			return errors.Join(tiny(t, store, "r", 5, writer.Options{Replace: true}), end)
		}
		err := writer.ReadTable(t.Context(), dir, &schema.MessagesTable, 10, replace)
		if err == nil || !strings.Contains(err.Error(), wasReplaced) || errors.Is(err, own) != (end != nil) {
			t.Errorf("ReadTable: %v", err)
		}
		e, err := writer.ReadEpochs(dir, &schema.MessagesTable, 10, "tag")
		if err != nil {
			t.Fatal(err)
		}
		replace = func(schema.Batch) error {
			return errors.Join(tiny(t, store, "r", 7, writer.Options{Replace: true}), end)
		}
		if err = e.All(t.Context(), replace); err == nil || !strings.Contains(err.Error(), wasReplaced) || errors.Is(err, own) != (end != nil) {
			t.Errorf("ReadEpochs: %v", err)
		}
	}
}
