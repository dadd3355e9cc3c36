package replay

import (
	"fmt"
	"slices"

	"github.com/commq/commq/schema"
)

// construct makes the operation of a constructor of a communicator.
func (s *scheduler) construct(r *rankState, e *schema.Event) error {
	call := schema.CallID(e.Call)
	if call == schema.CallCommSplitType {
		call = schema.CallCommSplit
		s.notes.count("MPI_Comm_split_type played as MPI_Comm_split with the groups that it made, calls")
	}
	i := slices.IndexFunc(r.constructors, func(x constructor) bool { return x.seq == e.Seq })
	if i < 0 {
		return fmt.Errorf("%s: communicator %d is not in the table comms", nameRow(e), e.Comm)
	}
	x := &construction{comms: s.comms, call: call, row: e, rank: e.Rank, slot: int64(r.constructors[i].makes),
		parentIndex: int64(r.constructors[i].comm)}
	x.parent = s.comms.list[x.parentIndex]
	if x.slot >= 0 {
		x.made = s.comms.list[x.slot]
	} else if madeKinds[call] == schema.CommDup {
		x.slot = r.spare() // made and never seen again
	}
	args, err := x.args()
	if err != nil {
		return err
	}
	if call.Is(schema.FactMakesRequest) {
		args = append(args, r.post(e, 0, 0, false).slot)
	}
	r.emit(opcodeOf[call], e, args...)
	return nil
}

// construction is a rank's call of a constructor.
type construction struct {
	comms        *commTable
	call         schema.CallID
	row          *schema.Event
	rank         int32
	parent, made *commInfo // made is nil when the rank gets no communicator, or an unknown one
	parentIndex  int64
	slot         int64 // index of made; -1: none
}

// args returns the parent, the new communicator and the arguments special to the constructor.
func (x *construction) args() ([]int64, error) {
	args, err := x.special()
	return append([]int64{x.parentIndex, x.slot}, args...), err
}

func (x *construction) special() ([]int64, error) {
	switch x.call {
	case schema.CallCommSplit:
		if x.made == nil {
			return []int64{-1, 0}, nil // MPI_UNDEFINED
		}
		return []int64{x.slot, x.made.rank(x.rank)}, nil // color, key
	case schema.CallCommCreate:
		if x.made == nil {
			return []int64{0}, nil
		}
	case schema.CallCartCreate:
		return x.cart()
	}
	if madeKinds[x.call] == schema.CommDup {
		return nil, nil
	}
	if x.made == nil {
		return nil, x.unknown()
	}
	switch x.call {
	case schema.CallCommCreate, schema.CallCommCreateGroup:
		args := []int64{int64(len(x.made.groups[0]))}
		for _, m := range x.made.groups[0] {
			args = append(args, x.parent.rank(m))
		}
		return args, nil
	case schema.CallCartSub:
		return x.cartSub()
	case schema.CallIntercommCreate:
		return x.intercomm()
	case schema.CallIntercommMerge:
		high := int64(0)
		if !slices.Contains(x.parent.groups[max(x.parent.side(x.rank), 0)], x.made.groups[0][0]) {
			high = 1
		}
		return []int64{high}, nil
	default: // of a graph
		return x.graph()
	}
}

func (x *construction) unknown() error {
	switch x.call {
	case schema.CallGraphCreate, schema.CallDistGraphCreate, schema.CallDistGraphCreateAdjacent:
		return fmt.Errorf("%s: the edges of the graph that it makes are not known", nameRow(x.row))
	}
	return fmt.Errorf("%s: the communicator that it makes is not known", nameRow(x.row))
}

// intercomm returns the remote leader and the tag.
func (x *construction) intercomm() ([]int64, error) {
	side := x.made.side(x.rank)
	if !slices.Equal(x.parent.groups[0], x.made.groups[side]) {
		return nil, fmt.Errorf("%s: intercommunicator %d has other ranks than the local communicator %d",
			nameRow(x.row), x.made.id, x.parent.id)
	}
	return []int64{int64(x.made.groups[1-side][0]), x.slot % neverTag}, nil
}

// checkOrder checks that a topology has its parent's first ranks in their order, as it has where ranks are not
// reordered.
func (x *construction) checkOrder(c *commInfo) error {
	n := len(c.groups[0])
	if n > len(x.parent.groups[0]) || !slices.Equal(x.parent.groups[0][:n], c.groups[0]) {
		return fmt.Errorf("%s: MPI gave communicator %d another order of ranks than its parent %d has, which cannot "+
			"be requested", nameRow(x.row), c.id, x.parent.id)
	}
	return nil
}

func (x *construction) cart() ([]int64, error) {
	c := x.made
	if c == nil { // the rank is left out of it: any member knows the extents
		for _, y := range x.comms.list {
			if y.kind == schema.CommCart && y.made && int64(y.parents[0]) == x.parentIndex &&
				!slices.Contains(y.groups[0], x.rank) {
				c = y
			}
		}
		if c == nil {
			return nil, x.unknown()
		}
	}
	if err := x.checkOrder(c); err != nil {
		return nil, err
	}
	return gridArgs(c), nil
}

// gridArgs returns the number of dimensions, and each one's extent and whether it is periodic.
func gridArgs(c *commInfo) []int64 {
	args := []int64{int64(len(c.dims))}
	for i := range c.dims {
		period := int64(0)
		if i < len(c.periods) {
			period = int64(c.periods[i])
		}
		args = append(args, int64(c.dims[i]), period)
	}
	return args
}

// cartSub finds the dimensions that a rank's part of a grid keeps.
func (x *construction) cartSub() ([]int64, error) {
	n := len(x.parent.dims)
	if n > 16 {
		return nil, x.unknown()
	}
	for mask := range 1 << n {
		if !slices.Equal(x.made.groups[0], gridSlice(x.parent, mask, int(x.parent.rank(x.rank)))) ||
			!slices.Equal(selectBits(x.parent.dims, mask), x.made.dims) {
			continue
		}
		args := []int64{int64(n)}
		for d := range n {
			args = append(args, int64(mask>>d&1))
		}
		return args, nil
	}
	return nil, fmt.Errorf("%s: communicator %d is no part of the grid of communicator %d", nameRow(x.row), x.made.id,
		x.parent.id)
}

// selectBits returns the numbers whose bit is set.
func selectBits(list []int32, mask int) (selected []int32) {
	for d, n := range list {
		if mask>>d&1 == 1 {
			selected = append(selected, n)
		}
	}
	return selected
}

// gridSlice returns the ranks of a grid that agree with rank in all dimensions but those of the mask.
func gridSlice(grid *commInfo, mask, rank int) (members []int32) {
	for r, world := range grid.groups[0] {
		agree, a, b := true, r, rank
		for d := len(grid.dims) - 1; d >= 0; d-- {
			n := max(int(grid.dims[d]), 1)
			if mask>>d&1 == 0 && a%n != b%n {
				agree = false
			}
			a, b = a/n, b/n
		}
		if agree {
			members = append(members, world)
		}
	}
	return members
}

// graph returns the edges: for MPI_Graph_create those of all ranks, else the rank's own.
func (x *construction) graph() ([]int64, error) {
	c := x.made
	if len(c.edges) != len(c.groups[0]) {
		return nil, x.unknown()
	}
	if err := x.checkOrder(c); err != nil {
		return nil, err
	}
	if x.call != schema.CallGraphCreate {
		return neighbourArgs(c, c.rank(x.rank)), nil
	}
	args := []int64{int64(len(c.edges))}
	for _, list := range c.edges {
		args = append(args, int64(len(list)))
		for _, n := range list {
			args = append(args, int64(n))
		}
	}
	return args, nil
}

// neighbourArgs returns the ranks that send to a rank and those that it sends to, each list with its length before
// it.
func neighbourArgs(c *commInfo, rank int64) []int64 {
	var from, to []int64
	for r, list := range c.edges {
		for _, n := range list {
			if int64(n) == rank {
				from = append(from, int64(r))
			}
		}
	}
	for _, n := range c.edges[rank] {
		to = append(to, int64(n))
	}
	args := append([]int64{int64(len(from))}, from...)
	return append(append(args, int64(len(to))), to...)
}

// emitEarlyComms makes the communicators of the rank that no call of the run makes, in the order of their numbers, so
// that ranks do not wait for each other for ever. It adds their indices to early.
func emitEarlyComms(r *rankState, comms *commTable, early map[int]bool) {
	e := schema.NullEvent
	e.Rank, e.Seq = r.rank, -1
	group := func(members []int32, slot int64) {
		args := []int64{comms.world(), slot, int64(len(members))}
		for _, m := range members {
			args = append(args, int64(m))
		}
		r.emit(opcodes["Comm_create_group"], &e, args...)
	}
	for k, c := range comms.list {
		side := c.side(r.rank)
		if c.made || c.outside || c.kind == schema.CommWorld || c.kind == schema.CommSelf || side < 0 || c.id == 0 {
			continue
		}
		early[k] = true
		switch {
		case c.inter():
			local := r.spare()
			group(c.groups[side], local)
			r.emit(opcodes["Intercomm_create"], &e, local, int64(k), int64(c.groups[1-side][0]), int64(k)%neverTag)
		case len(c.dims) > 0:
			local := r.spare()
			group(c.groups[0], local)
			r.emit(opcodes["Cart_create"], &e, append([]int64{local, int64(k)}, gridArgs(c)...)...)
		case len(c.edges) == len(c.groups[0]) && len(c.edges) > 0:
			local := r.spare()
			group(c.groups[0], local)
			r.emit(opcodes["Dist_graph_create_adjacent"], &e,
				append([]int64{local, int64(k)}, neighbourArgs(c, c.rank(r.rank))...)...)
		default:
			group(c.groups[0], int64(k))
		}
	}
}
