package run

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/schematest"
	"github.com/commq/commq/writer"
)

// TestReplacedRunsAreNotReadOn opens a run and replaces it by another: no table of that is read as the first one's.
func TestReplacedRunsAreNotReadOn(t *testing.T) {
	store := t.TempDir()
	write := func(tag int32) {
		t.Helper()
		w, err := writer.Create(store, "r", writer.Options{Replace: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Abort()
		for _, b := range schematest.ParseRows(t, schematest.TinyRun) {
			if m, ok := b.(*schema.Messages); ok {
				m.Tag[0] = tag
			}
			if !b.Table().Derived {
				if err := w.Write(0, b); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.Commit(t.Context(), schematest.TinyManifest()); err != nil {
			t.Fatal(err)
		}
	}
	write(9)
	r, err := Open(t.Context(), filepath.Join(store, "r"), Need{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	readers := map[string]func() error{
		"Events":   func() error { return r.Events(ctx, "rank")(func(*schema.Events) error { return nil }) },
		"Messages": func() error { return r.Messages(ctx, "src")(func(*schema.Messages) error { return nil }) },
		"MessagesLate": func() error {
			return r.MessagesLate(ctx, []string{"src", "tag"}, []string{"tag"},
				func(*schema.Messages, schema.Rest) error { return nil })
		},
		"Parts":         func() error { return r.Parts(ctx)(func(*schema.Parts) error { return nil }) },
		"EventEpochs":   func() error { _, err := r.EventEpochs("rank"); return err },
		"MessageEpochs": func() error { _, err := r.MessageEpochs("src"); return err },
		"Rows":          func() error { _, err := Rows[schema.Comm](ctx, r, &schema.CommsTable); return err },
		"Callsites":     func() error { return r.Callsites(ctx, func(*schema.Callsites) error { return nil }) },
		"NeverCalls":    func() error { _, err := r.NeverCalls(ctx, schema.CallSend); return err },
		"FindDelivered": func() error { _, err := FindDelivered(ctx, r.Opened()); return err },
	}
	for name, read := range readers {
		if err := read(); err != nil {
			t.Errorf("%s before: %v", name, err)
		}
	}
	write(5)
	for name, read := range readers {
		if err := read(); err == nil || !strings.Contains(err.Error(), "the run was replaced while it was read") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
