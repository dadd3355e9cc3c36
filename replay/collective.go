package replay

import (
	"fmt"
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

// Roots in the schedule, of intercommunicators.
const (
	rootSelf  = -2 // MPI_ROOT
	rootAside = -1 // MPI_PROC_NULL
)

// collective makes the operation of a collective. Its arguments follow from the bytes of the row alone, not from the
// counts of the call, so runs that no program made, and which have no counts, can be played too.
func (s *scheduler) collective(r *rankState, e *schema.Event) error {
	call := schema.CallID(e.Call)
	form, bytes := int64(formBlocking), e
	switch {
	case call.Is(schema.FactNonblocking):
		form = formNonblocking
	case call.Is(schema.FactPersistent):
		form = formInit
		if first := s.found.ranks[e.Rank].starts[e.Seq]; first != nil {
			row := *first
			bytes = &row
		}
	}
	op := call.Operation()
	which, ok := collectives[op]
	k, known := s.comms.byID[e.Comm]
	if !ok || !known {
		return fmt.Errorf("%s: this collective cannot be played", nameRow(e))
	}
	x := &exchange{types: s.types, e: bytes, comm: s.comms.list[k], op: op,
		ranks: s.found.exchanges[instanceKey{bytes.Comm, bytes.Instance}],
		parts: s.found.parts[rowKey{bytes.Rank, bytes.Seq}]}
	if x.ranks == nil { // a persistent collective that was never started
		x.ranks = &exchanged{map[int32]int64{}, map[int32]int64{}}
	}
	if err := x.setData(); err != nil {
		return err
	}
	for _, d := range []data{x.send, x.recv} {
		if err := checkCount(e, d, s.types); err != nil {
			return err
		}
	}
	if err := x.check(); err != nil {
		return err
	}
	args := []int64{which, form, int64(k), x.root(), x.send.count, x.send.kind, x.recv.count, x.recv.kind, x.reduce}
	r.reserveSend(x.sendSpan)
	if form == formBlocking {
		args = append(args, r.reserveReceive(x.recvSpan), -1)
	} else {
		q := r.post(e, max(x.recvSpan, 1), 0, form == formInit)
		args = append(args, q.piece.offset, q.slot)
	}
	r.emit(opcodes["Collective"], e, append(args, x.lists...)...)
	return nil
}

// check checks that the amounts of data are possible.
func (x *exchange) check() error {
	for _, span := range []int64{x.sendSpan, x.recvSpan} {
		if span < 0 || span > mostBytes || x.op == schema.CallAlltoallw && span > math.MaxInt32 {
			return fmt.Errorf("%s: %d bytes are more than it can send or receive", nameRow(x.e), span)
		}
	}
	for _, n := range x.lists {
		if n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("%s: %d elements for one rank", nameRow(x.e), n)
		}
	}
	return nil
}

// exchange has the data that a rank's call of a collective sends and receives. The fields down to parts are given,
// setData computes the others.
type exchange struct {
	types *typeTable
	e     *schema.Event
	comm  *commInfo
	op    schema.CallID
	ranks *exchanged    // bytes of all ranks
	parts []schema.Part // of the row

	send, recv data
	reduce     int64 // number of the reduction operation
	// lists are the arguments of v-, w- and neighbourhood collectives: the number of peers, and for each the counts
	// that go to it and come from it.
	lists              []int64
	sendSpan, recvSpan int64 // memory, bytes
}

// root returns the argument of a rooted collective.
func (x *exchange) root() int64 {
	world := x.e.RootWorld
	switch {
	case world == schema.NullInt32:
		return rootAside
	case x.comm.inter() && world == x.e.Rank:
		return rootSelf
	case x.comm.inter() && x.comm.side(world) == x.comm.side(x.e.Rank):
		return rootAside
	}
	return x.comm.rank(world)
}

// setData sets the data that the call sends and receives.
func (x *exchange) setData() error {
	e := x.e
	isRoot := e.RootWorld == e.Rank
	send, recv := max(e.SendBytes, 0), max(e.RecvBytes, 0)
	peers := int64(max(len(x.comm.peers(e.Rank)), 1))
	each := func(bytes int64, id int32) data { return x.types.elements(bytes/peers, id) }
	switch x.op {
	case schema.CallBarrier:
		return nil
	case schema.CallBcast:
		x.send = x.types.elements(max(send, recv), e.SendDatatype)
		x.recv = x.send
	case schema.CallReduce, schema.CallAllreduce, schema.CallScan, schema.CallExscan:
		x.send, x.reduce = x.types.reduction(x.types.elements(max(send, recv), e.SendDatatype), e.ReduceOp)
		x.recv = x.send
	case schema.CallReduceScatterBlock:
		x.recv, x.reduce = x.types.reduction(x.types.elements(recv, e.SendDatatype), e.ReduceOp)
		x.send = data{x.recv.count * peers, x.recv.kind}
	case schema.CallReduceScatter:
		return x.setReduceScatter()
	case schema.CallGather:
		x.send = x.types.elements(send, e.SendDatatype)
		if isRoot {
			x.recv = each(recv, e.RecvDatatype)
		}
	case schema.CallScatter:
		if isRoot {
			x.send = each(send, e.SendDatatype)
		}
		x.recv = x.types.elements(recv, e.RecvDatatype)
	case schema.CallAllgather:
		x.send, x.recv = x.types.elements(send, e.SendDatatype), each(recv, e.RecvDatatype)
	case schema.CallAlltoall:
		x.send, x.recv = each(send, e.SendDatatype), each(recv, e.RecvDatatype)
	case schema.CallGatherv, schema.CallScatterv, schema.CallAllgatherv:
		return x.setVarying(isRoot, send, recv)
	case schema.CallAlltoallv, schema.CallAlltoallw:
		return x.setPairs()
	default:
		return x.setNeighbours()
	}
	x.sendSpan, x.recvSpan = x.types.span(x.send), x.types.span(x.recv)
	switch x.op {
	case schema.CallGather, schema.CallAllgather:
		x.recvSpan *= peers
	case schema.CallScatter:
		x.sendSpan *= peers
	case schema.CallAlltoall:
		x.sendSpan *= peers
		x.recvSpan *= peers
	}
	return nil
}

func sum(list []int64) (n int64) {
	for _, x := range list {
		n += x
	}
	return n
}

// setReduceScatter implements setData for MPI_Reduce_scatter: the counts are those that each rank of the group
// receives.
func (x *exchange) setReduceScatter() error {
	group := x.comm.groups[max(x.comm.side(x.e.Rank), 0)]
	var bytes []int64
	for _, m := range group {
		bytes = append(bytes, x.ranks.recv[m])
	}
	counts, kind := x.types.counts(bytes, x.e.SendDatatype)
	var d data
	if d, x.reduce = x.types.reduction(data{sum(counts), kind}, x.e.ReduceOp); d.kind != kind {
		counts, kind = x.types.counts(bytes, schema.NullInt32)
	}
	x.send = data{sum(counts), kind}
	x.recv = data{0, kind}
	x.lists = append([]int64{int64(len(counts))}, counts...)
	x.sendSpan, x.recvSpan = x.types.span(x.send), x.types.span(x.send)
	return nil
}

// setVarying implements setData for MPI_Gatherv, MPI_Scatterv and MPI_Allgatherv: the bytes that come from a rank are
// those that its own row sends, and vice versa.
func (x *exchange) setVarying(isRoot bool, send, recv int64) error {
	e := x.e
	var bytes []int64
	for _, m := range x.comm.peers(e.Rank) {
		if x.op == schema.CallScatterv {
			bytes = append(bytes, x.ranks.recv[m])
		} else {
			bytes = append(bytes, x.ranks.send[m])
		}
	}
	if x.op != schema.CallAllgatherv && !isRoot {
		bytes = nil
	}
	if x.op == schema.CallScatterv {
		counts, kind := x.types.counts(bytes, e.SendDatatype)
		x.send, x.recv = data{sum(counts), kind}, x.types.elements(recv, e.RecvDatatype)
		x.lists = append([]int64{int64(len(counts))}, counts...)
	} else {
		counts, kind := x.types.counts(bytes, e.RecvDatatype)
		x.send, x.recv = x.types.elements(send, e.SendDatatype), data{sum(counts), kind}
		x.lists = append([]int64{int64(len(counts))}, counts...)
	}
	x.sendSpan, x.recvSpan = x.types.span(x.send), x.types.span(x.recv)
	return nil
}

// setPairs implements setData for MPI_Alltoallv and MPI_Alltoallw, from the parts of the row.
func (x *exchange) setPairs() error {
	e := x.e
	peers := x.comm.peers(e.Rank)
	send, recv := make([]int64, len(peers)), make([]int64, len(peers))
	for _, p := range x.parts {
		i := slices.Index(peers, p.PeerWorld)
		if i < 0 {
			return fmt.Errorf("%s: it has a part for rank %d, which is no member of communicator %d", nameRow(e),
				p.PeerWorld, e.Comm)
		}
		send[i] += p.SendBytes
		recv[i] += p.RecvBytes
	}
	if sum(send) != max(e.SendBytes, 0) || sum(recv) != max(e.RecvBytes, 0) {
		return fmt.Errorf("%s: the run does not say what goes to whom: its parts have %d and %d bytes, its row %d "+
			"and %d", nameRow(e), sum(send), sum(recv), e.SendBytes, e.RecvBytes)
	}
	var out, in []int64
	out, x.send.kind = x.types.counts(send, e.SendDatatype)
	in, x.recv.kind = x.types.counts(recv, e.RecvDatatype)
	x.send.count, x.recv.count = sum(out), sum(in)
	x.lists = append([]int64{int64(len(peers))}, append(out, in...)...)
	x.sendSpan, x.recvSpan = x.types.span(x.send), x.types.span(x.recv)
	return nil
}

// setNeighbours implements setData for the neighbourhood collectives: the player knows a rank's neighbours, and the
// parts have the bytes for each.
func (x *exchange) setNeighbours() error {
	e := x.e
	var who, send, recv []int64
	for _, p := range x.parts {
		r := x.comm.rank(p.PeerWorld)
		if r < 0 {
			return fmt.Errorf("%s: it has a part for rank %d, which is no member of communicator %d", nameRow(e),
				p.PeerWorld, e.Comm)
		}
		who, send, recv = append(who, r), append(send, p.SendBytes), append(recv, p.RecvBytes)
	}
	var out, in []int64
	out, x.send.kind = x.types.counts(send, e.SendDatatype)
	in, x.recv.kind = x.types.counts(recv, e.RecvDatatype)
	x.send.count, x.recv.count = sum(out), sum(in)
	x.sendSpan, x.recvSpan = x.types.span(x.send), x.types.span(x.recv)
	x.lists = []int64{int64(len(who))}
	x.lists = append(append(append(x.lists, who...), out...), in...)
	return nil
}
