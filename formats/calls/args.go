package calls

import "github.com/commq/commq/schema"

const null32, null64 = schema.NullInt32, schema.NullInt64

// Special numbers of ranks. Readers translate those of the MPI library that made the trace.
const (
	AnySource = -1 - iota
	ProcNull
	Root // the root's own argument in a collective of an intercommunicator
)

// AnyTag stands for every tag.
const AnyTag = -1

// Handle names a communicator. Rank is the rank of the caller in it and Size the size of its group, in traces that show
// them; otherwise both are -1.
type Handle struct {
	Number     int64
	Rank, Size int64
	// Variable is the address of the variable with the handle, in traces that show it for a communicator that is made
	// or freed; otherwise 0.
	Variable uint64
	// Nth is the number, from 1, of the caller's constructor that made it; 0 if unknown.
	Nth int
}

// Unshown is the number of a communicator that the trace does not show.
const Unshown = -1 << 62

// Named returns the handle with this number, of unknown rank and size.
func Named(number int64) Handle { return Handle{Number: number, Rank: -1, Size: -1} }

// Held returns the handle in the variable at an address, whose number the trace does not show.
func Held(address uint64) Handle {
	return Handle{Number: Unshown, Rank: -1, Size: -1, Variable: address}
}

// NoComm is the handle of a constructor that makes no communicator for the caller.
var NoComm = Handle{Number: Unshown}

// Status is the status of a receive: the rank of the source in the communicator, the tag and the bytes received.
type Status struct {
	Source, Tag, Bytes int64
	Cancelled          bool
}

// End is a request that a call completed, with its status; nil if the trace does not have it.
type End struct {
	Request uint64
	Status  *Status
	// Freed means that the call only freed the request.
	Freed bool
}

// Args are the arguments and results of a call, as far as the trace has them. Sizes are in bytes: counts times the size
// of their datatype; null64 if unknown. Times are in ns on one clock for all ranks; EndNs is null64 if the call did not
// return. Ranks are ranks in the call's communicator, or AnySource, ProcNull or Root.
type Args struct {
	Call           schema.CallID
	Thread         int32
	StartNs, EndNs int64

	Comm, NewComm Handle
	Send, Recv    int64 // sizes of the send and the receive argument; of one buffer both
	// To and From are the sizes for each rank, if the arguments have them.
	To, From         []int64
	Dest, Source     int64 // ProcNull if the call has none
	SendTag, RecvTag int64 // or AnyTag
	Root             int64
	Op               int16 // as reduce_op

	Request  uint64   // made or started by the call
	Requests []uint64 // started by MPI_Startall
	Ends     []End
	Status   *Status // of a blocking receive or a probe
	Failed   bool    // a test or probe that found nothing

	MakesGroup              GroupMaker
	Group, Group2, NewGroup int64
	Ranks                   []int64    // of MPI_Group_incl and MPI_Group_excl
	Ranges                  [][3]int64 // of MPI_Group_range_incl and _excl: first, last, stride
	Color, Key              int64
	Dims, Periods           []int64 // of MPI_Cart_create; MPI_Cart_sub: the dimensions that stay are not 0
	PeerComm                Handle  // of MPI_Intercomm_create
	Leader, RemoteLeader    int64
	High                    bool

	Window, File int64  // handles
	Target       int64  // rank in the communicator of the window, or ProcNull
	Name         string // of a file
}

// Reset clears all arguments.
func (a *Args) Reset() {
	*a = Args{Send: null64, Recv: null64, Root: ProcNull, Op: schema.NullEnum, Dest: ProcNull, Source: ProcNull,
		EndNs: null64}
}

// GroupMaker is the way in which a call makes a group.
type GroupMaker uint8

// The ways to make a group. GroupIncl and GroupExcl stand for those with ranges too.
const (
	NoGroup GroupMaker = iota
	CommGroup
	CommRemoteGroup
	GroupIncl
	GroupExcl
	GroupUnion
	GroupIntersection
	GroupDifference
)

// Defines reports whether the call makes a group or a communicator, and so matters to Resolve.
func (a *Args) Defines() bool {
	return a.MakesGroup != NoGroup || a.Call.Is(schema.FactCreatesCommunicator)
}
