package simrank

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// holdPattern are the names of files that say that a process writes to a spool.
const holdPattern = "simulator-*.lock"

// Hold marks the spool as written to by this process: Wait waits for it. The mark is taken away by done when all is well; else
// it stays and says, once the process has ended, that it ended before its time. Where the file system has no locks there is
// no mark.
func Hold(dir string) (done func(), err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
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

// waitStep is the time between two looks at a lock.
const waitStep = 20 * time.Millisecond

// Wait waits until the processes that have marked the spool have ended: after a crash of the program they still write what they
// were told. It returns how many ended before their time, and an error when one goes on for longer than patience.
func Wait(ctx context.Context, dir string, patience time.Duration) (died int, err error) {
	names, err := filepath.Glob(filepath.Join(dir, holdPattern))
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, name := range names {
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

func lock(ctx context.Context, f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("its process still writes to the spool")
		case <-time.After(waitStep):
		}
	}
}
