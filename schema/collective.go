package schema

// CollectiveArgs is what a rank's call of a collective says about bytes, from which CollectiveBytes derives what the
// rank sends and receives. Bytes are count x size of the call's own argument, for v- and w-variants and
// Reduce_scatter the sum over peers; NullInt64 where the argument is not significant on this rank or its buffer is
// MPI_IN_PLACE (a caller that knows what is meant may give it all the same).
type CollectiveArgs struct {
	// Peers is the number of ranks the call exchanges data with: the communicator's size, for an intercommunicator
	// that of its remote group.
	Peers int64
	// Group is the number of ranks in the caller's own group: the communicator's size.
	Group int64
	// Root says that the caller is the root of a rooted collective.
	Root bool
	// Aside says that the caller is in the root's group of an intercommunicator without being the root: it takes no part.
	Aside bool
	// Inter says that the communicator is an intercommunicator: a root then exchanges nothing with itself.
	Inter bool
	// Send and Recv are the bytes of the send and of the receive argument; a call with one buffer has Send.
	Send, Recv int64
	// OwnSend and OwnRecv are what a v-variant's arguments say about the part that the caller exchanges with itself;
	// 0 where there is none.
	OwnSend, OwnRecv int64
}

// CollectiveBytes is what a rank sends and receives in a collective call: with n the bytes of the call's own argument
// and P the number of peers, Barrier 0 and 0; Bcast n from the root to the others; Reduce n from all, n to the root;
// Allreduce, Scan and Exscan n and n; Gather n from all, P*n to the root; Scatter P*n from the root, n to all;
// Allgather n and P*n; Alltoall P*n and P*n; v- and w-variants the sums; Reduce_scatter the whole and the own part. What
// MPI_IN_PLACE hides, a null argument, is derived from the other one. The two are NullInt64 when c is no collective operation and when
// the arguments that they are derived from are not known.
func CollectiveBytes(c CallID, a CollectiveArgs) (send, recv int64) {
	if a.Aside {
		return 0, 0
	}
	switch c {
	case CallBarrier, CallIbarrier:
		return 0, 0
	case CallBcast, CallIbcast:
		return byRoot(a.Root, first(a.Send, a.Recv), 0, 0, first(a.Send, a.Recv))
	case CallReduce, CallIreduce:
		return a.reduce()
	case CallAllreduce, CallIallreduce, CallScan, CallIscan, CallExscan, CallIexscan:
		n := first(a.Send, a.Recv)
		return n, n
	case CallReduceScatter, CallIreduceScatter:
		return a.Send, a.Recv
	case CallReduceScatterBlock, CallIreduceScatterBlock:
		return times(a.Group, first(a.Recv, a.Send)), first(a.Recv, a.Send)
	}
	return a.exchange(c)
}

// exchange is CollectiveBytes of the collectives that move data without reducing them.
func (a CollectiveArgs) exchange(c CallID) (send, recv int64) {
	switch c {
	case CallGather, CallIgather:
		return a.fanIn(a.Recv, times(a.Peers, a.Recv))
	case CallGatherv, CallIgatherv:
		return a.fanIn(a.OwnRecv, a.Recv)
	case CallScatter, CallIscatter:
		return a.fanOut(times(a.Peers, a.Send), a.Send)
	case CallScatterv, CallIscatterv:
		return a.fanOut(a.Send, a.OwnSend)
	case CallAllgather, CallIallgather:
		return first(a.Send, a.Recv), times(a.Peers, a.Recv)
	case CallAllgatherv, CallIallgatherv:
		return first(a.Send, a.OwnRecv), a.Recv
	case CallAlltoall, CallIalltoall:
		return times(a.Peers, first(a.Send, a.Recv)), times(a.Peers, a.Recv)
	case CallAlltoallv, CallIalltoallv, CallAlltoallw, CallIalltoallw:
		return first(a.Send, a.Recv), a.Recv
	}
	return NullInt64, NullInt64
}

// reduce: everyone sends n and the root receives n; the root of an intercommunicator only receives.
func (a CollectiveArgs) reduce() (send, recv int64) {
	n := first(a.Send, a.Recv)
	if a.Root && a.Inter {
		return 0, n
	}
	return byRoot(a.Root, n, n, n, 0)
}

// fanIn: everyone sends, the root receives all of it; own is the root's part when its send buffer is in place.
func (a CollectiveArgs) fanIn(own, all int64) (send, recv int64) {
	if a.Root && a.Inter {
		return 0, all
	}
	return byRoot(a.Root, first(a.Send, own), all, a.Send, 0)
}

// fanOut: the root sends all, everyone receives; own is the root's part when its receive buffer is in place.
func (a CollectiveArgs) fanOut(all, own int64) (send, recv int64) {
	if a.Root && a.Inter {
		return all, 0
	}
	return byRoot(a.Root, all, first(a.Recv, own), 0, a.Recv)
}

// byRoot chooses what the root, or another rank, sends and receives.
func byRoot(root bool, rootSend, rootRecv, send, recv int64) (int64, int64) {
	if root {
		return rootSend, rootRecv
	}
	return send, recv
}

// first is the first of two that is not null.
func first(a, b int64) int64 {
	if a != NullInt64 {
		return a
	}
	return b
}

// times is n parts of b bytes each.
func times(n, b int64) int64 {
	if b == NullInt64 {
		return NullInt64
	}
	return n * b
}
