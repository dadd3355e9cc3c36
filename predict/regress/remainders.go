package regress

import (
	"math"
	"slices"
)

// What was not varied is not known of divisions, either. If an extent left at most one cell over in all runs, they do
// not show which blocks have one cell more where it leaves several. And where a number was divided evenly in all runs,
// they do not show how it is rounded where it is not.

// division is an extent of a grid along an axis, and the least coordinate that samples have there.
type division struct {
	G     int64 `json:"g"`
	First int64 `json:"first,omitempty"`
}

// divisionsOf returns the different divisions along each axis.
func divisionsOf(samples []Sample) (all [][]division) {
	for i := range samples {
		dims, coords := gridOf(&samples[i])
		for a, n := range dims {
			if a == len(all) {
				all = append(all, nil)
			}
			g, x := int64(n), int64(coords[a])
			k := slices.IndexFunc(all[a], func(d division) bool { return d.G == g })
			if k < 0 {
				all[a] = append(all[a], division{g, x})
			} else {
				all[a][k].First = min(all[a][k].First, x)
			}
		}
	}
	return all
}

// isNewRemainder reports whether an extent leaves more cells over at a place than one, although the samples of no run
// have more than one block with a cell more, nor a run has the same remainder.
func (d *domain) isNewRemainder(extent int64, axis int, r *row) bool {
	rest := extent % r.g[axis]
	if rest == 0 || axis >= len(d.Divisions) {
		return false
	}
	some := false
	for _, v := range d.Divisions[axis] {
		if v.G < 1 {
			continue
		}
		seen := extent % v.G
		if seen == rest || seen-v.First > 1 {
			return false
		}
		some = some || seen > 0
	}
	return some
}

// boundRemainders widens an exact estimate to the range from the shortest to the longest block if the runs do not show
// where the longer blocks are.
func (l *Law) boundRemainders(e *Expected, r *row) {
	if !e.Exact {
		return
	}
	h := &l.Laws[0]
	if h.Level != NoLevel || h.Partition != nil {
		return
	}
	for k, a := range h.Axes {
		if a >= len(r.g) || !l.domain.isNewRemainder(h.Cuts[k][0].Extent, a, r) {
			continue
		}
		for _, x := range []int64{0, r.g[a] - 1} {
			at := *r
			at.x = slices.Clone(r.x)
			at.x[a] = x
			if s, ok := h.value(&at, &l.names); ok {
				e.Low, e.High = math.Min(e.Low, s.low), math.Max(e.High, s.high)
			}
		}
		e.Exact = e.Low == e.High
	}
}

// mostFactor is the largest number of elements for each cell that is not part of the law's evidence.
const mostFactor = 5

// commonFactor returns the greatest common divisor of the numbers of elements.
func commonFactor(samples []Sample, unit int64) (n int64) {
	for _, s := range samples {
		for a, b := n, s.Value/max(unit, 1); ; a, b = b, a%b {
			if b == 0 {
				n = a
				break
			}
		}
	}
	return max(n, -n)
}

// boundShares widens an estimate by a law that divides a number, all of whose values in the runs were multiples of a
// small number of elements, where it is no multiple: the program may divide cells of that many elements, and rounds
// them.
func (l *Law) boundShares(e *Expected) {
	h := &l.Laws[0]
	if len(h.Cuts) > 0 || !slices.ContainsFunc(h.Powers, func(p int) bool { return p < 0 }) || l.domain.Unit == 0 {
		return
	}
	value := e.Value
	for k := int64(2); k <= mostFactor; k++ {
		cells := value / (l.domain.unit() * float64(k))
		if l.domain.Multiple%k == 0 && cells != math.Trunc(cells) {
			size := l.domain.unit() * float64(k)
			e.Low, e.High = math.Min(e.Low, math.Floor(cells)*size), math.Max(e.High, math.Ceil(cells)*size)
			e.Exact = false
		}
	}
}

// boundSides widens an estimate if one of the laws divides a number by the ranks and no message shows their grid:
// the number may be a product of sides of blocks.
func (l *Law) boundSides(e *Expected, r *row) {
	if !l.onLine || l.along {
		return
	}
	for i := range l.Laws {
		whole, ok := l.Laws[i].dividedByRanks(l.domain.unit())
		if !ok {
			continue
		}
		known, ok := l.sides.Load(r.ranks)
		if !ok {
			less, more := sidesOf(whole, l.ranks, r.ranks)
			known, _ = l.sides.LoadOrStore(r.ranks, [2]float64{less, more})
		}
		for _, ratio := range known.([2]float64) {
			e.Low, e.High = math.Min(e.Low, e.Value*ratio), math.Max(e.High, e.Value*ratio)
		}
		e.Exact = e.Exact && e.Low == e.High
		return
	}
}

// boundSquares widens an estimate by a law that divides a number by the square of an extent: it may be a product of two
// blocks along that axis, as of the part of a matrix that one rank sends another when it transposes it, and blocks that
// all runs divide evenly are rounded where they do not.
func (l *Law) boundSquares(e *Expected, r *row) {
	for i := range l.Laws {
		h := &l.Laws[i]
		if len(h.Cuts) > 0 || len(h.Sum) > 0 || h.Factor != "" {
			continue
		}
		for a, power := range h.Powers {
			if power != -2 || a >= len(r.g) || a >= len(l.domain.Divisions) {
				continue
			}
			cells := int64(1)
			for _, d := range l.domain.Divisions[a] {
				cells = min(cells/gcd(cells, d.G)*d.G, mostSide)
			}
			whole := math.Abs(h.C) / l.domain.unit()
			if whole != math.Trunc(whole) || whole >= 1<<53 {
				continue
			}
			less, more := sidesOfSquare(int64(whole), cells, r.g[a])
			e.Low, e.High = math.Min(e.Low, e.Value*less), math.Max(e.High, e.Value*more)
			e.Exact = e.Exact && e.Low == e.High
		}
	}
}

// sidesOfSquare returns how much smaller and larger than whole/ranks^2 the product of two blocks may be, of sides that
// are multiples of some cells.
func sidesOfSquare(whole, cells, ranks int64) (less, more float64) {
	if whole%(cells*cells) != 0 {
		return 1, 1
	}
	less, more = sideOf(cells, whole/(cells*cells), ranks)
	return less * less, more * more
}

// dividedByRanks returns the number of elements, each of some bytes, that a law on the line of all ranks divides by
// their number; ok is false for other laws.
func (h *Hypothesis) dividedByRanks(unit float64) (whole int64, ok bool) {
	n := math.Abs(h.C) / unit
	return int64(n), len(h.Powers) == 1 && h.Powers[0] == -1 && h.Factor == "" && len(h.Axes) == 0 &&
		len(h.Sum) == 0 && n == math.Trunc(n) && n < 1<<53
}
