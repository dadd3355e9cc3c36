// Package jsonstream reads JSON of any length, also compressed with gzip, with one value in memory at a time.
package jsonstream

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/commq/commq/internal/bounded"
)

// Open opens a file that may be compressed with gzip.
func Open(path string) (io.ReadCloser, error) {
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

// mostValue is the length in bytes from which on a value of the JSON is not believed.
const mostValue = 64 << 20

var errLong = errors.New("a value of more than 64 MiB; want an event of a trace")

// Values calls each for the values that follow one another, such as lines, each decoded into a T. cut reports that the
// text ends within a value other than the first.
func Values[T any](r io.Reader, each func(v *T) error) (cut bool, err error) {
	in := &bounded.Reader{From: r, Left: mostValue, Err: errLong}
	d := json.NewDecoder(in)
	for n := int64(0); ; n++ {
		in.Left = mostValue
		var v T
		err := d.Decode(&v)
		switch {
		case err == io.EOF:
			return false, nil
		case errors.Is(err, io.ErrUnexpectedEOF) && n > 0:
			return true, nil
		case err == nil:
			err = each(&v)
		}
		if err != nil {
			return false, fmt.Errorf("record %d, byte %d: %w", n, d.InputOffset(), err)
		}
	}
}

// Object reads a JSON object as a stream. It calls each for the elements of the array that is the value of the key
// list, and other for all other keys and their values. Both decode the value that is next.
func Object(r io.Reader, list string, each func(d *json.Decoder) error,
	other func(key string, d *json.Decoder) error) error {
	in := &bounded.Reader{From: r, Left: mostValue, Err: errLong}
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
		in.Left = mostValue
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
			in.Left = mostValue
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

// Skip reads the next value and drops it.
func Skip(d *json.Decoder) error {
	var v json.RawMessage
	return d.Decode(&v)
}
