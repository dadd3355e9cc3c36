package run

import (
	"path/filepath"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Found is a run in a store or in a folder of its own.
type Found struct {
	// Name is the last element of the run's folder Dir.
	Name, Dir string
	// Manifest describes the run.
	Manifest *schema.Manifest
}

// Find finds the run that a name in the store or a path denotes, and reads its manifest. If there is none, the error
// suggests runs with similar names.
func Find(store, nameOrPath string) (Found, error) {
	dir, err := writer.Find(store, nameOrPath)
	if err != nil {
		return Found{}, err
	}
	return read(dir)
}

// Match returns the folders of the runs that a name, a path or a pattern of either matches, in natural order: sp.A.4
// before sp.A.16. A pattern that matches nothing is an error.
func Match(store, nameOrPattern string) ([]string, error) {
	dirs, _, err := writer.FindAll(store, nameOrPattern)
	return dirs, err
}

// Each calls do for each run that names, paths and patterns match. shown is the name as it was given; of a run that a
// pattern matches it is its name in the store, or its path.
func Each(store string, namesOrPatterns []string, do func(shown, dir string) error) error {
	for _, name := range namesOrPatterns {
		dirs, pattern, err := writer.FindAll(store, name)
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			shown := name
			if pattern {
				if shown = dir; filepath.Dir(dir) == filepath.Clean(store) {
					shown = filepath.Base(dir)
				}
			}
			if err := do(shown, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// Names reports whether a name or path denotes one run, and is no pattern.
func Names(store, nameOrPattern string) bool {
	_, pattern, err := writer.FindAll(store, nameOrPattern)
	return err == nil && !pattern
}

// FindAll finds the runs that names, paths and patterns match, and reads their manifests; folders are absolute. A run
// that several patterns match comes once, at the first; a run that is named twice comes twice.
func FindAll(store string, namesOrPatterns []string) ([]Found, error) {
	return findAll(store, namesOrPatterns, func(err error) error { return err })
}

// FindPresent is FindAll without the runs that are not there or cannot be read: leftOut gets an error about each.
func FindPresent(store string, namesOrPatterns []string, leftOut func(error)) ([]Found, error) {
	return findAll(store, namesOrPatterns, func(err error) error {
		leftOut(err)
		return nil
	})
}

// findAll is FindAll. It goes on after errors for which failed returns nil.
func findAll(store string, namesOrPatterns []string, failed func(error) error) ([]Found, error) {
	var runs []Found
	fromPattern := map[string]bool{} // by folder
	for _, name := range namesOrPatterns {
		dirs, pattern, err := writer.FindAll(store, name)
		if err != nil {
			if err := failed(err); err != nil {
				return nil, err
			}
			continue
		}
		for _, dir := range dirs {
			if dir, err = filepath.Abs(dir); err != nil {
				return nil, err
			}
			if before, again := fromPattern[dir]; again && (before || pattern) {
				continue
			}
			fromPattern[dir] = pattern
			found, err := read(dir)
			if err == nil {
				runs = append(runs, found)
			} else if err := failed(err); err != nil {
				return nil, err
			}
		}
	}
	return runs, nil
}

func read(dir string) (Found, error) {
	m, err := writer.ReadManifest(dir)
	return Found{Name: filepath.Base(dir), Dir: dir, Manifest: m}, err
}
