package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/commq/commq/internal/disk"
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

// TestReplaceFolderRemovesOnlyItsOwn replaces a folder beside which killed commands have left theirs, and somebody has
// others of such names.
func TestReplaceFolderRemovesOnlyItsOwn(t *testing.T) {
	const mark = "mark"
	dir := t.TempDir()
	make := func(names ...string) (err error) {
		for _, name := range names {
			name = filepath.Join(dir, name)
			err = errors.Join(err, os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, nil, 0o644))
		}
		return err
	}
	foreign := []string{".out.new", ".out.new-4", ".out.new-file", ".out.new-notes", ".out.old"}
	err := make("out/mark", ".out.new/mark", ".out.old/mark", ".out.new-notes/mark", ".out.new-1/new/mark",
		".out.new-1/"+besideMark, ".out.new-2/new/half", ".out.new-2/"+besideMark, ".out.new-3/"+besideMark,
		".out.new-4/new/mark", ".out.new-file")
	if err != nil {
		t.Fatal(err)
	}
	err = (&app{replace: true}).replaceFolder(filepath.Join(dir, "out"), mark, func(out string) error {
		if beside := filepath.Dir(out); missing(filepath.Join(beside, besideMark)) {
			t.Error("a command that is killed now leaves a folder that no other removes")
		} else if isLeft(beside) {
			t.Error("another command removes what this one is writing")
		}
		return errors.Join(os.Mkdir(out, 0o755), os.WriteFile(filepath.Join(out, mark), nil, 0o644))
	})
	if err != nil {
		t.Error(err)
	}
	var left []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := append(foreign, "out"); err != nil || !slices.Equal(left, want) {
		t.Errorf("left: %q, %v, want %q", left, err, want)
	}
}

// remover removes a folder as soon as it is exchanged.
type remover struct{}

func (remover) Do(op *disk.Op, do func() error) error {
	err := do()
	if op.Kind == disk.OpExchange {
		err = errors.Join(err, os.RemoveAll(op.To))
	}
	return err
}

// TestReplaceFolderThatGoes: another program may remove the new folder before the command ends, which is no failure.
func TestReplaceFolderThatGoes(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out")
	if err := errors.Join(os.Mkdir(name, 0o755), os.WriteFile(filepath.Join(name, "mark"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	defer disk.Over(dir, remover{})()
	err := (&app{replace: true}).replaceFolder(name, "mark", func(out string) error { return os.Mkdir(out, 0o755) })
	if err != nil {
		t.Error(err)
	}
}

// seen are the operations on a folder. Those that sync folders fail with syncs.
type seen struct {
	ops   []disk.Op
	syncs error
}

func (s *seen) Do(op *disk.Op, do func() error) error {
	s.ops = append(s.ops, *op)
	if op.Kind == disk.OpSyncDir && s.syncs != nil {
		return s.syncs
	}
	return do()
}

// TestWrittenFileIsDurable: the name of a file that is written is on the disk too, if the file system can do that.
func TestWrittenFileIsDurable(t *testing.T) {
	for syncs, want := range map[error]string{nil: "", unix.EINVAL: "", unix.ENOSYS: "", unix.ENOTSUP: "",
		unix.EACCES: "", unix.EIO: "answer is complete and in place, but may be gone"} {
		dir := t.TempDir()
		ops := seen{syncs: syncs}
		remove := disk.Over(dir, &ops)
		err := writeFile(filepath.Join(dir, "answer"), func(w io.Writer) error {
			_, err := fmt.Fprint(w, "answer")
			return err
		})
		remove()
		renamed := slices.IndexFunc(ops.ops, func(op disk.Op) bool { return op.Kind == disk.OpRename })
		if next := ops.ops[renamed+1]; renamed < 0 || next.Kind != disk.OpSyncDir || next.Path != dir {
			t.Errorf("after the rename: %+v", next)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("sync fails with %v: %v, want %q", syncs, err, want)
		}
	}
}

// TestErrorsTellNoSecrets: net/http and other libraries repeat addresses with their passwords.
func TestErrorsTellNoSecrets(t *testing.T) {
	got := maskAndEscape(errorText(errors.New(`push ring.4: invalid proxy address "http://ada:p%ss@proxy:3128": invalid URL`)))
	want := `push ring.4: invalid proxy address "http://ada:xxxxx@proxy:3128": invalid URL`
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	var b bytes.Buffer
	a := &app{stderr: &b}
	a.warn("left out: %v", errors.New("--password h1dden"))
	a.note("%s", "PASSWORD=h1dden")
	if strings.Contains(b.String(), "h1dden") {
		t.Error(b.String())
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "")
	t.Setenv("AWS_ENDPOINT_URL", "http://ada:h1dden@host/x")
	if status, _, errs := commandLine("", "runs", "list", "--store", "s3://b"); status != exitCannot ||
		strings.Contains(errs, "h1dden") || !strings.Contains(errs, "http://ada:xxxxx@host/x") {
		t.Errorf("status %d, %s", status, errs)
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
