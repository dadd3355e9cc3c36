package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/commq/commq/predict/model/join"
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature"
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
}

// CommOfRun is a communicator of a run.
type CommOfRun struct {
	Run  *signature.Signature
	Comm *signature.Comm
}

// mixed is the index of communicators without all ranks in a commUse.
const mixed = -2

// commUse collects the communicators that a site uses.
type commUse struct {
	found    bool
	world    int  // index among those with all ranks, or mixed
	differs  bool // uses have different indexes
	like     *signature.Comm
	kinds    map[string]bool
	examples []CommOfRun
	next     []pattern.Mapping // by run: of a member, the next one
}

// groupComms sets the communicator groups of sites. It returns the groups and the pattern slots of those that do not
// have all ranks.
func groupComms(sites []*Site, t *join.Training) (groups []*CommGroup, all []pattern.Slot) {
	worlds := make([]map[int32]int, len(t.Runs)) // index of communicators with all ranks, by run and id
	for i, s := range t.Runs {
		worlds[i] = map[int32]int{}
		for k, c := range s.WorldComms() {
			worlds[i][c.ID] = k
		}
	}
	byKey := map[string]*CommGroup{}
	for _, x := range sites {
		u := commUseOf(x, t, worlds)
		if !u.found {
			continue
		}
		isWorld := u.world >= 0 && !u.differs
		key := u.key(isWorld)
		g := byKey[key]
		if g == nil {
			g = &CommGroup{World: u.world, Kind: "split"}
			byKey[key] = g
			if !isWorld {
				g.World, g.Slot = -1, fmt.Sprintf("%d comm", x.Event.ID)
				all = append(all, pattern.Slot{Name: g.Slot, Site: g.Slot, Runs: u.next})
			}
			if len(u.kinds) == 1 {
				g.Kind, g.Like, g.Examples = u.like.Kind, u.like, u.examples
			}
			groups = append(groups, g)
		}
		x.Comm = g
	}
	return groups, all
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

// commUseOf collects the communicators that a site uses.
func commUseOf(x *Site, t *join.Training, worlds []map[int32]int) *commUse {
	u := &commUse{world: -1, kinds: map[string]bool{}}
	for i, run := range t.Runs {
		next := pattern.Mapping{Ranks: run.Ranks, Dst: slices.Repeat([]int32{pattern.None}, int(run.Ranks))}
		used := map[int32]*signature.Comm{}
		for _, s := range x.Calls.Slots {
			for r, c := range s.Runs[i] {
				if c == nil || c.Comm == signature.Null {
					continue
				}
				comm := t.Comm(c.Comm)
				world, hasAll := worlds[i][comm.ID]
				if !hasAll {
					world = mixed
				}
				u.differs = u.differs || u.found && world != u.world
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
	}
	return u
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
