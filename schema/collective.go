package schema

import (
	"math"
	"strings"
)

// LabelSynchronism1 is the label of a MPI_Reduce that was read from a trace of Dimemas with synchronism 1: there it is one operation with
// a fan-in and a fan-out, while any other MPI_Reduce is a message from each rank to the root (synchronism 3).
const LabelSynchronism1 = "dimemas sync 1"

// operations is indexed by CallID; see Operation. It is made once and only read.
var operations = func() []CallID {
	blocking := map[string]CallID{}
	for _, c := range Calls {
		if c.Recorder == "collective" && !strings.HasSuffix(c.Name, "_c") {
			blocking[operationName(c.Name)] = c.ID
		}
	}
	t := make([]CallID, len(Calls))
	for id, c := range Calls {
		switch c.Recorder {
		case "collective", "collective_init":
			t[id] = blocking[operationName(c.Name)]
		case "icollective":
			t[id] = blocking[strings.TrimPrefix(operationName(c.Name), "i")]
		}
	}
	return t
}()

// operationName is bcast for MPI_Bcast, MPI_Bcast_c, MPI_Bcast_init_c and MPIX_Bcast_init, and ibcast for MPI_Ibcast.
func operationName(call string) string {
	_, name, _ := strings.Cut(strings.ToLower(call), "_")
	return strings.TrimSuffix(strings.TrimSuffix(name, "_c"), "_init")
}

// Operation is the blocking collective that does what c does: CallBcast for MPI_Bcast, MPI_Ibcast, MPI_Bcast_c and
// MPI_Bcast_init, which makes a persistent one. It is 0 when c is no collective operation.
func (c CallID) Operation() CallID {
	if int(c) >= len(operations) || c < 0 {
		return 0
	}
	return operations[c]
}

// smallForms is indexed by CallID: the form without large counts of a call that has them. It is made once and only read.
var smallForms = func() []CallID {
	byName := map[string]CallID{}
	for _, c := range Calls {
		byName[c.Name] = c.ID
	}
	t := make([]CallID, len(Calls))
	for id, c := range Calls {
		t[id] = c.ID
		if small, ok := byName[strings.TrimSuffix(c.Name, "_c")]; ok {
			t[id] = small
		}
	}
	return t
}()

// withoutLarge is the call that does the same with int counts: ranks may mix the two in one operation.
func withoutLarge(c CallID) CallID {
	if int(c) >= len(smallForms) || c < 0 {
		return c
	}
	return smallForms[c]
}

// IsNeighborhood says that c is a neighbourhood collective in any of its forms: ranks exchange data with their neighbours
// in a topology only, and all of it is in parts.
func (c CallID) IsNeighborhood() bool {
	switch c.Operation() {
	case CallNeighborAllgather, CallNeighborAllgatherv, CallNeighborAlltoall, CallNeighborAlltoallv, CallNeighborAlltoallw:
		return true
	}
	return false
}

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
	// Send and Recv are the bytes of the send and of the receive argument; a call with one buffer has Send. For a
	// neighbourhood collective they are the sums over those it sends to and those it receives from.
	Send, Recv int64
	// OwnSend and OwnRecv are what a v-variant's arguments say about the part that the caller exchanges with itself;
	// 0 where there is none.
	OwnSend, OwnRecv int64
}

// CollectiveBytes is what a rank sends and receives in a collective call: with n the bytes of the call's own argument
// and P the number of peers, Barrier 0 and 0; Bcast n from the root to the others; Reduce n from all, n to the root;
// Allreduce, Scan and Exscan n and n; Gather n from all, P*n to the root; Scatter P*n from the root, n to all;
// Allgather n and P*n; Alltoall P*n and P*n; v- and w-variants and neighbourhood collectives the sums; Reduce_scatter the
// whole and the own part. All forms of an operation are alike. What MPI_IN_PLACE hides, a null argument, is derived from
// the other one. The two are NullInt64 when c is no collective operation and when the arguments that they are derived from
// are not known, or 64 bits do not hold them.
func CollectiveBytes(c CallID, a CollectiveArgs) (send, recv int64) {
	if a.Aside {
		return 0, 0
	}
	switch c = c.Operation(); c {
	case CallBarrier:
		return 0, 0
	case CallBcast:
		return byRoot(a.Root, first(a.Send, a.Recv), 0, 0, first(a.Send, a.Recv))
	case CallReduce:
		return a.reduce()
	case CallAllreduce, CallScan, CallExscan:
		n := first(a.Send, a.Recv)
		return n, n
	case CallReduceScatter:
		return a.Send, a.Recv
	case CallReduceScatterBlock:
		return times(a.Group, first(a.Recv, a.Send)), first(a.Recv, a.Send)
	}
	return a.exchange(c)
}

// exchange is CollectiveBytes of the collectives that move data without reducing them.
func (a CollectiveArgs) exchange(c CallID) (send, recv int64) {
	switch c {
	case CallGather:
		return a.fanIn(a.Recv, times(a.Peers, a.Recv))
	case CallGatherv:
		return a.fanIn(a.OwnRecv, a.Recv)
	case CallScatter:
		return a.fanOut(times(a.Peers, a.Send), a.Send)
	case CallScatterv:
		return a.fanOut(a.Send, a.OwnSend)
	case CallAllgather:
		return first(a.Send, a.Recv), times(a.Peers, a.Recv)
	case CallAllgatherv:
		return first(a.Send, a.OwnRecv), a.Recv
	case CallAlltoall:
		return times(a.Peers, first(a.Send, a.Recv)), times(a.Peers, a.Recv)
	case CallAlltoallv, CallAlltoallw:
		return first(a.Send, a.Recv), a.Recv
	case CallNeighborAllgather, CallNeighborAllgatherv, CallNeighborAlltoall, CallNeighborAlltoallv, CallNeighborAlltoallw:
		return a.Send, a.Recv
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
	if b == NullInt64 || n > 0 && (b > math.MaxInt64/n || b < math.MinInt64/n) {
		return NullInt64
	}
	return n * b
}
