package regress

import (
	"fmt"
	"math"
	"slices"
)

// Rounding is how N cells are cut into g blocks.
type Rounding string

// The conventions that programs use; x is the block's number, from 0.
const (
	RestFirst Rounding = "rest-first" // floor(N/g) and one more for x < N mod g
	RestLast  Rounding = "rest-last"  // floor(N/g) and one more for the last N mod g
	Short     Rounding = "short-last" // ceil(N/g) until they are used up
	Long      Rounding = "long-last"  // floor(N/g), the last has the rest
	Even      Rounding = "even"       // floor((x+1) N/g) - floor(x N/g)
	Floor     Rounding = "floor"      // floor(N/g), of all: a buffer, or cells that are left out
	Ceil      Rounding = "ceil"       // ceil(N/g), of all: the largest block
)

// roundings in the order of preference where they say the same of what was seen.
var roundings = []Rounding{RestFirst, Floor, Ceil, Short, RestLast, Even, Long}

// block is the extent of a block; 0 or less where there is none.
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

// Trim is which blocks are one cell thinner: those at the boundary of the domain.
type Trim string

// Trims.
const (
	NoTrim    Trim = ""
	TrimBoth  Trim = "both"
	TrimFirst Trim = "first"
	TrimLast  Trim = "last"
)

var trims = []Trim{NoTrim, TrimBoth, TrimFirst, TrimLast}

func (t Trim) cells(g, x int64) (n int64) {
	if x == 0 && (t == TrimBoth || t == TrimFirst) {
		n++
	}
	if x == g-1 && (t == TrimBoth || t == TrimLast) {
		n++
	}
	return n
}

// halos are what is added to a block, in the order of preference.
var halos = []int64{0, 2, 1, -1, -2}

// mostHalo is the largest of halos, whatever its sign.
const mostHalo = 2

// Cut is a factor of a law: the extent of a rank's block along an axis, with what is added to it.
type Cut struct {
	Extent   int64    `json:"extent"` // N, cells of the domain along the axis
	Rounding Rounding `json:"rounding"`
	Add      int64    `json:"add,omitempty"`
	Trim     Trim     `json:"trim,omitempty"`
}

// Level is what an index does to the extents.
type Level string

// Levels: extents do not change, are halved with each step of the index, or doubled.
const (
	NoLevel Level = ""
	Halved  Level = "halved"
	Doubled Level = "doubled"
)

func (l Level) of(n, i int64) int64 {
	switch {
	case l == Halved && i >= 0 && i < 62:
		return n >> i
	case l == Doubled && i >= 0 && i < 40:
		return n << i
	}
	return n
}

// at is the factor's value; 0 or less is none.
func (c *Cut) at(level Level, i, g, x int64) int64 {
	return c.Rounding.block(level.of(c.Extent, i), g, x) + c.Add - c.Trim.cells(g, x)
}

func (c *Cut) text(axis string) string {
	name := map[Rounding]string{RestFirst: "block", RestLast: "block'", Short: "short block", Long: "long block", Even: "even block", Floor: "floor", Ceil: "ceil"}[c.Rounding]
	s := fmt.Sprintf("%s(%d/%s)", name, c.Extent, axis)
	if c.Add != 0 {
		s = fmt.Sprintf("(%s%+d)", s, c.Add)
	}
	if c.Trim != NoTrim {
		s = fmt.Sprintf("(%s-[%s])", s, map[Trim]string{TrimBoth: "first or last", TrimFirst: "first", TrimLast: "last"}[c.Trim])
	}
	return s
}

// spot is a place along an axis with the factor that is wanted there.
type spot struct{ g, x, i, want int64 }

// mostExtent is the largest domain that is looked for along an axis.
const mostExtent = 1 << 24

// cutsOf are all cuts that have the wanted factor at all spots, preferred ones first. It does not search: one spot bounds the extent to a few
// blocks' worth, all spots to few candidates.
func cutsOf(level Level, spots []spot) (all []Cut) {
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
				continue // nothing but one spot at a far level: it would say nothing
			}
			for _, rounding := range roundings {
				for n := least; n <= most; n++ {
					c := Cut{n, rounding, add, trim}
					if !slices.ContainsFunc(spots, func(s spot) bool { return c.at(level, s.i, s.g, s.x) != s.want }) {
						all = append(all, c)
					}
				}
			}
		}
	}
	return all
}

// mostTried is the widest range of extents that is tried one by one.
const mostTried = 1 << 13

// rangeOf is the least, first and greatest that cuts say of a place; ok is false where the first says there is nothing.
func rangeOf(cuts []Cut, level Level, i, g, x int64) (low, value, high int64, ok bool) {
	low, high = math.MaxInt64, math.MinInt64
	for k := range cuts {
		if y := cuts[k].at(level, i, g, x); y > 0 {
			low, high = min(low, y), max(high, y)
		}
	}
	value = cuts[0].at(level, i, g, x)
	return low, value, high, value > 0
}
