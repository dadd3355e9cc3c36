package writer

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/commq/commq/internal/disk"
)

// errLocked means that another process, or another Run of this one, holds a lock.
var errLocked = errors.New("locked")

// lock is a lock file. The kernel frees it when its process ends, however it ends.
type lock struct {
	file *disk.File
}

// takeLock takes the lock file at path, or returns errLocked. On a file system without locks the lock is held as long
// as the file exists. A link is no lock file: in a shared store it could lead to, and make, any file of this user.
func takeLock(path string) (*lock, error) {
	for {
		f, err := disk.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o666)
		if errors.Is(err, syscall.ELOOP) {
			return nil, fmt.Errorf("%s is a link, and no lock of commq's; remove it", path)
		}
		if err != nil {
			return nil, err
		}
		err = f.Lock()
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK):
			f.Close()
			return nil, errLocked
		case err != nil:
			f.Close()
			return takeWithoutFlock(path, err)
		case samePath(f, path):
			return &lock{f}, nil
		}
		f.Close() // its holder removed it between our open and our lock
	}
}

// heldFile is the path of a file that stands for a lock where the file system has none. As an error it says that the
// file exists.
type heldFile string

func (f heldFile) Error() string {
	return fmt.Sprintf("%s exists: another process holds it, or a killed process left it; in that case remove it (the "+
		"file system has no locks)", string(f))
}

func (heldFile) Is(target error) bool { return target == ErrBusy }

// takeWithoutFlock takes a lock on a file system where flock fails, such as Lustre mounted without it.
func takeWithoutFlock(path string, cause error) (*lock, error) {
	if !errors.Is(cause, syscall.ENOSYS) && !errors.Is(cause, syscall.EOPNOTSUPP) && !errors.Is(cause, syscall.ENOLCK) {
		return nil, &os.PathError{Op: "lock", Path: path, Err: cause}
	}
	f, err := disk.OpenFile(path+"ed", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	disk.Remove(path)
	if errors.Is(err, os.ErrExist) {
		return nil, heldFile(path + "ed")
	}
	if err != nil {
		return nil, err
	}
	return &lock{f}, nil
}

func samePath(f *disk.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Lstat(path)
	return err == nil && os.SameFile(a, b)
}

// release frees the lock. It removes the file first; a process that has it open then tries again.
func (l *lock) release() error {
	if l == nil || l.file == nil {
		return nil
	}
	err := errors.Join(disk.Remove(l.file.Name()), l.file.Close())
	l.file = nil
	return err
}
