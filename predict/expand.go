package predict

import (
	"fmt"
	"math"
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
	s.referred, s.inits = nil, nil
}

// refer finds the events whose calls others refer to, once.
func (s *Signature) refer() {
	if s.referred != nil {
		return
	}
	s.referred, s.inits = make([]bool, len(s.nodes)), make([]bool, len(s.nodes))
	for i := range s.Values {
		for _, c := range s.Values[i].Events {
			for _, q := range c.Completes {
				s.referred[q[0]] = true
			}
			for _, made := range [2]*Completion{c.Init, c.About} {
				if made != nil {
					s.referred[made[0]], s.inits[made[0]] = true, true
				}
			}
		}
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
	x := s.expansion(rank)
	return x.next(math.MaxInt64)
}

// rows gives the rows of all ranks, rank by rank.
func (s *Signature) rows(add func(*schema.Events) error) error {
	const most = 1 << 12
	b := &schema.Events{}
	for r := range s.Ranks {
		_, done, _ := s.late(r, most)
		x := s.expansion(r)
		x.done = done
		for {
			rows, err := x.next(most)
			if err != nil {
				return err
			}
			if len(rows) == 0 {
				break
			}
			b.Resize(0)
			for i := range rows {
				b.Append(&rows[i])
			}
			if err := add(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// expansion makes the rows of a rank, as many at a time as are asked for. It holds of those before what later ones may refer to.
type expansion struct {
	sig       *Signature
	rank      int32
	cursor    cursor
	seq       int64 // of the next row
	rows      []schema.Event
	calls     []*Call          // of rows
	first     int64            // seq of rows[0]
	made      []int32          // calls of each event so far, by node
	kept      map[post]keptRow // that others may refer to
	instances map[int32]int64  // operations of a communicator so far
	starts    map[int64]int64  // of a persistent collective, by the seq of the call that made it
	requests  int64            // so far
	timed     bool             // rows have compute times
	done      map[int64]int64  // done_seq of rows that are completed by later ones than are made together with them
}

// keptRow is what is needed of a row that others refer to.
type keptRow struct{ seq, request, instance int64 }

func (s *Signature) expansion(rank int32) *expansion {
	s.refer()
	return &expansion{sig: s, rank: rank, cursor: s.cursor(rank), made: make([]int32, len(s.nodes)), kept: map[post]keptRow{}, instances: map[int32]int64{}, starts: map[int64]int64{}}
}

// next makes the next rows, at most as many as that; none at the end. They are valid until it is called again.
func (x *expansion) next(rows int64) ([]schema.Event, error) {
	x.rows, x.calls, x.first = x.rows[:0], x.calls[:0], x.seq
	for int64(len(x.rows)) < rows {
		n, value := x.cursor.next()
		if n == nil {
			break
		}
		if err := x.call(n, x.sig.Values[n.ID].Events[value]); err != nil {
			return nil, fmt.Errorf("rank %d, seq %d: %w", x.rank, x.seq, err)
		}
	}
	return x.rows, nil
}

func (x *expansion) call(n *Node, c *Call) error {
	e := x.sig.row(x.rank, x.seq, n, c)
	if x.timed {
		e.ComputeNs = x.sig.computeNs(x.rank, x.seq, n, c)
	}
	for _, q := range c.Completes {
		for k := range q[2] {
			at := x.at(q, k)
			row, there := x.kept[at]
			if !there {
				return fmt.Errorf("the call completes one of node %d, %d calls ago, that is not there, or completed", q[0], q[1]-k)
			}
			if i := row.seq - x.first; i >= 0 {
				x.rows[i].DoneSeq = e.Seq
			}
			if c.Request {
				e.Request = row.request
			}
			if !x.sig.inits[q[0]] {
				delete(x.kept, at)
			}
		}
	}
	var init keptRow
	if c.Init != nil {
		var there bool
		if init, there = x.kept[x.at(*c.Init, 0)]; !there {
			return fmt.Errorf("the call refers to one of node %d, %d calls ago, that is not there", c.Init[0], c.Init[1])
		}
		e.InitSeq = init.seq // each start has a request number of its own
	}
	if c.About != nil {
		made, there := x.kept[x.at(*c.About, 0)]
		if !there {
			return fmt.Errorf("the call is about a request of node %d, %d calls ago, that is not there", c.About[0], c.About[1])
		}
		e.Request = made.request
	}
	if c.Request && e.Request == schema.NullInt64 {
		x.requests++
		e.Request = x.requests
	}
	switch {
	case !c.Instance:
	case c.Init != nil && schema.Class(e.Class) == schema.ClassCollective: // a start, see the column instance
		e.Instance = (init.instance+1)<<32 + x.starts[e.InitSeq]
		x.starts[e.InitSeq]++
	default:
		e.Instance = x.instances[e.Comm]
		x.instances[e.Comm]++
	}
	if done, later := x.done[e.Seq]; later {
		e.DoneSeq = done
		delete(x.done, e.Seq)
	}
	if x.sig.referred[n.ID] {
		x.kept[post{n.ID, x.made[n.ID]}] = keptRow{e.Seq, e.Request, e.Instance}
	}
	x.made[n.ID]++
	x.seq++
	x.rows, x.calls = append(x.rows, e), append(x.calls, c)
	return nil
}

// at is the call that q refers to, or the k-th after it of the same event.
func (x *expansion) at(q Completion, k int32) post { return post{q[0], x.made[q[0]] - 1 - q[1] + k} }

// late finds which rows of a rank are completed in a later window of as many rows, by which, and these rows' call sites; and how many rows there are.
func (s *Signature) late(rank int32, window int64) (rows int64, done map[int64]int64, sites map[int64]int32) {
	s.refer()
	c, made, open := s.cursor(rank), make([]int32, len(s.nodes)), map[post]int64{}
	for n, value := c.next(); n != nil; n, value = c.next() {
		for _, q := range s.Values[n.ID].Events[value].Completes {
			for k := range q[2] {
				at := post{q[0], made[q[0]] - 1 - q[1] + k}
				if seq, there := open[at]; there && seq/window != rows/window {
					if done == nil {
						done, sites = map[int64]int64{}, map[int64]int32{}
					}
					done[seq], sites[rows] = rows, s.callsite(n, s.Values[n.ID].Events[value])
				}
				delete(open, at)
			}
		}
		if s.referred[n.ID] && !s.inits[n.ID] {
			open[post{n.ID, made[n.ID]}] = rows
		}
		made[n.ID]++
		rows++
	}
	return rows, done, sites
}

// callsite is the call site of a call of an event, or null.
func (s *Signature) callsite(n *Node, c *Call) int32 {
	return value(c.Frame, value(s.Symbols[n.Symbol].Frame, schema.NullInt32))
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
	e.Callsite = s.callsite(n, c)
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
