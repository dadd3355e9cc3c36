package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/commq/commq/internal/stats"
	"github.com/commq/commq/predict/regress"
)

// Spread is how a number differs between the ranks that make a call: the least, the three quartiles and the most.
type Spread struct {
	// Least is the number of the rank that has least.
	Least int64 `json:"least"`
	// Quarter is a number that a quarter of the ranks do not exceed.
	Quarter int64 `json:"quarter"`
	// Median is a number that half of the ranks do not exceed.
	Median int64 `json:"median"`
	// ThreeQuarters is a number that three quarters of the ranks do not exceed.
	ThreeQuarters int64 `json:"three_quarters"`
	// Most is the number of the rank that has most.
	Most int64 `json:"most"`
}

// SpreadTrend continues the spreads of several runs.
type SpreadTrend struct {
	// Least continues Spread.Least.
	Least Total `json:"least"`
	// Quarter continues Spread.Quarter.
	Quarter Total `json:"quarter"`
	// Median continues Spread.Median.
	Median Total `json:"median"`
	// ThreeQuarters continues Spread.ThreeQuarters.
	ThreeQuarters Total `json:"three_quarters"`
	// Most continues Spread.Most.
	Most Total `json:"most"`
}

// spreadOf returns the spread of the numbers of ranks, which it sorts; all 0 if there are none.
func spreadOf(ofRanks []int64) Spread {
	if len(ofRanks) == 0 {
		return Spread{}
	}
	slices.Sort(ofRanks)
	part := func(k int) int64 { return ofRanks[max(0, (k*len(ofRanks)+3)/4-1)] }
	return Spread{part(0), part(1), part(2), part(3), part(4)}
}

// continueSpreads predicts the spread of a number from those of runs, given the totals of the number and of its callers.
// A number of the spread that follows an exact law is taken from that. Of the others the share of the callers' mean goes
// on: the distribution that was seen of who has more and who less.
func continueSpreads(seen []Seen, of func(*Seen) (Spread, int64), total, callers Total, ranks int32) (t SpreadTrend) {
	last := int64(0)
	for _, x := range []struct {
		to   *Total
		from func(*Spread) int64
	}{
		{&t.Least, func(s *Spread) int64 { return s.Least }},
		{&t.Quarter, func(s *Spread) int64 { return s.Quarter }},
		{&t.Median, func(s *Spread) int64 { return s.Median }},
		{&t.ThreeQuarters, func(s *Spread) int64 { return s.ThreeQuarters }},
		{&t.Most, func(s *Spread) int64 { return s.Most }},
	} {
		var values []regress.Point
		var shares []float64
		for i := range seen {
			if seen[i].Callers == 0 {
				continue
			}
			spread, sum := of(&seen[i])
			v := float64(x.from(&spread))
			values = append(values, regress.Point{Ranks: int64(seen[i].Ranks), Value: v})
			shares = append(shares, v/max(float64(sum)/float64(seen[i].Callers), 1))
		}
		if *x.to = newTotal(values, ranks); !x.to.InAllRuns {
			*x.to = shareOfMean(shares, total, callers)
		}
		x.to.Value = max(x.to.Value, last)
		if x.to.High != nil {
			x.to.High = new(max(*x.to.High, x.to.Value))
		}
		last = x.to.Value
	}
	return t
}

// shareOfMean makes a number of a spread from its shares of the mean in the runs, by their numbers of ranks: their median,
// in an interval that reaches half of their range beyond them. Nothing bounds shares that only grow or only shrink.
func shareOfMean(shares []float64, total, callers Total) (t Total) {
	if len(shares) == 0 || callers.Value < 1 {
		return Total{}
	}
	low, high := slices.Min(shares), slices.Max(shares)
	t.Value = limited(stats.Median(shares) * float64(total.Value) / float64(callers.Value))
	grows := slices.IsSorted(shares)
	shrinks := slices.IsSortedFunc(shares, func(a, b float64) int { return cmp.Compare(b, a) })
	if low != high && (grows || shrinks) || total.High == nil || callers.High == nil {
		return t
	}
	more := (high - low) / 2
	t.Low = limited(math.Floor((low - more) * float64(total.Low) / float64(max(*callers.High, 1))))
	t.High = new(limited(math.Ceil((high + more) * float64(*total.High) / float64(max(callers.Low, 1)))))
	return t
}
