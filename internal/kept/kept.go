// Package kept keeps what was computed from a run in the user's cache folder, so that it is computed once. A run itself
// is never changed.
//
// What is kept belongs to the contents of a run and to one build of the program: another run, a changed one and another
// build never read it. A file begins with the digest of the rest, so that a damaged one is not read either. The rest is
// of package snapshot. Docs: docs/adr/0022-results-are-kept-in-the-cache-folder.md.
package kept

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/commq/commq/internal/bounded"
	"github.com/commq/commq/internal/disk"
	"github.com/commq/commq/internal/private"
	"github.com/commq/commq/internal/snapshot"
)

// Results are those of one run. A nil pointer has none and keeps none.
type Results struct{ prefix string }

// unusedFor is after how long results that nobody asked for are removed.
const unusedFor = 30 * 24 * time.Hour

// CacheFolder is $COMMQ_CACHE, else the folder commq in the user's cache folder. It is an error if there is neither.
func CacheFolder() (string, error) {
	if env := os.Getenv("COMMQ_CACHE"); env != "" {
		return filepath.Abs(env)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w; name a cache folder in $COMMQ_CACHE", err)
	}
	return filepath.Join(dir, "commq"), nil
}

// ResultsOf returns the results of the run in a folder, which are kept in another one. The run is told from others by
// its manifest and by the name, size and time of change of each file. Where these cannot be read, or this program has
// no build ID, nothing is kept.
func ResultsOf(run, in string) *Results {
	build := buildID()
	if build == "" {
		return nil
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q\n", build, filepath.Base(run))
	manifest, err := bounded.ReadRegular(filepath.Join(run, "manifest.json"), bounded.TextBytes)
	if err != nil {
		return nil
	}
	fmt.Fprintf(sum, "%x\n", sha256.Sum256(manifest))
	run, err = filepath.EvalSymlinks(run)
	if err != nil {
		return nil
	}
	err = filepath.WalkDir(run, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Stat(path) // of the file that a link leads to
		if err == nil && info.IsDir() {
			err = errors.New("a link to a folder, whose files are not seen")
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %d %d\n", strings.TrimPrefix(path, run), info.Size(), info.ModTime().UnixNano())
		return nil
	})
	if err != nil {
		return nil
	}
	return &Results{filepath.Join(in, hex.EncodeToString(sum.Sum(nil)[:16])+".")}
}

// buildID identifies the program and all its code; "" where it is not known.
var buildID = sync.OnceValue(func() string {
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		return ""
	}
	defer f.Close()
	note := f.Section(".note.go.buildid")
	if note == nil {
		return ""
	}
	id, err := note.Data()
	if err != nil || len(id) <= noteHeader {
		return ""
	}
	return string(id)
})

// noteHeader is the size of an ELF note without its text.
const noteHeader = 16

// Load reads the result with a name into a pointer of the type that was saved. false means that there is none; *into is
// then unchanged. The result must not be changed.
func Load[T any](r *Results, name string, into *T) bool {
	if r == nil {
		return false
	}
	path := r.prefix + name
	data, err := readOwn(path)
	if err != nil || len(data) < sha256.Size {
		return false
	}
	body := data[sha256.Size:]
	if sha256.Sum256(body) != [sha256.Size]byte(data) {
		return false
	}
	var got T
	if snapshot.Read(bytes.NewReader(body), &got) != nil {
		return false
	}
	*into = got
	now := time.Now()
	_ = os.Chtimes(path, now, now) // see removeUnused
	return true
}

// readOwn reads a file that this user made: the digest in it tells a damaged file, not one that somebody else wrote.
func readOwn(path string) ([]byte, error) {
	f, _, err := bounded.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := errors.Join(private.Opened(f), private.Check(filepath.Dir(path))); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// Save keeps a result under a name; one that was there is replaced. If the folder cannot be written nothing is kept:
// the result is then computed again.
func Save[T any](r *Results, name string, result *T) {
	if r == nil {
		return
	}
	var body bytes.Buffer
	if snapshot.Write(&body, result) != nil {
		return
	}
	sum := sha256.Sum256(body.Bytes())
	if writeWhole(r.prefix+name, sum[:], body.Bytes()) == nil {
		removeUnused(filepath.Dir(r.prefix), time.Now().Add(-unusedFor))
	}
}

// writeWhole makes a file that others see when all of it is written.
func writeWhole(path string, parts ...[]byte) error {
	dir := filepath.Dir(path)
	if err := disk.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if _, err := private.Folder(dir); err != nil {
		return err
	}
	f, err := disk.CreateTemp(dir, "new.", 0o600)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if _, err = f.Write(part); err != nil {
			break
		}
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = disk.Rename(f.Name(), path)
	}
	if err != nil {
		_ = disk.Remove(f.Name())
	}
	return err
}

// removeUnused removes files that were last used before a time. Others may do so at the same time.
func removeUnused(dir string, before time.Time) {
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		if info, err := f.Info(); err == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
			_ = os.Remove(filepath.Join(dir, f.Name()))
		}
	}
}
