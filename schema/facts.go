package schema

import (
	"math/bits"
	"strings"
)

// Facts is a set of facts about what an MPI function does by the standard: a bit set of the Fact constants. The column
// facts of calls.csv assigns them, under the names in FactNames. Code that depends on what a call does asks for a fact
// (CallID.Is) and never looks at the call's name. A call that commq does not record has no facts but FactLargeCount.
type Facts uint64

// What a call works on. A call has at most one of these.
const (
	// FactPointToPoint: the call sends, receives or probes messages, makes a persistent or partitioned request that
	// does, or handles partitions of one. Calls that start or complete requests of any kind do not have it.
	FactPointToPoint Facts = 1 << iota
	// FactCollective: a collective operation, from MPI_Barrier to MPI_Neighbor_alltoallw, in any of its forms.
	// Constructors of communicators, windows and files are none.
	FactCollective
	// FactOneSided: the call makes, frees or synchronises a window, or moves data to or from one.
	FactOneSided
	// FactFile: the call opens, closes, reads, writes or changes a file of MPI-IO.
	FactFile

	// How a call relates to the completion of its operation.

	// FactBlocking: the call returns when its operation is complete at this process. MPI_Wait* and the blocking
	// probes have it, and the constructors of communicators, windows and files. MPI_Win_lock, MPI_Win_start and
	// MPI_Win_post do not: MPI leaves open whether they block.
	FactBlocking
	// FactNonblocking: the call begins an operation that another call completes: MPI_I*, the begins of split
	// collectives of MPI-IO, and all one-sided transfers.
	FactNonblocking
	// FactPersistent: the call makes a request (MPI_*_init) that MPI_Start and MPI_Startall start.
	FactPersistent
	// FactPartitioned: partitioned communication: MPI_Psend_init and MPI_Precv_init, which are persistent too, and
	// MPI_Pready* and MPI_Parrived, which handle partitions and have neither FactSends nor FactReceives.
	FactPartitioned
	// FactMakesRequest: the call returns a new request handle.
	FactMakesRequest
	// FactStarts: the call starts persistent requests: MPI_Start and MPI_Startall.
	FactStarts
	// FactCompletes: the call completes requests: MPI_Wait*, and MPI_Test* when it succeeds.
	FactCompletes
	// FactTests: the call returns at once and a flag reports whether it found what it looked for: MPI_Test*,
	// MPI_Iprobe, MPI_Improbe, MPI_Request_get_status*, MPI_Win_test and MPI_Parrived.
	FactTests
	// FactAny: MPI leaves open which of several requests the call handles: MPI_Waitany, MPI_Testsome and the like.
	FactAny
	// FactFrees: the call gives a request, communicator, datatype, window or file back.
	FactFrees

	// The direction of data and the mode of messages.

	// FactSends: data leaves a buffer of the caller: messages, data written to a window or to a file. Collectives
	// do not have it, as their direction depends on the rank; see CollectiveBytes.
	FactSends
	// FactReceives: data arrives in a buffer of the caller: messages, data read from a window or from a file.
	FactReceives
	// FactSynchronous: the send completes only after its receive has started: MPI_Ssend and its forms.
	FactSynchronous
	// FactBuffered: the send completes whether or not there is a receive: MPI_Bsend and its forms.
	FactBuffered
	// FactReady: the send requires that its receive is already posted: MPI_Rsend and its forms.
	FactReady
	// FactProbes: the call looks for a message without receiving it: MPI_Probe, MPI_Iprobe, MPI_Mprobe, MPI_Improbe.
	FactProbes
	// FactMatched: the call makes or takes a message handle: MPI_Mprobe, MPI_Improbe, MPI_Mrecv and MPI_Imrecv.
	FactMatched

	// Properties of collective operations.

	// FactNeighborhood: ranks exchange data only with their neighbours in a topology.
	FactNeighborhood
	// FactRooted: the operation has a root; then FactToRoot or FactFromRoot tells where data flows.
	FactRooted
	// FactToRoot: data flows to the root: MPI_Reduce, MPI_Gather, MPI_Gatherv.
	FactToRoot
	// FactFromRoot: data flows from the root: MPI_Bcast, MPI_Scatter, MPI_Scatterv.
	FactFromRoot
	// FactReduces: the operation combines data with a reduction operation.
	FactReduces
	// FactScan: a rank's result depends on the ranks before it: MPI_Scan and MPI_Exscan.
	FactScan
	// FactVariableCounts: the arguments have a count for each peer: v- and w-variants and MPI_Reduce_scatter.
	FactVariableCounts

	// One-sided communication and MPI-IO.

	// FactTransfers: the call moves data to or from a window or a file, or begins to.
	FactTransfers
	// FactCompletesTransfers: the call completes transfers of its window at the origin: MPI_Win_fence,
	// MPI_Win_flush*, MPI_Win_unlock*, MPI_Win_complete and MPI_Win_free.
	FactCompletesTransfers
	// FactFence: MPI_Win_fence.
	FactFence
	// FactFlush: MPI_Win_flush, MPI_Win_flush_local and their _all forms.
	FactFlush
	// FactLock: MPI_Win_lock and MPI_Win_lock_all.
	FactLock
	// FactUnlock: MPI_Win_unlock and MPI_Win_unlock_all.
	FactUnlock
	// FactExposes: the call lets a group of ranks access the caller's window: MPI_Win_post.
	FactExposes
	// FactAccesses: the call begins the access to the windows of a group of ranks: MPI_Win_start.
	FactAccesses
	// FactEndsAccess: the call ends that access: MPI_Win_complete.
	FactEndsAccess
	// FactEndsExposure: the call waits until all accesses have ended: MPI_Win_wait, and MPI_Win_test when it succeeds.
	FactEndsExposure

	// What else a call makes.

	// FactCreatesCommunicator: the call makes a new communicator, MPI_Comm_idup once its request is complete.
	FactCreatesCommunicator
	// FactCreatesWindow: the call makes a new window.
	FactCreatesWindow
	// FactOpensFile: MPI_File_open.
	FactOpensFile

	// The begin and end of MPI. MPI_Session_init and MPI_Session_finalize have neither fact, as a program may call them
	// at any time and repeatedly.

	// FactInitializes: MPI_Init and MPI_Init_thread.
	FactInitializes
	// FactFinalizes: MPI_Finalize.
	FactFinalizes

	// FactLargeCount: the form of a call with counts of type MPI_Count, whose name ends in _c.
	FactLargeCount
)

// FactNames are the words of the column facts of calls.csv; the i-th is the name of the fact 1<<i.
var FactNames = []string{"point-to-point", "collective", "one-sided", "file",
	"blocking", "nonblocking", "persistent", "partitioned", "makes-request", "starts", "completes", "tests", "any",
	"frees",
	"sends", "receives", "synchronous", "buffered", "ready", "probes", "matched",
	"neighborhood", "rooted", "to-root", "from-root", "reduces", "scan", "variable-counts",
	"transfers", "completes-transfers", "fence", "flush", "lock", "unlock", "exposes",
	"accesses", "ends-access", "ends-exposure",
	"creates-communicator", "creates-window", "opens-file", "initializes", "finalizes", "large-count"}

// Is reports whether the call has all the given facts. It is false for an id that is not a call.
func (c CallID) Is(facts Facts) bool { return c.Facts()&facts == facts }

// IsAny reports whether the call has at least one of the given facts.
func (c CallID) IsAny(facts Facts) bool { return c.Facts()&facts != 0 }

// Facts returns what is known about the call; 0 for an id that is not a call.
func (c CallID) Facts() Facts {
	if c < 0 || int(c) >= len(Calls) {
		return 0
	}
	return Calls[c].Facts
}

// String lists the names of the facts in the order of FactNames, separated by spaces.
func (f Facts) String() string {
	var names []string
	for ; f != 0; f &= f - 1 {
		names = append(names, FactNames[bits.TrailingZeros64(uint64(f))])
	}
	return strings.Join(names, " ")
}

// CallByName returns the call with that MPI name, for example MPI_Isend; ok is false where there is none.
func CallByName(name string) (id CallID, ok bool) {
	id, ok = callsByName[name]
	return id, ok
}

// callsByName is filled once and only read after that.
var callsByName = func() map[string]CallID {
	ids := make(map[string]CallID, len(Calls))
	for id := CallID(1); int(id) < len(Calls); id++ {
		ids[Calls[id].Name] = id
	}
	return ids
}()

// Sides reports which sides a row of the call has when it moves data to or from a window or a file: MPI_Put and writes
// send, MPI_Get and reads receive, MPI_Get_accumulate, MPI_Fetch_and_op and MPI_Compare_and_swap do both. Both are
// false for all other calls.
func Sides(call CallID) (send, recv bool) {
	f := call.Facts()
	return f&FactTransfers != 0 && f&FactSends != 0, f&FactTransfers != 0 && f&FactReceives != 0
}
