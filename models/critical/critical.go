package critical

import "github.com/commq/commq/schema"

// Kind is the kind of work that a segment's time is spent on.
type Kind uint8

const (
	// Compute is time outside MPI, before a call.
	Compute Kind = iota
	// PointToPoint is time in a point-to-point call that did not wait for another rank, or the time after its wait.
	PointToPoint
	// Transfer is the time from when the other side of a message was ready to the end of the call that waited for it.
	Transfer
	// Collective is time in a collective operation. If the rank waited, it begins when the last rank that it needed
	// entered.
	Collective
	// Other is time in all other calls.
	Other
	// Kinds is the number of kinds.
	Kinds
)

func (k Kind) String() string {
	return [Kinds]string{"compute", "point-to-point", "transfer", "collective", "other"}[k]
}

// Segment is a part of the path: one rank between two times.
type Segment struct {
	Rank int32
	// Site and Call belong to the call in which the time was spent; for Compute, to the call after it.
	Site     int32
	Call     schema.CallID
	Kind     Kind
	From, To int64 // ns since the start of the run
}

// Options say which ranks a rank waits for.
type Options struct {
	// Last means that in every collective operation all ranks wait for the last one, as they do in simulated and
	// virtual times. Otherwise a rank waits only for the ranks whose data it needs.
	Last bool
	// Eager means that no send waits for its receiver.
	Eager bool
	// SendWaits reports whether a call waits in simulated times for the receiver of a send, as simulate.Target does;
	// nil means that all may.
	SendWaits func(call schema.CallID, src, dst int32, bytes int64, nonblocking bool) bool
	// LeaveOutStartup means that the path is that of the program between MPI_Init and MPI_Finalize: it begins where the
	// last rank begins MPI_Finalize, and ends where MPI_Init ended on the rank that it leads to.
	LeaveOutStartup bool
	// Trace keeps the path over time, for Path.Steps and Path.Changes.
	Trace bool
	// Segments keeps the segments too, except those of very long paths, for Path.Within.
	Segments bool
}

// Columns are the columns of events that a graph needs.
var Columns = []string{"rank", "seq", "thread", "call", "class", "start_ns", "end_ns", "comm", "instance",
	"root_world", "request", "done_seq", "init_seq", "label", "callsite"}

// MessageColumns are the columns of messages that a graph needs.
var MessageColumns = []string{"src", "dst", "bytes", "send_seq", "recv_post_seq", "recv_done_seq"}
