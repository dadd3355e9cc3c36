package pattern

import (
	"maps"
	"math"
	"slices"
)

// enough is the number of ends that tell laws of ends apart.
const enough = 3

// enoughEnds reports whether an index ends in enough different ways to tell a loop over an extent from one over its
// logarithm.
func enoughEnds(seen map[int]int32) bool {
	return len(slices.Compact(slices.Sorted(maps.Values(seen)))) >= enough
}

// dropRoundedLogarithms drops those laws of the largest value that count up to a logarithm which has to be rounded on
// some number of ranks, if the index also counts up to the extent of an axis along which messages go, and is no
// exponent: on 4, 9 and 16 ranks floor(log2 P) is the edge of the square, too.
func (r *Range) dropRoundedLogarithms(form *Form, sizes []int32, seen map[int]int32) {
	if len(seen) < len(sizes) { // a run in which no rank sends ends before the others
		seen = maps.Clone(seen)
		seen[len(sizes)] = math.MinInt32
	}
	if form.exponential() || !enoughEnds(seen) {
		return
	}
	if slices.ContainsFunc(r.High, func(b Bound) bool { return b.isAlong(form) }) {
		r.High = slices.DeleteFunc(slices.Clone(r.High),
			func(b Bound) bool { return (b.Of == FromFloor || b.Of == FromCeil) && b.isRounded(sizes) })
	}
}

// addPossibleEnds adds laws of where an index ends that grows with the runs: loops over an extent of a grid that the
// runs do not rule out, or, if no peer depends on the index, over two of them, as one loop in another is one in the
// runs; over the logarithm of an extent, if the index is an exponent. A constant end may be such a one if only two
// runs show it and at least three partners are in steps of the index, unlike those of a list.
//
// Unless the index is an exponent, or a loop may well end there anyhow, a share or the root of the number of ranks,
// plus a constant, is possible as well.
//
// Where an index begins that is an exponent and changes with the runs, the logarithm of an extent is possible, too.
func (l *Law) addPossibleEnds(u *unit, sizes []int32, possible []Grid) {
	doubles := slices.ContainsFunc(l.Forms, Form.exponential)
	for c := range l.Ranges {
		r := &l.Ranges[c]
		last, isConstant := r.constantEnd()
		low, high := u.spans(c)
		if doubles && !slices.ContainsFunc(r.Low, func(b Bound) bool { return b.Of == FromZero }) {
			r.Low = addFitting(r.Low, logarithms(possible, 0), low, sizes)
		}
		if len(r.High) == 0 || isConstant && (last < 2 || len(high) >= enough || !slices.ContainsFunc(l.Forms, Form.linear)) {
			continue
		}
		for i := range possible {
			r.High = addFitting(r.High, l.endsOn(&possible[i]), high, sizes)
		}
		if !isConstant && !doubles && !slices.ContainsFunc(r.High, func(b Bound) bool { return b.isNatural(l.Forms) }) {
			r.High = append(r.High, shares(high, sizes)...)
		}
	}
}

// isNatural reports whether a loop may well end there: after all or half of the ranks, or after those along an axis
// that messages of some form go along.
func (b Bound) isNatural(forms []Form) bool {
	return b.Grid == nil && (b.Of == FromAll || b.Of == FromHalf) ||
		slices.ContainsFunc(forms, func(f Form) bool { return b.isAlong(&f) })
}

// isAlong reports whether the bound counts the ranks along one axis that messages of a form go along.
func (b Bound) isAlong(form *Form) bool {
	return b.Of == FromAll && b.Grid != nil && b.Times == 0 && b.Axis < len(form.Rules) &&
		form.Rules[b.Axis].moves(b.Axis) &&
		slices.ContainsFunc(form.Grids, func(g Grid) bool { return sameGrid(g, *b.Grid) })
}

// shares returns the laws that give all values: a share of the number of ranks, or its root, rounded down or up, plus a
// constant.
func shares(values map[int]int32, sizes []int32) (all []Bound) {
	first := firstKey(values)
	add := func(b Bound) {
		v, _ := b.value(sizes[first])
		if b.C = values[first] - v; b.isAlways(values, sizes) {
			all = append(all, b)
		}
	}
	add(Bound{Of: FromRoot})
	add(Bound{Of: FromRootUp})
	for n := int32(2); n <= slices.Max(sizes); n++ { // a share by more ranks is the same in all runs
		add(Bound{Of: FromShare, Per: n})
		add(Bound{Of: FromShareUp, Per: n})
	}
	return all
}

// addFitting adds those of some laws that have the values of all runs.
func addFitting(to, some []Bound, values map[int]int32, sizes []int32) []Bound {
	for _, b := range some {
		if b.isAlways(values, sizes) && !slices.ContainsFunc(to, b.equal) {
			to = append(to, b)
		}
	}
	return to
}

// logarithms returns those of the extents of grids, rounded down and up, plus c.
func logarithms(grids []Grid, c int32) (all []Bound) {
	for i := range grids {
		for a := range grids[i].Axes {
			for _, of := range []BoundOf{FromFloor, FromCeil} {
				all = append(all, Bound{Of: of, Grid: &grids[i], Axis: a, C: c})
			}
		}
	}
	return all
}

// endsOn returns where loops over one extent of a grid end, over two if no peer depends on the index, and over its
// logarithm if the index is an exponent.
func (l *Law) endsOn(grid *Grid) (ends []Bound) {
	repeats := !slices.ContainsFunc(l.Forms, func(f Form) bool { return f.linear() || f.exponential() })
	doubles := slices.ContainsFunc(l.Forms, Form.exponential)
	if doubles {
		ends = logarithms([]Grid{*grid}, -1)
	}
	for a := range grid.Axes {
		ends = append(ends, Bound{Of: FromAll, Grid: grid, Axis: a, C: -1})
		for other := 0; repeats && other < a; other++ {
			ends = append(ends, Bound{Of: FromAll, Grid: grid, Axis: a, Times: other + 1, C: -1})
		}
	}
	return ends
}

// isAlways reports whether the bound is the value in all runs that have one.
func (b Bound) isAlways(values map[int]int32, sizes []int32) bool {
	for i, v := range values {
		if got, ok := b.value(sizes[i]); !ok || got != v {
			return false
		}
	}
	return true
}

// equal reports whether two bounds are the same law.
func (b Bound) equal(o Bound) bool {
	return b.Of == o.Of && b.Axis == o.Axis && b.Times == o.Times && b.Per == o.Per && b.C == o.C &&
		(b.Grid == nil) == (o.Grid == nil) &&
		(b.Grid == nil || sameGrid(*b.Grid, *o.Grid))
}

// dropUnshownEnds drops laws of where an index ends that count up to the logarithm of an extent which the runs did
// not vary, see loopEnds, if a law that does the same along another axis, whose extent they did vary, ends at the
// same index in all of them.
func dropUnshownEnds(laws []Law) {
	for i := range laws {
		for c := range laws[i].Ranges {
			r := &laws[i].Ranges[c]
			last, constant := r.constantEnd()
			if !constant || len(r.High) == 1 {
				continue
			}
			if slices.ContainsFunc(laws, func(o Law) bool { return laws[i].isShownBy(&o, c, last) }) {
				r.High = []Bound{{Of: FromZero, C: last}}
			}
		}
	}
}

// constantEnd returns the largest value of an index that is the same in all runs; false if it is not.
func (r *Range) constantEnd() (last int32, constant bool) {
	i := slices.IndexFunc(r.High, func(b Bound) bool { return b.Of == FromZero })
	if i < 0 {
		return 0, false
	}
	return r.High[i].C, true
}

// isShownBy reports whether another law moves as this one does, along an axis whose extent varies in the runs, and a
// component of its index ends at the same value in all of them.
func (l *Law) isShownBy(o *Law, component int, last int32) bool {
	if len(o.Ranges) != len(l.Ranges) || len(l.Forms) == 0 || len(o.Forms) == 0 || len(o.Ranges[component].High) != 1 {
		return false
	}
	if end, constant := o.Ranges[component].constantEnd(); !constant || end != last {
		return false
	}
	mine, theirs := l.Forms[0].axis(), o.Forms[0].axis()
	if mine < 0 || theirs < 0 || mine == theirs {
		return false
	}
	a, b := l.Forms[0].Rules[mine], o.Forms[0].Rules[theirs]
	return a.Op == b.Op && a.N.shape() == b.N.shape() && o.Forms[0].variesIn(o.Training, theirs)
}

// variesIn reports whether an axis of the form's grid has different extents on numbers of ranks.
func (f *Form) variesIn(sizes []int32, axis int) bool {
	first := int32(0)
	for _, p := range sizes {
		dims, ok := f.Grids[0].Dims(p)
		switch {
		case !ok:
		case first == 0:
			first = dims[axis]
		case dims[axis] != first:
			return true
		}
	}
	return false
}
