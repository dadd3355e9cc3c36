package writer

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

// testManifest returns a manifest with the fields that the producer of a run fills in.
func testManifest() *schema.Manifest {
	return &schema.Manifest{Ranks: 3, TimeOrigin: "measured", ComputeClock: "cpu", Record: "all", Hash: "none",
		Ended: "finalized", Epochs: 1}
}

// manifestOfMany does the same for rows of any ranks.
func manifestOfMany() *schema.Manifest {
	m := testManifest()
	m.Ranks = schema.MaxRanks
	return m
}

func mustCreate(t testing.TB, store, name string) *Run {
	t.Helper()
	r, err := Create(store, name, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Abort() })
	return r
}

func someEvents() *schema.Events {
	b := &schema.Events{}
	for i := range 5 {
		e := schema.NullEvent
		e.Rank, e.Seq, e.Call, e.Class = int32(i/3), int64(i%3), int16(schema.CallSend), int16(schema.ClassSend)
		e.StartNs, e.EndNs = int64(1000*i), int64(1000*i+97)
		if i != 1 {
			e.SendTag, e.SendBytes = 9, 4097
		}
		if i == 4 {
			e.ReduceOp = int16(schema.OpSum)
		}
		b.Append(&e)
	}
	return b
}

func readAll[B schema.Batch](t *testing.T, dir string, table *schema.Table, batchRows int, add func(B, int)) {
	t.Helper()
	err := readTable(context.Background(), dir, table, batchRows, func(b schema.Batch) error {
		for i := range b.Len() {
			add(b.(B), i)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWrittenRowsComeBack(t *testing.T) {
	store := filepath.Join(t.TempDir(), "runs")
	r := mustCreate(t, store, "ring.3")
	want := someEvents()
	types := &schema.Datatypes{}
	types.Append(&schema.Datatype{ID: 0, Name: "MPI_DOUBLE", Combiner: "named", Bytes: 8, ExtentBytes: 8})
	types.Append(&schema.Datatype{ID: 1, Name: schema.NullText, Combiner: "vec\xe9tor", Bytes: 24, ExtentBytes: 40})
	for _, err := range []error{r.Write(3, want.Slice(3, 5)), r.Write(0, want.Slice(0, 2)),
		r.Write(0, want.Slice(2, 3)), r.Write(0, types), r.Write(7, &schema.Parts{})} {
		if err != nil && !strings.Contains(err.Error(), "no shard") {
			t.Fatal(err)
		}
	}
	m := testManifest()
	if err := r.Commit(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	dir, err := Find(store, "ring.3")
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range []int{1, 2, 100} {
		got := &schema.Events{}
		readAll(t, dir, &schema.EventsTable, rows, func(b *schema.Events, i int) {
			var e schema.Event
			b.Row(i, &e)
			got.Append(&e)
		})
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("batches of %d rows: events differ (-written +read):\n%s", rows, d)
		}
	}
	var names []string
	readAll(t, dir, &schema.DatatypesTable, 10,
		func(b *schema.Datatypes, i int) { names = append(names, b.Name[i], b.Combiner[i]) })
	if d := cmp.Diff([]string{"MPI_DOUBLE", "named", schema.NullText, "vec\uFFFDtor"}, names); d != "" {
		t.Error(d)
	}
	read, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(m, read); d != "" {
		t.Errorf("manifest (-committed +read):\n%s", d)
	}
	left, _ := os.ReadDir(store)
	if len(left) != 1 {
		t.Errorf("the store holds %v beside the run", left)
	}
}
