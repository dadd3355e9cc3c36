package otf2

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

const null32, null64 = schema.NullInt32, schema.NullInt64

// layout has the threads of each rank, by location, and the members of the communicators.
type layout struct {
	*definitions
	// threads has the locations of each rank that may call MPI, the one that is the rank first.
	threads [][]location
	hosts   []int32 // by rank
	names   []string
	comms   *timed.Comms
	commOf  map[uint32]*timed.Comm
	self    map[uint32]bool // communicators of OTF2 that stand for MPI_COMM_SELF of each rank
	skipped map[string]int64
}

// newLayout finds the ranks: the members of the group of MPI's locations, or, in a trace without one, the process of
// each location group.
func newLayout(d *definitions) (*layout, error) {
	l := &layout{definitions: d, commOf: map[uint32]*timed.Comm{}, self: map[uint32]bool{}, skipped: map[string]int64{}}
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
	l.comms = timed.NewComms(len(l.threads))
	world, taken := l.comms.World(), false
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
		var b []int32
		if d.inter {
			if b, err = l.worldRanks(d, d.other); err != nil {
				return err
			}
		}
		switch {
		case len(a) == 0, d.inter && len(b) == 0:
			l.skipped["communicators without members, or with a group without any"]++
		case d.inter:
			if slices.Min(b) < slices.Min(a) {
				a, b = b, a
			}
			l.add(d, timed.NewComm(schema.CommInter, a, b))
		case !taken && slices.Equal(a, world.Groups[0]):
			taken = true
			l.commOf[d.id] = world
		default:
			l.add(d, timed.NewComm(kindOf(d), a))
		}
	}
	for i := range l.commDefs {
		if d := &l.commDefs[i]; l.commOf[d.id] != nil && l.commOf[d.id] != world {
			l.commOf[d.id].Parent = l.commOf[d.parent]
		}
	}
	return nil
}

func kindOf(d *commDef) schema.CommKind {
	if d.dims != nil {
		return schema.CommCart
	}
	return schema.CommOther
}

// add numbers a communicator. Names that Score-P makes up are none.
func (l *layout) add(d *commDef, c *timed.Comm) {
	l.comms.Add(c)
	l.commOf[d.id] = c
	if name := l.strings[d.name]; name != "" && !strings.Contains(name, "${") {
		c.Name = name
	}
	if c.Kind == schema.CommCart {
		c.Dims, c.Periods = numbers(d.dims), numbers(d.periodic)
	}
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

func numbers(all []uint32) string {
	var words []string
	for _, x := range all {
		words = append(words, strconv.FormatUint(uint64(x), 10))
	}
	return strings.Join(words, ",")
}
