package pattern

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Shape is a rule that determines the extents of a process grid from the process count.
type Shape string

// The shapes of grids. All extents multiply to the process count.
const (
	Line  Shape = "line"  // one axis
	Cubic Shape = "cubic" // k equal extents: squares and cubes only
	Deal  Shape = "deal"  // powers of two: the bits of the count are dealt to the axes in turn
	// prime factors, largest first, each to the smallest extent (Open MPI's MPI_Dims_create)
	Greedy Shape = "greedy"
	// smallest difference of largest and smallest extent (MPICH's MPI_Dims_create, largest divisor up to the root)
	Balanced Shape = "balanced"
	Cascade  Shape = "cascade" // largest divisor up to the k-th root, then the same for the rest
	Compact  Shape = "compact" // smallest surface of a box cut by the grid
	Boxed    Shape = "boxed"   // smallest surface of a box with sides in given proportions
	Columns  Shape = "columns" // one extent fixed, the rest on the grid Rest
)

// Grid is a law that arranges ranks in a Cartesian grid for any process count that it is defined for. Axis 0 varies
// fastest with the rank; a row-major MPI_Cart_create has its last dimension there.
type Grid struct {
	Shape Shape `json:"shape"`
	// Axes is the number of extents.
	Axes int `json:"axes"`
	// Order is the number of the shape's extent for each axis. Extent i of Deal gets bit i, i+Axes, ... of the
	// process count's exponent. The extents of Cascade are in the order in which they are found, those of Columns
	// have the fixed one first, and others are ascending. Boxed has the extents of its sides, and of several grids with
	// equal surfaces that with the smallest extents in this order.
	Order []int `json:"order"`
	// Fixed is the fixed extent of Columns, else 0.
	Fixed int32 `json:"fixed,omitempty"`
	// Sides are the proportions of the sides of Boxed, in the order of Order, else nil.
	Sides []int32 `json:"sides,omitempty"`
	// Rest is the grid of the other axes of Columns, else nil.
	Rest *Grid `json:"rest,omitempty"`
}

// Dims returns the grid's extents for a process count, axis 0 first, and false when the law has none for it.
func (g Grid) Dims(ranks int32) ([]int32, bool) {
	if ranks < 1 {
		return nil, false
	}
	var e []int32
	switch g.Shape {
	case Line:
		e = []int32{ranks}
	case Cubic:
		e = cubic(ranks, g.Axes)
	case Deal:
		e = deal(ranks, g.Axes)
	case Greedy:
		e = greedy(ranks, g.Axes)
	case Balanced:
		e = best(ranks, g.Axes, func(d []int32) float64 { return float64(d[len(d)-1] - d[0]) })
	case Compact:
		e = best(ranks, g.Axes, surface)
	case Boxed:
		if len(g.Sides) == len(g.Order) {
			e = leastSurface(ranks, g.Sides)
		}
	case Cascade:
		e = cascade(ranks, g.Axes)
	case Columns:
		if ranks%g.Fixed == 0 {
			if rest, ok := g.Rest.Dims(ranks / g.Fixed); ok {
				e = append([]int32{g.Fixed}, rest...)
			}
		}
	}
	if e == nil {
		return nil, false
	}
	dims := make([]int32, len(e))
	for a, o := range g.Order {
		dims[a] = e[o]
	}
	return dims, true
}

// Coords returns the rank's place on the grid, axis 0 first, and false when the law has no grid for the count.
func (g Grid) Coords(ranks, rank int32) ([]int32, bool) {
	dims, ok := g.Dims(ranks)
	if !ok {
		return nil, false
	}
	return coords(dims, rank), true
}

func coords(dims []int32, rank int32) []int32 {
	c := make([]int32, len(dims))
	for a, d := range dims {
		c[a] = rank % d
		rank /= d
	}
	return c
}

// Extents predicts the extents of a process grid at a rank count from those at others. ok is false unless there are
// grid laws with these extents, and all of them agree.
func Extents(seen map[int32][]int32, ranks int32) (dims []int32, ok bool) {
	var sizes []int32
	for p := range seen {
		sizes = append(sizes, p)
	}
	slices.Sort(sizes)
	if len(sizes) < 2 {
		return nil, false
	}
	var laws, usual []Grid
	for _, g := range grids(sizes) {
		if slices.ContainsFunc(sizes, func(p int32) bool {
			d, ok := g.Dims(p)
			return !ok ||
				!slices.Equal(d, seen[p])
		}) {
			continue
		}
		if laws = append(laws, g); !g.unusual() {
			usual = append(usual, g)
		}
	}
	if len(usual) > 0 {
		laws = usual
	}
	for i, g := range laws {
		d, has := g.Dims(ranks)
		if !has || i > 0 && !slices.Equal(d, dims) {
			return nil, false
		}
		dims = d
	}
	return dims, len(laws) > 0
}

// Layouts returns the different extents that grid laws have at numbers of ranks, those with the fewest axes first:
// for each layout and number of ranks the extents, the one first that varies fastest with the rank.
func Layouts(sizes []int32) (all [][][]int32) {
	for _, c := range classes(sizes) {
		all = append(all, c.dims)
	}
	return all
}

// GridOn is the extents of a grid on a number of ranks.
type GridOn struct {
	// Ranks is the number of ranks.
	Ranks int32 `json:"ranks"`
	// Extents are the numbers of ranks along the axes, the one first that varies fastest with the rank.
	Extents []int32 `json:"extents"`
}

// String formats the extents: "2 x 4".
func (g GridOn) String() string {
	parts := make([]string, len(g.Extents))
	for a, e := range g.Extents {
		parts[a] = fmt.Sprint(e)
	}
	return strings.Join(parts, " x ")
}

// FirstDifference returns the different extents that grid laws have at the smallest process count above some other one
// at which all have some and they differ; nil if there is none up to 16 times as many ranks.
func FirstDifference(laws []Grid, above int32) []GridOn {
	const most = 16
	for ranks := above + 1; ranks <= most*above; ranks++ {
		var different []GridOn
		defined := 0
		for _, g := range laws {
			dims, ok := g.Dims(ranks)
			if !ok {
				break
			}
			defined++
			if !slices.ContainsFunc(different, func(o GridOn) bool { return slices.Equal(o.Extents, dims) }) {
				different = append(different, GridOn{ranks, dims})
			}
		}
		if defined == len(laws) && len(different) > 1 {
			return different
		}
	}
	return nil
}

// Domain describes the process counts for which the law has a grid: "any", "powers of two", ...
func (g Grid) Domain() string {
	switch g.Shape {
	case Cubic:
		return map[int]string{2: "squares", 3: "cubes"}[g.Axes]
	case Deal:
		return "powers of two"
	case Columns:
		if d := g.Rest.Domain(); d != "any" {
			return fmt.Sprintf("%d times %s", g.Fixed, d)
		}
		return fmt.Sprintf("multiples of %d", g.Fixed)
	}
	return "any"
}

// String formats the law: "q x q grid", "2^ceil(n/2) x 2^floor(n/2) grid", ...
func (g Grid) String() string {
	switch g.Shape {
	case Line:
		return "line of P"
	case Cubic:
		return strings.Join(slices.Repeat([]string{"q"}, g.Axes), " x ") + " grid"
	case Deal:
		parts := make([]string, g.Axes)
		for a, o := range g.Order {
			// Extent o gets the bits i of n = log2 P with i mod Axes = o.
			parts[a] = fmt.Sprintf("2^floor((n+%d)/%d)", g.Axes-1-o, g.Axes)
		}
		if g.Axes == 2 {
			parts = []string{"2^ceil(n/2)", "2^floor(n/2)"}
			if g.Order[0] == 1 {
				slices.Reverse(parts)
			}
		}
		return strings.Join(parts, " x ") + " grid"
	case Columns:
		names := make([]string, len(g.Order))
		for a, o := range g.Order {
			names[a] = fmt.Sprint(g.Fixed)
			if o > 0 {
				names[a] = "."
				if g.Axes == 2 {
					names[a] = fmt.Sprintf("P/%d", g.Fixed)
				}
			}
		}
		if g.Axes == 2 {
			return strings.Join(names, " x ") + " grid"
		}
		return fmt.Sprintf("%s grid with %s of P/%d in the other axes", strings.Join(names, " x "), g.Rest, g.Fixed)
	}
	order := "ascending"
	if !slices.IsSorted(g.Order) {
		order = "descending"
		if !slices.IsSortedFunc(g.Order, func(a, b int) int { return b - a }) {
			order = fmt.Sprintf("in order %v", g.Order)
		}
	}
	if g.Shape == Boxed {
		sides := make([]string, g.Axes)
		for a, o := range g.Order {
			sides[a] = fmt.Sprint(g.Sides[o])
		}
		text := fmt.Sprintf("%d-D grid of least surface for a box of %s", g.Axes, strings.Join(sides, " x "))
		if !slices.IsSorted(g.Order) {
			text += ", of equal ones that with fewest ranks along the last axis"
		}
		return text
	}
	if g.Shape == Cascade {
		order = fmt.Sprintf("in order %v", g.Order)
	}
	return fmt.Sprintf("%s %d-D grid, extents %s", g.Shape, g.Axes, order)
}

// IsFixed reports whether an axis has the same extent on any number of ranks.
func (g Grid) IsFixed(axis int) bool { return g.Shape == Columns && g.Order[axis] == 0 }

// unusual reports whether the grid has a fixed extent in addition to a plane.
func (g Grid) unusual() bool { return g.Shape == Columns && g.Axes > 2 }

func sameGrid(a, b Grid) bool {
	return a.Shape == b.Shape && a.Axes == b.Axes && a.Fixed == b.Fixed && slices.Equal(a.Order, b.Order) &&
		slices.Equal(a.Sides, b.Sides) &&
		(a.Rest == nil) == (b.Rest == nil) && (a.Rest == nil || sameGrid(*a.Rest, *b.Rest))
}

// root returns floor(n^(1/k)).
func root(n int32, k int) int32 {
	r := int32(math.Round(math.Pow(float64(n), 1/float64(k))))
	for power(r, k) > int64(n) {
		r--
	}
	for power(r+1, k) <= int64(n) {
		r++
	}
	return r
}

func power(b int32, k int) int64 {
	p := int64(1)
	for range k {
		p *= int64(b)
	}
	return p
}

func cubic(ranks int32, axes int) []int32 {
	q := root(ranks, axes)
	if power(q, axes) != int64(ranks) {
		return nil
	}
	return slices.Repeat([]int32{q}, axes)
}

func deal(ranks int32, axes int) []int32 {
	if !powerOfTwo(ranks) {
		return nil
	}
	e := make([]int32, axes)
	for i := range e {
		e[i] = 1 << ((log2(ranks) + int32(axes-1-i)) / int32(axes))
	}
	return e
}

// greedy implements the algorithm of Open MPI: assignnodes in ompi/mpi/c/dims_create.c.
func greedy(ranks int32, axes int) []int32 {
	var primes []int32
	for n, f := ranks, int32(2); n > 1; f++ {
		if int64(f)*int64(f) > int64(n) {
			f = n
		}
		for ; n%f == 0; n /= f {
			primes = append(primes, f)
		}
	}
	e := slices.Repeat([]int32{1}, axes)
	for _, f := range slices.Backward(primes) {
		at := 0
		for i := range e {
			if e[i] < e[at] {
				at = i
			}
		}
		e[at] *= f
	}
	slices.Sort(e)
	return e
}

// cascade takes the largest divisor up to the root for one axis after the other.
func cascade(ranks int32, axes int) []int32 {
	e := make([]int32, 0, axes)
	for k := axes; k > 1; k-- {
		d := root(ranks, k)
		for ranks%d != 0 {
			d--
		}
		e = append(e, d)
		ranks /= d
	}
	return append(e, ranks)
}

// surface returns the sum of the extents, to which the surface of a part of a cube is proportional.
func surface(d []int32) float64 {
	s := 0.0
	for _, e := range d {
		s += float64(e)
	}
	return s
}

// best returns the ascending factorisation of least cost, and the one with the smallest extents among equals.
func best(ranks int32, axes int, cost func([]int32) float64) []int32 {
	var out []int32
	least := math.Inf(1)
	var try func(n, from int32, d []int32)
	try = func(n, from int32, d []int32) {
		if len(d) == axes-1 {
			if n >= from {
				full := append(slices.Clone(d), n)
				if c := cost(full); c < least {
					least, out = c, full
				}
			}
			return
		}
		for f := from; power(f, axes-len(d)) <= int64(n); f++ {
			if n%f == 0 {
				try(n/f, f, append(d, f))
			}
		}
	}
	try(ranks, 1, nil)
	return out
}
