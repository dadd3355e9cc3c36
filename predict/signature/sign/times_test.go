package sign

import (
	"math/rand/v2"
	"testing"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// sharedOf returns how much noise ranks share that compute so long, in ns, before their k-th calls of one event.
func sharedOf(compute func(rank, k int32) float64) *signature.Times {
	const ranks, calls = 8, 200
	x := &interned{times: &eventTimes{}}
	for rank := range int32(ranks) {
		for k := range int32(calls) {
			e := schema.NullEvent
			e.Rank, e.ComputeNs = rank, int64(compute(rank, k))
			x.times.add(&e, 0, k)
			x.addCallTime(0, e.ComputeNs)
		}
	}
	v := &signature.Values{Events: []*signature.Call{{}}, Times: x.times.summary()}
	setCallTimes(v, x.callTimes)
	x.times.setRankTimes(v, x.callTimes, ranks)
	x.times.setShared(v, x.callTimes)
	return v.Times
}

// Iterations in which all ranks are late are noise that they share. Lateness of single ranks is not, nor are ranks that
// are always slower. Half of each is the share that the variances have: 1 / (1 + 1).
func TestSharedNoise(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var late [200]float64
	for k := range late {
		late[k] = random.NormFloat64()
	}
	alone := func() float64 { return random.NormFloat64() }
	for _, c := range []struct {
		name        string
		compute     func(rank, k int32) float64
		least, most int64
	}{
		{"all late together", func(_, k int32) float64 { return 10000 + 1000*late[k] }, 999, 1000},
		{"together, and some ranks always slower",
			func(rank, k int32) float64 { return 10000 + 2000*float64(rank) + 1000*late[k] }, 950, 1000},
		{"half of it together", func(_, k int32) float64 { return 10000 + 1000*late[k] + 1000*alone() }, 400, 600},
		{"each on its own", func(_, _ int32) float64 { return 10000 + 1000*alone() }, 0, 0},
		{"some ranks always slower", func(rank, _ int32) float64 { return 10000 + 2000*float64(rank) + 100*alone() }, 0, 0},
		{"no noise", func(_, _ int32) float64 { return 10000 }, 0, 0},
	} {
		if got := sharedOf(c.compute).Shared; got < c.least || got > c.most {
			t.Errorf("%s: %d, want %d to %d", c.name, got, c.least, c.most)
		}
	}
}
