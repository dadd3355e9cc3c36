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

// collective makes the operation of a collective. What it exchanges is made of the bytes of the row, whatever buffers the call had: so rows of runs
// that no program made, which have no counts, are played too.
func (b *builder) collective(s *rankState, e *schema.Event) error {
	form, bytes := int64(formBlocking), e
	switch schema.Calls[e.Call].Recorder {
	case "icollective":
		form = formNonblocking
	case "collective_init":
		form = formInit
		if first := s.starts[e.Seq]; first != nil {
			row := *first
			bytes = &row
		}
	}
	op := schema.CallID(e.Call).Operation()
	which, ok := collectives[op]
	k, known := b.commOf[e.Comm]
	if !ok || !known {
		return fmt.Errorf("%s: this collective cannot be played", at(e))
	}
	x := &exchange{builder: b, s: s, e: bytes, comm: b.comms[k], op: op}
	if err := x.make(); err != nil {
		return err
	}
	for _, d := range []data{x.send, x.recv} {
		if err := b.fits(e, d); err != nil {
			return err
		}
	}
	if err := x.sound(); err != nil {
		return err
	}
	root := x.root()
	span := x.recvSpan
	args := []int64{which, form, int64(k), root, x.send.count, x.send.kind, x.recv.count, x.recv.kind, x.reduce}
	s.sends(x.sendSpan)
	if form == formBlocking {
		args = append(args, s.room(span), -1)
	} else {
		r := s.post(e, max(span, 1), 0, form == formInit)
		args = append(args, r.piece.at, r.slot)
	}
	s.emit(opcodes["Collective"], e, append(args, x.lists...)...)
	return nil
}

// sound says that what is exchanged can be.
func (x *exchange) sound() error {
	for _, span := range []int64{x.sendSpan, x.recvSpan} {
		if span < 0 || span > mostBytes || x.op == schema.CallAlltoallw && span > math.MaxInt32 {
			return fmt.Errorf("%s: %d bytes are more than it can send or receive", at(x.e), span)
		}
	}
	for _, n := range x.lists {
		if n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("%s: %d elements for one rank", at(x.e), n)
		}
	}
	return nil
}

// exchange is what a rank's call of a collective sends and receives.
type exchange struct {
	*builder
	s    *rankState
	e    *schema.Event
	comm *commInfo
	op   schema.CallID

	send, recv         data
	reduce             int64
	lists              []int64 // of v-, w- and neighbourhood collectives: how many, and for each what goes to and comes from it
	sendSpan, recvSpan int64
}

// root is the argument of a rooted collective.
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

func (x *exchange) make() error {
	e := x.e
	isRoot := e.RootWorld == e.Rank
	send, recv := max(e.SendBytes, 0), max(e.RecvBytes, 0)
	peers := int64(max(len(x.comm.peers(e.Rank)), 1))
	each := func(bytes int64, id int32) data { return x.elements(bytes/peers, id) }
	switch x.op {
	case schema.CallBarrier:
		return nil
	case schema.CallBcast:
		x.send = x.elements(max(send, recv), e.SendDatatype)
		x.recv = x.send
	case schema.CallReduce, schema.CallAllreduce, schema.CallScan, schema.CallExscan:
		x.send, x.reduce = x.reduction(x.elements(max(send, recv), e.SendDatatype), e.ReduceOp)
		x.recv = x.send
	case schema.CallReduceScatterBlock:
		x.recv, x.reduce = x.reduction(x.elements(recv, e.SendDatatype), e.ReduceOp)
		x.send = data{x.recv.count * peers, x.recv.kind}
	case schema.CallReduceScatter:
		return x.scattered()
	case schema.CallGather:
		x.send = x.elements(send, e.SendDatatype)
		if isRoot {
			x.recv = each(recv, e.RecvDatatype)
		}
	case schema.CallScatter:
		if isRoot {
			x.send = each(send, e.SendDatatype)
		}
		x.recv = x.elements(recv, e.RecvDatatype)
	case schema.CallAllgather:
		x.send, x.recv = x.elements(send, e.SendDatatype), each(recv, e.RecvDatatype)
	case schema.CallAlltoall:
		x.send, x.recv = each(send, e.SendDatatype), each(recv, e.RecvDatatype)
	case schema.CallGatherv, schema.CallScatterv, schema.CallAllgatherv:
		return x.varying(isRoot, send, recv)
	case schema.CallAlltoallv, schema.CallAlltoallw:
		return x.pairs()
	default:
		return x.neighbours()
	}
	x.sendSpan, x.recvSpan = x.span(x.send), x.span(x.recv)
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

// others is what the ranks of the operation say that they send and receive.
func (x *exchange) others() (*instance, error) {
	in := x.instances[instanceKey{x.e.Comm, x.e.Instance}]
	if in == nil { // a persistent one that was never started
		in = &instance{map[int32]int64{}, map[int32]int64{}}
	}
	return in, nil
}

// list makes the counts, all of one type, of what goes to or comes from peers.
func (x *exchange) list(bytes []int64, id int32) (counts []int64, kind int64) {
	kind = typeOfBytes
	if k, ok := x.typeOf[id]; ok && x.out.types[k].bytes > 0 {
		kind = k
	}
	size := x.out.types[kind].bytes
	if slices.ContainsFunc(bytes, func(n int64) bool { return n%size != 0 }) {
		kind, size = typeOfBytes, 1
	}
	for _, n := range bytes {
		counts = append(counts, n/size)
	}
	return counts, kind
}

func sum(list []int64) (n int64) {
	for _, x := range list {
		n += x
	}
	return n
}

// scattered is MPI_Reduce_scatter: the counts are what each rank of the group receives.
func (x *exchange) scattered() error {
	in, _ := x.others()
	group := x.comm.groups[max(x.comm.side(x.e.Rank), 0)]
	var bytes []int64
	for _, m := range group {
		bytes = append(bytes, in.recv[m])
	}
	counts, kind := x.list(bytes, x.e.SendDatatype)
	var d data
	if d, x.reduce = x.reduction(data{sum(counts), kind}, x.e.ReduceOp); d.kind != kind {
		counts, kind = x.list(bytes, schema.NullInt32)
	}
	x.send = data{sum(counts), kind}
	x.recv = data{0, kind}
	x.lists = append([]int64{int64(len(counts))}, counts...)
	x.sendSpan, x.recvSpan = x.span(x.send), x.span(x.send)
	return nil
}

// varying is MPI_Gatherv, MPI_Scatterv and MPI_Allgatherv: what comes from a rank is what it says that it sends, and the other way round.
func (x *exchange) varying(isRoot bool, send, recv int64) error {
	in, _ := x.others()
	e := x.e
	var bytes []int64
	for _, m := range x.comm.peers(e.Rank) {
		if x.op == schema.CallScatterv {
			bytes = append(bytes, in.recv[m])
		} else {
			bytes = append(bytes, in.send[m])
		}
	}
	if x.op != schema.CallAllgatherv && !isRoot {
		bytes = nil
	}
	if x.op == schema.CallScatterv {
		counts, kind := x.list(bytes, e.SendDatatype)
		x.send, x.recv = data{sum(counts), kind}, x.elements(recv, e.RecvDatatype)
		x.lists = append([]int64{int64(len(counts))}, counts...)
	} else {
		counts, kind := x.list(bytes, e.RecvDatatype)
		x.send, x.recv = x.elements(send, e.SendDatatype), data{sum(counts), kind}
		x.lists = append([]int64{int64(len(counts))}, counts...)
	}
	x.sendSpan, x.recvSpan = x.span(x.send), x.span(x.recv)
	return nil
}

// pairs is MPI_Alltoallv and MPI_Alltoallw, by the parts of the row.
func (x *exchange) pairs() error {
	e := x.e
	peers := x.comm.peers(e.Rank)
	send, recv := make([]int64, len(peers)), make([]int64, len(peers))
	for _, p := range x.parts[rowKey{e.Rank, e.Seq}] {
		i := slices.Index(peers, p.PeerWorld)
		if i < 0 {
			return fmt.Errorf("%s: it has a part for rank %d, which is no member of communicator %d", at(e), p.PeerWorld, e.Comm)
		}
		send[i] += p.SendBytes
		recv[i] += p.RecvBytes
	}
	if sum(send) != max(e.SendBytes, 0) || sum(recv) != max(e.RecvBytes, 0) {
		return fmt.Errorf("%s: the run does not say what goes to whom: its parts have %d and %d bytes, its row %d and %d", at(e), sum(send), sum(recv), e.SendBytes, e.RecvBytes)
	}
	var out, in []int64
	out, x.send.kind = x.list(send, e.SendDatatype)
	in, x.recv.kind = x.list(recv, e.RecvDatatype)
	x.send.count, x.recv.count = sum(out), sum(in)
	x.lists = append([]int64{int64(len(peers))}, append(out, in...)...)
	x.sendSpan, x.recvSpan = x.span(x.send), x.span(x.recv)
	return nil
}

// neighbours are the neighbourhood collectives: the player knows who is a neighbour, the parts say what goes to whom.
func (x *exchange) neighbours() error {
	e := x.e
	var who, send, recv []int64
	for _, p := range x.parts[rowKey{e.Rank, e.Seq}] {
		r := x.comm.rank(p.PeerWorld)
		if r < 0 {
			return fmt.Errorf("%s: it has a part for rank %d, which is no member of communicator %d", at(e), p.PeerWorld, e.Comm)
		}
		who, send, recv = append(who, r), append(send, p.SendBytes), append(recv, p.RecvBytes)
	}
	var out, in []int64
	out, x.send.kind = x.list(send, e.SendDatatype)
	in, x.recv.kind = x.list(recv, e.RecvDatatype)
	x.send.count, x.recv.count = sum(out), sum(in)
	x.sendSpan, x.recvSpan = x.span(x.send), x.span(x.recv)
	x.lists = []int64{int64(len(who))}
	x.lists = append(append(append(x.lists, who...), out...), in...)
	return nil
}
