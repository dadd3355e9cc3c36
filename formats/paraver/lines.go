package paraver

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
)

// mostLine is more than a line of a trace has: the four million ranks that there may be have 32 MiB in the line of a
// communicator. mostText is more than one of a .pcf or .row has.
const mostLine, mostText = 1 << 25, 1 << 20

// lines reads a file line by line.
type lines struct {
	path   string
	in     *bufio.Reader
	close  func() error
	number int64 // of the line that next returned
	long   []byte
	most   int      // bytes of a line
	text   bool     // the last line may lack its end
	read   *counter // of the file, compressed or not
	size   int64
}

// counter counts what is read through it.
type counter struct {
	in io.Reader
	n  atomic.Int64
}

// Read reads and counts.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// openLines opens a file that may be compressed with gzip.
func openLines(path string) (*lines, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return linesOf(path, f, info.Size())
}

// linesOf reads an open file of a size.
func linesOf(path string, f *os.File, size int64) (*lines, error) {
	l, err := newLines(path, f, size)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l.close = f.Close
	return l, nil
}

// newLines reads lines of a file with that name and size.
func newLines(path string, in io.Reader, size int64) (*lines, error) {
	l := &lines{path: path, read: &counter{in: in}, size: size, most: mostLine, close: func() error { return nil }}
	l.in = bufio.NewReaderSize(l.read, 1<<18)
	if magic, _ := l.in.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return l, nil
	}
	z, err := gzip.NewReader(l.in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	l.in = bufio.NewReaderSize(z, 1<<18)
	return l, nil
}

// bad returns an error about the current line.
func (l *lines) bad(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", l.path, l.number, fmt.Errorf(format, args...))
}

// next returns the next line without its end, valid until the next call; io.EOF after the last. A last line of a trace
// without an end is an error: the file was cut off there.
func (l *lines) next() ([]byte, error) {
	l.number++
	line, err := l.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		l.long = l.long[:0]
		for errors.Is(err, bufio.ErrBufferFull) && len(l.long) < l.most {
			l.long = append(l.long, line...)
			line, err = l.in.ReadSlice('\n')
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			return nil, l.bad("the line has more than %d bytes; want a line for each record", l.most)
		}
		l.long = append(l.long, line...)
		line = l.long
	}
	switch {
	case err == io.EOF && len(line) == 0:
		return nil, io.EOF
	case err == io.EOF && l.text:
		return line, nil
	case err == io.EOF:
		return nil, l.bad("the file ends within a line, at %q: it was cut off, or is still being written; copy it again",
			tail(line))
	case err != nil:
		return nil, l.bad("%w", err)
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'}), nil
}

// tail returns the last bytes of a line, for an error.
func tail(line []byte) string {
	const most = 40
	if len(line) > most {
		return "..." + string(line[len(line)-most:])
	}
	return string(line)
}

// head returns the first bytes of a line, for an error.
func head(line []byte) string {
	const most = 60
	if len(line) > most {
		return string(line[:most]) + "..."
	}
	return string(line)
}

// fields splits a line into its numbers, and appends them to to. Values above the largest int64 are taken modulo 2^64,
// as addresses and counters may be.
func fields(to []int64, line []byte) ([]int64, error) {
	for i := 0; ; i++ {
		negative := i < len(line) && line[i] == '-'
		if negative {
			i++
		}
		x, begin := uint64(0), i
		for ; i < len(line) && line[i] >= '0' && line[i] <= '9'; i++ {
			digit := uint64(line[i] - '0')
			if x > (1<<64-1-digit)/10 {
				return nil, fmt.Errorf("field %d of %q is above 64 bits", len(to)+1, head(line))
			}
			x = 10*x + digit
		}
		if i == begin || i < len(line) && line[i] != ':' {
			return nil, fmt.Errorf("field %d of %q is no number", len(to)+1, head(line))
		}
		if negative {
			x = -x
		}
		to = append(to, int64(x))
		if i == len(line) {
			return to, nil
		}
	}
}

// trimEndings removes the endings of a trace's file name.
func trimEndings(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".prv")
}
