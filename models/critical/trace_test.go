package critical

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

// TestTraceOfAPath is the path of TestPathIsGroupedByKeys over time: 100 ns of rank 0, then rank 1.
func TestTraceOfAPath(t *testing.T) {
	g := graph(t, 2, Options{Trace: true},
		call{rank: 0, call: schema.CallSend, from: 100, to: 110},
		call{rank: 1, call: schema.CallRecv, from: 40, to: 120},
		call{rank: 1, call: schema.CallFinalize, from: 150, to: 155})
	g.message(0, 0, 1, 0, 0)
	p := g.Path(nil)
	if diff := cmp.Diff([]Change{{From: 0, To: 1, AtNs: 100}}, p.Changes()); diff != "" {
		t.Error(diff)
	}
	want := []Step{
		{Rank: 0, Ranks: 1, FromNs: 0, ToNs: 78, Ns: [Kinds]int64{Compute: 78}},
		{Rank: 0, Ranks: 1, FromNs: 78, ToNs: 156, Ns: [Kinds]int64{Compute: 22}},
		{Rank: 1, Ranks: 1, FromNs: 78, ToNs: 156, Ns: [Kinds]int64{Compute: 30, Transfer: 20, Other: 5}},
	}
	if diff := cmp.Diff(want, p.Steps(2, 2, 2)); diff != "" {
		t.Error(diff)
	}
	if got := p.Steps(2, 1, 1); len(got) != 1 || got[0].Ranks != 2 || got[0].Ns[Compute] != 130 {
		t.Errorf("all in one: %+v", got)
	}
	if p := g.Path(nil); p.Steps(2, 0x1000, 2) == nil || len(p.Steps(2, 155, 2)) != 155 {
		t.Errorf("in steps of 1 ns there are %d", len(p.Steps(2, 155, 2)))
	}
}

// TestTraceAddsUp: the steps of random segments have their times, in any number of steps and rows, and too many changes
// are not kept.
func TestTraceAddsUp(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	at, before := int64(1e9), int32(-1)
	p, want := &Path{trace: &trace{}}, [Kinds]int64{}
	for range 3000 {
		s := Segment{Rank: r.Int32N(7), Kind: Kind(r.IntN(int(Kinds))), From: at - 1 - r.Int64N(400000), To: at}
		want[s.Kind] += s.To - s.From
		p.trace.add(s, before)
		at, before = s.From, s.Rank
	}
	for _, n := range []int{1, 2, 100, 550} {
		var got [Kinds]int64
		steps := p.Steps(7, n, n)
		for _, s := range steps {
			for k, ns := range s.Ns {
				got[k] += ns
			}
			if s.FromNs >= 1e9 || s.ToNs <= at || s.Rank+s.Ranks > 7 {
				t.Errorf("step %+v", s)
			}
		}
		if got != want || len(steps) > n*min(n, 7) {
			t.Errorf("%d steps with %v; want %v", len(steps), got, want)
		}
	}
	if p.Changes() != nil {
		t.Errorf("%d changes", len(p.Changes()))
	}
	if p := (&Path{}); p.Steps(3, 5, 5) != nil || p.Changes() != nil {
		t.Error("a path without a trace has one")
	}
}

// TestWithin: parts of a window are those of the path, cut; if they are too many, each stands for a rank and a step.
func TestWithin(t *testing.T) {
	p := &Path{trace: &trace{keep: true}}
	before := int32(-1)
	for _, s := range []Segment{{Rank: 1, Kind: Other, From: 900, To: 1000}, {Rank: 1, Kind: Compute, From: 600, To: 900},
		{Rank: 3, Call: schema.CallSend, Kind: Transfer, From: 590, To: 600}, {Rank: 3, Kind: Compute, From: 0, To: 590}} {
		p.trace.add(s, before)
		before = s.Rank
	}
	all := []Segment{{Rank: 3, Kind: Compute, From: 100, To: 590},
		{Rank: 3, Call: schema.CallSend, Kind: Transfer, From: 590, To: 600}, {Rank: 1, Kind: Compute, From: 600, To: 700}}
	got, step := p.Within(100, 700, 3)
	if diff := cmp.Diff(all, got); diff != "" || step != 0 {
		t.Errorf("step %d: %s", step, diff)
	}
	got, step = p.Within(500, 700, 2)
	joined := []Segment{{Rank: 1, Kind: Compute, From: 500, To: 900}, {Rank: 3, Kind: Compute, From: 500, To: 900}}
	if diff := cmp.Diff(joined, got); diff != "" || step != 400 {
		t.Errorf("step %d: %s", step, diff)
	}
	p.trace.segments = nil // of a path that is too long
	if got, step := p.Within(0, 10, 100); len(got) == 0 || got[0].Rank != 3 || step != p.trace.stepNs {
		t.Errorf("step %d: %+v", step, got)
	}
}
