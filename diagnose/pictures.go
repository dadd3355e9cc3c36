package diagnose

import (
	"math"
	"slices"
)

// Callsites returns the call sites of the finding's place in ascending order, one for each call path to it. There are
// none if the place is unknown.
func (f *Finding) Callsites() []int32 { return f.sites }

// InTurn returns the mean computing of each rank before a call of the place that varies most, in ns, by rank and slice
// of the run; NaN where a rank makes no call there. It returns nil unless the rule is Variation.
func (f *Finding) InTurn() [][]float64 { return f.inTurn }

// attach sets the fields of a finding that pictures need.
func (f *Finding) attach(c *computing, place func(int32) string, ranks int) {
	if f.Place == "" {
		return
	}
	sites := map[int32]bool{}
	for at := range c.rows {
		if !sites[at.site] && place(at.site) == f.Place {
			sites[at.site] = true
			f.sites = append(f.sites, at.site)
		}
	}
	slices.Sort(f.sites)
	if f.Rule == Variation {
		f.inTurn = c.inTurn(f.sites, ranks)
	}
}

// inTurn returns the mean computing before calls at some sites, in ns, by rank and slice of the run.
func (c *computing) inTurn(sites []int32, ranks int) [][]float64 {
	divided, parts := c.divided(ranks), 1
	long := map[int32]int{} // number of slices, by the common call site that they are of
	for at, list := range divided {
		long[at.after] = max(long[at.after], len(list))
		if slices.Contains(sites, at.site) {
			parts = max(parts, len(list))
		}
	}
	sums := map[int32]*[mostSlices]amount{}
	for at, list := range divided {
		if !slices.Contains(sites, at.site) {
			continue
		}
		if sums[at.rank] == nil {
			sums[at.rank] = &[mostSlices]amount{}
		}
		to := sums[at.rank]
		for i, x := range list {
			for k := i * parts / long[at.after]; k < max(i*parts/long[at.after]+1, (i+1)*parts/long[at.after]); k++ {
				to[k].ns, to[k].calls = to[k].ns+x.ns, to[k].calls+x.calls
			}
		}
	}
	all := make([][]float64, ranks)
	for rank := range all {
		all[rank] = make([]float64, parts)
		for i := range all[rank] {
			all[rank][i] = math.NaN()
			if sum := sums[int32(rank)]; sum != nil && sum[i].calls > 0 {
				all[rank][i] = float64(sum[i].ns) / float64(sum[i].calls)
			}
		}
	}
	return all
}
