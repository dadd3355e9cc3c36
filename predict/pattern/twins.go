package pattern

import "slices"

// Grids with equal axes in all runs (twins) explain the same moves: the fast axis of a grid with two axes has the same
// ranks as that of a grid with three axes, as long as there are few ranks. A law on one grid is therefore a rival of
// the same law on its twins, unless another communication fits only one of them. Another law on a twin that costs
// hardly more is a rival too.

// plain is the largest cost, in bits, of a law that is no coincidence.
const plain = 10

// twinBits is how much longer, in bits, the description of all units may be on a twin: less than the evidence for a
// second grid. One communication adds at most unitBits: a single one may fit a grid by chance, whatever it costs on
// others.
const (
	twinBits = 20
	unitBits = 4
)

// addTwins adds to the laws of units the same laws on twin grids. searched has the forms of each unit on all grids. It
// returns the twins of each class.
func (f *gridCover) addTwins(units []*unit, searched map[*unit][][]Form) map[*class][]*class {
	others := map[*class][]*class{}
	for _, u := range units {
		for _, form := range slices.Clone(u.pool) {
			c := classOf(form, f.classes)
			if c == nil {
				continue
			}
			if _, known := others[c]; !known {
				others[c] = f.twinsOf(c, units, searched)
			}
			for _, d := range others[c] {
				if twin, ok := form.onClass(c, d); ok && !slices.ContainsFunc(u.pool, twin.equal) {
					u.pool = append(u.pool, twin)
				}
				u.addSearched(searched[u], slices.Index(f.classes, d), form.Cost)
			}
		}
	}
	return others
}

// twinsOf returns the grids that the runs do not tell from those of a class: nothing goes with these and not with
// them, and all that the program does is described there in hardly more bits.
func (f *gridCover) twinsOf(c *class, units []*unit, searched map[*unit][][]Form) (twins []*class) {
	const mostAxes = 3 // grids with more are rare
	if len(c.dims[0]) < 2 {
		return nil
	}
	i := slices.Index(f.classes, c)
	for k, d := range f.classes {
		if n := len(d.dims[0]); i != k && n > 1 && n <= mostAxes && d.grids[0].Shape != Columns &&
			!isDemonstrated(i, k, f.classes, units, searched) && !f.stencils.shows(i, k) &&
			f.excess(i, k, searched) < twinBits {
			twins = append(twins, d)
		}
	}
	return twins
}

// possibleGrids returns the grids of two and three axes that what units do does not rule out.
func possibleGrids(chosen, classes []*class, units []*unit, searched map[*unit][][]Form) (all []Grid) {
	const mostAxes = 3
	for k, d := range classes {
		if n := len(d.dims[0]); n < 2 || n > mostAxes {
			continue
		}
		ruledOut := func(c *class) bool {
			return c != d && len(c.dims[0]) > 1 && isDemonstrated(slices.Index(classes, c), k, classes, units, searched)
		}
		if !slices.ContainsFunc(chosen, ruledOut) {
			all = append(all, d.grids...)
		}
	}
	return all
}

// addSearched adds the forms of a unit on another class that cost hardly more than one that it has.
func (u *unit) addSearched(searched [][]Form, class int, cost float64) {
	if len(searched) == 0 {
		return
	}
	for _, f := range searched[class] {
		if f.Cost <= cost+margin && !slices.ContainsFunc(u.pool, f.equal) {
			u.pool = append(u.pool, f)
		}
	}
}

// classOf returns the class that has a form's grids; nil if none has.
func classOf(f Form, classes []*class) *class {
	if f.Bits != NoBits || len(f.Grids) == 0 {
		return nil
	}
	i := slices.IndexFunc(classes, func(c *class) bool { return slices.EqualFunc(c.grids, f.Grids, sameGrid) })
	if i < 0 {
		return nil
	}
	return classes[i]
}

// isDemonstrated reports whether what some unit does goes with the grids of a class, given by its index, and not with
// those of another, and of none the other way round. What one run alone can show of a grid with more axes may be
// chance.
func isDemonstrated(of, other int, classes []*class, units []*unit, searched map[*unit][][]Form) bool {
	demonstrated := false
	if c, d := classes[of], classes[other]; len(c.dims[0]) > len(d.dims[0]) && differentRuns(c, d) < 2 {
		return false
	}
	for _, u := range units {
		all := searched[u]
		if len(all) == 0 {
			continue
		}
		mine, theirs := len(all[of]) > 0 && all[of][0].Cost <= plain, len(all[other]) > 0
		switch {
		case mine && !theirs:
			demonstrated = true
		case theirs && len(all[of]) == 0:
			return false
		}
	}
	return demonstrated
}

// differentRuns returns in how many runs the grids of two classes have other axes; an axis of one rank is none.
func differentRuns(c, d *class) (n int) {
	for i := range c.dims {
		if !slices.Equal(axesOf(c.dims[i]), axesOf(d.dims[i])) {
			n++
		}
	}
	return n
}

// axesOf returns the extents of axes of more than one rank.
func axesOf(dims []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(dims), func(g int32) bool { return g == 1 })
}

// onClass returns the form on the grids of another class; false if an axis that it uses is none of theirs in all runs.
func (f Form) onClass(c, d *class) (Form, bool) {
	switch f.Where {
	case Anywhere, NotSelf, Upwards, Downwards, NotOrigin:
	default:
		return f, false
	}
	twin := f
	twin.Grids, twin.Short, twin.Narrow = d.grids, nil, nil
	twin.Rules = make([]Rule, len(d.dims[0]))
	for b := range twin.Rules {
		twin.Rules[b] = Rule{From: b, Op: Keep, N: zero, Root: zero, Guard: Guard{Kind: All, N: zero}}
	}
	for a, r := range f.Rules {
		if r.Op == Keep && r.From == a && r.Guard.Kind == All {
			continue
		}
		b := sameAxis(c, d, a)
		from := sameAxis(c, d, r.From)
		if b < 0 || from < 0 {
			return f, false
		}
		twin.Rules[b] = r
		twin.Rules[b].From = from
	}
	if k := f.Presence.Kind; k == Extent || k == OddExtent {
		if twin.Presence.Axis = sameAxis(c, d, f.Presence.Axis); twin.Presence.Axis < 0 {
			return f, false
		}
	}
	return twin, true
}

// sameAxis returns the axis of a class that has the same ranks in all runs as an axis of another class; -1 if none has.
func sameAxis(c, d *class, axis int) int {
	for b := range d.dims[0] {
		same := true
		for i := range c.dims {
			same = same && shareAxis(c.dims[i], d.dims[i], axis, b)
		}
		if same {
			return b
		}
	}
	return -1
}

// SharesAxis reports whether, on a number of ranks, axis a of the grid has the ranks of axis b of another grid.
func (g Grid) SharesAxis(a int, other Grid, b int, ranks int32) bool {
	dims, ok := g.Dims(ranks)
	others, has := other.Dims(ranks)
	return ok && has && shareAxis(dims, others, a, b)
}

// shareAxis reports whether axis a of a grid has the ranks of axis b of another grid.
func shareAxis(dims, others []int32, a, b int) bool {
	return dims[a] == others[b] && stride(dims, a) == stride(others, b)
}

// stride returns the distance of neighbours along an axis.
func stride(dims []int32, axis int) int32 {
	n := int32(1)
	for _, g := range dims[:axis] {
		n *= g
	}
	return n
}
