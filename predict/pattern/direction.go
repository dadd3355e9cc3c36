package pattern

import (
	"fmt"
	"slices"
	"strings"
)

// move is a displacement along one axis only.
type move struct {
	axis     int
	negative bool
	half     bool // half the extent: both directions are the same
}

// move returns the form's displacement, if it moves along one axis only.
func (f Form) move() (move, bool) {
	at := -1
	for a, r := range f.Rules {
		if r.Op == Keep && r.From == a {
			continue
		}
		if at >= 0 || r.Op != Shift && r.Op != Wrap {
			return move{}, false
		}
		at = a
	}
	if at < 0 || f.Bits != NoBits {
		return move{}, false
	}
	n := f.Rules[at].N
	return move{axis: at, negative: n.Negative, half: n.isHalf() && f.Rules[at].Op == Wrap}, true
}

// sign is the direction of a unit's forms along an axis.
type sign int8

const (
	plus sign = iota
	minus
	open // there are forms in both directions
)

// signBlock is consecutive units that move along one axis in the same way, except for the direction.
type signBlock struct {
	axis  int
	way   string
	units []*unit
	signs []sign
}

// borrowSigns decides between + and - on an axis with at most two ranks in all runs. It copies the order of signs in
// the slots of sibling axes, if all siblings have the same order and it does not contradict the runs on the axis
// itself. Siblings are blocks with equally many slots, or else all slots of another axis.
func borrowSigns(units []*unit) {
	var blocks []signBlock
	byAxis := map[string]*signBlock{}
	var names []string
	newBlock := true
	for _, u := range units {
		a, s, ok := u.direction()
		if !ok {
			newBlock = true
			continue
		}
		way := u.pool[0].way()
		if k := len(blocks) - 1; newBlock || blocks[k].axis != a || blocks[k].way != way {
			blocks = append(blocks, signBlock{axis: a, way: way})
		}
		newBlock = false
		name := fmt.Sprint(a, way)
		if byAxis[name] == nil {
			byAxis[name] = &signBlock{axis: a, way: way}
			names = append(names, name)
		}
		for _, b := range []*signBlock{&blocks[len(blocks)-1], byAxis[name]} {
			b.units, b.signs = append(b.units, u), append(b.signs, s)
		}
	}
	borrowBlocks(blocks)
	var axes []signBlock
	for _, name := range names {
		b := *byAxis[name]
		for i, u := range b.units {
			_, b.signs[i], _ = u.direction()
		}
		axes = append(axes, b)
	}
	borrowBlocks(axes)
	borrowInSite(units)
	borrowFromPartner(units)
}

// borrowInSite decides the open sign of a slot by the other slots of its site, which move along other axes in the same
// way, if they all have the same sign.
func borrowInSite(units []*unit) {
	sites := map[string][]*unit{}
	for _, u := range units {
		if _, _, ok := u.direction(); ok {
			sites[u.site] = append(sites[u.site], u)
		}
	}
	for _, siblings := range sites {
		for _, u := range siblings {
			axis, s, _ := u.direction()
			if s != open {
				continue
			}
			var seen []sign
			for _, o := range siblings {
				if a, other, _ := o.direction(); a != axis && other != open && !slices.Contains(seen, other) {
					seen = append(seen, other)
				}
			}
			if len(seen) == 1 {
				u.keepDirection(axis, seen[0])
			}
		}
	}
}

// borrowFromPartner decides the open sign of a slot by that of the other side of its messages, which moves in the
// opposite direction.
func borrowFromPartner(units []*unit) {
	unitOf := map[string]*unit{}
	for _, u := range units {
		for _, s := range u.slots {
			unitOf[s.Name] = u
		}
	}
	for _, u := range units {
		axis, s, ok := u.direction()
		if !ok || s != open {
			continue
		}
		var seen []sign
		for _, x := range u.slots {
			for _, name := range x.Partners {
				o := unitOf[name]
				if o == nil {
					continue
				}
				if a, other, ok := o.direction(); ok && a == axis && !slices.Contains(seen, other) {
					seen = append(seen, other)
				}
			}
		}
		if len(seen) == 1 && seen[0] != open {
			u.keepDirection(axis, plus+minus-seen[0])
		}
	}
}

// keepDirection drops the forms of the other direction along an axis.
func (u *unit) keepDirection(axis int, s sign) {
	u.pool = slices.DeleteFunc(u.pool, func(form Form) bool {
		m, moves := form.move()
		return !moves || m.axis != axis || m.negative != (s == minus)
	})
	u.borrowed = true
}

// way describes how a form moves, without axis and direction: operation, number and the guards of all axes.
func (f Form) way() string {
	var parts []string
	for a, r := range f.Rules {
		if r.moves(a) {
			parts = append(parts, fmt.Sprint(r.Op, r.N.shape(), r.Guard.shape()))
		} else if r.Guard.Kind != All {
			parts = append(parts, fmt.Sprint(r.Guard.shape()))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// enoughSigns is the least number of slots whose order of signs shows that other axes have the same: both sides of
// messages in both directions. One direction along one axis tells nothing about that along another.
const enoughSigns = 4

// borrowBlocks decides the open signs of each block by blocks of other axes.
func borrowBlocks(blocks []signBlock) {
	for _, b := range blocks {
		if !slices.Contains(b.signs, open) || len(b.units) < enoughSigns {
			continue
		}
		order, ok := siblingOrder(blocks, b)
		if !ok {
			continue
		}
		for i, u := range b.units {
			if b.signs[i] != open {
				continue
			}
			u.keepDirection(b.axis, order[i])
			b.signs[i] = order[i]
		}
	}
}

// siblingOrder returns the order of signs in the blocks of other axes that are as long and have no open signs. It
// returns false unless they all have the same order.
func siblingOrder(blocks []signBlock, block signBlock) ([]sign, bool) {
	var order []sign
	for _, b := range blocks {
		if b.axis == block.axis || b.way != block.way || len(b.signs) != len(block.signs) ||
			slices.Contains(b.signs, open) {
			continue
		}
		if order != nil && !slices.Equal(b.signs, order) {
			return nil, false
		}
		order = b.signs
	}
	if order == nil {
		return nil, false
	}
	for i, s := range block.signs {
		if s != open && s != order[i] {
			return nil, false
		}
	}
	return order, true
}

// direction returns the axis of a grid along which the unit's simplest form moves, and its sign, which is open when
// other forms move in the opposite direction. A displacement by half the extent has no direction.
func (u *unit) direction() (axis int, s sign, ok bool) {
	first, moves := u.pool[0].move()
	if !moves || len(u.pool[0].Rules) < 2 || first.half {
		return 0, 0, false
	}
	for _, form := range u.pool[1:] {
		if m, moves := form.move(); moves && m.axis == first.axis && m.negative != first.negative {
			return first.axis, open, true
		}
	}
	if first.negative {
		return first.axis, minus, true
	}
	return first.axis, plus, true
}
