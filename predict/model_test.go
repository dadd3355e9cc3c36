package predict

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
)

// sendsTo makes a run whose ranks send to others: dst says to whom rank r does at step i of as many steps.
func sendsTo(ranks, steps int, dst func(r, i int) (to, bytes int)) *Run {
	run := sites(make([]string, ranks)...)
	run.Events = func(add func(*schema.Events) error) error {
		b := &schema.Events{}
		for r := range ranks {
			seq := int64(0)
			for i := range steps {
				to, bytes := dst(r, i)
				if to < 0 {
					continue
				}
				e := schema.NullEvent
				e.Rank, e.Seq, e.Call, e.Class, e.Callsite, e.Comm = int32(r), seq, int16(schema.CallSend), int16(schema.ClassSend), 'a'+int32(i), 0
				e.SendPeer, e.SendWorld, e.SendTag, e.SendCount, e.SendDatatype, e.SendBytes = int32(to), int32(to), 9, int64(bytes), 5, int64(bytes)
				b.Append(&e)
				seq++
			}
		}
		return add(b)
	}
	return run
}

func signed(t *testing.T, run *Run) *Signature {
	t.Helper()
	s, err := Sign(run)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestExtrapolate: a ring and a line on which the last rank sends to nobody, with payloads that become less, at a number of ranks that was not run.
func TestExtrapolate(t *testing.T) {
	program := func(ranks int) *Run {
		return sendsTo(ranks, 2, func(r, i int) (int, int) {
			if i == 1 && r == ranks-1 {
				return -1, 0
			}
			return (r + 1) % ranks, 5040 * 8 / ranks
		})
	}
	var runs []*Signature
	for _, ranks := range []int{3, 4, 5, 6, 7} {
		runs = append(runs, signed(t, program(ranks)))
	}
	m, err := NewModel(runs)
	if err != nil {
		t.Fatal(err)
	}
	x, err := m.Extrapolate(t.Context(), 12, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Score{Ranks: 12, EdgePrecision: 1, EdgeRecall: 1, Messages: 23, Bytes: 23 * 3360}
	if got := x.Signature.Score(signed(t, program(12))); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestExtrapolateRefuses: destinations that are drawn have no law.
func TestExtrapolateRefuses(t *testing.T) {
	var runs []*Signature
	for _, ranks := range []int{9, 11, 14, 17} {
		g := rand.New(rand.NewPCG(uint64(ranks), 8))
		runs = append(runs, signed(t, sendsTo(ranks, 1, func(int, int) (int, int) { return g.IntN(ranks), 4097 })))
	}
	m, err := NewModel(runs)
	if err != nil {
		t.Fatal(err)
	}
	if m.Unexplained != 17 || m.Traffic != 17 {
		t.Errorf("%d of %d messages are not explained, want all 17", m.Unexplained, m.Traffic)
	}
	if _, err := m.Extrapolate(t.Context(), 20, nil); err == nil || !strings.Contains(err.Error(), "are not known there") {
		t.Errorf("got %v", err)
	}
}
