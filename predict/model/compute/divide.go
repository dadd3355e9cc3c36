package compute

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/commq/commq/predict/slots"
)

// A division needs runs to be compared in, and must predict the runs that are left out better than simpler ones, whose
// mean squared error it has to get below this fraction of. Differences below leastDifference (of the logarithm) do not
// count: they may be noise.
const (
	minRunsToDivide = 2
	mustImprove     = 0.7
	leastDifference = 0.01
)

// relative is the computing time of a rank at a site, relative to the mean of all ranks that make the same calls.
type relative struct {
	ranks, rank int32
	run         int
	log         float64 // its logarithm
}

// divide chooses the division of the site's ranks that predicts best how long the ranks of runs compute that are left
// out, relative to each other, and sets the roles' factors.
func (f *fitter) divide(site *slots.Site, s *siteLaws) {
	all := f.relatives(site)
	var runs []int
	for _, x := range all {
		if !slices.Contains(runs, x.run) {
			runs = append(runs, x.run)
		}
	}
	best, least := divisions[0], math.Inf(1)
	for _, d := range divisions {
		off := 0.0
		if len(runs) < minRunsToDivide && d.name != "all" && d.name != "ends" {
			continue
		}
		for _, run := range runs {
			var left, others []relative
			for _, x := range all {
				if x.run == run {
					left = append(left, x)
				}
				if x.run != run || len(runs) == 1 {
					others = append(others, x)
				}
			}
			off += errorOf(s, fitRoles(s, d, others), left)
		}
		off = off/float64(max(len(all), 1)) + leastDifference*leastDifference
		if off < mustImprove*least {
			best, least = d, off
		}
	}
	if best.name != "all" {
		s.roles = fitRoles(s, best, all)
	}
}

// relatives collects the times of all ranks and runs at a site.
func (f *fitter) relatives(site *slots.Site) (all []relative) {
	for run, s := range f.training.Runs {
		took, mean := make([]float64, s.Ranks), make([]float64, s.Ranks)
		for _, slot := range site.Slots {
			times := f.slots[slot][run]
			m, known := meanOver(times, nil)
			if !known {
				continue
			}
			for r, t := range times {
				if !math.IsNaN(t) {
					took[r] += t
					mean[r] += m
				}
			}
		}
		for r := range s.Ranks {
			if took[r] > 0 && mean[r] > 0 {
				all = append(all, relative{s.Ranks, r, run, math.Log(took[r] / mean[r])})
			}
		}
	}
	return all
}

// fitRoles finds the factors of a division's roles, relative to the role that most ranks of the largest run have. A
// factor is a power of the number of ranks if that fits the runs much better than a constant.
func fitRoles(s *siteLaws, d division, all []relative) map[string]float64 {
	type group struct{ logs map[int]*[2]float64 } // by run: sum and number
	ranksOf, groups := map[int]int32{}, map[string]*group{}
	largest := 0
	for _, x := range all {
		role := d.name + ":" + d.of(s.grid, x.ranks, x.rank)
		if groups[role] == nil {
			groups[role] = &group{map[int]*[2]float64{}}
		}
		if groups[role].logs[x.run] == nil {
			groups[role].logs[x.run] = &[2]float64{}
		}
		groups[role].logs[x.run][0] += x.log
		groups[role].logs[x.run][1]++
		ranksOf[x.run], largest = x.ranks, max(largest, x.run)
	}
	reference, most := "", -1.0
	for role, g := range groups {
		n := 0.0
		if x := g.logs[largest]; x != nil {
			n = x[1]
		}
		if n > most || n == most && cmp.Less(role, reference) {
			reference, most = role, n
		}
	}
	roles := map[string]float64{}
	for role, g := range groups {
		var x, y []float64
		for _, run := range slices.Sorted(maps.Keys(g.logs)) {
			sum := g.logs[run]
			if base := groups[reference].logs[run]; base != nil {
				x = append(x, math.Log(float64(ranksOf[run])))
				y = append(y, sum[0]/sum[1]-base[0]/base[1])
			}
		}
		if len(x) == 0 {
			continue
		}
		a, b := powerOf(x, y)
		roles[role] = math.Exp(a)
		if b != 0 {
			roles[role+exponent] = b
		}
	}
	return roles
}

// minRunsOfPower is the number of runs that a power of the number of ranks needs.
const minRunsOfPower = 3

// powerOf fits y = a + b x; b is 0 unless that leaves less than a quarter of the squared errors of a constant.
func powerOf(x, y []float64) (a, b float64) {
	n, mx, my := float64(len(x)), 0.0, 0.0
	for i := range x {
		mx, my = mx+x[i]/n, my+y[i]/n
	}
	var sxx, sxy, syy float64
	for i := range x {
		sxx += (x[i] - mx) * (x[i] - mx)
		sxy += (x[i] - mx) * (y[i] - my)
		syy += (y[i] - my) * (y[i] - my)
	}
	if len(x) < minRunsOfPower || sxx == 0 || syy <= n*leastDifference*leastDifference || (syy-sxy*sxy/sxx) > syy/4 {
		return my, 0
	}
	b = sxy / sxx
	return my - b*mx, b
}

// errorOf returns the sum of the squared errors of a division in one run, whose mean is free.
func errorOf(s *siteLaws, roles map[string]float64, all []relative) (sum float64) {
	with := &siteLaws{roles: roles, grid: s.grid}
	took, weight, factors := 0.0, 0.0, make([]float64, len(all))
	for i, x := range all {
		factors[i] = max(with.roleFactor(x.ranks, x.rank), 1e-9)
		took += math.Exp(x.log)
		weight += factors[i]
	}
	scale := math.Log(took / max(weight, 1e-9))
	for i, x := range all {
		e := x.log - scale - math.Log(factors[i])
		sum += e * e
	}
	return sum
}
