package schema

import (
	"slices"

	"github.com/zeebo/xxh3"
)

// commState is a communicator: the world ranks of its one or two groups.
type commState struct {
	groups [2][]int32
	parent int32
	alien  bool // a member is outside the run's MPI_COMM_WORLD
	native bool // a member is inside
}

// memberState is a rank in a communicator.
type memberState struct {
	remote int32
	rank   int32
	first  bool   // of those of the communicator that are in the run's MPI_COMM_WORLD
	next   int64  // the instance it comes to
	calls  uint64 // sum of the hashes of its instances and calls
}

// memberCache is the member that was looked up last: rows of one rank and communicator stand together.
type memberCache struct {
	key    uint64
	member *memberState
}

func memberKey(comm, world int32) uint64 { return uint64(uint32(comm))<<32 | uint64(uint32(world)) }

// member is the member of that world rank, nil when it is none.
func (c *Checker) member(comm, world int32) *memberState {
	key := memberKey(comm, world)
	if c.last.member == nil || c.last.key != key {
		c.last = memberCache{key, c.members[key]}
	}
	return c.last.member
}

// isFirst says whether the rank is the first of the communicator's members that are of this job: the first of the first
// group, but for communicators with other jobs.
func (c *Checker) isFirst(world, comm int32) bool {
	m := c.member(comm, world)
	return m != nil && m.first
}

// checkComms takes in the table comms.
func checkComms(c *Checker, b Batch) {
	t := b.(*Comms)
	for i, id := range t.Comm {
		s := c.comms[id]
		if s == nil {
			s = &commState{parent: t.Parent[i]}
			c.comms[id] = s
		}
		remote, world := t.Remote[i], t.WorldRank[i]
		if remote != 0 && remote != 1 {
			c.wrong("communicator %d: remote is %d", id, remote)
			continue
		}
		if int(t.CommRank[i]) != len(s.groups[remote]) {
			c.wrong("communicator %d: comm_rank %d where %d is due", id, t.CommRank[i], len(s.groups[remote]))
		}
		s.groups[remote] = append(s.groups[remote], world)
		if world == NullInt32 {
			s.alien = true
			continue
		}
		if c.members[memberKey(id, world)] != nil {
			c.wrong("communicator %d: world rank %d is there twice", id, world)
		}
		c.members[memberKey(id, world)] = &memberState{remote: remote, rank: t.CommRank[i], first: !s.native}
		s.native = true
	}
}

func finishComms(c *Checker) {
	world := c.comms[0]
	if world == nil {
		c.wrong("communicator 0, MPI_COMM_WORLD, is missing")
	} else if n := len(world.groups[0]); n != len(c.ranks) {
		c.wrong("communicator 0, MPI_COMM_WORLD, has %d members in a run of %d ranks", n, len(c.ranks))
	}
	for _, id := range sortedKeys(c.comms) {
		if p := c.comms[id].parent; p != NullInt32 && c.comms[p] == nil {
			c.wrong("communicator %d: its parent %d has no row in comms", id, p)
		}
	}
	if world == nil {
		return
	}
	for i, r := range world.groups[0] {
		if r != int32(i) {
			c.wrong("communicator 0, MPI_COMM_WORLD: world rank %d has comm_rank %d", r, i)
		}
	}
}

func sortedKeys[K int32 | uint64, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// checkReferences takes in the ids of datatypes and callsites, and looks for ids that are not there.
func checkReferences(c *Checker, b Batch) {
	switch t := b.(type) {
	case *Datatypes:
		for _, id := range t.ID {
			c.types[id] = true
		}
	case *Callsites:
		for _, id := range t.ID {
			c.sites[id] = true
		}
		known(c, b, "parent", "callsites", t.Parent, c.sites)
	case *Events:
		known(c, b, "comm", "comms", t.Comm, c.comms)
		known(c, b, "send_datatype", "datatypes", t.SendDatatype, c.types)
		known(c, b, "recv_datatype", "datatypes", t.RecvDatatype, c.types)
		known(c, b, "callsite", "callsites", t.Callsite, c.sites)
	case *Messages:
		known(c, b, "comm", "comms", t.Comm, c.comms)
		known(c, b, "send_datatype", "datatypes", t.SendDatatype, c.types)
		known(c, b, "send_callsite", "callsites", t.SendCallsite, c.sites)
		known(c, b, "recv_callsite", "callsites", t.RecvCallsite, c.sites)
	}
}

// checkCallsites looks at the tree of call paths, and for call sites in a run without them.
func checkCallsites(c *Checker, b Batch) {
	if t, ok := b.(*Callsites); ok {
		for i, id := range t.ID {
			if id != c.nextSite {
				c.wrong("row %d of callsites has the id %d", c.nextSite, id)
			}
			c.nextSite++
			if t.Parent[i] != NullInt32 && t.Parent[i] >= id {
				c.wrong("the parent of call site %d is %d, which is no earlier row", id, t.Parent[i])
			}
		}
		return
	}
	if t, ok := b.(*Events); ok && !c.manifest.Callsites {
		for i, id := range t.Callsite {
			if id != NullInt32 {
				c.bad(t.Rank[i], t.Seq[i], "callsite is %d in a run that was captured without call sites", id)
			}
		}
	}
}

// known looks for ids of a column that the table of ids does not have.
func known[V any](c *Checker, b Batch, column, table string, ids []int32, there map[int32]V) {
	last, fine := NullInt32, true
	for i, id := range ids {
		if id == NullInt32 {
			continue
		}
		if id != last {
			_, fine = there[id]
			last = id
		}
		if !fine {
			rank, seq := where(b, i)
			c.bad(rank, seq, "%s is %d, which has no row in %s", column, id, table)
		}
	}
}

func checkMembers(c *Checker, b Batch) {
	switch t := b.(type) {
	case *Events:
		for i, comm := range t.Comm {
			if comm != NullInt32 && c.comms[comm] != nil && c.member(comm, t.Rank[i]) == nil {
				c.bad(t.Rank[i], t.Seq[i], "the rank is not a member of communicator %d", comm)
			}
		}
	case *Messages:
		for i, comm := range t.Comm {
			for _, world := range [2]int32{t.Src[i], t.Dst[i]} {
				if c.comms[comm] != nil && c.members[memberKey(comm, world)] == nil {
					c.bad(t.Src[i], t.SendSeq[i], "world rank %d is not a member of communicator %d", world, comm)
				}
			}
		}
	}
}

func checkPeers(c *Checker, b Batch) {
	e := b.(*Events)
	c.checkPeer(e, "send", e.SendPeer, e.SendWorld)
	c.checkPeer(e, "recv", e.RecvPeer, e.RecvWorld)
}

// checkPeer compares one side's peer and world rank.
func (c *Checker) checkPeer(e *Events, side string, peers, worlds []int32) {
	for i, peer := range peers {
		world := worlds[i]
		if peer == NullInt32 {
			if world != NullInt32 {
				c.bad(e.Rank[i], e.Seq[i], "%s_world is %d, but %s_peer is null", side, world, side)
			}
			continue
		}
		m := c.member(e.Comm[i], e.Rank[i])
		if m == nil { // the rules references and members say so
			continue
		}
		group := c.comms[e.Comm[i]].peers(m)
		switch {
		case peer < 0 || int(peer) >= len(group):
			c.bad(e.Rank[i], e.Seq[i], "%s_peer is %d in communicator %d of %d ranks", side, peer, e.Comm[i], len(group))
		case group[peer] != world:
			c.bad(e.Rank[i], e.Seq[i], "%s_world is %d; rank %d of communicator %d is world rank %d", side, world, peer, e.Comm[i], group[peer])
		}
	}
}

// peers is the group whose ranks a member's calls name: the other one of an intercommunicator.
func (s *commState) peers(m *memberState) []int32 {
	if len(s.groups[1]) > 0 {
		return s.groups[1-m.remote]
	}
	return s.groups[0]
}

// initState is a row that made a persistent collective.
type initState struct {
	call CallID
	next int64 // the instance of its next start
}

// noteInit remembers a row that made a persistent collective.
func (c *Checker) noteInit(e *Events, i int) {
	call := CallID(e.Call[i])
	if e.Instance[i] != NullInt64 && call >= 0 && int(call) < len(Calls) && Calls[call].Recorder == "collective_init" {
		c.inits[sideKey(e.Rank[i], e.Seq[i])] = &initState{call: call, next: (e.Instance[i] + 1) << 32}
	}
}

// startedBy is the row that made the persistent collective which this row starts; nil when it starts none.
func (c *Checker) startedBy(e *Events, i int) *initState {
	call := CallID(e.Call[i])
	if Class(e.Class[i]) != ClassCollective || call != CallStart && call != CallStartall || e.InitSeq[i] == NullInt64 {
		return nil
	}
	return c.inits[sideKey(e.Rank[i], e.InitSeq[i])]
}

// orphan says whether a row starts a persistent collective whose making a filter left out: then it is not known which.
func (c *Checker) orphan(e *Events, i int) bool {
	call := CallID(e.Call[i])
	return c.filtered() && Class(e.Class[i]) == ClassCollective && (call == CallStart || call == CallStartall) && c.startedBy(e, i) == nil
}

// collectiveOf is the call that says what a row of class collective does: for a start the one that made its request.
func (c *Checker) collectiveOf(e *Events, i int) CallID {
	if s := c.startedBy(e, i); s != nil {
		return s.call
	}
	return CallID(e.Call[i])
}

// checkInstances counts collective operations along each rank and communicator, and the starts of each persistent one.
// Calls that were lost leave gaps.
func checkInstances(c *Checker, b Batch) {
	e := b.(*Events)
	gaps := c.manifest.Counts.Dropped > 0 || c.filtered()
	for i, instance := range e.Instance {
		if instance == NullInt64 || e.Comm[i] == NullInt32 || c.orphan(e, i) {
			continue
		}
		c.noteInit(e, i)
		m := c.member(e.Comm[i], e.Rank[i])
		if m == nil {
			continue
		}
		next, call := &m.next, e.Call[i]
		if s := c.startedBy(e, i); s != nil {
			next, call = &s.next, int16(s.call)
		}
		if instance < *next || instance > *next && !gaps {
			c.bad(e.Rank[i], e.Seq[i], "instance %d on communicator %d where %d is due", instance, e.Comm[i], *next)
		}
		*next = instance + 1
		m.calls += mixed(uint64(instance), uint64(withoutLarge(CallID(call))))
	}
}

// mixed is a hash of two words.
func mixed(a, b uint64) uint64 {
	var w [16]byte
	for k := range 8 {
		w[k], w[8+k] = byte(a>>(8*k)), byte(b>>(8*k))
	}
	return xxh3.Hash(w[:])
}

// finishInstances compares the ranks of each communicator.
func finishInstances(c *Checker) {
	if c.manifest.Ended != EndedNames[EndedFinalized] || c.manifest.Counts.Dropped > 0 || c.filtered() {
		return
	}
	for _, id := range sortedKeys(c.comms) {
		s := c.comms[id]
		var first *memberState
		for _, world := range slices.Concat(s.groups[0], s.groups[1]) {
			m := c.members[memberKey(id, world)]
			switch {
			case m == nil:
			case first == nil:
				first = m
			case m.next != first.next:
				c.bad(world, NullInt64, "%d collective operations on communicator %d; its rank %d made %d", m.next, id, first.rank, first.next)
			case m.calls != first.calls:
				c.bad(world, NullInt64, "the collective operations on communicator %d are not those of its rank %d", id, first.rank)
			}
		}
	}
}
