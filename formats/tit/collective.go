package tit

import (
	"math"

	"github.com/commq/commq/schema"
)

// sizes are the sizes in an action of a collective: bytes of the arguments, and by peer.
type sizes struct {
	send, recv int64
	to, from   []int64
	root       int32 // null for none
	reduces    int   // the field with the operations of a reduction, -1 for none
}

// collective adds the row of a collective operation.
func (r *rank) collective(f *fields, call schema.CallID, e int32, b *schema.Events, parts *schema.Parts) {
	s := r.sizes(f, call)
	flops := 0.0
	if s.reduces >= 0 {
		flops = f.number(s.reduces, "the number of operations", 0, math.MaxInt64/4)
	}
	if f.err != nil {
		return
	}
	row := r.newRow(e, call)
	row.Comm, row.Instance, row.RootWorld = 0, r.instance, s.root
	root := s.root == r.me
	args := schema.CollectiveArgs{Peers: int64(len(r.job.facts)), Group: int64(len(r.job.facts)), Root: root,
		Send: s.send, Recv: s.recv}
	row.SendBytes, row.RecvBytes = schema.CollectiveBytes(call, args)
	if r.first {
		if err := r.job.arrive(r, call, s.root); err != nil {
			f.fail("%w", err)
			return
		}
	} else {
		addParts(parts, &row, &s, root)
	}
	r.instance++
	r.add(b, &row)
	if flops > 0 { // SimGrid computes after it
		r.computes(f, flops/r.job.o.flopsPerSecond()*1e9)
	}
}

// sizes reads the fields of a collective.
func (r *rank) sizes(f *fields, call schema.CallID) sizes {
	p := len(r.job.facts)
	s := sizes{root: null32, reduces: -1}
	bytes := func(i, kind int) int64 { return f.count(i, "the number of elements") * datatypes[kind].bytes }
	switch call {
	case schema.CallBarrier:
	case schema.CallBcast:
		s.root, s.send = f.optionalRank(1, "the root", p), bytes(0, f.datatype(2, r.byDefault))
		s.recv = s.send
	case schema.CallReduce:
		s.reduces, s.root = 1, f.optionalRank(2, "the root", p)
		s.send = bytes(0, f.datatype(3, r.byDefault))
		s.recv = s.send
	case schema.CallAllreduce, schema.CallScan, schema.CallExscan:
		s.reduces, s.send = 1, bytes(0, f.datatype(2, r.byDefault))
		s.recv = s.send
	case schema.CallGather, schema.CallScatter:
		s.root = f.optionalRank(2, "the root", p)
		s.send, s.recv = bytes(0, f.datatype(3, r.byDefault)), bytes(1, f.datatype(4, r.byDefault))
	case schema.CallAllgather, schema.CallAlltoall:
		s.send, s.recv = bytes(0, f.datatype(2, r.byDefault)), bytes(1, f.datatype(3, r.byDefault))
	case schema.CallReduceScatter:
		s.reduces = p
		parts := scaled(f.counts(0, p, "the numbers of elements"), f.datatype(p+1, r.byDefault))
		s.send = f.sum(parts)
		if f.err == nil {
			s.recv = parts[r.me]
		}
	default:
		r.uneven(f, call, &s)
	}
	return s
}

// uneven reads the fields of a collective with a count for each rank.
func (r *rank) uneven(f *fields, call schema.CallID, s *sizes) {
	p := len(r.job.facts)
	const what = "the number of elements of each rank"
	one := func(i, kind int) int64 { return f.count(i, "the number of elements") * datatypes[kind].bytes }
	switch call {
	case schema.CallGatherv: // SEND RECV... ROOT TYPE TYPE
		s.root = f.optionalRank(1+p, "the root", p)
		s.send = one(0, f.datatype(2+p, r.byDefault))
		s.from = scaled(f.counts(1, p, what), f.datatype(3+p, r.byDefault))
	case schema.CallScatterv: // SEND... RECV ROOT TYPE TYPE
		s.root = f.optionalRank(1+p, "the root", p)
		s.recv = one(p, f.datatype(3+p, r.byDefault))
		s.to = scaled(f.counts(0, p, what), f.datatype(2+p, r.byDefault))
	case schema.CallAllgatherv: // SEND RECV... [TYPE TYPE] [DISPLACEMENT...], which is at least two numbers
		out, in := r.byDefault, r.byDefault
		if n := len(f.all) - 1 - p; n == 1 || n == 2 || n == 2+p {
			out, in = f.datatype(1+p, r.byDefault), f.datatype(2+p, r.byDefault)
		}
		s.send, s.from = one(0, out), scaled(f.counts(1, p, what), in)
	default: // alltoallv: BUFFER SEND... BUFFER RECV... TYPE TYPE
		s.to = scaled(f.counts(1, p, what), f.datatype(2+2*p, r.byDefault))
		s.from = scaled(f.counts(2+p, p, what), f.datatype(3+2*p, r.byDefault))
	}
	if s.to != nil {
		s.send = f.sum(s.to)
	}
	if s.from != nil {
		s.recv = f.sum(s.from)
	}
}

// scaled turns counts into bytes.
func scaled(counts []int64, kind int) []int64 {
	for i := range counts {
		counts[i] *= datatypes[kind].bytes
	}
	return counts
}

// mostBytes is more than a rank moves in a call.
const mostBytes = 1 << 62

// sum returns the bytes of all ranks together.
func (f *fields) sum(all []int64) (total int64) {
	for _, x := range all {
		if total += x; total > mostBytes {
			f.fail("more than %d bytes for all ranks together", int64(mostBytes))
			return 0
		}
	}
	return total
}

// addParts adds the bytes by peer of a row.
func addParts(b *schema.Parts, row *schema.Event, s *sizes, root bool) {
	if s.root != null32 && !root {
		return // only the root's counts are significant
	}
	for peer := range max(len(s.to), len(s.from)) {
		p := schema.NullPart
		p.Rank, p.Seq, p.Epoch, p.PeerWorld = row.Rank, row.Seq, row.Epoch, int32(peer)
		p.SendBytes, p.RecvBytes = 0, 0
		if s.to != nil {
			p.SendBytes = s.to[peer]
		}
		if s.from != nil {
			p.RecvBytes = s.from[peer]
		}
		if p.SendBytes != 0 || p.RecvBytes != 0 {
			b.Append(&p)
		}
	}
}
