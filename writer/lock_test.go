package writer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLockFollowsNoLink: in a store that others can write to, a link of a lock's name would make this user's process
// make a file elsewhere.
func TestLockFollowsNoLink(t *testing.T) {
	store, target := t.TempDir(), filepath.Join(t.TempDir(), "planted")
	path := lockPath(store, "ring.4")
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	if l, err := takeLock(path); err == nil || !strings.Contains(err.Error(), path+" is a link") {
		t.Errorf("%v, %v", l, err)
	}
	if _, err := os.Lstat(target); err == nil {
		t.Error("the target of the link was made")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	l, err := takeLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.release(); err != nil {
		t.Error(err)
	}
}
