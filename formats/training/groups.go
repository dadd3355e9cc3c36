package training

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/formats/importing"
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
	j.comms = []*comm{newComm(0, "", schema.CommWorld, Everyone(j.world))}
	byKey := map[string]*comm{}
	named := false
	for _, r := range j.ranks {
		for i := range r.Groups {
			g := &r.Groups[i]
			if !areMembers(g.Ranks, j.world) || byKey[g.key()] != nil {
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
	if areOneGroup(j.ranks, j.world) {
		j.assumed = len(j.ranks[0].Ops) > 0 && !j.ranks[0].HasGroups
		for _, r := range j.ranks {
			for i := range r.Ops {
				r.join(j.comms[0], i)
			}
		}
	}
	for _, c := range j.comms {
		c.sortOps(j.byRank)
		j.setUneven(c)
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
// splits, or calls it so: where no shares are told they are even, and names of operations do not always tell. Ranks
// have an operation in common by its number if traces number them, else by its place, if all made the same operations.
func (j *job) setUneven(c *comm) {
	uneven := map[int64]bool{}
	all := c.exchanges(j.byRank, j.o.Numbered)
	for _, x := range all {
		if x.op.Call == schema.CallIalltoallv || len(x.op.InSplit) > 0 || len(x.op.OutSplit) > 0 {
			x.op.Call = schema.CallIalltoallv
			uneven[x.at] = x.at != Unknown
		}
	}
	if len(uneven) == 0 || !j.o.Numbered && !c.areAlike(j.byRank) {
		return
	}
	for _, x := range all {
		if uneven[x.at] {
			x.op.Call = schema.CallIalltoallv
		}
	}
}

// exchange is an all-to-all of a rank, and which one: its number, or its place among the collectives of the rank.
type exchange struct {
	at int64
	op *Op
}

// exchanges returns the all-to-alls on the communicator.
func (c *comm) exchanges(byRank map[int32]*rank, numbered bool) (all []exchange) {
	for member := range c.ops {
		for at, op := range c.collectives(byRank[member]) {
			if op.Call == schema.CallIalltoall || op.Call == schema.CallIalltoallv {
				x := exchange{int64(at), op}
				if numbered {
					x.at = op.Seq
				}
				all = append(all, x)
			}
		}
	}
	return all
}

// collectives returns the collectives of a rank on the communicator.
func (c *comm) collectives(r *rank) (all []*Op) {
	for _, i := range c.ops[r.Rank.Rank] {
		if op := &r.Ops[i]; schema.Calls[op.Call].Class == schema.ClassCollective {
			all = append(all, op)
		}
	}
	return all
}

// areAlike reports whether all members with a trace made the same collectives, even or not.
func (c *comm) areAlike(byRank map[int32]*rank) bool {
	var first []*Op
	for n, member := range c.present(byRank) {
		made := c.collectives(member)
		if n == 0 {
			first = made
		}
		if !slices.EqualFunc(made, first, func(a, b *Op) bool { return AreAlike(a.Call, b.Call) }) {
			return false
		}
	}
	return true
}

// present returns the members of the communicator that have a trace.
func (c *comm) present(byRank map[int32]*rank) (list []*rank) {
	for _, member := range c.ranks {
		if r := byRank[member]; r != nil {
			list = append(list, r)
		}
	}
	return list
}

func newComm(id int32, name string, kind schema.CommKind, ranks []int32) *comm {
	c := &comm{id: id, name: name, kind: kind, ranks: ranks, local: map[int32]int32{}, ops: map[int32][]int{}}
	for i, rank := range ranks {
		c.local[rank] = int32(i)
	}
	return c
}

// Everyone returns all ranks of a run with world ranks.
func Everyone(world int32) []int32 {
	all := make([]int32, world)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// Strided returns n ranks from first on, stride apart; nil if an argument is negative or above importing.MostRanks.
func Strided(first, stride, n int64) (list []int64) {
	if first < 0 || stride < 1 || n < 1 || max(n, first, stride) > importing.MostRanks {
		return nil
	}
	for i := range n {
		list = append(list, first+i*stride)
	}
	return list
}

// areMembers reports whether ranks can be the members of a group in a run with world ranks: all exist and none is there
// twice.
func areMembers(ranks []int32, world int32) bool {
	sorted := slices.Sorted(slices.Values(ranks))
	return len(sorted) > 0 && sorted[0] >= 0 && sorted[len(sorted)-1] < world &&
		len(slices.Compact(sorted)) == len(ranks)
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

// areOneGroup reports whether all operations are on one group of all ranks, though the traces name none: there is a
// trace of each rank, no list of groups has more than one, and all ranks made the same operations.
func areOneGroup(ranks []*rank, world int32) bool {
	if len(ranks) < int(world) || world < 2 {
		return false
	}
	first := ranks[0]
	for _, r := range ranks {
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
