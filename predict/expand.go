package predict

import (
	"fmt"
	"slices"

	"github.com/commq/commq/schema"
)

// link makes what is found by other parts of the signature.
func (s *Signature) link() {
	s.nodes = s.Template.link()
	s.comms = map[int32]*Comm{}
	for i := range s.Comms {
		c := &s.Comms[i]
		s.comms[c.ID] = c
		c.places, c.remotePlaces = c.Members.places(), c.Remote.places()
	}
}

// Walk calls visit with what a rank did, in order: the node of the event and the call.
func (s *Signature) Walk(rank int32, visit func(n *Node, c *Call)) {
	s.walk(s.nodes[0], s.Roots[rank], func(n *Node, value int32) { visit(n, s.Values[n.ID].Events[value]) })
}

// walk calls visit with the events below a node, and the numbers of their calls.
func (s *Signature) walk(n *Node, value int32, visit func(*Node, int32)) {
	if !n.Loop {
		visit(n, value)
		return
	}
	v := &s.Values[n.ID]
	each(v.Loops[value], func(body int32) bool {
		b := v.Bodies[body]
		for i := 0; i < len(b); i += 2 {
			s.walk(n.Children[b[i]], b[i+1], visit)
		}
		return true
	})
}

// cursor goes through what a rank did, call by call, when it is asked to: many ranks side by side.
type cursor struct {
	sig   *Signature
	stack []cursorFrame
}

// cursorFrame is a place in an iteration of a loop, or in its iterations.
type cursorFrame struct {
	node  *Node
	body  []int32 // nil: between iterations
	items []Item
	at    int32
	times int64 // that items come yet, this one too
}

func (s *Signature) cursor(rank int32) cursor {
	root := s.nodes[0]
	return cursor{s, []cursorFrame{{node: root, items: s.Values[root.ID].Loops[s.Roots[rank]], times: 1}}}
}

// next is the event of the next call, and its number there; nil at the end.
func (c *cursor) next() (*Node, int32) {
	for len(c.stack) > 0 {
		f := &c.stack[len(c.stack)-1]
		v := &c.sig.Values[f.node.ID]
		switch {
		case f.body != nil && int(f.at) < len(f.body):
			n, value := f.node.Children[f.body[f.at]], f.body[f.at+1]
			f.at += 2
			if !n.Loop {
				return n, value
			}
			c.stack = append(c.stack, cursorFrame{node: n, items: c.sig.Values[n.ID].Loops[value], times: 1})
		case f.body == nil && int(f.at) < len(f.items):
			x := &f.items[f.at]
			f.at++
			if x.Times > 0 {
				c.stack = append(c.stack, cursorFrame{node: f.node, items: x.Items, times: x.Times})
			} else {
				c.stack = append(c.stack, cursorFrame{node: f.node, body: v.Bodies[x.Value]})
			}
		case f.times > 1:
			f.times, f.at = f.times-1, 0
		default:
			c.stack = c.stack[:len(c.stack)-1]
		}
	}
	return nil, 0
}

// Expand gives back the rows of a rank as they are in events, but for times, counters, polls, epochs, buffers and hashes. Requests are numbered
// anew, in the order in which calls make them. It is an error when a call refers to one that is not there.
func (s *Signature) Expand(rank int32) ([]schema.Event, error) {
	x := expansion{sig: s, rank: rank, made: make([][]int64, len(s.nodes)), instances: map[int32]int64{}, starts: map[int64]int64{}}
	s.Walk(rank, x.call)
	return x.rows, x.err
}

// expansion makes the rows of a rank.
type expansion struct {
	sig       *Signature
	rank      int32
	rows      []schema.Event
	made      [][]int64       // seqs of the calls of an event, by node
	instances map[int32]int64 // operations of a communicator so far
	starts    map[int64]int64 // of a persistent collective, by the seq of the call that made it
	requests  int64           // so far
	err       error           // the first
}

func (x *expansion) call(n *Node, c *Call) {
	if x.err != nil {
		return
	}
	if x.err = x.refers(c); x.err != nil {
		return
	}
	e := x.sig.row(x.rank, int64(len(x.rows)), n, c)
	for _, q := range c.Completes {
		for k := range q[2] {
			row := &x.rows[x.seq(q, k)]
			row.DoneSeq = e.Seq
			if c.Request {
				e.Request = row.Request
			}
		}
	}
	if c.Init != nil {
		e.InitSeq = x.seq(*c.Init, 0)
		if c.Request {
			e.Request = x.rows[e.InitSeq].Request
		}
	}
	if c.Request && e.Request == schema.NullInt64 {
		x.requests++
		e.Request = x.requests
	}
	switch {
	case !c.Instance:
	case c.Init != nil && schema.Class(e.Class) == schema.ClassCollective: // a start, see the column instance
		e.Instance = (x.rows[e.InitSeq].Instance+1)<<32 + x.starts[e.InitSeq]
		x.starts[e.InitSeq]++
	default:
		e.Instance = x.instances[e.Comm]
		x.instances[e.Comm]++
	}
	x.made[n.ID] = append(x.made[n.ID], e.Seq)
	x.rows = append(x.rows, e)
}

// refers says whether all calls that a call refers to are there.
func (x *expansion) refers(c *Call) error {
	for _, q := range c.Completes {
		if int(q[1]) >= len(x.made[q[0]]) {
			return fmt.Errorf("rank %d, seq %d: the call completes one of node %d, %d calls ago, and there are %d", x.rank, len(x.rows), q[0], q[1], len(x.made[q[0]]))
		}
	}
	if q := c.Init; q != nil && int(q[1]) >= len(x.made[q[0]]) {
		return fmt.Errorf("rank %d, seq %d: the call refers to one of node %d, %d calls ago, and there are %d", x.rank, len(x.rows), q[0], q[1], len(x.made[q[0]]))
	}
	return nil
}

// seq is the row that a call refers to, or the k-th after it of the same event.
func (x *expansion) seq(q Completion, k int32) int64 {
	made := x.made[q[0]]
	return made[int32(len(made))-1-q[1]+k]
}

// row is the row of a call, but for what depends on others.
func (s *Signature) row(rank int32, seq int64, n *Node, c *Call) schema.Event {
	sym := &s.Symbols[n.Symbol]
	e := schema.NullEvent
	e.Rank, e.Seq, e.Epoch, e.Thread = rank, seq, 0, c.Thread
	e.Call, e.Class = int16(sym.call), int16(schema.Calls[sym.call].Class)
	if c.Class != "" {
		e.Class = int16(slices.Index(schema.ClassNames, c.Class))
	}
	e.Comm = c.Comm.int32()
	e.Callsite = value(c.Frame, value(sym.Frame, schema.NullInt32))
	comm := s.comms[e.Comm]
	e.SendWorld, e.SendPeer = c.Send.peer(rank, comm)
	e.SendTag, e.SendCount, e.SendDatatype, e.SendBytes = c.Send.rest()
	e.RecvWorld, e.RecvPeer = c.Recv.peer(rank, comm)
	e.RecvTag, e.RecvCount, e.RecvDatatype, e.RecvBytes = c.Recv.rest()
	e.RootWorld, e.PostedAny, e.ProcNull = value(c.Root, schema.NullInt32), value(c.PostedAny, schema.NullInt32), value(c.ProcNull, schema.NullInt32)
	e.ErrorClass, e.Label = value(c.Error, schema.NullInt32), value(c.Label, schema.NullText)
	if c.ReduceOp != "" {
		e.ReduceOp = int16(slices.Index(schema.OpNames, c.ReduceOp))
	}
	return e
}

// value is what a pointer points at, or null.
func value[T any](p *T, null T) T {
	if p == nil {
		return null
	}
	return *p
}

// peer is the other side's world rank and its rank in the communicator.
func (s Side) peer(rank int32, comm *Comm) (world, peer int32) {
	switch {
	case len(s) > SideCommPeer:
		return schema.NullInt32, s[SideCommPeer].int32()
	case len(s) == 0 || s[SidePeer] == null:
		return schema.NullInt32, schema.NullInt32
	}
	world = (s[SidePeer] + Int(rank)).int32()
	if comm == nil {
		return world, schema.NullInt32
	}
	return world, comm.peer(rank, world)
}

func (s Side) rest() (tag int32, count int64, datatype int32, bytes int64) {
	if len(s) == 0 {
		return schema.NullInt32, schema.NullInt64, schema.NullInt32, schema.NullInt64
	}
	return s[SideTag].int32(), int64(s[SideCount]), s[SideDatatype].int32(), int64(s[SideBytes])
}

// peer is the rank in a communicator that a world rank has for another one: in the other group of an intercommunicator.
func (c *Comm) peer(rank, world int32) int32 {
	group := &c.places
	if len(c.Remote) > 0 {
		if _, mine := c.places[rank]; mine {
			group = &c.remotePlaces
		}
	}
	if place, known := (*group)[world]; known {
		return place
	}
	return schema.NullInt32
}
