package signature

import "math"

// Times are distributions over all ranks and calls of an event.
type Times struct {
	// Compute is the time before the call, in ns.
	Compute Spread `json:"compute_ns"`
	// Instructions and Cycles are counted in that time; nil if they were not counted.
	Instructions *Spread `json:"instructions,omitempty"`
	Cycles       *Spread `json:"cycles,omitempty"`
	// Noise is the ratio of a time to the mean time of equal calls, in thousandths; nil if unknown.
	Noise *Spread `json:"noise_permille,omitempty"`
	// OwnNoise is the ratio of a time to the mean time of equal calls of the same rank; nil unless ByRank is known.
	OwnNoise *Spread `json:"own_noise_permille,omitempty"`
	// ByRank has, for each rank, its mean compute time as a ratio to what calls equal to its own have on all ranks, in
	// thousandths; 0 for a rank without a time. It is nil if no ratio differs much from 1000.
	ByRank []int64 `json:"by_rank_permille,omitempty"`
	// Shared is how far calls of different ranks have the same noise: the correlation of the noise of two ranks in
	// their k-th calls of the event, over all k, in thousandths. 1000 is a program all of whose ranks are late in the
	// same iterations.
	Shared int64 `json:"shared_noise_permille,omitempty"`
}

// RankFactor returns the compute time of a rank relative to that of equal calls on all ranks; 1 if unknown.
func (t *Times) RankFactor(rank int32) float64 {
	if t == nil || int(rank) >= len(t.ByRank) || t.ByRank[rank] <= 0 {
		return 1
	}
	return float64(t.ByRank[rank]) / 1000
}

// Spread is a distribution. Its quartiles are within 2 % of the exact ones.
type Spread struct {
	// Count is how many values there are.
	Count int64 `json:"count"`
	// Sum is their sum.
	Sum int64 `json:"sum"`
	// Low is the first quartile.
	Low int64 `json:"q1"`
	// Median is the median.
	Median int64 `json:"median"`
	// High is the third quartile.
	High int64 `json:"q3"`
}

// MeanNs returns the mean compute time before a call of an event; NaN if unknown. first tells that the rank's call
// before was of another event.
func (v *Values) MeanNs(c *Call, first bool) float64 {
	switch {
	case first && c.FirstNs != nil:
		return float64(*c.FirstNs)
	case c.ComputeNs != nil:
		return float64(*c.ComputeNs)
	case v.Times == nil || v.Times.Compute.Count == 0:
		return math.NaN()
	}
	return float64(v.Times.Compute.Sum) / float64(v.Times.Compute.Count)
}

// AroundRanks returns the noise of a rank's times around its own mean; nil if it is unknown, or if each rank has one
// time.
func (t *Times) AroundRanks() *Spread {
	if t != nil && len(t.ByRank) > 0 {
		return t.OwnNoise
	}
	if t != nil {
		return t.Noise
	}
	return nil
}

// factorAt returns a time relative to its mean, at quantile u (0 to 1) of a distribution of noise; 1 if it is unknown.
// It is linear between the quartiles. Below the first quartile it continues with the slope from there to the median;
// above the third it is exponential, such that the mean is right.
func (n *Spread) factorAt(u float64) float64 {
	if n == nil || n.Count < 4 || n.Sum == 0 {
		return 1
	}
	mean := float64(n.Sum) / float64(n.Count)
	low, mid, high := float64(n.Low)/mean, float64(n.Median)/mean, float64(n.High)/mean
	lowest := max(0, 2*low-mid)
	// The mean of the four quarters is 1.
	tail := 4 - (lowest+low)/2 - (low+mid)/2 - (mid+high)/2 - high
	scale := 1.0
	if tail < 0 {
		scale, tail = 4/(4-tail), 0
	}
	var f float64
	switch q := 4 * u; {
	case q < 1:
		f = lowest + q*(low-lowest)
	case q < 2:
		f = low + (q-1)*(mid-low)
	case q < 3:
		f = mid + (q-2)*(high-mid)
	default:
		f = high - tail*math.Log(max(4-q, 1e-9))
	}
	return scale * f
}

// drawComputeNs returns the compute time before the k-th call (from 0) of an event that a rank makes, which has these
// values, in ns; 0 if unknown. It is drawn from the event's distribution, with noise of which a part is the same for
// the k-th calls of all ranks, and is the same every time. first reports that the rank's call before was of another
// event.
func drawComputeNs(v *Values, rank int32, seq int64, event, k int32, c *Call, first bool) int64 {
	mean := v.MeanNs(c, first)
	if math.IsNaN(mean) {
		return 0
	}
	u := hashToUnit(uint64(rank)<<32|uint64(uint32(event)), uint64(seq))
	if t := v.Times; t != nil && t.Shared > 0 {
		shared := min(float64(t.Shared)/1000, 1)
		u = correlated(hashToUnit(uint64(uint32(event)), uint64(uint32(k))|1<<32), u, shared)
	}
	const most = 1 << 60 // ns, 36 years
	return int64(min(math.Round(mean*v.Times.RankFactor(rank)*v.Times.AroundRanks().factorAt(u)), most))
}

// correlated returns a quantile of which a part is that of others: two quantiles with the same shared one and different
// own ones are those of normal numbers with this correlation (a Gaussian copula).
func correlated(shared, own, correlation float64) float64 {
	normal := func(u float64) float64 { return math.Sqrt2 * math.Erfinv(2*min(max(u, 1e-12), 1-1e-12)-1) }
	z := math.Sqrt(correlation)*normal(shared) + math.Sqrt(1-correlation)*normal(own)
	return math.Erfc(-z/math.Sqrt2) / 2
}

// hashToUnit hashes two numbers to one from 0 to 1 (splitmix64).
func hashToUnit(a, b uint64) float64 {
	z := a*0x9e3779b97f4a7c15 + b*0xd1b54a32d192ed03 + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return float64(z>>11) / (1 << 53)
}
