package regress

import (
	"math"
	"slices"
)

// domain is the set of possible values of a group: whole numbers of elements, not negative unless a sample was; and the
// extents of the grid in its samples.
type domain struct {
	Unit     int64  `json:"unit,omitempty"`     // bytes of an element; 0 if the values are no sizes
	Negative bool   `json:"negative,omitempty"` // some value is negative
	Extents  []span `json:"extents,omitempty"`  // of each axis, over all samples
	// Divisions are the different extents of each axis. Multiple is the largest number of elements that divides all
	// values.
	Divisions [][]division `json:"divisions,omitempty"`
	Multiple  int64        `json:"multiple,omitempty"`
	// Unseen are the axes with one extent in all samples on which values may depend.
	Unseen []int `json:"unseen,omitempty"`
	// Merged are the axes that may be two, of which one had the same extent in all samples.
	Merged []mergedAxis `json:"merged,omitempty"`
}

// mergedAxis is an axis whose extents in all samples are multiples of a number.
type mergedAxis struct {
	Axis  int   `json:"axis"`
	Inner int64 `json:"inner"`
}

// span is a range of numbers, both ends included.
type span struct {
	Least int32 `json:"least"`
	Most  int32 `json:"most"`
}

// domainOf returns the domain of a group.
func domainOf(g *Group) domain {
	d := domain{Unit: g.Unit, Divisions: divisionsOf(g.Samples), Multiple: commonFactor(g.Samples, g.Unit)}
	for i := range g.Samples {
		s := &g.Samples[i]
		d.Negative = d.Negative || s.Value < 0
		dims, _ := gridOf(s)
		for a, n := range dims {
			if a == len(d.Extents) {
				d.Extents = append(d.Extents, span{n, n})
			}
			d.Extents[a] = span{min(d.Extents[a].Least, n), max(d.Extents[a].Most, n)}
		}
	}
	return d
}

// markAxesThatMatter finds the axes that never varied but may change the sizes of groups: a constant may be the length
// of a block along them. The axis along which messages go is left out if messages of other groups, along two or more
// axes that varied, do not depend on the axis along which they go: the size of a face depends on the other axes only.
func markAxesThatMatter(groups []Group, laws []*Law) {
	const enough = 2
	shown := map[int]bool{} // axes
	faces := true
	for i, l := range laws {
		along := groups[i].Along - 1
		if along >= 0 && len(l.Laws) > 0 && l.domain.varies(along) {
			shown[along] = true
			faces = faces && !l.Laws[0].depends(along)
		}
	}
	faces = faces && len(shown) >= enough
	for i, l := range laws {
		for a := range l.domain.Extents {
			if l.domain.Unit > 0 && !l.domain.varies(a) && !(faces && groups[i].Along == a+1) {
				l.domain.Unseen = append(l.domain.Unseen, a)
			}
		}
	}
}

// markMergedAxes finds the axes that may be two. If no messages go along an axis, it may be all that another axis leaves
// of the ranks. With extents of 4 and 6, a block of 130 over that axis is a block of 65 over an outer axis of 2 and 3,
// and the inner axis had 2 in all samples. Other extents of it may then have other blocks.
func markMergedAxes(groups []Group, laws []*Law) {
	isUsed := map[int]bool{}
	for i := range groups {
		isUsed[groups[i].Along-1] = true
	}
	for i, l := range laws {
		if len(l.Laws) == 0 || l.Laws[0].Partition != nil {
			continue
		}
		for c, a := range l.Laws[0].Axes {
			inner := int64(0)
			for s := range groups[i].Samples {
				dims, _ := gridOf(&groups[i].Samples[s])
				inner = gcd(inner, int64(dims[a]))
			}
			ofInner := func(c Cut) bool { return c.Extent%inner == 0 }
			if !isUsed[a] && inner > 1 && slices.ContainsFunc(l.Laws[0].Cuts[c], ofInner) {
				l.domain.Merged = append(l.domain.Merged, mergedAxis{a, inner})
			}
		}
	}
}

// isOtherAxes reports whether an axis that may be two cannot be divided here as in all samples.
func (d *domain) isOtherAxes(r *row) bool {
	return slices.ContainsFunc(d.Merged, func(m mergedAxis) bool {
		return m.Axis >= 0 && m.Axis < len(r.g) && m.Inner > 0 && r.g[m.Axis]%m.Inner != 0
	})
}

// varies reports whether samples have different extents along an axis.
func (d *domain) varies(axis int) bool { return d.Extents[axis].Least != d.Extents[axis].Most }

// depends reports whether a law depends on the extent of an axis.
func (h *Hypothesis) depends(axis int) bool {
	return h.Partition != nil || slices.Contains(h.Axes, axis) || axis < len(h.Powers) && h.Powers[axis] != 0
}

// unit returns the least difference between two values.
func (d *domain) unit() float64 { return float64(max(d.Unit, 1)) }

// has reports whether a number can be a value.
func (d *domain) has(v float64) bool {
	n := math.Round(v / d.unit())
	return nearlyEqual(n*d.unit(), v) && (v >= 0 || d.Negative)
}

// nearest returns the value nearest to a number.
func (d *domain) nearest(v float64) float64 { return d.atLeastZero(math.Round(v/d.unit()) * d.unit()) }

// outward returns the values around an interval.
func (d *domain) outward(low, high float64) (float64, float64) {
	const tiny = 1e-9 // errors of rounding
	low, high = math.Floor(low/d.unit()+tiny)*d.unit(), math.Ceil(high/d.unit()-tiny)*d.unit()
	return d.atLeastZero(low), d.atLeastZero(high)
}

func (d *domain) atLeastZero(v float64) float64 {
	if v < 0 && !d.Negative {
		return 0
	}
	return v
}

// mostCertain is the largest constant, in elements, that is not taken for a part of a divided domain: a block of one
// element cannot be divided further, and most sizes of one element are sums or flags, which do not grow either.
const mostCertain = 1

// unseen returns the factors by which values may change because of axes that had one extent in all samples and have
// another one here: fall is the product of the ratios below 1, grow that of the ratios above 1. Both are 1 if there is
// no such axis.
func (d *domain) unseen(r *row) (fall, grow float64) {
	fall, grow = 1, 1
	if len(d.Extents) != len(r.g) {
		return fall, grow
	}
	for _, a := range d.Unseen {
		ratio := float64(d.Extents[a].Least) / float64(r.g[a])
		fall, grow = fall*min(1, ratio), grow*max(1, ratio)
	}
	return fall, grow
}

// settle rounds the interval of a prediction outward to possible values, and widens it if axes matter that never
// varied.
func (d *domain) settle(e Expected, r *row) Expected {
	if !d.has(e.Value) {
		e.Exact = false
	}
	value := d.nearest(e.Value)
	fall, grow := d.unseen(r)
	if (fall != 1 || grow != 1 || d.isOtherAxes(r)) && math.Abs(value) > mostCertain*d.unit() {
		// A block may lose a border of mostHalo cells twice, or gain it.
		e.Exact = false
		e.Low, e.High = math.Min(e.Low, e.Low*fall*unseenMargin), math.Max(e.High, e.High*grow/unseenMargin)
	}
	if !math.IsInf(e.Low, 0) && !math.IsInf(e.High, 0) {
		e.Low, e.High = d.outward(e.Low, e.High)
	}
	e.Value = value
	if e.Exact {
		e.Low, e.High = value, value
	}
	return e
}

// unseenMargin widens such intervals for borders and remainders: a block of an axis that never varied may differ by
// this factor.
const unseenMargin = 0.75
