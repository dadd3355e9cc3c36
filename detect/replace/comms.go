package replace

import (
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// newComms collects the communicators that the new collectives need and the run lacks.
type newComms struct {
	run  *Run
	made map[string]int32 // by their members
	rows []schema.Comm
}

// isIntra reports whether a communicator is an intracommunicator without processes from outside the run.
func isIntra(c *run.Comm) bool { return !c.Inter && !c.HasOutside }

// commOf returns the communicator for an instance: the finding's if it has exactly the instance's ranks, else a new
// one.
func (c *newComms) commOf(j *joint) int32 {
	f := &c.run.findings[j.finding]
	if old := c.run.members[f.Comm]; old != nil && isIntra(old) && len(old.Members) == len(f.Ranks) &&
		!f.Operation.IsNeighborhood() {
		same := true
		for _, m := range old.Members {
			_, ok := slices.BinarySearch(f.Ranks, m)
			same = same && ok
		}
		if same {
			return f.Comm
		}
	}
	return c.create(j)
}

// create makes a communicator of exactly the ranks of an instance, in their order in the finding's communicator.
func (c *newComms) create(j *joint) int32 {
	f := &c.run.findings[j.finding]
	members, parent := slices.Clone(f.Ranks), int32(0)
	if old := c.run.members[f.Comm]; old != nil && isIntra(old) {
		inside := slices.DeleteFunc(slices.Clone(old.Members), func(m int32) bool {
			_, takes := slices.BinarySearch(f.Ranks, m)
			return !takes
		})
		if len(inside) == len(members) {
			members, parent = inside, f.Comm
		}
	}
	edges := make([]string, len(members))
	kind := schema.CommCreate
	if f.Operation.IsNeighborhood() {
		kind = schema.CommDistGraph
		for k, m := range members {
			edges[k] = c.edges(j, m, members)
		}
	}
	key := fmt.Sprint(parent, members, edges)
	if id, ok := c.made[key]; ok {
		return id
	}
	id := int32(0)
	for _, old := range c.run.source.Comms {
		id = max(id, old.ID+1)
	}
	id += int32(len(c.made))
	c.made[key] = id
	for k, m := range members {
		row := schema.NullComm
		row.Comm, row.CommRank, row.WorldRank, row.Parent, row.Kind = id, int32(k), m, parent, int16(kind)
		if kind == schema.CommDistGraph {
			row.GraphEdges = edges[k]
		}
		c.rows = append(c.rows, row)
	}
	return id
}

// edges lists the ranks that a member sends to, in the form of the table comms.
func (c *newComms) edges(j *joint, rank int32, members []int32) string {
	var to []string
	for _, m := range c.run.peers(j.part(rank).sent, func(m *message) int32 { return m.Dst }) {
		to = append(to, fmt.Sprint(slices.Index(members, m.rank)))
	}
	return strings.Join(to, ",")
}

// peer sums what goes to, or comes from, one rank.
type peer struct {
	rank  int32
	bytes int64
}

// peers sums messages by the rank at their other end, in ascending order of ranks.
func (r *Run) peers(messages []int32, of func(*message) int32) []peer {
	sums := map[int32]int64{}
	for _, k := range messages {
		m := &r.messages[k]
		sums[of(m)] += m.bytes
	}
	var list []peer
	for rank, bytes := range sums {
		list = append(list, peer{rank, bytes})
	}
	slices.SortFunc(list, func(a, b peer) int { return int(a.rank) - int(b.rank) })
	return list
}

func total(list []peer) (bytes int64) {
	for _, x := range list {
		bytes += x.bytes
	}
	return bytes
}
