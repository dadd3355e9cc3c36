package check

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/commq/commq/schema"
)

// Random descriptions come and go; a map says what must wait. Far more pages than at first are in use at once.
func TestSidesAreThoseOfAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s, want := newSides(), map[uint64]half{}
	for step := range 200_000 {
		key := schema.RowKey(rng.Int32N(40), rng.Int64N(5000)<<rng.IntN(20))
		got := s.find(key)
		expected, waits := want[key]
		if (got != nil) != waits || waits && *got != expected {
			t.Fatalf("step %d: %v waits for %x, want %v, %v", step, got, key, expected, waits)
		}
		if waits && rng.IntN(3) > 0 {
			s.remove(key)
			delete(want, key)
		} else if !waits {
			h := half{bytes: int64(step), message: step%2 == 0}
			s.add(key, &h)
			want[key] = h
		}
	}
	var keys []uint64
	s.each(func(key uint64, h *half) {
		keys = append(keys, key)
		if *h != want[key] {
			t.Errorf("%v waits for %x, want %v", *h, key, want[key])
		}
	})
	if sorted := sortedKeys(want); !slices.Equal(keys, sorted) {
		t.Errorf("%d keys by increasing key, want %d", len(keys), len(sorted))
	}
	for _, key := range keys {
		s.remove(key)
	}
	if len(s.pages) > 0 || len(s.free) != len(s.halves) {
		t.Errorf("after the last: %d pages, %d of %d places free", len(s.pages), len(s.free), len(s.halves))
	}
}

// Memory grows with what waits at once, not with how much ever waited.
func TestSidesReuseMemory(t *testing.T) {
	s := newSides()
	for seq := range int64(1_000_000) {
		s.add(schema.RowKey(3, seq), &half{})
		if seq >= 10 {
			s.remove(schema.RowKey(3, seq-10))
		}
	}
	if len(s.halves) > 11 || len(s.spare)+len(s.pages) > 3 || len(s.recent) != 256 {
		t.Errorf("%d places, %d pages, %d spare, %d recent", len(s.halves), len(s.pages), len(s.spare), len(s.recent))
	}
}

// haloRows returns rows of an exchange of every rank with its two neighbours, each a receive, a send and a wait, and
// its messages, sorted as a run is.
func haloRows(ranks, steps int) (*schema.Events, *schema.Messages) {
	e, m := &schema.Events{}, &schema.Messages{}
	for rank := range int32(ranks) {
		for step := range int64(steps) {
			for k, by := range []int32{1, int32(ranks) - 1} {
				peer, from := (rank+by)%int32(ranks), (rank+int32(ranks)-by)%int32(ranks)
				seq := (2*step + int64(k)) * 3
				recv, send, wait := schema.NullEvent, schema.NullEvent, schema.NullEvent
				recv.Class, recv.RecvWorld, recv.RecvTag, recv.RecvBytes = int16(schema.ClassRecv), from, 7, 8
				recv.Request, recv.DoneSeq = seq, seq+2
				send.Class, send.SendWorld, send.SendTag, send.SendBytes = int16(schema.ClassSend), peer, 7, 8
				wait.Class = int16(schema.ClassComplete)
				for i, row := range []*schema.Event{&recv, &send, &wait} {
					row.Rank, row.Seq, row.Comm, row.ProcNull = rank, seq+int64(i), 0, 0
					row.StartNs, row.EndNs = row.Seq*10, row.Seq*10+5
					e.Append(row)
				}
				x := schema.NullMessage
				x.Src, x.Dst, x.Comm, x.Tag, x.Bytes, x.SendSeq = rank, peer, 0, 7, 8, seq+1
				x.SendStartNs, x.SendEndNs = (seq+1)*10, (seq+1)*10+5
				x.RecvPostSeq, x.RecvPostNs, x.RecvDoneSeq = seq, seq*10, seq+2
				m.Append(&x)
			}
		}
	}
	return e, m
}

// BenchmarkMessages compares messages with the rows of their sides.
func BenchmarkMessages(b *testing.B) {
	e, m := haloRows(64, 2000)
	var bad []Problem
	for b.Loop() {
		c := NewChecker(&schema.Manifest{Record: "all"}, func(p Problem) { bad = append(bad, p) })
		for i := range c.rules {
			if r := &c.rules[i]; r.out.rule == "messages" {
				r.batch(e)
				r.batch(m)
				r.finish()
			}
		}
	}
	if len(bad) > 0 {
		b.Fatal(bad[0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(m.Len()), "ns/message")
}
