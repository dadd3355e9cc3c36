package law

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/commq/commq/predict/pattern"
)

// Sum is a constant plus multiples of features.
type Sum struct {
	Constant int64
	Terms    []Term
	cost     float64 // bits to name it
}

// Term is a multiple of a feature.
type Term struct {
	Times   int64
	Feature Feature
}

// Limits of sums; costs are in bits.
const (
	sumMargin  = 3  // how much more complex than the simplest sum the others may be
	sumSurplus = 2  // how much more information the samples must have than the sum takes
	maxFactor  = 64 // largest multiple of a feature
)

// String writes the sum as a formula.
func (s *Sum) String() string {
	var b strings.Builder
	if s.Constant != 0 || len(s.Terms) == 0 {
		fmt.Fprint(&b, s.Constant)
	}
	for _, t := range s.Terms {
		switch {
		case t.Times == 1 && b.Len() == 0:
		case t.Times == 1:
			b.WriteByte('+')
		case t.Times == -1:
			b.WriteByte('-')
		default:
			if t.Times > 0 && b.Len() > 0 {
				b.WriteByte('+')
			}
			fmt.Fprintf(&b, "%d ", t.Times)
		}
		b.WriteString(t.Feature.String())
	}
	return b.String()
}

func (s *Sum) evaluate(p *Point) (int64, bool) {
	v := s.Constant
	for _, t := range s.Terms {
		x, ok := t.Feature.evaluate(p)
		if !ok {
			return 0, false
		}
		v += t.Times * x
	}
	return v, true
}

// findSums returns the sums of at most two features that fit all samples and are simpler than the samples, the simplest
// first.
func findSums(samples []Sample, grid *pattern.Grid) (found []Sum) {
	if found = findSumsOf(samples, features(&samples[0].Point, grid)); len(found) == 0 {
		found = findSumsOf(samples, wrappedFeatures(&samples[0].Point, grid))
	}
	return found
}

func findSumsOf(samples []Sample, candidates []Feature) (found []Sum) {
	columns, varying := varyingFeatures(samples, candidates)
	available := information(samples)
	add := func(s Sum) {
		if s.cost = sumCost(&s); s.cost+sumSurplus <= available+numberCost(s.Constant) {
			found = append(found, s)
		}
	}
	for i := range varying {
		if c, ok := solveLine(samples, columns[i]); ok {
			add(Sum{Constant: c[0], Terms: []Term{{c[1], varying[i]}}})
		}
	}
	if len(found) == 0 {
		for i := range varying {
			for j := range i {
				if c, ok := solvePlane(samples, columns[j], columns[i]); ok {
					add(Sum{Constant: c[0], Terms: []Term{{c[1], varying[j]}, {c[2], varying[i]}}})
				}
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Sum) int { return cmp.Compare(a.cost, b.cost) })
	for i := range found {
		if found[i].cost > found[0].cost+sumMargin {
			return found[:i]
		}
	}
	return found
}

// leastCount is the least number of iterations that may be an extent or its logarithm.
const leastCount = 2

// WithExtents returns the law of a number of iterations with rivals: if it is equal in all samples to the extent of an
// axis of a grid that the runs do not rule out, the loop may be over that. Two loops that are one in the runs may be over
// two extents or their logarithms, or the inner one up to the index of the other. A constant may be the number of ranks
// or its logarithm, if these did not vary either.
func WithExtents(l *Law, samples []Sample, possible []pattern.Grid) *Law {
	sums := slices.Clone(l.Sums)
	ends := []Feature{{Kind: FeatureRanks}, {Kind: FeatureRanksLog}}
	var candidates []Feature
	switch {
	case l.Constant != nil && *l.Constant >= leastCount:
		sums = []Sum{{Constant: *l.Constant}}
		candidates = ends
		if n, ok := ceilLog2(samples[0].Point.Ranks); ok && n > 1 && *l.Constant%n == 0 {
			log := Feature{Kind: FeatureRanksLog}
			sums = append(sums, timesAlways(*l.Constant/n, log, samples)...)
		}
	case l.Constant != nil || l.IsEmpty():
		return l
	case l.Group != nil && !varyInRun(samples): // a number for each run fits many laws
		g := *l.Group
		g.exact = false
		l = &Law{Group: &g}
	}
	candidates = append(candidates, products(ends)...)
	for i := range possible {
		axes := slices.Clone(ends)
		for a := range possible[i].Axes {
			if possible[i].IsFixed(a) {
				continue
			}
			extent := Feature{Kind: FeatureExtent, N: a, Grid: &possible[i]}
			candidates = append(candidates, extent)
			axes = append(axes, extent, Feature{Kind: FeatureExtentLog, N: a, Grid: &possible[i]})
		}
		if l.Constant == nil {
			candidates = append(candidates, products(axes)...)
		}
	}
	had := len(l.Sums)
	if l.Constant != nil {
		had = 1
	}
	for _, f := range candidates {
		if f.isAlways(samples) {
			sums = append(sums, Sum{Terms: []Term{{1, f}}})
		}
	}
	if len(sums) == had {
		return l
	}
	return &Law{Sums: sums}
}

// timesAlways returns a multiple of a feature, if it is the value of all samples.
func timesAlways(n int64, f Feature, samples []Sample) []Sum {
	s := Sum{Terms: []Term{{n, f}}}
	for i := range samples {
		if v, ok := s.evaluate(&samples[i].Point); !ok || v != samples[i].Value {
			return nil
		}
	}
	return []Sum{s}
}

// varyInRun reports whether some run has samples with different values.
func varyInRun(samples []Sample) bool {
	values := map[int32]int64{}
	for _, s := range samples {
		if v, seen := values[s.Point.Ranks]; seen && v != s.Value {
			return true
		}
		values[s.Point.Ranks] = s.Value
	}
	return false
}

// products returns the products of pairs of features, and the sums of 1 to each.
func products(of []Feature) (all []Feature) {
	for i, f := range of {
		upto := f
		upto.Upto = true
		all = append(all, upto)
		for k := range i + 1 {
			g := f
			g.With = &of[k]
			all = append(all, g)
		}
	}
	return all
}

// isAlways reports whether the feature is the value of all samples.
func (f Feature) isAlways(samples []Sample) bool {
	return !slices.ContainsFunc(samples, func(s Sample) bool {
		x, has := f.evaluate(&s.Point)
		return !has || x != s.Value
	})
}

// varyingFeatures returns the features that all samples have and that are not constant, with their values.
func varyingFeatures(samples []Sample, candidates []Feature) (columns [][]int64, varying []Feature) {
	for _, f := range candidates {
		column := make([]int64, len(samples))
		ok, varies := true, false
		for i := range samples {
			x, has := f.evaluate(&samples[i].Point)
			column[i], ok = x, ok && has
			varies = varies || x != column[0]
		}
		if ok && varies {
			columns, varying = append(columns, column), append(varying, f)
		}
	}
	return columns, varying
}

// information returns an estimate of the information in the values of samples, in bits.
func information(samples []Sample) float64 {
	values := map[int64]bool{}
	largest := int64(1)
	for _, s := range samples {
		values[s.Value] = true
		largest = max(largest, s.Value, -s.Value)
	}
	return float64(len(values)) * math.Log2(float64(largest)+2)
}

// sumCost returns how many bits it takes to name a sum.
func sumCost(s *Sum) float64 {
	cost := numberCost(s.Constant)
	for _, t := range s.Terms {
		cost += t.Feature.cost() + numberCost(t.Times-1)
		if t.Times < 0 {
			cost += 1 - numberCost(t.Times-1) + numberCost(-t.Times-1)
		}
	}
	return cost
}

// numberCost returns how many bits it takes to name a number.
func numberCost(n int64) float64 {
	if n == 0 {
		return 0
	}
	return 1 + 2*math.Log2(float64(max(n, -n)))
}

// solveLine finds integers with value = c0 + c1 x for all samples.
func solveLine(samples []Sample, x []int64) (c [2]int64, ok bool) {
	k := slices.IndexFunc(x, func(y int64) bool { return y != x[0] })
	dv, dx := samples[k].Value-samples[0].Value, x[k]-x[0]
	if dv == 0 || dv%dx != 0 || tooLarge(dv/dx) {
		return c, false
	}
	c[1] = dv / dx
	c[0] = samples[0].Value - c[1]*x[0]
	for i, s := range samples {
		if s.Value != c[0]+c[1]*x[i] {
			return c, false
		}
	}
	return c, true
}

func tooLarge(factor int64) bool { return factor > maxFactor || factor < -maxFactor }

// solvePlane finds integers with value = c0 + c1 x + c2 y for all samples.
func solvePlane(samples []Sample, x, y []int64) (c [3]int64, ok bool) {
	v0 := samples[0].Value
	first := -1
	for n := 1; n < len(samples); n++ {
		dx, dy, dv := x[n]-x[0], y[n]-y[0], samples[n].Value-v0
		if dx == 0 && dy == 0 {
			if dv != 0 {
				return c, false
			}
			continue
		}
		if first < 0 {
			first = n
			continue
		}
		ex, ey, ev := x[first]-x[0], y[first]-y[0], samples[first].Value-v0
		d := dx*ey - dy*ex
		if d == 0 {
			continue
		}
		n1, n2 := dv*ey-dy*ev, dx*ev-dv*ex
		if n1%d != 0 || n2%d != 0 {
			return c, false
		}
		c[1], c[2] = n1/d, n2/d
		if c[1] == 0 || c[2] == 0 || tooLarge(c[1]) || tooLarge(c[2]) {
			return c, false
		}
		c[0] = v0 - c[1]*x[0] - c[2]*y[0]
		distinct := map[[2]int64]bool{}
		for i, s := range samples {
			if s.Value != c[0]+c[1]*x[i]+c[2]*y[i] {
				return c, false
			}
			distinct[[2]int64{x[i], y[i]}] = true
		}
		return c, len(distinct) > 3
	}
	return c, false
}
