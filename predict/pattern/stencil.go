package pattern

import "slices"

// A stencil goes to both neighbours along every axis of a grid. On an axis of two ranks both are the same rank, so that
// the stencil has two equal communications there. On a grid with fewer axes, which has the axes that are longer than
// two and joins others, nothing explains why there are two: so they tell the grids apart.

// stencils are those that a program may have, see findStencils.
type stencils []stencil

// stencil is slots that may together be a stencil, and what they do on each class of grids.
type stencil struct {
	classes []*class
	ways    [][]directions // per class and slot
	// every means that it is one only where all slots send to neighbours.
	every bool
}

// findStencils returns the slots of each site, if each slot has a law of its own, and the slots of all sites with one
// each, of which one side of each message counts: one whose sizes are known. searched has the forms of each unit on all
// grids, others the other sides of messages.
func findStencils(units []*unit, classes []*class, searched map[*unit][][]Form, others map[*unit]*unit) (all stencils) {
	sites := map[string][]*unit{}
	for _, u := range units {
		sites[u.site] = append(sites[u.site], u)
	}
	lines := map[*unit]bool{}
	var inOrder []*unit
	for _, u := range units {
		switch of := sites[u.site]; {
		case len(of) > 1 && of[0] == u:
			all = append(all, stencilOf(of, classes, searched, true))
		case len(of) == 1 && others[u] != nil && !lines[others[u]] && u.slots[0].Bytes != nil:
			lines[u] = true
			inOrder = append(inOrder, u)
		}
	}
	return append(all, stencilOf(inOrder, classes, searched, false))
}

// stencilOf returns the stencil of some units.
func stencilOf(units []*unit, classes []*class, searched map[*unit][][]Form, every bool) stencil {
	s := stencil{classes: classes, ways: make([][]directions, len(classes)), every: every}
	for i := range classes {
		for _, u := range units {
			s.ways[i] = append(s.ways[i], u.directionsOn(searched[u], i))
		}
	}
	return s
}

// shows reports whether a stencil is whole on one class of grids and has slots there that do not send to neighbours on
// another one, and none the other way round.
func (all stencils) shows(class, other int) bool {
	isShown := func(class, other int) bool {
		return slices.ContainsFunc(all, func(s stencil) bool { return s.isWhole(class) && s.isFarther(class, other) })
	}
	return isShown(class, other) && !isShown(other, class)
}

// isFarther reports whether a slot that sends to neighbours on a class of grids does not on another one.
func (s stencil) isFarther(class, other int) bool {
	for u, d := range s.ways[class] {
		if d.near && !s.ways[other][u].near {
			return true
		}
	}
	return false
}

// leastLonger is the number of axes that must be longer than two ranks in a run. Beside one alone, pairs of equal
// messages to the ranks of a group, such as r^1 and r^2 in groups of four, look the same as both directions along axes
// of two.
const leastLonger = 2

// isWhole reports whether slots send in both directions along each axis of a class, equally many along each, and enough
// axes are longer than two ranks in a run.
func (s stencil) isWhole(class int) bool {
	ways := s.ways[class]
	if s.every && slices.ContainsFunc(ways, func(d directions) bool { return !d.near }) {
		return false
	}
	longAxes, each := 0, 0
	for axis := range s.classes[class].dims[0] {
		var along []directions
		for _, d := range ways {
			if d.near && d.axis == axis {
				along = append(along, d)
			}
		}
		if axis == 0 {
			each = len(along)
		}
		longer := slices.ContainsFunc(s.classes[class].dims, func(dims []int32) bool { return dims[axis] > 2 })
		if len(along) != each || !areBothWays(along) || !longer && !arePairs(along) {
			return false
		}
		if longer {
			longAxes++
		}
	}
	return longAxes >= leastLonger
}

// areBothWays reports whether slots along an axis send in both directions.
func areBothWays(along []directions) bool {
	return len(along) > 1 && slices.ContainsFunc(along, func(d directions) bool { return d.plus }) &&
		slices.ContainsFunc(along, func(d directions) bool { return d.minus })
}

// arePairs reports whether slots are pairs with messages of equal sizes, as both directions of a stencil have: a header
// and its data are none.
func arePairs(along []directions) bool {
	for _, d := range along {
		equal := 0
		for _, o := range along {
			if slices.Equal(d.bytes, o.bytes) {
				equal++
			}
		}
		if d.bytes == nil || equal%2 != 0 {
			return false
		}
	}
	return true
}

// directions are those in which a slot may send to neighbours along one axis of a grid.
type directions struct {
	near        bool // it goes no farther than one along any axis
	axis        int  // -1: several axes, or none
	plus, minus bool
	bytes       []int64 // Slot.Bytes
}

// directionsOn returns the directions of a slot on a class of grids; all has its forms by class.
func (u *unit) directionsOn(all [][]Form, class int) directions {
	d := directions{axis: -1}
	if len(u.slots) > 1 {
		return d
	}
	d.bytes = u.slots[0].Bytes
	for _, f := range all[class] {
		if !f.isNear() {
			continue
		}
		d.near = true
		if m, along := f.move(); along {
			d.axis = m.axis
			d.plus, d.minus = d.plus || !m.negative, d.minus || m.negative
		}
	}
	return d
}

// isNear reports whether the form goes no farther than one along any axis.
func (f Form) isNear() bool {
	if f.Bits != NoBits || len(f.Listed) > 0 {
		return false
	}
	for a, r := range f.Rules {
		n := r.N
		n.Negative = false
		isStep := (r.Op == Shift || r.Op == Wrap) && n == literal(1)
		if r.From != a || r.Op != Keep && !isStep {
			return false
		}
	}
	return true
}
