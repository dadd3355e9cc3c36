package training

import (
	"cmp"
	"slices"

	"github.com/commq/commq/schema"
)

// side identifies sends, or receives, of a rank in a group that no trace names.
type side struct {
	rank     int32
	receives bool
	peer     int32 // the other side's rank in the group
	elements int64
	kind     string
}

// end are the operations of a side.
type end struct {
	r    *rank
	ops  []int   // indices into Ops
	left int     // operations without their other end
	on   []*comm // where the others have it
}

// messages are the messages of a job without a known group.
type messages struct {
	job  *job
	ends map[side]*end
	on   map[int32][]*comm // the communicators of each rank
}

// placeMessages finds the world ranks of the other sides of messages for which traces only have the rank in the group.
// If the group is unknown too, it is the only group in which the other side has as many sends, or receives, of that
// size, without those of another group. If several remain, the group stays unknown.
func placeMessages(j *job) {
	m := messages{job: j, ends: endsOfMessages(j)}
	if len(m.ends) == 0 {
		return
	}
	m.on = commsByRank(j)
	all := m.sides()
	m.eliminate(all)
	for _, s := range all {
		if x := m.ends[s]; x.left == 0 && len(x.on) == 1 {
			for _, i := range x.ops {
				x.r.join(x.on[0], i)
				x.r.Ops[i].Peer = x.on[0].ranks[s.peer]
				j.inferred++
			}
		}
	}
}

// sides returns the sides in an order that does not depend on the map's.
func (m *messages) sides() []side {
	all := make([]side, 0, len(m.ends))
	for s := range m.ends {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b side) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.peer, b.peer), cmp.Compare(a.elements, b.elements),
			cmp.Compare(a.kind, b.kind), cmp.Compare(asInt(a.receives), asInt(b.receives)))
	})
	return all
}

// eliminate gives sides the communicators on which alone they can be, until that rules out no more.
func (m *messages) eliminate(all []side) {
	for changed := true; changed; {
		changed = false
		for _, s := range all {
			x := m.ends[s]
			if x.left == 0 {
				continue
			}
			c, others := m.onlyComm(s)
			if c == nil {
				continue
			}
			n := min(x.left, others.left)
			for _, y := range []*end{x, others} {
				if y.left -= n; !slices.Contains(y.on, c) {
					y.on = append(y.on, c)
				}
			}
			changed = true
		}
	}
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// endsOfMessages collects the messages without a group, and sets the world rank of the other side of those with one.
func endsOfMessages(j *job) map[side]*end {
	ends := map[side]*end{}
	for _, r := range j.ranks {
		for i := range r.Ops {
			op := &r.Ops[i]
			if !op.PeerInGroup || schema.Calls[op.Call].Class == schema.ClassCollective {
				continue
			}
			local := op.Peer
			op.Peer = Unknown
			if c := r.comms[i]; c != nil {
				if local >= 0 && int(local) < len(c.ranks) {
					op.Peer = c.ranks[local]
				}
				continue
			}
			if local < 0 {
				continue
			}
			elements, _ := op.sizes(Unknown)
			kind, _ := Type(op.Type)
			s := side{r.Rank.Rank, op.Call == schema.CallIrecv, local, elements, kind}
			if ends[s] == nil {
				ends[s] = &end{r: r}
			}
			ends[s].ops = append(ends[s].ops, i)
			ends[s].left++
		}
	}
	return ends
}

// commsByRank returns the communicators of each rank.
func commsByRank(j *job) map[int32][]*comm {
	on := map[int32][]*comm{}
	for _, c := range j.comms {
		for _, rank := range c.ranks {
			on[rank] = append(on[rank], c)
		}
	}
	return on
}

// onlyComm returns the only communicator on which the operations of a side can be, and their other end; nil if there is
// none or more than one. A rank without a trace may have any operations.
func (m *messages) onlyComm(s side) (only *comm, others *end) {
	for _, c := range m.on[s.rank] {
		if int(s.peer) >= len(c.ranks) || c.ranks[s.peer] == s.rank {
			continue
		}
		world := c.ranks[s.peer]
		x := m.ends[side{world, !s.receives, c.local[s.rank], s.elements, s.kind}]
		missing := m.job.byRank[world] == nil
		if !missing && (x == nil || x.left == 0) {
			continue
		}
		if missing || only != nil {
			return nil, nil
		}
		only, others = c, x
	}
	return only, others
}
