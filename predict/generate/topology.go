package generate

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/predict/internal/nulls"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// topology has the columns cart_dims and cart_periods of a communicator; null if it has no Cartesian topology.
type topology struct{ dims, periods string }

var noTopology = topology{schema.NullText, schema.NullText}

// extents returns the extents of the grid; nil if there is none.
func (t topology) extents() []int32 { return signature.ParseExtents(nulls.Empty(t.dims)) }

// forMembers returns the topology if its extents give this number of members; otherwise none.
func (t topology) forMembers(members int) topology {
	all := 1
	for _, n := range t.extents() {
		all *= int(n)
	}
	if t.dims == schema.NullText || all != members {
		return noTopology
	}
	return t
}

// worldLike returns the communicator of the largest run that is the number-th with all ranks; nil if some run has none,
// or runs do not agree on kind and name.
func worldLike(m *model.Model, number int) (like *signature.Comm) {
	for i, s := range m.Joint.Runs {
		worlds := s.WorldComms()
		if number >= len(worlds) {
			return nil
		}
		c := worlds[number]
		if i > 0 && (like == nil || c.Kind != like.Kind || c.Name != like.Name) {
			return nil
		}
		like = c
	}
	return like
}

// worldTopology returns the topology of the number-th communicator with all ranks; none if some run has none, or if the
// laws of its extents do not agree.
func worldTopology(m *model.Model, number int, ranks int32) topology {
	seen, periods := map[int32][]int32{}, ""
	for i, s := range m.Joint.Runs {
		worlds := s.WorldComms()
		if number >= len(worlds) || i > 0 && worlds[number].Periods != periods {
			return noTopology
		}
		periods = worlds[number].Periods
		if seen[s.Ranks] = worlds[number].Extents(); seen[s.Ranks] == nil {
			return noTopology
		}
	}
	extents, ok := pattern.Extents(seen, ranks)
	if !ok {
		return noTopology
	}
	var all []string
	for _, n := range extents {
		all = append(all, strconv.Itoa(int(n)))
	}
	return topology{strings.Join(all, ","), nulls.Text(periods)}
}

// subgridTopology returns the topology of communicators that are parts of a Cartesian grid of all ranks (MPI_Cart_sub):
// the axes of the grid that have the extents and periods of the part in all runs. It returns none if no axes do, or if
// several choices do that differ at this number of ranks.
func subgridTopology(m *model.Model, c *communicators, g *model.CommGroup, ranks int32) topology {
	if g.Like == nil || g.Like.Parent == nil {
		return noTopology
	}
	number := int(c.parent(m, g.Like)) // the id, as communicators with all ranks come first
	if number < 0 {
		return noTopology
	}
	extents := worldTopology(m, number, ranks).extents()
	if extents == nil {
		return noTopology
	}
	periods := strings.Split(m.Joint.Runs[0].WorldComms()[number].Periods, ",") // the same in all runs
	axes := len(strings.Split(g.Like.Dims, ","))
	var found []topology
	for keep := uint32(1); keep < 1<<len(extents); keep++ {
		if bits.OnesCount32(keep) != axes || slices.ContainsFunc(g.Examples,
			func(part model.CommOfRun) bool { return !hasAxes(part, keep, number) }) {
			continue
		}
		var kept, keptPeriods []string
		for a, n := range extents {
			if keep>>a&1 == 1 {
				kept, keptPeriods = append(kept, strconv.Itoa(int(n))), append(keptPeriods, periods[a])
			}
		}
		found = append(found, topology{strings.Join(kept, ","), strings.Join(keptPeriods, ",")})
	}
	if found = slices.Compact(found); len(found) != 1 {
		return noTopology
	}
	return found[0]
}

// hasAxes reports whether a communicator has these axes (bits) of the grid of its run's number-th communicator with all
// ranks.
func hasAxes(c model.CommOfRun, axes uint32, number int) bool {
	worlds := c.Run.WorldComms()
	if number >= len(worlds) {
		return false
	}
	extents, periods := worlds[number].Extents(), strings.Split(worlds[number].Periods, ",")
	if len(extents) != len(periods) {
		return false
	}
	var dims []int32
	var kept []string
	for a := range extents {
		if axes>>a&1 == 1 {
			dims, kept = append(dims, extents[a]), append(kept, periods[a])
		}
	}
	return slices.Equal(dims, c.Comm.Extents()) && strings.Join(kept, ",") == c.Comm.Periods
}
