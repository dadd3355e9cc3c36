package otf2

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/schema"
)

const null32, null64 = schema.NullInt32, schema.NullInt64

// layout tells which locations are the threads of which rank, and who is in which communicator.
type layout struct {
	*definitions
	// threads has the locations of each rank that may call MPI, the one that is the rank first.
	threads [][]location
	hosts   []int32 // by rank
	names   []string
	comms   []*comm
	commOf  map[uint32]*comm
	self    map[uint32]bool // communicators of OTF2 that stand for MPI_COMM_SELF of each rank
	skipped map[string]int64
}

// comm is a communicator of the run.
type comm struct {
	id       int32
	def      *commDef // nil if the trace does not define it
	groups   [2][]int32
	rankOf   [2]map[int32]int32 // world rank to rank in the group
	isParent *comm
	kind     schema.CommKind
}

// inter reports whether the communicator has two groups.
func (c *comm) inter() bool { return c.groups[1] != nil }

// peer returns the world rank of a rank that a member names: in its own group, or in the other one of two.
func (c *comm) peer(member int32, rank uint32) (int32, bool) {
	g := c.groups[0]
	if c.inter() {
		if _, ok := c.rankOf[0][member]; ok {
			g = c.groups[1]
		}
	}
	if uint64(rank) >= uint64(len(g)) {
		return null32, false
	}
	return g[rank], true
}

func newComm(def *commDef, kind schema.CommKind, groups ...[]int32) *comm {
	c := &comm{def: def, kind: kind}
	for i, g := range groups {
		c.groups[i], c.rankOf[i] = g, make(map[int32]int32, len(g))
		for rank, world := range g {
			c.rankOf[i][world] = int32(rank)
		}
	}
	return c
}

// newLayout finds the ranks: the members of the group of MPI's locations, or, in a trace without one, the process of
// each location group.
func newLayout(d *definitions) (*layout, error) {
	l := &layout{definitions: d, commOf: map[uint32]*comm{}, self: map[uint32]bool{}, skipped: map[string]int64{}}
	first := d.mpiLocations()
	byID, byGroup := map[uint64]location{}, map[uint32][]location{}
	for _, x := range d.locations {
		if _, ok := byID[x.id]; ok {
			return nil, fmt.Errorf("location %d is defined twice", x.id)
		}
		byID[x.id] = x
		if x.kind == locationCPUThread {
			byGroup[x.group] = append(byGroup[x.group], x)
		} else {
			l.skipped["locations that are no threads of a CPU (accelerators, metrics)"]++
		}
	}
	if first == nil {
		first = processes(d, byGroup)
	}
	if len(first) == 0 {
		return nil, fmt.Errorf("the trace has no processes: neither a group of MPI's locations nor a location group")
	}
	taken := map[uint32]bool{}
	for rank, id := range first {
		x, ok := byID[id]
		switch {
		case !ok:
			return nil, fmt.Errorf("rank %d is location %d, which is not defined", rank, id)
		case taken[x.group]:
			return nil, fmt.Errorf("ranks share location group %d", x.group)
		}
		taken[x.group] = true
		threads := []location{x}
		for _, t := range byGroup[x.group] {
			if t.id != id {
				threads = append(threads, t)
			}
		}
		l.threads = append(l.threads, threads)
	}
	for g, locations := range byGroup {
		if !taken[g] {
			l.skipped["threads of processes that are no ranks of MPI"] += int64(len(locations))
		}
	}
	l.placeHosts()
	return l, l.placeComms()
}

// mpiLocations returns the locations of the ranks, nil if no group has them.
func (d *definitions) mpiLocations() []uint64 {
	for _, id := range sortedKeys(d.sets) {
		if g := d.sets[id]; g.kind == groupCommLocations && g.paradigm == paradigmMPI && len(g.members) > 0 {
			return g.members
		}
	}
	return nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// processes returns the first thread of each process.
func processes(d *definitions, byGroup map[uint32][]location) []uint64 {
	var first []uint64
	for _, id := range sortedKeys(d.groups) {
		if g := d.groups[id]; g.kind == locationGroupProcess && len(byGroup[id]) > 0 {
			first = append(first, byGroup[id][0].id)
		}
	}
	return first
}

// placeHosts numbers the nodes of the system tree in the order of their lowest ranks.
func (l *layout) placeHosts() {
	number := map[uint32]int32{}
	for _, threads := range l.threads {
		node := l.groups[threads[0].group].node
		n, ok := number[node]
		if !ok {
			n = int32(len(number))
			number[node] = n
			l.names = append(l.names, cmp.Or(l.strings[l.nodes[node].name], "node "+fmt.Sprint(node)))
		}
		l.hosts = append(l.hosts, n)
	}
}

// placeComms makes the run's communicators: 0 has all ranks in order, the others follow in the order of the trace.
// Those for MPI_COMM_SELF come last, one for each rank.
func (l *layout) placeComms() error {
	world := newComm(nil, schema.CommWorld, identity(len(l.threads)))
	l.comms = []*comm{world}
	for i := range l.commDefs {
		d := &l.commDefs[i]
		if g, ok := l.sets[d.group]; ok && g.paradigm != paradigmMPI {
			l.skipped["communicators of other paradigms than MPI"]++
			continue
		}
		if l.sets[d.group].kind == groupCommSelf {
			l.self[d.id] = true
			continue
		}
		a, err := l.worldRanks(d, d.group)
		if err != nil {
			return err
		}
		switch {
		case d.inter:
			b, err := l.worldRanks(d, d.other)
			if err != nil {
				return err
			}
			if len(a) > 0 && len(b) > 0 && slices.Min(b) < slices.Min(a) {
				a, b = b, a
			}
			l.add(newComm(d, schema.CommInter, a, b))
		case len(a) == 0:
			l.skipped["communicators without members"]++
		case world.def == nil && slices.Equal(a, world.groups[0]):
			world.def = d
			l.commOf[d.id] = world
		default:
			l.add(newComm(d, kindOf(d), a))
		}
	}
	for _, c := range l.comms[1:] {
		c.isParent = l.commOf[c.def.parent]
	}
	return nil
}

func kindOf(d *commDef) schema.CommKind {
	if d.dims != nil {
		return schema.CommCart
	}
	return schema.CommOther
}

func (l *layout) add(c *comm) {
	c.id = int32(len(l.comms))
	l.comms = append(l.comms, c)
	l.commOf[c.def.id] = c
}

func identity(n int) []int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// worldRanks returns the members of a group. They are numbers in the group of MPI's locations, which is the ranks.
func (l *layout) worldRanks(d *commDef, id uint32) ([]int32, error) {
	g, ok := l.sets[id]
	if !ok || g.kind != groupCommGroup && g.kind != groupCommLocations {
		return nil, fmt.Errorf("communicator %d has group %d, which is no group of ranks", d.id, id)
	}
	if g.kind == groupCommLocations {
		return identity(len(l.threads)), nil
	}
	ranks, seen := make([]int32, len(g.members)), map[uint64]bool{}
	for i, m := range g.members {
		if m >= uint64(len(l.threads)) || seen[m] {
			return nil, fmt.Errorf("communicator %d: member %d is rank %d; want different ranks below %d", d.id, i, m,
				len(l.threads))
		}
		seen[m], ranks[i] = true, int32(m)
	}
	return ranks, nil
}

// placeSelf gives a communicator to each rank that used MPI_COMM_SELF.
func (l *layout) placeSelf(used []bool) (ids []int32) {
	ids = make([]int32, len(used))
	for rank, is := range used {
		if is {
			ids[rank] = int32(len(l.comms))
			c := newComm(nil, schema.CommSelf, []int32{int32(rank)})
			c.id = ids[rank]
			l.comms = append(l.comms, c)
		}
	}
	return ids
}

// writeComms writes the table comms.
func (l *layout) writeComms(out sink) error {
	b := &schema.Comms{}
	for _, c := range l.comms {
		row := schema.NullComm
		row.Comm, row.Kind = c.id, int16(c.kind)
		row.Name = l.commName(c)
		if c.isParent != nil {
			row.Parent = c.isParent.id
		}
		if c.kind == schema.CommCart {
			row.CartDims, row.CartPeriods = numbers(c.def.dims), numbers(c.def.periodic)
		}
		for remote, g := range c.groups {
			for rank, world := range g {
				row.Remote, row.CommRank, row.WorldRank = int32(remote), int32(rank), world
				b.Append(&row)
			}
		}
	}
	return out.Write(0, b)
}

// commName returns the name of a communicator; names that Score-P makes up are none.
func (l *layout) commName(c *comm) string {
	switch {
	case c.kind == schema.CommWorld:
		return "MPI_COMM_WORLD"
	case c.kind == schema.CommSelf:
		return "MPI_COMM_SELF"
	case c.def == nil:
		return schema.NullText
	}
	if name := l.strings[c.def.name]; name != "" && !strings.Contains(name, "${") {
		return name
	}
	return schema.NullText
}

func numbers(all []uint32) string {
	var words []string
	for _, x := range all {
		words = append(words, strconv.FormatUint(uint64(x), 10))
	}
	return strings.Join(words, ",")
}
