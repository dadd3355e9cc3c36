package predict_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// noisyRing returns a capture of ring whose compute times are off by a factor for each call of the capture, 20 % in
// the mean square.
func noisyRing(ranks int, seed uint64) *signature.Run {
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

// With five captures on each number of ranks the error of predicted compute times is about half of that with one: the
// median of five normally distributed numbers has 0.54 of the deviation of one.
func TestPoolHalvesTheError(t *testing.T) {
	const want = 420000 + (11*700+1400)/12. // as in TestComputeTimes
	off := map[int]float64{}
	const tries = 12
	for try := range uint64(tries) {
		for _, captures := range []int{1, 5} {
			var runs []*signature.Signature
			for _, ranks := range []int{3, 4, 5, 6, 7, 8} {
				for k := range captures {
					runs = append(runs, sign(t, noisyRing(ranks, 100*try+uint64(k))))
				}
			}
			m, err := model.New(runs)
			if err != nil {
				t.Fatal(err)
			}
			x := extrapolate(t, m, 12)
			off[captures] += math.Abs(math.Log(x.Compute.RankNs/want)) / tries
		}
	}
	if off[5] > 0.7*off[1] || off[1] < 0.02 {
		t.Errorf("error %.3f with five captures, %.3f with one", off[5], off[1])
	}
	t.Logf("error %.3f with one capture, %.3f with five", off[1], off[5])
}
