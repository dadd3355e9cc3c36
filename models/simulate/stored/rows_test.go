package stored

import (
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Rows passes the run's rows. Of a run that does not fit it keeps the first epochs and reads the rest from the
// files.
func TestRowsPassesAllRows(t *testing.T) {
	const epochs, rows = 3, 5000
	store := t.TempDir()
	out, err := writer.Create(store, "three", writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Abort()
	info, ranks := schema.NullRankInfo, &schema.RankInfos{}
	info.Rank, info.Threads, info.Ended = 0, 1, schema.EndedFinalized
	ranks.Append(&info)
	if err := out.Write(0, ranks); err != nil {
		t.Fatal(err)
	}
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
	if err := out.Commit(t.Context(), &schema.Manifest{Ranks: 1, TimeOrigin: "untimed", ComputeClock: "cpu",
		Record: "all",
		Hash:   "none", Ended: "finalized", Epochs: epochs}); err != nil {
		t.Fatal(err)
	}
	r, err := run.Open(t.Context(), filepath.Join(store, "three"), run.Need{})
	if err != nil {
		t.Fatal(err)
	}
	complete, err := ReadRows(t.Context(), r, 1<<30)
	if err != nil || !complete.complete || len(complete.epochs) != epochs {
		t.Fatalf("%d epochs, %v", len(complete.epochs), err)
	}
	// seq and compute_ns take 16 bytes, all other columns have one value
	if most := int64(epochs * rows * 30); complete.bytes > most {
		t.Errorf("%d bytes, more than %d", complete.bytes, most)
	}
	part, err := ReadRows(t.Context(), r, complete.bytes*2/3)
	if err != nil || part.complete || len(part.epochs) == 0 || len(part.epochs) == epochs {
		t.Fatalf("%d epochs, %v", len(part.epochs), err)
	}
	for _, k := range []*Rows{complete, part, {run: r}} {
		for range 2 {
			if diff := cmp.Diff(want, rowValues(t, k)); diff != "" {
				t.Errorf("%d epochs kept: %s", len(k.epochs), diff)
			}
		}
	}
}

// Simulations of kept rows take the times of those from the files, and one that changes compute times leaves those of
// others as they are: without its 1 ms of computing rank 1 still waits for rank 0, without both all takes 14.097 us.
func TestKeptRowsAreSimulatedAsThoseOfFiles(t *testing.T) {
	s := open(t, writePair(t, t.TempDir()))
	less := func(ranks int32) func(b *schema.Events) {
		return func(b *schema.Events) {
			for i, rank := range b.Rank {
				if rank >= 2-ranks {
					b.ComputeNs[i] = 0
				}
			}
		}
	}
	for _, limit := range []int64{-1, 0, 300, 1 << 20} { // -1 reads the files at each simulation
		if limit >= 0 {
			var err error
			if s.Rows, err = ReadRows(t.Context(), s.Run, limit); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			change func(b *schema.Events)
			want   int64
		}{{nil, pairNs}, {less(2), 14_097}, {less(1), pairNs}, {nil, pairNs}} {
			s.Change = c.change
			if ns, err := s.Nanoseconds(t.Context()); err != nil || ns != c.want {
				t.Errorf("limit %d: %d ns, %v, want %d", limit, ns, err, c.want)
			}
			path, err := s.CriticalPath(t.Context())
			if err != nil || path.DurationNs != c.want {
				t.Errorf("limit %d: a path of %d ns, %v, want %d", limit, path.DurationNs, err, c.want)
			}
		}
	}
}

// rowValues returns seq, compute_ns, call and send_bytes of each row.
func rowValues(t *testing.T, c *Rows) (all []int64) {
	t.Helper()
	next := c.Source(t.Context())
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
