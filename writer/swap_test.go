package writer_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/commq/commq/internal/disk"
	"github.com/commq/commq/internal/disk/diskfail"
	"github.com/commq/commq/writer"
)

// TestReplacedRunStaysWhereNamesAreNotDurable lets a store refuse to make names durable when a new run has taken the
// name of an old one. The old run's files must stay: after a power failure the name could lead to them again. The
// next replacement clears up.
func TestReplacedRunStaysWhereNamesAreNotDurable(t *testing.T) {
	replaced := func(faults ...diskfail.Fault) (store string, operations int, err error) {
		store = t.TempDir()
		if err := tiny(t, store, "old", 9, writer.Options{}); err != nil {
			t.Fatal(err)
		}
		d, err := diskfail.New(store, faults...)
		if err != nil {
			t.Fatal(err)
		}
		err = d.Run(func() error { return tiny(t, store, "old", 5, writer.Options{Replace: true}) })
		return store, d.Count(), err
	}
	_, count, err := replaced()
	if err != nil {
		t.Fatal(err)
	}
	for at := count - 30; at > 0; at-- {
		store, _, err := replaced(diskfail.Fault{At: at, Err: syscall.EROFS, From: true})
		if err == nil || !strings.Contains(err.Error(), "syncdir "+store+":") {
			continue
		}
		if err := wantTags(store, "old", 5); err != nil {
			t.Errorf("failures from operation %d of %d on: %v", at, count, err)
		}
		if err := isWhole(filepath.Join(store, ".old.partial")); err != nil {
			t.Errorf("failures from operation %d of %d on: the old run: %v", at, count, err)
		}
		if err := tiny(t, store, "old", 7, writer.Options{Replace: true}); err != nil {
			t.Errorf("a second try: %v", err)
		}
		if err := wantTags(store, "old", 7); err != nil {
			t.Error(err)
		}
		wantOnly(t, store, "old")
		return
	}
	t.Error("no failure came between the exchange and the sync of the store")
}

// wantOnly checks the names in a store.
func wantOnly(t *testing.T, store string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(store)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, names) {
		t.Errorf("the store has %q, want %q", got, names)
	}
}

// TestRemoveTakesReplacedRunsToo removes a run whose replaced predecessors were left behind.
func TestRemoveTakesReplacedRunsToo(t *testing.T) {
	store := t.TempDir()
	for _, name := range []string{"r", "a", "b"} {
		if err := tiny(t, store, name, 5, writer.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"a": ".r.partial", "b": ".r.partial.old"} {
		if err := os.Rename(filepath.Join(store, from), filepath.Join(store, to)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Remove(store, "r"); err != nil {
		t.Fatal(err)
	}
	wantOnly(t, store)
}

// TestRemoveLeavesPartsInUse removes a run while a process writes parts of the one that will replace it.
func TestRemoveLeavesPartsInUse(t *testing.T) {
	store := t.TempDir()
	if err := tiny(t, store, "r", 5, writer.Options{}); err != nil {
		t.Fatal(err)
	}
	p, err := writer.OpenParts(store, "r", "job", true)
	if err != nil {
		t.Fatal(err)
	}
	release, err := p.Lock("0")
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Remove(store, "r"); err == nil || !strings.Contains(err.Error(), "is being written in parts") {
		t.Errorf("while a part is written: %v", err)
	}
	wantOnly(t, store, ".r.parts", "r")
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if err := writer.Remove(store, "r"); err != nil {
		t.Errorf("when no process writes: %v", err)
	}
	wantOnly(t, store)
}

// before is a layer that calls do once, before it creates the file at path.
type before struct {
	path string
	do   func()
}

func (b *before) Do(op *disk.Op, do func() error) error {
	if act := b.do; act != nil && op.Kind == disk.OpCreate && op.Path == b.path {
		b.do = nil
		act()
	}
	return do()
}

// TestMakeProfileOfARunThatWasReplaced replaces a run just before its lock is taken to make its profile again: the new
// run's files must get the new run's manifest.
func TestMakeProfileOfARunThatWasReplaced(t *testing.T) {
	store := t.TempDir()
	if err := tiny(t, store, "old", 9, writer.Options{}); err != nil {
		t.Fatal(err)
	}
	replace := func() {
		if err := tiny(t, store, "old", 5, writer.Options{Replace: true}); err != nil {
			t.Error(err)
		}
	}
	defer disk.Over(store, &before{filepath.Join(store, ".old.lock"), replace})()
	if err := writer.MakeProfile(t.Context(), filepath.Join(store, "old")); err != nil {
		t.Fatal(err)
	}
	if err := wantTags(store, "old", 5); err != nil {
		t.Error(err)
	}
	wantOnly(t, store, "old")
}
