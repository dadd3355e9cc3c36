package calls

import "github.com/commq/commq/schema"

const null32, null64 = schema.NullInt32, schema.NullInt64

// Numbers of ranks that stand for something else. Readers translate those of the MPI library that made the trace.
const (
	AnySource = -1 - iota
	ProcNull
	Root // the root's own argument in a collective of an intercommunicator
)

// AnyTag stands for every tag.
const AnyTag = -1

// Handle names a communicator. Traces that show with it the rank of the caller and the size of its group have them,
// others -1.
type Handle struct {
	Number     int64
	Rank, Size int64
	// Variable is the address of the variable that has the handle, of traces that show this of a communicator that is
	// made or freed.
	Variable uint64
	// Nth tells that the caller's n-th constructor made it, counted from 1; 0: not known.
	Nth int
}

// Unshown is the number of a communicator that the trace does not show.
const Unshown = -1 << 62

// Named returns the handle with that number alone.
func Named(number int64) Handle { return Handle{Number: number, Rank: -1, Size: -1} }

// Held returns the handle in the variable at an address, whose number the trace does not show.
func Held(address uint64) Handle {
	return Handle{Number: Unshown, Rank: -1, Size: -1, Variable: address}
}

// NoComm is the handle of a constructor that makes no communicator for the caller.
var NoComm = Handle{Number: Unshown}

// Status is what a status says of a receive.
type Status struct {
	Source, Tag, Bytes int64
	Cancelled          bool
}

// End is a request that a call completed, with its status, nil if the trace does not have it.
type End struct {
	Request uint64
	Status  *Status
	// Freed tells that the call only gave the request back.
	Freed bool
}

// Args are the arguments of a call and what it returned, those that a trace has. Sizes are in bytes: counts times the
// size of their datatype. Null sizes are null64.
type Args struct {
	Call           schema.CallID
	Thread         int32
	StartNs, EndNs int64

	Comm, NewComm Handle
	Send, Recv    int64 // sizes of the send and the receive argument; of one buffer both
	// To and From are the sizes for each rank, where the arguments have them.
	To, From         []int64
	Dest, Source     int64
	SendTag, RecvTag int64
	Root             int64
	Op               int16 // as reduce_op

	Request  uint64   // that the call made or starts
	Requests []uint64 // that MPI_Startall starts
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

	Window, File int64 // handles
	Target       int64
	Name         string // of a file
}

// Reset makes the arguments those of a call without any.
func (a *Args) Reset() {
	*a = Args{Send: null64, Recv: null64, Root: ProcNull, Op: schema.NullEnum, Dest: ProcNull, Source: ProcNull,
		EndNs: null64}
}

// GroupMaker is how a call makes a group.
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
