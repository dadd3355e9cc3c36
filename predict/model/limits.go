package model

import (
	"fmt"
	"maps"
	"slices"

	"github.com/commq/commq/predict/model/law"
)

// minBlock is the number of cells that a rank needs along an axis so that some are not at a border.
const minBlock = 3

// ExceedsDomain returns the reason if a number of ranks is more than the program's domain allows, otherwise "". On that
// many ranks, a rank would have fewer cells along an axis than any rank of the runs had, and fewer than minBlock (at
// least 1 for collective operations, which have no borders). Nothing shows that the program runs with such blocks.
func (m *Model) ExceedsDomain(ranks int32) string {
	largest := int64(0) // coarse levels of a hierarchy of grids have few cells sooner, and are no limit
	var extents []int64
	for _, x := range m.Sites {
		for _, g := range append(x.Send.Bytes.Groups(), x.Recv.Bytes.Groups()...) {
			for _, extent := range g.Domain() {
				largest, extents = max(largest, extent), append(extents, extent)
			}
		}
	}
	slices.Sort(extents)
	for _, x := range m.Sites {
		for _, l := range []*law.Law{x.Send.Bytes, x.Recv.Bytes} {
			for _, g := range l.Groups() {
				if why := m.exceedsExtents(x, g, ranks, extents, largest); why != "" {
					return why
				}
			}
		}
	}
	return ""
}

// exceedsExtents checks the extents of one law of a site. extents are those of all laws, ascending.
func (m *Model) exceedsExtents(x *Site, g *law.GroupLaw, ranks int32, extents []int64, largest int64) string {
	domain := g.Domain()
	if domain == nil {
		return ""
	}
	dims, ok := g.Grid.Dims(ranks)
	if !ok {
		return ""
	}
	least, why := int64(minBlock), fmt.Sprintf("with fewer than %d all are at a border", minBlock)
	if !x.Sends && !x.Receives {
		least, why = 1, "no run has ranks with none" // a collective operation has no borders
	}
	for _, axis := range slices.Sorted(maps.Keys(domain)) {
		extent := domain[axis]
		if axis >= len(dims) || 2*extent <= largest {
			continue
		}
		extent = wholeExtent(extents, extent)
		seen := extent // fewest cells of a rank in the runs
		for _, p := range m.Training {
			if d, ok := g.Grid.Dims(p); ok {
				seen = min(seen, extent/int64(d[axis]))
			}
		}
		if b := extent / int64(dims[axis]); b < least && b < seen {
			return fmt.Sprintf(
				"%d ranks are too many for its domain: %d cells along an axis are cut into %d parts, so "+
					"that a rank has %d, while ranks have %d or more at up to %d ranks, and %s", ranks, extent,
				dims[axis], b,
				seen, m.LargestRun(), why)
		}
	}
	return ""
}

// wholeExtent returns an extent together with the cells at both ends of the axis, which some messages leave out and
// others have: the largest of all extents that is at most two more.
func wholeExtent(ascending []int64, extent int64) int64 {
	const ends = 2
	for _, e := range slices.Backward(ascending) {
		if e <= extent+ends {
			return max(e, extent)
		}
	}
	return extent
}

// UnusedAxis returns a warning if the program splits off communicators that have one rank each in all runs, else "".
// They belong to an axis of its layout that it did not use in these runs. It may begin to use the axis at some larger
// number of ranks; the runs do not show at which.
func (m *Model) UnusedAxis() string {
	kinds := []string{"split", "cart", "cart_sub", "create"}
	for _, s := range m.Joint.Runs {
		single := make([]bool, s.Ranks)
		for i := range s.Comms {
			if c := &s.Comms[i]; slices.Contains(kinds, c.Kind) && len(c.Members) == 1 && len(c.Remote) == 0 &&
				c.Members[0] >= 0 {
				single[c.Members[0]] = true
			}
		}
		if s.Ranks > 1 && slices.Contains(single, false) {
			return ""
		}
	}
	return fmt.Sprintf(
		"layout: the program splits off communicators that have one rank each in all runs (up to %d ranks): "+
			"an axis of its layout that is not used yet. Whether larger runs use it is unknown; then collectives may be "+
			"on other communicators. A run at or near the wanted number of ranks would tell", m.LargestRun())
}
