package testenv

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// Compile compiles a program, which may use other files of its folder, into the file exe. With $COMMQ_TEST_CACHE set
// (make test) what several tests and packages compile alike is compiled once, and exe is another name of that file: a
// test that changes the program has to compile it itself.
func Compile(t testing.TB, exe, compiler, source string, flags ...string) {
	t.Helper()
	kept := ""
	if folder := os.Getenv("COMMQ_TEST_CACHE"); folder != "" {
		key, err := compileKey(compiler, source, flags)
		kept = filepath.Join(folder, "programs", key)
		if err := errors.Join(err, makeShared(folder), os.MkdirAll(filepath.Dir(kept), 0o700)); err != nil {
			t.Fatal(err)
		}
		if os.Link(kept, exe) == nil {
			return
		}
	}
	args := append(slices.Clone(flags), "-o", exe, source)
	if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%s", source, err, out)
	}
	if kept != "" {
		_ = os.Link(exe, kept) // if another test was faster, or on another file system, each has its own
	}
}

// compileKey names what compiling makes of the source, the flags and the folder's other files. Debug information names
// the working folder.
func compileKey(compiler, source string, flags []string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q\n", compiler, source, flags)
	if slices.Contains(flags, "-g") {
		folder, err := os.Getwd()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%q\n", folder)
	}
	files := os.DirFS(filepath.Dir(source))
	names, err := fs.Glob(files, "*.*")
	if err != nil {
		return "", err
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(source), name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%q %d\n", name, len(text))
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil))[:32], nil
}
