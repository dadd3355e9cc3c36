package replay

import (
	"cmp"
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

// madeKinds is the kind of communicator that a constructor makes. A duplicate's other properties are its parent's.
var madeKinds = map[schema.CallID]schema.CommKind{
	schema.CallCommDup: schema.CommDup, schema.CallCommDupWithInfo: schema.CommDup,
	schema.CallCommIdup: schema.CommDup, schema.CallCommIdupWithInfo: schema.CommDup,
	schema.CallCommSplit: schema.CommSplit, schema.CallCommSplitType: schema.CommSplit,
	schema.CallCommCreate: schema.CommCreate, schema.CallCommCreateGroup: schema.CommCreate,
	schema.CallCartCreate: schema.CommCart, schema.CallCartSub: schema.CommCart,
	schema.CallGraphCreate: schema.CommGraph, schema.CallDistGraphCreate: schema.CommDistGraph,
	schema.CallDistGraphCreateAdjacent: schema.CommDistGraph,
	schema.CallIntercommCreate:         schema.CommInter, schema.CallIntercommMerge: schema.CommMerge,
}

// callKey names a constructor that all ranks of the parent call.
type callKey struct {
	parent   int32 // index
	instance int64
}

// partialCall is a rank's call of a constructor that not all ranks of the parent call.
type partialCall struct {
	rank int32
	call *constructor
}

// assignComms finds out which call makes which communicator and sets constructor.makes and commInfo.made. The rows do
// not record this, but it follows from rules: a constructor is identified by the parent and the instance;
// communicators with the same leader are numbered in the order in which they are made; and each is made before it is
// used. Where several assignments satisfy the rules it takes any. A communicator that no call makes, or for which no
// call can be found, is made before the first call.
func assignComms(comms *commTable, ranks []rankFindings) {
	calls := map[callKey]map[int32]*constructor{} // by rank
	var keys []callKey
	var partial []partialCall
	for rank := range ranks {
		for i := range ranks[rank].constructors {
			c := &ranks[rank].constructors[i]
			if c.instance == schema.NullInt64 {
				partial = append(partial, partialCall{int32(rank), c})
				continue
			}
			k := callKey{c.comm, c.instance}
			if calls[k] == nil {
				calls[k] = map[int32]*constructor{}
				keys = append(keys, k)
			}
			calls[k][int32(rank)] = c
		}
	}
	slices.SortFunc(keys, func(a, b callKey) int {
		return cmp.Or(cmp.Compare(a.parent, b.parent), cmp.Compare(a.instance, b.instance))
	})
	for _, k := range keys {
		assignCall(comms, ranks, k.parent, calls[k])
	}
	for k, c := range comms.list {
		if !c.made {
			assignPartial(c, int32(k), ranks, partial)
		}
	}
}

// assignCall chooses the communicators that a constructor, called by these ranks, makes.
func assignCall(comms *commTable, ranks []rankFindings, parent int32, calls map[int32]*constructor) {
	var kind schema.CommKind
	for _, c := range calls {
		kind = c.kind
	}
	led := map[int32]bool{}
	var candidates []int32
	for k, c := range comms.list {
		if c.made || c.parents[0] != parent || c.kind != kind || c.outside || led[c.leader()] {
			continue
		}
		led[c.leader()] = true // the next communicator with this leader
		candidates = append(candidates, int32(k))
	}
	slices.SortStableFunc(candidates, func(x, y int32) int {
		return cmp.Compare(rowsToUse(comms.list[x], x, ranks, calls), rowsToUse(comms.list[y], y, ranks, calls))
	})
	for _, k := range candidates {
		assign(comms.list[k], k, ranks, func(rank int32) *constructor { return calls[rank] })
	}
}

// rowsToUse returns the least number of rows, over the members of communicator k, from the constructor to its first
// use.
func rowsToUse(c *commInfo, k int32, ranks []rankFindings, calls map[int32]*constructor) int64 {
	least := int64(math.MaxInt64)
	for _, group := range c.groups {
		for _, m := range group {
			if call, ok := calls[m]; ok {
				if first, used := ranks[m].firstUse[k]; used {
					least = min(least, first-call.seq)
				}
			}
		}
	}
	return least
}

// assign assigns communicator k to the calls that make it, if each member has a call that makes none yet and comes
// before the first use.
func assign(c *commInfo, k int32, ranks []rankFindings, call func(rank int32) *constructor) {
	var calls []*constructor
	for _, group := range c.groups {
		for _, m := range group {
			x := call(m)
			if x == nil || x.makes >= 0 {
				return
			}
			if first, used := ranks[m].firstUse[k]; used && first <= x.seq {
				return
			}
			calls = append(calls, x)
		}
	}
	c.made = true
	for _, x := range calls {
		x.makes = k
	}
}

// assignPartial finds the calls of a communicator that not all ranks of the parent made.
func assignPartial(c *commInfo, k int32, ranks []rankFindings, calls []partialCall) {
	if c.kind != schema.CommCreate && c.kind != schema.CommInter || c.outside {
		return
	}
	assign(c, k, ranks, func(rank int32) *constructor {
		side := max(c.side(rank), 0)
		for _, x := range calls {
			if x.rank == rank && x.call.makes < 0 && x.call.kind == c.kind && x.call.comm == c.parents[side] {
				return x.call
			}
		}
		return nil
	})
}
