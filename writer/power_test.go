package writer_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/commq/commq/internal/disk/diskfail"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/schematest"
	"github.com/commq/commq/writer"
)

// tiny writes the tiny run of package schematest; tag tells runs apart.
func tiny(t *testing.T, store, name string, tag int32, o writer.Options) error {
	r, err := writer.Create(store, name, o)
	if err != nil {
		return err
	}
	defer r.Abort()
	for _, b := range schematest.ParseRows(t, schematest.TinyRun) {
		if m, ok := b.(*schema.Messages); ok {
			for i := range m.Tag {
				m.Tag[i] = tag
			}
		}
		if b.Table().Derived {
			continue
		}
		if err := r.Write(0, b); err != nil {
			return err
		}
	}
	return r.Commit(context.Background(), schematest.TinyManifest())
}

// tags returns the tags of the messages of each run in a store, in which every run must be whole.
func tags(store string) (map[string]int32, error) {
	runs, err := writer.List(store)
	if err != nil {
		return nil, err
	}
	found := map[string]int32{}
	for _, r := range runs {
		if r.Err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, r.Err)
		}
		if err := isWhole(r.Dir); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		err = writer.ReadTable(context.Background(), r.Dir, &schema.MessagesTable, 10, func(b schema.Batch) error {
			found[r.Name] = b.(*schema.Messages).Tag[0]
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// checks counts the runs that were checked.
var checks int

// isWhole checks that all files of a run are there as they were written, and of one run in twenty every rule, which
// takes much longer.
func isWhole(dir string) error {
	if checks++; checks%20 != 0 {
		return writer.VerifyRun(context.Background(), dir)
	}
	problems, err := writer.Check(context.Background(), dir)
	if err != nil {
		return err
	}
	for _, p := range problems {
		if p.Rule != "messages" { // tags differ from those in events on purpose
			return errors.New(p.String())
		}
	}
	return nil
}

// wantTags checks the tags of a run, one of some that are allowed; 0 means no run.
func wantTags(store, name string, allowed ...int32) error {
	return wantAllTags(store, map[string][]int32{name: allowed})
}

// wantAllTags does the same with several runs, which takes no longer than with one.
func wantAllTags(store string, allowed map[string][]int32) error {
	found, err := tags(store)
	for name, want := range allowed {
		if err == nil && !slices.Contains(want, found[name]) {
			err = fmt.Errorf("run %s has tag %d, want one of %d", name, found[name], want)
		}
	}
	return err
}

// writeNew writes a run with tag 5. If that fails, the run is there if the error says so, and else not.
func writeNew(t *testing.T, store, name string, o writer.Options) error {
	err := tiny(t, store, name, 5, o)
	if err == nil {
		return nil
	}
	found, broken := tags(store)
	if broken != nil || errors.Is(err, writer.ErrInPlace) != (found[name] == 5) {
		t.Errorf("%v, and after it the tags are %v, %v", err, found, broken)
	}
	return err
}

// whether returns a when the story was done, else a and b.
func whether(did bool, a, b int32) []int32 {
	if did {
		return []int32{a}
	}
	return []int32{a, b}
}

// TestPowerAndDisksFail tries failures of everything that is written into stores: after each the store opens, its runs
// are whole, and a second try works.
func TestPowerAndDisksFail(t *testing.T) {
	old := func(dir string) error { return tiny(t, dir, "old", 9, writer.Options{}) }
	stories := map[string]diskfail.Story{
		"commit": {
			Before: old,
			Do: func(dir string) error {
				if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
					return nil
				}
				return writeNew(t, dir, "new", writer.Options{})
			},
			After: func(dir string, did bool) error {
				return wantAllTags(dir, map[string][]int32{"old": {9}, "new": whether(did, 5, 0)})
			},
		},
		"replace": {
			Before: old,
			Do:     func(dir string) error { return writeNew(t, dir, "old", writer.Options{Replace: true}) },
			After:  func(dir string, did bool) error { return wantTags(dir, "old", whether(did, 5, 9)...) },
		},
		"remove": {
			Before: func(dir string) error { return errors.Join(old(dir), tiny(t, dir, "new", 5, writer.Options{})) },
			Do: func(dir string) error {
				if _, err := os.Stat(filepath.Join(dir, "new")); err != nil {
					return nil
				}
				return writer.Remove(dir, "new")
			},
			After: func(dir string, did bool) error {
				return wantAllTags(dir, map[string][]int32{"old": {9}, "new": whether(did, 0, 5)})
			},
		},
		"compact": {
			Before: old,
			Do: func(dir string) error {
				_, _, err := writer.Compact(context.Background(), filepath.Join(dir, "old"), 0, nil)
				return err
			},
			After: func(dir string, did bool) error { return wantTags(dir, "old", 9) },
		},
		"profile": {
			Before: old,
			Do:     func(dir string) error { return writer.MakeProfile(context.Background(), filepath.Join(dir, "old")) },
			After:  func(dir string, did bool) error { return wantTags(dir, "old", 9) },
		},
		"parts":      partsStory(t),
		"publish":    publishStory(old),
		"first":      firstStory(),
		"checkpoint": checkpointStory(),
	}
	for name, s := range stories {
		t.Run(name, func(t *testing.T) { diskfail.Try(t, s, diskfail.Trials()) })
	}
}

// partsStory writes a run as one of one part.
func partsStory(t *testing.T) diskfail.Story {
	do := func(dir string) error {
		p, err := writer.OpenParts(dir, "parts", "job", false)
		if err != nil || p == nil {
			return err
		}
		r := p.Begin()
		defer r.Abort()
		batches := schematest.ParseRows(t, schematest.TinyRun)
		sharded := func(b schema.Batch) bool { return b.Table().Sharded }
		for _, b := range batches {
			if sharded(b) && !b.Table().Derived {
				if err := r.Write(0, b); err != nil {
					return err
				}
			}
		}
		files, err := r.ClosePart()
		if err == nil {
			err = p.Put("0.rows", []byte("rows"))
		}
		if err != nil {
			return err
		}
		last, err := p.Assemble(files)
		if err != nil {
			return err
		}
		defer last.Abort()
		for _, b := range batches {
			if !sharded(b) && !b.Table().Derived {
				if err := last.Write(0, b); err != nil {
					return err
				}
			}
		}
		m := schematest.TinyManifest()
		m.Origin.Job = "job"
		if err := last.Commit(context.Background(), m); err != nil {
			return err
		}
		return p.Remove()
	}
	return diskfail.Story{Do: do, After: func(dir string, did bool) error {
		return wantTags(dir, "parts", whether(did, 9, 0)...)
	}}
}

// publishStory publishes a run beside its store, from where another one is published already.
func publishStory(old func(dir string) error) diskfail.Story {
	runs := func(dir string) string { return filepath.Join(dir, "runs") }
	tables := func(dir string) string { return filepath.Join(dir, "tables") }
	publish := func(dir, as string) error {
		_, err := writer.Publish(filepath.Join(runs(dir), "old"), as, tables(dir), []byte("a row of runs"))
		return err
	}
	return diskfail.Story{
		Before: func(dir string) error { return errors.Join(old(runs(dir)), publish(dir, "first")) },
		Do:     func(dir string) error { return publish(dir, "second") },
		After: func(dir string, did bool) error {
			return errors.Join(wantTags(runs(dir), "old", 9), isPublished(tables(dir), "first", true),
				isPublished(tables(dir), "second", did))
		},
	}
}

// isPublished checks that a run with a row of runs is there in all tables; it must have one if must is true.
func isPublished(to, name string, must bool) error {
	row, err := os.ReadFile(filepath.Join(to, "runs", writer.PartitionFolder(name), "0000.parquet"))
	if errors.Is(err, os.ErrNotExist) && !must {
		return nil
	}
	if err != nil || string(row) != "a row of runs" {
		return fmt.Errorf("the row of run %s: %q, %w", name, row, err)
	}
	for _, t := range []*schema.Table{&schema.EventsTable, &schema.MessagesTable, &schema.RanksTable} {
		data, err := os.ReadFile(filepath.Join(to, t.Name, writer.PartitionFolder(name), "0000.parquet"))
		if err != nil || len(data) < 12 || string(data[len(data)-4:]) != "PAR1" {
			return fmt.Errorf("table %s of run %s: %d bytes, %w", t.Name, name, len(data), err)
		}
	}
	return nil
}

// checkpointStory saves a second state of a task.
func checkpointStory() diskfail.Story {
	save := func(dir, text string) error {
		c, err := writer.OpenCheckpoint(filepath.Join(dir, "state"), 0, []writer.Fact{{Name: "task", Value: "one"}})
		if err != nil {
			return err
		}
		err = c.Save(func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
		return errors.Join(err, c.Close())
	}
	load := func(dir string, allowed ...string) error {
		c, err := writer.OpenCheckpoint(filepath.Join(dir, "state"), 0, []writer.Fact{{Name: "task", Value: "one"}})
		if err != nil {
			return err
		}
		defer c.Close()
		return c.Load(func(r *bufio.Reader) error {
			text, err := io.ReadAll(r)
			if err == nil && !slices.Contains(allowed, string(text)) {
				err = fmt.Errorf("state %q", text)
			}
			return err
		})
	}
	return diskfail.Story{
		Before: func(dir string) error { return save(dir, "first") },
		Do:     func(dir string) error { return save(dir, "second") },
		After: func(dir string, did bool) error {
			if did {
				return load(dir, "second")
			}
			return load(dir, "first", "second")
		},
	}
}

// firstStory makes a store, a folder of checkpoints and one of tables, and what is in them.
func firstStory() diskfail.Story {
	state := func(dir string) string { return filepath.Join(dir, "checkpoints") }
	return diskfail.Story{
		Do: func(dir string) error {
			c, err := writer.OpenCheckpoint(state(dir), 0, nil)
			if err != nil {
				return err
			}
			err = c.Save(func(w io.Writer) error { return nil })
			return errors.Join(err, c.Close())
		},
		After: func(dir string, did bool) error {
			c, err := writer.OpenCheckpoint(state(dir), 0, nil)
			if err != nil {
				return err
			}
			if did && !c.Saved() {
				err = errors.New("the state is gone")
			}
			return errors.Join(err, c.Close())
		},
	}
}
