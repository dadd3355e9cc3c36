package simrank

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/commq/commq/internal/private"
)

// holdPattern matches the names of the files that mark a spool.
const holdPattern = "simulator-*.lock"

// Hold marks the spool as being written by this process, so that Wait waits for it. done removes the mark. When the
// process ends without calling done, the mark stays and shows that it failed. There is no mark on file systems
// without locks.
func Hold(dir string) (done func(), err error) {
	if _, err := private.Folder(dir); err != nil {
		return nil, fmt.Errorf("make the spool: %w", err)
	}
	f, err := os.CreateTemp(dir, holdPattern)
	if err != nil {
		return nil, err
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX) != nil {
		os.Remove(f.Name())
	}
	return func() {
		os.Remove(f.Name())
		f.Close()
	}, nil
}

// waitStep is the time between two tries to take a lock.
const waitStep = 20 * time.Millisecond

// Wait waits until the processes that have marked the spool have ended: after a crash of the program they still write
// the records that they have received. It returns how many of them failed, and an error when one is still running
// after patience.
func Wait(ctx context.Context, dir string, patience time.Duration) (died int, err error) {
	names, err := fs.Glob(os.DirFS(dir), holdPattern)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, name := range names {
		name = filepath.Join(dir, name)
		f, err := os.Open(name)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return died, err
		}
		err = lock(ctx, f)
		if err == nil {
			if _, gone := os.Stat(name); gone == nil {
				died++
				err = os.Remove(name)
			}
		}
		f.Close()
		if err != nil {
			return died, fmt.Errorf("wait for the simulator ranks: %s: %w", name, err)
		}
	}
	return died, nil
}

// lock takes the lock that the process of the mark holds while it runs.
func lock(ctx context.Context, f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			return err
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return errors.New("its process still writes to the spool")
			}
			return context.Cause(ctx)
		case <-time.After(waitStep):
		}
	}
}
