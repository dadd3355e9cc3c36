package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/commq/commq/internal/disk"
	"github.com/commq/commq/writer"
)

// answerWriter is stdout for the answer of a command. It keeps the first error of a write, with which the command ends:
// no print needs to check for a full disk or a closed pipe. Nothing is written after that error.
type answerWriter struct {
	w   io.Writer
	mu  sync.Mutex
	err error
}

func (a *answerWriter) Write(b []byte) (n int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		n, a.err = a.w.Write(b)
	}
	return n, a.err
}

// failed returns the first error of a write.
func (a *answerWriter) failed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Fd returns the descriptor of standard output, or that of no file if it is not a file.
func (a *answerWriter) Fd() uintptr {
	if f, ok := a.w.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// standardOutput is the name that stands for standard output where a file is to be written.
const standardOutput = "-"

// writes gives a command --replace, and makes it refuse, before it does anything, to overwrite the files of --output
// and --plot. Commands that write a run check its name as soon as they know it.
func (a *app) writes(c *cobra.Command) {
	c.Flags().BoolVar(&a.replace, "replace", false, "overwrite what has that name; the old one goes when the new one "+
		"is complete")
	beforeRun(c, func([]string) error {
		for _, name := range []string{"output", "plot", "once"} {
			if f := c.Flags().Lookup(name); f != nil {
				if err := a.checkNew(f.Value.String()); err != nil {
					return fmt.Errorf("%s%w", placeOf(c), err)
				}
			}
		}
		return nil
	})
}

// beforeRun makes a command do something before it runs, after what it already does then.
func beforeRun(c *cobra.Command, do func(args []string) error) {
	before := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if before != nil {
			if err := before(c, args); err != nil {
				return err
			}
		}
		return do(args)
	}
}

// checkNew refuses to overwrite a file without --replace. It lets standard output, devices and pipes through; "" is no
// file.
func (a *app) checkNew(file string) error {
	if file == "" || file == standardOutput || a.replace {
		return nil
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !info.Mode().IsRegular():
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%s exists; name another file, or overwrite it with --replace", file)
}

// checkName refuses the name of a new run of the store that a run has already, without --replace.
func (a *app) checkName(name string) error {
	if err := writer.CheckName(name); err != nil {
		return err
	}
	return writer.CheckFree(a.storeDir(), name, a.replace)
}

// writeFile writes a file, or standard output if its name is -. See writeFile.
func (a *app) writeFile(name string, write func(io.Writer) error) error {
	if name == standardOutput {
		return write(a.stdout)
	}
	return writeFile(name, write)
}

// writeAnswer writes an answer in a format to a file, or to the screen if file is "".
func (a *app) writeAnswer(file, format string, write func(io.Writer) error) error {
	if file != "" {
		return a.writeFile(file, write)
	}
	return write(a.screen(format))
}

// writeFile writes a temporary file in the same folder and renames it when it is complete and durable, so that readers
// never see half a file. A file that it replaces keeps its mode, and the symbolic links to it.
func writeFile(name string, write func(io.Writer) error) (err error) {
	info, statErr := os.Stat(name)
	exists, mode := statErr == nil, os.FileMode(0o666)
	if exists && !info.Mode().IsRegular() { // /dev/null, a pipe
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	if exists {
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return err
		}
		mode = 0o600 // nobody else reads it before it has the mode of the old file
	}
	f, err := disk.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".", mode)
	if err != nil {
		return cannotWrite(name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(disk.Remove(f.Name())))
		}
	}()
	if exists {
		if err := f.Chmod(info.Mode().Perm()); err != nil {
			return cannotWrite(name, errors.Join(err, f.Close()))
		}
	}
	if err := errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return cannotWrite(name, err)
	}
	if err := disk.Rename(f.Name(), name); err != nil {
		return cannotWrite(name, err)
	}
	if err := disk.SyncFolder(filepath.Dir(name)); err != nil && !cannotSync(err) {
		return fmt.Errorf("%s is complete and in place, but may be gone after a crash of the machine: %w", name, err)
	}
	return nil
}

// cannotSync reports whether a folder cannot be synced at all: it cannot be opened, or its file system (FUSE, 9p, SMB)
// syncs no folders.
func cannotSync(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) ||
		errors.Is(err, unix.ENOSYS)
}

// cannotWrite names the file that the user asked for in an error, and not the temporary one beside it. Errors about
// other files, such as those that the answer is read from, stay whole.
func cannotWrite(name string, err error) error {
	temporary := "." + filepath.Base(name) + "."
	var path *os.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path) && strings.HasPrefix(filepath.Base(path.Path), temporary):
		err = path.Err
	case errors.As(err, &link) && strings.HasPrefix(filepath.Base(link.Old), temporary):
		err = link.Err
	}
	if folder := filepath.Dir(name); errors.Is(err, fs.ErrNotExist) && missing(folder) {
		return fmt.Errorf("write %s: there is no folder %s; make it, or name another file", name, folder)
	}
	return fmt.Errorf("write %s: %w", name, err)
}

// missing reports whether there is no file or folder of that name.
func missing(name string) bool {
	_, err := os.Stat(name)
	return errors.Is(err, fs.ErrNotExist)
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// writeFiles writes files, which get their names when all are complete. The error of write is returned as it is.
func (a *app) writeFiles(names []string, write func(files []io.Writer) error) error {
	var failed error
	var open func(files []io.Writer) error
	open = func(files []io.Writer) error {
		if len(files) == len(names) {
			failed = write(files)
			return failed
		}
		return a.writeFile(names[len(files)], func(f io.Writer) error { return open(append(files, f)) })
	}
	if err := open(nil); failed == nil {
		return err
	}
	return failed
}

// replaceFolder lets write make a folder, in place of one of that name only with --replace and if it has the file that
// such folders have; the old one goes when the new one is complete.
func (a *app) replaceFolder(name, mark string, write func(name string) error) error {
	name = filepath.Clean(name) // with a slash at the end, what is beside it would be in it
	switch _, err := os.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return write(name)
	case err != nil:
		return err
	case !a.replace:
		return fmt.Errorf("%s exists; name another folder, or overwrite it with --replace", name)
	case missing(filepath.Join(name, mark)):
		return fmt.Errorf("%s has no %s, so that --replace leaves it alone; name another folder", name, mark)
	}
	if err := removeLeft(name); err != nil {
		return err
	}
	beside, err := os.MkdirTemp(filepath.Dir(name), besideName(name)+"*")
	if err != nil {
		return err
	}
	release, err := markBeside(beside)
	if err == nil {
		defer release()
		err = replaceBy(name, beside, write)
	}
	if err != nil && missing(name) && !missing(filepath.Join(beside, oldFolder)) {
		return fmt.Errorf("%w; the old folder is %s", err, filepath.Join(beside, oldFolder))
	}
	return errors.Join(err, removeBeside(beside))
}

// The folder beside one that is replaced holds the new one until it is complete, and then the old one until it is
// removed. An empty file marks it, by which removeLeft knows it.
const (
	nextFolder = "new"
	oldFolder  = "old"
	besideMark = ".commq-replaces"
)

// markBeside marks a folder beside one that is replaced, and locks the mark: a killed command holds no lock. release
// gives it up.
func markBeside(beside string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(beside, besideMark), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_ = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) // not every file system has locks
	return func() { f.Close() }, nil
}

// isLeft reports whether a folder beside another was left by a command that was killed: it is marked and not locked.
func isLeft(beside string) bool {
	f, err := os.OpenFile(filepath.Join(beside, besideMark), os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return !errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// besideName begins the name of the folder beside one that is replaced.
func besideName(name string) string { return "." + filepath.Base(name) + ".new-" }

// replaceBy lets write make a folder in the one beside, and gives it the name of the old one.
func replaceBy(name, beside string, write func(name string) error) error {
	next, old := filepath.Join(beside, nextFolder), filepath.Join(beside, oldFolder)
	if err := write(next); err != nil {
		return err
	}
	if disk.Exchange(next, name) == nil { // in one step: a killed command leaves either
		return nil
	}
	if err := os.Rename(name, old); err != nil { // not every file system has that
		return err
	}
	if err := os.Rename(next, name); err != nil {
		return errors.Join(err, os.Rename(old, name))
	}
	return nil
}

// removeLeft removes what killed commands have left beside a folder. Others may lie there too.
func removeLeft(name string) error {
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil && !errors.Is(err, fs.ErrPermission) { // not to be listed
		return err
	}
	for _, e := range entries {
		left := filepath.Join(filepath.Dir(name), e.Name())
		if !strings.HasPrefix(e.Name(), besideName(name)) || !e.IsDir() || !isLeft(left) {
			continue
		}
		if err := removeBeside(left); err != nil {
			return err
		}
	}
	return nil
}

// removeBeside removes a folder beside another. Its mark goes last, so that what a killed command has not removed is
// still known.
func removeBeside(beside string) error {
	for _, part := range []string{nextFolder, oldFolder, ""} {
		if err := os.RemoveAll(filepath.Join(beside, part)); err != nil {
			return err
		}
	}
	return nil
}
