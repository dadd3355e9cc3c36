package compute

import (
	"math"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/slots"
)

// Time sums up the compute times of a predicted run.
type Time struct {
	// RankNs is the total compute time of a rank in ns, the mean over ranks. LowNs and HighNs bound it with 95 %
	// confidence.
	RankNs float64  `json:"rank_ns"`
	LowNs  float64  `json:"low_ns"`
	HighNs *float64 `json:"high_ns"`
	// Calls is the number of calls with a compute time before them, Unknown the number of calls without, because no run
	// has one.
	Calls   int64 `json:"calls"`
	Unknown int64 `json:"calls_unknown"`
	// Once is the fraction of RankNs before calls that only one run made, so that nothing tells how their times change.
	Once float64 `json:"once_share"`
}

// Predictor predicts the compute times of a run at one number of ranks.
type Predictor struct {
	laws    *Laws
	ranks   int32
	factors map[*siteLaws][]float64 // of roles, by rank
	origins map[predictedTime]origin
}

// predictedTime is a time before calls of an event, origin the law that it is from and its fraction of the law's value.
type (
	predictedTime struct {
		event int32
		ns    int64
	}
	origin struct {
		law      *timeLaw
		fraction float64
	}
)

// NewPredictor returns a predictor for a number of ranks.
func (c *Laws) NewPredictor(ranks int32) *Predictor {
	return &Predictor{laws: c, ranks: ranks, factors: map[*siteLaws][]float64{},
		origins: map[predictedTime]origin{}}
}

// Before returns the compute time of a rank before a call of an event at a place, in ns; nil if no run has times there.
func (p *Predictor) Before(event int32, at slots.Place, rank int32) *int64 {
	s := p.laws.sites[event]
	if s == nil || p.laws.Refused != "" {
		return nil
	}
	law, fraction := s.slotLaw(at)
	if len(s.roles) > 0 {
		if p.factors[s] == nil {
			p.factors[s] = s.factors(p.ranks)
		}
		fraction *= p.factors[s][rank]
	}
	if p.spreads() {
		fraction *= p.laws.spread[int(rankHash(rank)%uint64(len(p.laws.spread)))]
	}
	ns := int64(math.Round(law.evaluate(p.ranks).value * fraction))
	p.origins[predictedTime{event, ns}] = origin{law, fraction}
	return &ns
}

// spreads tells whether ranks differ by chance.
func (p *Predictor) spreads() bool { return len(p.laws.spread) > 0 && p.ranks <= maxSpreadRanks }

// Finish sets the distributions of compute times in the signature of the predicted run, whose calls have times from
// Before, and returns the total. It returns nil if compute times cannot be predicted.
//
// The errors of the laws are independent of each other. The law of all that a rank computes gives a second interval;
// the result covers both.
func (p *Predictor) Finish(sig *signature.Signature) *Time {
	if p.laws.Refused != "" {
		return nil
	}
	t := &Time{}
	weight := map[*timeLaw]float64{} // calls, times their fraction of the law's value
	var laws []*timeLaw              // in the order of the events, so that sums are reproducible
	occurrences := sig.Occurrences(sig.Roots)
	for _, n := range sig.Nodes() {
		if n.Loop {
			continue
		}
		sum := signature.Spread{}
		for i, calls := range occurrences[n.ID] {
			ns := sig.Values[n.ID].Events[i].ComputeNs
			if ns == nil {
				t.Unknown += calls
				continue
			}
			o := p.origins[predictedTime{n.ID, *ns}]
			if _, known := weight[o.law]; !known {
				laws = append(laws, o.law)
			}
			weight[o.law] += o.fraction * float64(calls)
			sum.Count += calls
			sum.Sum += calls * *ns
		}
		if sum.Count > 0 {
			t.Calls += sum.Count
			sig.Values[n.ID].Times = p.laws.sites[n.ID].distribute(sum, p.spreads())
		}
	}
	p.addUp(t, laws, weight)
	return t
}

// addUp adds up the laws' values, each with its weight.
func (p *Predictor) addUp(t *Time, laws []*timeLaw, weight map[*timeLaw]float64) {
	var low, high, once float64
	for _, l := range laws {
		x, calls := l.evaluate(p.ranks), weight[l]
		t.RankNs += x.value * calls
		if l.curve() == nil { // a single point gives no interval; Once tells of it
			once += x.value * calls
			continue
		}
		low += math.Pow((x.value-x.low)*calls, 2)
		high += math.Pow((x.high-x.value)*calls, 2)
	}
	highNs := t.RankNs + math.Sqrt(high)
	t.LowNs = t.RankNs - math.Sqrt(low)
	if t.RankNs > 0 {
		t.Once = once / t.RankNs
	}
	for _, ns := range []*float64{&t.RankNs, &t.LowNs, &highNs} {
		*ns /= float64(p.ranks)
	}
	if total := p.laws.total; total.curve() != nil {
		x := total.evaluate(p.ranks)
		t.LowNs, highNs = min(t.LowNs, x.low), max(highNs, x.high)
	}
	if !math.IsInf(highNs, 0) {
		t.HighNs = &highNs
	}
	t.LowNs = max(t.LowNs, 0)
}

// distribute returns times with a given sum that are as noisy as the site's. What ranks differ by, because they spread
// or have roles, is no noise.
func (s *siteLaws) distribute(sum signature.Spread, spread bool) *signature.Times {
	mean := float64(sum.Sum) / float64(sum.Count)
	sum.Low, sum.Median, sum.High = int64(mean), int64(mean), int64(mean)
	noise, shared := s.noise, s.shared
	switch {
	case spread || len(s.roles) > 0:
		noise = s.own
	case noise != nil && s.own != nil: // what ranks differ by is not shared
		if own, all := float64(s.own.High-s.own.Low), float64(noise.High-noise.Low); own < all {
			shared = int64(math.Round(float64(shared) * math.Pow(own/all, 2)))
		}
	}
	if noise != nil {
		scale := func(permille int64) int64 { return int64(math.Round(mean * float64(permille) / 1000)) }
		sum.Low, sum.Median, sum.High = scale(noise.Low), scale(noise.Median), scale(noise.High)
	}
	return &signature.Times{Compute: sum, Noise: noise, Shared: shared}
}
