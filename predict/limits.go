package predict

import (
	"fmt"
	"slices"
)

// leastBlock is how many cells of an axis a rank must have so that some are at none of its borders.
const leastBlock = 3

// thin says why a number of ranks is more than the program's domain allows: a rank would have fewer cells along an axis than any has in the training runs,
// and fewer than leastBlock, so that all are at a border; of collective operations none. Nothing shows that the program runs so. Empty: it is not.
func (m *Model) thin(ranks int32) string {
	most := m.Training[len(m.Training)-1]
	largest := int64(0) // a coarse level of a hierarchy of grids is thin sooner, and is no limit
	var extents []int64
	for _, x := range m.sites {
		for _, g := range append(x.sendBytes.groups(), x.recvBytes.groups()...) {
			if g.Grid != nil && len(g.Law.Laws) > 0 && g.exact {
				for _, extent := range g.Law.Laws[0].Domain() {
					largest, extents = max(largest, extent), append(extents, extent)
				}
			}
		}
	}
	slices.Sort(extents)
	for _, x := range m.sites {
		least, why := int64(leastBlock), fmt.Sprintf("with fewer than %d all are at a border", leastBlock)
		if !x.sends && !x.receives {
			least, why = 1, "no run has ranks with none" // a collective operation knows no border
		}
		for _, l := range []*valueLaw{x.sendBytes, x.recvBytes} {
			for _, g := range l.groups() {
				if g.Grid == nil || len(g.Law.Laws) == 0 || !g.exact {
					continue
				}
				dims, ok := g.Grid.Dims(ranks)
				if !ok {
					continue
				}
				for axis, extent := range g.Law.Laws[0].Domain() {
					if axis >= len(dims) || 2*extent <= largest {
						continue
					}
					extent = wholeAxis(extents, extent)
					seen := extent
					for _, p := range m.Training {
						if d, ok := g.Grid.Dims(p); ok {
							seen = min(seen, extent/int64(d[axis]))
						}
					}
					if b := extent / int64(dims[axis]); b < least && b < seen {
						return fmt.Sprintf("%d ranks are too many for its domain: %d cells along an axis are cut into %d parts, so that a rank has %d, while ranks have %d or more at up to %d ranks, and %s",
							ranks, extent, dims[axis], b, seen, most, why)
					}
				}
			}
		}
	}
	return ""
}

// wholeAxis is an extent with the cells at both ends of the axis that a message may leave out, where other messages have them: the largest of all extents
// that is at most that much larger.
func wholeAxis(ascending []int64, extent int64) int64 {
	const ends = 2
	for _, e := range slices.Backward(ascending) {
		if e <= extent+ends {
			return max(e, extent)
		}
	}
	return extent
}

// groups are the laws of package regress that a law is made of.
func (l *valueLaw) groups() (all []*groupLaw) {
	switch {
	case l == nil:
	case l.Root != nil:
		all = append(l.Root.groups(), l.Others.groups()...)
	case l.Group != nil:
		all = []*groupLaw{l.Group}
	}
	for i := range all {
		if all[i].Law == nil {
			return nil
		}
	}
	return all
}

// unused says of communicators that a program splits off and that have one rank each in all runs: they are of an axis of its layout that is not used so
// far. A program may begin to use it at any larger number of ranks, and nothing in the runs says at which.
func (m *Model) unused() string {
	for _, s := range m.t.runs {
		single := make([]bool, s.Ranks)
		for i := range s.Comms {
			if c := &s.Comms[i]; (c.Kind == "split" || c.Kind == "cart" || c.Kind == "cart_sub" || c.Kind == "create") && len(c.Members) == 1 && len(c.Remote) == 0 && c.Members[0] >= 0 {
				single[c.Members[0]] = true
			}
		}
		if s.Ranks > 1 && slices.Contains(single, false) {
			return ""
		}
	}
	return fmt.Sprintf("layout: the program splits off communicators that have one rank each in all runs (up to %d ranks): an axis of its layout that is not used yet. Whether it uses it above is not known: collectives there may be on other communicators; a run at the number of ranks that is asked for, or near it, tells",
		m.Training[len(m.Training)-1])
}
