package writer

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/zeebo/xxh3"

	"github.com/commq/commq/schema"
)

// hashText is how the manifest writes a hash.
func hashText(h uint64) string { return fmt.Sprintf("%016x", h) }

// VerifyFile reads a file of the run in folder dir and compares its size and its hash with the manifest. A file of an
// older commq has no hash there.
func VerifyFile(dir string, f *schema.FileInfo) error {
	file, err := openSized(dir, f)
	if err != nil || f.Sum == "" {
		return closed(file, err)
	}
	defer file.Close()
	h := xxh3.New()
	if _, err := io.Copy(h, file); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	return compareHash(f.Path, "the file", h.Sum64(), f.Sum)
}

// VerifyFooter does the same as VerifyFile with the file's footer alone, without which no page is found. Of a changed
// page the checksum of its compressed data tells, wherever it is read.
func VerifyFooter(dir string, f *schema.FileInfo) error {
	file, err := openSized(dir, f)
	if err != nil || f.FooterSum == "" {
		return closed(file, err)
	}
	defer file.Close()
	const end = 8 // the length of the metadata, and PAR1
	var tail [end]byte
	if _, err := file.ReadAt(tail[:], f.Bytes-end); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	n := int64(binary.LittleEndian.Uint32(tail[:])) + end
	if n > f.Bytes {
		return fmt.Errorf("%s: its footer has %d bytes, the file %d: it was changed", f.Path, n, f.Bytes)
	}
	footer := make([]byte, n)
	if _, err := file.ReadAt(footer, f.Bytes-n); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	return compareHash(f.Path, "the footer", xxh3.Hash(footer), f.FooterSum)
}

// openSized opens a file if it has the size that the manifest says.
func openSized(dir string, f *schema.FileInfo) (*os.File, error) {
	file, err := os.Open(filepath.Join(dir, filepath.FromSlash(f.Path)))
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Size() != f.Bytes {
		err = fmt.Errorf("%s has %d bytes, the manifest says %d", f.Path, info.Size(), f.Bytes)
	}
	return file, err
}

// closed closes a file, if there is one, and returns err.
func closed(file *os.File, err error) error {
	if file != nil {
		file.Close()
	}
	return err
}

func compareHash(path, what string, found uint64, want string) error {
	if got := hashText(found); got != want {
		return fmt.Errorf("%s: the hash of %s is %s, the manifest says %s: it was changed", path, what, got, want)
	}
	return nil
}

// VerifyRun verifies all files of the run in folder dir.
func VerifyRun(ctx context.Context, dir string) error {
	m, err := ReadManifest(dir)
	if err != nil {
		return err
	}
	return verifyRun(ctx, dir, m)
}

func verifyRun(ctx context.Context, dir string, m *schema.Manifest) error {
	for i := range m.Tables {
		for k := range m.Tables[i].Files {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := VerifyFile(dir, &m.Tables[i].Files[k]); err != nil {
				return err
			}
		}
	}
	return nil
}
