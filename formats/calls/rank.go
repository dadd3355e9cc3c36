package calls

import (
	"cmp"
	"slices"

	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

// Rank knows what the handles of a rank stand for, call after call.
type Rank struct {
	me    int32
	self  int64 // the handle of MPI_COMM_SELF
	comms *timed.Comms
	known map[int64]*timed.Comm // by handle; nil: its members are not known
	made  []*timed.Comm         // by the constructors that follow; nil: not a member, or not known
	hidden

	groups   map[int64][]int32
	requests map[uint64]*request
	windows  map[int64]window
	files    map[int64]window
	serial   uint64
	numbers  uint32
}

// request is an open request of a rank.
type request struct {
	number uint64 // that package timed knows
	row    schema.Event
	atMost bool
	// persistent requests stay when they complete; init is the number of the call that made them.
	persistent, active bool
	init               uint64
}

// window is a window or a file, under a number of its own, as handles are used again.
type window struct {
	number uint32
	comm   *timed.Comm
}

// NewRank returns the handles of a rank at its start: world and self are those of MPI_COMM_WORLD and MPI_COMM_SELF, if
// they are fixed. made has what the constructors of the rank make, as Resolve returns it.
func NewRank(me int32, comms *timed.Comms, made []*timed.Comm, world, self int64) *Rank {
	r := &Rank{me: me, comms: comms, known: map[int64]*timed.Comm{}, made: made, groups: map[int64][]int32{},
		requests: map[uint64]*request{}, windows: map[int64]window{}, files: map[int64]window{},
		hidden: hidden{doubtful: map[int64]bool{}, in: map[uint64]*timed.Comm{}, nth: map[*timed.Comm]int{}}}
	if world != Unshown {
		r.known[world] = comms.World()
	}
	r.self = self
	return r
}

// OpenIn returns, in order, the open ones of n requests whose handles begin at first, stride apart.
func (r *Rank) OpenIn(first, n, stride uint64) (open []uint64) {
	if n <= uint64(len(r.requests)) {
		for i := range n {
			if at := first + i*stride; r.Open(at) {
				open = append(open, at)
			}
		}
		return open
	}
	for at := range r.requests {
		if off := at - first; at >= first && off%stride == 0 && off/stride < n && r.Open(at) {
			open = append(open, at)
		}
	}
	slices.Sort(open)
	return open
}

// group makes the group of a call that makes one. Members of groups that are not known are nil.
func (r *Rank) group(a *Args) {
	var c *timed.Comm
	if a.MakesGroup == CommGroup || a.MakesGroup == CommRemoteGroup {
		c, _ = r.comm(a.Comm)
	}
	g, g2 := r.groups[a.Group], r.groups[a.Group2]
	var is []int32
	switch a.MakesGroup {
	case CommGroup:
		if c != nil {
			is = c.Own(r.me)
		}
	case CommRemoteGroup:
		if c != nil {
			is = c.PeerRanks(r.me)
		}
	case GroupIncl:
		is = a.chosen(g)
	case GroupExcl:
		is = without(g, a.chosen(g))
	case GroupUnion:
		is = append(slices.Clone(g), without(g2, g)...)
	case GroupIntersection:
		is = without(g, without(g, g2))
	case GroupDifference:
		is = without(g, g2)
	}
	r.groups[a.NewGroup] = is
}

// chosen returns the members of a group that the call names by their ranks in it. Ranges that MPI does not allow, with
// ranks that the group does not have or the same one again, have none.
func (a *Args) chosen(group []int32) (members []int32) {
	for _, i := range a.Ranks {
		if i >= 0 && i < int64(len(group)) {
			members = append(members, group[i])
		}
	}
	for _, x := range a.Ranges {
		first, last, stride := x[0], x[1], x[2]
		if stride == 0 || min(first, last) < 0 || max(first, last) >= int64(len(group)) {
			return nil
		}
		for i := first; stride > 0 && i <= last || stride < 0 && i >= last; i += stride {
			if len(members) == len(group) {
				return nil
			}
			members = append(members, group[i])
		}
	}
	return members
}

// without returns the members of a that are not in b.
func without(a, b []int32) (left []int32) {
	in := make(map[int32]bool, len(b))
	for _, x := range b {
		in[x] = true
	}
	for _, x := range a {
		if !in[x] {
			left = append(left, x)
		}
	}
	return left
}

// Hosts returns the names of the hosts in the order of ranks, and the host of each rank. host is the name of a rank's
// host, which may be empty.
func Hosts(ranks int, host func(rank int) string) (names []string, of []int32) {
	number := map[string]int32{}
	for rank := range ranks {
		name := cmp.Or(host(rank), "unknown")
		n, ok := number[name]
		if !ok {
			n = int32(len(names))
			number[name] = n
			names = append(names, name)
		}
		of = append(of, n)
	}
	return names, of
}
