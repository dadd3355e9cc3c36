package law

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/commq/commq/predict/pattern"
)

// Feature is a number that follows from a point, such as a coordinate of its rank.
type Feature struct {
	Kind  FeatureKind
	N     int           // component of the index, or axis
	Grid  *pattern.Grid // of coordinates and extents
	Index int           // for FeatureWrapped: component of the index
	With  *Feature      `json:",omitempty"` // a factor: the number is the product of both
	// Upto means the sum of 1 to the number, as the calls in a loop whose inner loop goes up to the index of the outer
	// one.
	Upto bool `json:",omitempty"`
}

// FeatureKind is the kind of a feature, and its symbol in formulas.
type FeatureKind string

// Features. N is a component of the index for FeatureIndex and FeaturePower, and an axis of the grid for those that
// need a grid.
const (
	FeatureIndex       FeatureKind = "i"             // iteration
	FeaturePower       FeatureKind = "2^i"           // 2 to the power of the iteration
	FeatureRank        FeatureKind = "rank"          // own rank
	FeaturePeerRank    FeatureKind = "peer"          // rank of the other side
	FeatureRanks       FeatureKind = "P"             // number of ranks
	FeatureRanksLog    FeatureKind = "log2 P"        // its logarithm, rounded up
	FeatureRanksFloor  FeatureKind = "floor(log2 P)" // its logarithm, rounded down
	FeatureCoord       FeatureKind = "x"             // coordinate
	FeaturePeerCoord   FeatureKind = "peer x"        // coordinate of the other side
	FeatureCoordBelow  FeatureKind = "g-1-x"         // coordinate, counted from the other end
	FeatureExtent      FeatureKind = "g"             // extent
	FeatureExtentLog   FeatureKind = "log2 g"        // its logarithm, rounded up
	FeatureExtentFloor FeatureKind = "floor(log2 g)" // its logarithm, rounded down
	FeatureHalfExtent  FeatureKind = "g/2"           // half of the extent, rounded down
	FeatureHalfUp      FeatureKind = "ceil(g/2)"     // half of the extent, rounded up
	FeatureWrapped     FeatureKind = "i mod g"       // iteration, wrapped around the extent
)

// evaluate returns the feature of a point; false if the point does not have it.
func (f Feature) evaluate(p *Point) (int64, bool) {
	if f.Upto {
		f.Upto = false
		x, ok := f.evaluate(p)
		return x * (x + 1) / 2, ok
	}
	if f.With != nil {
		with := *f.With
		f.With = nil
		x, ok := f.evaluate(p)
		y, has := with.evaluate(p)
		return x * y, ok && has
	}
	switch f.Kind {
	case FeatureIndex:
		if f.N >= len(p.Index) {
			return 0, false
		}
		return int64(p.Index[f.N]), true
	case FeaturePower:
		if f.N >= len(p.Index) || p.Index[f.N] > 40 || p.Index[f.N] < 0 {
			return 0, false
		}
		return 1 << p.Index[f.N], true
	case FeatureRank:
		return int64(p.Rank), true
	case FeaturePeerRank:
		return int64(p.PeerRank), p.PeerRank >= 0
	case FeatureRanks:
		return int64(p.Ranks), true
	case FeatureRanksLog:
		return ceilLog2(p.Ranks)
	case FeatureRanksFloor:
		return floorLog2(p.Ranks)
	case FeaturePeerCoord:
		if p.PeerRank < 0 {
			return 0, false
		}
		x, ok := f.Grid.Coords(p.Ranks, p.PeerRank)
		if !ok || f.N >= len(x) {
			return 0, false
		}
		return int64(x[f.N]), true
	}
	return f.evaluateOnGrid(p)
}

// evaluateOnGrid evaluates features of an axis of the grid.
func (f Feature) evaluateOnGrid(p *Point) (int64, bool) {
	dims, ok := f.Grid.Dims(p.Ranks)
	if !ok || f.N >= len(dims) {
		return 0, false
	}
	g := dims[f.N]
	switch f.Kind {
	case FeatureExtent:
		return int64(g), true
	case FeatureExtentLog:
		return ceilLog2(g)
	case FeatureExtentFloor:
		return floorLog2(g)
	case FeatureHalfExtent:
		return int64(g / 2), true
	case FeatureHalfUp:
		return int64(g/2 + g%2), true
	case FeatureWrapped:
		if f.Index >= len(p.Index) || p.Index[f.Index] < 0 || g < 1 {
			return 0, false
		}
		return int64(p.Index[f.Index] % g), true
	}
	x, _ := f.Grid.Coords(p.Ranks, p.Rank)
	if f.Kind == FeatureCoordBelow {
		return int64(g - 1 - x[f.N]), true
	}
	return int64(x[f.N]), true
}

// ceilLog2 returns the logarithm to base 2, rounded up; false if n is not positive.
func ceilLog2(n int32) (log int64, ok bool) {
	for int64(1)<<log < int64(n) {
		log++
	}
	return log, n > 0
}

// floorLog2 returns the logarithm to base 2, rounded down; false if n is not positive.
func floorLog2(n int32) (log int64, ok bool) { return int64(bits.Len32(uint32(max(n, 1)))) - 1, n > 0 }

// roundedOtherwise returns the feature with its logarithms rounded down and its halves rounded up; has is false if it
// has neither.
func (f Feature) roundedOtherwise() (other Feature, has bool) {
	switch f.Kind {
	case FeatureRanksLog:
		f.Kind, has = FeatureRanksFloor, true
	case FeatureExtentLog:
		f.Kind, has = FeatureExtentFloor, true
	case FeatureHalfExtent:
		f.Kind, has = FeatureHalfUp, true
	}
	if f.With != nil {
		with, also := f.With.roundedOtherwise()
		f.With, has = &with, has || also
	}
	return f, has
}

// dependsOnIndex reports whether the feature differs from iteration to iteration.
func (f Feature) dependsOnIndex() bool {
	return f.Kind == FeatureIndex || f.Kind == FeaturePower || f.Kind == FeatureWrapped
}

// String writes the feature as in a formula.
func (f Feature) String() string {
	if f.Upto {
		f.Upto = false
		text := f.String()
		return text + " (" + text + "+1)/2"
	}
	if f.With != nil {
		with := *f.With
		f.With = nil
		return f.String() + " " + with.String()
	}
	switch f.Kind {
	case FeatureRank, FeaturePeerRank, FeatureRanks, FeatureRanksLog, FeatureRanksFloor:
		return string(f.Kind)
	case FeatureCoordBelow:
		return fmt.Sprintf("(g%d-1-x%d)", f.N, f.N)
	case FeatureHalfExtent:
		return fmt.Sprintf("floor(g%d/2)", f.N)
	case FeatureHalfUp:
		return fmt.Sprintf("ceil(g%d/2)", f.N)
	case FeatureExtentFloor:
		return fmt.Sprintf("floor(log2 g%d)", f.N)
	case FeatureWrapped:
		return fmt.Sprintf("(i%d mod g%d)", f.Index, f.N)
	}
	return fmt.Sprintf("%s%d", f.Kind, f.N)
}

// cost returns how many bits it takes to name the feature: how complex it is.
func (f Feature) cost() float64 {
	if f.Upto {
		f.Upto = false
		return f.cost() + 2
	}
	if f.With != nil {
		with := *f.With
		f.With = nil
		return f.cost() + with.cost() + 1
	}
	switch f.Kind {
	case FeatureIndex, FeatureRanks, FeatureExtent:
		return 1
	case FeatureHalfExtent, FeatureHalfUp, FeatureCoordBelow, FeaturePower, FeatureRank, FeaturePeerRank, FeatureWrapped:
		return 3
	}
	return 1.5
}

// features returns the features that a law of samples may have.
func features(p *Point, grid *pattern.Grid) (all []Feature) {
	for i := range p.Index {
		all = append(all, Feature{Kind: FeatureIndex, N: i}, Feature{Kind: FeaturePower, N: i})
	}
	all = append(all, Feature{Kind: FeatureRanks}, Feature{Kind: FeatureRanksLog}, Feature{Kind: FeatureRank},
		Feature{Kind: FeaturePeerRank})
	if grid != nil {
		for a := range grid.Axes {
			for _, k := range []FeatureKind{FeatureExtent, FeatureExtentLog, FeatureHalfExtent, FeatureCoord,
				FeatureCoordBelow, FeaturePeerCoord} {
				all = append(all, Feature{Kind: k, N: a, Grid: grid})
			}
		}
	}
	return all
}

// productFeatures returns the products of the number of ranks, or of the extent of an axis, and a logarithm, rounded up
// and down: the numbers of iterations of two loops that are one in the runs.
func productFeatures(grid *pattern.Grid) (all []Feature) {
	logs := []Feature{{Kind: FeatureRanksLog}, {Kind: FeatureRanksFloor}}
	add := func(f Feature, with []Feature) {
		for i := range with {
			f.With = &with[i]
			all = append(all, f)
		}
	}
	add(Feature{Kind: FeatureRanks}, logs)
	if grid != nil {
		for a := range grid.Axes {
			own := []Feature{{Kind: FeatureExtentLog, N: a, Grid: grid}, {Kind: FeatureExtentFloor, N: a, Grid: grid}}
			add(Feature{Kind: FeatureExtent, N: a, Grid: grid}, slices.Concat(logs, own))
		}
	}
	return all
}

// wrappedFeatures returns features of what moves around an axis of a grid from iteration to iteration, such as the root
// of broadcasts of panels that are dealt out cyclically.
func wrappedFeatures(p *Point, grid *pattern.Grid) (all []Feature) {
	if grid == nil {
		return nil
	}
	for i := range p.Index {
		for a := range grid.Axes {
			all = append(all, Feature{Kind: FeatureWrapped, N: a, Index: i, Grid: grid})
		}
	}
	return all
}
