// Package bounded reads inputs of strangers without trusting their length, kind or the files that they name: a small
// compressed file can unpack to more than the memory of the machine, a pipe waits for ever, and a name may lead anywhere.
package bounded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/commq/commq/internal/units"
)

// TextBytes is the most that is read of a file of text that may be long: signatures, models, findings.
const TextBytes = 256 << 20

// plainTimes is how many times as much is read of a regular file without holes: it takes as much on the disk, and who
// has large runs has large files.
const plainTimes = 16

// ReadAll reads r to its end. More than most bytes are an error, which says how many are read; of a regular file
// without holes, more than 16 times as many.
func ReadAll(r io.Reader, most int64) ([]byte, error) {
	if f, ok := r.(*os.File); ok && isWhole(f) {
		most *= plainTimes
	}
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("more than %s of text; at most that is read", units.Bytes(most))
	}
	if err != nil {
		return nil, err
	}
	return text, nil
}

// ErrNotRegular is the error of OpenRegular about a device, a pipe, a folder or a socket, after its name.
var ErrNotRegular = errors.New("is not a regular file")

// OpenRegular opens a regular file, and returns its size. A folder of strangers may have links to devices that never
// end, and pipes that nobody writes to: those are errors, and are not opened, which may start a device. The open file is
// checked too, as another may have got its name meanwhile.
func OpenRegular(name string) (*os.File, int64, error) {
	info, err := os.Stat(name)
	if err == nil {
		err = checkRegular(name, info)
	}
	if err != nil {
		return nil, 0, err
	}
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0) // a pipe would wait for its writer
	if errors.Is(err, unix.EWOULDBLOCK) {                                     // another program has a lease on the file, and gives it up
		f, err = os.Open(name)
	}
	if err != nil {
		return nil, 0, err
	}
	if info, err = f.Stat(); err == nil {
		err = errors.Join(checkRegular(name, info), unix.SetNonblock(int(f.Fd()), false))
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

func checkRegular(name string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return fmt.Errorf("%s %w", name, ErrNotRegular)
}

// ReadRegular reads a regular file of at most most bytes.
func ReadRegular(name string, most int64) ([]byte, error) {
	f, size, err := OpenRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > most {
		return nil, fmt.Errorf("%s has %d bytes; files of its kind have at most %d", name, size, most)
	}
	text := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	_, err = text.ReadFrom(io.LimitReader(f, most))
	return text.Bytes(), err
}

// isWhole reports whether f is a regular file without holes. Its blocks are not counted: file systems that compress, or
// have not written the file yet, have fewer.
func isWhole(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return false
	}
	hole, err := f.Seek(at, unix.SEEK_HOLE)
	if _, back := f.Seek(at, io.SeekStart); back != nil {
		return false
	}
	return err != nil || hole >= info.Size() // ENXIO: it is empty
}

// ReadFile reads a file as ReadAll does. Its error names the file.
func ReadFile(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := ReadAll(f, most)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

// Reader reads Left bytes of From, and then fails with Err. A decoder of many values sets Left before each.
type Reader struct {
	From io.Reader
	Left int64
	Err  error
}

func (r *Reader) Read(b []byte) (int, error) {
	if r.Left <= 0 {
		return 0, r.Err
	}
	n, err := r.From.Read(b[:min(int64(len(b)), r.Left)])
	r.Left -= int64(n)
	return n, err
}
