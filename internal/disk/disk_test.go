package disk

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Folders of some file systems cannot be synced: that is no error, but others are.
func TestFoldersThatCannotBeSynced(t *testing.T) {
	for err, ignored := range map[error]bool{unix.EINVAL: true, unix.ENOTSUP: true, unix.EIO: false, unix.ENOSPC: false} {
		got := syncable(&os.PathError{Op: "sync", Path: "runs", Err: err})
		if (got == nil) != ignored {
			t.Errorf("%v gives %v", err, got)
		}
	}
	// The kernel's own EINVAL: the files of /proc have no fsync.
	if err := SyncFolder("/proc/self"); err != nil {
		t.Errorf("/proc/self: %v", err)
	}
}
