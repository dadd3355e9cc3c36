package run

import (
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/schema"
)

// topology is who is next to whom in a communicator, in ranks of it.
type topology struct {
	dims, periods []int32   // of a Cartesian grid
	targets       [][]int32 // of a graph: where each rank sends to
}

// addTopology takes what row i of the table says of the communicator's neighbourhoods.
func (c *Comm) addTopology(t *schema.Comms, i int) {
	if t.CartDims[i] == schema.NullText && t.GraphEdges[i] == schema.NullText || t.Remote[i] != 0 {
		return
	}
	if c.topology == nil {
		c.topology = &topology{dims: numbers(t.CartDims[i]), periods: numbers(t.CartPeriods[i])}
	}
	if t.GraphEdges[i] != schema.NullText {
		for len(c.topology.targets) <= int(t.CommRank[i]) {
			c.topology.targets = append(c.topology.targets, nil)
		}
		c.topology.targets[t.CommRank[i]] = numbers(t.GraphEdges[i])
	}
}

// numbers parses a list of the table comms; nil if it is empty or malformed.
func numbers(text string) (all []int32) {
	if text == "" || text == schema.NullText {
		return nil
	}
	for field := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseInt(field, 10, 32)
		if err != nil {
			return nil
		}
		all = append(all, int32(n))
	}
	return all
}

// Sources returns the neighbourhoods of the intracommunicators that have a topology, by id: for each rank in the
// communicator the world ranks that it receives from in a neighbourhood collective (MPI 4.0, section 8.6). A duplicate
// has those of its parent.
func Sources(comms []Comm) map[int32][][]int32 {
	byID, all := map[int32]*Comm{}, map[int32][][]int32{}
	for i := range comms {
		byID[comms[i].ID] = &comms[i]
	}
	for i := range comms {
		c := &comms[i]
		from := c
		for steps := 0; from != nil && from.topology == nil && from.Kind == schema.CommDup &&
			steps < len(comms); steps++ {
			from = byID[from.Parent]
		}
		if from == nil || from.topology == nil || len(from.Members) != len(c.Members) {
			continue
		}
		all[c.ID] = c.worldRanks(from.topology.sources(len(c.Members)))
	}
	return all
}

// worldRanks replaces ranks in the communicator by world ranks, in place.
func (c *Comm) worldRanks(lists [][]int32) [][]int32 {
	for rank, list := range lists {
		for i, k := range list {
			list[i] = c.Members[k]
		}
		lists[rank] = slices.DeleteFunc(list, func(world int32) bool { return world == Outside })
	}
	return lists
}

// sources returns the ranks from which each of the ranks receives.
func (t *topology) sources(ranks int) [][]int32 {
	sources := make([][]int32, ranks)
	for rank, targets := range t.targets {
		for _, to := range targets {
			if rank < ranks && to >= 0 && int(to) < ranks {
				sources[to] = append(sources[to], int32(rank))
			}
		}
	}
	if len(t.targets) > 0 {
		return sources
	}
	stride := int32(ranks)
	for d, extent := range t.dims {
		if extent <= 0 {
			return sources
		}
		stride /= extent
		for rank := range int32(ranks) {
			at := rank / max(1, stride) % extent
			for _, step := range []int32{-1, 1} {
				to := at + step
				if periodic := d < len(t.periods) && t.periods[d] != 0; periodic {
					to = (to + extent) % extent
				}
				if k := rank + (to-at)*stride; to >= 0 && to < extent && k >= 0 && int(k) < ranks {
					sources[rank] = append(sources[rank], k)
				}
			}
		}
	}
	return sources
}
