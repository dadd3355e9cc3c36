package join

import (
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// Pool takes the median for each distinct call, and the result can be written and read.
func TestPoolTakesMedians(t *testing.T) {
	times := [][2]int64{{1000, 70}, {1500, 60}, {9000, 65}}
	var runs []*signature.Signature
	for i, ns := range times {
		run := testruns.Sends(3, 2, func(r, _ int) (int, int) { return (r + 1) % 3, 4097 })
		run.Name = []string{"a", "b", "c"}[i]
		runs = append(runs, signRun(t, testruns.WithTimes(run, "cpu", func(e *schema.Event) (int64, int64, int64) {
			if e.Rank == 2 { // its calls go another distance
				return ns[1], 0, 0
			}
			return ns[0], 0, 0
		})))
	}
	pooled, err := Pool(runs)
	if err != nil || len(pooled) != 1 {
		t.Fatal(pooled, err)
	}
	s := pooled[0]
	if len(s.Captures) != 3 || s.Captures[2].Run != "c" {
		t.Errorf("captures: %+v", s.Captures)
	}
	for rank, want := range []float64{1500, 1500, 65} {
		s.Walk(int32(rank), func(n *template.Node, c *signature.Call) {
			if ns := s.Values[n.ID].MeanNs(c, false); ns != want {
				t.Errorf("rank %d computes %g ns before a call, want %g", rank, ns, want)
			}
		})
	}
	if runs[0].Captures != nil || runs[0].Values[1].MeanNs(runs[0].Values[1].Events[0], false) != 1000 {
		t.Error("Pool changed the first capture")
	}
	var text strings.Builder
	if err := s.Write(&text); err != nil {
		t.Fatal(err)
	}
	if again, err := signature.Read(strings.NewReader(text.String())); err != nil || len(again.Captures) != 3 {
		t.Error(again, err)
	}
}

// Ranks that differ in one capture only do not take the noise from the other: in any order of the two, what is drawn
// has noise, and ranks share it.
func TestPoolKeepsNoise(t *testing.T) {
	capture := func(name string, slower int64) *signature.Signature {
		run := testruns.Messages(4, func(r int) []testruns.Message {
			return slices.Repeat([]testruns.Message{{To: (r + 1) % 4, Bytes: 4097}}, 40)
		})
		run.Name = name
		return signRun(t, testruns.WithTimes(run, "cpu", func(e *schema.Event) (int64, int64, int64) {
			return 10000 + e.Seq*7919%4001 + slower*int64(e.Rank), 0, 0
		}))
	}
	even, uneven := capture("even", 0), capture("uneven", 2000)
	for _, pair := range [][]*signature.Signature{{even, uneven}, {uneven, even}} {
		pooled, err := Pool(pair)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, v := range pooled[0].Values {
			if x := v.Times; x != nil && x.Compute.Count > 4 {
				found = true
				if len(x.ByRank) != 4 || x.AroundRanks() == nil || x.AroundRanks().High <= x.AroundRanks().Low || x.Shared < 900 {
					t.Errorf("%s first: %v, %+v, shared %d", pair[0].Run, x.ByRank, x.AroundRanks(), x.Shared)
				}
			}
		}
		if !found {
			t.Error("no event has times")
		}
	}
}

// The error names captures that are not of the same run, and where they differ.
func TestPoolRefusesDifferentRuns(t *testing.T) {
	sign := func(name, clock string, calls, bytes int) *signature.Signature {
		run := testruns.Sends(3, calls, func(r, _ int) (int, int) { return (r + 1) % 3, bytes })
		run.Name, run.Manifest.ComputeClock = name, clock
		return signRun(t, run)
	}
	for want, other := range map[string]*signature.Signature{
		`runs "a" and "b" on 3 ranks are not captures of the same run: rank 0, seq 0: MPI_Send`: sign("b", "cpu", 2,
			4098),
		`rank 0 ends after 2 calls in one of them; give one of them`: sign("b", "cpu", 3,
			4097),
		`have compute times of different clocks, "cpu" and "wall"; give those of one clock`: sign("b", "wall", 2,
			4097),
	} {
		if _, err := Pool([]*signature.Signature{sign("a", "cpu", 2, 4097), other}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
