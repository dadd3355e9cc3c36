package training

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/signature"
)

// FindFiles returns the signature files that a pattern matches. It returns nil for a pattern that does not end like
// their names, and an error when there is no such file.
func FindFiles(pattern string) ([]string, error) {
	if !strings.HasSuffix(pattern, ".json") && !strings.HasSuffix(pattern, ".gz") {
		return nil, nil
	}
	if _, err := os.Stat(pattern); err == nil {
		return []string{pattern}, nil // also a name with the characters of patterns
	}
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pattern, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no such file; commq export signature --run RUN -o FILE makes it", pattern)
	}
	return files, nil
}

// ReadFile reads a signature from a file, which is compressed when its name ends in .gz.
func ReadFile(name string) (*signature.Signature, error) {
	in, err := OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	s, err := signature.Read(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// OpenFile opens a file, which is compressed when its name ends in .gz.
func OpenFile(name string) (io.ReadCloser, error) {
	f, err := os.Open(name)
	if err != nil || !strings.HasSuffix(name, ".gz") {
		return f, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{z, f}, nil
}

// Compressed returns a function that writes what write writes, compressed when the file's name ends in .gz.
func Compressed(name string, write func(io.Writer) error) func(io.Writer) error {
	if !strings.HasSuffix(name, ".gz") {
		return write
	}
	return func(w io.Writer) error {
		z := gzip.NewWriter(w)
		return errors.Join(write(z), z.Close())
	}
}

// ReadModels reads models from a file, or from stdin for "-". It is an error if commq made one of their runs, unless it
// is replayed.
func ReadModels(file string, stdin io.Reader) (*model.Model, error) {
	in := stdin
	if file != "-" {
		f, err := OpenFile(file)
		if err != nil {
			return nil, fmt.Errorf("--models: %w", err)
		}
		defer f.Close()
		in = f
	}
	m, err := model.Read(in)
	if err == nil {
		err = checkAll(m.Runs())
	}
	if err != nil {
		return nil, fmt.Errorf("--models %s: %w", file, err)
	}
	return m, nil
}

// checkAll returns an error if commq made one of the runs, unless it is replayed.
func checkAll(runs []*signature.Signature) error {
	for _, s := range runs {
		if _, err := check(s.Run, evidenceOf(s), false); err != nil {
			return err
		}
	}
	return nil
}

// FindLaws finds the laws of runs. It is an error if commq made one of them, unless it is replayed. When ctx ends, it
// returns early; the search goes on in the background.
func FindLaws(ctx context.Context, runs []*signature.Signature) (*model.Model, error) {
	if err := checkAll(runs); err != nil {
		return nil, err
	}
	return Await(ctx, func() (*model.Model, error) { return model.New(runs) })
}

// Await runs compute, which takes no context, and returns its result. When ctx ends first, it returns ctx's error at
// once, and compute goes on in the background until it is done.
func Await[T any](ctx context.Context, compute func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := compute()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
