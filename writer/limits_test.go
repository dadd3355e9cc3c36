package writer

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/commq/commq/schema"
)

// Values that the run cannot have, and that readers use as indices, are errors that say where they are.
func TestRowsBeyondTheirLimits(t *testing.T) {
	event := func(change func(*schema.Event)) schema.Batch {
		e, b := schema.NullEvent, &schema.Events{}
		e.Rank, e.Seq, e.Thread = 1, 7, 0
		change(&e)
		b.Append(&e)
		return b
	}
	site := func(parents ...int32) schema.Batch {
		b := &schema.Callsites{}
		for i, parent := range parents {
			s := schema.NullCallsite
			s.ID, s.Parent = int32(i), parent
			b.Append(&s)
		}
		return b
	}
	for want, b := range map[string]schema.Batch{
		"rank 1, seq 7: send_world is 3 in a run of 3 ranks":               event(func(e *schema.Event) { e.SendWorld = 3 }),
		"rank 1, seq 7: recv_world is -2 in a run of 3 ranks":              event(func(e *schema.Event) { e.RecvWorld = -2 }),
		"rank 9, seq 7: rank is 9 in a run of 3 ranks":                     event(func(e *schema.Event) { e.Rank = 9 }),
		"rank 1, seq 7: thread is 32768: want 0 to 32767":                  event(func(e *schema.Event) { e.Thread = 32768 }),
		"call site 1 in row 1, with parent 1: a parent is an earlier row":  site(schema.NullInt32, 1),
		"call site 0 in row 0, with parent -1: a parent is an earlier row": site(-1),
		"": event(func(e *schema.Event) { e.SendWorld, e.RecvWorld = 2, 0 }),
	} {
		store := t.TempDir()
		r := mustCreate(t, store, "x")
		if err := r.Write(0, b); err != nil {
			t.Fatal(err)
		}
		if err := r.Commit(t.Context(), testManifest()); err != nil {
			t.Fatal(err)
		}
		dir, nothing := filepath.Join(store, "x"), func(schema.Batch) error { return nil }
		err := ReadTable(t.Context(), dir, b.Table(), 100, nothing)
		if want == "" {
			if err != nil {
				t.Errorf("a row within its limits: %v", err)
			}
			continue
		}
		wantError(t, err, want)
		if b.Table() != &schema.EventsTable {
			continue
		}
		e, err := ReadEpochs(dir, b.Table(), 100, "rank", "seq", "thread", "send_world", "recv_world")
		if err == nil {
			err = e.All(context.Background(), nothing)
		}
		wantError(t, err, want)
	}
}

// A rank that is not there is the null of columns that may have none, and an error in others, which a file of another
// writer may have.
func TestNullIsARankOnlyWhereItMayBe(t *testing.T) {
	_, rank := schema.EventsTable.Column("rank")
	_, peer := schema.EventsTable.Column("send_world")
	b, e := &schema.Events{}, schema.NullEvent
	e.Rank, e.Seq, e.Thread = schema.NullInt32, 7, 0
	b.Append(&e)
	wantError(t, (&rowLimits{ranks: 3, worlds: []int{rank}}).check(b), "rank is -2147483648 in a run of 3 ranks")
	if err := (&rowLimits{ranks: 3, worlds: []int{peer}}).check(b); err != nil {
		t.Error(err)
	}
}

// A rank's host has a number below that of ranks: readers make a row for each host.
func TestHostsAreNoMoreThanRanks(t *testing.T) {
	on := func(host int32) *schema.RankInfos {
		info, b := schema.NullRankInfo, &schema.RankInfos{}
		info.Rank, info.Threads, info.Host = 1, 1, host
		b.Append(&info)
		return b
	}
	l, unknown := &rowLimits{ranks: 3}, &rowLimits{} // of a run without a manifest
	wantError(t, l.check(on(3)), "host is 3 in a run of 3 ranks")
	wantError(t, l.check(on(-1)), "host is -1 in a run of 3 ranks")
	for _, err := range []error{l.check(on(2)), unknown.check(on(2))} {
		if err != nil {
			t.Error(err)
		}
	}
}

// A run with a rank of more threads than readers take is not made.
func TestTooManyThreads(t *testing.T) {
	store := t.TempDir()
	r := mustCreate(t, store, "x")
	info, b := schema.NullRankInfo, &schema.RankInfos{}
	info.Rank, info.Threads = 3, schema.MaxThreads+1
	b.Append(&info)
	wantError(t, r.Write(0, b), "32769 threads of rank 3 called MPI; a run has at most 32768")
	if err := r.Abort(); err != nil {
		t.Fatal(err)
	}
}
