package otf2

import "github.com/commq/commq/schema"

// scoreP begins the name of the program that wrote an archive, where that was Score-P.
const scoreP = "Score-P"

// ownBytes returns the bytes in the arguments of a rank's call of a collective operation on n ranks, of which it is
// number me, from those that Score-P counts: what goes to or comes from each rank, itself among them. A broadcast of b
// bytes is n b sent by the root, an MPI_Allreduce n b sent and received. In place (MPI_IN_PLACE) a rank leaves
// itself out, which the trace does not tell. It follows Score-P's sources, versions 3 (SCOREP_Mpi_Coll.c) and 8
// (scorep_mpi_coll.inc.c).
func (x counted) ownBytes() (send, recv int64, how fit) {
	usual, inPlace := x.arguments(0), x.arguments(1)
	switch {
	case usual == nil && inPlace == nil:
		return x.sent, x.received, fitsNothing
	case usual == nil:
		return inPlace[0], inPlace[1], fitsOne
	case inPlace == nil || *inPlace == *usual:
		return usual[0], usual[1], fitsOne
	}
	return usual[0], usual[1], fitsBoth
}

// counted is what Score-P counts of a call on n ranks by number me, which may be the root.
type counted struct {
	call           schema.CallID
	n, me          int64
	root           bool
	sent, received int64
}

// fit tells how the bytes of arguments were found.
type fit int

const (
	fitsOne     fit = iota // only one number of bytes gives what was counted
	fitsBoth               // one in place gives it, too
	fitsNothing            // none does: the bytes are those that were counted
)

// arguments returns the bytes sent and received in the arguments for which Score-P counts this, leaving so many ranks
// out: one in place, else none. It is nil if there are none.
func (x counted) arguments(out int64) *[2]int64 {
	others := x.n - out
	switch x.call {
	case schema.CallBcast:
		if out == 0 && x.root {
			return split(x.sent, x.n, func(b int64) ([2]int64, bool) { return [2]int64{b, 0}, x.received == b })
		}
		return x.ofOthers(out, [2]int64{0, x.received}, x.sent)
	case schema.CallReduce:
		if x.root {
			return split(x.received, others, func(b int64) ([2]int64, bool) {
				return [2]int64{b, b}, x.sent == (1-out)*b
			})
		}
		return x.ofOthers(out, [2]int64{x.sent, 0}, x.received)
	case schema.CallGather:
		if x.root {
			return split(x.received, others, func(b int64) ([2]int64, bool) {
				return [2]int64{b, x.n * b}, x.sent == (1-out)*b
			})
		}
		return x.ofOthers(out, [2]int64{x.sent, 0}, x.received)
	case schema.CallScatter:
		if x.root {
			return split(x.sent, others, func(b int64) ([2]int64, bool) {
				return [2]int64{x.n * b, b}, x.received == (1-out)*b
			})
		}
		return x.ofOthers(out, [2]int64{0, x.received}, x.sent)
	case schema.CallScan:
		return split(x.sent+x.received, x.n+1-2*out, func(b int64) ([2]int64, bool) {
			return [2]int64{b, b}, x.sent == (x.n-x.me-out)*b && x.received == (x.me+1-out)*b
		})
	case schema.CallExscan: // counted as a scan in place, though it is none
		if out > 0 {
			return nil
		}
		return split(x.sent+x.received, x.n-1, func(b int64) ([2]int64, bool) {
			return [2]int64{b, b}, x.sent == (x.n-x.me-1)*b && x.received == x.me*b
		})
	}
	return x.argumentsOfAll(out, others)
}

// ofOthers returns the bytes of a rank that is not the root, which is never in place and has nothing on one side.
func (x counted) ofOthers(out int64, bytes [2]int64, nothing int64) *[2]int64 {
	if out > 0 || x.root || nothing != 0 {
		return nil
	}
	return &bytes
}

// argumentsOfAll returns the arguments of operations in which all ranks send and receive.
func (x counted) argumentsOfAll(out, others int64) *[2]int64 {
	even := x.sent == x.received
	switch x.call {
	case schema.CallAllgather:
		return split(x.sent, others, func(b int64) ([2]int64, bool) { return [2]int64{b, x.n * b}, even })
	case schema.CallAllgatherv:
		return split(x.sent, others, func(b int64) ([2]int64, bool) { return [2]int64{b, x.received + out*b}, true })
	case schema.CallAlltoall:
		return split(x.sent, others, func(b int64) ([2]int64, bool) { return [2]int64{x.n * b, x.n * b}, even })
	case schema.CallAllreduce:
		return split(x.sent, others, func(b int64) ([2]int64, bool) { return [2]int64{b, b}, even })
	case schema.CallReduceScatterBlock:
		return split(x.sent, others, func(b int64) ([2]int64, bool) { return [2]int64{x.n * b, b}, even })
	case schema.CallReduceScatter:
		return split(x.received, others, func(b int64) ([2]int64, bool) { return [2]int64{x.sent + out*b, b}, true })
	}
	if out > 0 {
		return nil
	}
	return &[2]int64{x.sent, x.received} // barriers; MPI_Gatherv and others have the sums of their counts
}

// split divides bytes into equal parts, and returns what of makes of one; nil if they are no such parts, or of says no.
// No parts are all of nothing: a rank alone in place, whose bytes nothing tells.
func split(bytes, parts int64, of func(part int64) ([2]int64, bool)) *[2]int64 {
	if parts == 0 || bytes%parts != 0 {
		return nil
	}
	if both, ok := of(bytes / parts); ok {
		return &both
	}
	return nil
}
