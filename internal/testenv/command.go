package testenv

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Command builds commq, for tests of what calls it, and returns its path. root is the path of the repository. With
// $COMMQ_TEST_CACHE set (make test) all packages share one, else it goes with the test.
func Command(t testing.TB, root string) string {
	t.Helper()
	folder := os.Getenv("COMMQ_TEST_CACHE")
	if folder == "" {
		folder = t.TempDir()
	} else if err := makeShared(folder); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(folder, "commq.lock")) // one at a time builds it; for the next it is there
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	seeSources(t, root)
	command := filepath.Join(folder, "commq")
	c := exec.Command("go", "build", "-o", command, "./cmd/commq")
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", c, err, out)
	}
	return command
}

// notBuilt are folders without files that commq is built from.
var notBuilt = []string{"testdata", "node_modules", "docs", "bin", "runs", "dist", "notebooks", "__pycache__"}

// seeSources looks at what commq is built from, embedded files too (machines, pages, SQL), so that go test does not
// take a result from its cache when a file changed.
func seeSources(t testing.TB, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // another test's, and gone
			return nil
		case err != nil:
			return err
		case d.IsDir() && path != root && (slices.Contains(notBuilt, d.Name()) || d.Name()[0] == '.'):
			return filepath.SkipDir
		case strings.HasSuffix(path, "_test.go") || !d.Type().IsRegular():
			return nil
		}
		if _, err = os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
