package bounded

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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

// Another file may get the name while it is opened.
func TestFilesThatAreExchangedWhileOpened(t *testing.T) {
	dir := t.TempDir()
	name, pipe, file := filepath.Join(dir, "x"), filepath.Join(dir, "pipe"), filepath.Join(dir, "file")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(file, []byte("seven b"), 0o600),
		os.Link(file, name)); err != nil {
		t.Fatal(err)
	}
	end, exchanged, opened := make(chan bool), make(chan error, 1), make(chan bool)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-end:
				exchanged <- nil
				return
			default:
			}
			next := name + ".next"
			if err := errors.Join(os.Link([]string{pipe, file}[i%2], next), os.Rename(next, name)); err != nil {
				exchanged <- err
				return
			}
		}
	}()
	go func() {
		defer close(opened)
		for range 3000 {
			f, size, err := OpenRegular(name)
			if err == nil && size != 7 || err != nil && err.Error() != name+" is not a regular file" {
				t.Errorf("%d bytes, %v", size, err)
			}
			f.Close()
		}
	}()
	select {
	case <-opened:
	case <-time.After(20 * time.Second):
		t.Error("opening hangs")
	}
	close(end)
	if err := <-exchanged; err != nil {
		t.Error(err)
	}
}

func TestReaderFailsBehindItsBound(t *testing.T) {
	long := errors.New("too long")
	r := &Reader{From: strings.NewReader("seven beight by"), Left: 7, Err: long}
	b := make([]byte, 99)
	if n, err := r.Read(b); n != 7 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := r.Read(b); n != 0 || err != long {
		t.Errorf("%d bytes, %v", n, err)
	}
	r.Left = 9
	if n, err := r.Read(b); string(b[:n]) != "eight by" || err != nil {
		t.Errorf("%q, %v", b[:n], err)
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

// A name may lead out of a folder by its text, by a link to a folder or by the file being a link.
func TestNamesThatLeadOutOfAFolder(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	if err := errors.Join(os.Mkdir(in, 0o700), os.WriteFile(filepath.Join(dir, "secret"), nil, 0o600),
		os.WriteFile(filepath.Join(in, "file"), nil, 0o600), os.Symlink("../secret", filepath.Join(in, "link")),
		os.Symlink("file", filepath.Join(in, "near")), os.Symlink("..", filepath.Join(in, "up")), os.Symlink("in", filepath.Join(dir, "other"))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir, path     string
		below, inside bool
	}{
		{in, filepath.Join(in, "file"), true, true},
		{in, filepath.Join(in, "none"), true, true},
		{in, filepath.Join(in, "near"), true, true},
		{in, filepath.Join(in, "link"), true, false},
		{in, filepath.Join(in, "up/none"), true, false},
		{in, in + "/../secret", false, false},
		{in, filepath.Join(dir, "other/file"), true, true},
		{filepath.Join(dir, "other"), filepath.Join(in, "near"), true, true},
		{filepath.Join(dir, "other"), filepath.Join(dir, "other/link"), true, false},
	} {
		if below, inside := IsBelow(c.dir, c.path), IsInside(c.dir, c.path); below != c.below || inside != c.inside {
			t.Errorf("%s, %s: below %v, inside %v", c.dir, c.path, below, inside)
		}
	}
}
