package writer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

// Two files of two ranks each, with epochs 0, 3 and 5: the rows of an epoch come together, file by file.
func TestReadEpochs(t *testing.T) {
	store := filepath.Join(t.TempDir(), "runs")
	r := mustCreate(t, store, "ring.4")
	seq := map[int32]int64{}
	for _, g := range []struct {
		shard int
		epoch int32
		ranks []int32
	}{{0, 0, []int32{0, 1}}, {1, 0, []int32{2}}, {1, 3, []int32{3}}, {0, 3, []int32{0}}, {0, 5, []int32{1, 1}}} {
		b := &schema.Events{}
		for _, rank := range g.ranks {
			e := schema.NullEvent
			e.Rank, e.Seq, e.Epoch, e.Call = rank, seq[rank], g.epoch, int16(schema.CallSend)
			if g.epoch == 3 {
				e.SendBytes = 4097
			}
			seq[rank]++
			b.Append(&e)
		}
		if err := r.Write(g.shard, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Commit(t.Context(), manifestOfMany()); err != nil {
		t.Fatal(err)
	}
	e, err := ReadEpochs(filepath.Join(store, "ring.4"), &schema.EventsTable, 3, "rank", "seq", "send_bytes")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		var text []string
		err := e.Next(context.Background(), func(b schema.Batch) error {
			v := b.(*schema.Events)
			for i := range v.Rank {
				bytes := "null"
				if v.SendBytes[i] != schema.NullInt64 {
					bytes = fmt.Sprint(v.SendBytes[i])
				}
				text = append(text, fmt.Sprintf("%d.%d %s", v.Rank[i], v.Seq[i], bytes))
				if v.Call[i] != 0 || v.RecvWorld[i] != schema.NullInt32 || v.Label[i] != schema.NullText {
					t.Error("a column that was not asked for has a value")
				}
			}
			return nil
		})
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Join(text, ", "))
	}
	want := []string{"0.0 null, 1.0 null, 2.0 null", "0.1 4097, 3.0 4097", "1.1 null, 1.2 null"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if e, err = ReadEpochs(filepath.Join(store, "ring.4"), &schema.EventsTable, 3, "seq"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := e.Skip(); err != nil {
			t.Fatal(err)
		}
	}
	rows := 0
	if err := e.Next(context.Background(), func(b schema.Batch) error { rows += b.Len(); return nil }); err != nil ||
		rows != 2 {
		t.Errorf("%d rows, %v", rows, err)
	}
	if err := e.Skip(); err != io.EOF {
		t.Error(err)
	}
	if e, err = ReadEpochs(filepath.Join(store, "ring.4"), &schema.EventsTable, 3, "seq"); err != nil {
		t.Fatal(err)
	}
	if err := e.Skip(); err != nil {
		t.Fatal(err)
	}
	rows = 0
	failed := errors.New("enough")
	if err := e.All(context.Background(), func(b schema.Batch) error { rows += b.Len(); return nil }); err != nil ||
		rows != 4 {
		t.Errorf("%d rows of the epochs after the first, %v", rows, err)
	}
	if e, err = ReadEpochs(filepath.Join(store, "ring.4"), &schema.EventsTable, 3, "seq"); err != nil {
		t.Fatal(err)
	}
	if err := e.All(context.Background(), func(schema.Batch) error { return failed }); err != failed {
		t.Error(err)
	}
	if _, err := ReadEpochs(filepath.Join(store, "ring.4"), &schema.EventsTable, 3, "send_byte"); err == nil ||
		!strings.Contains(err.Error(), `no column "send_byte"`) {
		t.Error(err)
	}
}
