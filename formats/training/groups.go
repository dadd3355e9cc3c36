package training

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// comm is a communicator of the run.
type comm struct {
	id    int32
	name  string
	kind  schema.CommKind
	ranks []int32
	local map[int32]int32 // rank in it by world rank
	// ops are the operations on it by world rank, each an index into the rank's Ops, in the order in which they were
	// issued.
	ops map[int32][]int
	// agrees tells that all its ranks made the same collective operations; missing that some have no trace.
	agrees, missing bool
}

// key tells groups of different processes apart that have the same name.
func (g *Group) key() string { return fmt.Sprint(g.Name, g.Ranks) }

// title is the name of a group for people.
func (g *Group) title() string {
	if g.Description == "" || g.Description == "undefined" {
		return "process group " + g.Name
	}
	return g.Description
}

// placeGroups makes the communicators. 0 has all ranks: it is the group that has them all, the lowest if there are
// several.
func (j *job) placeGroups() {
	j.comms = []*comm{newComm(0, "", schema.CommWorld, everyone(j.world))}
	byKey := map[string]*comm{}
	named := false
	for _, r := range j.ranks {
		for i := range r.Groups {
			g := &r.Groups[i]
			if len(g.Ranks) == 0 || areBeyond(g.Ranks, j.world) || byKey[g.key()] != nil {
				continue
			}
			if !named && slices.Equal(g.Ranks, j.comms[0].ranks) {
				named, j.comms[0].name = true, g.title()
				byKey[g.key()] = j.comms[0]
				continue
			}
			c := newComm(int32(len(j.comms)), g.title(), schema.CommOther, g.Ranks)
			byKey[g.key()] = c
			j.comms = append(j.comms, c)
		}
	}
	for _, r := range j.ranks {
		r.placeOps(byKey)
	}
	placeMessages(j)
	if j.isOneGroup() {
		for _, r := range j.ranks {
			for i := range r.Ops {
				r.join(j.comms[0], i)
			}
		}
	}
	for _, c := range j.comms {
		c.sortOps(j.byRank)
		c.setUneven(j.byRank)
		c.agrees = j.number(c)
	}
}

// sortOps sorts the operations on the communicator by their numbers, where traces tell them.
func (c *comm) sortOps(byRank map[int32]*rank) {
	for member, ops := range c.ops {
		r := byRank[member]
		slices.SortStableFunc(ops, func(a, b int) int { return cmp.Compare(r.Ops[a].Seq, r.Ops[b].Seq) })
	}
}

// setUneven makes an all-to-all one with a count for each rank on all ranks of the communicator if one of them tells
// splits, or calls it so: where no shares are told they are even, and names of operations do not always tell.
func (c *comm) setUneven(byRank map[int32]*rank) {
	uneven := map[int]bool{} // by place among the collectives
	each := func(do func(at int, op *Op)) {
		for member, ops := range c.ops {
			at := 0
			for _, i := range ops {
				op := &byRank[member].Ops[i]
				if op.Call == schema.CallIalltoall || op.Call == schema.CallIalltoallv {
					do(at, op)
				}
				if schema.Calls[op.Call].Class == schema.ClassCollective {
					at++
				}
			}
		}
	}
	each(func(at int, op *Op) {
		if op.Call == schema.CallIalltoallv || len(op.InSplit) > 0 || len(op.OutSplit) > 0 {
			uneven[at] = true
		}
	})
	each(func(at int, op *Op) {
		if uneven[at] {
			op.Call = schema.CallIalltoallv
		}
	})
}

func newComm(id int32, name string, kind schema.CommKind, ranks []int32) *comm {
	c := &comm{id: id, name: name, kind: kind, ranks: ranks, local: map[int32]int32{}, ops: map[int32][]int{}}
	for i, rank := range ranks {
		c.local[rank] = int32(i)
	}
	return c
}

// everyone returns the ranks of a run with so many.
func everyone(world int32) []int32 {
	all := make([]int32, world)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// areBeyond reports whether one of the ranks is none of a run with so many.
func areBeyond(ranks []int32, world int32) bool {
	return slices.ContainsFunc(ranks, func(r int32) bool { return r < 0 || r >= world })
}

// placeOps finds the communicators of a rank's operations.
func (r *rank) placeOps(byKey map[string]*comm) {
	for i := range r.Ops {
		if g := r.Ops[i].Group; g >= 0 && g < len(r.Groups) {
			if c := byKey[r.Groups[g].key()]; c != nil {
				r.join(c, i)
			}
		}
	}
}

// join places an operation on a communicator, if the rank is one of its members.
func (r *rank) join(c *comm, i int) {
	if _, ok := c.local[r.Rank.Rank]; ok {
		r.comms[i] = c
		c.ops[r.Rank.Rank] = append(c.ops[r.Rank.Rank], i)
	}
}

// isOneGroup reports whether all operations are on one group of all ranks, though the traces name none: there is a
// trace of each rank, no list of groups has more than one, and all ranks made the same operations.
func (j *job) isOneGroup() bool {
	if len(j.ranks) < int(j.world) || j.world < 2 {
		return false
	}
	first := j.ranks[0]
	for _, r := range j.ranks {
		if r.HasGroups && len(r.Groups) > 1 || len(r.Ops) != len(first.Ops) {
			return false
		}
		for i := range r.Ops {
			a, b := &r.Ops[i], &first.Ops[i]
			if a.Group != Unknown || !AreAlike(a.Call, b.Call) || schema.Calls[a.Call].Class != schema.ClassCollective {
				return false
			}
		}
	}
	j.assumed = len(first.Ops) > 0 && !first.HasGroups
	return true
}

// number numbers the collective operations on a communicator, and reports whether its ranks made the same.
func (j *job) number(c *comm) bool {
	agrees := true
	type operation struct {
		instance int64
		call     schema.CallID
	}
	var first []operation
	for n, member := range c.ranks {
		r := j.byRank[member]
		if r == nil {
			agrees, c.missing = false, true
			continue
		}
		var made []operation
		for _, i := range c.ops[member] {
			op := &r.Ops[i]
			if op.instance = null64; schema.Calls[op.Call].Class == schema.ClassCollective {
				if op.instance = int64(len(made)); j.o.Numbered {
					op.instance = op.Seq
				}
				made = append(made, operation{op.instance, op.Call})
			}
		}
		if n == 0 {
			first = made
		}
		agrees = agrees && slices.Equal(made, first)
	}
	return agrees
}

// disagreeing names the communicators whose ranks made different operations.
func (j *job) disagreeing() string {
	var names []string
	for _, c := range j.comms {
		if !c.agrees && !c.missing && len(c.ops) > 0 {
			names = append(names, fmt.Sprintf("%d (%s)", c.id, cmp.Or(c.name, "all ranks")))
		}
	}
	if n := len(names); n > 5 {
		names = append(names[:5], fmt.Sprintf("%d more", n-5))
	}
	return strings.Join(names, ", ")
}

func (j *job) writeComms(out sink) error {
	b := &schema.Comms{}
	for _, c := range j.comms {
		for i, world := range c.ranks {
			row := schema.NullComm
			row.Comm, row.Kind, row.CommRank, row.WorldRank = c.id, int16(c.kind), int32(i), world
			if c.name != "" {
				row.Name = c.name
			}
			b.Append(&row)
		}
	}
	return out.Write(0, b)
}
