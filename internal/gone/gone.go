// Package gone tells a run that somebody removed while it was read from one that is damaged.
package gone

import (
	"errors"
	"os"
	"path/filepath"
)

// Check returns an error about a file of the run in folder dir, or, if the whole run is not there any more, one that
// says so: it is not damaged.
func Check(dir string, err error) error {
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, there := os.Lstat(filepath.Join(dir, "manifest.json")); !errors.Is(there, os.ErrNotExist) {
		return err
	}
	return removed{err}
}

// removed is the error about a run that was removed while it was read.
type removed struct{ error }

func (removed) Error() string { return "the run was removed while it was read" }

func (e removed) Unwrap() error { return e.error }

// Is reports whether an error is that of a run that was removed while it was read.
func Is(err error) bool {
	var r removed
	return errors.As(err, &r)
}
