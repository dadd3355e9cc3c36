package writer

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

// scattered writes a run whose rows are spread over many small files in any order, as if written by nodes that do not
// coordinate.
func scattered(t *testing.T, store string) (dir string, rows []schema.Event) {
	t.Helper()
	const ranks, calls, epochs = 13, 40, 3
	random := rand.New(rand.NewPCG(2, 3))
	r := mustCreate(t, store, "scattered.13")
	for shard, rank := range random.Perm(ranks) {
		for epoch := range epochs {
			var b schema.Events
			for i := range calls {
				e := schema.NullEvent
				e.Rank, e.Seq, e.Epoch, e.Thread = int32(rank), int64(epoch*calls+i), int32(epoch), 0
				e.Call, e.Class = int16(schema.CallSend), int16(schema.ClassSend)
				e.StartNs, e.EndNs = 1000*e.Seq, 1000*e.Seq+97
				e.SendBytes = random.Int64N(1 << 20)
				b.Append(&e)
				rows = append(rows, e)
			}
			if err := r.Write(shard, &b); err != nil {
				t.Fatal(err)
			}
		}
	}
	m := testManifest()
	m.Ranks, m.Epochs, m.Counts.Calls = ranks, epochs, int64(len(rows))
	if err := r.Commit(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(rows, func(a, b schema.Event) int {
		if a.Epoch != b.Epoch {
			return int(a.Epoch - b.Epoch)
		}
		if a.Rank != b.Rank {
			return int(a.Rank - b.Rank)
		}
		return int(a.Seq - b.Seq)
	})
	return filepath.Join(store, "scattered.13"), rows
}

// Compact keeps the rows, the digest and the rest of the manifest, and makes few files of sorted rows, by ranges of
// ranks.
func TestCompact(t *testing.T) {
	for _, c := range []struct {
		name    string
		perFile int64
		files   int
	}{{"usual", 0, 1}, {"two files", 13 * 40, 2}, {"at most two", 1, 2}} {
		t.Run(c.name, func(t *testing.T) {
			dir, want := scattered(t, t.TempDir())
			var last, all int64
			before, after, err := Compact(context.Background(), dir, c.perFile,
				func(done, total int64) { last, all = done, total })
			if err != nil {
				t.Fatal(err)
			}
			if n := int64(len(want)); last != n || all != n {
				t.Errorf("progress ended at %d of %d, want %d", last, all, n)
			}
			if n := len(before.Tables[0].Files); n != 13 {
				t.Errorf("%d files before, want 13", n)
			}
			m, err := ReadManifest(dir)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(after, m); d != "" {
				t.Errorf("manifest (-told +read):\n%s", d)
			}
			files := m.Tables[0].Files
			if len(files) != c.files {
				t.Errorf("%d files, want %d", len(files), c.files)
			}
			for i, f := range files {
				if f.Rows == 0 || f.Path != schema.EventsTable.FilePath(i) {
					t.Errorf("file %d: %+v", i, f)
				}
			}
			before.Tables, m.Tables, before.Sum, m.Sum = nil, nil, "", ""
			if d := cmp.Diff(before, m); d != "" {
				t.Errorf("manifest (-before +after):\n%s", d)
			}
			var got []schema.Event
			e, err := ReadEpochs(dir, &schema.EventsTable, 7, eventColumns()...)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.All(context.Background(), func(b schema.Batch) error {
				for i := range b.Len() {
					var row schema.Event
					b.(*schema.Events).Row(i, &row)
					got = append(got, row)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("rows (-want +got):\n%s", d)
			}
			if problems, err := Check(context.Background(), dir); err != nil ||
				slices.ContainsFunc(problems, func(p Problem) bool {
					return strings.Contains(p.String(), "sorted") || strings.Contains(p.String(), "digest")
				}) {
				t.Errorf("check: %v, %v", problems, err)
			}
			onlyRun(t, dir)
		})
	}
}

func eventColumns() (names []string) {
	for i := range schema.EventsTable.Columns {
		names = append(names, schema.EventsTable.Columns[i].Name)
	}
	return names
}

// onlyRun checks that the run's parent folder contains nothing else.
func onlyRun(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(dir) {
		t.Errorf("the store holds %v, %v; want %s alone", entries, err, filepath.Base(dir))
	}
}

// A Compact that ends early leaves the run unchanged and no other files.
func TestCompactEndsEarly(t *testing.T) {
	dir, _ := scattered(t, t.TempDir())
	was, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if _, _, err := Compact(ctx, dir, 0, func(int64, int64) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	onlyRun(t, dir)

	l, err := takeLock(filepath.Join(filepath.Dir(dir), ".scattered.13.lock"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Compact(context.Background(), dir, 0, nil); err == nil ||
		!strings.Contains(err.Error(), "another process") {
		t.Errorf("locked: %v", err)
	}
	if err := l.release(); err != nil {
		t.Fatal(err)
	}

	changed := *was
	changed.Digest = strings.Repeat("0", len(was.Digest))
	if err := writeManifest(dir, &changed); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Compact(context.Background(), dir, 0, nil); err == nil || !strings.Contains(err.Error(), "digest") {
		t.Errorf("another digest: %v", err)
	}
	if m, err := ReadManifest(dir); err != nil || len(m.Tables[0].Files) != 13 {
		t.Errorf("%v, %v", m, err)
	}
	onlyRun(t, dir)
}
