package pattern

import "slices"

// Programs that cut a box of another shape than a cube choose, as those that cut a cube, the grid whose parts have the
// smallest surface. Some box fits many runs, so such grids give no laws of their own. They are rivals of others, or the
// reason why what others say is not known.

// sidesTried are the proportions of the sides of boxes that are tried, of which the shortest is the first.
var sidesTried = []int64{2, 3, 4, 6, 8}

// longestSide is the longest side of a box of a grid: longer ones are scaled down, so that surfaces are whole numbers.
const longestSide = 1 << 15

// BoxesOf returns the grids of least surface of a box with some positive cells along the axes: of grids with equal
// surfaces the one with the fewest ranks along the first axis, and the one with the fewest along the last.
func BoxesOf(cells []int64) (all []Grid) {
	common, scale := int64(0), int64(1)
	for _, n := range cells {
		common = gcd(common, n)
	}
	for slices.Max(cells)/common/scale > longestSide {
		scale *= 2
	}
	sides := make([]int32, len(cells))
	for a, n := range cells {
		sides[a] = int32(max(n/common/scale, 1))
	}
	up := make([]int, len(sides))
	for i := range up {
		up[i] = i
	}
	down, back := slices.Clone(up), slices.Clone(sides)
	slices.Reverse(down)
	slices.Reverse(back)
	return []Grid{
		{Shape: Boxed, Axes: len(sides), Order: up, Sides: sides},
		{Shape: Boxed, Axes: len(sides), Order: down, Sides: back},
	}
}

// AddAlike adds a grid to the i-th of Grids, which has the same extents in all runs, and to all forms on these.
func (p *Program) AddAlike(i int, grid Grid) {
	first := p.Grids[i][0]
	p.Grids[i] = append(slices.Clone(p.Grids[i]), grid)
	for k := range p.Laws {
		for f := range p.Laws[k].Forms {
			form := &p.Laws[k].Forms[f]
			if len(form.Grids) > 0 && sameGrid(form.Grids[0], first) {
				form.Grids = append(slices.Clone(form.Grids), grid)
			}
		}
	}
}

// boxes returns the grids of least surface of boxes of two and three sides.
func boxes() (all []Grid) {
	for _, axes := range []int{2, 3} {
		var add func(sides []int64)
		add = func(sides []int64) {
			switch {
			case len(sides) < axes:
				for _, s := range sidesTried {
					add(append(slices.Clone(sides), s))
				}
			case slices.Min(sides) == sidesTried[0]:
				all = append(all, BoxesOf(sides)...)
			}
		}
		add(nil)
	}
	return all
}

// leastSurface returns the extents that cut a box into parts of the least surface. Of several with equal surfaces it
// takes the one with the fewest ranks along the first axis. It returns nil if sides are not those of a box.
func leastSurface(ranks int32, sides []int32) []int32 {
	if len(sides) == 0 || len(sides) > 3 || slices.Min(sides) < 1 || slices.Max(sides) > longestSide {
		return nil
	}
	var least []int32
	cost, all := int64(0), divisors(ranks)
	var try func(left int32, dims []int32)
	try = func(left int32, dims []int32) {
		if len(dims) == len(sides)-1 {
			dims = append(dims, left)
			// The surface is proportional to the sum of extent over side: multiplied by all sides it is whole.
			c := int64(0)
			for a := range dims {
				x := int64(dims[a])
				for b, s := range sides {
					if b != a {
						x *= int64(s)
					}
				}
				c += x
			}
			if least == nil || c < cost {
				least, cost = slices.Clone(dims), c
			}
			return
		}
		for _, f := range all {
			if left%f == 0 {
				try(left/f, append(dims, f))
			}
		}
	}
	try(ranks, make([]int32, 0, len(sides)))
	return least
}

// divisors returns the divisors of a number, ascending.
func divisors(n int32) (all []int32) {
	var large []int32
	for f := int32(1); int64(f)*int64(f) <= int64(n); f++ {
		if n%f != 0 {
			continue
		}
		if all = append(all, f); f != n/f {
			large = append(large, n/f)
		}
	}
	slices.Reverse(large)
	return append(all, large...)
}

// Shares of messages from which on they may be those of a box: the share of all messages that have no law, and the
// share of these that go to neighbours on a grid of a box.
const (
	leastMissing = 0.25
	leastNear    = 0.5
)

// mayBeOfBox reports whether most messages without a law go to neighbours on a grid of a box that is no usual one,
// along two axes or more: a single distance that changes with the number of ranks may fit one by chance.
func mayBeOfBox(slots []Slot, without []Unexplained, sizes []int32) bool {
	missing := map[string]bool{}
	for _, u := range without {
		missing[u.Slot] = true
	}
	all, left := 0, 0
	var of []*Slot
	for i := range slots {
		n := slots[i].messages()
		if all += n; missing[slots[i].Name] {
			of, left = append(of, &slots[i]), left+n
		}
	}
	if left == 0 || float64(left) < leastMissing*float64(all) {
		return false
	}
	usual := classes(sizes)
	return slices.ContainsFunc(classesOf(boxes(), sizes), func(c *class) bool {
		if slices.ContainsFunc(usual, func(o *class) bool { return slices.EqualFunc(o.dims, c.dims, slices.Equal) }) {
			return false
		}
		near, along := 0, map[int]bool{}
		for _, s := range of {
			if axis, is := c.neighbourAxis(s, sizes); is {
				near += s.messages()
				along[axis] = true
			}
		}
		return len(along) > 1 && float64(near) > leastNear*float64(left)
	})
}

// simplest is the cost in bits up to which a law on the line of ranks is none that another grid may look like.
const simplest = 4

// dropGrids drops the laws on grids of several axes, those on the line that are not among the simplest, and those of
// messages to oneself, which may be along an axis of one rank; and says why.
func (p *Program) dropGrids(slots []Slot, why string) {
	messages := map[string]bool{}
	for _, s := range slots {
		messages[s.Name] = len(s.Bytes) > 0
	}
	p.Grids = nil
	p.Laws = slices.DeleteFunc(p.Laws, func(l Law) bool {
		if len(l.Forms) == 0 || len(l.Forms[0].Grids) == 0 {
			return false
		}
		f := &l.Forms[0]
		toSelf := messages[l.Members[0].Slot] && !slices.ContainsFunc(f.Rules, func(r Rule) bool { return r.moves(0) })
		if f.Grids[0].Axes < 2 && f.Cost <= simplest && !toSelf {
			return false
		}
		for _, m := range l.Members {
			p.Unexplained = append(p.Unexplained, Unexplained{m.Slot, why})
		}
		return true
	})
}

// messages returns the number of messages of all runs.
func (s *Slot) messages() (n int) {
	for _, m := range s.Runs {
		n += m.senders()
	}
	return n
}

// neighbourAxis returns the axis along which all messages of a slot go to the next rank in one direction, on a torus.
func (c *class) neighbourAxis(s *Slot, sizes []int32) (axis int, is bool) {
	axis = -1
	step := int32(0) // 0 until a run has more than two ranks along the axis: both directions lead to the other one
	for _, m := range s.Runs {
		size := slices.Index(sizes, m.Ranks)
		dims, all := c.dims[size], c.coordsOf(size)
		k := len(dims)
		for r, to := range m.Dst {
			if to == None || int(to) == r && slices.Contains(dims, 1) { // along an axis of one rank
				continue
			}
			a, by := singleMove(all[r*k:(r+1)*k], all[int(to)*k:(int(to)+1)*k], dims)
			if axis < 0 {
				axis = a
			}
			if dims[max(a, 0)] == 2 {
				by = step
			} else if step == 0 {
				step = by
			}
			if a < 0 || a != axis || by != step || by < -1 || by > 1 {
				return 0, false
			}
		}
	}
	return axis, axis >= 0
}

// singleMove returns the axis along which two places differ and by how much, the shorter way on a torus; -1 if they are
// equal or differ along several.
func singleMove(from, to, dims []int32) (axis int, by int32) {
	axis = -1
	for a, g := range dims {
		d := mod(to[a]-from[a], g)
		switch {
		case d == 0:
		case axis >= 0:
			return -1, 0
		case 2*d > g:
			axis, by = a, d-g
		default:
			axis, by = a, d
		}
	}
	return axis, by
}
