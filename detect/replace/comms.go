package replace

import (
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// newComm is a communicator of just the ranks of an instance, in the order in which they are in the finding's.
func (p *Plan) newComm(j *joint) int32 {
	f := &p.run.findings[j.finding]
	members, parent := slices.Clone(f.Ranks), int32(0)
	if c := p.run.members[f.Comm]; c != nil && !c.Inter {
		inside := slices.DeleteFunc(slices.Clone(c.Members), func(m int32) bool {
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
			edges[k] = p.edges(j, m, members)
		}
	}
	key := fmt.Sprint(parent, members, edges)
	if id, ok := p.made[key]; ok {
		return id
	}
	id := int32(0)
	for _, c := range p.run.source.Comms {
		id = max(id, c.ID+1)
	}
	id += int32(len(p.made))
	p.made[key] = id
	for k, m := range members {
		row := schema.NullComm
		row.Comm, row.CommRank, row.WorldRank, row.Parent, row.Kind = id, int32(k), m, parent, int16(kind)
		if kind == schema.CommDistGraph {
			row.GraphEdges = edges[k]
		}
		p.comms = append(p.comms, row)
	}
	return id
}

// edges are the ranks that a member sends to, as the table comms has them.
func (p *Plan) edges(j *joint, rank int32, members []int32) string {
	var to []string
	for _, m := range p.peers(j.part(rank).sent, func(m *message) int32 { return m.Dst }) {
		to = append(to, fmt.Sprint(slices.Index(members, m.rank)))
	}
	return strings.Join(to, ",")
}

// Comms are the rows of the communicators that are new.
func (p *Plan) Comms() []schema.Comm { return p.comms }

// peer is what goes to or comes from a rank.
type peer struct {
	rank  int32
	bytes int64
}

// peers adds up messages by the rank at their other end, ascending.
func (p *Plan) peers(messages []int32, of func(*message) int32) []peer {
	sums := map[int32]int64{}
	for _, k := range messages {
		m := &p.run.messages[k]
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
