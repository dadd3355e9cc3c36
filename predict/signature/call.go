package signature

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/schema"
)

// Call describes a call relative to its rank: ranks that do the same with neighbours at the same distance share one
// Call.
type Call struct {
	// Comm is the id of the communicator; null if the call has none.
	Comm Int `json:"comm"`
	// Send and Recv are the two sides of the communication; nil if there is none.
	Send Side `json:"send,omitempty"`
	Recv Side `json:"recv,omitempty"`
	// Root is the world rank of a collective's root, ReduceOp its operation.
	Root     *int32 `json:"root,omitempty"`
	ReduceOp string `json:"reduce_op,omitempty"`
	// Class is the class of the row if it is not that of the MPI function, as for starts of persistent requests.
	Class string `json:"class,omitempty"`
	// PostedAny, ProcNull, Error, Label and Thread are as in the table events.
	PostedAny *int32  `json:"posted_any,omitempty"`
	ProcNull  *int32  `json:"proc_null,omitempty"`
	Error     *int32  `json:"error_class,omitempty"`
	Label     *string `json:"label,omitempty"`
	Thread    int32   `json:"thread,omitempty"`
	// Frame is the call path if it is not the symbol's.
	Frame *int32 `json:"frame,omitempty"`
	// Instance is true if the call is counted among the operations of its communicator.
	Instance bool `json:"instance,omitempty"`
	// Request is true if the call makes, starts or completes a request.
	Request bool `json:"request,omitempty"`
	// Completes refers to the calls whose requests this one completes.
	Completes []Backref `json:"completes,omitempty"`
	// Init refers to the call that init_seq names.
	Init *Backref `json:"init,omitempty"`
	// About refers to the call that made the persistent request which this call uses without starting it, as
	// MPI_Request_free does.
	About *Backref `json:"about,omitempty"`
	// ComputeNs is the mean compute time before calls like this one, in ns. It is nil if it is unknown, or if the
	// event has only one distinct call without FirstNs, whose time is in the event's Times. Calls that differ only in
	// it count as equal.
	ComputeNs *int64 `json:"compute_ns,omitempty"`
	// FirstNs is the mean compute time before those of these calls that follow a call of another event, in ns;
	// ComputeNs is the mean of the others then. It is nil if all take about as long. Of many receives in a loop the
	// first comes after computing.
	FirstNs *int64 `json:"first_compute_ns,omitempty"`

	// Parts are the rows of parts of a generated run's collective, without rank, seq and epoch.
	Parts []schema.Part `json:"-"`
}

// Side is one side of a communication: the peer's world rank minus the own rank, tag, count, datatype, bytes; and, if
// the peer has no world rank, its rank in the communicator.
type Side []Int

// Indexes in a Side.
const (
	SidePeer = iota
	SideTag
	SideCount
	SideDatatype
	SideBytes
	SideCommPeer
)

// HasPeer reports whether the other side is a process of the run, and not MPI_PROC_NULL for example.
func (s Side) HasPeer() bool { return len(s) > 0 && s[SidePeer] != Null }

// HasBytes reports whether the side has a number of bytes.
func (s Side) HasBytes() bool { return len(s) > 0 && s[SideBytes] != Null }

// PeerOf returns the world rank of the other side for a call of rank; pattern.None if it has no peer.
func (s Side) PeerOf(rank int32) int32 {
	if !s.HasPeer() {
		return pattern.None
	}
	return rank + s[SidePeer].Int32()
}

// NewSide returns a side of a row of a rank; nil if all columns of the side are null.
func NewSide(rank, world, peer, tag int32, count int64, datatype int32, bytes int64) Side {
	s := Side{IntOf(world), IntOf(tag), Int(count), IntOf(datatype), Int(bytes)}
	if world != schema.NullInt32 {
		s[SidePeer] -= Int(rank)
	} else if peer != schema.NullInt32 {
		return append(s, Int(peer))
	}
	for _, x := range s {
		if x != Null {
			return s
		}
	}
	return nil
}

// Backref refers to earlier calls of the same rank: an event's node ID; how many calls of this event ago the first
// one was made, 0 being the latest; and how many consecutive calls of the event it covers.
type Backref [3]int32

// Position identifies a call of a rank: the Number-th call, from 0, of the event with ID Node.
type Position struct{ Node, Number int32 }

// Position returns the position of the k-th call that the reference covers; made is the number of calls of each event
// so far.
func (b Backref) Position(made []int32, k int32) Position {
	return Position{b[0], made[b[0]] - 1 - b[1] + k}
}

// Operation identifies an operation on a communicator, as the columns comm and instance do.
type Operation struct {
	Comm   int32
	Number int64
}

// Channel is a sequence of messages that do not overtake each other.
type Channel struct{ Comm, Src, Dst, Tag int32 }

// SendChannel returns the channel of a rank's send; valid if c.Send.HasPeer().
func (c *Call) SendChannel(rank int32) Channel {
	return Channel{c.Comm.Int32(), rank, c.Send.PeerOf(rank), c.Send[SideTag].Int32()}
}

// RecvChannel returns the channel of a rank's receive; valid if c.Recv.HasPeer().
func (c *Call) RecvChannel(rank int32) Channel {
	return Channel{c.Comm.Int32(), c.Recv.PeerOf(rank), rank, c.Recv[SideTag].Int32()}
}

// AppendKey appends bytes to key that are equal only for equal calls, for use as a map key.
func (c *Call) AppendKey(key []byte) []byte {
	number := func(x int64) { key = binary.AppendVarint(key, x) }
	optional := func(x *int32) {
		if x == nil {
			number(schema.NullInt64)
		} else {
			number(int64(*x))
		}
	}
	number(int64(c.Comm))
	for _, s := range [2]Side{c.Send, c.Recv} {
		number(int64(len(s)))
		for _, x := range s {
			number(int64(x))
		}
	}
	for _, x := range [...]*int32{c.Root, c.Error, c.PostedAny, c.Frame, c.ProcNull} {
		optional(x)
	}
	flags := int64(0)
	for bit, set := range [...]bool{c.Instance, c.Request, c.ComputeNs != nil} {
		if set {
			flags |= 1 << bit
		}
	}
	for _, x := range []int64{int64(c.Thread), flags, int64(len(c.Completes)), int64(len(c.Parts))} {
		number(x)
	}
	if c.ComputeNs != nil { // only while a run is generated
		number(*c.ComputeNs)
	}
	for _, b := range c.Completes {
		for _, x := range b {
			number(int64(x))
		}
	}
	for i := range c.Parts {
		p := &c.Parts[i]
		number(int64(p.PeerWorld))
		number(p.SendBytes)
		number(p.RecvBytes)
	}
	for _, maker := range [2]*Backref{c.Init, c.About} {
		if maker != nil {
			number(int64(maker[0]))
			number(int64(maker[1]))
		} else {
			number(-1)
		}
	}
	key = append(append(append(append(key, c.ReduceOp...), 0), c.Class...), 0)
	if c.Label != nil {
		key = append(append(key, 1), *c.Label...)
	}
	return key
}

// Int is a number that may be null.
type Int int64

// Null is the null Int.
const Null = Int(schema.NullInt64)

// MarshalJSON writes a number or null.
func (i Int) MarshalJSON() ([]byte, error) {
	if i == Null {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(i), 10), nil
}

// UnmarshalJSON reads a number or null.
func (i *Int) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*i = Null
		return nil
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	*i = Int(n)
	return err
}

// IntOf converts a value of an int32 column.
func IntOf(i int32) Int {
	if i == schema.NullInt32 {
		return Null
	}
	return Int(i)
}

// Int32 converts to a value of an int32 column.
func (i Int) Int32() int32 {
	if i == Null {
		return schema.NullInt32
	}
	return int32(max(math.MinInt32+1, min(int64(i), math.MaxInt32)))
}
