package writer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/commq/commq/schema"
)

// Info is a run in a store.
type Info struct {
	// Name is the run's name: its folder's.
	Name string
	// Dir is its folder.
	Dir string
	// Manifest is what the run says of itself; nil when Err is not.
	Manifest *schema.Manifest
	// Err says why the manifest cannot be read: of another schema version, or broken.
	Err error
}

// List lists the runs of a store in the order of their names. A store that is not there holds none.
func List(store string) ([]Info, error) {
	if err := onlyHere(store); err != nil {
		return nil, err
	}
	found, err := names(store)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the store %s: %w", store, err)
	}
	infos := make([]Info, 0, len(found))
	for _, name := range found {
		dir := filepath.Join(store, name)
		m, err := ReadManifest(dir)
		infos = append(infos, Info{Name: name, Dir: dir, Manifest: m, Err: err})
	}
	return infos, nil
}

// Remove removes the run of exactly that name from a store. It removes nothing that is not a run, and returns an error
// that says what it found. The run is gone from the store at once, and only whole: it is renamed before it is deleted.
func Remove(store, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	dir := filepath.Join(store, name)
	if !isRun(dir) {
		_, err := Find(store, name)
		if err == nil || strings.Contains(err.Error(), "is a folder") { // a path like it, but nothing in the store
			err = fmt.Errorf("no run %q in the store %s", name, store)
		}
		return err
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is a link, not a folder; remove it yourself", dir)
	}
	l, err := takeLock(filepath.Join(store, "."+name+".lock"))
	if errors.Is(err, errLocked) {
		return fmt.Errorf("run %q in %s is in use by another commq; wait for it to end", name, store)
	}
	if err != nil {
		return fmt.Errorf("remove run %q: %w", name, err)
	}
	hidden := filepath.Join(store, "."+name+".removed")
	err = os.RemoveAll(hidden) // of a removal that was killed
	if err == nil {
		err = os.Rename(dir, hidden)
	}
	if err == nil {
		err = errors.Join(os.RemoveAll(hidden), os.RemoveAll(partsFolder(store, name))) // and what the process that made it left, killed at its end
	}
	if err = errors.Join(err, l.release()); err != nil {
		return fmt.Errorf("remove run %q: %w", name, err)
	}
	return nil
}
