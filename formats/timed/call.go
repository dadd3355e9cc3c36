package timed

import (
	"context"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/derive"
)

const null32, null64 = schema.NullInt32, schema.NullInt64

// Unused is the number of no window and no file.
const Unused = ^uint32(0)

// Call is an MPI call of the trace: its row, and what it did to requests. Times are in ns on one clock for all ranks,
// negative before its zero. A Reader sets the columns of the row that the trace has; this package sets seq, epoch,
// compute times, polls, request, done_seq and instance.
type Call struct {
	Row schema.Event
	// Posts are the requests that it made or started. Those of MPI_Startall have a row each: More has the rows of the
	// second and of all that follow.
	Posts []uint64
	More  []schema.Event
	Ends  []Ending
	// Poll means that it is a test or probe that found nothing, which is counted in the next row.
	Poll bool
	// Makes is a persistent request that the call made, Inits those whose operations Posts are; 0 and nil: none.
	Makes uint64
	Inits []uint64
	// AtMost means that the received bytes of the row are the size of its buffer: the message may be smaller.
	AtMost bool
	// Pair and MorePairs are the messages of Row and of More in a trace that tells itself which send met which receive.
	Pair      Pair
	MorePairs []Pair
	// To and From are the bytes by rank of the communicator of a collective whose arguments have a count for each; nil
	// for none. They are not changed after the call was handed over.
	To, From []int64
	// Window and Handle are the window and the file that the call made or used, Unused if none.
	Window, Handle uint32
	// SpentNs is time since the last call that is no computing of the program, such as the tracer's own.
	SpentNs int64
	// Settle, if not nil, completes the call with the effects of earlier calls of other threads of the rank. It is
	// called in the order of starts; calls are read ahead of that order.
	Settle func(c *Call)
}

// Reset makes the call an empty one. It keeps the memory of its slices, so that a reader that fills the same Call again
// and again allocates none.
func (c *Call) Reset() {
	c.Row = schema.NullEvent
	c.Posts, c.More, c.Ends = c.Posts[:0], c.More[:0], c.Ends[:0]
	c.Poll, c.Makes, c.Inits, c.AtMost = false, 0, c.Inits[:0], false
	c.Pair, c.MorePairs, c.To, c.From = Pair{}, c.MorePairs[:0], nil, nil
	c.Window, c.Handle, c.SpentNs, c.Settle = Unused, Unused, 0, nil
}

// Pair has the numbers of the messages that a row sent and received, in traces that number messages: a send and a
// receive with one number belong together. 0 means no message or an unknown one; then MPI's order decides.
type Pair struct{ Sent, Received int32 }

// Ending is a request that a call completed.
type Ending struct {
	Request uint64
	// Pair is the number of the received message, as in Pair.Received.
	Pair int32
	// Received means that it was a receive, whose message is Got; Collected that it was a collective operation, whose
	// communicator, root and bytes are in Got. Otherwise the row that posted it stays unchanged.
	Received, Collected bool
	// Lost means that no call of the trace completed the request.
	Lost bool
	// Cancelled means that the operation was cancelled: a receive got no message, or a send sent none.
	Cancelled bool
	Got       Outcome
}

// Outcome is the message of a receive, or the root and bytes of a collective operation. Unknown fields are null: start
// from NullOutcome.
type Outcome struct {
	Comm                         int32 // id in the run
	RecvPeer, RecvWorld, RecvTag int32 // of a receive: rank of the source in Comm, its world rank, and the tag
	RootWorld                    int32 // of a collective operation: the world rank of its root
	SendBytes, RecvBytes         int64
}

// NullOutcome is an outcome with all fields unknown.
var NullOutcome = Outcome{null32, null32, null32, null32, null32, null64, null64}

// Receive fills in the row of a receive.
func (o *Outcome) Receive(row *schema.Event) {
	row.Comm, row.RecvPeer, row.RecvWorld, row.RecvTag, row.RecvBytes = o.Comm, o.RecvPeer, o.RecvWorld, o.RecvTag,
		o.RecvBytes
}

// Collect fills in the row of a collective operation.
func (o *Outcome) Collect(row *schema.Event) {
	row.Comm, row.SendBytes, row.RecvBytes, row.RootWorld = o.Comm, o.SendBytes, o.RecvBytes, o.RootWorld
}

// Reader reads the calls of one or several threads of a rank.
type Reader interface {
	// Next reads the next call; false after the last.
	Next(c *Call) (bool, error)
	// Site returns the call site, in the run, that a row of the first pass has as its callsite.
	Site(first int32) int32
	// Read returns how much was read, in the unit of Trace.Size.
	Read() int64
	Close()
}

// Trace is the input of the passes.
type Trace struct {
	Comms *Comms
	// Open opens a rank for a pass: a reader for each thread that may call MPI, its main thread first. The first pass
	// opens ranks concurrently, the second one after the other.
	Open func(rank int32, learning bool) ([]Reader, error)
	// Skim, if not nil, is the first pass over a rank if that need not read all calls: it gives the sketch the starts
	// of rows and how much was read. Ranks are skimmed concurrently.
	Skim func(ctx context.Context, rank int32, s *Sketch) error
	// Learned, if not nil, is called between the passes.
	Learned func()
	// AtMost means that calls may have AtMost set.
	AtMost bool
	// Size is the amount to read in a pass, in any unit (Reader.Read).
	Size int64
	// Hosts has the names of the hosts, HostOf the index of each rank's.
	Hosts  []string
	HostOf []int32
}

// Sink takes the rows: a writer.Run. Different (table, shard) pairs are written concurrently.
type Sink interface {
	Write(shard int, b schema.Batch) error
}

// waitSummer is a sink that sums waits over the rows of an epoch, so that Commit need not read them again.
type waitSummer interface {
	SumWaits(hosts []int32, comms *schema.Comms, dense bool) *derive.WaitSums
}
