package private

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/internal/testenv"
)

// other is a user that is neither root nor the one who runs the tests.
const other = 1843

func TestFolderIsMadeForItsOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	made, err := Folder(dir)
	if err != nil || made != dir {
		t.Fatalf("%q, %v", made, err)
	}
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if info, err := os.Stat(d); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", d, info.Mode(), err)
		}
	}
	if _, err := Folder(dir); err != nil {
		t.Errorf("again: %v", err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Folder(link); err != nil {
		t.Errorf("by a link of one's own: %v", err)
	}
}

// TestWhatOthersCanWriteToIsRefused needs no other user.
func TestWhatOthersCanWriteToIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "open")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Mkdir(filepath.Join(dir, "in"), 0o700),
		os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	if _, err := Folder(dir); !errors.Is(err, ErrForeign) {
		t.Errorf("mode 0777: %v", err)
	}
	shared, file := t.TempDir(), filepath.Join(dir, "file")
	if err := errors.Join(os.Chmod(shared, 0o775), os.WriteFile(file, nil, 0o600), os.Chmod(file, 0o664)); err != nil {
		t.Fatal(err)
	}
	if _, err := Folder(shared); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "chmod g-w") {
		t.Errorf("mode 0775: %v", err)
	}
	if _, err := Folder(filepath.Join(dir, "in")); err == nil {
		t.Error("in a folder of mode 0777: no error")
	}
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if _, err := Folder(filepath.Join(dir, "in")); err != nil {
		t.Errorf("in a folder like /tmp: %v", err)
	}
	if err := Check(file); err != nil {
		t.Errorf("a file of mode 0664: %v", err)
	}
}

func TestWhatAnotherUserMadeIsRefused(t *testing.T) {
	testenv.Root(t, "to make what belongs to another user")
	dir, own := filepath.Join(t.TempDir(), "planted"), t.TempDir()
	link, file := filepath.Join(t.TempDir(), "link"), filepath.Join(own, "libcommq.so")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, other, other), os.Symlink(own, link),
		os.Lchown(link, other, other),
		os.WriteFile(file, nil, 0o600), os.Chown(file, other, other)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, link} {
		if _, err := Folder(path); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := Check(file); !errors.Is(err, ErrForeign) {
		t.Errorf("a file: %v", err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Opened(f); !errors.Is(err, ErrForeign) {
		t.Errorf("an open file: %v", err)
	}
}
