package bounded

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestReadAll(t *testing.T) {
	if text, err := ReadAll(strings.NewReader("seven b"), 7); err != nil || string(text) != "seven b" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := ReadAll(strings.NewReader("eight by"), 7); err == nil || text != nil ||
		err.Error() != "more than 7 B of text; at most that is read" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestReadFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	if _, err := ReadFile(file, 3); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
	text := strings.Repeat("7", 16*3)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadFile(file, 3); err != nil || string(got) != text {
		t.Errorf("16 times as long: %q, %v", got, err)
	}
	if err := os.WriteFile(file, []byte(text+"7"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(file, 3); err == nil || !strings.HasPrefix(err.Error(), file+": more than 48 B") {
		t.Errorf("longer: %v", err)
	}
}

// A device never ends, and opening a pipe waits for somebody who writes to it.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	pipe, device, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "device"), filepath.Join(dir, "file")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink("/dev/zero", device),
		os.WriteFile(file, []byte("seven b"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, device, dir} {
		if _, err := ReadRegular(name, 7); err == nil || err.Error() != name+" is not a regular file" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text, err := ReadRegular(file, 7); err != nil || string(text) != "seven b" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := ReadRegular(file, 6); err == nil || err.Error() != file+" has 7 bytes; files of its kind have at most 6" {
		t.Errorf("%v", err)
	}
	if _, err := ReadRegular(filepath.Join(dir, "none"), 7); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

// A file with a hole takes less on the disk than in memory.
func TestHolesDoNotCountAsText(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadFile(file, 3); err != nil || len(text) > 0 {
		t.Errorf("empty: %q, %v", text, err)
	}
	if err := os.Truncate(file, 40); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(file, 3); err == nil || !strings.HasPrefix(err.Error(), file+": more than 3 B") {
		t.Errorf("%v", err)
	}
}
