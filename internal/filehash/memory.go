package filehash

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// files has the hashes of the small files that this process has read, headers what Headers returned of larger ones: an
// engine reads a table in several passes.
var files, headers = newMemory(), newMemory()

func newMemory() *memory { return &memory{sums: map[identity]uint64{}, settled: 3 * time.Second} }

// mostRemembered is the most files whose hashes are kept, in about 5 MB.
const mostRemembered = 1 << 16

// memory keeps hashes of files.
type memory struct {
	settled time.Duration // for how long a file must not have changed: some file systems count times in 2 s

	mutex sync.Mutex
	sums  map[identity]uint64
}

// identity differs when a file was changed since, or is another one. Unlike the time of change, which the system sets,
// the one of its data can be set back.
type identity struct {
	path          string // some file systems number files anew
	device, inode uint64
	size          int64
	changed       int64 // ns
}

// hash returns the hash of a file, for which it calls of only if it does not know it.
func (m *memory) hash(file *os.File, of func(*os.File) (uint64, error)) (uint64, error) {
	var s unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &s); err != nil {
		return 0, err
	}
	id := identity{file.Name(), s.Dev, s.Ino, s.Size, s.Ctim.Nano()}
	if sum, ok := m.known(id); ok {
		return sum, nil
	}
	since := time.Since(time.Unix(0, id.changed))
	sum, err := of(file)
	if err == nil && since >= m.settled { // else it may change again without another time
		m.keep(id, sum)
	}
	return sum, err
}

func (m *memory) known(id identity) (sum uint64, ok bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	sum, ok = m.sums[id]
	return sum, ok
}

func (m *memory) keep(id identity, sum uint64) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if len(m.sums) < mostRemembered {
		m.sums[id] = sum
	}
}
