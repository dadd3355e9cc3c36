package shim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// failedFor is how long ranks remember that a compiler failed. It is short: the user may have mended it for the next
// job.
const failedFor = time.Minute

// failedFile is the file in a folder of the cache that remembers a failed build: one line for notes, then the error.
const failedFile = "failed"

// failedError is the failure of a compiler that another rank has tried.
type failedError struct {
	summary, text string
}

func (e *failedError) Error() string { return e.text }

// remember keeps the failure of a compiler for the other ranks. Without it they compile again.
func (o *BuildOptions) remember(folder string, failure error) {
	text := o.summary(failure) + "\n" + failure.Error()
	f, err := os.CreateTemp(folder, ".failed-")
	if err != nil {
		return
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if f.Close() == nil && err == nil {
		_ = os.Rename(f.Name(), filepath.Join(folder, failedFile)) // the other ranks compile again
	}
}

// failed returns the failure that another rank has remembered in a folder a moment ago; nil if there is none.
func failed(folder string) error {
	path := filepath.Join(folder, failedFile)
	info, err := os.Stat(path)
	if err != nil || time.Since(info.ModTime()).Abs() > failedFor {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	summary, whole, _ := strings.Cut(string(text), "\n")
	return &failedError{summary, whole}
}

// lockStep is the time between two tries to take a lock.
const lockStep = 20 * time.Millisecond

// lockFolder waits until no other process builds in a folder of the cache, and keeps others from it until release is
// called. On file systems without locks it does nothing: each process then builds for itself.
func lockFolder(ctx context.Context, folder string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(folder, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("build the shim: %w", err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			return func() { f.Close() }, nil
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("wait for another process that compiles the shim: %w", context.Cause(ctx))
		case <-time.After(lockStep):
		}
	}
}
