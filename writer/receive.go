package writer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/commq/commq/schema"
)

// Receive makes a run of that name in the store of files that are a run elsewhere: fill puts them, the manifest too, into a hidden folder, and the run gets its name when all
// that the manifest lists is there, in the sizes that it says, and its digest is that of what it says. On an error nothing remains.
func Receive(store, name string, fill func(dir string) error) error {
	r, err := Create(store, name, Options{})
	if err != nil {
		return err
	}
	defer r.Abort()
	if err := fill(r.dir); err != nil {
		return fmt.Errorf("receive run %q: %w", name, err)
	}
	if err := r.received(); err != nil {
		return fmt.Errorf("receive run %q: %w", name, err)
	}
	return nil
}

func (r *Run) received() error {
	m, err := ReadManifest(r.dir)
	if err != nil {
		return err
	}
	if d := schema.RunDigest(m).String(); d != m.Digest {
		return fmt.Errorf("the manifest's digest is %s, that of what it says %s: it was changed", m.Digest, d)
	}
	var files []string
	for _, t := range m.Tables {
		for _, f := range t.Files {
			name := filepath.Join(r.dir, filepath.FromSlash(f.Path))
			info, err := os.Stat(name)
			if err == nil && info.Size() != f.Bytes {
				err = fmt.Errorf("%s has %d bytes, the manifest says %d", f.Path, info.Size(), f.Bytes)
			}
			if err != nil {
				return err
			}
			files = append(files, name)
		}
	}
	for _, name := range append(files, filepath.Join(r.dir, manifestName)) {
		if err := syncFile(name); err != nil {
			return err
		}
	}
	if err := r.syncFolders(); err != nil {
		return err
	}
	return r.takeName()
}

func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
