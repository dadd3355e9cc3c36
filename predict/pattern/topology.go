package pattern

import (
	"fmt"
	"slices"
	"strings"
)

// Topology is a static pattern of messages to the neighbours on a grid of all ranks: the paper's mesh, ring and torus
// (section 4.2; BT is "toroidal" there).
type Topology struct {
	// Dims are the extents of the grid, By the steps along each axis, as MPI_Cart_create has them: the last varies
	// fastest with the rank.
	Dims []int32 `json:"dims"`
	By   []int32 `json:"by"`
	// Wraps means that ranks at the end send to the beginning; otherwise they do not send.
	Wraps bool `json:"wraps"`
}

// String formats the topology: "ring (+1)", "torus 4 x 4 (0, +1)", "mesh 4 x 4 (-1, 0)".
func (s Topology) String() string {
	var dims, by []string
	for i, n := range s.Dims {
		dims, by = append(dims, fmt.Sprint(n)), append(by, fmt.Sprintf("%+d", s.By[i]))
		if s.By[i] == 0 {
			by[i] = "0"
		}
	}
	name := "mesh " + strings.Join(dims, " x ")
	switch {
	case s.Wraps && len(dims) == 1:
		name = "ring"
	case s.Wraps:
		name = "torus " + strings.Join(dims, " x ")
	}
	return fmt.Sprintf("%s (%s)", name, strings.Join(by, ", "))
}

// shiftOn returns the shift that the mapping is on a grid, given by its extents, if it is one.
func (m Mapping) shiftOn(dims []int32) (Topology, bool) {
	from, to := make([]int32, len(dims)), make([]int32, len(dims))
	place := func(rank int32, x []int32) {
		for a, n := range slices.Backward(dims) {
			x[a], rank = rank%n, rank/n
		}
	}
	for _, wraps := range []bool{true, false} {
		s := Topology{Dims: dims, Wraps: wraps}
		is := true
		for r, dst := range m.Dst {
			if dst == None {
				if is = !wraps; !is {
					break
				}
				continue
			}
			place(int32(r), from)
			place(dst, to)
			by := make([]int32, len(dims))
			for a, n := range dims {
				if by[a] = to[a] - from[a]; wraps { // the shorter way, forward where both are as long
					by[a] = ((by[a] % n) + n) % n
					if 2*by[a] > n {
						by[a] -= n
					}
				}
			}
			if s.By == nil {
				s.By = by
			}
			if is = slices.Equal(s.By, by); !is {
				break
			}
		}
		if !is || s.By == nil || !slices.ContainsFunc(s.By, func(b int32) bool { return b != 0 }) {
			continue
		}
		if wraps || m.stopsAtEnds(&s, place) {
			return s, true
		}
	}
	return Topology{}, false
}

// stopsAtEnds reports whether exactly those ranks do not send whose destination would be outside the grid.
func (m Mapping) stopsAtEnds(s *Topology, place func(rank int32, x []int32)) bool {
	x := make([]int32, len(s.Dims))
	for r, dst := range m.Dst {
		place(int32(r), x)
		inside := true
		for a, n := range s.Dims {
			inside = inside && x[a]+s.By[a] >= 0 && x[a]+s.By[a] < n
		}
		if inside != (dst != None) {
			return false
		}
	}
	return true
}

// shiftAlongAxis returns the shift along one axis of a grid that equals the mapping, if there is one. Two steps along
// an axis are also one step along an axis that is divided in two, so it returns the shift with the fewest steps.
func (m Mapping) shiftAlongAxis() (best Topology, is bool) {
	least := int32(0)
	for stride := int32(1); stride < m.Ranks; stride++ {
		for extent := int32(2); stride*extent <= m.Ranks; extent++ {
			if m.Ranks%(stride*extent) != 0 {
				continue
			}
			s, shifts := m.shiftOn(gridOf([]int32{1, stride, stride * extent, m.Ranks}))
			if axes, steps := s.moves(); shifts && axes == 1 && (!is || steps < least) {
				best, is, least = s, true, steps
			}
		}
	}
	return best, is
}

// moves returns the number of axes along which the shift goes, and the number of steps.
func (s *Topology) moves() (axes int, steps int32) {
	for _, by := range s.By {
		if by != 0 {
			axes++
			steps += max(by, -by)
		}
	}
	return axes, steps
}

// gridOf returns the grid whose axes have the given strides, or nil when one is not a multiple of the one before.
func gridOf(strides []int32) (dims []int32) {
	slices.Sort(strides)
	strides = slices.Compact(strides)
	for i := 1; i < len(strides); i++ {
		if strides[i]%strides[i-1] != 0 {
			return nil
		}
		dims = append(dims, strides[i]/strides[i-1])
	}
	slices.Reverse(dims)
	return dims
}

// Topologies returns the topology of each mapping, nil for those that are no shift. All mappings have the same number
// of ranks. If the axes of all shifts along one axis are compatible, the topologies are on their common grid.
func Topologies(mappings []Mapping) []*Topology {
	all := make([]*Topology, len(mappings))
	if len(mappings) == 0 {
		return all
	}
	strides := []int32{1, mappings[0].Ranks}
	for i, m := range mappings {
		s, is := m.shiftAlongAxis()
		if !is {
			continue
		}
		all[i] = &s
		stride := int32(1)
		for _, n := range slices.Backward(s.Dims) {
			strides = append(strides, stride)
			stride *= n
		}
	}
	grid := gridOf(strides)
	if len(grid) < 2 {
		return all
	}
	for i, m := range mappings {
		if s, is := m.shiftOn(grid); is {
			all[i] = &s
		}
	}
	return all
}
