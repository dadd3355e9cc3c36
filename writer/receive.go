package writer

import (
	"fmt"
	"path/filepath"

	"github.com/commq/commq/internal/disk"
)

// Receive adds a run from elsewhere to the store under that name. fill copies the run's files, with the manifest,
// into a hidden folder. The run gets its name when all files that the manifest lists are there in the sizes it lists,
// and its digest matches it. On an error nothing remains.
func Receive(store, name string, replace bool, fill func(dir string) error) error {
	r, err := Create(store, name, Options{Replace: replace})
	if err != nil {
		return err
	}
	defer r.Abort()
	if err := fill(r.place.dir); err != nil {
		return fmt.Errorf("receive run %q: %w", name, err)
	}
	if err := acceptRun(r.place); err != nil {
		return fmt.Errorf("receive run %q: %w", name, err)
	}
	return nil
}

// acceptRun checks that the hidden folder holds a complete run, syncs it and gives it its name.
func acceptRun(p *place) error {
	m, err := ReadManifest(p.dir)
	if err != nil {
		return err
	}
	if err := m.CompareDigest(); err != nil {
		return err
	}
	var files []string
	for _, t := range m.Tables {
		for _, f := range t.Files {
			if err := verifyFile(p.dir, &f); err != nil {
				return err
			}
			files = append(files, filepath.Join(p.dir, filepath.FromSlash(f.Path)))
		}
	}
	for _, name := range append(files, filepath.Join(p.dir, manifestName)) {
		if err := disk.SyncFile(name); err != nil {
			return err
		}
	}
	if err := p.sync(); err != nil {
		return err
	}
	return p.takeName()
}
