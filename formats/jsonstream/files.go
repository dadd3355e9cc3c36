package jsonstream

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// headBytes is the length of the part of a file that shows its format.
const headBytes = 4096

// Files returns the files of a job, sorted by name: a single file, or those of a folder with names that named accepts
// and contents whose begin is accepts. none describes, for an error, what a folder does not have.
func Files(path string, named func(name string) bool, is func(head []byte) bool, none string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if !named(e.Name()) {
			continue
		}
		full := filepath.Join(path, e.Name())
		fits, err := begins(full, is)
		if err != nil {
			return nil, err
		}
		if fits {
			files = append(files, full)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no %s", path, none)
	}
	slices.Sort(files)
	return files, nil
}

// begins reports whether a path is a regular file whose first bytes is accepts.
func begins(path string, is func(head []byte) bool) (bool, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false, nil
	}
	f, err := Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, headBytes))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return is(head), nil
}
