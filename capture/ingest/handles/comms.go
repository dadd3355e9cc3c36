package handles

import (
	"fmt"
	"slices"

	"github.com/commq/commq/schema"
)

// key is the same on all ranks that define the same communicator.
type key struct {
	parent   int32 // provisional id of the parent; parentUnknown when the definition is identified by tag
	kind     int32
	instance uint64
	low      int32 // leader of the group; the lower of the two of an intercommunicator
	high     int32 // the other leader of an intercommunicator; else -1
	tag      int32
	nth      int32
}

// tagKey is the same for all communicators that one rank made with the same tag. If there are several, their order on
// the leader, which took part in all of them, distinguishes them.
type tagKey struct{ rank, low, high, tag, kind int32 }

func (c *Comm) tagKey(rank int32) tagKey {
	low, high := c.leaders()
	return tagKey{rank, low, high, c.Fixed.Key, c.Fixed.Kind}
}

// unifier builds the table. Until number gives them their ids, communicators have provisional ids: indexes in table.
type unifier struct {
	ranks   []*Definitions
	size    int32 // of MPI_COMM_WORLD
	keys    map[key]int32
	table   []comm
	byTag   map[tagKey][]*Comm
	members int64 // of all groups
	most    int64 // limit of members: see maxUnlisted
}

// maxUnlisted is how many members all groups may have in addition to those that definitions list. So the memory that a
// damaged file can make unifier allocate is in proportion to its size, and a job of many ranks may make any number of
// communicators, whose leaders list their members.
const maxUnlisted = 1 << 26

// UnifyComms finds out which communicators of different ranks are the same, and numbers them: MPI_COMM_WORLD first,
// then by the world rank of the leader and the order in which it made them, a rank's MPI_COMM_SELF first. size is
// that of MPI_COMM_WORLD. warning, unless empty, names communicators that cannot be distinguished. The error names
// the file that is damaged.
func UnifyComms(size int32, ranks []*Definitions) (t *Table, warning string, err error) {
	return unify(size, ranks, maxUnlisted)
}

// unify does the work of UnifyComms; unlisted is its maxUnlisted.
func unify(size int32, ranks []*Definitions, unlisted int64) (t *Table, warning string, err error) {
	for _, r := range ranks {
		if err := r.checkComms(size); err != nil {
			return nil, "", err
		}
	}
	u := unifier{ranks: ranks, size: size, keys: map[key]int32{}, byTag: collectTagged(ranks),
		most: unlisted + listed(ranks)}
	for _, r := range ranks {
		self := u.addSelf(r.Rank)
		if u.addRank(r, self); u.members > u.most {
			return nil, "", fmt.Errorf("%s: its communicators have %d members in all: the file is damaged", r.File,
				u.members)
		}
	}
	leaderless := 0
	for i := range u.table {
		if u.table[i].leader < 0 && u.table[i].groups[1] != nil {
			leaderless++
		}
	}
	if leaderless > 0 {
		warning = fmt.Sprintf("Intercommunicators whose groups are both led by processes outside MPI_COMM_WORLD: %d. Those with the same ranks cannot be told apart, so their members and messages may be mixed up.",
			leaderless)
	}
	return u.number(), warning, nil
}

// listed counts the members that definitions list.
func listed(ranks []*Definitions) int64 {
	n := int64(0)
	for _, r := range ranks {
		for i := range r.Comms {
			n += int64(len(r.Comms[i].Members) + len(r.Comms[i].Remote))
		}
	}
	return n
}

// checkComms finds fields that no communicator has, members and leaders that are not ranks of the job, and parents that
// do not come before their communicator. Those of another process's index were not checked yet.
func (d *Definitions) checkComms(size int32) error {
	for i := range d.Comms {
		c := &d.Comms[i]
		if c.Parent < parentSelf || c.Parent >= i {
			return fmt.Errorf("%s: the parent of communicator %d is no earlier one: the file is damaged", d.File, c.ID)
		}
		lists := [][]int32{c.Members, c.Remote}
		if !c.Predefined {
			if err := c.checkFixed(); err != nil {
				return fmt.Errorf("%s: communicator %d: %w: the file is damaged", d.File, c.ID, err)
			}
			if len(c.Members) != int(c.Fixed.Members) || len(c.Remote) != int(c.Fixed.RemoteMembers) {
				return fmt.Errorf("%s: communicator %d has lists of %d and %d members in place of %d and %d: the file is damaged",
					d.File, c.ID, len(c.Members), len(c.Remote), c.Fixed.Members, c.Fixed.RemoteMembers)
			}
			lists = append(lists, []int32{c.Fixed.LeaderWorld})
		}
		if c.Fixed.RemoteSize > 0 {
			lists = append(lists, []int32{c.Fixed.RemoteLeaderWorld})
		}
		for _, list := range lists {
			for _, w := range list {
				if w < -1 || w >= size {
					return fmt.Errorf("%s: communicator %d has a member with world rank %d, but there are %d ranks: the file is damaged",
						d.File, c.ID, w, size)
				}
			}
		}
	}
	return nil
}

func collectTagged(ranks []*Definitions) map[tagKey][]*Comm {
	byTag := map[tagKey][]*Comm{}
	for _, r := range ranks {
		for i := range r.Comms {
			if c := &r.Comms[i]; !c.Predefined && c.identifiedByTag() {
				k := c.tagKey(r.Rank)
				byTag[k] = append(byTag[k], c)
			}
		}
	}
	return byTag
}

// ordinal returns the index of a definition made by tag among those of its group's leader. The m-th one of a rank is
// the m-th of the leader's that has this rank as a member.
func (u *unifier) ordinal(rank int32, c *Comm) int32 {
	k := c.tagKey(rank)
	m := slices.Index(u.byTag[k], c)
	k.rank = c.Fixed.LeaderWorld
	if k.rank == rank {
		return int32(m)
	}
	for n, l := range u.byTag[k] {
		if slices.Contains(l.Members, rank) {
			if m == 0 {
				return int32(n)
			}
			m--
		}
	}
	return int32(len(u.byTag[k]) + m) // the leader's file is missing
}

// addSelf adds a rank's MPI_COMM_SELF and returns its provisional id. number leaves unused ones out.
func (u *unifier) addSelf(rank int32) int32 {
	u.table = append(u.table, comm{kind: int32(schema.CommSelf), parents: noParents, groups: [2][]int32{{rank}},
		leader: rank, order: [2]int64{-1, 0}, self: true})
	return int32(len(u.table) - 1)
}

var noParents = [2]int32{schema.NullInt32, schema.NullInt32}

// addRank adds what a rank defined, until there are too many members; self is its MPI_COMM_SELF.
func (u *unifier) addRank(r *Definitions, self int32) {
	provisional := func(parent int) int32 {
		switch parent {
		case parentUnknown, parentWorld:
			return int32(parent)
		case parentSelf:
			return self
		}
		return r.Comms[parent].global
	}
	for i := range r.Comms {
		c := &r.Comms[i]
		if number, ok := c.identify(); ok {
			c.global = parentWorld
			if number == Self {
				c.global = self
				if c.Named {
					u.table[self].name = c.Name
				}
			}
			continue
		}
		low, high := c.leaders()
		k := key{parent: provisional(c.Parent), kind: c.Fixed.Kind, instance: c.Fixed.Instance, low: low, high: high}
		parent := k.parent
		if c.identifiedByTag() {
			k = key{parent: parentUnknown, kind: c.Fixed.Kind, low: low, high: high, tag: c.Fixed.Key,
				nth: u.ordinal(r.Rank, c)}
		}
		id, ok := u.keys[k]
		if !ok {
			id = int32(len(u.table))
			u.keys[k] = id
			u.table = append(u.table, comm{kind: c.Fixed.Kind, parents: noParents, leader: low,
				order: [2]int64{int64(u.size), int64(i)}})
		}
		c.global = id
		if u.members += u.table[id].add(r.Rank, c, parent, i, u.size); u.members > u.most {
			return
		}
	}
}

// usedSelves returns the MPI_COMM_SELFs that were used by a call, named, or the parent of another communicator.
func (u *unifier) usedSelves() map[int32]bool {
	used := map[int32]bool{}
	self := map[int32]int32{}
	for i := range u.table {
		if u.table[i].self {
			self[u.table[i].leader] = int32(i)
		}
	}
	for _, r := range u.ranks {
		id := self[r.Rank]
		if r.UsesSelf {
			used[id] = true
		}
		for i := range r.Comms {
			c := &r.Comms[i]
			if n, ok := c.identify(); ok && n == Self || c.Parent == parentSelf {
				used[id] = true
			}
		}
	}
	return used
}
