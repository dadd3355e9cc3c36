package writer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/schema"
)

// MakeProfile makes the derived tables, profile, waits and so on, of the run in folder dir: of a run that an older commq wrote without them, or again. Nothing else of the run changes, its digest neither. On an error the run is as it was.
func MakeProfile(ctx context.Context, dir string) error {
	if err := makeProfile(ctx, filepath.Clean(dir)); err != nil {
		return fmt.Errorf("make the profile of %s: %w", dir, err)
	}
	return nil
}

func makeProfile(ctx context.Context, dir string) (err error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	r, err := rewriting(dir, filepath.Join(dir, ".profile.partial"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	if err := r.profileOf(ctx, dir); err != nil {
		return err
	}
	lacks, err := r.writeSums(ctx, dir, m)
	if err != nil {
		return err
	}
	for i, t := range schema.Tables() {
		if !t.Derived {
			continue
		}
		m.Tables[i] = schema.TableInfo{Name: t.Name}
		if !slices.Contains(lacks, t) {
			if m.Tables[i], err = r.closeTable(t); err != nil {
				return err
			}
		}
	}
	if err := writeManifest(r.dir, m); err != nil {
		return err
	}
	for i, t := range schema.Tables() {
		if t.Derived {
			err = errors.Join(err, r.moveTable(dir, m.Tables[i]))
		}
	}
	return errors.Join(err, os.Rename(filepath.Join(r.dir, manifestName), filepath.Join(dir, manifestName)), syncFolder(dir))
}

// rewriting is a Run that is written into a hidden folder, from the one in folder dir and for its place; both an absolute path. What a killed process
// left there is removed.
func rewriting(dir, hidden string) (*Run, error) {
	store, name := filepath.Split(dir)
	l, err := takeLock(filepath.Join(store, "."+name+".lock"))
	if errors.Is(err, errLocked) {
		return nil, errors.New("another process writes it; wait for that to end")
	}
	if err != nil {
		return nil, fmt.Errorf("lock the run: %w", err)
	}
	r := &Run{store: store, name: name, dir: hidden, lock: l, files: map[shardKey]*tableFile{}}
	if err := errors.Join(os.RemoveAll(r.dir), os.Mkdir(r.dir, 0o777)); err != nil {
		return nil, errors.Join(err, l.release())
	}
	return r, nil
}

// moveTable puts a table of the run into folder dir, in the place of the one there.
func (r *Run) moveTable(dir string, info schema.TableInfo) error {
	place := filepath.Join(dir, info.Name)
	err := os.RemoveAll(place)
	if len(info.Files) == 0 {
		return err
	}
	return errors.Join(err, os.Rename(filepath.Join(r.dir, info.Name), place), syncFolder(place))
}

// profiledColumns are what a schema.Profiler looks at, with the key.
var profiledColumns = [...]string{"rank", "seq", "epoch", "thread", "call", "class", "start_ns", "end_ns", "compute_ns", "polls", "poll_ns", "comm",
	"send_peer", "send_bytes", "recv_peer", "recv_world", "recv_tag", "recv_bytes", "posted_any", "proc_null", "error_class", "callsite"}

// profileOf writes the profile of the run in folder dir, a file for each of events.
func (r *Run) profileOf(ctx context.Context, dir string) error {
	files, err := tableFiles(dir, &schema.EventsTable)
	if err != nil {
		return err
	}
	buffers, err := buffersFor(&schema.EventsTable, checkRows, profiledColumns[:])
	if err != nil {
		return err
	}
	for _, name := range files {
		shard, err := strconv.Atoi(strings.TrimSuffix(path.Base(name), ".parquet"))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		p := schema.NewProfiler()
		full := func(rows *schema.Profiles) error { return r.write(shard, rows) }
		err = readFile(ctx, dir, name, buffers, func(b schema.Batch) error { return p.Add(b.(*schema.Events), full) })
		if err := errors.Join(err, p.Flush(full)); err != nil {
			return err
		}
	}
	return nil
}
