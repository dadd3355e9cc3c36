package hang

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

func TestProgress(t *testing.T) {
	dir := write(t, 6, func(h *spool.Header) {
		if h.Rank == 5 {
			h.Ended, h.Dropped, h.Limited = spool.EndedFinalized, 7, 1
		}
	}, func(rank int, s *script) {
		for range rank {
			s.call(schema.CallSend, args(0, 3, 9, 0))
		}
		if rank < 3 {
			s.call(schema.CallBarrier, never(on(0)))
		}
	})
	w, err := Watch(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.Look()
	if err != nil {
		t.Fatal(err)
	}
	// MPI_Init of 6 ranks, 0+1+2+3+4+5 sends and 3 barriers are 24 calls; every rank defined a type in 2 slots.
	want := &Progress{Job: "0000000000005eed", Program: "/bin/stuck", State: Unknown, Ranks: 6, Seen: 6, Ended: 1,
		Calls: 24, Exact: true,
		Bytes: 6*spool.HeaderBytes + (24+12)*spool.SlotBytes, Dropped: 7, Limited: 1,
		Doing: []Doing{{Call: "MPI_Barrier", Ranks: []int32{0, 1, 2}},
			{Call: "", Ranks: []int32{3, 4}, LongestRank: 3}},
		Behind: []RankCalls{{0, 2}, {1, 3}, {2, 4}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.Remove(filepath.Join(dir, "0000000000005eed.3.0"+spool.Suffix)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Look(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file is gone: %v", err)
	}
}

// Of a job whose records are removed between two looks, the files that were open tell how it ended.
func TestEndOfRemovedRecords(t *testing.T) {
	for _, c := range []struct {
		name  string
		ended uint32
		ranks int // of the job; 2 have records
		want  string
	}{
		{"finalized", spool.EndedFinalized, 2, Finalized},
		{"aborted", spool.EndedAborted, 2, Aborted},
		{"not ended on another machine", spool.EndedNot, 2, ""},
		{"ranks that were never seen", spool.EndedFinalized, 3, ""},
	} {
		dir := t.TempDir()
		put := func(ended uint32) {
			for rank := range 2 {
				name, data := fileBytes(t, rank, c.ranks, func(h *spool.Header) { h.Ended = ended }, func(s *script) {})
				if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		put(spool.EndedNot)
		w, err := Watch(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Look(); err != nil {
			t.Fatal(err)
		}
		put(c.ended) // and the records are ingested
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		p, err := w.Look()
		switch {
		case c.want == "" && !errors.Is(err, fs.ErrNotExist):
			t.Errorf("%s: %+v, %v; want that the records are gone", c.name, p, err)
		case c.want != "" && (err != nil || p.State != c.want):
			t.Errorf("%s: %+v, %v; want %s", c.name, p, err, c.want)
		}
		w.Close()
	}
}

// Of a large file only the end is read, and the number of its calls is a good estimate. From there on calls are
// counted exactly.
func TestLargeFile(t *testing.T) {
	const calls = 400_000 // 25.6 MB and an ERR slot for every fourth
	name, data := fileBytes(t, 0, 1, nil, func(s *script) {
		for i := range calls {
			s.call(schema.CallSend, args(0, 0, 9, 0))
			if i%4 == 3 {
				s.Err(5)
			}
		}
	})
	dir := t.TempDir()
	file := filepath.Join(dir, name)
	write := func(b []byte) {
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	more := 1000 * spool.SlotBytes * 5 / 4
	write(append(data[:len(data)-more:len(data)-more], make([]byte, 4<<20)...))
	w, err := Watch(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.Look()
	if err != nil {
		t.Fatal(err)
	}
	if p.Exact || p.Calls < calls-1000-100 || p.Calls > calls-1000+100 || p.Bytes != int64(len(data)-more) {
		t.Errorf("%d calls (exact: %v) in %d bytes, want about %d in %d", p.Calls, p.Exact, p.Bytes, calls-1000+1,
			len(data)-more)
	}
	write(data)
	q, err := w.Look()
	if err != nil {
		t.Fatal(err)
	}
	if q.Calls-p.Calls != 1000 || q.Bytes != int64(len(data)) {
		t.Errorf("%d calls more and %d bytes, want 1000 and %d", q.Calls-p.Calls, q.Bytes, len(data))
	}
}
