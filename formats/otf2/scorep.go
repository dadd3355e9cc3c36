package otf2

import "github.com/commq/commq/schema"

// scoreP begins the name of the program that wrote an archive, where that was Score-P.
const scoreP = "Score-P"

// ownBytes returns the bytes in the arguments of a rank's call of a collective operation on n ranks, as rank me, from
// those that Score-P counts: what goes to or comes from each rank, itself included. A broadcast of b bytes counts n b
// sent by the root, an MPI_Allreduce n b sent and received. In place (MPI_IN_PLACE), which the trace does not show, a
// rank leaves itself out. This follows Score-P's sources, versions 3 (SCOREP_Mpi_Coll.c) and 8 (scorep_mpi_coll.inc.c).
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

// counted has the bytes that Score-P counts for a call on n ranks by rank me, which may be the root.
type counted struct {
	call           schema.CallID
	n, me          int64
	root           bool
	sent, received int64
}

// fit is the way in which the bytes of arguments were found.
type fit int

const (
	fitsOne     fit = iota // only one number of bytes gives the counted bytes
	fitsBoth               // one in place gives it, too
	fitsNothing            // none does: the bytes are those that were counted
)

// arguments returns the send and receive bytes that Score-P would have counted this way; nil if there are none. out is
// 1 for MPI_IN_PLACE, otherwise 0.
func (x counted) arguments(out int64) *[2]int64 {
	switch x.call { // those with a count for each rank
	case schema.CallAllgatherv:
		if own, ok := share(x.sent, x.n-out); ok {
			return &[2]int64{own, x.received + out*own}
		}
		return nil
	case schema.CallReduceScatter:
		if own, ok := share(x.received, x.n-out); ok {
			return &[2]int64{x.sent + out*own, own}
		}
		return nil
	}
	sends, receives, ok := x.times(out)
	if !ok {
		if out > 0 {
			return nil
		}
		return &[2]int64{x.sent, x.received} // barriers; MPI_Gatherv and others have the sums of their counts
	}
	b, ok := share(x.sent+x.received, sends+receives)
	if !ok || x.sent != sends*b || x.received != receives*b {
		return nil
	}
	send, recv := schema.CollectiveBytes(x.call, schema.CollectiveArgs{Peers: x.n, Group: x.n, Root: x.root, Send: b,
		Recv: b})
	return &[2]int64{send, recv}
}

// times returns how often Score-P counts the bytes of the argument as sent and as received; out is as in arguments. ok
// is false for calls that it counts in another way.
func (x counted) times(out int64) (sends, receives int64, ok bool) {
	rootOnly := out == 0 || x.root // only the root can be in place
	switch x.call {
	case schema.CallBcast:
		if x.root {
			return x.n, 1, out == 0
		}
		return 0, 1, out == 0
	case schema.CallReduce, schema.CallGather:
		if x.root {
			return 1 - out, x.n - out, true
		}
		return 1, 0, rootOnly
	case schema.CallScatter:
		if x.root {
			return x.n - out, 1 - out, true
		}
		return 0, 1, rootOnly
	case schema.CallAllgather, schema.CallAlltoall, schema.CallAllreduce, schema.CallReduceScatterBlock:
		return x.n - out, x.n - out, true
	case schema.CallScan:
		return x.n - x.me - out, x.me + 1 - out, true
	case schema.CallExscan: // as a scan in place, though it is none
		return x.n - x.me - 1, x.me, out == 0
	}
	return 0, 0, false
}

// share divides bytes by parts; ok is false if it leaves a remainder, or if parts is 0: a rank alone in place has no
// parts.
func share(bytes, parts int64) (part int64, ok bool) {
	if parts == 0 || bytes%parts != 0 {
		return 0, false
	}
	return bytes / parts, true
}
