package testruns

import (
	"cmp"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// Call is a call of a rank, at a call site numbered from 0: a send, a receive, or a collective.
type Call struct {
	Site int
	Call schema.CallID
	// To and From are ranks of MPI_COMM_WORLD, None if the call does not send or receive. Bytes is the size of what it
	// sends and receives, in elements of Element bytes; 0 means 1.
	// Received is the size of what it receives if that is another; 0 is Bytes.
	To, From, Tag, Bytes, Element, Received int
	// Root is the rank of MPI_COMM_WORLD that is the root of a collective; None if it has none.
	Root int
	// Comm is the communicator, an index in what WithComms got plus 1; 0 is MPI_COMM_WORLD.
	Comm int
}

// None means no rank.
const None = -1

// Calls makes a run whose ranks make these calls, with communicators: of each, its members.
func Calls(ranks int, comms [][]int32, calls func(rank int) []Call) *signature.Run {
	run := empty(ranks)
	for c, members := range comms {
		for r, world := range members {
			row := schema.NullComm
			row.Comm, row.CommRank, row.WorldRank, row.Kind = int32(c+1), int32(r), world, int16(schema.CommSplit)
			row.Parent = 0
			run.Comms = append(run.Comms, row)
		}
	}
	run.Datatypes = []schema.Datatype{{ID: 5, Name: "MPI_BYTE", Combiner: "named", Bytes: 1, ExtentBytes: 1}}
	run.Events = func(add func(*schema.Events) error) error {
		b := &schema.Events{}
		for r := range ranks {
			operations := map[int]int64{}
			for seq, c := range calls(r) {
				e := call(r, seq, 'a'+int32(c.Site))
				e.Call, e.Class, e.Comm = int16(c.Call), int16(schema.Calls[c.Call].Class), int32(c.Comm)
				if schema.Calls[c.Call].Class == schema.ClassCollective {
					c.setCollective(&e, operations[c.Comm])
					operations[c.Comm]++
				} else {
					c.setMessage(&e)
				}
				b.Append(&e)
			}
		}
		return add(b)
	}
	return run
}

// setMessage fills in the sides of a send or a receive. A side without a peer is one of MPI_PROC_NULL, with its count.
func (c *Call) setMessage(e *schema.Event) {
	element := max(c.Element, 1)
	e.ProcNull = 0
	switch sends := c.Call.Is(schema.FactSends); {
	case c.To != None:
		setSend(e, c.To, c.Tag, c.Bytes)
		e.SendCount /= int64(element)
	case sends:
		setSend(e, 0, c.Tag, 0)
		e.SendPeer, e.SendWorld, e.SendCount = schema.NullInt32, schema.NullInt32, int64(c.Bytes/element)
		e.ProcNull |= schema.ProcNullSend
	}
	received := cmp.Or(c.Received, c.Bytes)
	if c.From == None && c.Call.Is(schema.FactReceives) {
		e.RecvTag, e.RecvCount, e.RecvDatatype, e.RecvBytes = int32(c.Tag), int64(received/element), 5, 0
		e.ProcNull |= schema.ProcNullRecv
	}
	if c.From != None {
		e.RecvPeer, e.RecvWorld, e.RecvTag = int32(c.From), int32(c.From), int32(c.Tag)
		e.RecvCount, e.RecvDatatype, e.RecvBytes = int64(received/element), 5, int64(received)
	}
}

// setCollective fills in what a rank gives to a collective operation, the n-th of its communicator. Bytes of a scatter
// are those for all ranks, Received those for each.
func (c *Call) setCollective(e *schema.Event, n int64) {
	e.Instance = n
	count := int64(c.Bytes / max(c.Element, 1))
	if c.Call == schema.CallScatter || c.Call == schema.CallScatterv {
		e.RootWorld = int32(c.Root)
		e.RecvCount, e.RecvDatatype, e.RecvBytes = int64(c.Received/max(c.Element, 1)), 5, int64(c.Received)
		if e.SendBytes = 0; c.Root == int(e.Rank) {
			e.SendCount, e.SendDatatype, e.SendBytes = e.RecvCount, 5, int64(c.Bytes)
		}
		if c.Call == schema.CallScatterv && c.Root == int(e.Rank) {
			e.SendCount = count
		}
		return
	}
	if c.Root != None {
		e.RootWorld = int32(c.Root)
	}
	e.SendCount, e.SendDatatype, e.SendBytes = count, 5, int64(c.Bytes)
	if c.Root != None { // a broadcast, see schema.CollectiveBytes
		e.RecvBytes = 0
		if c.Root != int(e.Rank) {
			e.SendBytes, e.RecvCount, e.RecvDatatype, e.RecvBytes = 0, count, 5, int64(c.Bytes)
		}
	}
	if c.Call == schema.CallAllreduce {
		e.ReduceOp = int16(schema.OpSum)
	}
}
