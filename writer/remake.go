package writer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/internal/disk"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/derive"
)

// MakeProfile makes the derived tables (profile, waits and so on) of the run in folder dir, for the first time when an
// older commq wrote it, or again, and the fingerprint of payloads. Nothing else of the run changes, and neither does its
// digest. On an error other than ErrInPlace the run stays as it was.
func MakeProfile(ctx context.Context, dir string) error {
	if err := makeProfile(ctx, filepath.Clean(dir)); err != nil {
		return fmt.Errorf("make the profile of %s: %w", dir, err)
	}
	return nil
}

func makeProfile(ctx context.Context, dir string) (err error) {
	if _, err := ReadManifest(dir); err != nil { // nothing is written beside a folder that is no run
		return err
	}
	if dir, err = filepath.Abs(dir); err == nil {
		dir, err = filepath.EvalSymlinks(dir) // the run may be a link into another folder
	}
	if err != nil {
		return err
	}
	r, err := rewriteRun(dir, partialFolder(filepath.Split(dir)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	m, err := ReadManifest(dir) // under the lock, as another run may have replaced the one that had the name before
	if err != nil {
		return err
	}
	if err := linkOthers(dir, r.place.dir); err != nil {
		return err
	}
	if err := remakeTables(ctx, r, dir, m); err != nil {
		return err
	}
	if err := r.place.sync(); err != nil {
		return err
	}
	return r.place.replace(dir)
}

// linkOthers gives all files of a run but those that are made again a second name in another folder.
func linkOthers(dir, to string) error {
	folder, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name := strings.TrimPrefix(path, dir+string(filepath.Separator))
		switch {
		case name == manifestName:
			return nil
		case schema.IsDerived(name):
			return fs.SkipDir
		case d.IsDir():
			return disk.Mkdir(filepath.Join(to, name), 0o777)
		}
		return (&Published{}).link(folder, name, filepath.Join(to, name))
	})
}

// rewriteRun begins a Run that will replace the run in folder dir, an absolute path, or tables of it. It is written in
// the folder hidden.
func rewriteRun(dir, hidden string) (*Run, error) {
	p, err := retakePlace(dir, hidden)
	if err != nil {
		return nil, err
	}
	return &Run{place: p, files: newTableFiles(p)}, nil
}

// remakeTables writes the derived tables of the run in folder dir, and its manifest with them, to r.
func remakeTables(ctx context.Context, r *Run, dir string, m *schema.Manifest) error {
	if err := writeProfile(ctx, r.files, dir); err != nil {
		return err
	}
	lacks, err := r.sums.write(ctx, dir, m, r.files)
	if err != nil {
		return err
	}
	for i, t := range schema.Tables() {
		if !t.Derived {
			continue
		}
		m.Tables[i] = schema.TableInfo{Name: t.Name}
		if !slices.Contains(lacks, t) {
			if m.Tables[i], err = r.files.closeTable(t); err != nil {
				return err
			}
		}
	}
	return writeManifest(r.place.dir, m)
}

// profiledColumns are the columns that derive.Profiler reads, and the key.
var profiledColumns = [...]string{"rank", "seq", "epoch", "thread", "call", "class", "start_ns", "end_ns",
	"compute_ns", "polls", "poll_ns", "comm",
	"send_peer", "send_bytes", "recv_peer", "recv_world", "recv_tag", "recv_bytes", "posted_any", "proc_null",
	"error_class", "callsite"}

// writeProfile writes the profile of the run in folder dir to to, a file for each file of events.
func writeProfile(ctx context.Context, to *tableFiles, dir string) error {
	files, err := listFiles(ctx, dir, &schema.EventsTable)
	if err != nil {
		return err
	}
	buffers, err := buffersFor(&schema.EventsTable, checkRows, profiledColumns[:])
	if err != nil {
		return err
	}
	buffers.fillUnread()
	for _, name := range files {
		shard, err := strconv.Atoi(strings.TrimSuffix(path.Base(name), ".parquet"))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		p := derive.NewProfiler()
		full := func(rows *schema.Profiles) error { return to.write(shard, rows) }
		err = readFile(ctx, dir, name, buffers, func(b schema.Batch) error { return p.Add(b.(*schema.Events), full) })
		if err := errors.Join(err, p.Flush(full)); err != nil {
			return err
		}
	}
	return nil
}
