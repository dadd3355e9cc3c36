package signature

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Times drawn from the quartiles of a distribution have its mean and its median.
func TestNoiseFactor(t *testing.T) {
	for _, n := range []Spread{{Count: 100, Sum: 100000, Low: 900, Median: 950, High: 1020},
		{Count: 100, Sum: 100000, Low: 700, Median: 1000, High: 1300},
		{Count: 9, Sum: 9000, Low: 500, Median: 800, High: 1100}} {
		const steps = 1 << 20
		sum := 0.0
		for i := range steps {
			sum += n.factorAt((float64(i) + 0.5) / steps)
		}
		if mean := sum / steps; math.Abs(mean-1) > 0.01 {
			t.Errorf("%+v: mean %.4f, want 1", n, mean)
		}
		if m := n.factorAt(0.5); n.High < 2*n.Median-n.Low+100 && math.Abs(m-float64(n.Median)/1000) > 0.05 {
			t.Errorf("%+v: median %.3f", n, m)
		}
	}
}

// Quantiles that share 70 % are uniform, and their normal numbers have the correlation 0.7.
func TestCorrelatedQuantiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	normal := func(u float64) float64 { return math.Sqrt2 * math.Erfinv(2*u-1) }
	const draws = 1 << 17
	var product, mean, below float64
	for range draws {
		shared := random.Float64()
		a, b := correlated(shared, random.Float64(), 0.7), correlated(shared, random.Float64(), 0.7)
		product += normal(a) * normal(b) / draws
		mean += a / draws
		if a < 0.1 {
			below += 1.0 / draws
		}
	}
	if math.Abs(product-0.7) > 0.02 || math.Abs(mean-0.5) > 0.01 || math.Abs(below-0.1) > 0.01 {
		t.Errorf("correlation %.3f, mean %.3f, %.3f below 0.1; want 0.7, 0.5 and 0.1", product, mean, below)
	}
}

// A rank that computes twice as long as others does so in its rows, and all ranks are late in the same calls.
func TestDrawnTimesFollowRanksAndSharedNoise(t *testing.T) {
	noise := &Spread{Count: 1000, Sum: 1000000, Low: 900, Median: 950, High: 1020}
	v := &Values{Times: &Times{Compute: Spread{Count: 1000, Sum: 1000000}, Noise: noise, OwnNoise: noise,
		ByRank: []int64{667, 1333}, Shared: 1000}}
	for k := range int32(100) {
		slow, fast := drawComputeNs(v, 1, int64(k), 5, k, &Call{}, false), drawComputeNs(v, 0, int64(k), 5, k, &Call{}, false)
		if ratio := float64(slow) / float64(fast); math.Abs(ratio-2) > 0.01 {
			t.Fatalf("call %d: %d and %d ns", k, slow, fast)
		}
	}
	v.Times.Shared = 0
	a, b := drawComputeNs(v, 0, 7, 5, 7, &Call{}, false), drawComputeNs(v, 1, 7, 5, 7, &Call{}, false)
	if math.Abs(float64(b)/float64(a)-2) < 0.001 {
		t.Error("ranks that share no noise have the same")
	}
	v.Times.OwnNoise = nil // one time for each rank: what ranks differ by is all there is
	if a := drawComputeNs(v, 0, 7, 5, 7, &Call{}, false); a != 667 {
		t.Errorf("%d ns, want 667", a)
	}
}

// Ratios that no capture has are refused, and none becomes a time that is not one.
func TestRatiosOfTimesAreChecked(t *testing.T) {
	for _, c := range []struct {
		times *Times
		ok    bool
	}{
		{nil, true}, {&Times{}, true}, {&Times{ByRank: []int64{900, 1100}, Shared: 1000}, true},
		{&Times{ByRank: []int64{900}}, false}, {&Times{ByRank: []int64{900, -1}}, false},
		{&Times{ByRank: []int64{900, math.MaxInt64}}, false}, {&Times{Shared: 1001}, false}, {&Times{Shared: -1}, false},
	} {
		if err := c.times.check(2); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.times, err)
		}
	}
	v := &Values{Times: &Times{Compute: Spread{Count: 1, Sum: 1 << 62}, ByRank: []int64{mostRatio}}}
	if ns := drawComputeNs(v, 0, 0, 0, 0, &Call{}, false); ns <= 0 {
		t.Errorf("%d ns", ns)
	}
}
