package replay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/schema"
)

// commTable has the communicators of the run.
type commTable struct {
	list []*commInfo
	byID map[int32]int32 // index
}

// commInfo is a communicator of the run.
type commInfo struct {
	id      int32
	kind    schema.CommKind
	groups  [2][]int32 // world ranks; -1 outside the run
	parents [2]int32   // index; -1: none
	dims    []int32
	periods []int32
	edges   [][]int32 // by rank
	outside bool      // it has members outside the run
	made    bool      // a call of the run makes it
}

// inter reports whether it is an intercommunicator.
func (c *commInfo) inter() bool { return len(c.groups[1]) > 0 }

// side returns the group of a rank; -1: none.
func (c *commInfo) side(rank int32) int {
	for s := range c.groups {
		if slices.Contains(c.groups[s], rank) {
			return s
		}
	}
	return -1
}

// peers returns the world ranks that a rank exchanges data with in collectives.
func (c *commInfo) peers(rank int32) []int32 {
	if c.inter() {
		return c.groups[1-max(c.side(rank), 0)]
	}
	return c.groups[0]
}

// rank returns a world rank's rank in its group.
func (c *commInfo) rank(world int32) int64 {
	return int64(slices.Index(c.groups[max(c.side(world), 0)], world))
}

func (c *commInfo) leader() int32 { return c.groups[0][0] }

// world returns the index of MPI_COMM_WORLD.
func (t *commTable) world() int64 { return int64(t.byID[0]) }

// index returns the index of a row's communicator, or of MPI_COMM_WORLD for a row without one.
func (t *commTable) index(e *schema.Event) int64 {
	if k, ok := t.byID[e.Comm]; ok {
		return int64(k)
	}
	return t.world()
}

// readComms reads the rows of table comms of a run.
func readComms(src *Source) (*commTable, error) {
	t := &commTable{byID: map[int32]int32{}}
	var parents [][2]int32 // ids
	for i := range src.Comms {
		r := &src.Comms[i]
		k, ok := t.byID[r.Comm]
		if !ok {
			k = int32(len(t.list))
			t.byID[r.Comm] = k
			t.list = append(t.list, &commInfo{id: r.Comm, kind: schema.CommKind(r.Kind), dims: numbers(r.CartDims),
				periods: numbers(r.CartPeriods)})
			parents = append(parents, [2]int32{schema.NullInt32, schema.NullInt32})
		}
		if err := t.list[k].add(r, len(src.Ranks)); err != nil {
			return nil, err
		}
		parents[k][r.Remote] = r.Parent
	}
	for k, c := range t.list {
		if len(c.groups[0]) == 0 {
			return nil, fmt.Errorf("communicator %d has no first group", c.id)
		}
		for s, id := range parents[k] {
			c.parents[s] = -1
			if p, ok := t.byID[id]; ok && id != schema.NullInt32 {
				c.parents[s] = p
			}
		}
	}
	if k, ok := t.byID[0]; !ok || len(t.list[k].groups[0]) != len(src.Ranks) {
		return nil, fmt.Errorf("communicator 0 does not have the %d ranks of the run", len(src.Ranks))
	}
	return t, nil
}

// add adds the member of a row, in a run of this many ranks.
func (c *commInfo) add(r *schema.Comm, ranks int) error {
	if r.Remote < 0 || r.Remote > 1 || r.CommRank != int32(len(c.groups[r.Remote])) {
		return fmt.Errorf("communicator %d: rank %d of group %d is out of order", r.Comm, r.CommRank, r.Remote)
	}
	world := r.WorldRank
	if world == schema.NullInt32 {
		c.outside, world = true, -1
	} else if world < 0 || int(world) >= ranks {
		return fmt.Errorf("communicator %d has rank %d, and the run has %d", r.Comm, world, ranks)
	}
	c.groups[r.Remote] = append(c.groups[r.Remote], world)
	if r.GraphEdges != schema.NullText && (c.kind == schema.CommGraph || c.kind == schema.CommDistGraph) {
		c.edges = append(c.edges, numbers(r.GraphEdges))
	}
	return nil
}

// numbers parses a list of table comms; nil for none.
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
