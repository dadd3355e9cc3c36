package diagnose

import (
	"math"
	"slices"
)

// Callsites are the call sites of the finding's place, in ascending order: one for each path that leads there. Where the
// place is not known there are none.
func (f *Finding) Callsites() []int32 { return f.sites }

// InTurn is what a rank computes on average before a call of the place that varies most, in ns: by rank, and in parts of
// equally many calls of the run. Ranks that never call there have NaN. It is nil unless the rule is Variation.
func (f *Finding) InTurn() [][]float64 { return f.inTurn }

// attach adds to a finding what pictures of it need.
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

// inTurn is the mean time of computing before calls of some sites, by rank and in parts of equally many calls.
func (c *computing) inTurn(sites []int32, ranks int) [][]float64 {
	parts := 1
	for at, s := range c.slices {
		if slices.Contains(sites, at.site) {
			parts = max(parts, len(s.ns))
		}
	}
	all := make([][]float64, ranks)
	for rank := range all {
		ns, calls := make([]float64, parts), make([]float64, parts)
		for _, site := range sites {
			if s := c.slices[rankSite{int32(rank), site}]; s != nil {
				s.resample(ns, calls)
			}
		}
		for i := range ns {
			if ns[i] /= calls[i]; calls[i] == 0 {
				ns[i] = math.NaN()
			}
		}
		all[rank] = ns
	}
	return all
}

// resample adds the times and calls of the slices to equal parts of all calls.
func (s *series) resample(ns, calls []float64) {
	scale := float64(len(ns)) / float64(s.rows)
	for i, sum := range s.ns {
		from, to := int64(i)*s.width, min(int64(i+1)*s.width, s.rows)
		low, high := float64(from)*scale, float64(to)*scale
		for k := int(low); k < len(ns) && float64(k) < high; k++ {
			part := (min(high, float64(k+1)) - max(low, float64(k))) / (high - low)
			ns[k] += part * float64(sum)
			calls[k] += part * float64(to-from)
		}
	}
}
