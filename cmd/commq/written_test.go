package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

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
