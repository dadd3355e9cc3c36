package check

import (
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/commq/commq/schema"
)

// checkComms reads the table comms.
func checkComms(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	batch = func(b schema.Batch) { addComms(&r.comms, out, b.(*schema.Comms)) }
	return batch, func() {
		world := r.comms.byID[0]
		if world == nil {
			out.wrong("communicator 0, MPI_COMM_WORLD, is missing")
		} else if n := len(world.groups[0]); n != len(r.ranks) {
			out.wrong("communicator 0, MPI_COMM_WORLD, has %d members in a run of %d ranks", n, len(r.ranks))
		}
		for _, id := range sortedKeys(r.comms.byID) {
			if p := r.comms.byID[id].parent; p != schema.NullInt32 && r.comms.byID[p] == nil {
				out.wrong("communicator %d: its parent %d has no row in comms", id, p)
			}
		}
		if world == nil {
			return
		}
		for i, rank := range world.groups[0] {
			if rank != int32(i) {
				out.wrong("communicator 0, MPI_COMM_WORLD: world rank %d has comm_rank %d", rank, i)
			}
		}
	}
}

func addComms(comms *communicators, out *reporter, t *schema.Comms) {
	for i, id := range t.Comm {
		c := comms.byID[id]
		if c == nil {
			c = &communicator{parent: t.Parent[i]}
			comms.byID[id] = c
		}
		remote, world := t.Remote[i], t.WorldRank[i]
		if remote != 0 && remote != 1 {
			out.wrong("communicator %d: remote is %d", id, remote)
			continue
		}
		if want := len(c.groups[remote]); int(t.CommRank[i]) != want {
			out.wrong("communicator %d: comm_rank %d, expected %d", id, t.CommRank[i], want)
		}
		c.groups[remote] = append(c.groups[remote], world)
		if world == schema.NullInt32 {
			c.alien = true
			continue
		}
		if comms.members[memberKey(id, world)] != nil {
			out.wrong("communicator %d: world rank %d is a member twice", id, world)
		}
		comms.members[memberKey(id, world)] = &member{remote: remote, rank: t.CommRank[i], first: !c.native}
		c.native = true
	}
}

// checkReferences collects the ids of datatypes and call sites, and looks for ids that have no row.
func checkReferences(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	datatypes, sites := map[int32]bool{}, map[int32]bool{}
	comms := r.comms.byID
	return func(b schema.Batch) {
		switch t := b.(type) {
		case *schema.Datatypes:
			for _, id := range t.ID {
				datatypes[id] = true
			}
		case *schema.Callsites:
			for _, id := range t.ID {
				sites[id] = true
			}
			checkIDs(out, b, "parent", "callsites", t.Parent, sites)
		case *schema.Events:
			checkIDs(out, b, "comm", "comms", t.Comm, comms)
			checkIDs(out, b, "send_datatype", "datatypes", t.SendDatatype, datatypes)
			checkIDs(out, b, "recv_datatype", "datatypes", t.RecvDatatype, datatypes)
			checkIDs(out, b, "callsite", "callsites", t.Callsite, sites)
		case *schema.Messages:
			checkIDs(out, b, "comm", "comms", t.Comm, comms)
			checkIDs(out, b, "send_datatype", "datatypes", t.SendDatatype, datatypes)
			checkIDs(out, b, "send_callsite", "callsites", t.SendCallsite, sites)
			checkIDs(out, b, "recv_callsite", "callsites", t.RecvCallsite, sites)
		}
	}, nil
}

// checkIDs reports ids in a column that are missing from the table of ids.
func checkIDs[V any](out *reporter, b schema.Batch, column, table string, ids []int32, known map[int32]V) {
	last, ok := schema.NullInt32, true
	for i, id := range ids {
		if id == schema.NullInt32 {
			continue
		}
		if id != last {
			_, ok = known[id]
			last = id
		}
		if !ok {
			out.badRow(b, i, "%s is %d, which has no row in %s", column, id, table)
		}
	}
}

// checkCallsites checks the tree of call paths, and looks for call sites in a run without them.
func checkCallsites(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	next := int32(0)
	return func(b schema.Batch) {
		switch t := b.(type) {
		case *schema.Callsites:
			for i, id := range t.ID {
				if id != next {
					out.wrong("row %d of callsites has the id %d", next, id)
				}
				next++
				if t.Parent[i] != schema.NullInt32 && t.Parent[i] >= id {
					out.wrong("the parent of call site %d is %d, which is no earlier row", id, t.Parent[i])
				}
			}
		case *schema.Events:
			if r.manifest.Callsites {
				return
			}
			for i, id := range t.Callsite {
				if id != schema.NullInt32 {
					out.badRow(b, i, "callsite is %d in a run that was captured without call sites", id)
				}
			}
		}
	}, nil
}

func checkMembers(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	comms := &r.comms
	return func(b schema.Batch) {
		switch t := b.(type) {
		case *schema.Events:
			for i, comm := range t.Comm {
				if comm != schema.NullInt32 && comms.byID[comm] != nil && comms.member(comm, t.Rank[i]) == nil {
					out.badRow(b, i, "the rank is not a member of communicator %d", comm)
				}
			}
		case *schema.Messages:
			for i, comm := range t.Comm {
				for _, world := range [2]int32{t.Src[i], t.Dst[i]} {
					if comms.byID[comm] != nil && comms.members[memberKey(comm, world)] == nil {
						out.badRow(b, i, "world rank %d is not a member of communicator %d", world, comm)
					}
				}
			}
		}
	}, nil
}

func checkPeers(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	return func(b schema.Batch) {
		e := b.(*schema.Events)
		checkPeer(&r.comms, out, e, "send", e.SendPeer, e.SendWorld)
		checkPeer(&r.comms, out, e, "recv", e.RecvPeer, e.RecvWorld)
	}, nil
}

// checkPeer compares one side's peer with its world rank.
func checkPeer(comms *communicators, out *reporter, e *schema.Events, side string, peers, worlds []int32) {
	for i, peer := range peers {
		world, comm := worlds[i], e.Comm[i]
		if peer == schema.NullInt32 {
			if world != schema.NullInt32 {
				out.badRow(e, i, "%s_world is %d, but %s_peer is null", side, world, side)
			}
			continue
		}
		m := comms.member(comm, e.Rank[i])
		if m == nil { // reported by the rules references and members
			continue
		}
		group := comms.byID[comm].peers(m)
		switch {
		case peer < 0 || int(peer) >= len(group):
			out.badRow(e, i, "%s_peer is %d in communicator %d of %d ranks", side, peer, comm, len(group))
		case group[peer] != world:
			out.badRow(e, i, "%s_world is %d; rank %d of communicator %d is world rank %d", side, world, peer, comm,
				group[peer])
		}
	}
}

// checkInstances counts collective operations along each rank and communicator, and the starts of each persistent
// collective. Calls that were lost leave gaps.
func checkInstances(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	gaps := r.manifest.Counts.Dropped > 0 || r.filtered()
	batch = func(b schema.Batch) {
		e := b.(*schema.Events)
		for i, instance := range e.Instance {
			if instance == schema.NullInt64 || e.Comm[i] == schema.NullInt32 || r.persistent.isOrphan(e, i) {
				continue
			}
			r.persistent.add(e, i)
			m := r.comms.member(e.Comm[i], e.Rank[i])
			if m == nil {
				continue
			}
			next, call := &m.next, schema.CallID(e.Call[i])
			if s := r.persistent.startedBy(e, i); s != nil {
				next, call = &s.next, s.call
			}
			if instance < *next || instance > *next && !gaps {
				out.badRow(b, i, "instance %d on communicator %d, expected %d", instance, e.Comm[i], *next)
			}
			*next = instance + 1
			m.calls += hashPair(uint64(instance), uint64(call.WithoutLargeCount()))
		}
	}
	return batch, func() {
		if r.finalized() && !gaps {
			compareMembers(&r.comms, out)
		}
	}
}

// hashPair returns a hash of two words.
func hashPair(a, b uint64) uint64 {
	var w [16]byte
	for k := range 8 {
		w[k], w[8+k] = byte(a>>(8*k)), byte(b>>(8*k))
	}
	return xxh3.Hash(w[:])
}

// compareMembers checks that all members of each communicator made the same collective operations.
func compareMembers(comms *communicators, out *reporter) {
	for _, id := range sortedKeys(comms.byID) {
		c := comms.byID[id]
		var first *member
		for _, world := range slices.Concat(c.groups[0], c.groups[1]) {
			m := comms.members[memberKey(id, world)]
			switch {
			case m == nil:
			case first == nil:
				first = m
			case m.next != first.next:
				out.bad(world, schema.NullInt64,
					"%d collective operations on communicator %d; its rank %d made %d", m.next, id, first.rank,
					first.next)
			case m.calls != first.calls:
				out.bad(world, schema.NullInt64,
					"the collective operations on communicator %d are not those of its rank %d", id, first.rank)
			}
		}
	}
}
