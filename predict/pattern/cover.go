package pattern

import (
	"math"
	"slices"
)

// unexplainedCost is the cost of a slot without a law when grids are compared, in bits.
const unexplainedCost = 60

// unboundedCost is the cost of a family whose number of slots the grids do not determine, in bits.
const unboundedCost = 10

// inverseCost is the cost of being the other side of what has a law, in bits: what is sent is received.
const inverseCost = 6

// gridCover chooses the process grids of a program: those with which all units have the shortest description.
type gridCover struct {
	units   []*unit
	classes []*class
	sizes   []int32
	others  map[*unit]*unit // the other sides of messages
	// stencils are the directions in which sites send along the axes of grids: they distinguish grids.
	stencils stencils
}

// choose returns the line, the class of grids that makes the description of all units shortest, and further classes
// as long as each makes it much shorter. Classes that are as good as a chosen one, within the margin, remain as
// rivals: a class with few axes comes first, but does not rule out the others. first is true for the line, the first
// grid and its rivals. Forms on all other classes are dropped.
func (f *gridCover) choose() (grids []*class, first []bool) {
	const another = 25 // bits that a second grid must save
	for _, u := range f.units {
		u.bounded = make([]bool, len(f.classes))
		for i, c := range f.classes {
			u.bounded[i] = len(u.vary) > 0 && f.determinesEnd(u, c)
			f.penalizeEnds(u, i)
		}
	}
	chosen := []int{0}
	first = make([]bool, len(f.classes))
	first[0] = true
	rivals := map[int]bool{0: true}
	total := f.total(chosen)
	for len(chosen) < 4 {
		best := -1
		costs := make([]float64, len(f.classes))
		for i, c := range f.classes {
			if slices.Contains(chosen, i) {
				continue
			}
			costs[i] = f.total(append(slices.Clone(chosen), i))
			costs[i] += float64(len(c.dims[0]) + gridRank(c))
			// The cost of a grid does not exclude it if it saves something: otherwise only the line would be left.
			if save := total - costs[i] + float64(len(c.dims[0])+gridRank(c)); save > 0 &&
				(best < 0 || costs[i] < costs[best]) && (len(chosen) == 1 || save > another) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		for i, cost := range costs {
			if !slices.Contains(chosen, i) && cost <= costs[best]+margin && !f.stencils.shows(best, i) {
				rivals[i] = true
			}
		}
		if chosen = append(chosen, best); len(chosen) == 2 {
			for i := range f.classes {
				first[i] = rivals[i]
			}
			first[best] = true
		}
		total = f.total(chosen)
	}
	for _, i := range chosen {
		grids = append(grids, f.classes[i])
	}
	for i := range f.classes {
		if !rivals[i] {
			for _, u := range f.units {
				u.forms[i] = nil
			}
		}
	}
	return grids, first
}

// openGrids returns grids, one of each class, with which the description of all units is at most a few bits longer
// than with the first grid of the chosen ones: the runs do not tell them apart, although the first one is taken.
// searched has the forms of each unit on all grids.
func (f *gridCover) openGrids(chosen []*class, searched map[*unit][][]Form) (open []Grid) {
	const mostAxes = 3 // grids with more are rare
	if len(chosen) < 2 {
		return nil
	}
	first := slices.Index(f.classes, chosen[1])
	limit := f.totalInstead(first, first, searched) + plain
	for i, c := range f.classes {
		if n := len(c.dims[0]); n > 1 && n <= mostAxes && i != first && f.totalInstead(first, i, searched) <= limit {
			open = append(open, c.grids[0])
		}
	}
	return open
}

// totalInstead returns the cost of all units on the line and on one class of grids instead of another one.
func (f *gridCover) totalInstead(of, class int, searched map[*unit][][]Form) float64 {
	sum, counted := 0.0, map[string]bool{}
	for _, u := range f.units {
		if !counted[u.seen] {
			counted[u.seen] = true
			sum += f.costInstead(u, of, class, searched)
		}
	}
	return sum
}

// excess returns by how many bits the description of all units is longer on one class of grids instead of another
// one, at most unitBits for each communication, of which both sides count once.
func (f *gridCover) excess(of, class int, searched map[*unit][][]Form) float64 {
	sum, counted := 0.0, map[string]bool{}
	for _, u := range f.units {
		if counted[u.seen] {
			continue
		}
		counted[u.seen] = true
		if other := f.others[u]; other != nil {
			counted[other.seen] = true
		}
		sum += min(f.costInstead(u, of, class, searched)-f.costInstead(u, of, of, searched), unitBits)
	}
	return sum
}

// costInstead returns the cost of a unit on the line and on one class of grids instead of another one, of which forms
// count if the grid has the axes that they use.
func (f *gridCover) costInstead(u *unit, of, class int, searched map[*unit][][]Form) float64 {
	cost := leastInstead(searched[u], f.classes, of, class)
	if other := f.others[u]; other != nil {
		cost = min(cost, leastInstead(searched[other], f.classes, of, class)+inverseCost)
	}
	return min(cost, unexplainedCost)
}

// leastInstead returns the cost of the simplest of some forms, by class, for costInstead.
func leastInstead(searched [][]Form, classes []*class, of, class int) float64 {
	cost := math.Inf(1)
	for _, i := range []int{0, class, of} {
		if i >= len(searched) {
			continue
		}
		for _, form := range searched[i] { // the cheapest first
			if form.Cost >= cost {
				break
			}
			if i == of && i != class {
				if _, ok := form.onClass(classes[of], classes[class]); !ok {
					continue
				}
			}
			cost = form.Cost
		}
	}
	return cost
}

// determinesEnd reports whether the process count or the extents of a class determine where each component of a
// family's index begins and ends.
func (f *gridCover) determinesEnd(u *unit, c *class) bool {
	form := Form{Grids: c.grids[:1]}
	for _, fs := range u.forms {
		if len(fs) > 0 {
			form = fs[0]
		}
	}
	for _, r := range ranges(u, f.sizes, form, [][]Grid{c.grids[:1]}) {
		if len(r.Low) == 0 || len(r.High) == 0 {
			return false
		}
	}
	return true
}

// penalizeEnds adds to the cost of forms of a family that contradict where its index ends: an index that is an exponent
// ends at a logarithm, and an index that is a displacement at an extent or half of it.
func (f *gridCover) penalizeEnds(u *unit, class int) {
	const odd = 6 // bits
	forms := u.forms[class]
	if len(u.vary) == 0 || len(forms) == 0 {
		return
	}
	by := map[bool]endKinds{}
	for _, exponential := range []bool{true, false} {
		by[exponential] = f.endKinds(u, f.classes[class], exponential)
	}
	for i := range forms {
		o := &forms[i]
		linear, exponential := o.linear(), o.exponential()
		switch {
		case linear && exponential:
			o.Cost += odd
		case linear && by[false].grows && !by[false].extent:
			o.Cost += odd
		case linear && by[false].grows && !by[false].all &&
			slices.ContainsFunc(o.Rules, func(r Rule) bool { return r.Op == Xor }):
			o.Cost += odd
		case exponential && by[true].grows && !by[true].log:
			o.Cost += odd
		}
	}
	u.forms[class] = cheapest(forms)
}

// endKinds are the kinds of laws of the last value of an index: something that grows, a logarithm, an extent or half of
// it, a whole extent.
type endKinds struct{ grows, log, extent, all bool }

// endKinds returns the kinds of laws of where a family's index ends.
func (f *gridCover) endKinds(u *unit, c *class, exponential bool) (k endKinds) {
	form := Form{Grids: c.grids[:1]}
	if exponential {
		form.Rules = []Rule{{N: Number{Kind: Power, B: 1}}}
	}
	for _, r := range ranges(u, f.sizes, form, [][]Grid{c.grids[:1]}) {
		for _, b := range r.High {
			k.grows = k.grows || b.Of != FromZero
			k.log = k.log || b.Of == FromFloor || b.Of == FromCeil
			k.extent = k.extent || b.Of == FromAll || b.Of == FromHalf
			k.all = k.all || b.Of == FromAll
		}
		k.grows = k.grows || len(r.High) == 0
	}
	return k
}

// gridRank returns the cost of the simplest law of a class, besides its axes. Grids with a fixed extent are the last
// resort.
func gridRank(c *class) int {
	switch c.grids[0].Shape {
	case Columns:
		return len(c.dims[0])
	case Cascade, Compact, Greedy:
		return 1
	}
	return 0
}

// total returns the cost of all units with their cheapest forms on the chosen classes. Units with equal observations
// are described only once.
func (f *gridCover) total(chosen []int) float64 {
	sum := 0.0
	counted := map[string]bool{}
	for _, u := range f.units {
		if counted[u.seen] {
			continue
		}
		counted[u.seen] = true
		least := u.leastCostOn(chosen)
		if other := f.others[u]; other != nil {
			least = min(least, other.leastCostOn(chosen)+inverseCost)
		}
		sum += min(least, unexplainedCost)
		if len(u.vary) > 0 && !slices.ContainsFunc(chosen, func(i int) bool { return u.bounded[i] }) {
			sum += unboundedCost
		}
	}
	return sum
}

// leastCostOn returns the cost of the simplest form of a unit on some classes of grids; infinite if it has none.
func (u *unit) leastCostOn(classes []int) float64 {
	least := math.Inf(1)
	for _, i := range classes {
		if fs := u.forms[i]; len(fs) > 0 {
			least = min(least, fs[0].Cost)
		}
	}
	return least
}

// otherSides returns for units the one that has the other side of the messages of all their slots, if there is one.
func otherSides(units []*unit) map[*unit]*unit {
	of := map[string]*unit{}
	for _, u := range units {
		for _, s := range u.slots {
			of[s.Name] = u
		}
	}
	others := map[*unit]*unit{}
	for _, u := range units {
		var other *unit
		for i, s := range u.slots {
			if len(s.Partners) == 0 || i > 0 && of[s.Partners[0]] != other {
				other = nil
				break
			}
			other = of[s.Partners[0]]
		}
		if other != nil && other != u {
			others[u] = other
		}
	}
	return others
}
