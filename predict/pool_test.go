package predict

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
)

// noisyRing is a capture of ring, each of whose compute times is off by a factor that is the capture's own, 20 % in the mean square.
func noisyRing(ranks int, seed uint64) *Run {
	run := ring(ranks, "cpu")
	g := rand.New(rand.NewPCG(seed, uint64(ranks)))
	off := [2]float64{math.Exp(0.2 * g.NormFloat64()), math.Exp(0.2 * g.NormFloat64())}
	rows := run.Events
	run.Events = func(add func(*schema.Events) error) error {
		return rows(func(b *schema.Events) error {
			for i, ns := range b.ComputeNs {
				b.ComputeNs[i] = int64(float64(ns) * off[b.Callsite[i]-'a'])
			}
			return add(b)
		})
	}
	return run
}

// TestPool: the error of what is predicted from five captures of each number of ranks is about half of that from one: the median of five numbers that are
// normally distributed has 0.54 of the deviation of one.
func TestPool(t *testing.T) {
	const want = 420000 + (11*700+1400)/12. // as in TestComputeTimes
	off := map[int]float64{}
	const tries = 12
	for try := range uint64(tries) {
		for _, captures := range []int{1, 5} {
			var runs []*Signature
			for _, ranks := range []int{3, 4, 5, 6, 7, 8} {
				for k := range captures {
					runs = append(runs, signed(t, noisyRing(ranks, 100*try+uint64(k))))
				}
			}
			m, err := NewModel(runs)
			if err != nil {
				t.Fatal(err)
			}
			x, err := m.Extrapolate(t.Context(), 12, nil)
			if err != nil {
				t.Fatal(err)
			}
			off[captures] += math.Abs(math.Log(x.Compute.RankNs/want)) / tries
		}
	}
	if off[5] > 0.7*off[1] || off[1] < 0.02 {
		t.Errorf("from five captures off by %.3f, from one by %.3f", off[5], off[1])
	}
	t.Logf("off by %.3f from one capture, by %.3f from five", off[1], off[5])
}

// TestPoolTakesTheMedian: of each kind of call by itself, and what is pooled can be written and read.
func TestPoolTakesTheMedian(t *testing.T) {
	times := [][2]int64{{1000, 70}, {1500, 60}, {9000, 65}}
	var runs []*Signature
	for i, ns := range times {
		run := sendsTo(3, 2, func(r, _ int) (int, int) { return (r + 1) % 3, 4097 })
		run.Name = []string{"a", "b", "c"}[i]
		runs = append(runs, signed(t, computing(run, "cpu", func(e *schema.Event) (int64, int64, int64) {
			if e.Rank == 2 { // whose calls have another distance
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
		t.Errorf("captures are %+v", s.Captures)
	}
	for rank, want := range []float64{1500, 1500, 65} {
		s.Walk(int32(rank), func(n *Node, c *Call) {
			if ns := s.Values[n.ID].meanNs(c); ns != want {
				t.Errorf("rank %d computes %g ns before a call, want %g", rank, ns, want)
			}
		})
	}
	if runs[0].Captures != nil || runs[0].Values[1].meanNs(runs[0].Values[1].Events[0]) != 1000 {
		t.Error("the first capture is another one now")
	}
	var text strings.Builder
	if err := s.Write(&text); err != nil {
		t.Fatal(err)
	}
	if again, err := Read(strings.NewReader(text.String())); err != nil || len(again.Captures) != 3 {
		t.Error(again, err)
	}
}

// TestPoolRefuses: captures that are not of the same program are named, and where they differ.
func TestPoolRefuses(t *testing.T) {
	of := func(name, clock string, calls, bytes int) *Signature {
		run := sendsTo(3, calls, func(r, _ int) (int, int) { return (r + 1) % 3, bytes })
		run.Name, run.Manifest.ComputeClock = name, clock
		return signed(t, run)
	}
	for want, other := range map[string]*Signature{
		`runs "a" and "b" on 3 ranks are not captures of the same: rank 0, seq 0: MPI_Send`: of("b", "cpu", 2, 4098),
		`rank 0 ends after 2 calls in one of them; give one of them`:                        of("b", "cpu", 3, 4097),
		`have compute times of different clocks, "cpu" and "wall"; give those of one`:       of("b", "wall", 2, 4097),
	} {
		if _, err := Pool([]*Signature{of("a", "cpu", 2, 4097), other}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
