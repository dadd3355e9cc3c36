package writer

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

// shapes are typical contents of a column: each returns the value of row i.
var shapes = map[string]func(r *rand.Rand, i int) int64{
	"constant":   func(r *rand.Rand, i int) int64 { return 7 },
	"null":       func(r *rand.Rand, i int) int64 { return schema.NullInt64 },
	"two":        func(r *rand.Rand, i int) int64 { return int64(i % 2) },
	"few":        func(r *rand.Rand, i int) int64 { return int64(r.IntN(5)) * 1000003 },
	"runs":       func(r *rand.Rand, i int) int64 { return int64(i / 1000) },
	"serial":     func(r *rand.Rand, i int) int64 { return int64(i) },
	"times":      func(r *rand.Rand, i int) int64 { return int64(i)*1000 + int64(r.IntN(500)) },
	"widths":     func(r *rand.Rand, i int) int64 { return r.Int64N(1<<(i/128%62) + 1) },
	"extremes":   func(r *rand.Rand, i int) int64 { return []int64{math.MaxInt64, math.MinInt64 + 1, 0, -1}[r.IntN(4)] },
	"any":        func(r *rand.Rand, i int) int64 { return max(int64(r.Uint64()), math.MinInt64+1) },
	"half null":  func(r *rand.Rand, i int) int64 { return []int64{int64(i), schema.NullInt64}[r.IntN(2)] },
	"null tail":  func(r *rand.Rand, i int) int64 { return []int64{int64(i % 3), schema.NullInt64}[min(1, i/1000)] },
	"null runs":  func(r *rand.Rand, i int) int64 { return []int64{int64(i % 300), schema.NullInt64}[i/1000%2] },
	"rare value": func(r *rand.Rand, i int) int64 { return []int64{schema.NullInt64, 5}[min(1, max(0, i%5000-4998))] },
}

// narrow fits a value into 32 bits and keeps null as null.
func narrow(x int64) int32 {
	if x == schema.NullInt64 {
		return schema.NullInt32
	}
	return max(int32(x), schema.NullInt32+1)
}

// Every shape in a column of each type, through our encoders and back through arrow-go's decoders.
func TestEncodingsRoundTrip(t *testing.T) {
	for name, shape := range shapes {
		for _, rows := range []int{1, 7, 8, 9, 1000, pageRows, pageRows + 1, 2*pageRows + 4097} {
			want := shaped(shape, rows)
			if d := firstDifference(want, throughDisk(t, want)); d != "" {
				t.Errorf("%s, %d rows: %s", name, rows, d)
			}
		}
	}
}

func shaped(shape func(*rand.Rand, int) int64, rows int) *schema.Events {
	r := rand.New(rand.NewPCG(5, uint64(rows)))
	b := &schema.Events{}
	for i := range rows {
		x := shape(r, i)
		e := schema.NullEvent
		e.Seq, e.Call, e.StartNs, e.SendTag = x, int16(schema.CallSend), x, narrow(x)
		if x == schema.NullInt64 {
			e.Seq = 3
		} else {
			e.ReduceOp = int16(uint64(x) % uint64(len(schema.OpNames)))
			e.Rank, e.Class = narrow(x), int16(uint64(x)%uint64(len(schema.ClassNames)))
		}
		b.Append(&e)
	}
	return b
}

func throughDisk(t *testing.T, b *schema.Events) *schema.Events {
	t.Helper()
	store := t.TempDir()
	r := mustCreate(t, store, "x")
	if err := r.Write(0, b); err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(t.Context(), manifestOfMany()); err != nil {
		t.Fatal(err)
	}
	got := &schema.Events{}
	readAll(t, store+"/x", &schema.EventsTable, 10007, func(b *schema.Events, i int) {
		var e schema.Event
		b.Row(i, &e)
		got.Append(&e)
	})
	return got
}

func firstDifference(want, got *schema.Events) string {
	if want.Len() != got.Len() {
		return fmt.Sprintf("%d rows written, %d read", want.Len(), got.Len())
	}
	for i := range want.Len() {
		var w, g schema.Event
		want.Row(i, &w)
		got.Row(i, &g)
		if w != g {
			return fmt.Sprintf("row %d: %s", i, cmp.Diff(w, g))
		}
	}
	return ""
}

// A batch longer than a row group is split into several.
func TestLongBatches(t *testing.T) {
	store := t.TempDir()
	r := mustCreate(t, store, "x")
	b := &schema.Parts{}
	b.Resize(rowGroupRows + 5)
	for i := range b.Len() {
		b.Rank[i], b.Seq[i], b.Epoch[i], b.PeerWorld[i], b.SendBytes[i], b.RecvBytes[i] = 3, int64(i), 0, 5, 4097,
			int64(i%9)
	}
	if err := r.Write(0, b); err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(t.Context(), manifestOfMany()); err != nil {
		t.Fatal(err)
	}
	rows := int64(0)
	readAll(t, store+"/x", &schema.PartsTable, 5000, func(b *schema.Parts, i int) {
		if b.Seq[i] != rows || b.RecvBytes[i] != rows%9 {
			t.Fatalf("row %d: seq %d, recv_bytes %d", rows, b.Seq[i], b.RecvBytes[i])
		}
		rows++
	})
	if rows != rowGroupRows+5 {
		t.Errorf("%d rows", rows)
	}
}

func TestWriteRefusesBadCells(t *testing.T) {
	r := mustCreate(t, t.TempDir(), "x")
	one := func(change func(*schema.Event)) *schema.Events {
		e := schema.NullEvent
		e.Call = 3
		change(&e)
		b := &schema.Events{}
		b.Append(&e)
		return b
	}
	for name, b := range map[string]*schema.Events{
		"rank":      one(func(e *schema.Event) { e.Rank = schema.NullInt32 }),
		"seq":       one(func(e *schema.Event) { e.Seq = schema.NullInt64 }),
		"call":      one(func(e *schema.Event) { e.Call = int16(len(schema.CallNames)) }),
		"class":     one(func(e *schema.Event) { e.Class = schema.NullEnum }),
		"reduce_op": one(func(e *schema.Event) { e.ReduceOp = -2 }),
	} {
		if err := r.Write(0, b); err == nil {
			t.Errorf("a bad %s was written", name)
		}
	}
}

func TestReadTableStops(t *testing.T) {
	store := t.TempDir()
	r := mustCreate(t, store, "x")
	if err := r.Write(0, someEvents()); err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(t.Context(), manifestOfMany()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	err := readTable(ctx, store+"/x", &schema.EventsTable, 2,
		func(schema.Batch) error { calls++; cancel(); return nil })
	if err != context.Canceled || calls != 1 {
		t.Errorf("after cancel: %d calls, %v", calls, err)
	}
}
