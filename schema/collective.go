package schema

import (
	"math"
	"strings"
)

// LabelSynchronism1 is the label of an MPI_Reduce that was imported from a Dimemas trace with synchronism 1: one
// operation with a fan-in and a fan-out. Any other MPI_Reduce is a message from each rank to the root (synchronism 3).
const LabelSynchronism1 = "dimemas sync 1"

// operations is indexed by CallID; see Operation.
var operations = func() []CallID {
	blocking := map[string]CallID{}
	for _, c := range Calls {
		if c.Facts&(FactCollective|FactBlocking|FactLargeCount) == FactCollective|FactBlocking {
			blocking[operationName(c.Name)] = c.ID
		}
	}
	t := make([]CallID, len(Calls))
	for id, c := range Calls {
		if c.Facts&FactCollective != 0 {
			name := operationName(c.Name)
			if c.Facts&FactNonblocking != 0 {
				name = strings.TrimPrefix(name, "i")
			}
			t[id] = blocking[name]
		}
	}
	return t
}()

// operationName returns bcast for MPI_Bcast, MPI_Bcast_c, MPI_Bcast_init_c and MPIX_Bcast_init, and ibcast for
// MPI_Ibcast.
func operationName(call string) string {
	_, name, _ := strings.Cut(strings.ToLower(call), "_")
	return strings.TrimSuffix(strings.TrimSuffix(name, "_c"), "_init")
}

// Operation returns the blocking form of a collective operation: CallBcast for MPI_Bcast, MPI_Ibcast, MPI_Bcast_c and
// MPI_Bcast_init. It is 0 when c is not a collective operation.
func (c CallID) Operation() CallID {
	if int(c) >= len(operations) || c < 0 {
		return 0
	}
	return operations[c]
}

// MatchesCollective reports whether ranks that call c and d do the same operation: the same call, or forms of one
// collective.
func (c CallID) MatchesCollective(d CallID) bool {
	return c == d || c.Operation() != 0 && c.Operation() == d.Operation()
}

// smallForms is indexed by CallID; see WithoutLargeCount.
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

// WithoutLargeCount returns the form of the call with int counts: MPI_Send for MPI_Send_c. It is c itself for all
// other calls and for ids that are no calls. Ranks may mix the two forms in one operation.
func (c CallID) WithoutLargeCount() CallID {
	if int(c) >= len(smallForms) || c < 0 {
		return c
	}
	return smallForms[c]
}

// IsNeighborhood reports whether c is a neighbourhood collective in any of its forms: ranks exchange data only with
// their neighbours in a topology, and the table parts has all of it.
func (c CallID) IsNeighborhood() bool { return c.Is(FactNeighborhood) }

// Refused reports whether a collective call with this error_class took no part in its operation: it returned an error
// other than MPI_ERR_TRUNCATE, which is 14 in MPICH and 15 in Open MPI and the ABI of MPI 5.
func Refused(errorClass int32) bool {
	return errorClass != NullInt32 && errorClass != 14 && errorClass != 15
}

// CollectiveArgs describes the arguments of a rank's collective call, from which CollectiveBytes derives what the
// rank sends and receives. Bytes are count x size of the call's own argument, for v- and w-variants and
// Reduce_scatter the sum over peers. They are NullInt64 when the argument is not significant on this rank or its
// buffer is MPI_IN_PLACE, unless the caller knows them from elsewhere.
type CollectiveArgs struct {
	// Peers is the number of ranks the call exchanges data with: the communicator's size, for an intercommunicator
	// that of its remote group.
	Peers int64
	// Group is the number of ranks in the caller's own group: the communicator's size.
	Group int64
	// Root tells that the caller is the root of a rooted collective.
	Root bool
	// Aside tells that the caller is in the root's group of an intercommunicator but not the root, and so takes no
	// part.
	Aside bool
	// Inter tells that the communicator is an intercommunicator. A root then exchanges nothing with itself.
	Inter bool
	// Send and Recv are the bytes of the send and the receive argument; a call with one buffer has Send. For a
	// neighbourhood collective they are sums over the neighbours.
	Send, Recv int64
	// OwnSend and OwnRecv are the bytes that a v-variant's arguments give for the caller itself as a peer; 0 when there
	// are none.
	OwnSend, OwnRecv int64
}

// CollectiveBytes returns the bytes that a rank sends and receives in a collective call. With n the bytes of the call's
// own argument and P the number of peers:
//
//	Barrier                            0 and 0
//	Bcast                              n from the root, n to the others
//	Reduce                             n from all, n to the root
//	Allreduce, Scan, Exscan            n and n
//	Gather                             n from all, P*n to the root
//	Scatter                            P*n from the root, n to all
//	Allgather                          n and P*n
//	Alltoall                           P*n and P*n
//	v- and w-variants, neighbourhood   the sums
//	Reduce_scatter                     all parts, and the own part
//
// All forms of an operation give the same. An argument hidden by MPI_IN_PLACE (null) is derived from the other one. A
// result is NullInt64 when c is not a collective operation, when the arguments it is derived from are not known, and
// when it exceeds 64 bits.
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

// exchange does the work of CollectiveBytes for collectives that move data without reducing it.
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
	case CallNeighborAllgather, CallNeighborAllgatherv, CallNeighborAlltoall, CallNeighborAlltoallv,
		CallNeighborAlltoallw:
		return a.Send, a.Recv
	}
	return NullInt64, NullInt64
}

// reduce: every rank sends n and the root receives n; the root of an intercommunicator only receives.
func (a CollectiveArgs) reduce() (send, recv int64) {
	n := first(a.Send, a.Recv)
	if a.Root && a.Inter {
		return 0, n
	}
	return byRoot(a.Root, n, n, n, 0)
}

// fanIn: every rank sends and the root receives all; own is the root's part when its send buffer is MPI_IN_PLACE.
func (a CollectiveArgs) fanIn(own, all int64) (send, recv int64) {
	if a.Root && a.Inter {
		return 0, all
	}
	return byRoot(a.Root, first(a.Send, own), all, a.Send, 0)
}

// fanOut: the root sends all and every rank receives; own is the root's part when its receive buffer is MPI_IN_PLACE.
func (a CollectiveArgs) fanOut(all, own int64) (send, recv int64) {
	if a.Root && a.Inter {
		return all, 0
	}
	return byRoot(a.Root, all, first(a.Recv, own), 0, a.Recv)
}

// byRoot chooses the bytes of the root or of another rank.
func byRoot(root bool, rootSend, rootRecv, send, recv int64) (int64, int64) {
	if root {
		return rootSend, rootRecv
	}
	return send, recv
}

// first returns the first of two values that is not null.
func first(a, b int64) int64 {
	if a != NullInt64 {
		return a
	}
	return b
}

// times returns the bytes of n parts of b bytes each; null when b is null or the product exceeds 64 bits.
func times(n, b int64) int64 {
	if b == NullInt64 || n > 0 && (b > math.MaxInt64/n || b < math.MinInt64/n) {
		return NullInt64
	}
	return n * b
}
