package predict

import (
	"math"
	"strconv"

	"github.com/commq/commq/schema"
)

// Version is the version of signatures as they are written.
const Version = 1

// Signature is what a run did: its template, and what each rank did of it. Expand gives back the calls of every rank.
type Signature struct {
	// Version is the version of the format.
	Version int `json:"commq_signature"`
	// Run is the name of the run, Digest its digest.
	Run    string `json:"run"`
	Digest string `json:"digest"`
	// Captures are those that its compute times are the medians of (Pool); nil: the run alone.
	Captures []Capture `json:"captures,omitempty"`
	// Ranks is the number of processes.
	Ranks int32 `json:"ranks"`
	// Calls is the number of rows of events that it stands for.
	Calls int64 `json:"calls"`
	// ComputeClock and TimeOrigin are the run's.
	ComputeClock string `json:"compute_clock"`
	TimeOrigin   string `json:"time_origin"`
	// Oversubscribed says whether ranks were more than the CPUs of a host, so that they shared them; nil where the run does not tell.
	Oversubscribed *bool `json:"oversubscribed,omitempty"`
	// Stack is the number of frames that call paths have at most; 0: calls have no call sites.
	Stack int32 `json:"stack,omitempty"`
	// Comms are the communicators, Datatypes the datatypes, Frames the frames of call paths.
	Comms     []Comm     `json:"comms"`
	Datatypes []Datatype `json:"datatypes"`
	Frames    []Frame    `json:"frames,omitempty"`
	// Symbols are the different calls: what stands at a place in the program.
	Symbols []Symbol `json:"symbols"`
	// Template is the root of the template.
	Template *Node `json:"template"`
	// Values has for each node of the template, by id, what ranks did there.
	Values []Values `json:"values"`
	// Roots are, by rank, the value of the root: an index in its Values' Loops.
	Roots []int32 `json:"roots"`

	// Ticks is the last time of the logical clock. Phases are in the order of the template.
	Ticks  int32   `json:"ticks"`
	Phases []Phase `json:"phases"`
	// Communications say whom ranks send to, in the order of the template; Irregular says why there are none though ranks send.
	Communications []Communication `json:"communications,omitempty"`
	Irregular      string          `json:"communications_irregular,omitempty"`

	nodes []*Node
	comms map[int32]*Comm
	bands []Band
	// By node: calls of the event are referred to, and by init_seq.
	referred, inits []bool
}

// Comm is a communicator.
type Comm struct {
	ID     int32  `json:"id"`
	Parent *int32 `json:"parent,omitempty"`
	Kind   string `json:"kind"`
	Name   string `json:"name,omitempty"`
	// Dims and Periods are those of a Cartesian topology, as in the table comms.
	Dims    string `json:"cart_dims,omitempty"`
	Periods string `json:"cart_periods,omitempty"`
	// Members are the world ranks of the members in the order of their ranks, Remote those of an intercommunicator's other group; -1 is a
	// process outside of MPI_COMM_WORLD.
	Members Ranks `json:"members"`
	Remote  Ranks `json:"remote,omitempty"`

	places, remotePlaces map[int32]int32 // of world ranks
}

// Datatype is a datatype.
type Datatype struct {
	ID   int32  `json:"id"`
	Name string `json:"name,omitempty"`
	// Bytes is the size of an element.
	Bytes int64 `json:"bytes"`
}

// Frame is a frame of call paths.
type Frame struct {
	ID       int32  `json:"id"`
	Parent   *int32 `json:"parent,omitempty"`
	Module   string `json:"module,omitempty"`
	BuildID  string `json:"build_id,omitempty"`
	Offset   *int64 `json:"offset,omitempty"`
	Function string `json:"function,omitempty"`
	File     string `json:"file,omitempty"`
	Line     *int32 `json:"line,omitempty"`
}

// Symbol is a call at a place in the program.
type Symbol struct {
	// Call is the MPI function.
	Call string `json:"call"`
	// Frame is the innermost frame of its call path; nil where call sites are not known.
	Frame *int32 `json:"frame,omitempty"`
	// Comm is its communicator, where call sites are not known; nil where it has none.
	Comm *int32 `json:"comm,omitempty"`

	call schema.CallID
}

// Values are the different things that ranks did at a node. What a rank did at an event is an index in Events; at a loop one in Loops.
type Values struct {
	// Events are the different calls of an event.
	Events []*Call `json:"events,omitempty"`
	// Bodies are the different iterations of a loop: for each child that an iteration has its place and its value, one after the other.
	Bodies [][]int32 `json:"bodies,omitempty"`
	// Loops are the different executions of a loop: the iterations, by their indexes in Bodies.
	Loops [][]Item `json:"loops,omitempty"`
	// Times say how long ranks computed before the calls of an event; nil where that is not known.
	Times *Times `json:"times,omitempty"`
	// Parts is PartsProduct where that is what the collective calls of an event send to each peer; empty where it is not, or not known.
	Parts string `json:"parts,omitempty"`

	levels [][2]int32 // of a loop of levels of a recursion, while runs are put together: the first and the last level of each of Loops
}

// Times are distributions over all ranks and calls.
type Times struct {
	// Compute is of the time before the call, in ns.
	Compute Spread `json:"compute_ns"`
	// Instructions and Cycles are those of that time; nil where they were not counted.
	Instructions *Spread `json:"instructions,omitempty"`
	Cycles       *Spread `json:"cycles,omitempty"`
	// Noise is of what a time is to the mean of equal calls, in thousandths; nil where that is not known.
	Noise *Spread `json:"noise_permille,omitempty"`
}

// Spread is a distribution. Its quartiles are within 2 % of the exact ones.
type Spread struct {
	Count  int64 `json:"count"`
	Sum    int64 `json:"sum"`
	Low    int64 `json:"q1"`
	Median int64 `json:"median"`
	High   int64 `json:"q3"`
}

// Call is what a call did, seen from its rank: ranks that do the same with neighbours at the same distance have the same Call.
type Call struct {
	Comm Int `json:"comm"`
	// Send and Recv are the sides of the communication; nil where there is none.
	Send Side `json:"send,omitempty"`
	Recv Side `json:"recv,omitempty"`
	// Root is the world rank of the root of a collective, ReduceOp its operation.
	Root     *int32 `json:"root,omitempty"`
	ReduceOp string `json:"reduce_op,omitempty"`
	// Class is the class of the row, where it is not that of the MPI function: of a started persistent request.
	Class string `json:"class,omitempty"`
	// PostedAny, ProcNull, Error, Label and Thread are as in the table events.
	PostedAny *int32  `json:"posted_any,omitempty"`
	ProcNull  *int32  `json:"proc_null,omitempty"`
	Error     *int32  `json:"error_class,omitempty"`
	Label     *string `json:"label,omitempty"`
	Thread    int32   `json:"thread,omitempty"`
	// Frame is its call path, where that is not the symbol's.
	Frame *int32 `json:"frame,omitempty"`
	// Instance says that it counts among the operations of its communicator.
	Instance bool `json:"instance,omitempty"`
	// Request says that the call has a request of its own: one that it makes, starts or completes.
	Request bool `json:"request,omitempty"`
	// Completes are the requests that it completes: those of the calls of which event, and which: 0 is the last one of that event which the
	// rank has made, 1 the one before.
	Completes []Completion `json:"completes,omitempty"`
	// Init is the call that it refers to (init_seq): of which event, and which.
	Init *Completion `json:"init,omitempty"`
	// About is the call that made the persistent request which it is about without starting it, as MPI_Request_free.
	About *Completion `json:"about,omitempty"`
	// ComputeNs is the mean of the compute times before the calls like this one, in ns; nil where it is not known, and where an event has one
	// kind of call only: then the event's Times have it. Calls that differ in nothing else are the same.
	ComputeNs *int64 `json:"compute_ns,omitempty"`

	parts []schema.Part // of a run that is extrapolated
}

// Side is one side of a communication: the peer's world rank minus the rank's own, tag, count, datatype, bytes; and, where the peer has no world
// rank, its rank in the communicator.
type Side []Int

// Places in a Side.
const (
	SidePeer = iota
	SideTag
	SideCount
	SideDatatype
	SideBytes
	SideCommPeer
)

// Completion refers to calls: the event's node, how many of its calls ago, and how many calls from that one on.
type Completion [3]int32

// Int is a number that may be null: schema.NullInt64.
type Int int64

const null = Int(schema.NullInt64)

// MarshalJSON writes a number or null.
func (i Int) MarshalJSON() ([]byte, error) {
	if i == null {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(i), 10), nil
}

// UnmarshalJSON reads a number or null.
func (i *Int) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*i = null
		return nil
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	*i = Int(n)
	return err
}

func int32Of(i int32) Int {
	if i == schema.NullInt32 {
		return null
	}
	return Int(i)
}

func (i Int) int32() int32 {
	if i == null {
		return schema.NullInt32
	}
	return int32(max(math.MinInt32+1, min(int64(i), math.MaxInt32)))
}
