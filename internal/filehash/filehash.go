// Package filehash compares a file of a run with the size and the hash (xxh3, 64 bits) that the manifest has of it. The
// writer hashes while it writes; readers compare whole files, or what is not the data of pages, which has checksums.
package filehash

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"

	"github.com/commq/commq/internal/bounded"
)

// Mismatch is the error about a file that is not as the manifest says.
type Mismatch struct{ text string }

func (e *Mismatch) Error() string { return e.text }

func mismatch(format string, args ...any) error { return &Mismatch{fmt.Sprintf(format, args...)} }

// IsDamage reports whether an error is that of a file that is missing, unreadable or not as the manifest says. Others,
// such as that there are too many open files, tell nothing of the file.
func IsDamage(err error) bool {
	var m *Mismatch
	for _, is := range []error{fs.ErrNotExist, bounded.ErrNotRegular, unix.EIO, unix.EISDIR, unix.ENOTDIR} {
		if errors.Is(err, is) {
			return true
		}
	}
	return errors.As(err, &m)
}

// Text is how the manifest writes a hash.
func Text(h uint64) string { return fmt.Sprintf("%016x", h) }

// File compares the file path, relative to dir and with slashes, with its size in bytes and its hash. An empty hash,
// as in runs of an older commq, is not compared.
func File(dir, path string, size int64, want string) error {
	return check(dir, path, size, want, "the file", hashOf)
}

func hashOf(file *os.File) (uint64, error) {
	h := xxh3.New()
	_, err := io.Copy(h, file)
	return h.Sum64(), err
}

// Footer does the same as File with the footer of a Parquet file alone.
func Footer(dir, path string, size int64, want string) error {
	return check(dir, path, size, want, "the footer", func(file *os.File) (uint64, error) {
		footer, err := readFooter(file, size)
		return xxh3.Hash(footer), err
	})
}

// smallBytes is the size of a file up to which Quick reads all of it.
const smallBytes = 1 << 20

// Sums are the hashes of a Parquet file in the manifest: of all of it, of its footer, and of Headers. An empty one, as in
// runs of an older commq, is not compared.
type Sums struct{ File, Footer, Headers string }

// Quick compares a file before it is read. It reads all of a small one, which takes up to 0.1 ms; of a larger one the
// footer and the headers of its pages, which takes 0.3 ms per million messages in the system's cache, and 9 ms if they are not
// there. It does so only once in a process unless
// the file has changed. The reader finds changed data of pages by their checksums.
func Quick(ctx context.Context, dir, path string, size int64, want Sums) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if size <= smallBytes && want.File != "" {
		return check(dir, path, size, want.File, "the file", func(file *os.File) (uint64, error) {
			return files.hash(file, hashOf)
		})
	}
	if err := Footer(dir, path, size, want.Footer); err != nil {
		return err
	}
	return check(dir, path, size, want.Headers, "the headers of pages", func(file *os.File) (uint64, error) {
		return headers.hash(file, func(file *os.File) (uint64, error) { return Headers(ctx, file, size) })
	})
}

// check compares the size of a file and, unless want is empty, the hash of the part that what names.
func check(dir, path string, size int64, want, what string, hash func(*os.File) (uint64, error)) error {
	file, err := openSized(dir, path, size)
	if err != nil {
		return err
	}
	defer file.Close()
	if want == "" {
		return nil
	}
	found, err := hash(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if got := Text(found); got != want {
		return mismatch("%s: the hash of %s is %s, the manifest says %s: it was changed", path, what, got, want)
	}
	return nil
}

// readFooter reads the metadata of a Parquet file with its length and PAR1 behind it.
func readFooter(file io.ReaderAt, size int64) ([]byte, error) {
	n, err := footerBytes(file, size)
	if err != nil {
		return nil, err
	}
	footer := make([]byte, n)
	_, err = file.ReadAt(footer, size-n)
	return footer, err
}

// footerBytes returns the size of what readFooter reads.
func footerBytes(file io.ReaderAt, size int64) (int64, error) {
	var tail [8]byte // the length of the metadata, and PAR1
	if size < int64(len(tail)) {
		return 0, mismatch("%d bytes are no Parquet file", size)
	}
	if _, err := file.ReadAt(tail[:], size-int64(len(tail))); err != nil {
		return 0, err
	}
	n := int64(binary.LittleEndian.Uint32(tail[:])) + int64(len(tail))
	if n > size {
		return 0, mismatch("its footer has %d bytes, the file %d: it was changed", n, size)
	}
	return n, nil
}

// openSized opens a file if it is a regular one and has the size that the manifest says.
func openSized(dir, path string, size int64) (*os.File, error) {
	file, found, err := bounded.OpenRegular(filepath.Join(dir, filepath.FromSlash(path)))
	if err != nil {
		return nil, err
	}
	if found != size {
		file.Close()
		return nil, mismatch("%s has %d bytes, the manifest says %d", path, found, size)
	}
	return file, nil
}
