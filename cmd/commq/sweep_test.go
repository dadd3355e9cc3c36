package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/models"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

func TestParseSweep(t *testing.T) {
	m, err := models.Named("flat")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		want []string
	}{
		{"latency_ns=1e3..1e5:log:5", []string{"1000", "3160", "10000", "31600", "100000"}}, // 3162.3, 31622.8
		{"latency_ns=0.5..2:lin:4", []string{"0.5", "1", "1.5", "2"}},
		{"intra_node.buses=1..16:log:9", []string{"1", "2", "3", "4", "6", "8", "11", "16"}}, // 1.41, 2, 2.83, 4, 5.66, 8, 11.3: whole, and 1 once
		{"buses=3,unlimited,3,5", []string{"3", "unlimited", "5"}},
		{"cpu_ratio=1..4:log:3", []string{"1", "2", "4"}},
		{"bandwidth_bytes_per_s=1000000..1000002:lin:3", []string{"1000000", "1000001", "1000002"}},
	} {
		a, err := parseSweep(m, c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
		} else if diff := cmp.Diff(c.want, a.values); diff != "" {
			t.Errorf("%s: %s", c.text, diff)
		}
	}
	for text, want := range map[string]string{
		"buses":                   "it has no values",
		"buses=":                  "it has no values",
		"buses=1..3":              "its values are no range and no list",
		"buses=1..3:exp:3":        `"exp" is neither log nor lin`,
		"buses=1..3:lin:1":        `"1" is no number of values from 2`,
		"buses=1..x:lin:3":        "its range is not from a number to a greater one",
		"buses=0..3:lin:4":        `buses is "0"`,
		"latency_ns=1..NaN:lin:3": "its range is not from a number to a greater one",
	} {
		if _, err := parseSweep(m, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}

// What a sweep keeps of a run's rows is what the run has; of a run that does not fit it keeps the first epochs and reads the rest
// from the files.
func TestKeptRows(t *testing.T) {
	const epochs, rows = 3, 5000
	store := t.TempDir()
	out, err := writer.Create(store, "three", writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Abort()
	var want []int64
	for epoch := range int32(epochs) {
		b := &schema.Events{}
		for i := range int64(rows) {
			e := schema.NullEvent
			e.Rank, e.Seq, e.Epoch, e.Call, e.ComputeNs = 0, int64(epoch)*rows+i, epoch, int16(schema.CallSend), 3*i
			b.Append(&e)
			want = append(want, e.Seq, e.ComputeNs, int64(e.Call), e.SendBytes)
		}
		if err := out.Write(0, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Commit(&schema.Manifest{Ranks: 1, TimeOrigin: "untimed", ComputeClock: "cpu", Record: "all", Hash: "none", Ended: "finalized", Epochs: epochs}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(store, "three")
	whole, err := keepRows(context.Background(), dir, 1<<30)
	if err != nil || !whole.whole || len(whole.epochs) != epochs {
		t.Fatalf("%d epochs, %v", len(whole.epochs), err)
	}
	if most := int64(epochs * rows * 30); whole.bytes > most { // seq and compute_ns take 16 bytes, all other columns have one value
		t.Errorf("%d bytes, more than %d", whole.bytes, most)
	}
	part, err := keepRows(context.Background(), dir, whole.bytes*2/3)
	if err != nil || part.whole || len(part.epochs) == 0 || len(part.epochs) == epochs {
		t.Fatalf("%d epochs, %v", len(part.epochs), err)
	}
	for _, k := range []*keptRows{whole, part, {dir: dir}} {
		for range 2 {
			if diff := cmp.Diff(want, values(t, k)); diff != "" {
				t.Errorf("%d epochs kept: %s", len(k.epochs), diff)
			}
		}
	}
}

// values are seq, compute_ns, call and send_bytes of each row.
func values(t *testing.T, k *keptRows) (all []int64) {
	t.Helper()
	next := k.source(context.Background())
	for {
		err := next(func(b *schema.Events) error {
			for i := range b.Rank {
				all = append(all, b.Seq[i], b.ComputeNs[i], int64(b.Call[i]), b.SendBytes[i])
			}
			return nil
		})
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
