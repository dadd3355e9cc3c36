package shim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// failedFor is how long ranks remember a failed build. It is short: the user may have corrected the cause for the next
// job.
const failedFor = time.Minute

// failedFile is the file in a folder of the cache that remembers a failed build: one line for notes, then the error.
const failedFile = "failed"

// failedError is the failure of a compiler that another process has tried.
type failedError struct {
	summary, text string
	ago           time.Duration
}

// Error returns the failure as the other process reported it, and below it when that was.
func (e *failedError) Error() string {
	return fmt.Sprintf("%s\nthis is an earlier failure, of %s; the compiler is called again when it is older than %s", e.text,
		e.age(), failedFor)
}

// age says how long ago the compiler failed, in whole seconds.
func (e *failedError) age() string {
	return fmt.Sprintf("%.0f s ago", math.Ceil(e.ago.Seconds()))
}

// oneLine is the failure on one line, with its age.
func (e *failedError) oneLine() string {
	return e.summary + ", an earlier failure, of " + e.age()
}

// remember keeps the failure of a build for the other ranks. Without it they compile again. It leaves out failures that
// may be of this host alone, where the other ranks of the job may have another one.
func (o *BuildOptions) remember(folder string, failure error) {
	var compile *CompileError
	if errors.As(failure, &compile) && compile.ofHost() {
		return
	}
	text := o.summary(failure) + "\n" + failure.Error()
	written, err := writeNew(folder, text)
	if err != nil {
		return
	}
	defer os.Remove(written)
	_ = os.Rename(written, filepath.Join(folder, failedFile)) // the other ranks compile again
}

// writeNew writes a text to a new file of a folder, and returns its path.
func writeNew(folder, text string) (path string, err error) {
	f, err := os.CreateTemp(folder, ".failed-")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// clockOf is the time of the clock that dates the files of a folder. That of a file server may differ from this host's.
func clockOf(folder string) (time.Time, error) {
	path, err := writeNew(folder, "now")
	if err != nil {
		return time.Time{}, err
	}
	defer os.Remove(path)
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// failed returns the failure that another process has remembered in a folder a moment ago; nil if there is none.
func failed(folder string) error {
	if _, err := os.Stat(filepath.Join(folder, failedFile)); err != nil {
		return nil
	}
	now, err := clockOf(folder)
	if err != nil {
		return nil
	}
	return failedBefore(folder, now)
}

// failedBefore is failed at a time of the folder's clock.
func failedBefore(folder string, now time.Time) error {
	path := filepath.Join(folder, failedFile)
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	ago := now.Sub(info.ModTime()).Abs()
	if ago > failedFor {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	summary, whole, _ := strings.Cut(string(text), "\n")
	return &failedError{summary, whole, ago}
}

// lockStep is the time between two tries to take a lock.
const lockStep = 20 * time.Millisecond

// silentWait is how long a process waits for another one that builds before it tells the user. Ranks wait silentRanks:
// all but one wait while that one compiles, which takes ten seconds or so, and each would tell.
const silentWait, silentRanks = time.Second, 30 * time.Second

// lockFolder waits until no other process builds in a folder of the cache, and keeps others from it until release is
// called. It calls waiting once if that takes longer than silent. On file systems without locks it does nothing:
// each process then builds for itself.
func lockFolder(ctx context.Context, folder string, silent time.Duration, waiting func()) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(folder, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("build the shim: %w", err)
	}
	tell := time.After(silent)
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			return func() { f.Close() }, nil
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("wait for another process that compiles the shim: %w", context.Cause(ctx))
		case <-tell:
			waiting()
		case <-time.After(lockStep):
		}
	}
}
