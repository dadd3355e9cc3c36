package law

import (
	"slices"

	"github.com/commq/commq/predict/pattern"
)

// leastCount is the least number of iterations that may be an extent or its logarithm.
const leastCount = 2

// WithExtents returns the law of a number of iterations with rivals: if it is equal in all samples to the extent of
// an axis of a grid that the runs do not rule out, the loop may be over that. Two loops that are one in the runs may
// be over two extents or their logarithms, or the inner one up to the index of the other. A constant may be the
// number of ranks or its logarithm, if these did not vary either, or a multiple of an extent that did not vary of one
// of the open grids, which are as good as that of the program. A factor that did not vary may be a constant.
//
// A loop without messages may go on as long as the number of ranks can be halved, whatever their grid.
func WithExtents(l *Law, samples []Sample, possible, open []pattern.Grid, hasMessages bool) *Law {
	sums := slices.Clone(l.Sums)
	var rivals []Sum
	switch {
	case l.Constant != nil && *l.Constant < leastCount || l.IsEmpty():
		return l
	case l.Constant != nil:
		sums = []Sum{{Constant: *l.Constant}}
		rivals = append(constantEnds(*l.Constant, samples, possible), multiples(*l.Constant, samples, open)...)
	default:
		rivals = append(growingEnds(samples, possible), lastOfTwo(samples)...)
		if !hasMessages {
			rivals = append(rivals, alwaysEqual([]Feature{{Kind: FeatureRanksFloor}, {Kind: FeatureRanksLog}}, samples)...)
		}
	}
	rivals = append(rivals, constantFactors(slices.Concat(sums, rivals), samples)...)
	if l.Group != nil && !varyInRun(samples) { // a number for each run fits many laws
		g := *l.Group
		g.exact = false
		l = &Law{Group: &g}
	}
	// What does not fit all samples is a rival only beside a law that does.
	if len(sums) == 0 && !slices.ContainsFunc(rivals, func(s Sum) bool { return s.isAlways(samples) }) {
		rivals = nil
	}
	if len(rivals) == 0 {
		return l
	}
	rivals = append(rivals, roundedOtherwise(rivals, samples)...)
	return &Law{Sums: append(sums, rivals...)}
}

// WithPlaces returns the law of a root with rivals: a constant may be the last rank along an axis of a grid that the
// runs do not rule out, the one after it, or the one in its middle, where it equals that in all samples.
func WithPlaces(l *Law, samples []Sample, possible []pattern.Grid) *Law {
	if l.Constant == nil || *l.Constant < 1 {
		return l
	}
	sums := []Sum{{Constant: *l.Constant}}
	for _, kind := range []FeatureKind{FeatureExtent, FeatureHalfExtent, FeatureHalfUp} {
		for _, f := range extentsOf(possible, kind) {
			for _, c := range []int64{-1, 0} {
				if s := (Sum{Constant: c, Terms: []Term{{1, f}}}); s.isAlways(samples) {
					sums = append(sums, s)
				}
			}
		}
	}
	if len(sums) == 1 {
		return l
	}
	return &Law{Sums: sums}
}

// constantEnds returns sums that are the value of all samples: P, its logarithm, a multiple of that, or an extent.
func constantEnds(value int64, samples []Sample, possible []pattern.Grid) []Sum {
	ends := append(products(rankEnds()), Feature{Kind: FeatureRanks})
	rivals := alwaysEqual(append(ends, extentsOf(possible, FeatureExtent)...), samples)
	return append(rivals, multiplesOfLogs(value, 1, samples)...)
}

// multiplesOfLogs returns the multiples of the logarithm of the number of ranks, rounded up or down, that are the value
// of all samples, in whole units.
func multiplesOfLogs(value, unit int64, samples []Sample) (rivals []Sum) {
	for _, kind := range []FeatureKind{FeatureRanksLog, FeatureRanksFloor} {
		f := Feature{Kind: kind}
		n, ok := f.evaluate(&samples[0].Point)
		if !ok || n < 2 || value < n*unit || value%(n*unit) != 0 {
			continue
		}
		if multiple := (Sum{Terms: []Term{{value / n, f}}}); multiple.isAlways(samples) {
			rivals = append(rivals, multiple)
		}
	}
	return rivals
}

// multiples returns multiples of extents of grids that are the value of all samples.
func multiples(value int64, samples []Sample, grids []pattern.Grid) (rivals []Sum) {
	for _, f := range extentsOf(grids, FeatureExtent) {
		g, ok := f.evaluate(&samples[0].Point)
		if !ok || g < leastCount || value <= g || value%g != 0 {
			continue
		}
		if s := (Sum{Terms: []Term{{value / g, f}}}); s.isAlways(samples) {
			rivals = append(rivals, s)
		}
	}
	return rivals
}

// growingEnds returns extents, and products and sums of extents and logarithms on one grid, that are the values of all
// samples.
func growingEnds(samples []Sample, possible []pattern.Grid) []Sum {
	candidates := append(extentsOf(possible, FeatureExtent), products(rankEnds())...)
	for i := range possible {
		of := possible[i : i+1]
		candidates = append(candidates,
			products(slices.Concat(rankEnds(), extentsOf(of, FeatureExtent), extentsOf(of, FeatureExtentLog)))...)
	}
	return alwaysEqual(candidates, samples)
}

// lastOfTwo returns the value in the largest run, and the one after another step as large, if the samples have two
// values only: two points are on any line. What a loop does from some number of ranks on it may do on more, or step
// again, as the number of coarser grids of a solver.
func lastOfTwo(samples []Sample) []Sum {
	values := map[int64]bool{}
	last := samples[0]
	for _, s := range samples {
		values[s.Value] = true
		if s.Point.Ranks >= last.Point.Ranks {
			last = s
		}
	}
	if len(values) != 2 || varyInRun(samples) {
		return nil
	}
	delete(values, last.Value)
	for first := range values {
		return []Sum{{Constant: last.Value}, {Constant: max(0, 2*last.Value-first)}}
	}
	return nil
}

// constantFactors returns the products among sums of which one factor did not vary, with its value in its place.
func constantFactors(sums []Sum, samples []Sample) (rivals []Sum) {
	for _, s := range sums {
		if len(s.Terms) != 1 || s.Terms[0].Feature.With == nil || s.Terms[0].Feature.Upto {
			continue
		}
		one, other := s.Terms[0].Feature, *s.Terms[0].Feature.With
		one.With = nil
		for _, f := range [2][2]Feature{{one, other}, {other, one}} {
			if v, fixed := valueOfAll(&f[0], samples); fixed {
				rivals = append(rivals, Sum{Constant: s.Constant, Terms: []Term{{s.Terms[0].Times * v, f[1]}}})
			}
		}
	}
	return rivals
}

// valueOfAll returns the value that a feature has in all samples; false if it varies.
func valueOfAll(f *Feature, samples []Sample) (value int64, fixed bool) {
	for i := range samples {
		v, ok := f.evaluate(&samples[i].Point)
		if !ok || i > 0 && v != value {
			return 0, false
		}
		value = v
	}
	return value, true
}

// rankEnds returns the number of ranks and its logarithm.
func rankEnds() []Feature { return []Feature{{Kind: FeatureRanks}, {Kind: FeatureRanksLog}} }

// extentsOf returns features of all axes of grids that do not have the same extent on any number of ranks.
func extentsOf(grids []pattern.Grid, kind FeatureKind) (all []Feature) {
	for i := range grids {
		for a := range grids[i].Axes {
			if !grids[i].IsFixed(a) {
				all = append(all, Feature{Kind: kind, N: a, Grid: &grids[i]})
			}
		}
	}
	return all
}

// alwaysEqual returns those features that are the value of all samples, as sums.
func alwaysEqual(candidates []Feature, samples []Sample) (all []Sum) {
	for _, f := range candidates {
		if s := (Sum{Terms: []Term{{1, f}}}); s.isAlways(samples) {
			all = append(all, s)
		}
	}
	return all
}

// isAlways reports whether the sum is the value of all samples.
func (s *Sum) isAlways(samples []Sample) bool {
	for i := range samples {
		if v, ok := s.evaluate(&samples[i].Point); !ok || v != samples[i].Value {
			return false
		}
	}
	return true
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
