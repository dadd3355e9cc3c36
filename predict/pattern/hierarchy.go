package pattern

import (
	"slices"
)

// transferHierarchies finds families that are thinned out in the same way on all axes that are long enough to show it,
// with a displacement equal to the number of the guard: a hierarchy of grids. Their siblings along other axes and at
// other sites are then assumed to belong to the same hierarchy, if that is possible: short axes and fine levels do not
// show it.
func transferHierarchies(units []*unit, classes []*class, sizes []int32) {
	var guards []Guard
	hosts := map[Guard][]*unit{}
	for _, u := range units {
		if g, ok := u.hierarchy(sizes); ok {
			if hosts[g] == nil {
				guards = append(guards, g)
			}
			hosts[g] = append(hosts[g], u)
		}
	}
	for _, g := range guards {
		for _, u := range units {
			own, aligned := g, true
			if len(u.vary) > 0 {
				if own, aligned = u.levels(g, hosts[g]); own.Kind != "" {
					u.addGuarded(own, classes)
				}
			} else if o, ok := u.guardLike(g); ok {
				own = o // one level of the hierarchy, given by its distance from the coarsest
			}
			var guarded []Form
			for _, o := range u.pool {
				if o.thinned(own) {
					guarded = append(guarded, o)
				}
			}
			if len(guarded) > 0 && len(guarded) < len(u.pool) {
				u.pool = guarded
				u.borrowed = true
				u.markUnaligned(!aligned && u.counterTo(hosts[g]))
			}
		}
	}
}

// markUnaligned marks the forms of a unit whose levels may be other ones: see Form.Unaligned.
func (u *unit) markUnaligned(is bool) {
	for i := range u.pool {
		u.pool[i].Unaligned = is
	}
}

// counterTo reports whether sizes do not show for any host that the unit visits the levels in the same direction.
func (u *unit) counterTo(hosts []*unit) bool {
	return !slices.ContainsFunc(hosts, func(h *unit) bool {
		return h == u || len(h.vary) == 1 && u.rises(u.vary[0])*h.rises(h.vary[0]) > 0
	})
}

// levels expresses the guard of a hierarchy in the unit's own index instead of that of the hosts. In a program that
// visits the levels from the coarsest to the finest and back, the index of one direction falls while that of the
// other rises. Slots along the same axis whose largest messages are equal in all runs are on the same level. ok
// reports whether sizes matched. A guard without a kind means that the unit visits the levels in the other direction,
// and sizes do not show which levels correspond.
func (u *unit) levels(g Guard, hosts []*unit) (own Guard, ok bool) {
	if g.N.B == 0 || len(u.vary) != 1 {
		return g, false
	}
	mine, axis := u.vary[0], u.pool[0].axis()
	opposite := false
	for _, h := range hosts {
		if h.pool[0].axis() != axis || len(h.vary) != 1 {
			continue
		}
		theirs := g.N.Component
		for _, way := range []int32{1, -1} {
			if by, ok := u.aligned(h, mine, theirs, way); ok {
				g.N.C += g.N.B * by
				g.N.B *= way
				g.N.Component = mine
				return g, true
			}
		}
		opposite = opposite || u.rises(mine)*h.rises(theirs) < 0
	}
	if opposite {
		return Guard{}, false
	}
	return g, false
}

// axis returns the axis along which a form moves, or -1 when it is none or several.
func (f Form) axis() int {
	if m, ok := f.move(); ok {
		return m.axis
	}
	return -1
}

// aligned returns the difference between the index of a host's slot, counted in the same direction or the other, and
// that of the unit's slot on the same level. At least two slots must have equal sizes, and all that have must have the
// same difference.
func (u *unit) aligned(h *unit, mine, theirs int, way int32) (by int32, ok bool) {
	n := 0
	for _, s := range u.slots {
		for _, o := range h.slots {
			if len(s.Bytes) == 0 || !slices.Equal(s.Bytes, o.Bytes) {
				continue
			}
			b := o.Index[theirs] - way*s.Index[mine]
			if n > 0 && b != by {
				return 0, false
			}
			by = b
			n++
		}
	}
	return by, n > 1
}

// rises returns 1 when the largest messages of the unit's slots grow with a component of the index, -1 when they
// shrink, and 0 when they do neither or are not known.
func (u *unit) rises(component int) int {
	all := slices.Clone(u.slots)
	slices.SortStableFunc(all, func(a, b *Slot) int { return int(a.Index[component]) - int(b.Index[component]) })
	up, down := false, false
	for i := 1; i < len(all); i++ {
		a, b := all[i-1].Bytes, all[i].Bytes
		if len(a) == 0 || len(b) == 0 {
			return 0
		}
		up, down = up || b[len(b)-1] > a[len(a)-1], down || b[len(b)-1] < a[len(a)-1]
	}
	switch {
	case up && !down:
		return 1
	case down && !up:
		return -1
	}
	return 0
}

// hierarchy returns the guard that all forms of the unit have on each axis with more than two ranks, if it depends on
// the index of the family and its number is the displacement.
func (u *unit) hierarchy(sizes []int32) (Guard, bool) {
	for _, r := range u.pool[0].Rules {
		g := r.Guard.floored()
		if g.Kind != LowBits || g.N.Kind != Power || g.N.Log == NoLog || g.N.B == 0 && len(u.vary) > 0 {
			continue
		}
		if !slices.ContainsFunc(u.pool, func(o Form) bool { return !o.shows(g, sizes) }) {
			return g, true
		}
	}
	return Guard{}, false
}

// shows reports whether a form moves by the number of a guard, and has it on all axes with more than two ranks.
func (f Form) shows(g Guard, sizes []int32) bool {
	if len(f.Rules) < 2 {
		return false
	}
	moves := false
	for a, r := range f.Rules {
		long := false
		for _, p := range sizes {
			dims, ok := f.Grids[0].Dims(p)
			long = long || ok && dims[a] > 2
		}
		if long && r.Guard.floored() != g {
			return false
		}
		if r.Op == Shift || r.Op == Wrap {
			if !r.movesBy(g) {
				return false
			}
			moves = true
		}
	}
	return moves
}

// movesBy reports whether the displacement of a rule is the number of a guard, in either direction.
func (r Rule) movesBy(g Guard) bool {
	n := r.N
	n.Negative = false
	return Guard{Kind: g.Kind, N: n, Offset: g.Offset}.floored() == g
}

// thinned reports whether all axes of a form have a guard, and its displacement, if any, is the guard's number.
func (f Form) thinned(g Guard) bool {
	moves, stays := false, true
	for a, r := range f.Rules {
		if r.Guard.floored() != g {
			return false
		}
		stays = stays && !r.moves(a)
		if r.Op == Shift || r.Op == Wrap {
			if !r.movesBy(g) {
				return false
			}
			moves = true
		}
	}
	return moves || stays
}

// guardLike returns a guard in the unit's forms that has the shape of g.
func (u *unit) guardLike(g Guard) (Guard, bool) {
	for _, o := range u.pool {
		for _, r := range o.Rules {
			if r.Guard.shape() == g.shape() {
				return r.Guard.floored(), true
			}
		}
	}
	return Guard{}, false
}

// addGuarded adds to the unit's pool its forms with a guard on all axes, if they still give its observations.
func (u *unit) addGuarded(g Guard, classes []*class) {
	for _, o := range slices.Clone(u.pool) {
		if len(o.Rules) < 2 || slices.ContainsFunc(o.Rules, func(r Rule) bool { return r.Guard.Kind != All }) {
			continue
		}
		c := classes[slices.IndexFunc(classes,
			func(c *class) bool { return slices.EqualFunc(c.grids, o.Grids, sameGrid) })]
		seed := slices.Clone(o.Rules)
		seed[0].Guard = g
		Form{Rules: seed}.joined(func(rules []Rule) {
			n := o
			n.Rules, n.joint = slices.Clone(rules), true
			if c.explains(n, u.obs) {
				u.pool = append(u.pool, n)
				u.borrowed = true
			}
		})
	}
}
