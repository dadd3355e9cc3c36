package writer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/commq/commq/internal/disk"
	"github.com/commq/commq/schema"
)

// place is the hidden folder of the store where a run is written. It gets the run's name when the run is complete.
type place struct {
	store, name string
	dir         string // the hidden folder
	lock        *lock
	replaces    bool // a run of that name may be replaced
	keep        bool // the hidden folder stays if the run does not get its name, for a later process
}

// takePlace takes the name of a new run and makes its hidden folder. It removes what a killed process left there.
func takePlace(store, name string, replaces bool) (*place, error) {
	if err := makeStore(store, name); err != nil {
		return nil, err
	}
	if dir := partsFolder(store, name); isFolder(dir) {
		return nil, fmt.Errorf("run %q in %s is being written in parts by several processes (commq ingest --parts); "+
			"choose another name, end that, or remove %s", name, store, dir)
	}
	l, err := takeLock(lockPath(store, name))
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("run %q in %s is being written by another process; choose another name or wait for it "+
			"to end", name, store)
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w; name a writable one with --store or $COMMQ_STORE", store, err)
	}
	sweepRemoved(store)
	p := &place{store: store, name: name, dir: partialFolder(store, name), lock: l, replaces: replaces}
	if err := p.makeFolder(); err != nil {
		return nil, errors.Join(err, l.release())
	}
	return p, nil
}

// retakePlace takes the name of the run in folder dir, an absolute path, to write it again in the folder hidden. It
// removes what a killed process left there.
func retakePlace(dir, hidden string) (*place, error) {
	store, name := filepath.Split(dir)
	l, err := takeLock(lockPath(store, name))
	if errors.Is(err, errLocked) {
		return nil, errors.New("another process writes it; wait for that to end")
	}
	if err != nil {
		return nil, fmt.Errorf("lock the run: %w", err)
	}
	p := &place{store: store, name: name, dir: hidden, lock: l}
	err = removeHidden(p.dir)
	if err == nil {
		err = disk.Mkdir(p.dir, 0o777)
	}
	if err != nil {
		return nil, errors.Join(err, l.release())
	}
	return p, nil
}

// removeHidden removes a hidden folder of a store, if it exists: a replaced or removed run. It syncs the store first,
// so that a power failure cannot bring the name back to files that are gone.
func removeHidden(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := disk.SyncFolder(filepath.Dir(dir)); err != nil {
		return err
	}
	return disk.RemoveAll(dir)
}

func lockPath(store, name string) string { return filepath.Join(store, "."+name+".lock") }

func partialFolder(store, name string) string { return filepath.Join(store, "."+name+".partial") }

// makeStore checks the name of a new run, and makes the store if it does not exist.
func makeStore(store, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := CheckLocal(store); err != nil {
		return fmt.Errorf("write run %q: %w; push makes a run of a folder one there", name, err)
	}
	if err := disk.MkdirAllSynced(store, 0o777); err != nil {
		return fmt.Errorf("make the store: %w; name another with --store or $COMMQ_STORE", err)
	}
	return nil
}

func (p *place) makeFolder() error {
	if err := CheckFree(p.store, p.name, p.replaces); err != nil {
		return err
	}
	// left by a killed process, as we hold its lock
	if err := errors.Join(removeHidden(p.dir), p.removeSetAside()); err != nil {
		return fmt.Errorf("remove the unfinished run %s: %w", p.dir, err)
	}
	if err := disk.Mkdir(p.dir, 0o777); err != nil {
		return fmt.Errorf("store %s: %w; name a writable one with --store or $COMMQ_STORE", p.store, err)
	}
	return nil
}

// removeSetAside removes the old run of a replacement that was killed or failed at its end. Without a run of the name
// it is the only one left, and stays.
func (p *place) removeSetAside() error {
	if !isRun(filepath.Join(p.store, p.name)) {
		return nil
	}
	return removeHidden(setAside(p.dir))
}

// CheckFree returns an error when a new run of the store cannot have the name, because something has it already. With
// replaces, that may be a run.
func CheckFree(store, name string, replaces bool) error {
	dir := filepath.Join(store, name)
	_, err := os.Lstat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case isRun(dir) && replaces:
		return nil
	case isRun(dir):
		return fmt.Errorf("run %q already exists in %s; choose another name, or overwrite it with --replace", name,
			store)
	}
	return fmt.Errorf("%s exists and is not a run; choose another name or move it away", dir)
}

// ErrInPlace is part of an error after which the new run is in place nevertheless, under its name.
var ErrInPlace = errors.New("the new run is in place")

// takeName gives the complete run in the hidden folder its name. After ErrInPlace it has it.
func (p *place) takeName() error {
	dir := filepath.Join(p.store, p.name)
	if err := CheckFree(p.store, p.name, p.replaces); err != nil {
		return err
	}
	if isRun(dir) {
		return p.replace(dir)
	}
	if err := disk.Rename(p.dir, dir); err != nil {
		return err
	}
	if err := disk.SyncFolder(p.store); err != nil {
		return fmt.Errorf("%w; %w, but a power failure may lose it: copy it, or write it again with --replace", err,
			ErrInPlace)
	}
	return nil
}

// replace replaces folder dir by the complete run in the hidden folder, and removes the old one. If the file system
// can exchange folders, a run of that name exists at every moment.
func (p *place) replace(dir string) error {
	err := disk.Exchange(p.dir, dir)
	if err == nil {
		return p.removeReplaced(p.dir)
	}
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	old := setAside(p.dir) // a process killed between the two steps leaves both folders, hidden
	if err := removeHidden(old); err != nil {
		return err
	}
	if err := disk.Rename(dir, old); err != nil {
		return err
	}
	if err := disk.Rename(p.dir, dir); err != nil {
		return errors.Join(err, disk.Rename(old, dir))
	}
	return p.removeReplaced(old)
}

// setAside is where the run that is replaced stands for a moment, where folders cannot be exchanged.
func setAside(hidden string) string { return hidden + ".old" }

// removeReplaced removes the run that the new one replaced. If the new names cannot be made durable it stays, hidden,
// until the name is taken or removed.
func (p *place) removeReplaced(old string) error {
	if err := disk.SyncFolder(p.store); err != nil {
		p.keep = true
		return fmt.Errorf("%w; %w, but a power failure may bring the old one back, which stays in %s "+
			"until the run is written again or removed", err, ErrInPlace, old)
	}
	return inPlace(disk.RemoveAll(old))
}

// inPlace says of an error, which may be nil, that the new run has its name nevertheless.
func inPlace(err error) error {
	if err == nil || errors.Is(err, ErrInPlace) {
		return err
	}
	return fmt.Errorf("%w; %w", err, ErrInPlace)
}

// sync makes the names of the run's files durable.
func (p *place) sync() error {
	for _, t := range schema.Tables() {
		// a run may lack derived tables
		if err := disk.SyncFolder(filepath.Join(p.dir, t.Name)); err != nil &&
			!(t.Derived && errors.Is(err, os.ErrNotExist)) {
			return err
		}
	}
	return disk.SyncFolder(p.dir)
}

// leave removes the hidden folder, unless it is kept or has become the run, and frees the name.
func (p *place) leave() error {
	if p.keep {
		return p.lock.release()
	}
	return errors.Join(disk.RemoveAll(p.dir), p.lock.release())
}
