package ingest

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// step is a group that a cursor passes.
type step struct {
	t0     int64 // -1: it has no call
	thread int32
	first  int
}

func steps(c *cursor) (all []step, most int) {
	var g group
	for c.next(&g) {
		s := step{t0: -1, thread: g.thread, first: g.first}
		if call := g.call(); call != nil {
			s.t0 = int64(call.T0)
		}
		all = append(all, s)
		most = max(most, len(c.save(position{}).live))
	}
	return all, most
}

// TestCursor merges many threads that begin and end at any time, some of them with definitions before their first call:
// definitions come first, then calls by their entry. A position has only threads that run then, and restoring it goes
// on in the same way.
func TestCursor(t *testing.T) {
	const threads = 60
	random := rand.New(rand.NewPCG(3, 4))
	dir := t.TempDir()
	p := program{ranks: 1}
	for thread := range threads {
		p.file(t, dir, 0, thread, func(_ int, s *script) {
			if thread%3 == 1 {
				s.DefClock(uint64(thread), 5)
			}
			s.now = uint64(random.IntN(20000)) / 10 * 10 // several are entered at once
			for range random.IntN(8) {
				s.call(schema.CallBarrier, func(c *spool.Call) { c.Comm = 1 })
			}
		})
	}
	j, err := openJob(dir, "", allFiles)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	c := newCursor(j.ranks[0].files)
	all, most := steps(&c)
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.t0, b.t0), cmp.Compare(a.thread, b.thread), cmp.Compare(a.first, b.first))
	})
	if !slices.Equal(all, sorted) || len(all) < 3*threads {
		t.Errorf("%d groups, not in order", len(all))
	}
	if most > threads/4 {
		t.Errorf("positions have up to %d of %d threads", most, threads)
	}
	for range 100 {
		at := random.IntN(len(all))
		c := newCursor(j.ranks[0].files)
		var g group
		for range at {
			c.next(&g)
		}
		p := c.save(position{})
		for range random.IntN(100) {
			c.next(&g)
		}
		c.restore(p)
		if rest, _ := steps(&c); !slices.Equal(rest, all[at:]) {
			t.Fatalf("from group %d on: %d groups, want %d, the same", at, len(rest), len(all)-at)
		}
	}
}
