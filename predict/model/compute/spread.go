package compute

import (
	"math"
	"slices"

	"github.com/commq/commq/predict/slots"
)

// Ranks of a predicted run get one of spreadLevels times relative to their role's, so that the longest rank is as much
// longer than the mean as in the runs. Runs of more than maxSpreadRanks ranks do without: so many different times would
// make their signatures large.
const (
	spreadLevels   = 16
	maxSpreadRanks = 1024
	leastSpread    = 0.02
	mostOfTime     = 0.5
)

// spreadOfRanks returns how all that ranks compute in the largest run differs from the mean, in levels. It
// takes the sites whose calls are all alike and whose ranks have no roles; they must have most of the time.
func (f *fitter) spreadOfRanks(sites []*slots.Site, laws map[int32]*siteLaws) []float64 {
	last := len(f.training.Runs) - 1
	ranks := f.training.Runs[last].Ranks
	took, expected, all := make([]float64, ranks), make([]float64, ranks), 0.0
	for _, site := range sites {
		s, sums := laws[site.Event.ID], f.ranks[site.Event.ID][last]
		if s == nil || len(site.Slots) != 1 || len(s.roles) > 0 {
			continue
		}
		ns := reference(sums, s.factors(ranks))
		if math.IsNaN(ns) {
			continue
		}
		for r, x := range sums {
			took[r] += x.ns
			all += x.ns
			expected[r] += float64(x.calls) * ns
		}
	}
	if all < mostOfTime*f.total[last] {
		return nil
	}
	var ratios []float64
	for r := range took {
		if expected[r] > 0 {
			ratios = append(ratios, took[r]/expected[r])
		}
	}
	return levelsOf(ratios)
}

// levelsOf returns the means of equal parts of the ratios, ascending, the mean of all being 1; nil if they hardly
// differ.
func levelsOf(ratios []float64) (levels []float64) {
	slices.Sort(ratios)
	n := min(spreadLevels, len(ratios))
	mean := 0.0
	for k := range n {
		part := ratios[k*len(ratios)/n : (k+1)*len(ratios)/n]
		sum := 0.0
		for _, x := range part {
			sum += x
		}
		levels = append(levels, sum/float64(len(part)))
		mean += levels[k] / float64(n)
	}
	if n < 2 || mean <= 0 || levels[n-1]-levels[0] < leastSpread*mean {
		return nil
	}
	for k := range levels {
		levels[k] = math.Round(1000*levels[k]/mean) / 1000
	}
	return levels
}

// rankHash spreads ranks over the levels (splitmix64).
func rankHash(rank int32) uint64 {
	z := (uint64(uint32(rank)) + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
