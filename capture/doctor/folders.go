package doctor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/commq/commq/internal/kept"
	"github.com/commq/commq/internal/private"
	"github.com/commq/commq/internal/units"
)

// sharedFileSystems are file systems that several machines mount, by their magic numbers (statfs(2)).
var sharedFileSystems = map[int64]string{0x6969: "NFS", 0x0BD00BD0: "Lustre", 0x47504653: "GPFS",
	0x19830326: "BeeGFS", 0x00c36400: "CephFS", 0xFF534D42: "CIFS", 0xFE534D42: "SMB", 0x5346414F: "AFS",
	0x65735546: "FUSE"}

// leastFreeBytes is the room in the spool folder below which doctor warns.
const leastFreeBytes = 1 << 30

// spoolFolder checks the folder that ranks write their records to: room, mapped files, a local disk, and that nobody else
// can write to it.
func spoolFolder(dir string) Finding {
	const name = "spool folder"
	named := dir != "" // else commq makes one of its own below
	if !named {
		dir = os.TempDir()
	}
	f, err := os.CreateTemp(dir, ".commq-doctor-")
	if err != nil {
		return failure(name, "name a writable folder on a local disk with --spool", "%v", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil {
		return warning(name, "name another folder with --spool", "%s: its free space cannot be read: %v", dir, err)
	}
	free := int64(fs.Bavail) * int64(fs.Bsize)
	remote, isShared := sharedFileSystems[int64(uint32(fs.Type))]
	unmapped := withoutSharedMaps(f)
	var foreign error
	if named {
		foreign = private.Check(dir)
	}
	switch {
	case free < leastFreeBytes:
		return warning(name, "64 bytes and more per call are needed until the run is written; name another with --spool",
			"%s: %s free", dir, units.Bytes(free))
	case unmapped != "":
		return warning(name, "records then go through a buffer and write(2), and a killed rank loses what was in it; "+
			"a local disk is better", "%s: %s", dir, unmapped)
	case isShared:
		return warning(name, "a folder on each node's own disk is faster; name one with --spool, and copy the files "+
			"together afterwards", "%s: %s, %s free", dir, remote, units.Bytes(free))
	case foreign != nil: // capture takes it
		return warning(name, "commq exec --spool refuses it: make the folder with mkdir -m 700; commq capture --spool "+
			"makes one of its own in it", "%v", foreign)
	}
	return ok(name, "%s: %s free, records are written through shared maps", dir, units.Bytes(free))
}

// withoutSharedMaps is the reason why a file cannot be written through a shared map as the shim does; empty if it can.
func withoutSharedMaps(f *os.File) string {
	const bytes = 1 << 16
	if err := unix.Fallocate(int(f.Fd()), 0, 0, bytes); err != nil {
		return fmt.Sprintf("no fallocate (%v)", err)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Sprintf("no shared maps (%v)", err)
	}
	data[0] = 1
	_ = unix.Munmap(data)
	return ""
}

// cacheFolder is the folder of compiled capture libraries and kept results; empty if the user has no home.
func cacheFolder() string {
	dir, err := kept.CacheFolder()
	if err != nil {
		return ""
	}
	return dir
}

// privateFolder is writableFolder for a folder that only its owner may write to.
func privateFolder(name, dir, do string) Finding {
	if dir != "" && exists(dir) {
		if err := private.Check(dir); err != nil {
			return failure(name+" folder", do, "%v", err)
		}
	}
	return writableFolder(name, dir, do)
}

// writableFolder checks that a folder, or the first of its parents that exists, can be written to.
func writableFolder(name, dir, do string) Finding {
	name += " folder"
	if dir == "" {
		return failure(name, do, "there is no home folder to keep it in")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return failure(name, do, "%v", err)
	}
	existing := abs
	for !exists(existing) && existing != filepath.Dir(existing) {
		existing = filepath.Dir(existing)
	}
	if err := tryWriting(existing); err != nil {
		return failure(name, do, "%s: %v", abs, err)
	}
	return ok(name, "%s can be written to", abs)
}

// tryWriting makes, writes and removes a file.
func tryWriting(dir string) error {
	f, err := os.CreateTemp(dir, ".commq-doctor-")
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, "x")
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// lastLine is the last line of a tool's output that is neither empty nor a ruler.
func lastLine(out []byte) string {
	last := ""
	for _, line := range strings.Split(string(out), "\n") {
		if s := strings.TrimSpace(line); strings.Trim(s, "-=*") != "" {
			last = s
		}
	}
	return last
}
