package ingest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// Numbers that every process has for its predefined communicators.
const (
	worldNumber = 0
	selfNumber  = 1
)

// What parent of a commDef may be beside an index in the rank's comms.
const (
	parentNone  = -1 // not known
	parentWorld = -2
	parentSelf  = -3
)

// commDef is a rank's definition of a communicator.
type commDef struct {
	id         int64
	fixed      spool.CommDef
	parent     int  // index in the rank's comms, or parentNone...
	byTag      bool // told apart by tag, not by parent and instance; see madeByTag
	predefined bool // only names MPI_COMM_WORLD or MPI_COMM_SELF
	named      bool
	name       string
	members    []int32
	remote     []int32
	extents    []int32
	periods    []int32
	edges      []int32

	key    commKey
	global int32 // its id in the run
}

// commKey is equal for definitions of the same communicator on different ranks.
type commKey struct {
	parent   int32 // key number of the parent; parentNone... where the definition is told apart by tag
	kind     int32
	instance uint64
	leader   int32 // lower of the two leaders of an intercommunicator
	other    int32 // its other leader; -1 for an intracommunicator
	tag      int32
	nth      int32
}

// parseComm reads the payload of DEF COMM.
func parseComm(data []byte, rank int32) (commDef, error) {
	fixed, rest, err := payload[spool.CommDef](data)
	c := commDef{fixed: fixed}
	if err != nil {
		return c, err
	}
	f := &c.fixed
	if f.Kind < 0 || int(f.Kind) >= len(schema.CommKindNames) || f.Size < 1 || f.Rank < 0 || f.Rank >= f.Size || f.RemoteSize < 0 {
		return c, fmt.Errorf("communicator of kind %d, rank %d of %d, remote size %d", f.Kind, f.Rank, f.Size, f.RemoteSize)
	}
	if f.Members != 0 && f.Members != f.Size || f.RemoteMembers != 0 && f.RemoteMembers != f.RemoteSize {
		return c, fmt.Errorf("communicator with %d of %d and %d of %d members", f.Members, f.Size, f.RemoteMembers, f.RemoteSize)
	}
	for _, l := range []struct {
		to *[]int32
		n  int32
	}{{&c.members, f.Members}, {&c.remote, f.RemoteMembers}, {&c.extents, f.Dims}, {&c.periods, f.Dims}, {&c.edges, f.Edges}} {
		if l.n < 0 || int64(l.n)*4 > int64(len(rest)) {
			return c, fmt.Errorf("a list of %d numbers in %d bytes", l.n, len(rest))
		}
		for i := range int(l.n) {
			v, _, _ := payload[int32](rest[4*i:])
			*l.to = append(*l.to, v)
		}
		rest = rest[4*l.n:]
	}
	return c, nil
}

// parentOf turns a rank's number of the parent into an index in its definitions.
func (s *scanner) parentOf(number int32) int {
	if i, ok := s.names[int64(number)]; ok && !s.comms[i].predefined {
		return i
	}
	switch number {
	case worldNumber:
		return parentWorld
	case selfNumber:
		return parentSelf
	}
	return parentNone
}

// comm is a communicator of the run.
type comm struct {
	kind    int32
	name    string // "": none
	parents [2]int32
	groups  [2][]int32 // world ranks; -1 where not known; the second is that of an intercommunicator
	dims    string
	periods string
	cart    bool
	edges   []string // of the graph, by rank; nil: not a graph
	leader  int32
	order   [2]int64 // creation: on the leader (or the lowest rank that has it), for sorting
	self    bool
}

// commTable are the communicators of a run by id. 0 is MPI_COMM_WORLD.
type commTable struct {
	comms []comm
	self  map[int32]int32 // id of MPI_COMM_SELF by rank
	world int32           // size
	calls [][]int64       // per comm, by rank index: collective operations, filled by the second pass
}

// unifyComms finds out which communicators of different ranks are the same and numbers them: MPI_COMM_WORLD, then by
// the world rank of the leader and the order in which it made them, a rank's MPI_COMM_SELF first.
func unifyComms(j *job) (*commTable, error) {
	for _, r := range j.ranks {
		if err := checkLeaders(j, r); err != nil {
			return nil, err
		}
	}
	u := unifier{job: j, keys: map[commKey]int32{}, byTag: collectTagged(j)}
	for _, r := range j.ranks {
		u.addSelf(r)
		u.addRank(r)
		if u.members > maxMembers {
			return nil, fmt.Errorf("%s: its communicators have %d members in all: the file is damaged", r.files[0].Name, u.members)
		}
	}
	led := 0
	for i := range u.table {
		if u.table[i].leader < 0 && u.table[i].groups[1] != nil {
			led++
		}
	}
	if led > 0 {
		j.warn("Intercommunicators whose groups are both led by processes outside MPI_COMM_WORLD: %d. Nothing tells those of the same ranks apart, so that their members and messages may be mixed up.", led)
	}
	return u.number(), nil
}

// checkLeaders sees to it that world ranks are such.
func checkLeaders(j *job, r *rankSpool) error {
	for i := range r.comms {
		c := &r.comms[i]
		lists := [][]int32{c.members, c.remote}
		if !c.predefined {
			lists = append(lists, []int32{c.fixed.LeaderWorld})
		}
		if c.fixed.RemoteSize > 0 {
			lists = append(lists, []int32{c.fixed.RemoteLeaderWorld})
		}
		for _, list := range lists {
			for _, w := range list {
				if w < -1 || w >= j.size {
					return fmt.Errorf("%s: communicator %d has a member with world rank %d, there are %d: the file is damaged", r.files[0].Name, c.id, w, j.size)
				}
			}
		}
	}
	return nil
}

// unifier builds the table; until number, a communicator has a provisional id, its index in table.
type unifier struct {
	*job
	keys  map[commKey]int32
	table []comm
	byTag map[taggedKey][]*commDef
	// members counts the members of all groups.
	members int64
}

// taggedKey is what communicators made by tag have in common; where several have it, they are told apart by counting
// on the leader, which took part in all of them.
type taggedKey struct{ rank, leader, other, tag, kind int32 }

func leaders(c *commDef) (int32, int32) {
	a, b := c.fixed.LeaderWorld, int32(-1)
	if c.fixed.RemoteSize > 0 {
		b = c.fixed.RemoteLeaderWorld
		if min(a, b) < 0 { // that group is led from outside MPI_COMM_WORLD
			return max(a, b), -1
		}
		return min(a, b), max(a, b)
	}
	return a, b
}

func (c *commDef) tagged(rank int32) taggedKey {
	a, b := leaders(c)
	return taggedKey{rank, a, b, c.fixed.Key, c.fixed.Kind}
}

// isTagged says whether the definition is told apart by tag: also where its parent is not known.
func (c *commDef) isTagged() bool { return c.byTag || c.parent == parentNone }

func collectTagged(j *job) map[taggedKey][]*commDef {
	byTag := map[taggedKey][]*commDef{}
	for _, r := range j.ranks {
		for i := range r.comms {
			if c := &r.comms[i]; !c.predefined && c.isTagged() {
				k := c.tagged(r.rank)
				byTag[k] = append(byTag[k], c)
			}
		}
	}
	return byTag
}

// nth is the number of a definition made by tag among those of its group's leader: the m-th that a rank has is the m-th
// of the leader's in which the rank is a member.
func (u *unifier) nth(r *rankSpool, c *commDef) int32 {
	k := c.tagged(r.rank)
	m := slices.Index(u.byTag[k], c)
	k.rank = c.fixed.LeaderWorld
	if k.rank == r.rank {
		return int32(m)
	}
	for n, l := range u.byTag[k] {
		if slices.Contains(l.members, r.rank) {
			if m == 0 {
				return int32(n)
			}
			m--
		}
	}
	return int32(len(u.byTag[k]) + m) // the leader's file is missing
}

// addSelf adds a rank's MPI_COMM_SELF; number leaves those out that nobody used.
func (u *unifier) addSelf(r *rankSpool) {
	u.table = append(u.table, comm{kind: int32(schema.CommSelf), parents: noParents, groups: [2][]int32{{r.rank}}, leader: r.rank, order: [2]int64{-1, 0}, self: true})
}

var noParents = [2]int32{schema.NullInt32, schema.NullInt32}

// addRank adds what a rank defined.
func (u *unifier) addRank(r *rankSpool) {
	self := int32(len(u.table) - 1)
	provisional := func(parent int) int32 {
		switch parent {
		case parentNone, parentWorld:
			return int32(parent)
		case parentSelf:
			return self
		}
		return r.comms[parent].global
	}
	for i := range r.comms {
		c := &r.comms[i]
		if known, ok := predefined(c); ok {
			c.global = parentWorld
			if known == selfNumber {
				c.global = self
				if c.named {
					u.table[self].name = c.name
				}
			}
			continue
		}
		a, b := leaders(c)
		key := commKey{parent: provisional(c.parent), kind: c.fixed.Kind, instance: c.fixed.Instance, leader: a, other: b}
		parent := key.parent
		if c.isTagged() {
			key = commKey{parent: parentNone, kind: c.fixed.Kind, leader: a, other: b, tag: c.fixed.Key, nth: u.nth(r, c)}
		}
		id, ok := u.keys[key]
		if !ok {
			id = int32(len(u.table))
			u.keys[key] = id
			u.table = append(u.table, comm{kind: c.fixed.Kind, parents: noParents, leader: a, order: [2]int64{int64(u.size), int64(i)}})
		}
		c.global = id
		u.members += u.table[id].add(r, c, parent, i, u.size)
	}
}

// predefined says whether a definition is of MPI_COMM_WORLD or MPI_COMM_SELF.
func predefined(c *commDef) (number int64, ok bool) {
	return c.id, c.predefined || c.id == worldNumber && c.fixed.Kind == int32(schema.CommWorld) || c.id == selfNumber && c.fixed.Kind == int32(schema.CommSelf)
}

// add takes in what one rank knows of the communicator; world is the size of MPI_COMM_WORLD. It returns by how many
// members the groups grew.
func (m *comm) add(r *rankSpool, c *commDef, parent int32, index int, world int32) (grown int64) {
	before := len(m.groups[0]) + len(m.groups[1])
	defer func() { grown = int64(len(m.groups[0]) + len(m.groups[1]) - before) }()
	side := 0
	if c.fixed.RemoteSize > 0 && c.fixed.LeaderWorld != m.leader {
		side = 1
	}
	if c.fixed.RemoteSize > 0 && m.leader < 0 && slices.Contains(m.groups[1], r.rank) { // nobody of this job leads a group
		side = 1
	}
	if r.rank == m.leader {
		m.order = [2]int64{-1, int64(index)}
	}
	m.parents[side] = parent
	m.setMembers(side, c.fixed.Size, world, c.members)
	if c.fixed.RemoteSize > 0 {
		m.setMembers(1-side, c.fixed.RemoteSize, world, c.remote)
	}
	if int(c.fixed.Rank) < len(m.groups[side]) {
		m.groups[side][c.fixed.Rank] = r.rank
	}
	if c.named && c.name != "" && m.name == "" {
		m.name = c.name
	}
	if k := schema.CommKind(c.fixed.Kind); k == schema.CommCart || len(c.extents) > 0 {
		m.cart, m.dims, m.periods = true, list(c.extents), list(c.periods)
	} else if k == schema.CommGraph || k == schema.CommDistGraph {
		if m.edges == nil {
			m.edges = make([]string, len(m.groups[side]))
		}
		if int(c.fixed.Rank) < len(m.edges) {
			m.edges[c.fixed.Rank] = list(c.edges)
		}
	}
	return 0
}

// setMembers makes the group as large as a definition says and fills in members. A group is larger than the world only
// where processes outside it are members; then the leader lists them.
func (m *comm) setMembers(side int, size, world int32, members []int32) {
	g := m.groups[side]
	for len(g) < int(min(size, max(world, int32(len(members))))) {
		g = append(g, -1)
	}
	copy(g, members)
	m.groups[side] = g
}

// maxMembers bounds what a damaged file can make us allocate.
const maxMembers = 1 << 26

// lowestFirst makes the group with the lowest world rank the first.
func (m *comm) lowestFirst() {
	if len(m.groups[1]) > 0 && lowest(m.groups[1]) < lowest(m.groups[0]) {
		m.groups[0], m.groups[1] = m.groups[1], m.groups[0]
		m.parents[0], m.parents[1] = m.parents[1], m.parents[0]
	}
}

// lowest is the lowest known world rank of a group.
func lowest(g []int32) int32 {
	low := int32(math.MaxInt32)
	for _, w := range g {
		if w >= 0 {
			low = min(low, w)
		}
	}
	return low
}

func list(v []int32) string {
	s := make([]string, len(v))
	for i, x := range v {
		s[i] = strconv.Itoa(int(x))
	}
	return strings.Join(s, ",")
}

// number sorts the communicators, gives them their ids and puts those into the ranks' definitions.
func (u *unifier) number() *commTable {
	used := u.usedSelves()
	order := make([]int32, 0, len(u.table))
	for i := range u.table {
		if !u.table[i].self || used[int32(i)] {
			order = append(order, int32(i))
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		x, y := &u.table[a], &u.table[b]
		return cmp.Or(cmp.Compare(x.leader, y.leader), cmp.Compare(x.order[0], y.order[0]), boolFirst(x.self, y.self), cmp.Compare(x.order[1], y.order[1]))
	})
	world := comm{kind: int32(schema.CommWorld), name: u.worldName(), parents: noParents, groups: [2][]int32{identity(u.size)}}
	t := &commTable{comms: []comm{world}, self: map[int32]int32{}, world: u.size}
	ids := map[int32]int32{parentWorld: 0, parentNone: schema.NullInt32, schema.NullInt32: schema.NullInt32}
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
	u.settle(t, ids)
	return t
}

// worldName is what communicator 0 is called: where only sessions were used there is none, but the processes are those of a set.
func (u *unifier) worldName() string {
	for _, r := range u.ranks {
		if r.inited || r.files[0].Header.Sessions == 0 {
			return "MPI_COMM_WORLD"
		}
	}
	return "mpi://WORLD"
}

// settle replaces provisional ids.
func (u *unifier) settle(t *commTable, ids map[int32]int32) {
	for i := range t.comms {
		for side, p := range t.comms[i].parents {
			t.comms[i].parents[side] = ids[p]
		}
	}
	for _, r := range u.ranks {
		for i := range r.comms {
			c := &r.comms[i]
			if c.named && c.global == parentWorld && c.name != "" {
				t.comms[0].name = c.name
			}
			c.global = ids[c.global]
		}
	}
	t.calls = make([][]int64, len(t.comms))
}

func boolFirst(a, b bool) int {
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

// usedSelves are the MPI_COMM_SELFs that a call used or something was made from or named.
func (u *unifier) usedSelves() map[int32]bool {
	used := map[int32]bool{}
	self := map[int32]int32{}
	for i := range u.table {
		if u.table[i].self {
			self[u.table[i].leader] = int32(i)
		}
	}
	for _, r := range u.ranks {
		id := self[r.rank]
		if r.usesSelf {
			used[id] = true
		}
		for i := range r.comms {
			c := &r.comms[i]
			if n, ok := predefined(c); ok && n == selfNumber || c.parent == parentSelf {
				used[id] = true
			}
		}
	}
	return used
}

// write puts the table comms into the run.
func (t *commTable) write(out sink) error { return out.Write(0, t.rows()) }

// rows are the rows of the table comms.
func (t *commTable) rows() *schema.Comms {
	b := &schema.Comms{}
	for id := range t.comms {
		m := &t.comms[id]
		for side, g := range m.groups {
			for rank, world := range g {
				row := schema.NullComm
				row.Comm, row.Remote, row.CommRank, row.Kind = int32(id), int32(side), int32(rank), int16(m.kind)
				row.Parent = m.parents[side]
				if world >= 0 {
					row.WorldRank = world
				}
				if m.name != "" {
					row.Name = validText(m.name)
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

// validText is a name as it can stand in a table.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "�")
}
