// Package private keeps other users of the machine out of commq's own folders: it makes them for their owner alone, and
// refuses those that somebody else has made or can write to. A folder in /tmp with a name that can be guessed may have
// been made before; a library or a result in it would be that user's.
package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Folder makes a folder, and those above it, for their owner alone if they are missing, and returns its absolute path.
// It is an error if what is there belongs to another user than this one and root, or if its group or everybody can
// write to it.
func Folder(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return "", err
	}
	return abs, Check(abs)
}

// Check returns an error if a folder or file belongs to another user than this one and root, if everybody can write to
// it, or if it is a folder that its group can write to. The same holds of a link to it. Everybody may write to the
// folder that it is in only if nobody can replace it there, as in /tmp. A file may have the rights of a umask of 002: in
// a folder of one's own nobody gets at it.
func Check(path string) error {
	self, err := os.Lstat(path)
	if err != nil {
		return err
	}
	infos := []fs.FileInfo{self}
	if self.Mode()&fs.ModeSymlink != 0 {
		there, err := os.Stat(path)
		if err != nil {
			return err
		}
		infos = append(infos, there)
	}
	for _, info := range infos {
		if err := owned(path, info); err != nil {
			return err
		}
	}
	above, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	if above.Mode()&0o002 != 0 && above.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("%s: everybody can write to the folder that it is in, and replace it; name another folder",
			path)
	}
	return nil
}

// Opened returns an error if an open file belongs to another user than this one and root, or if everybody can write to
// it.
func Opened(f interface {
	Name() string
	Stat() (fs.FileInfo, error)
}) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return owned(f.Name(), info)
}

// ErrForeign is the error about what another user has made or can change.
var ErrForeign = errors.New("not only yours")

func owned(path string, info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is %w: it belongs to user %d; remove it, or name another folder", path, ErrForeign,
			stat.Uid)
	}
	for _, who := range []struct {
		can          bool
		name, letter string
	}{
		{info.Mode()&0o002 != 0, "everybody", "o"},
		{info.Mode()&0o020 != 0 && info.IsDir(), "its group", "g"},
	} {
		if who.can && info.Mode()&fs.ModeSymlink == 0 {
			return fmt.Errorf("%s is %w: %s can write to it (mode %04o); name another folder, or take the right away "+
				"with chmod %s-w", path, ErrForeign, who.name, info.Mode().Perm(), who.letter)
		}
	}
	return nil
}
