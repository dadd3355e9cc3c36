package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/commq/commq/predict/model/join"
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/slots"
)

// CommGroup is one communicator with all ranks, or several with some ranks each that are made alike, such as the rows
// of a process grid.
type CommGroup struct {
	// World is the index among the communicators with all ranks, ordered by id; -1 for other groups.
	World int
	// Slot names the pattern slot of other groups, which maps each member to the next one.
	Slot string
	Kind string
	// Like is a communicator of the largest run; nil if runs do not agree on kind and name.
	Like *signature.Comm
	// Examples has a communicator of each run if Like is set.
	Examples []CommOfRun
	// Parts has, of groups without all ranks, the communicators of each run that uses some.
	Parts []pattern.Sets
}

// CommOfRun is a communicator of a run.
type CommOfRun struct {
	Run  *signature.Signature
	Comm *signature.Comm
}

// mixed is the index of communicators without all ranks in a commUse.
const mixed = -2

// commUse collects the communicators that calls use.
type commUse struct {
	found    bool
	world    int  // index among those with all ranks, or mixed
	differs  bool // uses have different indexes
	several  bool // a rank uses communicators with different members
	like     *signature.Comm
	kinds    map[string]bool
	examples []CommOfRun
	next     []pattern.Mapping // by run: of a member, the next one
	parts    []pattern.Sets    // of each run that uses some
}

// commGrouper finds the groups of communicators that sites use.
type commGrouper struct {
	t      *join.Training
	worlds []map[int32]int // index of communicators with all ranks, by run and id
	groups []*CommGroup
	byKey  map[string]*CommGroup
	slots  []pattern.Slot // of the groups that do not have all ranks
	names  map[*signature.Comm]string
}

// groupComms sets the communicator groups of sites. It returns the groups and the pattern slots of those that do not
// have all ranks.
func groupComms(sites []*Site, t *join.Training) (groups []*CommGroup, all []pattern.Slot) {
	g := &commGrouper{t: t, worlds: make([]map[int32]int, len(t.Runs)), byKey: map[string]*CommGroup{},
		names: map[*signature.Comm]string{}}
	for i, s := range t.Runs {
		g.worlds[i] = map[int32]int{}
		for k, c := range s.WorldComms() {
			g.worlds[i][c.ID] = k
		}
	}
	for _, x := range sites {
		name := fmt.Sprintf("%d comm", x.Event.ID)
		u := g.useOf(x.Calls.Slots)
		x.MembersCall = u.found && !x.Sends && !x.Receives && g.membersCall(x.Calls.Slots)
		if !u.several && !(x.MembersCall && g.placesDiffer(x.Calls.Slots)) {
			x.Comm = g.groupOf(u, name)
			x.MembersCall = x.MembersCall && len(x.Calls.Components) == 0 // otherwise callers show the iterations
			continue
		}
		x.CommAt = map[slots.Place]*CommGroup{}
		for _, s := range x.Calls.Slots {
			u := g.useOf([]*slots.Slot{s})
			u.next = slices.DeleteFunc(u.next, hasNoMember) // runs without that iteration
			if at := g.groupOf(u, SlotName(name, s.Index())); at != nil {
				x.CommAt[s.Place] = at
			}
		}
	}
	return g.groups, g.slots
}

// membersCall reports whether at each place those who make the call are the members of the communicators there, and
// every run makes it: if some runs do not, the laws of the callers tell on how many ranks it is made. Of two groups that
// communicate with each other nothing is said.
func (g *commGrouper) membersCall(calls []*slots.Slot) bool {
	for i := range g.t.Runs {
		isMade := false
		for _, s := range calls {
			callers, members := 0, 0
			seen := map[*signature.Comm]bool{}
			for r, c := range s.Runs[i] {
				if c == nil {
					continue
				}
				if c.Comm == signature.Null {
					return false
				}
				comm := g.t.Comm(c.Comm)
				if _, in := comm.RankOf(int32(r)); !in || len(comm.Remote) > 0 {
					return false
				}
				if callers++; !seen[comm] {
					seen[comm], members = true, members+len(comm.Members)
				}
			}
			if callers != members {
				return false
			}
			isMade = isMade || callers > 0
		}
		if !isMade {
			return false
		}
	}
	return true
}

// placesDiffer reports whether calls of a run use other communicators at one place than at another, by their members.
func (g *commGrouper) placesDiffer(calls []*slots.Slot) bool {
	for i := range g.t.Runs {
		first := ""
		for _, s := range calls {
			used := map[string]bool{}
			for _, c := range s.Runs[i] {
				if c != nil {
					used[g.nameOf(g.t.Comm(c.Comm))] = true
				}
			}
			switch text := fmt.Sprint(slices.Sorted(maps.Keys(used))); {
			case len(used) == 0:
			case first == "":
				first = text
			case first != text:
				return true
			}
		}
	}
	return false
}

// nameOf returns a text that is the same for communicators with the same members.
func (g *commGrouper) nameOf(c *signature.Comm) string {
	name, known := g.names[c]
	if !known {
		name = fmt.Sprint(c.Members)
		g.names[c] = name
	}
	return name
}

// groupOf returns the group of the communicators that calls use; nil if they use none. A new group that does not have
// all ranks gets a pattern slot of this name.
func (g *commGrouper) groupOf(u *commUse, name string) *CommGroup {
	if !u.found {
		return nil
	}
	isWorld := u.world >= 0 && !u.differs
	key := u.key(isWorld)
	if found := g.byKey[key]; found != nil {
		return found
	}
	made := &CommGroup{World: u.world, Kind: "split"}
	g.byKey[key] = made
	if !isWorld {
		made.World, made.Slot, made.Parts = -1, name, u.parts
		g.slots = append(g.slots, pattern.Slot{Name: name, Site: name, Runs: u.next})
	}
	if len(u.kinds) == 1 {
		made.Kind, made.Like, made.Examples = u.like.Kind, u.like, u.examples
	}
	g.groups = append(g.groups, made)
	return made
}

// key returns a string that is equal for sites that use the same communicators.
func (u *commUse) key(isWorld bool) string {
	if isWorld {
		return fmt.Sprint("world ", u.world)
	}
	var b strings.Builder
	for _, next := range u.next {
		fmt.Fprint(&b, next)
	}
	return b.String()
}

// useOf collects the communicators that the calls of slots use.
func (g *commGrouper) useOf(calls []*slots.Slot) *commUse {
	u := &commUse{world: -1, kinds: map[string]bool{}}
	for i, run := range g.t.Runs {
		next := pattern.Mapping{Ranks: run.Ranks, Dst: slices.Repeat([]int32{pattern.None}, int(run.Ranks))}
		used := map[int32]*signature.Comm{}
		of := make([]*signature.Comm, run.Ranks)
		for _, s := range calls {
			for r, c := range s.Runs[i] {
				if c == nil || c.Comm == signature.Null {
					continue
				}
				comm := g.t.Comm(c.Comm)
				world, hasAll := g.worlds[i][comm.ID]
				if !hasAll {
					world = mixed
				}
				u.differs = u.differs || u.found && world != u.world
				u.several = u.several || of[r] != nil && of[r] != comm && !slices.Equal(of[r].Members, comm.Members)
				of[r] = comm
				u.world, u.found, u.like = world, true, comm
				u.kinds[comm.Kind+" "+comm.Name] = true
				if len(u.examples) == 0 || u.examples[len(u.examples)-1].Run != run {
					u.examples = append(u.examples, CommOfRun{run, comm})
				}
				used[comm.ID] = comm
				if rank, member := comm.RankOf(int32(r)); member {
					next.Dst[r] = comm.Members[(int(rank)+1)%len(comm.Members)]
				}
			}
		}
		addIdleMembers(next.Dst, used)
		u.next = append(u.next, next)
		if len(used) > 0 {
			u.parts = append(u.parts, setsOf(run.Ranks, used))
		}
	}
	return u
}

// setsOf returns the members of communicators of a run, those with low ids first; of several with the same members one.
func setsOf(ranks int32, used map[int32]*signature.Comm) pattern.Sets {
	sets := pattern.Sets{Ranks: ranks}
	for _, id := range slices.Sorted(maps.Keys(used)) {
		members := used[id].Members
		if !slices.ContainsFunc(sets.Sets, func(set []int32) bool { return slices.Equal(set, members) }) {
			sets.Sets = append(sets.Sets, members)
		}
	}
	return sets
}

// findPartitions finds the laws of the groups that do not have all ranks: who is together with whom.
func (m *Model) findPartitions() map[*CommGroup]*pattern.PartitionLaw {
	var groups []*CommGroup
	var parts []pattern.Partition
	for _, g := range m.Comms {
		if g.World < 0 && g.Kind != "self" {
			groups, parts = append(groups, g), append(parts, pattern.Partition{Name: g.Slot, Runs: g.Parts})
		}
	}
	laws := map[*CommGroup]*pattern.PartitionLaw{}
	found := pattern.FitPartitions(parts, m.gridsOfOthers(groups))
	for i, g := range groups {
		laws[g] = &found[i]
	}
	return laws
}

// gridsOfOthers returns the grids of laws that are not those of groups of communicators, or of who calls on them, and
// those that the runs do not tell from these.
func (m *Model) gridsOfOthers(groups []*CommGroup) (grids []pattern.Grid) {
	own := map[string]bool{}
	for _, g := range groups {
		own[g.Slot] = true
		for _, x := range m.Sites {
			if x.UsesComm(g) && !x.Sends && !x.Receives {
				own[x.In] = true
			}
		}
	}
	for i := range m.Pattern.Laws {
		if l := &m.Pattern.Laws[i]; !own[l.Site] {
			for _, f := range l.Forms {
				grids = append(grids, f.Grids...)
			}
		}
	}
	if len(grids) > 0 {
		grids = append(grids, m.Pattern.Possible...)
	}
	return grids
}

// gridsOfComms are the grids of two and more axes that laws of communicators are on: a loop may count along one of
// their axes, and a size may be a block along it.
func gridsOfComms(m *Model) (grids []pattern.Grid) {
	had := map[string]bool{}
	for _, g := range m.Comms {
		if l := m.Partition(g); l != nil {
			for _, f := range l.Forms {
				for _, grid := range f.Grids {
					if name := grid.String(); grid.Axes > 1 && !had[name] {
						grids, had[name] = append(grids, grid), true
					}
				}
			}
		}
	}
	return grids
}

// Partition returns the law of who is together in the communicators of a group; nil if it has none.
func (m *Model) Partition(g *CommGroup) *pattern.PartitionLaw { return m.partitions()[g] }

// hasNoMember reports whether no rank is in a communicator.
func hasNoMember(next pattern.Mapping) bool {
	return !slices.ContainsFunc(next.Dst, func(r int32) bool { return r != pattern.None })
}

// addIdleMembers adds the next members of those that are in a communicator and do not use it themselves, as the
// receivers at a site of sends: sites that use one communicator know it with all its members.
func addIdleMembers(next []int32, used map[int32]*signature.Comm) {
	for _, id := range slices.Sorted(maps.Keys(used)) {
		members := used[id].Members
		for i, r := range members {
			if r >= 0 && int(r) < len(next) && next[r] == pattern.None {
				next[r] = members[(i+1)%len(members)]
			}
		}
	}
}
