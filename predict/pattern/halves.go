package pattern

import (
	"fmt"
	"slices"
)

// Half of all ranks is also the part of them that an axis of two ranks divides off. What is done only in runs in
// which such an axis has two ranks, and not in those in which it has one, may be done by all of its coordinates but
// the last: on more ranks along it that is no half.

// halvedBy returns the grids of which the slowest axis has two ranks in the runs in which slots of the unit occur,
// and one in the others, if the law or its ranges have a half of all ranks and the slots do not occur in all runs; or
// two ranks in all runs, if the law is of one of the two columns of a grid that has always two.
func (u *unit) halvedBy(l *Law, classes []*class) (grids []Grid) {
	occurs := map[int]bool{}
	for _, o := range u.obs {
		occurs[o.size] = true
	}
	if l.isOfColumn() {
		for i := range l.Training {
			occurs[i] = true
		}
	} else if len(occurs) == len(l.Training) || !l.hasHalf() {
		return nil
	}
	for _, c := range classes {
		last := len(c.dims[0]) - 1
		matches := last > 0
		for i, d := range c.dims {
			matches = matches && (d[last] == 2) == occurs[i] && d[last] <= 2
		}
		if matches {
			grids = append(grids, c.grids...)
		}
	}
	return grids
}

// hasHalf reports whether the simplest form, or where the index ends, is by a half of all ranks.
func (l *Law) hasHalf() bool {
	for _, r := range l.Ranges {
		if slices.ContainsFunc(r.High, func(b Bound) bool { return b.Of == FromHalf && b.Grid == nil }) {
			return true
		}
	}
	f := l.Forms[0]
	return len(f.Rules) == 1 && (f.Rules[0].N.isHalf() || f.Rules[0].Guard.N.isHalf())
}

// isOfColumn reports whether the simplest form is for one of the halves of all ranks, as the slowest axis of its grid
// has two ranks on any number of them.
func (l *Law) isOfColumn() bool {
	f := l.Forms[0]
	if len(f.Rules) < 2 || f.Grids[0].Shape != Columns || f.Grids[0].Fixed != 2 {
		return false
	}
	last := len(f.Rules) - 1
	return f.Grids[0].IsFixed(last) && f.Rules[last].Guard.Kind != All
}

// isHalf reports whether the number is half of the extent.
func (n Number) isHalf() bool {
	return n.B == 0 && (n.Kind == Divided && n.C == 1 || n.Kind == Power && n.Log != NoLog && n.C == -1)
}

// divided returns how an axis of two ranks in the runs has another number of them, "" if it has not.
func (l *Law) divided(ranks int32) string {
	for _, g := range l.Halved {
		if dims, ok := g.Dims(ranks); ok && dims[len(dims)-1] != 2 {
			return fmt.Sprintf("half of all ranks, or those but the last of an axis that has %d there, as on a %s",
				dims[len(dims)-1], g)
		}
	}
	return ""
}

// AxisHalf is an axis of a grid that has two ranks in all runs, and the coordinate of all that send.
type AxisHalf struct {
	Grid *Grid `json:"grid"`
	Axis int   `json:"axis"`
	At   int32 `json:"at"`
}

// impliedHalves returns the axes of grids that the runs do not rule out, of two ranks in all runs, of which one half
// does all that a law of the line has: as the leaves of a binomial tree are the odd ranks, only the first ranks of
// the fast axis send in it. A guard on such an axis, as "not the last", changes nothing in the runs.
func (u *unit) impliedHalves(l *Law, possible []Grid) (all []AxisHalf) {
	if len(l.Forms[0].Rules) != 1 {
		return nil
	}
	for i := range possible {
		for a := range possible[i].Axes {
			if at, ok := u.halfOf(&possible[i], a, l.Training); ok {
				all = append(all, AxisHalf{&possible[i], a, at})
			}
		}
	}
	return all
}

// halfOf returns the coordinate on an axis, which has two ranks in all runs, of all ranks that send; false if there is
// none.
func (u *unit) halfOf(grid *Grid, axis int, sizes []int32) (at int32, is bool) {
	for _, p := range sizes {
		if dims, ok := grid.Dims(p); !ok || dims[axis] != 2 {
			return 0, false
		}
	}
	at = None
	for _, o := range u.obs {
		dims, _ := grid.Dims(o.m.Ranks)
		for r, dst := range o.m.Dst {
			switch x := coords(dims, int32(r))[axis]; {
			case dst == None:
			case at == None:
				at = x
			case x != at:
				return 0, false
			}
		}
	}
	return at, at != None
}

// guarded returns which guard the runs cannot show that would keep ranks of a map from sending, "" if there is none.
func (l *Law) guarded(m *Map) string {
	for _, h := range l.Implied {
		dims, ok := h.Grid.Dims(m.Ranks)
		if !ok || dims[h.Axis] <= 2 {
			continue
		}
		only, name := int32(0), "first"
		if h.At > 0 {
			only, name = dims[h.Axis]-1, "last"
		}
		for r := range m.Ranks {
			if _, sends := m.Dst(r); sends && coords(dims, r)[h.Axis] != only {
				return fmt.Sprintf("in all runs those that take part are the %s of an axis of two ranks, which has %d there, "+
					"as on a %s", name, dims[h.Axis], h.Grid)
			}
		}
	}
	return ""
}
