package regress

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Rounding is the rule that divides N cells into g blocks.
type Rounding string

// The conventions that programs use; x is the block's number, from 0.
const (
	RestFirst Rounding = "rest-first" // floor(N/g) and one more for x < N mod g
	RestLast  Rounding = "rest-last"  // floor(N/g) and one more for the last N mod g
	Short     Rounding = "short-last" // ceil(N/g) until they are used up
	Long      Rounding = "long-last"  // floor(N/g), the last has the rest
	Even      Rounding = "even"       // floor((x+1) N/g) - floor(x N/g)
	Floor     Rounding = "floor"      // floor(N/g) for all: a buffer, or some cells are left out
	Ceil      Rounding = "ceil"       // ceil(N/g) for all: the largest block
)

// roundings are in the order of preference, for those that agree at all samples.
var roundings = []Rounding{RestFirst, Floor, Ceil, Short, RestLast, Even, Long}

// block returns the extent of block x; 0 or less means that there is none.
func (r Rounding) block(n, g, x int64) int64 {
	low, rest := n/g, n%g
	switch r {
	case RestFirst:
		if x < rest {
			return low + 1
		}
	case RestLast:
		if x >= g-rest {
			return low + 1
		}
	case Short:
		up := (n + g - 1) / g
		return min(up, n-x*up)
	case Long:
		if x == g-1 {
			return low + rest
		}
	case Even:
		return (x+1)*n/g - x*n/g
	case Ceil:
		return (n + g - 1) / g
	}
	return low
}

// Trim tells which blocks at the boundary of the domain have one cell less.
type Trim string

// Trims.
const (
	NoTrim    Trim = ""
	TrimBoth  Trim = "both"
	TrimFirst Trim = "first"
	TrimLast  Trim = "last"
)

var trims = []Trim{NoTrim, TrimBoth, TrimFirst, TrimLast}

// cells returns the number of cells less that block x of g has.
func (t Trim) cells(g, x int64) (n int64) {
	if x == 0 && (t == TrimBoth || t == TrimFirst) {
		n++
	}
	if x == g-1 && (t == TrimBoth || t == TrimLast) {
		n++
	}
	return n
}

// usualHalos are the usual numbers of cells added to a block, in the order of preference. mostHalo is the largest of
// their absolute values.
var usualHalos = []int64{0, 2, 1, -1, -2}

const mostHalo = 2

// halos also has wider ones: CloverLeaf adds two cells at both ends, and one more for fields at the corners of cells.
var halos = append(slices.Clone(usualHalos), 4, 5, 3, 6)

// Cut is a factor of a law: the extent of a rank's block along an axis, plus a halo.
type Cut struct {
	Extent   int64    `json:"extent"` // N, cells of the domain along the axis
	Rounding Rounding `json:"rounding"`
	Add      int64    `json:"add,omitempty"`
	Trim     Trim     `json:"trim,omitempty"`
}

// Level is the rule by which an index changes the extents.
type Level string

// Levels: extents do not change, are halved with each step of the index, or doubled.
const (
	NoLevel Level = ""
	Halved  Level = "halved"
	Doubled Level = "doubled"
)

// scale returns the extent n at index i.
func (l Level) scale(n, i int64) int64 {
	switch {
	case l == Halved && i >= 0 && i < 62:
		return n >> i
	case l == Doubled && i >= 0 && i < 40:
		return n << i
	}
	return n
}

// value returns the factor's value; 0 or less means that there is none.
func (c *Cut) value(level Level, i, g, x int64) int64 {
	return c.Rounding.block(level.scale(c.Extent, i), g, x) + c.Add - c.Trim.cells(g, x)
}

func (c *Cut) text(axis string) string {
	name := map[Rounding]string{RestFirst: "block", RestLast: "block'", Short: "short block", Long: "long block",
		Even: "even block", Floor: "floor", Ceil: "ceil"}[c.Rounding]
	s := fmt.Sprintf("%s(%d/%s)", name, c.Extent, axis)
	if c.Add != 0 {
		s = fmt.Sprintf("(%s%+d)", s, c.Add)
	}
	if c.Trim != NoTrim {
		s = fmt.Sprintf("(%s-[%s])", s, map[Trim]string{TrimBoth: "first or last", TrimFirst: "first",
			TrimLast: "last"}[c.Trim])
	}
	return s
}

// hasCellForEach reports whether an extent has a cell for each of g ranks along its axis. With fewer the program
// divides it in another way, or does not run: a law of blocks holds there only if no other law has a value.
func hasCellForEach(extent, g int64) bool { return extent >= g }

// hasCells reports whether the law has no cuts, or cuts with a cell for each rank along each of their axes.
func (h *Hypothesis) hasCells(r *row) bool {
	if h.Level != NoLevel || h.Partition != nil {
		return true
	}
	for k, a := range h.Axes {
		if a >= len(r.g) || !slices.ContainsFunc(h.Cuts[k], func(c Cut) bool { return hasCellForEach(c.Extent, r.g[a]) }) {
			return false
		}
	}
	return true
}

// isEmptyAt reports whether the law gives a rank no cells: blocks that are rounded up may be used up before its own.
func (h *Hypothesis) isEmptyAt(r *row) bool {
	if h.Level != NoLevel || h.Partition != nil {
		return false
	}
	for k, a := range h.Axes {
		if a < len(r.g) && h.Cuts[k][0].value(NoLevel, 0, r.g[a], r.x[a]) <= 0 {
			return true
		}
	}
	return false
}

// isUsedUpAt reports whether a block of the law is used up before a place, though there is a cell for each rank.
func (h *Hypothesis) isUsedUpAt(r *row) bool {
	if h.Level != NoLevel || h.Partition != nil {
		return false
	}
	for k, a := range h.Axes {
		if a < len(r.g) && h.Cuts[k][0].isUsedUp(r.g[a], r.x[a]) {
			return true
		}
	}
	return false
}

// spot is a place along an axis, with the factor that is required there.
type spot struct{ g, x, i, want int64 }

// mostExtent is the largest extent of a domain that is tried.
const mostExtent = 1 << 24

// findCuts returns all cuts that have the required factor at all spots, preferred ones first. It is fast, as the spots
// bound the extent to few candidates.
func findCuts(level Level, spots []spot) (all []Cut) {
	for _, add := range halos {
		for _, trim := range trims {
			least, most := int64(1), int64(mostExtent)
			for _, s := range spots {
				b := s.want - add + trim.cells(s.g, s.x)
				if b < 1 {
					least, most = 1, 0
					break
				}
				lo, hi := (b-1)*s.g, (b+1)*s.g
				if s.x == s.g-1 { // a short or long last block
					lo, hi = max(0, (b-s.g)*s.g), max(hi, s.g*(b+s.g))
				}
				switch level {
				case Halved:
					lo, hi = lo<<min(s.i, 30), (hi+1)<<min(s.i, 30)
				case Doubled:
					lo, hi = lo>>min(s.i, 30), (hi>>min(s.i, 30))+1
				}
				least, most = max(least, lo), min(most, hi)
			}
			if most-least > mostTried {
				continue // this needs a single spot at a far level, which is no evidence
			}
			for _, rounding := range roundings {
				for n := least; n <= most; n++ {
					c := Cut{n, rounding, add, trim}
					if !slices.ContainsFunc(spots,
						func(s spot) bool { return c.value(level, s.i, s.g, s.x) != s.want }) {
						all = append(all, c)
					}
				}
			}
		}
	}
	return all
}

// mostTried limits the range of extents that is tried.
const mostTried = 1 << 13

// cutBounds returns the smallest, the first and the largest value of cuts at a place. ok is false if the first cut has
// no value. A cut whose cells are used up before the place has the value 0.
func cutBounds(cuts []Cut, level Level, i, g, x int64) (low, value, high int64, ok bool) {
	low, high = math.MaxInt64, math.MinInt64
	for k := range cuts {
		switch y := cuts[k].value(level, i, g, x); {
		case y > 0:
			low, high = min(low, y), max(high, y)
		case level == NoLevel && cuts[k].isUsedUp(g, x):
			low, high = min(low, 0), max(high, 0)
		}
	}
	value = cuts[0].value(level, i, g, x)
	return low, value, high, value > 0
}

// isUsedUp reports whether rounded-up blocks cover all cells before place x, so that its block is empty although there
// is at least one cell per rank.
func (c *Cut) isUsedUp(g, x int64) bool {
	return c.Rounding == Short && hasCellForEach(c.Extent, g) && c.Rounding.block(c.Extent, g, x) <= 0
}

// divided returns laws like this one with a divisor of its coefficient, and a block of as many times more cells in
// place of one of its blocks, that have the same values in all rows: where few blocks are seen, 2 ceil(67/g) may be
// ceil(134/g).
func (h *Hypothesis) divided(rows []row) (all []Hypothesis) {
	if len(h.Cuts) < 2 || h.Level != NoLevel || h.Partition != nil {
		return nil
	}
	for k := range h.Cuts {
		for f := int64(2); f <= mostFactor; f++ {
			if math.Mod(h.C, float64(f)) != 0 {
				continue
			}
			var wanted []Cut
			n, a := h.Cuts[k][0].Extent, h.Axes[k]
			least := slices.MinFunc(rows, func(x, y row) int { return cmp.Compare(x.g[a], y.g[a]) }).g[a]
			for extent := f*(n-least) + 1; extent < f*(n+least); extent++ {
				for _, r := range roundings {
					c := Cut{Extent: extent, Rounding: r}
					if c.isMultipleOf(&h.Cuts[k][0], f, a, rows) {
						wanted = append(wanted, c)
					}
				}
			}
			if len(wanted) == 0 {
				continue
			}
			o := *h
			o.C /= float64(f)
			o.Cuts = slices.Clone(h.Cuts)
			o.Cuts[k] = wanted
			all = append(all, o)
		}
	}
	return all
}

// isMultipleOf reports whether the cut has f times the value of another one in all rows.
func (c *Cut) isMultipleOf(o *Cut, f int64, axis int, rows []row) bool {
	for i := range rows {
		g, x := rows[i].g[axis], rows[i].x[axis]
		if c.value(NoLevel, 0, g, x) != f*o.value(NoLevel, 0, g, x) {
			return false
		}
	}
	return true
}
