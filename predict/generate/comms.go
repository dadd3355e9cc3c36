package generate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/commq/commq/predict/internal/nulls"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// communicators are those of the predicted run. Those with all ranks come first, in the order of the training runs.
type communicators struct {
	rows   []schema.Comm
	ids    map[*model.CommGroup][]int32 // by rank; -1: in none
	ranks  map[int32]map[int32]int32    // rank in the communicator, by id and world rank
	firsts []int32                      // world rank of the first member, by id
	worlds int                          // communicators with all ranks
	// unknown has the groups whose members of each communicator cannot be predicted.
	unknown map[*model.CommGroup]bool
}

// newCommunicators makes the communicators for a number of ranks. It notes in unknown which are not known.
func newCommunicators(m *model.Model, ranks int32, unknown *unknowns) *communicators {
	c := &communicators{ids: map[*model.CommGroup][]int32{}, ranks: map[int32]map[int32]int32{}, worlds: 1,
		unknown: map[*model.CommGroup]bool{}}
	for _, g := range m.Comms {
		c.worlds = max(c.worlds, g.World+1)
	}
	all := make([]int32, ranks)
	for r := range all {
		all[r] = int32(r)
	}
	for w := range c.worlds {
		kind := "dup"
		if w == 0 {
			kind = "world"
		}
		like := worldLike(m, w)
		if like != nil {
			kind = like.Kind
		}
		c.add(m, all, kind, like, worldTopology(m, w, ranks))
	}
	var partitions []*partition
	for _, g := range m.Comms {
		if g.World >= 0 {
			c.ids[g] = slices.Repeat([]int32{int32(g.World)}, int(ranks))
			continue
		}
		next, err := nextMembers(m, g, ranks)
		if err != nil {
			c.setUnknown(m, g, unknown, err.Error())
			continue
		}
		law := m.Partition(g)
		p := &partition{group: g, next: next, descending: law != nil && law.Descending,
			ids: slices.Repeat([]int32{-1}, int(ranks)), topology: subgridTopology(m, c, g, ranks)}
		partitions = append(partitions, p)
		c.ids[g] = p.ids
	}
	c.addPartitions(m, partitions, ranks, unknown)
	return c
}

// nextMembers returns the next member after each rank in the communicators of a group, None for ranks that are in none:
// by the law of who is together, with which that of the next members must agree if there is one. Without the former the
// latter counts.
func nextMembers(m *model.Model, g *model.CommGroup, ranks int32) ([]int32, error) {
	byNext, nextErr := m.Pattern.Map(g.Slot, ranks)
	next := slices.Repeat([]int32{pattern.None}, int(ranks))
	for r := int32(0); nextErr == nil && r < ranks; r++ {
		if dst, in := byNext.Dst(r); in {
			next[r] = dst
		}
	}
	law := m.Partition(g)
	switch {
	case law == nil:
		return next, nextErr
	case !law.Ordered:
		return nil, errors.New("the order of ranks in communicators is neither that of the world nor the reverse")
	case law.Alone || law.Overlap:
		return nil, errors.New(law.Why)
	case len(law.Forms) == 0:
		return next, nextErr
	}
	sets, err := law.Sets(ranks)
	if err != nil {
		return nil, err
	}
	together := slices.Repeat([]int32{pattern.None}, int(ranks))
	for _, set := range sets.Sets {
		for i, r := range set {
			together[r] = set[(i+1)%len(set)]
		}
	}
	if nextErr == nil && !slices.Equal(next, together) {
		return nil, fmt.Errorf("the runs do not tell who is together: %s, or others", law.Forms[0])
	}
	return together, nil
}

// setUnknown notes that the members of the communicators of a group cannot be predicted, and therefore not the calls on
// them.
func (c *communicators) setUnknown(m *model.Model, g *model.CommGroup, unknown *unknowns, why string) {
	c.unknown[g] = true
	for _, x := range m.Sites {
		if x.UsesComm(g) {
			unknown.addCalls(x.Event.ID, g.Slot, why)
		}
	}
}

// add adds a communicator and returns its id.
func (c *communicators) add(m *model.Model, members []int32, kind string, like *signature.Comm, t topology) int32 {
	id := int32(len(c.ranks))
	c.ranks[id], c.firsts = map[int32]int32{}, append(c.firsts, members[0])
	for rank, world := range members {
		row := schema.NullComm
		row.Comm, row.CommRank, row.WorldRank = id, int32(rank), world
		row.Kind = int16(max(0, slices.Index(schema.CommKindNames, kind)))
		if like != nil {
			row.Name, row.Parent = nulls.Text(like.Name), c.parent(m, like)
		}
		row.CartDims, row.CartPeriods = t.dims, t.periods
		c.rows = append(c.rows, row)
		c.ranks[id][world] = int32(rank)
	}
	return id
}

// parent returns the id of the parent of a communicator of the largest run if it has all ranks; else null.
func (c *communicators) parent(m *model.Model, like *signature.Comm) int32 {
	if like.Parent == nil {
		return schema.NullInt32
	}
	i := slices.IndexFunc(m.Joint.Last().WorldComms(), func(x *signature.Comm) bool { return x.ID == *like.Parent })
	if i < 0 || i >= c.worlds {
		return schema.NullInt32
	}
	return int32(i)
}

// partition is a group of communicators with some of the ranks each.
type partition struct {
	group    *model.CommGroup
	next     []int32 // of a member, the next one
	ids      []int32 // by rank; -1: in none
	topology topology
	// descending tells that ranks are in the communicators in the reverse order of the world.
	descending bool
}

// firstID returns the id of the first communicator of the group in the largest run.
func (p *partition) firstID() int32 {
	if n := len(p.group.Examples); n > 0 {
		return p.group.Examples[n-1].Comm.ID
	}
	return math.MaxInt32
}

// addPartitions numbers communicators as captures do: by their first rank, in the order in which this rank made them.
func (c *communicators) addPartitions(m *model.Model, partitions []*partition, ranks int32, unknown *unknowns) {
	slices.SortStableFunc(partitions, func(a, b *partition) int { return cmp.Compare(a.firstID(), b.firstID()) })
	for r := range ranks {
		for _, p := range partitions {
			if p.ids[r] >= 0 || c.unknown[p.group] {
				continue
			}
			id := int32(len(c.ranks))
			members := []int32{}
			for member := r; member != pattern.None; member = p.next[member] {
				if member < 0 || member >= ranks {
					c.setUnknown(m, p.group, unknown, fmt.Sprintf("its law gives rank %d, which does not exist", member))
					break
				}
				if p.ids[member] >= 0 {
					break
				}
				members, p.ids[member] = append(members, member), id
			}
			if c.unknown[p.group] {
				continue
			}
			if slices.Sort(members); p.descending {
				slices.Reverse(members)
			}
			if p.next[r] == pattern.None {
				p.ids[r] = -1
				continue
			}
			c.add(m, members, p.group.Kind, p.group.Like, p.topology.forMembers(len(members)))
		}
	}
}
