package predict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// Collectives with a count per peer have rows in the table parts. What they say follows from the totals of the ranks: the root of MPI_Gatherv receives from each
// rank what that sends, each rank of MPI_Allgatherv too, the root of MPI_Scatterv sends what each receives. For MPI_Alltoallv and MPI_Alltoallw totals do not tell,
// but where what rank r sends to p is the product of what r sends and what p receives, by all that is sent: as blocks of a matrix that is dealt by rows and
// is to be dealt by columns are. A signature says of which events that holds.

// partsKind is how the parts of a collective follow from totals.
type partsKind uint8

const (
	noParts   partsKind = iota
	recvRoot            // of the root: from each rank what that sends
	sendRoot            // of the root: to each rank what that receives
	recvAll             // of all: from each rank what that sends
	exchanged           // of all: both sides, as products
)

// partsOf are those of an MPI function.
func partsOf(call schema.CallID) partsKind {
	name := strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(call.String(), "MPI_"), "_c"))
	switch {
	case name == "gatherv" || name == "igatherv":
		return recvRoot
	case name == "scatterv" || name == "iscatterv":
		return sendRoot
	case name == "allgatherv" || name == "iallgatherv":
		return recvAll
	case slices.Contains([]string{"alltoallv", "ialltoallv", "alltoallw", "ialltoallw"}, name):
		return exchanged
	}
	return noParts
}

// PartsProduct is what Values.Parts is of an event at which, in each operation, what a rank sends to a peer is what it sends in all times what the peer receives
// in all, by what all ranks send.
const PartsProduct = "product"

// mostParts bounds the rows of parts that are looked at, and those that a run is given.
const mostParts = 1 << 22

// share is the part of a rank that has a total, which goes to (or comes from) a peer with another one; false where that is not a whole number.
func share(mine, theirs, all int64) (int64, bool) {
	switch {
	case mine == 0 || theirs == 0:
		return 0, true
	case all <= 0 || theirs > (1<<62)/mine:
		return 0, false
	}
	return mine * theirs / all, mine*theirs%all == 0
}

// partsExchange is an operation with a count per peer, while its parts are looked at.
type partsExchange struct {
	node       int32
	send, recv map[int32]int64 // by rank
}

// partsPass looks whether the parts of events are products.
type partsPass struct {
	made  map[rowOf]instance
	known map[instance]*partsExchange
}

type rowOf struct {
	rank int32
	seq  int64
}

// note notes a row of event n.
func (p *partsPass) note(n *Node, e *schema.Event) {
	if e.Comm == schema.NullInt32 || e.Instance == schema.NullInt64 || schema.Class(e.Class) != schema.ClassCollective || partsOf(schema.CallID(e.Call)) != exchanged {
		return
	}
	k := instance{e.Comm, e.Instance}
	if p.made == nil {
		p.made, p.known = map[rowOf]instance{}, map[instance]*partsExchange{}
	}
	x := p.known[k]
	if x == nil {
		x = &partsExchange{node: n.ID, send: map[int32]int64{}, recv: map[int32]int64{}}
		p.known[k] = x
	}
	p.made[rowOf{e.Rank, e.Seq}] = k
	x.send[e.Rank], x.recv[e.Rank] = max(e.SendBytes, 0), max(e.RecvBytes, 0)
}

// exchanges says of which events the parts are products.
func (s *signer) exchanges() error {
	p := &s.parts
	if s.run.Parts == nil || len(p.made) == 0 {
		return nil
	}
	wrong, seen := map[int32]bool{}, map[int32]bool{}
	total := map[instance]int64{}
	for k, x := range p.known {
		seen[x.node] = true
		for _, bytes := range x.send {
			total[k] += bytes
		}
	}
	rows := map[instance]int64{} // of parts that are there
	n := 0
	err := s.run.Parts(func(b *schema.Parts) error {
		for i, rank := range b.Rank {
			k, made := p.made[rowOf{rank, b.Seq[i]}]
			if !made {
				continue
			}
			x, peer := p.known[k], b.PeerWorld[i]
			send, ok := share(x.send[rank], x.recv[peer], total[k])
			recv, also := share(x.recv[rank], x.send[peer], total[k])
			if n++; !ok || !also || send != b.SendBytes[i] || recv != b.RecvBytes[i] || n > mostParts {
				wrong[x.node] = true
			}
			rows[k] += b.SendBytes[i]
		}
		return nil
	})
	if err != nil {
		return err
	}
	for k, x := range p.known {
		if rows[k] != total[k] {
			wrong[x.node] = true
		}
	}
	for node := range seen {
		if !wrong[node] {
			s.sig.Values[node].Parts = PartsProduct
		}
	}
	return nil
}

// partsLaws finds at which sites ranks have parts.
func (m *Model) partsLaws() {
	products := map[string]bool{} // of events of runs
	for _, s := range m.t.runs {
		for id, path := range s.paths(m.t.levels) {
			n := s.nodes[id]
			if n.Loop || partsOf(s.Symbols[n.Symbol].call) != exchanged {
				continue
			}
			is := s.Values[id].Parts == PartsProduct
			if was, known := products[path]; known {
				is = is && was
			}
			products[path] = is
		}
	}
	paths := m.t.paths(m.t.levels)
	for _, x := range m.sites {
		if x.parts = partsOf(m.t.Symbols[x.node.Symbol].call); x.parts == exchanged && !products[paths[x.node.ID]] {
			x.parts = noParts
		}
	}
}

// totals are what the members of a communicator send and receive in an operation, by their ranks in it.
type totals struct {
	members    []int32
	send, recv []int64
	all        int64 // that is sent
}

type totalsOf struct {
	at   madeCall
	comm int32
}

// totals asks the laws of a site for all members of the communicator of a row; nil where one has no number.
func (w *rankWriter) totals(x *siteModel, k madeCall, e *schema.Event, index []int32) *totals {
	of := totalsOf{k, e.Comm}
	if t, known := w.partTotals[of]; known {
		return t
	}
	w.partTotals[of] = nil
	t := &totals{members: slices.Repeat([]int32{0}, len(w.place[e.Comm]))}
	for world, at := range w.place[e.Comm] {
		t.members[at] = world
	}
	if w.partRows += int64(len(t.members)) * int64(len(t.members)); w.partRows > mostParts {
		if !w.warned["parts"] {
			w.warned["parts"] = true
			w.result.Warnings = append(w.result.Warnings, fmt.Sprintf("collectives with a count per peer would have more than %d rows in parts; those of some are left out", mostParts))
		}
		return nil
	}
	for _, world := range t.members {
		p := point{ranks: w.ranks, rank: world, peerRank: -1, index: index, root: e.RootWorld == world}
		var both [2]int64
		for i, l := range []*valueLaw{x.sendBytes, x.recvBytes} {
			if s, known := l.at(&p); known {
				both[i] = s.value
			}
		}
		t.send, t.recv = append(t.send, both[0]), append(t.recv, both[1])
		t.all += both[0]
	}
	w.partTotals[of] = t
	return t
}

// partsOf are the rows of parts that a row has, but for rank, seq and epoch; none where the totals do not add up to its bytes.
func (w *rankWriter) partsOf(x *siteModel, k madeCall, e *schema.Event, index []int32) (parts []schema.Part) {
	root := e.RootWorld == w.rank
	if x.parts == noParts || x.parts == recvRoot && !root || x.parts == sendRoot && !root || e.Comm < 0 {
		return nil
	}
	t := w.totals(x, k, e, index)
	if t == nil {
		return nil
	}
	var send, recv int64
	for at, peer := range t.members {
		row := schema.NullPart
		row.PeerWorld = peer
		ok, also := true, true
		switch x.parts {
		case recvRoot, recvAll:
			row.RecvBytes = t.send[at]
		case sendRoot:
			row.SendBytes = t.recv[at]
		case exchanged:
			row.SendBytes, ok = share(max(e.SendBytes, 0), t.recv[at], t.all)
			row.RecvBytes, also = share(max(e.RecvBytes, 0), t.send[at], t.all)
		}
		if !ok || !also {
			return nil
		}
		if send, recv = send+row.SendBytes, recv+row.RecvBytes; row.SendBytes+row.RecvBytes > 0 {
			parts = append(parts, row)
		}
	}
	slices.SortFunc(parts, func(a, b schema.Part) int { return int(a.PeerWorld) - int(b.PeerWorld) })
	if (x.parts == sendRoot || x.parts == exchanged) && send != max(e.SendBytes, 0) || x.parts != sendRoot && recv != max(e.RecvBytes, 0) {
		return nil
	}
	return parts
}
