package replay

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/schema"
)

// commInfo is a communicator of the run.
type commInfo struct {
	id      int32
	kind    schema.CommKind
	groups  [2][]int32 // world ranks; -1 outside the run
	parents [2]int32   // index; -1: none
	dims    []int32
	periods []int32
	edges   [][]int32 // by rank
	outside bool
	made    bool // a call of the run makes it
}

// inter says whether it is an intercommunicator.
func (c *commInfo) inter() bool { return len(c.groups[1]) > 0 }

// side is the group that a rank is in; -1: in none.
func (c *commInfo) side(rank int32) int {
	for s := range c.groups {
		if slices.Contains(c.groups[s], rank) {
			return s
		}
	}
	return -1
}

// peers are those that a rank exchanges data with in collectives.
func (c *commInfo) peers(rank int32) []int32 {
	if c.inter() {
		return c.groups[1-max(c.side(rank), 0)]
	}
	return c.groups[0]
}

// rank is a world rank's rank in its group.
func (c *commInfo) rank(world int32) int64 {
	return int64(slices.Index(c.groups[max(c.side(world), 0)], world))
}

func (c *commInfo) leader() int32 { return c.groups[0][0] }

func (b *builder) readComms() error {
	b.commOf = map[int32]int32{}
	parents := map[int32][2]int32{}
	for i := range b.src.Comms {
		r := &b.src.Comms[i]
		k, ok := b.commOf[r.Comm]
		if !ok {
			k = int32(len(b.comms))
			b.commOf[r.Comm] = k
			b.comms = append(b.comms, &commInfo{id: r.Comm, kind: schema.CommKind(r.Kind)})
			parents[k] = [2]int32{schema.NullInt32, schema.NullInt32}
			b.comms[k].dims, b.comms[k].periods = numbers(r.CartDims), numbers(r.CartPeriods)
		}
		c := b.comms[k]
		if r.Remote < 0 || r.Remote > 1 || r.CommRank != int32(len(c.groups[r.Remote])) {
			return fmt.Errorf("communicator %d: rank %d of group %d is out of order", r.Comm, r.CommRank, r.Remote)
		}
		world := r.WorldRank
		if world == schema.NullInt32 {
			c.outside, world = true, -1
		} else if world < 0 || int(world) >= len(b.src.Ranks) {
			return fmt.Errorf("communicator %d has rank %d, and the run has %d", r.Comm, world, len(b.src.Ranks))
		}
		c.groups[r.Remote] = append(c.groups[r.Remote], world)
		p := parents[k]
		p[r.Remote] = r.Parent
		parents[k] = p
		if r.GraphEdges != schema.NullText && (c.kind == schema.CommGraph || c.kind == schema.CommDistGraph) {
			c.edges = append(c.edges, numbers(r.GraphEdges))
		}
	}
	for k, c := range b.comms {
		if len(c.groups[0]) == 0 {
			return fmt.Errorf("communicator %d has no first group", c.id)
		}
		for s, id := range parents[int32(k)] {
			c.parents[s] = -1
			if p, ok := b.commOf[id]; ok && id != schema.NullInt32 {
				c.parents[s] = p
			}
		}
	}
	if k, ok := b.commOf[0]; !ok || len(b.comms[k].groups[0]) != len(b.src.Ranks) {
		return fmt.Errorf("communicator 0 does not have the %d ranks of the run", len(b.src.Ranks))
	}
	return nil
}

// numbers reads a list that the table comms has; nil for none.
func numbers(text string) []int32 {
	if text == "" || text == schema.NullText {
		return nil
	}
	var list []int32
	for _, f := range strings.Split(text, ",") {
		n, err := strconv.ParseInt(f, 10, 32)
		if err != nil {
			return nil
		}
		list = append(list, int32(n))
	}
	return list
}

// kinds says what kind of communicator a constructor makes; dup takes after its parent.
var kinds = map[string]schema.CommKind{"Comm_dup": schema.CommDup, "Comm_dup_with_info": schema.CommDup, "Comm_idup": schema.CommDup, "Comm_idup_with_info": schema.CommDup,
	"Comm_split": schema.CommSplit, "Comm_split_type": schema.CommSplit, "Comm_create": schema.CommCreate, "Comm_create_group": schema.CommCreate,
	"Cart_create": schema.CommCart, "Cart_sub": schema.CommCart, "Graph_create": schema.CommGraph, "Dist_graph_create": schema.CommDistGraph,
	"Dist_graph_create_adjacent": schema.CommDistGraph, "Intercomm_create": schema.CommInter, "Intercomm_merge": schema.CommMerge}

// constructor is a call that makes a communicator.
type constructor struct {
	seq      int64
	instance int64
	comm     int32 // index of the parent
	kind     schema.CommKind
	makes    int32 // index; -1: nothing for this rank
}

// assignComms finds out which call makes which communicator. The rows do not say, but those of a constructor are told by the parent and
// the instance, those that one rank leads are numbered in the order in which they are made, and one is made before it is used. Where that
// leaves a choice any serves. A communicator that no call makes, or that none can be found for, is made before the first call.
func (b *builder) assignComms() {
	type place struct {
		parent   int32
		instance int64
	}
	calls := map[place]map[int32]*constructor{} // by rank
	var places []place
	var alone []*constructor // of calls that not all of the parent make
	of := map[*constructor]int32{}
	for rank := range b.ranks {
		for i := range b.ranks[rank].constructors {
			c := &b.ranks[rank].constructors[i]
			of[c] = int32(rank)
			if c.instance == schema.NullInt64 {
				alone = append(alone, c)
				continue
			}
			p := place{c.comm, c.instance}
			if calls[p] == nil {
				calls[p] = map[int32]*constructor{}
				places = append(places, p)
			}
			calls[p][int32(rank)] = c
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		if a.parent != b.parent {
			return int(a.parent - b.parent)
		}
		return int(max(min(a.instance-b.instance, 1), -1))
	})
	for _, p := range places {
		b.assignPlace(p.parent, calls[p])
	}
	for k, c := range b.comms {
		if !c.made {
			b.assignAlone(int32(k), c, alone, of)
		}
	}
}

// assignPlace chooses the communicators that a constructor, called by these ranks, makes.
func (b *builder) assignPlace(parent int32, calls map[int32]*constructor) {
	var kind schema.CommKind
	for _, c := range calls {
		kind = c.kind
	}
	led := map[int32]bool{}
	var heads []int32
	for k, c := range b.comms {
		if c.made || c.parents[0] != parent || c.kind != kind || c.outside || led[c.leader()] {
			continue
		}
		led[c.leader()] = true // the next that this rank leads
		heads = append(heads, int32(k))
	}
	due := func(k int32) int64 { // how many rows from the call to its first use, at the rank where they are fewest
		least := int64(math.MaxInt64)
		for _, group := range b.comms[k].groups {
			for _, m := range group {
				if c, ok := calls[m]; ok {
					if first, used := b.ranks[m].firstUse[k]; used {
						least = min(least, first-c.seq)
					}
				}
			}
		}
		return least
	}
	slices.SortStableFunc(heads, func(x, y int32) int {
		switch dx, dy := due(x), due(y); {
		case dx < dy:
			return -1
		case dx > dy:
			return 1
		}
		return 0
	})
	for _, k := range heads {
		b.assign(k, func(m int32) *constructor { return calls[m] })
	}
}

// assign gives a communicator to the calls that make it, when each member has one that is free and early enough.
func (b *builder) assign(k int32, call func(rank int32) *constructor) {
	c := b.comms[k]
	var all []*constructor
	for _, group := range c.groups {
		for _, m := range group {
			x := call(m)
			if x == nil || x.makes >= 0 {
				return
			}
			if first, used := b.ranks[m].firstUse[k]; used && first <= x.seq {
				return
			}
			all = append(all, x)
		}
	}
	c.made = true
	for _, x := range all {
		x.makes = k
	}
}

// assignAlone finds the calls of a communicator that not all of the parent made.
func (b *builder) assignAlone(k int32, c *commInfo, calls []*constructor, of map[*constructor]int32) {
	if c.kind != schema.CommCreate && c.kind != schema.CommInter || c.outside {
		return
	}
	b.assign(k, func(m int32) *constructor {
		side := max(c.side(m), 0)
		for _, x := range calls {
			if of[x] == m && x.makes < 0 && x.kind == c.kind && x.comm == c.parents[side] {
				return x
			}
		}
		return nil
	})
}

// construct is the operation of a constructor.
func (b *builder) construct(s *rankState, e *schema.Event) error {
	op := opcodeOf[e.Call]
	if e.Call == int16(schema.CallCommSplitType) {
		op = opcodes["Comm_split"]
		b.note("MPI_Comm_split_type played as MPI_Comm_split with the groups that it made, calls")
	}
	var x *constructor
	for i := range s.constructors {
		if s.constructors[i].seq == e.Seq {
			x = &s.constructors[i]
		}
	}
	if x == nil {
		return fmt.Errorf("%s: communicator %d is not in the table comms", at(e), e.Comm)
	}
	var c *commInfo
	if x.makes >= 0 {
		c = b.comms[x.makes]
	}
	args, err := b.constructorArgs(opNames[op-1], e, x, c)
	if err != nil {
		return err
	}
	if op == opcodes["Comm_idup"] || op == opcodes["Comm_idup_with_info"] {
		r := s.post(e, 0, 0, false)
		args = append(args, r.slot)
	}
	s.emit(op, e, args...)
	return nil
}

// constructorArgs are the parent, the new communicator and what is special to a constructor.
func (b *builder) constructorArgs(name string, e *schema.Event, x *constructor, c *commInfo) ([]int64, error) {
	parent := b.comms[x.comm]
	args := []int64{int64(x.comm), int64(x.makes)}
	switch name {
	case "Comm_dup", "Comm_dup_with_info", "Comm_idup", "Comm_idup_with_info":
		if c == nil {
			args[1] = b.ranks[e.Rank].spare(b) // made and never seen again
		}
	case "Comm_split":
		color, key := int64(-1), int64(0)
		if c != nil {
			color, key = int64(x.makes), c.rank(e.Rank)
		}
		args = append(args, color, key)
	case "Comm_create", "Comm_create_group":
		if c == nil && name == "Comm_create_group" {
			return nil, fmt.Errorf("%s: which communicator it makes is not known", at(e))
		}
		if c == nil {
			return append(args, 0), nil
		}
		args = append(args, int64(len(c.groups[0])))
		for _, m := range c.groups[0] {
			args = append(args, parent.rank(m))
		}
	case "Cart_create":
		return b.cart(e, args, parent, c)
	case "Cart_sub":
		return b.cartSub(e, args, parent, c)
	case "Graph_create", "Dist_graph_create", "Dist_graph_create_adjacent":
		return b.graph(name, e, args, parent, c)
	case "Intercomm_create":
		if c == nil {
			return nil, fmt.Errorf("%s: which communicator it makes is not known", at(e))
		}
		side := c.side(e.Rank)
		if !slices.Equal(parent.groups[0], c.groups[side]) {
			return nil, fmt.Errorf("%s: intercommunicator %d has other ranks than the local communicator %d", at(e), c.id, parent.id)
		}
		args = append(args, int64(c.groups[1-side][0]), int64(x.makes)%neverTag)
	case "Intercomm_merge":
		if c == nil {
			return nil, fmt.Errorf("%s: which communicator it makes is not known", at(e))
		}
		high := int64(0)
		if !slices.Contains(parent.groups[max(parent.side(e.Rank), 0)], c.groups[0][0]) {
			high = 1
		}
		args = append(args, high)
	}
	return args, nil
}

// spare is the number of a communicator that the run does not tell.
func (s *rankState) spare(b *builder) int64 {
	s.spares++
	b.extra = max(b.extra, s.spares)
	return int64(len(b.comms) + s.spares - 1)
}

// sameOrder says that a topology has its parent's first ranks, as it has where ranks are not reordered.
func sameOrder(e *schema.Event, parent, c *commInfo) error {
	n := len(c.groups[0])
	if n > len(parent.groups[0]) || !slices.Equal(parent.groups[0][:n], c.groups[0]) {
		return fmt.Errorf("%s: MPI gave communicator %d another order of ranks than its parent %d has, which cannot be asked for", at(e), c.id, parent.id)
	}
	return nil
}

func (b *builder) cart(e *schema.Event, args []int64, parent, c *commInfo) ([]int64, error) {
	if c == nil {
		for _, x := range b.comms { // this rank is left out of it: any member knows the extents
			if x.kind == schema.CommCart && x.made && x.parents[0] == b.commOf[e.Comm] && !slices.Contains(x.groups[0], e.Rank) {
				c = x
			}
		}
		if c == nil {
			return nil, fmt.Errorf("%s: which communicator it makes is not known", at(e))
		}
	}
	if err := sameOrder(e, parent, c); err != nil {
		return nil, err
	}
	return append(args, topology(c)...), nil
}

// topology is the number of dimensions, and each one's extent and whether it is periodic.
func topology(c *commInfo) []int64 {
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
func (b *builder) cartSub(e *schema.Event, args []int64, parent, c *commInfo) ([]int64, error) {
	n := len(parent.dims)
	if c == nil || n > 16 {
		return nil, fmt.Errorf("%s: which communicator it makes is not known", at(e))
	}
	for mask := range 1 << n {
		if !slices.Equal(c.groups[0], keeping(parent, mask, int(parent.rank(e.Rank)))) || !slices.Equal(numbersOf(parent.dims, mask), c.dims) {
			continue
		}
		args = append(args, int64(n))
		for d := range n {
			args = append(args, int64(mask>>d&1))
		}
		return args, nil
	}
	return nil, fmt.Errorf("%s: communicator %d is no part of the grid of communicator %d", at(e), c.id, parent.id)
}

// numbersOf are the numbers whose bit is set.
func numbersOf(list []int32, mask int) (kept []int32) {
	for d, n := range list {
		if mask>>d&1 == 1 {
			kept = append(kept, n)
		}
	}
	return kept
}

// keeping are the ranks of a grid that agree with rank in all dimensions but those of the mask.
func keeping(grid *commInfo, mask, rank int) (members []int32) {
	for r, world := range grid.groups[0] {
		same, a, b := true, r, rank
		for d := len(grid.dims) - 1; d >= 0; d-- {
			n := max(int(grid.dims[d]), 1)
			if mask>>d&1 == 0 && a%n != b%n {
				same = false
			}
			a, b = a/n, b/n
		}
		if same {
			members = append(members, world)
		}
	}
	return members
}

// graph makes the arguments of a graph: of MPI_Graph_create all edges, else the rank's own.
func (b *builder) graph(name string, e *schema.Event, args []int64, parent, c *commInfo) ([]int64, error) {
	if c == nil || len(c.edges) != len(c.groups[0]) {
		return nil, fmt.Errorf("%s: the edges of the graph that it makes are not known", at(e))
	}
	if err := sameOrder(e, parent, c); err != nil {
		return nil, err
	}
	if name == "Graph_create" {
		args = append(args, int64(len(c.edges)))
		for _, list := range c.edges {
			args = append(args, int64(len(list)))
			for _, n := range list {
				args = append(args, int64(n))
			}
		}
		return args, nil
	}
	return append(args, b.adjacent(c, c.rank(e.Rank))...), nil
}

// adjacent are the neighbours of a rank that send to it and that it sends to, each with their number before.
func (b *builder) adjacent(c *commInfo, rank int64) []int64 {
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

// before makes the communicators that no call of the run makes, in the order of their numbers, so that ranks do not wait for each other for ever.
func (b *builder) before(s *rankState) {
	e := schema.NullEvent
	e.Rank, e.Seq = s.rank, -1
	world := int64(b.commOf[0])
	group := func(members []int32, slot int64) {
		args := []int64{world, slot, int64(len(members))}
		for _, m := range members {
			args = append(args, int64(m))
		}
		s.emit(opcodes["Comm_create_group"], &e, args...)
	}
	for k, c := range b.comms {
		side := c.side(s.rank)
		if c.made || c.outside || c.kind == schema.CommWorld || c.kind == schema.CommSelf || side < 0 || c.id == 0 {
			continue
		}
		b.unmade(k)
		switch {
		case c.inter():
			local := s.spare(b)
			group(c.groups[side], local)
			s.emit(opcodes["Intercomm_create"], &e, local, int64(k), int64(c.groups[1-side][0]), int64(k)%neverTag)
		case len(c.dims) > 0:
			local := s.spare(b)
			group(c.groups[0], local)
			s.emit(opcodes["Cart_create"], &e, append([]int64{local, int64(k)}, topology(c)...)...)
		case len(c.edges) == len(c.groups[0]) && len(c.edges) > 0:
			local := s.spare(b)
			group(c.groups[0], local)
			s.emit(opcodes["Dist_graph_create_adjacent"], &e, append([]int64{local, int64(k)}, b.adjacent(c, c.rank(s.rank))...)...)
		default:
			group(c.groups[0], int64(k))
		}
	}
}

// unmade counts a communicator once.
func (b *builder) unmade(k int) {
	if !b.early[k] {
		b.early[k] = true
		b.note("Communicators that no call of the run is seen to make, made before its first")
	}
}
