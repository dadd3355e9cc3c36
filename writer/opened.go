package writer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/commq/commq/internal/gone"
	"github.com/commq/commq/schema"
)

// Opened is a run from which a reader has read something already. Its tables can only be read while its folder has that
// run: another one that replaced it has other rows, and together they would be those of no run.
type Opened struct {
	// Dir is the run's folder.
	Dir string
	// Digest is the digest of its manifest, which stays when derived tables are made again; "" stands for any run.
	Digest string
}

// errReplaced says that the run in a folder is another one than before.
var errReplaced = errors.New("the run was replaced while it was read; run the command again")

// snapshot is the run that a table is read from.
type snapshot struct {
	dir      string
	manifest *schema.Manifest // nil for a run that is not complete, which nothing replaces
	table    *schema.Table
	file     os.FileInfo // that of the manifest; nil if it is not known
}

// table lists the files of a table, as manifestAndFiles does. It is an error if the folder has another run by now.
func (o Opened) table(ctx context.Context, t *schema.Table) (s *snapshot, files []string, err error) {
	s = &snapshot{dir: o.Dir, table: t}
	s.file, _ = os.Stat(s.path()) // before the manifest is read: a later one would not be compared
	s.manifest, files, err = manifestAndFiles(ctx, o.Dir, t)
	if s.manifest == nil && o.Digest != "" && (err == nil || errors.Is(err, os.ErrNotExist)) {
		err = fmt.Errorf("%s: %w", o.Dir, gone.Check(o.Dir, os.ErrNotExist))
	}
	if s.manifest != nil && o.Digest != "" && s.manifest.Digest != o.Digest {
		err = fmt.Errorf("%s: %w", o.Dir, errReplaced)
	}
	if err != nil {
		return nil, nil, s.explain(err)
	}
	return s, files, nil
}

func (s *snapshot) path() string { return filepath.Join(s.dir, manifestName) }

// check returns an error if the folder has another run now, or other files of the table. A run that was removed was
// read to its end nevertheless.
func (s *snapshot) check() error {
	if s.manifest == nil {
		return nil
	}
	file, err := os.Stat(s.path())
	if errors.Is(err, os.ErrNotExist) || err == nil && s.isSame(file) {
		return nil
	}
	now, err := completeManifest(s.dir)
	if err != nil || now == nil {
		return err
	}
	at := slices.Index(schema.Tables(), s.table)
	if now.Digest != s.manifest.Digest || !reflect.DeepEqual(now.Tables[at], s.manifest.Tables[at]) {
		return fmt.Errorf("%s: %w", s.dir, errReplaced)
	}
	return nil
}

// isSame reports whether the manifest is the file that was read.
func (s *snapshot) isSame(file os.FileInfo) bool {
	return s.file != nil && os.SameFile(s.file, file) && s.file.ModTime().Equal(file.ModTime()) &&
		s.file.Size() == file.Size()
}

// explain adds to an error of reading that the run was replaced, if it was: the file may be damaged for that alone.
func (s *snapshot) explain(err error) error {
	if errors.Is(err, errReplaced) {
		return err
	}
	if replaced := s.check(); errors.Is(replaced, errReplaced) {
		return fmt.Errorf("%w; %w", err, errReplaced)
	}
	return err
}
