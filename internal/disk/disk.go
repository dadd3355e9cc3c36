// Package disk is the one door through which runs, stores, checkpoints and kept results are written: creating, writing,
// syncing, renaming and removing files and folders. In a program every function does what its namesake in package os
// does. Tests put a Layer over a folder, which sees each operation before it happens and can make it fail: package
// diskfail has one that runs out of space or loses power at any operation.
//
// What is only read does not come through here.
package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Kind is a kind of operation.
type Kind string

// The kinds of operations.
const (
	OpCreate   Kind = "create"   // Path is opened for writing, and made if it does not exist
	OpWrite    Kind = "write"    // Data is written at Offset
	OpTruncate Kind = "truncate" // to Offset bytes
	OpSync     Kind = "sync"     // the contents of a file
	OpClose    Kind = "close"
	OpMkdir    Kind = "mkdir"
	OpRename   Kind = "rename"   // Path to To
	OpExchange Kind = "exchange" // Path with To
	OpLink     Kind = "link"     // To is a second name of Path
	OpRemove   Kind = "remove"
	OpSyncDir  Kind = "syncdir" // the names in a folder
)

// Op is an operation on a file or folder. Path is its path and To the second one, of renames, exchanges and links only.
// Data is written at Offset. Layers may shorten Data.
type Op struct {
	Kind     Kind
	Path, To string
	Data     []byte
	Offset   int64
	Truncate bool // a create that empties the file
}

// Layer stands before the operations in a folder.
type Layer interface {
	// Do does the operation by calling do, or returns an error in its place. It may be called concurrently.
	Do(op *Op, do func() error) error
}

// mount is a layer over a folder.
type mount struct {
	root  string
	layer Layer
}

var mounts atomic.Pointer[[]mount]

// Over puts a layer over a folder, given by its absolute path, until remove is called. It is for tests: several may use
// different folders at the same time.
func Over(root string, l Layer) (remove func()) {
	change(func(list []mount) []mount { return append(list, mount{root, l}) })
	return func() {
		change(func(list []mount) []mount {
			var rest []mount
			for _, m := range list {
				if m.root != root {
					rest = append(rest, m)
				}
			}
			return rest
		})
	}
}

func change(edit func([]mount) []mount) {
	for {
		old := mounts.Load()
		var list []mount
		if old != nil {
			list = append(list, *old...)
		}
		list = edit(list)
		if mounts.CompareAndSwap(old, &list) {
			return
		}
	}
}

// layerOf returns the layer over a path; nil in a program.
func layerOf(path string) Layer {
	list := mounts.Load()
	if list == nil {
		return nil
	}
	for _, m := range *list {
		if path == m.root || strings.HasPrefix(path, m.root+string(filepath.Separator)) {
			return m.layer
		}
	}
	return nil
}

// run does an operation through the layer over its path.
func run(op *Op, do func() error) error {
	if l := layerOf(op.Path); l != nil {
		return l.Do(op, do)
	}
	return do()
}

// File is a file that is written.
type File struct {
	f     *os.File
	layer Layer
	at    int64 // where Write continues
}

// Create creates or empties a file, as os.Create does.
func Create(path string) (*File, error) {
	return OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

// OpenFile opens a file for writing, as os.OpenFile does, except that Write begins at its beginning.
func OpenFile(path string, flag int, perm fs.FileMode) (*File, error) {
	file := &File{layer: layerOf(path)}
	err := run(&Op{Kind: OpCreate, Path: path, Truncate: flag&os.O_TRUNC != 0}, func() (err error) {
		file.f, err = os.OpenFile(path, flag, perm)
		return err
	})
	if err != nil {
		if file.f != nil {
			file.f.Close()
		}
		return nil, err
	}
	return file, nil
}

// CreateTemp creates a file with a new name that begins as given. Its mode is perm less the umask, as of a file with a
// name of its own; os.CreateTemp keeps all others out.
func CreateTemp(dir, beginning string, perm fs.FileMode) (*File, error) {
	const tries = 1000
	for i := 0; ; i++ {
		name := filepath.Join(dir, beginning+randomText())
		f, err := OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
		if !errors.Is(err, fs.ErrExist) || i == tries {
			return f, err
		}
	}
}

// Name returns the path by which the file was opened.
func (f *File) Name() string { return f.f.Name() }

// Fd returns the file's descriptor.
func (f *File) Fd() uintptr { return f.f.Fd() }

// Stat describes the file.
func (f *File) Stat() (fs.FileInfo, error) { return f.f.Stat() }

// ReadAt reads, as os.File does.
func (f *File) ReadAt(p []byte, off int64) (int, error) { return f.f.ReadAt(p, off) }

// Chmod sets the file's mode.
func (f *File) Chmod(mode fs.FileMode) error { return f.f.Chmod(mode) }

// Write writes behind what was written before.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.WriteAt(p, f.at)
	f.at += int64(n)
	return n, err
}

// WriteAt writes at an offset.
func (f *File) WriteAt(p []byte, off int64) (n int, err error) {
	if f.layer == nil {
		return f.f.WriteAt(p, off)
	}
	op := &Op{Kind: OpWrite, Path: f.Name(), Data: p, Offset: off}
	err = f.layer.Do(op, func() (err error) {
		n, err = f.f.WriteAt(op.Data, off)
		return err
	})
	return n, err
}

// Truncate changes the file's size.
func (f *File) Truncate(size int64) error {
	return f.run(&Op{Kind: OpTruncate, Path: f.Name(), Offset: size}, func() error { return f.f.Truncate(size) })
}

// Sync makes the file's contents durable.
func (f *File) Sync() error { return f.run(&Op{Kind: OpSync, Path: f.Name()}, f.f.Sync) }

// Close closes the file. It is closed even if that returns an error.
func (f *File) Close() error { return f.run(&Op{Kind: OpClose, Path: f.Name()}, f.f.Close) }

// Lock takes the lock of the file as flock(2) does, without waiting: the error is EWOULDBLOCK when another process has
// it. A layer over the folder may have a Lock of its own.
func (f *File) Lock() error {
	if l, ok := layerOf(f.Name()).(interface{ Lock(path string) error }); ok {
		return l.Lock(f.Name())
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EINTR {
			return err
		}
	}
}

func (f *File) run(op *Op, do func() error) error {
	if f.layer != nil {
		return f.layer.Do(op, do)
	}
	return do()
}

// Mkdir makes a folder.
func Mkdir(path string, perm fs.FileMode) error {
	return run(&Op{Kind: OpMkdir, Path: path}, func() error { return os.Mkdir(path, perm) })
}

// MkdirAll makes a folder and those above it that do not exist.
func MkdirAll(path string, perm fs.FileMode) error {
	if layerOf(path) == nil {
		return os.MkdirAll(path, perm)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	if err := MkdirAll(filepath.Dir(path), perm); err != nil {
		return err
	}
	if err := Mkdir(path, perm); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// MkdirAllSynced does the same and makes the names of new folders durable: what is synced in a folder is lost with it.
func MkdirAllSynced(path string, perm fs.FileMode) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	above := filepath.Dir(path)
	if above != path {
		if err := MkdirAllSynced(above, perm); err != nil {
			return err
		}
	}
	if err := Mkdir(path, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncFolder(above)
}

// Rename renames a file or folder.
func Rename(from, to string) error {
	return run(&Op{Kind: OpRename, Path: from, To: to}, func() error { return os.Rename(from, to) })
}

// Exchange exchanges two files or folders in one step. The error wraps that of renameat2, which some file systems lack.
func Exchange(a, b string) error {
	return run(&Op{Kind: OpExchange, Path: a, To: b}, func() error {
		if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
			return &os.LinkError{Op: "exchange", Old: a, New: b, Err: err}
		}
		return nil
	})
}

// Link gives a file a second name.
func Link(from, to string) error {
	if layerOf(to) == nil {
		return os.Link(from, to)
	}
	return layerOf(to).Do(&Op{Kind: OpLink, Path: from, To: to}, func() error { return os.Link(from, to) })
}

// Remove removes a file, or a folder without entries.
func Remove(path string) error {
	return run(&Op{Kind: OpRemove, Path: path}, func() error { return os.Remove(path) })
}

// RemoveAll removes a file or a folder with all that is in it. It is no error if there is none.
func RemoveAll(path string) error {
	if layerOf(path) == nil {
		return os.RemoveAll(path)
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		entries, err := os.ReadDir(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // another process may remove the same
			return err
		}
		for _, e := range entries {
			if err := RemoveAll(filepath.Join(path, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// SyncFolder makes the names in a folder durable, where the file system can do so for folders: vboxsf and old CIFS cannot,
// and no program can do better there.
func SyncFolder(dir string) error {
	return run(&Op{Kind: OpSyncDir, Path: dir}, func() error {
		f, err := os.Open(dir)
		if err != nil {
			return err
		}
		return errors.Join(syncable(f.Sync()), f.Close())
	})
}

// syncable is the error of syncing a folder; nil if its file system cannot sync folders.
func syncable(err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}

// SyncFile makes the contents of a file durable that others have written.
func SyncFile(name string) error {
	return run(&Op{Kind: OpSync, Path: name}, func() error {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}
