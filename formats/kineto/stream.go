package kineto

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// open opens a file that may be compressed with gzip.
func open(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b := bufio.NewReaderSize(f, 1<<18)
	if head, err := b.Peek(2); err != nil || head[0] != 0x1f || head[1] != 0x8b {
		return readCloser{b, f}, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return readCloser{z, f}, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

// mostValue is the length in bytes from which on a value of the JSON is not believed to be an event.
const mostValue = 64 << 20

// limited fails when more than mostValue bytes are read for one value.
type limited struct {
	from io.Reader
	left int64
}

var errLong = errors.New("a value of more than 64 MiB; want an event")

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLong
	}
	n, err := l.from.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// object reads a JSON object as a stream. It calls each for the elements of the array that is the value of the key
// list, and other for all other keys and their values. Both decode the value that is next.
func object(r io.Reader, list string, each func(d *json.Decoder) error,
	other func(key string, d *json.Decoder) error) error {
	in := &limited{r, mostValue}
	d := json.NewDecoder(in)
	fail := func(err error) error {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("byte %d: %w", d.InputOffset(), err)
	}
	if err := delimiter(d, '{'); err != nil {
		return fail(err)
	}
	for d.More() {
		in.left = mostValue
		t, err := d.Token()
		if err != nil {
			return fail(err)
		}
		key, _ := t.(string)
		if key != list {
			if err := other(key, d); err != nil {
				return fail(err)
			}
			continue
		}
		if err := delimiter(d, '['); err != nil {
			return fail(err)
		}
		for d.More() {
			in.left = mostValue
			if err := each(d); err != nil {
				return fail(err)
			}
		}
		if err := delimiter(d, ']'); err != nil {
			return fail(err)
		}
	}
	if err := delimiter(d, '}'); err != nil {
		return fail(err)
	}
	return nil
}

func delimiter(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	if t != want {
		return fmt.Errorf("%v where %v is due", t, want)
	}
	return nil
}

// skip reads the next value and drops it.
func skip(d *json.Decoder) error {
	var v json.RawMessage
	return d.Decode(&v)
}
