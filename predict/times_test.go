package predict_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/predict/extrapolated"
	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/model/compute"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// ring makes a run with two sends to the next rank. Before the first one a rank computes its part of a line of 5040
// cells at 1000 ns each; before the second one 700 ns, but the last rank takes twice as long.
func ring(ranks int, clock string) *signature.Run {
	run := testruns.Sends(ranks, 2, func(r, _ int) (int, int) { return (r + 1) % ranks, 4097 })
	return testruns.WithTimes(run, clock, func(e *schema.Event) (int64, int64, int64) {
		switch {
		case e.Callsite == 'a':
			return int64(5040 * 1000 / ranks), 0, 0
		case int(e.Rank) == ranks-1:
			return 1400, 0, 0
		}
		return 700, 0, 0
	})
}

// 5040 cells on 12 ranks are 420 for each. The last rank takes twice as long before its second send on any number of
// ranks.
func TestComputeTimes(t *testing.T) {
	m := train(t, []int{3, 4, 5, 6, 7}, func(ranks int) *signature.Run { return ring(ranks, "cpu") })
	if why := m.Times().Refused; why != "" {
		t.Fatal(why)
	}
	x := extrapolate(t, m, 12)
	// 420,000 + (11 x 700 + 1400)/12 ns
	const want = 420000 + (11*700+1400)/12.
	if c := x.Compute; math.Abs(c.RankNs/want-1) > 0.01 || c.LowNs > want || *c.HighNs < want || c.Calls != 24 ||
		c.Unknown != 0 {
		t.Errorf("ranks compute %+v, want %.0f ns", c, want)
	}
	if x.Signature.ComputeClock != "cpu" {
		t.Errorf("the run's clock is %q", x.Signature.ComputeClock)
	}
	rows := x.Signature.Stream(8)
	for rank := range int32(12) {
		b := &schema.Events{}
		if err := rows.Next(rank, b); err != nil {
			t.Fatal(err)
		}
		for i := range b.Rank {
			want := []float64{420000, 700}[i]
			// The time of the last rank relative to the mean depends a little on the number of ranks; the mean of 3
			// to 7 ranks is used.
			if rank == 11 && i == 1 {
				want = 1400
			}
			if ns := b.ComputeNs[i]; math.Abs(float64(ns)/want-1) > 0.1 {
				t.Errorf("rank %d computes %d ns before call %d, want %.0f", rank, ns, i, want)
			}
		}
	}
}

// Wall clock times are not used if ranks shared CPUs, or if that is unknown. Communication is predicted anyway.
func TestUnusableComputeTimes(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		clock  string
		shared *bool
		want   string
	}{
		{"cpu", nil, ""},
		{"cpu", &yes, ""},
		{"wall", &no, ""},
		{"device", nil, ""},
		{"wall", nil, `run "test" are of the wall clock, and it does not say how many CPUs`},
		{"wall", &yes, "its ranks were more than the CPUs"},
		{"none", nil, "was captured without compute times; capture it again with --clock cpu"},
	} {
		var runs []*signature.Signature
		for _, p := range []int{3, 4, 5, 7} {
			s := sign(t, ring(p, c.clock))
			s.Oversubscribed = c.shared
			runs = append(runs, s)
		}
		m, err := model.New(runs)
		if err != nil {
			t.Fatal(err)
		}
		if why := m.Times().Refused; c.want == "" && why != "" || !strings.Contains(why, c.want) {
			t.Errorf("clock %s: %q, want %q", c.clock, why, c.want)
		}
		x := extrapolate(t, m, 9)
		if (x.Compute != nil) != (c.want == "") || (x.Signature.ComputeClock == "none") != (c.want != "") {
			t.Errorf("clock %s: %+v, and the run's clock is %s", c.clock, x.Compute, x.Signature.ComputeClock)
		}
		if got := report.NewTotals(m, x); got.Messages.Value != 18 || got.Bytes.Value != 18*4097 {
			t.Errorf("clock %s: %+v", c.clock, got)
		}
	}
}

// A doubt about compute times is kept with the laws, and can be put aside.
func TestDoubtedComputeTimesAccepted(t *testing.T) {
	var runs []*signature.Signature
	for _, p := range []int{3, 4, 5, 7} {
		runs = append(runs, sign(t, ring(p, "wall")))
	}
	m, err := model.New(runs)
	if err != nil {
		t.Fatal(err)
	}
	var kept compute.Laws
	text, err := json.Marshal(m.Times())
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	if err != nil || kept.Clock() != "none" || !strings.Contains(kept.Refused, "--accept wall-clock") {
		t.Fatalf("kept laws: clock %s, refused %q, %v", kept.Clock(), kept.Refused, err)
	}
	if kept.AcceptDoubt(); kept.Clock() != "wall" || kept.Refused != "" {
		t.Errorf("accepted laws: clock %s, refused %q", kept.Clock(), kept.Refused)
	}
	if timed := timedCalls(t, m, extrapolated.Conditions{}); timed != 0 {
		t.Errorf("%d calls have compute times that were not accepted", timed)
	}
	if timed := timedCalls(t, m, extrapolated.Conditions{Accept: []string{report.WallClock}}); timed == 0 {
		t.Error("no call has a compute time that was accepted")
	}
}

// timedCalls extrapolates to 9 ranks and returns how many calls have a compute time. A doubt about them is a warning if
// it was accepted.
func timedCalls(t *testing.T, m *model.Model, c extrapolated.Conditions) (n int) {
	t.Helper()
	x, err := extrapolated.Extrapolate(t.Context(), m, 9, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	for r := range x.Signature.Ranks {
		x.Signature.Walk(r, func(_ *template.Node, call *signature.Call) {
			if call.ComputeNs != nil {
				n++
			}
		})
	}
	warned := slices.ContainsFunc(report.Warnings(report.NewWeigher(m, x, 9)),
		func(w report.Warning) bool { return w.Name == report.WallClock })
	if accepted := len(c.Accept) > 0; warned != accepted || (x.Compute != nil) != accepted ||
		(x.Signature.ComputeClock == "wall") != accepted {
		t.Errorf("accepted %v: warned %v, %+v of clock %s", c.Accept, warned, x.Compute, x.Signature.ComputeClock)
	}
	return n
}

// Distinct calls of one site have compute times of their own, which the signature's file keeps.
func TestComputeTimesOfDistinctCalls(t *testing.T) {
	run := testruns.Sends(5, 1, func(r, _ int) (int, int) { return (r + 1) % 5, 100 + r%2 })
	s := sign(t, testruns.WithTimes(run, "cpu",
		func(e *schema.Event) (int64, int64, int64) { return 1000 * (e.SendBytes - 99), 0, 0 }))
	var text strings.Builder
	if err := s.Write(&text); err != nil {
		t.Fatal(err)
	}
	s, err := signature.Read(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	v := s.Values[1]
	if len(v.Events) != 3 { // the last rank's peer is at another distance
		t.Fatalf("%d calls", len(v.Events))
	}
	for _, c := range v.Events {
		if want := 1000 * (int64(c.Send[signature.SideBytes]) - 99); c.ComputeNs == nil || *c.ComputeNs != want {
			t.Errorf("%d bytes: %v, want %d ns", c.Send[signature.SideBytes], c.ComputeNs, want)
		}
	}
}

// Ranks send to all others, from rank 0 on, and compute before the first send of a round: calls to the same neighbour
// come after computing on some ranks and not on others. On more ranks each computes before the first send, too, and as
// long.
func TestComputingComesBeforeTheFirstOfManySends(t *testing.T) {
	const rounds, long, short = 8, 1000000, 1000
	toAll := func(ranks int) *signature.Run {
		run := testruns.Messages(ranks, func(r int) (all []testruns.Message) {
			for range rounds {
				all = append(all, testruns.Message{Site: 0, To: r, Bytes: 8})
				for to := range ranks {
					if to != r {
						all = append(all, testruns.Message{Site: 1, To: to, Bytes: 512})
					}
				}
			}
			return all
		})
		return testruns.WithTimes(run, "cpu", func(e *schema.Event) (int64, int64, int64) {
			switch {
			case e.Callsite == 'a':
				return 0, 0, 0
			case int(e.Seq)%ranks == 1:
				return long, 0, 0
			}
			return short, 0, 0
		})
	}
	m := train(t, []int{4, 5, 6, 8}, toAll)
	x := extrapolate(t, m, 12)
	if want := rounds * (long + 10.*short); math.Abs(x.Compute.RankNs/want-1) > 0.02 {
		t.Errorf("ranks compute %.0f ns, want %.0f", x.Compute.RankNs, want)
	}
	rows := x.Signature.Stream(rounds * 12)
	for rank := range int32(12) {
		b := &schema.Events{}
		if err := rows.Next(rank, b); err != nil {
			t.Fatal(err)
		}
		for i, ns := range b.ComputeNs {
			at := min(i%12, 2)
			want, off := []float64{0, long, short}[at], []float64{0, 0.05, 0.5}[at]
			if math.Abs(float64(ns)-want) > off*want {
				t.Fatalf("rank %d, seq %d: %d ns, want %.0f", rank, i, ns, want)
			}
		}
	}
}
