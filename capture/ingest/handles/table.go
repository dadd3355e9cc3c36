package handles

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/commq/commq/schema"
)

// Table holds the communicators of a run by id. 0 is MPI_COMM_WORLD.
type Table struct {
	comms []comm
	self  map[int32]int32 // id of MPI_COMM_SELF by rank; only those that are used
}

// comm is a communicator of the run.
type comm struct {
	kind    int32
	name    string // empty: none
	parents [2]int32
	groups  [2][]int32 // world ranks, -1 where not known; the second group is that of an intercommunicator
	dims    string
	periods string
	cart    bool
	edges   []string // of the graph, by rank; nil: not a graph
	leader  int32
	order   [2]int64 // when it was made: on the leader (or the lowest rank that has it), for sorting
	self    bool
}

// add adds what one rank knows about the communicator; world is the size of MPI_COMM_WORLD. It returns the number of
// members by which the groups grew.
func (m *comm) add(rank int32, c *Comm, parent int32, index int, world int32) (grown int64) {
	before := len(m.groups[0]) + len(m.groups[1])
	defer func() { grown = int64(len(m.groups[0]) + len(m.groups[1]) - before) }()
	side := 0
	if c.Fixed.RemoteSize > 0 && c.Fixed.LeaderWorld != m.leader {
		side = 1
	}
	// no group has a leader in this job
	if c.Fixed.RemoteSize > 0 && m.leader < 0 && slices.Contains(m.groups[1], rank) {
		side = 1
	}
	if rank == m.leader {
		m.order = [2]int64{-1, int64(index)}
	}
	m.parents[side] = parent
	m.setMembers(side, c.Fixed.Size, world, c.Members)
	if c.Fixed.RemoteSize > 0 {
		m.setMembers(1-side, c.Fixed.RemoteSize, world, c.Remote)
	}
	if int(c.Fixed.Rank) < len(m.groups[side]) {
		m.groups[side][c.Fixed.Rank] = rank
	}
	if c.Named && c.Name != "" && m.name == "" {
		m.name = c.Name
	}
	if k := schema.CommKind(c.Fixed.Kind); k == schema.CommCart || len(c.Extents) > 0 {
		m.cart, m.dims, m.periods = true, commaList(c.Extents), commaList(c.Periods)
	} else if k == schema.CommGraph || k == schema.CommDistGraph || len(c.Edges) > 0 { // a duplicate keeps its topology
		if m.edges == nil {
			m.edges = make([]string, len(m.groups[side]))
		}
		if int(c.Fixed.Rank) < len(m.edges) {
			m.edges[c.Fixed.Rank] = commaList(c.Edges)
		}
	}
	return 0
}

// setMembers gives the group the size that a definition states, and fills in members. Only a group with members
// outside the world can be larger than the world; then its leader lists all members.
func (m *comm) setMembers(side int, size, world int32, members []int32) {
	g := m.groups[side]
	for len(g) < int(min(size, max(world, int32(len(members))))) {
		g = append(g, -1)
	}
	copy(g, members)
	m.groups[side] = g
}

// lowestFirst makes the group with the lowest world rank the first.
func (m *comm) lowestFirst() {
	if len(m.groups[1]) > 0 && lowest(m.groups[1]) < lowest(m.groups[0]) {
		m.groups[0], m.groups[1] = m.groups[1], m.groups[0]
		m.parents[0], m.parents[1] = m.parents[1], m.parents[0]
	}
}

// lowest returns the lowest known world rank of a group.
func lowest(g []int32) int32 {
	low := int32(math.MaxInt32)
	for _, w := range g {
		if w >= 0 {
			low = min(low, w)
		}
	}
	return low
}

func commaList(v []int32) string {
	s := make([]string, len(v))
	for i, x := range v {
		s[i] = strconv.Itoa(int(x))
	}
	return strings.Join(s, ",")
}

// number sorts the communicators, gives them their ids and stores these in the ranks' definitions.
func (u *unifier) number() *Table {
	used := u.usedSelves()
	order := make([]int32, 0, len(u.table))
	for i := range u.table {
		if !u.table[i].self || used[int32(i)] {
			order = append(order, int32(i))
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		x, y := &u.table[a], &u.table[b]
		return cmp.Or(cmp.Compare(x.leader, y.leader), cmp.Compare(x.order[0], y.order[0]), TrueFirst(x.self, y.self),
			cmp.Compare(x.order[1], y.order[1]))
	})
	world := comm{kind: int32(schema.CommWorld), name: u.worldName(), parents: noParents,
		groups: [2][]int32{identity(u.size)}}
	t := &Table{comms: []comm{world}, self: map[int32]int32{}}
	ids := map[int32]int32{parentWorld: 0, parentUnknown: schema.NullInt32, schema.NullInt32: schema.NullInt32}
	for _, i := range order {
		id := int32(len(t.comms))
		ids[i] = id
		m := u.table[i]
		m.lowestFirst()
		if m.self {
			t.self[m.leader] = id
			if m.name == "" {
				m.name = "MPI_COMM_SELF"
			}
		}
		t.comms = append(t.comms, m)
	}
	u.replaceProvisional(t, ids)
	return t
}

// worldName returns the name of communicator 0. A job that only uses sessions has no MPI_COMM_WORLD; there,
// communicator 0 is a process set.
func (u *unifier) worldName() string {
	for _, r := range u.ranks {
		if !r.SessionsOnly {
			return "MPI_COMM_WORLD"
		}
	}
	return "mpi://WORLD"
}

// replaceProvisional replaces provisional ids in parents and definitions.
func (u *unifier) replaceProvisional(t *Table, ids map[int32]int32) {
	for i := range t.comms {
		for side, p := range t.comms[i].parents {
			t.comms[i].parents[side] = ids[p]
		}
	}
	for _, r := range u.ranks {
		for i := range r.Comms {
			c := &r.Comms[i]
			if c.Named && c.global == parentWorld && c.Name != "" {
				t.comms[0].name = c.Name
			}
			c.global = ids[c.global]
		}
	}
}

// TrueFirst compares truth values for sorting: true comes before false.
func TrueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func identity(n int32) []int32 {
	g := make([]int32, n)
	for i := range g {
		g[i] = int32(i)
	}
	return g
}

// Rows returns the rows of the table comms.
func (t *Table) Rows() *schema.Comms {
	b := &schema.Comms{}
	for id := range t.comms {
		m := &t.comms[id]
		name := ValidText(m.name)
		for side, g := range m.groups {
			for rank, world := range g {
				row := schema.NullComm
				row.Comm, row.Remote, row.CommRank, row.Kind = int32(id), int32(side), int32(rank), int16(m.kind)
				row.Parent = m.parents[side]
				if world >= 0 {
					row.WorldRank = world
				}
				if name != "" {
					row.Name = name
				}
				if m.cart {
					row.CartDims, row.CartPeriods = m.dims, m.periods
				}
				if rank < len(m.edges) {
					row.GraphEdges = m.edges[rank]
				}
				b.Append(&row)
			}
		}
	}
	return b
}

// ValidText replaces invalid UTF-8 in a name, so that a table can hold it.
func ValidText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
