package pattern

import (
	"slices"
)

// shape is a rule without its sign and axis. Rules for sibling axes have the same shape.
type shape struct {
	op    Op
	n     Number
	guard Guard
}

// shapes returns the shapes of a form's rules, except those that change nothing.
func (f Form) shapes() []shape {
	var out []shape
	for a, r := range f.Rules {
		if r.Op == Keep && r.From == a && r.Guard.Kind == All {
			continue
		}
		s := r.shape()
		out = append(out, s)
	}
	return out
}

// shape returns the shape of the rule.
func (r Rule) shape() shape {
	s := shape{op: r.Op, n: r.N.shape(), guard: r.Guard}
	s.guard.N = r.Guard.N.shape()
	return s
}

// shape returns the number without its sign and, if it is a power, without its exponent: sites count their levels from
// different ends.
func (n Number) shape() Number {
	n.Negative = false
	if n.Kind == Power {
		n.B, n.C, n.Component = 0, 0, 0
	}
	return n
}

// shape returns the guard with the shape of its number.
func (g Guard) shape() Guard {
	g = g.floored()
	g.N = g.N.shape()
	return g
}

// floored returns the guard with floor instead of ceil, which are equal on extents that are powers of two.
func (g Guard) floored() Guard {
	if g.N.Log == CeilLog {
		g.N.Log = FloorLog
	}
	return g
}

// moves reports whether the rule of axis a changes the coordinate.
func (r Rule) moves(a int) bool { return r.Op != Keep || r.From != a }

// preferSharedShapes makes forms cheaper if all their shapes occur in laws of units that have other observations and
// leave no choice.
func preferSharedShapes(units []*unit) {
	const discount = 4
	decided := map[shape][]string{} // keys of the units whose forms all have the shape
	for _, u := range units {
		for _, s := range u.pool[0].shapes() {
			if !slices.Contains(decided[s], u.seen) &&
				!slices.ContainsFunc(u.pool, func(o Form) bool { return !slices.Contains(o.shapes(), s) }) {
				decided[s] = append(decided[s], u.seen)
			}
		}
	}
	for _, u := range units {
		if len(u.pool) < 2 {
			continue
		}
		lacks := func(s shape) bool {
			return !slices.ContainsFunc(decided[s], func(seen string) bool { return seen != u.seen })
		}
		for i := range u.pool {
			shapes := u.pool[i].shapes()
			if len(shapes) == 0 || slices.ContainsFunc(shapes, lacks) {
				continue
			}
			u.pool[i].Cost -= discount
			if u.pool[i].joint {
				u.pool[i].Cost -= discount
			}
		}
		u.pool = cheapest(u.pool)
	}
}

// markShortAxes marks the axes along which a form moves though no run has more than two ranks there, unless a longer
// axis shows the same shape in enoughSigns directions of call sites: two ranks do not tell whether x becomes x+1, the
// other one, or the even one before it. For a site with a single law only other such sites count: it may loop over its
// axis, and a site with a law for each direction tells nothing about that.
func markShortAxes(units []*unit) {
	type kind struct {
		shape    shape
		isSingle bool // the site has no other law
	}
	type way struct {
		kind
		axis int
	}
	type direction struct {
		way
		site     string
		negative bool
	}
	laws := map[string]int{}
	for _, u := range units {
		laws[u.site]++
	}
	counted, onAxis := map[direction]bool{}, map[way]int{}
	shown := map[kind]int{} // the most directions of sites on one axis
	for _, u := range units {
		for a, r := range u.pool[0].Rules {
			if r.moves(a) && u.longest(u.pool[0], a) > 2 &&
				!slices.ContainsFunc(u.pool, func(o Form) bool { return !slices.Contains(o.shapes(), r.shape()) }) {
				kinds := []kind{{r.shape(), false}}
				if laws[u.site] == 1 {
					kinds = append(kinds, kind{r.shape(), true})
				}
				for _, k := range kinds {
					w := way{k, a}
					if d := (direction{w, u.site, r.N.Negative}); !counted[d] {
						counted[d] = true
						onAxis[w]++
						shown[k] = max(shown[k], onAxis[w])
					}
				}
			}
		}
	}
	for _, u := range units {
		for i := range u.pool {
			for a, r := range u.pool[i].Rules {
				if !r.moves(a) || u.longest(u.pool[i], a) > 2 {
					continue
				}
				if shown[kind{r.shape(), laws[u.site] == 1}] >= enoughSigns {
					u.borrowed = true
				} else {
					u.pool[i].Short = append(u.pool[i].Short, a)
				}
			}
		}
	}
}

// narrowExtent is the largest extent on which a guard that takes or leaves out one inner coordinate, as y = 1, cannot
// be told from a parity that leaves out an end: 1 is the only odd coordinate before the last one.
const narrowExtent = 4

// markNarrowGuards marks the axes on which a guard names a coordinate, or has a bit for each of two indexes, and no
// run has more than narrowExtent ranks.
func markNarrowGuards(units []*unit) {
	for _, u := range units {
		for i := range u.pool {
			f := &u.pool[i]
			for a := range f.Rules {
				if u.longest(*f, a) <= narrowExtent && (u.namesCoordinate(*f, a) || u.hasTwoLevels(*f, a)) {
					f.Narrow = append(f.Narrow, a)
				}
			}
		}
	}
}

// namesCoordinate reports whether the guard on an axis takes or leaves out a single inner coordinate in an observation
// with the longest extent, whatever the guard is: y mod 4 = 2 is y = 2 on four ranks.
func (u *unit) namesCoordinate(f Form, axis int) bool {
	r, longest := f.Rules[axis], u.longest(f, axis)
	for _, o := range u.obs {
		dims, ok := f.Grids[0].Dims(o.m.Ranks)
		if !ok || dims[axis] != longest {
			continue
		}
		var in, out []int32
		root, n := r.Root.Value(longest, o.index), r.Guard.N.Value(longest, o.index)
		for x := range longest {
			if holds(r.Guard.Kind, n, r.Guard.Offset, mod(x-root, longest), longest) {
				in = append(in, x)
			} else {
				out = append(out, x)
			}
		}
		for _, some := range [][]int32{in, out} {
			if len(some) == 1 && some[0] > 0 && some[0] < longest-1 {
				return true
			}
		}
	}
	return false
}

// hasTwoLevels reports whether the guard on an axis depends on a power of a component of the index that has only two
// values: they are levels of a hierarchy, or just two steps.
func (u *unit) hasTwoLevels(f Form, axis int) bool {
	n := f.Rules[axis].Guard.N
	if n.Kind != Power || n.B == 0 {
		return false
	}
	values := map[int32]bool{}
	for _, s := range u.slots {
		values[s.Index[n.Component]] = true
	}
	return len(values) <= 2
}

// longest returns the longest extent of an axis of a form's grid in the unit's runs.
func (u *unit) longest(o Form, a int) int32 {
	longest := int32(0)
	for _, s := range u.obs {
		if dims, ok := o.Grids[0].Dims(s.m.Ranks); ok {
			longest = max(longest, dims[a])
		}
	}
	return longest
}
