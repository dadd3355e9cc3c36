package training

import (
	"cmp"
	"slices"

	"github.com/commq/commq/schema"
)

// side is what sends, or receives, of a rank whose group no trace tells have in common.
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

// placeMessages finds the world ranks of the other sides of messages of which the traces tell the rank in the group.
// Where they do not tell the group it is the only one in which the other side has as many sends, or receives, of that
// size, and not those of another group. Of what stays open the group is unknown.
func (j *job) placeMessages() {
	ends := j.endsOfMessages()
	if len(ends) == 0 {
		return
	}
	all := make([]side, 0, len(ends))
	for s := range ends {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b side) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.peer, b.peer), cmp.Compare(a.elements, b.elements),
			cmp.Compare(a.kind, b.kind), cmp.Compare(asInt(a.receives), asInt(b.receives)))
	})
	on := j.commsByRank()
	for changed := true; changed; {
		changed = false
		for _, s := range all {
			x := ends[s]
			if x.left == 0 {
				continue
			}
			c, others := j.onlyComm(s, on[s.rank], ends)
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
	for _, s := range all {
		if x := ends[s]; x.left == 0 && len(x.on) == 1 {
			for _, i := range x.ops {
				x.r.join(x.on[0], i)
				x.r.Ops[i].Peer = x.on[0].ranks[s.peer]
				j.inferred++
			}
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
func (j *job) endsOfMessages() map[side]*end {
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
func (j *job) commsByRank() map[int32][]*comm {
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
func (j *job) onlyComm(s side, comms []*comm, ends map[side]*end) (only *comm, others *end) {
	for _, c := range comms {
		if int(s.peer) >= len(c.ranks) || c.ranks[s.peer] == s.rank {
			continue
		}
		world := c.ranks[s.peer]
		x := ends[side{world, !s.receives, c.local[s.rank], s.elements, s.kind}]
		missing := j.byRank[world] == nil
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
