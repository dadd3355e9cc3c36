package otf2

import "github.com/commq/commq/schema"

// scoreP begins the name of the program that wrote an archive, where that was Score-P.
const scoreP = "Score-P"

// ownBytes returns the bytes in the arguments of a rank's call of a collective operation on n ranks, of which it is
// number me, from those that Score-P counts: what goes to or comes from each rank, itself among them. A broadcast of b
// bytes is n b sent by the root, an MPI_Allreduce n b sent and received. In place (MPI_IN_PLACE) a rank leaves
// itself out, which the trace does not tell: sure is false if the numbers fit both, and are taken as not in place.
// It follows Score-P's sources, versions 3 (SCOREP_Mpi_Coll.c) and 8 (scorep_mpi_coll.inc.c).
func ownBytes(call schema.CallID, n, me int64, root bool, sent, received int64) (send, recv int64, sure bool) {
	switch call {
	case schema.CallBcast:
		if root {
			return sent / n, 0, true
		}
		return 0, received, true
	case schema.CallReduce:
		if root && sent == 0 && n > 1 { // in place
			sent = received / (n - 1)
		}
		if root {
			received = sent
		}
		return sent, received, true
	case schema.CallGather, schema.CallScatter:
		return ofRoot(call, n, root, sent, received)
	case schema.CallAllgather:
		b, sure := share(sent, n)
		return b, n * b, sure
	case schema.CallAllgatherv:
		b, sure := share(sent, n)
		if n*b != sent {
			received += b
		}
		return b, received, sure
	case schema.CallAlltoall:
		b, sure := share(sent, n)
		return n * b, n * b, sure
	case schema.CallAllreduce:
		b, sure := share(sent, n)
		return b, b, sure
	case schema.CallReduceScatterBlock:
		b, sure := share(received, n)
		return n * b, b, sure
	case schema.CallReduceScatter:
		b, sure := share(received, n)
		if n*b != received {
			sent += b
		}
		return sent, b, sure
	case schema.CallExscan: // as in place
		b := (sent + received) / max(n-1, 1)
		return b, b, true
	case schema.CallScan:
		b, sure := ofScan(n, me, sent, received)
		return b, b, sure
	}
	return sent, received, true // barriers; MPI_Gatherv and others have the sums of their counts
}

// ofRoot returns the bytes of MPI_Gather and MPI_Scatter, of which the root's own part is missing in place.
func ofRoot(call schema.CallID, n int64, root bool, sent, received int64) (send, recv int64, sure bool) {
	one, all := sent, received
	if call == schema.CallScatter {
		one, all = received, sent
	}
	if root && one == 0 && n > 1 {
		one = all / (n - 1)
		all = n * one
	}
	if call == schema.CallScatter {
		return all, one, true
	}
	return one, all, true
}

// ofScan returns the bytes of an MPI_Scan, which goes to the ranks from this one on and comes from those up to it.
func ofScan(n, me, sent, received int64) (b int64, sure bool) {
	usual := sent*(me+1) == received*(n-me) && sent%(n-me) == 0
	inPlace := n > 1 && sent*me == received*(n-me-1) && (sent+received)%(n-1) == 0
	if inPlace && !usual {
		return (sent + received) / (n - 1), true
	}
	return (sent + received) / (n + 1), sent+received == 0 || !inPlace
}

// share returns one of n equal parts that add up to so many bytes, or one of n-1.
func share(bytes, n int64) (part int64, sure bool) {
	inPlace := n > 1 && bytes%(n-1) == 0
	if bytes%n == 0 || !inPlace {
		return bytes / n, bytes == 0 || bytes%n == 0 && !inPlace
	}
	return bytes / (n - 1), true
}
