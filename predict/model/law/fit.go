package law

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/commq/commq/predict/pattern"
)

// Fitter finds the laws of a program's numbers. Call FitSize or FitNumber for each, then Settle once; until then laws
// may be empty.
type Fitter struct {
	grids  []*pattern.Grid // of the program
	twins  []pattern.Grid  // see pattern.Program
	others []pattern.Grid  // grids on which rivals of other forms are looked for
	known  map[string]*Law // by samples
	open   []openLaw       // for Settle
	single []singleSamples
}

// openLaw is a law that Settle has to find.
type openLaw struct {
	samples []Sample
	grid    *pattern.Grid
	law     *Law
	unit    int64 // of sizes: bytes of an element; 0 for other numbers
	rival   bool  // a law is known, and others are looked for
}

// NewFitter returns a fitter for a program with these grids, and twins that its runs do not rule out. On others it
// looks for rivals of any form.
func NewFitter(grids []*pattern.Grid, twins, others []pattern.Grid) *Fitter {
	return &Fitter{grids: grids, twins: twins, others: others, known: map[string]*Law{}}
}

// FitSize finds the law of a size, bytes or a count, which may depend on the program's domain. All samples are
// multiples of unit, the size of an element (1 for counts). grid is that of the communication; it may be nil.
func (f *Fitter) FitSize(samples []Sample, unit int64, grid *pattern.Grid) *Law {
	return f.fit(samples, grid, max(unit, 1))
}

// FitNumber finds the law of a number that is not a size: a tag, a root, a number of iterations.
func (f *Fitter) FitNumber(samples []Sample, grid *pattern.Grid) *Law {
	return f.fit(samples, grid, 0)
}

// fit finds the law of a size, or of another number if unit is 0.
func (f *Fitter) fit(samples []Sample, grid *pattern.Grid, unit int64) *Law {
	if len(samples) == 0 {
		return &Law{}
	}
	l := constantLaw(samples)
	hidden := l != nil && unit > 0 && hasUnseenAxis(samples, grid)
	if l != nil && unit > 0 && !hidden {
		if twin := f.twinWithUnseenAxis(samples, grid); twin != nil {
			grid, hidden = twin, true
		}
	}
	if l != nil && !hidden {
		if unit > 0 {
			l = f.constantSize(l, samples, unit)
		}
		return l
	}
	key := fmt.Sprint(unit, grid) + sampleKey(samples)
	if l := f.known[key]; l != nil {
		return l
	}
	l = &Law{}
	f.known[key] = l
	var roots, others []Sample
	for _, s := range samples {
		if s.Point.Root {
			s.Point.Root = false
			roots = append(roots, s)
		} else {
			others = append(others, s)
		}
	}
	if len(roots) > 0 && len(others) > 0 {
		l.Root, l.Others = f.fit(roots, grid, unit), f.fit(others, grid, unit)
		return l
	}
	if unit == 0 {
		if l.Sums = findSums(samples, grid); len(l.Sums) > 0 {
			f.addTwinSums(l, samples)
			l.Sums = append(l.Sums, roundedOtherwise(l.Sums, samples)...)
			return l
		}
	}
	f.open = append(f.open, openLaw{samples: samples, grid: grid, law: l, unit: unit})
	return l
}

// constantSize returns the law of a size that all samples have: a single one if they are of one number of ranks, with
// rivals if that is what they show of a logarithm.
func (f *Fitter) constantSize(l *Law, samples []Sample, unit int64) *Law {
	if onOneNumberOfRanks(samples) {
		l = &Law{Single: &SingleLaw{Value: samples[0].Value, Ranks: samples[0].Point.Ranks}}
		f.single = append(f.single, singleSamples{samples, l.Single})
		return l
	}
	if tooLarge(*l.Constant / unit / leastCount) { // more than a few elements for each step of a tree
		return l
	}
	if rivals := multiplesOfLogs(*l.Constant, unit, samples); len(rivals) > 0 {
		return &Law{Sums: append([]Sum{{Constant: *l.Constant}}, rivals...)}
	}
	return l
}

// addTwinSums adds to sums of coordinates or extents of a grid those of other grids that the runs do not rule out.
func (f *Fitter) addTwinSums(l *Law, samples []Sample) {
	ofGrid := func(s Sum) bool {
		return slices.ContainsFunc(s.Terms, func(t Term) bool { return t.Feature.Grid != nil })
	}
	if !slices.ContainsFunc(l.Sums, ofGrid) {
		return
	}
	for i := range f.twins {
		for _, s := range findSums(samples, &f.twins[i]) {
			if ofGrid(s) {
				l.Sums = append(l.Sums, s)
			}
		}
	}
}

// hasUnseenAxis reports whether samples on several numbers of ranks have only one extent along an axis of a grid:
// then a size may depend on it although it is constant.
func hasUnseenAxis(samples []Sample, grid *pattern.Grid) bool {
	if grid == nil || grid.Axes < 2 || onOneNumberOfRanks(samples) {
		return false
	}
	first, ok := grid.Dims(samples[0].Point.Ranks)
	varies := make([]bool, len(first))
	last := samples[0].Point.Ranks
	for i := range samples {
		if samples[i].Point.Ranks == last {
			continue
		}
		last = samples[i].Point.Ranks
		dims, has := grid.Dims(last)
		if !ok || !has || len(dims) != len(first) {
			return false
		}
		for a := range dims {
			varies[a] = varies[a] || dims[a] != first[a]
		}
	}
	return slices.Contains(varies, false)
}

// twinWithUnseenAxis returns a grid that the runs do not rule out and that has an axis as hasUnseenAxis looks for;
// nil if there is none. grid is that of the communication. If nothing shows a grid, it may be a cube that is as even
// as possible and has at least two ranks along each axis.
func (f *Fitter) twinWithUnseenAxis(samples []Sample, grid *pattern.Grid) *pattern.Grid {
	if grid == nil {
		cube := &pattern.Grid{Shape: pattern.Balanced, Axes: 3, Order: []int{0, 1, 2}}
		dims, ok := cube.Dims(samples[0].Point.Ranks)
		if !ok || dims[0] < 2 || !hasUnseenAxis(samples, cube) {
			return nil
		}
		return cube
	}
	for i := range f.twins {
		if hasUnseenAxis(samples, &f.twins[i]) {
			return &f.twins[i]
		}
	}
	return nil
}

func onOneNumberOfRanks(samples []Sample) bool {
	first := samples[0].Point.Ranks
	return !slices.ContainsFunc(samples, func(s Sample) bool { return s.Point.Ranks != first })
}

// sampleKey returns a string that is equal only for equal samples.
func sampleKey(samples []Sample) string {
	var key []byte
	for i := range samples {
		p := &samples[i].Point
		root := int64(0)
		if p.Root {
			root = 1
		}
		for _, x := range [...]int64{samples[i].Value, int64(p.Ranks), int64(p.Rank), int64(p.PeerRank), root,
			int64(len(p.Index))} {
			key = binary.AppendVarint(key, x)
		}
		for _, x := range p.Index {
			key = binary.AppendVarint(key, int64(x))
		}
	}
	return string(key)
}

// constantLaw returns the law of samples that have one value; nil for others.
func constantLaw(samples []Sample) *Law {
	c := samples[0].Value
	for _, s := range samples {
		if s.Value != c {
			return nil
		}
	}
	return &Law{Constant: &c}
}

// relevantComponents returns the components of the index that values depend on: the last ones that are not needed are
// dropped first.
func relevantComponents(samples []Sample) []int {
	kept := []int{}
	for i := range samples[0].Point.Index {
		kept = append(kept, i)
	}
	for i := len(samples[0].Point.Index) - 1; i >= 0; i-- {
		fewer := slices.DeleteFunc(slices.Clone(kept), func(k int) bool { return k == i })
		if areDetermining(samples, fewer) {
			kept = fewer
		}
	}
	return kept
}

// areDetermining reports whether ranks, rank and these components of the index determine the values of samples.
func areDetermining(samples []Sample, components []int) bool {
	seen := map[groupPoint]int64{}
	for _, s := range samples {
		k := groupPoint{ranks: s.Point.Ranks}
		k.coords[0] = s.Point.Rank
		copy(k.index[:], selectComponents(s.Point.Index, components))
		if x, known := seen[k]; known && x != s.Value {
			return false
		}
		seen[k] = s.Value
	}
	return true
}
