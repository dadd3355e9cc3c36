package writer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/commq/commq/internal/disk"
	"github.com/commq/commq/schema"
)

// Info is a run in a store.
type Info struct {
	// Name is the name of the run and of its folder.
	Name string
	// Dir is its folder.
	Dir string
	// Manifest is the run's manifest; nil when Err is set.
	Manifest *schema.Manifest
	// Err says why the run cannot be read: its manifest is damaged or has another schema version, or no run can have
	// the name of its folder.
	Err error
}

// List lists the runs of a store by name. A store that does not exist has none.
func List(store string) ([]Info, error) {
	if err := CheckLocal(store); err != nil {
		return nil, err
	}
	found, err := runFolders(store)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the store %s: %w", store, err)
	}
	infos := make([]Info, 0, len(found))
	for _, name := range found {
		dir := filepath.Join(store, name)
		info := Info{Name: name, Dir: dir}
		if err := CheckName(name); err != nil {
			info.Err = misnamed(dir, err)
		} else {
			info.Manifest, info.Err = ReadManifest(dir)
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// OnDisk returns the size of the files in a run's folder that its manifest names, and how many of these are missing or
// have another size than it says, as in a run that was copied in part. It reads no file.
func OnDisk(dir string, m *schema.Manifest) (bytes int64, wrong int) {
	for i := range m.Tables {
		for _, f := range m.Tables[i].Files {
			size := int64(-1)
			if info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(f.Path))); err == nil {
				size = info.Size()
			}
			bytes += max(0, size)
			if size != f.Bytes {
				wrong++
			}
		}
	}
	return bytes, wrong
}

// checkNoParts returns an error while processes write a run of that name in parts, to replace the one that is there.
// Parts that none of them holds a lock in were left behind.
func checkNoParts(store, name string) error {
	inUse := fmt.Errorf("run %q in %s is being written in parts by several processes (commq ingest --parts); wait for "+
		"that to end, or end it and remove %s", name, store, partsFolder(store, name))
	locks, err := filepath.Glob(filepath.Join(escapeGlob(partsFolder(store, name)), "*.lock*"))
	for _, path := range locks {
		if strings.HasSuffix(path, ".locked") { // of a file system without locks: held as long as it exists
			return inUse
		}
		l, err := takeLock(path)
		if errors.Is(err, errLocked) {
			return inUse
		}
		if err = errors.Join(err, l.release()); err != nil {
			return fmt.Errorf("remove run %q: %w", name, err)
		}
	}
	return err
}

// Remove removes the run of exactly that name from a store, and nothing that is not a run, nor a run that processes
// write in parts to replace it. The run disappears from the store at once and as a whole, as it is renamed before it is
// deleted.
func Remove(store, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	dir := filepath.Join(store, name)
	if !isRun(dir) {
		_, err := Find(store, name)
		if err == nil || strings.Contains(err.Error(), "is a folder") { // the path exists, but outside the store
			err = fmt.Errorf("no run %q in the store %s", name, store)
		}
		return err
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is a link, not a folder; remove it yourself", dir)
	}
	l, err := takeLock(lockPath(store, name))
	if errors.Is(err, errLocked) {
		return fmt.Errorf("run %q in %s is in use by another commq; wait for it to end", name, store)
	}
	if err != nil {
		return fmt.Errorf("remove run %q: %w", name, err)
	}
	if err := checkNoParts(store, name); err != nil {
		return errors.Join(err, l.release())
	}
	hidden := removedFolder(store, name)
	err = removeHidden(hidden) // left by a removal that was killed
	if err == nil {
		err = disk.Rename(dir, hidden)
	}
	if err == nil { // else after a power failure the name could be back, and some of the files
		err = disk.SyncFolder(store)
	}
	if err == nil {
		// and what the process that wrote it left when it was killed at its end
		partial := partialFolder(store, name)
		err = errors.Join(disk.RemoveAll(hidden), disk.RemoveAll(partsFolder(store, name)), disk.RemoveAll(partial),
			disk.RemoveAll(setAside(partial)))
	}
	if err = errors.Join(err, l.release()); err != nil {
		return fmt.Errorf("remove run %q: %w", name, err)
	}
	sweepRemoved(store)
	return nil
}
