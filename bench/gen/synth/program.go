// Package synth makes runs of any size that look like those of real programs. A pattern (patterns.go) defines the
// calls of each rank; the program is executed in virtual time (clock.go), and its rows and messages go through
// commq's own writer (write.go). The result depends only on the options, not on the number of threads or the machine.
package synth

import (
	"fmt"

	"github.com/commq/commq/schema"
)

// None marks a call without peer, root or call to complete.
const None = -1

// Op is one MPI call of a rank.
type Op struct {
	SendTo, RecvFrom     int32 // world ranks; None
	SendPeer, RecvPeer   int32 // their ranks in the communicator
	SendBytes, RecvBytes int32
	Comm                 int32 // index into Program.Comms; None: the call has none
	Root                 int32 // world rank; None
	// Completes is, for a call that waits, the index, among the rank's ops in the section, of the first op that it
	// completes: MPI_Wait completes this one, MPI_Waitall all nonblocking ones from there on. For a collective it is
	// the number of the operation on its communicator in the section; see Program.seal.
	Completes        int32
	SendTag, RecvTag int16
	SendBuf, RecvBuf int16 // number of the buffer; None
	Call             int16 // a schema.CallID
	Site             int16 // index into Program.Sites
	Timing           int16 // index into Program.Timings
	Type             int8  // index into datatypes
	Reduce           int8  // a schema.Op; None
}

// Comm is a communicator.
type Comm struct {
	Name, Dims, Periods string
	Kind                schema.CommKind
	Parent              int32
	Members             []int32 // world ranks; nil means all, in order
}

// Section is a part of a program: each rank makes its calls in order, Times times. Every message is received in the
// turn in which it is sent.
type Section struct {
	Times int64
	first []int32 // the first op of each rank, then the number of all
	ops   []Op

	partner   []int32    // for an op that sends: the op that receives
	from      []int32    // for an op that receives: the op that sends
	done      []int32    // for an op that starts a request: the op that completes it
	awaits    [][2]int32 // for each op: the first and last op whose messages it waits for
	rounds    [][]segment
	ready     [][]int32 // by round: collectives that all members have entered at its end
	groups    [][]int32 // the ops of each collective
	groupOf   []int32   // by op; None
	perTurn   []int32   // collectives of each communicator
	requests  []int32   // by rank
	sends     []int32   // by rank
	dropped   []int32   // by rank: calls about messages
	requestOf []int32   // for an op that starts a request: its number in the turn
	sent      int64     // messages of a turn, kept when the rest is freed
}

// Program is the calls of all ranks.
type Program struct {
	Name     string
	Ranks    int
	Comms    []Comm
	Sites    []string // functions
	Timings  []Timing
	Sections []*Section
	Network  Network
	// BufferBytes is the distance between buffers.
	BufferBytes int64
	// OwnShare is the part of the times in Timings that calls take by themselves; the rest was waiting for others,
	// which the clock adds again. With the right share a run takes about as long as the measured one.
	OwnShare float64
	// HeadBits is the number of random low bits in a payload's first 8 bytes; the others are those of the double 1.
	HeadBits int
}

// Timing has the measured times of a call site: the compute time before the call, and the time of the call itself.
type Timing struct{ Gap, Call Quantiles }

// Network gives the time of a message, from its send to the return of the call that waits for it: LatencyNs plus its
// bytes at BytesPerUs.
type Network struct{ LatencyNs, BytesPerUs int64 }

// datatypes of the programs, indexed by Op.Type.
var datatypes = []schema.Datatype{
	{ID: 0, Name: "MPI_DOUBLE", Combiner: "named", Bytes: 8, ExtentBytes: 8},
	{ID: 1, Name: "MPI_INT", Combiner: "named", Bytes: 4, ExtentBytes: 4},
}

// section adds a section; ops makes the calls of a rank.
func (p *Program) section(times int64, ops func(rank int, do *calls)) {
	s := &Section{Times: times, first: make([]int32, p.Ranks+1)}
	do := &calls{p: p, instances: map[int32]int32{}}
	for rank := range p.Ranks {
		do.ops, do.rank = s.ops, int32(rank)
		do.start = len(s.ops)
		clear(do.instances)
		ops(rank, do)
		s.ops = do.ops
		s.first[rank+1] = int32(len(s.ops))
	}
	p.Sections = append(p.Sections, s)
}

// calls collects the calls of a rank.
type calls struct {
	p         *Program
	rank      int32
	start     int
	ops       []Op
	instances map[int32]int32
}

func (c *calls) add(call schema.CallID, site, timing int) *Op {
	c.ops = append(c.ops, Op{SendTo: None, RecvFrom: None, SendPeer: None, RecvPeer: None, Comm: None, Root: None,
		Completes: None, SendBuf: None, RecvBuf: None,
		Call: int16(call), Site: int16(site), Timing: int16(timing), Reduce: None})
	return &c.ops[len(c.ops)-1]
}

// side is one end of a message, on a communicator whose ranks equal world ranks.
type side struct {
	peer  int
	tag   int
	bytes int
	buf   int
}

func (o *Op) sends(s side) {
	o.SendTo, o.SendPeer, o.SendTag, o.SendBytes, o.SendBuf = int32(s.peer), int32(s.peer), int16(s.tag),
		int32(s.bytes), int16(s.buf)
}

func (o *Op) receives(s side) {
	o.RecvFrom, o.RecvPeer, o.RecvTag, o.RecvBytes, o.RecvBuf = int32(s.peer), int32(s.peer), int16(s.tag),
		int32(s.bytes), int16(s.buf)
}

func (c *calls) sendrecv(comm, site, timing int, out, in side) {
	o := c.add(schema.CallSendrecv, site, timing)
	o.Comm = int32(comm)
	o.sends(out)
	o.receives(in)
}

func (c *calls) send(call schema.CallID, comm, site, timing int, out side) {
	o := c.add(call, site, timing)
	o.Comm = int32(comm)
	o.sends(out)
}

// recv returns the index of the call, for wait.
func (c *calls) recv(call schema.CallID, comm, site, timing int, in side) int {
	o := c.add(call, site, timing)
	o.Comm = int32(comm)
	o.receives(in)
	return c.here() - 1
}

// here returns the index of the next call.
func (c *calls) here() int { return len(c.ops) - c.start }

func (c *calls) wait(call schema.CallID, site, timing, completes int) {
	c.add(call, site, timing).Completes = int32(completes)
}

// collective adds a collective operation, or a call that makes a communicator.
func (c *calls) collective(call schema.CallID, comm, site, timing int) *Op {
	o := c.add(call, site, timing)
	o.Comm = int32(comm)
	o.Completes = c.instances[int32(comm)]
	c.instances[int32(comm)]++
	return o
}

// allreduce adds an MPI_Allreduce of doubles.
func (c *calls) allreduce(comm, site, timing, bytes int) {
	o := c.collective(schema.CallAllreduce, comm, site, timing)
	o.Reduce, o.SendBytes, o.RecvBytes, o.SendBuf, o.RecvBuf = int8(schema.OpSum), int32(bytes), int32(bytes),
		stackBuf, stackBuf+1
}

// rooted adds an MPI_Bcast or MPI_Reduce of this many bytes with root 0.
func (c *calls) rooted(call schema.CallID, comm, site, timing, bytes int, t int8) {
	o := c.collective(call, comm, site, timing)
	o.Root, o.Type = 0, t
	atRoot := c.rank == 0
	switch {
	case call == schema.CallReduce:
		o.Reduce, o.SendBytes, o.SendBuf = int8(schema.OpSum), int32(bytes), stackBuf
		if atRoot {
			o.RecvBytes, o.RecvBuf = int32(bytes), stackBuf+1
		}
	case atRoot:
		o.SendBytes, o.SendBuf = int32(bytes), stackBuf
	default:
		o.RecvBytes, o.RecvBuf = int32(bytes), stackBuf
	}
}

// stackBuf is the first buffer number on the stack.
const stackBuf = 1000

// isCollective reports whether all ranks of the communicator make the call.
func (o *Op) isCollective() bool {
	class := schema.Calls[o.Call].Class
	return class == schema.ClassCollective || class == schema.ClassComm && schema.CallID(o.Call) != schema.CallCommFree
}

func (o *Op) isRequest() bool {
	return schema.CallID(o.Call) == schema.CallIsend || schema.CallID(o.Call) == schema.CallIrecv
}

// Messages returns the number of point-to-point messages of the program.
func (p *Program) Messages() (n int64) {
	for _, s := range p.Sections {
		n += s.Times * s.messages()
	}
	return n
}

func (s *Section) messages() (n int64) {
	n = s.sent
	for i := range s.ops {
		if s.ops[i].SendTo != None {
			n++
		}
	}
	return n
}

// seal matches sends with receives and orders the calls.
func (p *Program) seal() error {
	for i, s := range p.Sections {
		err := s.match()
		if err == nil {
			err = s.order(p)
		}
		if err != nil {
			return fmt.Errorf("pattern %s, section %d: %w", p.Name, i, err)
		}
	}
	return nil
}
