package writer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/check"
)

// longEvents returns an epoch of ranks 3 and 5 with an MPI_Allreduce after every `every` sends, sometimes several in
// a row.
func longEvents(epoch int32, rows, every int) *schema.Events {
	rng := rand.New(rand.NewPCG(3, 5))
	b := &schema.Events{}
	for _, rank := range []int32{3, 5} {
		for i := range rows / 2 {
			e := schema.NullEvent
			e.Rank, e.Seq, e.Epoch, e.Call, e.Class = rank, int64(epoch)*int64(rows)+int64(i), epoch,
				int16(schema.CallSend), int16(schema.ClassSend)
			e.StartNs, e.EndNs = int64(i)*70, int64(i)*70+int64(rng.IntN(60))
			e.SendTag, e.SendBytes = 9, 4097
			if rng.IntN(every) == 0 || every == 1 {
				e.Call, e.Class, e.ReduceOp, e.Label = int16(schema.CallAllreduce), int16(schema.ClassCollective),
					int16(schema.OpSum), "phase"
				e.SendTag = schema.NullInt32
			}
			b.Append(&e)
		}
	}
	return b
}

// In a batch with many rows, those that are not point-to-point get their own row group, and are read back in their
// original order.
func TestRareRowsGetTheirOwnRowGroup(t *testing.T) {
	for _, x := range []struct {
		name        string
		epochs      int32
		rows, every int
		groups      string // the classes of each row group
	}{
		{"few rows", 2, 300, 7, "mixed mixed "},
		{"many", 2, minRowsToSplit, 60, "send collective send collective "},
		{"close together", 1, minRowsToSplit, 5, "send collective "}, // a batch has more than maxStretches
		{"nothing else", 1, minRowsToSplit, 1 << 30, "send "},
		{"too many others", 1, minRowsToSplit, 3, "mixed "},
		{"longer than a row group", 1, rowGroupRows + 4000, 1000, "send send collective "},
	} {
		t.Run(x.name, func(t *testing.T) {
			store := t.TempDir()
			r := mustCreate(t, store, "x")
			var want []*schema.Events
			for epoch := range x.epochs {
				want = append(want, longEvents(epoch, x.rows, x.every))
				if err := r.Write(0, want[epoch]); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.Commit(t.Context(), manifestOfMany()); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(store, "x")
			n := 0
			readAll(t, dir, &schema.EventsTable, 5003, func(b *schema.Events, i int) {
				var w, g schema.Event
				want[n/want[0].Len()].Row(n%want[0].Len(), &w)
				if b.Row(i, &g); w != g {
					t.Fatalf("row %d: %s", n, cmp.Diff(w, g))
				}
				n++
			})
			if n != len(want)*want[0].Len() {
				t.Errorf("%d rows of %d", n, len(want)*want[0].Len())
			}
			if got := classesOf(t, dir); got != x.groups {
				t.Errorf("row groups %q; want %q", got, x.groups)
			}
			neededRows(t, dir, want)
			problems, err := Check(context.Background(), dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range problems {
				if p.Rule == "sorted" || p.Rule == check.RuleDigests || p.Rule == check.RuleFiles {
					t.Errorf("%v", p)
				}
			}
		})
	}
}

// neededRows checks that the rows with a label are read in order, and no others where row groups keep them apart.
func neededRows(t *testing.T, dir string, all []*schema.Events) {
	t.Helper()
	var want, got []string
	mixed := strings.Contains(classesOf(t, dir), "mixed")
	rows := func(b *schema.Events) (names []string) {
		for i, label := range b.Label {
			if mixed || label != schema.NullText {
				names = append(names, fmt.Sprintf("%d.%d", b.Rank[i], b.Seq[i]))
			}
		}
		return names
	}
	for _, b := range all {
		want = append(want, rows(b)...)
	}
	e, err := ReadEpochs(dir, &schema.EventsTable, 5003, "rank", "seq", "label")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Need("label"); err != nil {
		t.Fatal(err)
	}
	read := 0
	err = e.All(t.Context(), func(b schema.Batch) error {
		read += b.Len()
		got = append(got, rows(b.(*schema.Events))...)
		return nil
	})
	if err != nil || read != len(got) || !slices.Equal(want, got) {
		t.Errorf("read %d rows, %d of them with a label; want %d: %v", read, len(got), len(want), err)
	}
	if err := e.Need("tag"); err == nil {
		t.Error("needs a column that the table lacks")
	}
	if err := e.Need("call"); err == nil {
		t.Error("needs a column that is not read")
	}
}

// classesOf lists, for each row group of a run's events, its only class, or mixed.
func classesOf(t *testing.T, dir string) string {
	t.Helper()
	r, err := newTableReader(dir, schema.EventsTable.FilePath(0), newReadBuffers(&schema.EventsTable, 1<<12))
	if err != nil {
		t.Fatal(err)
	}
	var names strings.Builder
	for g := range r.groups() {
		class := schema.NullEnum
		mixed := false
		err := r.read(context.Background(), g, func(b schema.Batch) error {
			for _, c := range b.(*schema.Events).Class {
				mixed = mixed || class != schema.NullEnum && c != class
				class = c
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if mixed {
			names.WriteString("mixed ")
		} else {
			fmt.Fprint(&names, schema.Class(class), " ")
		}
	}
	return names.String()
}

// Readers of some columns get the merged rows of one epoch at a time, and nulls in the columns they did not ask for.
func TestRareRowsAreReadByEpoch(t *testing.T) {
	store := t.TempDir()
	r := mustCreate(t, store, "x")
	for epoch := range int32(3) {
		if err := r.Write(0, longEvents(epoch, minRowsToSplit, 60)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Commit(t.Context(), manifestOfMany()); err != nil {
		t.Fatal(err)
	}
	e, err := ReadEpochs(filepath.Join(store, "x"), &schema.EventsTable, 777, "rank", "seq", "send_tag", "label")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Skip(); err != nil {
		t.Fatal(err)
	}
	want := longEvents(1, minRowsToSplit, 60)
	n := 0
	err = e.Next(context.Background(), func(b schema.Batch) error {
		v := b.(*schema.Events)
		for i := range v.Rank {
			if v.Rank[i] != want.Rank[n] || v.Seq[i] != want.Seq[n] || v.SendTag[i] != want.SendTag[n] ||
				v.Label[i] != want.Label[n] {
				t.Fatalf("row %d is seq %d of rank %d, want seq %d of rank %d", n, v.Seq[i], v.Rank[i], want.Seq[n],
					want.Rank[n])
			}
			if v.SendBytes[i] != schema.NullInt64 || v.Class[i] != 0 {
				t.Fatal("a column that was not asked for has a value")
			}
			n++
		}
		return nil
	})
	if err != nil || n != want.Len() {
		t.Errorf("%d rows of %d: %v", n, want.Len(), err)
	}
	stopped := fmt.Errorf("enough")
	if err := e.Next(context.Background(), func(schema.Batch) error { return stopped }); err != stopped {
		t.Errorf("error %v", err)
	}
}

// BenchmarkMerge reads an epoch whose rows have two row groups.
func BenchmarkMerge(b *testing.B) {
	all := make([]string, len(schema.EventsTable.Columns))
	for i, c := range schema.EventsTable.Columns {
		all[i] = c.Name
	}
	for _, every := range []int{5, 50} {
		store := b.TempDir()
		r := mustCreate(b, store, "x")
		if err := r.Write(0, longEvents(0, 8*minRowsToSplit, every)); err != nil {
			b.Fatal(err)
		}
		if err := r.Commit(b.Context(), manifestOfMany()); err != nil {
			b.Fatal(err)
		}
		for _, columns := range [][]string{{"rank", "seq", "epoch", "call", "class"}, all} {
			b.Run(fmt.Sprintf("every=%d/columns=%d", every, len(columns)), func(b *testing.B) {
				for b.Loop() {
					e, err := ReadEpochs(filepath.Join(store, "x"), &schema.EventsTable, 1<<12, columns...)
					if err != nil {
						b.Fatal(err)
					}
					if err := e.All(b.Context(), func(schema.Batch) error { return nil }); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(8*minRowsToSplit*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
			})
		}
	}
}
