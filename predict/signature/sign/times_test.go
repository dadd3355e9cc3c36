package sign

import (
	"math/rand/v2"
	"testing"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// sharedOf returns how much noise ranks share that compute so long, in ns, before their k-th calls of one event, which
// have these values; a negative time is no call.
func sharedOf(ranks int32, value func(rank, k int32) int32, compute func(rank, k int32) float64) int64 {
	const calls = 200
	x := &eventTimes{mostEarly: calls}
	for rank := range ranks {
		for k := range int32(calls) {
			if ns := compute(rank, k); ns >= 0 {
				e := schema.NullEvent
				e.Rank, e.ComputeNs = rank, int64(ns)
				x.add(&e, kindOf(value(rank, k), false), k)
			}
		}
	}
	v := &signature.Values{Times: x.summary()}
	x.setShared(v)
	return v.Times.Shared
}

// Iterations in which all ranks are late are noise that they share. Lateness of single ranks is not, nor are ranks that
// are always slower. If both kinds of noise vary as much, the correlation is 1/2.
func TestSharedNoise(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var late [200]float64
	for k := range late {
		late[k] = random.NormFloat64()
	}
	alone := func() float64 { return random.NormFloat64() }
	one := func(_, _ int32) int32 { return 0 }
	together := func(_, k int32) float64 { return 10000 + 1000*late[k] }
	slower := func(rank, k int32) float64 { return together(rank, k) * (1 + 0.2*float64(rank)) }
	for _, c := range []struct {
		name        string
		ranks       int32
		value       func(rank, k int32) int32
		compute     func(rank, k int32) float64
		least, most int64
	}{
		{"all late together", 8, one, together, 990, 1000},
		{"together, and some ranks always slower", 8, one, slower, 980, 1000},
		{"half of it together", 8, one, func(_, k int32) float64 { return 10000 + 1000*late[k] + 1000*alone() }, 400, 600},
		{"each on its own", 8, one, func(_, _ int32) float64 { return 10000 + 1000*alone() }, 0, 0},
		{"some ranks always slower", 8, one, func(rank, _ int32) float64 { return 10000 + 2000*float64(rank) + 100*alone() }, 0, 0},
		{"no noise", 8, one, func(_, _ int32) float64 { return 10000 }, 0, 0},
		{"4 of 16 ranks call, and differ", 16, one, func(rank, k int32) float64 {
			if rank >= 4 {
				return -1
			}
			return slower(rank, k)
		}, 980, 1000},
		{"pairs with a value, and differ", 8, func(rank, _ int32) int32 { return rank / 2 }, slower, 980, 1000},
		{"values alternate", 8, func(_, k int32) int32 { return k % 2 }, func(rank, k int32) float64 {
			return slower(rank, k) * float64(1+k%2)
		}, 980, 1000},
		{"one rank late once", 8, one, func(rank, k int32) float64 {
			if rank == 3 && k == 100 {
				return 200000
			}
			return together(rank, k)
		}, 800, 1000},
		{"first calls late, others each on its own", 8, one, func(_, k int32) float64 {
			if k < 10 {
				return 100000
			}
			return 10000 + 1000*alone()
		}, 100, 700},
	} {
		if got := sharedOf(c.ranks, c.value, c.compute); got < c.least || got > c.most {
			t.Errorf("%s: %d, want %d to %d", c.name, got, c.least, c.most)
		}
	}
}

// The order in which rows are read does not matter.
func TestSharedNoiseInAnyOrder(t *testing.T) {
	times := func(byRank bool) int64 {
		x := &eventTimes{mostEarly: 100}
		for i := range int32(1600) {
			e := schema.NullEvent
			k := i / 8
			e.Rank = i % 8
			if byRank {
				e.Rank, k = i/200, i%200
			}
			e.ComputeNs = 10000 + int64(k*k*7919%4001)
			x.add(&e, kindOf(min(e.Rank, 1), false), k)
		}
		v := &signature.Values{Times: x.summary()}
		x.setShared(v)
		return v.Times.Shared
	}
	if a, b := times(true), times(false); a != b || a < 990 {
		t.Errorf("%d rank by rank, %d call by call", a, b)
	}
}

// Of the receives that ranks post from all others in turn only the first comes after computing. Each rank begins with
// another peer, so that a call is the first on some ranks and not on others: both kinds have times of their own.
func TestFirstCallOfManyHasItsOwnTime(t *testing.T) {
	const ranks, rounds, long, short = 4, 20, 1000000, 1000
	x := &interned{times: &eventTimes{mostEarly: 100}}
	v := &signature.Values{Events: make([]*signature.Call, ranks)}
	for i := range v.Events {
		v.Events[i] = &signature.Call{}
	}
	for rank := range int32(ranks) {
		for k := range int32(ranks * rounds) {
			e := schema.NullEvent
			e.Rank, e.ComputeNs = rank, short+int64(k%3)*900
			value := (rank + k) % ranks
			isFirst := k%ranks == 0
			if isFirst {
				e.ComputeNs = long + int64(k%7)
			}
			x.times.add(&e, kindOf(value, isFirst), k)
			x.addCallTime(kindOf(value, isFirst), e.ComputeNs)
		}
	}
	v.Times = x.times.summary()
	x.times.joinAlike(x.callTimes)
	setCallTimes(v, x.callTimes)
	for i, c := range v.Events {
		if c.FirstNs == nil || c.ComputeNs == nil {
			t.Fatalf("call %d: first calls have no time of their own", i)
		}
		if *c.FirstNs < long || *c.FirstNs > long+7 || *c.ComputeNs < short || *c.ComputeNs > 3*short {
			t.Errorf("call %d: %d ns before the first, %d before others, want %d and about %d", i, *c.FirstNs,
				*c.ComputeNs, long, short)
		}
	}
	if n := v.Times.Noise; n.Low < 950 || n.High > 1050 {
		t.Errorf("noise from %d to %d thousandths, want that of the first calls, which take most of the time", n.Low, n.High)
	}
}

// Calls that take as long wherever they stand have one time.
func TestCallsAlikeHaveOneTime(t *testing.T) {
	x := &interned{times: &eventTimes{mostEarly: 100}}
	v := &signature.Values{Events: []*signature.Call{{}, {}}}
	for k := range int32(40) {
		e := schema.NullEvent
		e.Rank, e.ComputeNs = 0, 1000+int64(k)
		x.times.add(&e, kindOf(k%2, k%4 < 2), k)
		x.addCallTime(kindOf(k%2, k%4 < 2), e.ComputeNs)
	}
	v.Times = x.times.summary()
	x.times.joinAlike(x.callTimes)
	setCallTimes(v, x.callTimes)
	for i, c := range v.Events {
		if c.ComputeNs == nil || *c.ComputeNs < 1000 || *c.ComputeNs > 1040 {
			t.Errorf("call %d has not the mean of all its times", i)
		}
		if c.FirstNs != nil {
			t.Errorf("call %d: %d ns before the first ones", i, *c.FirstNs)
		}
	}
	if n := v.Times.Noise; n.Count != 40 {
		t.Errorf("noise of %d calls, want 40", n.Count)
	}
}
