package predict_test

import (
	"math"
	"testing"

	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// positions are programs whose ranks compute differently long, in ns before each of their sends, by their position.
var positions = []struct {
	name string
	ns   func(rank, ranks int) float64
	most float64
}{
	{"all alike", func(_, ranks int) float64 { return 5.04e6 / float64(ranks) }, 0.12},
	{"the last rank twice as long", func(rank, ranks int) float64 {
		if rank == ranks-1 {
			return 2 * 5.04e6 / float64(ranks)
		}
		return 5.04e6 / float64(ranks)
	}, 0.12},
	{"the last rank alone a fixed time", func(rank, ranks int) float64 {
		if rank == ranks-1 {
			return 3e6
		}
		return 5.04e6 / float64(ranks)
	}, 0.12},
	{"the upper half half as long again", func(rank, ranks int) float64 {
		if 2*rank >= ranks {
			return 1.5 * 5.04e6 / float64(ranks)
		}
		return 5.04e6 / float64(ranks)
	}, 0.12},
	{"odd ranks twice as long", func(rank, ranks int) float64 {
		return float64(1+rank%2) * 5.04e6 / float64(ranks)
	}, 0.12},
	{"more with the rank", func(rank, ranks int) float64 {
		return 5.04e6 * (2*float64(rank) + 1) / float64(ranks*ranks)
	}, 0.18}, // eighths of the ranks have a time each
	{"the first rank also what does not divide", func(rank, ranks int) float64 {
		if rank == 0 {
			return 5.04e6/float64(ranks) + 1e6
		}
		return 5.04e6 / float64(ranks)
	}, 0.25},
}

// Compute times follow the position of ranks: with noise of 2 % each rank's time at 16 and 32 ranks is off by less than
// 12 % of the longest; by 25 % where the time of a role is a sum of two laws.
func TestComputeTimesByPosition(t *testing.T) {
	for _, c := range positions {
		noise := uint64(1)
		random := func() float64 {
			noise = noise*6364136223846793005 + 1442695040888963407
			return float64(noise>>33)/float64(1<<31)*2 - 1
		}
		m := train(t, []int{4, 6, 8, 10, 12}, func(ranks int) *signature.Run {
			run := testruns.Sends(ranks, 3, func(r, _ int) (int, int) { return (r + 1) % ranks, 4097 })
			return testruns.WithTimes(run, "cpu", func(e *schema.Event) (int64, int64, int64) {
				return int64(c.ns(int(e.Rank), ranks) * (1 + 0.02*random())), 0, 0
			})
		})
		for _, ranks := range []int{16, 32} {
			x := extrapolate(t, m, ranks)
			rows := x.Signature.Stream(8)
			sum, longest, worst, at := 0.0, 0.0, 0.0, 0
			for rank := range ranks {
				longest = max(longest, c.ns(rank, ranks))
			}
			for rank := range ranks {
				b := &schema.Events{}
				if err := rows.Next(int32(rank), b); err != nil {
					t.Fatal(err)
				}
				want := c.ns(rank, ranks)
				sum += 3 * want / float64(ranks)
				for _, ns := range b.ComputeNs {
					if off := math.Abs(float64(ns)-want) / longest; off > worst {
						worst, at = off, rank
					}
				}
			}
			if worst > c.most {
				t.Errorf("%s, %d ranks: rank %d is off by %.0f %% of the longest", c.name, ranks, at, 100*worst)
			}
			if k := x.Compute; k.LowNs > sum || k.HighNs == nil || *k.HighNs < sum {
				t.Errorf("%s, %d ranks: a rank computes %.0f ns, not within %+v", c.name, ranks, sum, k)
			}
		}
	}
}
