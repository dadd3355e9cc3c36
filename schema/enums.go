package schema

// Class is the kind of an MPI call; it is the column class of events.
type Class int16

// The classes of calls, in the order of ClassNames.
const (
	ClassSend Class = iota
	ClassRecv
	ClassSendrecv
	ClassProbe
	ClassComplete
	ClassCollective
	ClassComm
	ClassRMA
	ClassIO
	ClassMark
	ClassOther
)

// ClassNames are the names of the classes in the tables.
var ClassNames = []string{"send", "recv", "sendrecv", "probe", "complete", "collective", "comm", "rma", "io", "mark",
	"other"}

// String returns the class's name.
func (c Class) String() string { return ClassNames[c] }

// PointToPoint reports whether calls of the class send, receive or probe messages, or complete requests.
func (c Class) PointToPoint() bool { return c >= ClassSend && c <= ClassComplete }

// Op is a reduction operation; it is the column reduce_op of events.
type Op int16

// The predefined reduction operations of MPI and, for all others, OpUser.
const (
	OpUser Op = iota
	OpMax
	OpMin
	OpSum
	OpProd
	OpLand
	OpBand
	OpLor
	OpBor
	OpLxor
	OpBxor
	OpMaxloc
	OpMinloc
	OpReplace
	OpNoOp
)

// OpNames are the names of the reduction operations in the tables.
var OpNames = []string{"user", "MPI_MAX", "MPI_MIN", "MPI_SUM", "MPI_PROD", "MPI_LAND", "MPI_BAND", "MPI_LOR",
	"MPI_BOR", "MPI_LXOR", "MPI_BXOR", "MPI_MAXLOC", "MPI_MINLOC", "MPI_REPLACE", "MPI_NO_OP"}

// CommKind tells how a communicator was made; it is the column kind of comms.
type CommKind int16

// The kinds of communicators, in the order of CommKindNames.
const (
	CommWorld CommKind = iota
	CommSelf
	CommDup
	CommSplit
	CommCreate
	CommCart
	CommGraph
	CommDistGraph
	CommInter
	CommMerge
	CommOther
)

// CommKindNames are the names of the kinds in the tables.
var CommKindNames = []string{"world", "self", "dup", "split", "create", "cart", "graph", "dist_graph", "inter",
	"merge", "other"}

// Bits of posted_any and of proc_null in events.
const (
	// AnySource: the receive or probe was posted with MPI_ANY_SOURCE.
	AnySource = 1
	// AnyTag: the receive or probe was posted with MPI_ANY_TAG.
	AnyTag = 2
	// ProcNullSend: the send side's peer is MPI_PROC_NULL.
	ProcNullSend = 1
	// ProcNullRecv: the receive side's peer is MPI_PROC_NULL.
	ProcNullRecv = 2
)

// Call is one MPI function, a line of calls.csv.
type Call struct {
	// ID is the call's number in the spool; it never changes.
	ID CallID
	// Name is the MPI name, for example MPI_Send.
	Name string
	// Class is the kind of the call.
	Class Class
	// Recorder is the shim's recorder for the call; empty when the call is not recorded.
	Recorder string
	// Facts tell what the call does.
	Facts Facts
}

// CallID is the number of an MPI function: the id column of calls.csv, an index into CallNames.
type CallID int16

// String returns the MPI name.
func (c CallID) String() string { return CallNames[c] }
