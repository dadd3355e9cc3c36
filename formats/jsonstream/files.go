package jsonstream

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// headBytes is how much of a file tells what it is.
const headBytes = 4096

// Files returns the files of a job: a file alone, or those of a folder whose names named accepts and which begin as is
// wants, in the order of their names. none describes, for an error, what a folder does not have.
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

// begins looks at how a file begins. What cannot be read as a file, such as a folder behind a link, is none.
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
