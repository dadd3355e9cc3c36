package regress

import (
	"math"
	"math/big"
	"slices"

	"github.com/commq/commq/predict/pattern"
)

// share is a number that a law divides by the number of ranks, or by a power of the edge of their square or cube. A
// program divides cells, which have any number of elements that the runs do not rule out: 720/P may be cells of 30
// elements, or the sides of a grid of 24 x 30 cells, and where they do not divide evenly the share is rounded.
type share struct {
	whole *big.Rat
	parts []int64 // into which the runs divide it
	ranks []int64 // rank counts of the runs, if the parts are those; nil for powers of an edge
}

// perPart returns the share of each part.
func (s *share) perPart(parts int64) *big.Rat {
	return new(big.Rat).Quo(s.whole, new(big.Rat).SetInt64(parts))
}

// around returns the bounds of what a part has: the share itself if all divisions that fit the runs are even here.
func (s *share) around(parts int64) (low, high float64) {
	exact, _ := s.perPart(parts).Float64()
	if slices.Contains(s.parts, parts) {
		return exact, exact
	}
	low, high = exact, exact
	if cell := s.largestCell(); s.mayLeaveCells(parts, cell) {
		cells, _ := new(big.Rat).Quo(s.perPart(parts), cell).Float64()
		size, _ := cell.Float64()
		low, high = min(low, math.Floor(cells)*size), max(high, math.Ceil(cells)*size)
	}
	if s.ranks != nil && s.whole.IsInt() && s.whole.Num().IsInt64() {
		less, more := sidesOf(s.whole.Num().Int64(), s.ranks, parts)
		low, high = min(low, exact*less, exact*more), max(high, exact*less, exact*more)
	}
	return min(low, high), max(low, high)
}

// largestCell returns the largest number of which the shares of all runs are multiples.
func (s *share) largestCell() *big.Rat {
	cell := new(big.Rat)
	for _, p := range s.parts {
		for a, b := new(big.Rat).Abs(s.perPart(p)), cell; ; {
			if b.Sign() == 0 {
				cell = a
				break
			}
			q := new(big.Rat).Quo(a, b)
			floor := new(big.Rat).SetInt(new(big.Int).Quo(q.Num(), q.Denom()))
			a, b = b, new(big.Rat).Sub(a, floor.Mul(floor, b))
		}
	}
	return cell
}

// mayLeaveCells reports whether parts may have different numbers of cells. Cells are the largest ones or divisors of
// these with whole numbers of elements, and there is at least one for each part.
func (s *share) mayLeaveCells(parts int64, largest *big.Rat) bool {
	uneven := new(big.Rat).Quo(s.perPart(parts), largest).Denom() // cells must be smaller by a multiple of it to be even
	if uneven.IsInt64() && uneven.Int64() == 1 {
		return false
	}
	if !largest.IsInt() || !uneven.IsInt64() {
		return true
	}
	least := new(big.Rat).Quo(new(big.Rat).Mul(new(big.Rat).SetInt64(parts), largest), new(big.Rat).Abs(s.whole))
	left := uneven.Int64()
	for f := int64(2); left > 1; f++ {
		if f*f > left {
			f = left
		}
		power := int64(1)
		for ; left%f == 0; left /= f {
			power *= f
		}
		if power > 1 && new(big.Rat).SetInt(withoutPower(largest.Num(), f, power)).Cmp(least) >= 0 {
			return true
		}
	}
	return false
}

// withoutPower returns the largest divisor of a number that a power of a prime does not divide.
func withoutPower(n *big.Int, prime, power int64) *big.Int {
	n, rest := new(big.Int).Set(n), new(big.Int)
	for p := big.NewInt(power); ; {
		if rest.Rem(n, p); rest.Sign() != 0 {
			return n
		}
		n.Quo(n, big.NewInt(prime))
	}
}

// sidesOf returns how much smaller and larger than a share a product of the sides of a rank's blocks may be: on grids
// that are as even as possible, as of MPI_Dims_create, with a domain whose sides all runs divide evenly.
func sidesOf(whole int64, trained []int64, ranks int64) (less, more float64) {
	less, more = 1, 1
	for _, g := range evenGrids {
		sides, ok := commonMultiples(g, trained)
		to, has := g.Dims(int32(ranks))
		cells := product(sides)
		if !ok || !has || cells == 0 || whole%cells != 0 {
			continue
		}
		low, high := 1.0, 1.0
		for a, side := range sides {
			fall, grow := sideOf(side, whole/cells, int64(to[a]))
			low, high = low*fall, high*grow
		}
		less, more = min(less, low), max(more, high)
	}
	return less, more
}

// evenGrids are the grids of MPI_Dims_create of MPICH and of Open MPI.
var evenGrids = []pattern.Grid{
	{Shape: pattern.Balanced, Axes: 2, Order: []int{0, 1}}, {Shape: pattern.Greedy, Axes: 2, Order: []int{0, 1}},
	{Shape: pattern.Balanced, Axes: 3, Order: []int{0, 1, 2}}, {Shape: pattern.Greedy, Axes: 3, Order: []int{0, 1, 2}},
}

// commonMultiples returns the least number of cells along each axis of a grid that all rank counts divide evenly; ok is
// false if the grid has none for one of them.
func commonMultiples(g pattern.Grid, ranks []int64) (sides []int64, ok bool) {
	for _, p := range ranks {
		dims, ok := g.Dims(int32(p))
		if !ok {
			return nil, false
		}
		for a, d := range dims {
			if a == len(sides) {
				sides = append(sides, 1)
			}
			sides[a] = min(sides[a]/gcd(sides[a], int64(d))*int64(d), mostSide)
		}
	}
	return sides, true
}

// mostSide is more cells than an axis has, and mostSide^3 no more than an int64 holds.
const mostSide = 1 << 20

// product returns the product of the sides of a domain; 0 if one is mostSide.
func product(sides []int64) int64 {
	all := int64(1)
	for _, s := range sides {
		if s == mostSide {
			return 0
		}
		all *= s
	}
	return all
}

// sideOf returns how much smaller and larger than the mean a block of an axis may be that has a multiple of some
// cells, by a divisor of rest, on a number of ranks.
func sideOf(cells, rest, ranks int64) (less, more float64) {
	less, more = 1, 1
	for _, f := range units(rest) {
		n := cells * f
		if n%ranks != 0 && hasCellForEach(n, ranks) {
			mean := float64(n) / float64(ranks)
			less, more = min(less, math.Floor(mean)/mean), max(more, math.Ceil(mean)/mean)
		}
	}
	return less, more
}
