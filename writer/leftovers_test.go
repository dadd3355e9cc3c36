package writer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/commq/commq/internal/gone"
	"github.com/commq/commq/schema"
)

// TestWhatAKilledRemovalLeftIsSwept: the folder of a run whose removal was killed goes at the next removal or new run
// of any name, unless the removal goes on.
func TestWhatAKilledRemovalLeftIsSwept(t *testing.T) {
	for _, how := range []string{"remove", "create"} {
		store := t.TempDir()
		for _, name := range []string{"killed.4", "goes-on.4", "other.4"} {
			writeEmpty(t, store, name)
		}
		for _, name := range []string{"killed.4", "goes-on.4"} {
			if err := os.Rename(filepath.Join(store, name), removedFolder(store, name)); err != nil {
				t.Fatal(err)
			}
		}
		l, err := takeLock(lockPath(store, "goes-on.4"))
		if err != nil {
			t.Fatal(err)
		}
		if how == "remove" {
			if err := Remove(store, "other.4"); err != nil {
				t.Fatal(err)
			}
		} else {
			writeEmpty(t, store, "new.4")
		}
		if isFolder(removedFolder(store, "killed.4")) || !isFolder(removedFolder(store, "goes-on.4")) {
			t.Errorf("%s: there are %v", how, hidden(t, store))
		}
		if err := l.release(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestARunThatIsRemovedWhileItIsReadIsNotDamaged reads a run of which a removal has taken all, or only a table.
func TestARunThatIsRemovedWhileItIsReadIsNotDamaged(t *testing.T) {
	read := func(dir string) error {
		return ReadTable(t.Context(), dir, &schema.CommsTable, 10, func(schema.Batch) error { return nil })
	}
	dir := writeEmpty(t, t.TempDir(), "a.4")
	if err := read(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "comms", "0000.parquet")); err != nil {
		t.Fatal(err)
	}
	if err := read(dir); err == nil || gone.Is(err) {
		t.Errorf("a table is gone: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, manifestName)); err != nil {
		t.Fatal(err)
	}
	err := read(dir)
	wantError(t, err, "the run was removed while it was read")
	if !gone.Is(err) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestCompactOfALinkedRun compacts what the link leads to; the link stays one.
func TestCompactOfALinkedRun(t *testing.T) {
	elsewhere, store := t.TempDir(), t.TempDir()
	dir, _ := scattered(t, elsewhere)
	link := filepath.Join(store, "linked.13")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	before, after, err := Compact(t.Context(), link, 1<<20, nil)
	if err != nil || before.Digest != after.Digest {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	events := func(m *schema.Manifest) int {
		for _, t := range m.Tables {
			if t.Name == "events" {
				return len(t.Files)
			}
		}
		return 0
	}
	m, err := ReadManifest(dir)
	if err != nil || events(m) >= events(before) || len(hidden(t, store))+len(hidden(t, elsewhere)) != 0 {
		t.Errorf("%d files of events, before %d; %v", events(m), events(before), err)
	}
}
