package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestModesOfWrittenFiles: a new file has the mode that the umask leaves, one that is replaced keeps its mode and the
// links to it.
func TestModesOfWrittenFiles(t *testing.T) {
	dir := t.TempDir()
	private, shared, link := filepath.Join(dir, "private"), filepath.Join(dir, "shared"), filepath.Join(dir, "link")
	err := errors.Join(os.WriteFile(shared, nil, 0o666), os.Chmod(shared, 0o664), os.Symlink("shared", link))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Umask(syscall.Umask(0o077))
	for name, want := range map[string]os.FileMode{private: 0o600, link: 0o664} {
		err := writeFile(name, func(w io.Writer) error {
			_, err := fmt.Fprint(w, "answer")
			return err
		})
		info, there := os.Stat(name)
		if err := errors.Join(err, there); err != nil || info.Mode() != want || info.Size() != 6 {
			t.Errorf("%s: %v, %v; want %v", name, info, err, want)
		}
	}
	if to, err := os.Readlink(link); to != "shared" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// If it cannot be told what a file discloses, a warning says so.
func TestDiscloseOfAnUnreadableRun(t *testing.T) {
	var b bytes.Buffer
	disclose(context.Background(), &app{stderr: &b}, t.TempDir(), "x.prv")
	if !strings.HasPrefix(b.String(), "commq: what x.prv discloses of the machine and its users is not known: ") {
		t.Errorf("%q", b.String())
	}
}

// TestReplaceFolder replaces a folder whose name ends in a slash, as shells complete it. If writing fails the old one is
// still there, and nothing lies beside it in any case.
func TestReplaceFolder(t *testing.T) {
	const mark = "mark"
	dir := t.TempDir()
	name := filepath.Join(dir, "out")
	folder := func(text string) func(string) error {
		return func(out string) error {
			return errors.Join(os.Mkdir(out, 0o755), os.WriteFile(filepath.Join(out, mark), []byte(text), 0o644))
		}
	}
	failed := errors.New("no space")
	for _, step := range []struct {
		name, holds string
		replace     bool
		write       func(string) error
		fails       bool
	}{
		{name, "first", false, folder("first"), false},
		{name, "first", false, folder("second"), true},
		{name + "/", "second", true, folder("second"), false},
		{name + "/", "second", true, func(out string) error { return errors.Join(folder("third")(out), failed) }, true},
		{name, "fourth", true, folder("fourth"), false},
	} {
		err := (&app{replace: step.replace}).replaceFolder(step.name, mark, step.write)
		if (err != nil) != step.fails {
			t.Errorf("%+v: %v", step, err)
		}
		if text, err := os.ReadFile(filepath.Join(name, mark)); err != nil || string(text) != step.holds {
			t.Errorf("%s holds %q, %v, want %q", step.name, text, err, step.holds)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("beside it: %v, %v", left, err)
		}
	}
}

// An interrupted command still says what it leaves.
func TestSignalText(t *testing.T) {
	kept := fmt.Errorf("%w\nthe records are kept: commq ingest s --name NAME", context.Canceled)
	for want, err := range map[string]error{
		"ended by a signal: interrupt": context.Canceled,
		"ended by a signal: interrupt\nthe records are kept: commq ingest s --name NAME": kept,
	} {
		if got := signalText(signalError(syscall.SIGINT), err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
