package writer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// removedEnding ends the names of folders of runs that are being removed: .NAME.removed.
const removedEnding = ".removed"

func removedFolder(store, name string) string { return filepath.Join(store, "."+name+removedEnding) }

// sweepRemoved removes the folders of runs whose removal was killed: they take room and nobody sees them. A removal
// that goes on holds the run's lock. Errors are left to the next one that comes by.
func sweepRemoved(store string) {
	entries, err := os.ReadDir(store)
	if err != nil {
		return
	}
	for _, e := range entries {
		name, found := strings.CutSuffix(strings.TrimPrefix(e.Name(), "."), removedEnding)
		if !found || !e.IsDir() || !strings.HasPrefix(e.Name(), ".") || CheckName(name) != nil {
			continue
		}
		l, err := takeLock(lockPath(store, name))
		if err != nil {
			continue
		}
		_ = errors.Join(removeHidden(removedFolder(store, name)), l.release())
	}
}
