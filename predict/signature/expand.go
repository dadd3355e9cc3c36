package signature

import (
	"fmt"
	"math"
	"slices"

	"github.com/commq/commq/predict/internal/nulls"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// Expand returns the rows of a rank as they are in events, without times, counters, polls, epochs, buffers and hashes.
// Requests are renumbered in the order in which calls make them. It is an error if a call refers to one that is not
// there.
func (s *Signature) Expand(rank int32) ([]schema.Event, error) {
	return s.Expander(rank).Next(math.MaxInt64)
}

// Rows passes the rows of all ranks to add, rank by rank, in batches that are valid until add returns.
func (s *Signature) Rows(add func(*schema.Events) error) error {
	const batch = 1 << 12
	b := &schema.Events{}
	for r := range s.Ranks {
		x := s.Expander(r)
		x.doneLater = findLateCompletions(s, r, batch).doneSeq
		for {
			rows, err := x.Next(batch)
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

// Expander makes the rows of a rank, window by window. Of earlier windows it keeps only what later rows may refer to.
type Expander struct {
	sig        *Signature
	rank       int32
	cursor     Cursor
	seq        int64                     // of the next row
	rows       []schema.Event            // the window
	calls      []*Call                   // of rows
	first      int64                     // seq of rows[0]
	made       []int32                   // calls of each event so far, by node
	kept       map[Position]referencedAt // calls that later ones may refer to
	operations map[int32]int64           // so far, by communicator
	starts     map[int64]int64           // of persistent collectives so far, by seq of the call that made them
	requests   int64                     // made so far
	timed      bool                      // rows get compute times
	last       *template.Node            // the event of the row before; only if timed
	doneLater  map[int64]int64           // done_seq of rows completed in a later window, by seq
}

// referencedAt has the columns of a row that later rows need.
type referencedAt struct{ seq, request, instance int64 }

// Expander returns an expander before the first row of a rank.
func (s *Signature) Expander(rank int32) *Expander {
	s.findReferences()
	return &Expander{sig: s, rank: rank, cursor: s.Cursor(rank), made: make([]int32, len(s.nodes)),
		kept: map[Position]referencedAt{}, operations: map[int32]int64{}, starts: map[int64]int64{}}
}

// Reuse lets the expander write its rows to a slice of an earlier one.
func (x *Expander) Reuse(rows []schema.Event) { x.rows = rows }

// Next returns the next rows, at most window; none at the end. They are valid until Next is called again.
func (x *Expander) Next(window int64) ([]schema.Event, error) {
	x.rows, x.calls, x.first = x.rows[:0], x.calls[:0], x.seq
	for int64(len(x.rows)) < window {
		n, value := x.cursor.Next()
		if n == nil {
			break
		}
		if err := x.expand(n, x.sig.Values[n.ID].Events[value]); err != nil {
			return nil, fmt.Errorf("rank %d, seq %d: %w", x.rank, x.seq, err)
		}
	}
	return x.rows, nil
}

// expand makes the row of a call.
func (x *Expander) expand(n *template.Node, c *Call) error {
	e := newRow(x.sig, x.rank, x.seq, n, c)
	if x.timed {
		e.ComputeNs = drawComputeNs(&x.sig.Values[n.ID], x.rank, x.seq, n.ID, x.made[n.ID], c, n != x.last)
		x.last = n
	}
	if err := x.completeRequests(c, &e); err != nil {
		return err
	}
	init, err := x.resolveMaker(c, &e)
	if err != nil {
		return err
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
		e.Instance = x.operations[e.Comm]
		x.operations[e.Comm]++
	}
	if done, later := x.doneLater[e.Seq]; later {
		e.DoneSeq = done
		delete(x.doneLater, e.Seq)
	}
	if x.sig.referenced[n.ID] {
		x.kept[Position{n.ID, x.made[n.ID]}] = referencedAt{e.Seq, e.Request, e.Instance}
	}
	x.made[n.ID]++
	x.seq++
	x.rows, x.calls = append(x.rows, e), append(x.calls, c)
	return nil
}

// completeRequests sets done_seq of the rows whose requests the call completes, if they are in the window.
func (x *Expander) completeRequests(c *Call, e *schema.Event) error {
	for _, b := range c.Completes {
		for k := range b[2] {
			p := b.Position(x.made, k)
			row, found := x.kept[p]
			if !found {
				return fmt.Errorf("the call completes call %d ago of node %d, which is not there or already completed",
					b[1]-k, b[0])
			}
			if i := row.seq - x.first; i >= 0 {
				x.rows[i].DoneSeq = e.Seq
			}
			if c.Request {
				e.Request = row.request
			}
			if !x.sig.initializes[b[0]] {
				delete(x.kept, p)
			}
		}
	}
	return nil
}

// resolveMaker sets init_seq and request from the call that made the persistent request, and returns the row of Init.
func (x *Expander) resolveMaker(c *Call, e *schema.Event) (init referencedAt, err error) {
	var found bool
	if c.Init != nil {
		if init, found = x.kept[c.Init.Position(x.made, 0)]; !found {
			return init, fmt.Errorf("the call refers to call %d ago of node %d, which is not there", c.Init[1],
				c.Init[0])
		}
		e.InitSeq = init.seq // each start has a request number of its own
	}
	if c.About != nil {
		maker, found := x.kept[c.About.Position(x.made, 0)]
		if !found {
			return init, fmt.Errorf("the call uses the request of call %d ago of node %d, which is not there",
				c.About[1], c.About[0])
		}
		e.Request = maker.request
	}
	return init, nil
}

// findReferences finds the events whose calls others refer to, once.
func (s *Signature) findReferences() {
	if s.referenced != nil {
		return
	}
	s.referenced, s.initializes = make([]bool, len(s.nodes)), make([]bool, len(s.nodes))
	for i := range s.Values {
		for _, c := range s.Values[i].Events {
			for _, b := range c.Completes {
				s.referenced[b[0]] = true
			}
			for _, maker := range [2]*Backref{c.Init, c.About} {
				if maker != nil {
					s.referenced[maker[0]], s.initializes[maker[0]] = true, true
				}
			}
		}
	}
}

// Referenced returns, by node ID, whether calls refer to earlier calls of the event.
func (s *Signature) Referenced() []bool {
	s.findReferences()
	return s.referenced
}

// lateCompletions tells which rows of a rank are completed in a later window than they are made.
type lateCompletions struct {
	rows     int64           // of the rank
	doneSeq  map[int64]int64 // seq of the completing row, by seq of the completed one
	callsite map[int64]int32 // of completing rows, by seq
}

// findLateCompletions goes through the calls of a rank in windows of this many rows.
func findLateCompletions(s *Signature, rank int32, window int64) (late lateCompletions) {
	s.findReferences()
	c, made, open := s.Cursor(rank), make([]int32, len(s.nodes)), map[Position]int64{}
	for n, value := c.Next(); n != nil; n, value = c.Next() {
		call := s.Values[n.ID].Events[value]
		for _, b := range call.Completes {
			for k := range b[2] {
				p := b.Position(made, k)
				if seq, found := open[p]; found && seq/window != late.rows/window {
					if late.doneSeq == nil {
						late.doneSeq, late.callsite = map[int64]int64{}, map[int64]int32{}
					}
					late.doneSeq[seq], late.callsite[late.rows] = late.rows, s.Callsite(n, call)
				}
				delete(open, p)
			}
		}
		if s.referenced[n.ID] && !s.initializes[n.ID] {
			open[Position{n.ID, made[n.ID]}] = late.rows
		}
		made[n.ID]++
		late.rows++
	}
	return late
}

// newRow returns the row of a call without the columns that depend on other calls.
func newRow(s *Signature, rank int32, seq int64, n *template.Node, c *Call) schema.Event {
	sym := &s.Symbols[n.Symbol]
	e := schema.NullEvent
	e.Rank, e.Seq, e.Epoch, e.Thread = rank, seq, 0, c.Thread
	e.Call, e.Class = int16(sym.CallID), int16(schema.Calls[sym.CallID].Class)
	if c.Class != "" {
		e.Class = int16(slices.Index(schema.ClassNames, c.Class))
	}
	e.Comm = c.Comm.Int32()
	e.Callsite = s.Callsite(n, c)
	comm := s.comms[e.Comm]
	e.SendWorld, e.SendPeer = c.Send.peer(rank, comm)
	e.SendTag, e.SendCount, e.SendDatatype, e.SendBytes = c.Send.columns()
	e.RecvWorld, e.RecvPeer = c.Recv.peer(rank, comm)
	e.RecvTag, e.RecvCount, e.RecvDatatype, e.RecvBytes = c.Recv.columns()
	e.RootWorld = nulls.Value(c.Root, schema.NullInt32)
	e.PostedAny = nulls.Value(c.PostedAny, schema.NullInt32)
	e.ProcNull = nulls.Value(c.ProcNull, schema.NullInt32)
	e.ErrorClass = nulls.Value(c.Error, schema.NullInt32)
	e.Label = nulls.Value(c.Label, schema.NullText)
	if c.ReduceOp != "" {
		e.ReduceOp = int16(slices.Index(schema.OpNames, c.ReduceOp))
	}
	return e
}

// peer returns the other side's world rank and its rank in the communicator.
func (s Side) peer(rank int32, comm *Comm) (world, peer int32) {
	switch {
	case len(s) > SideCommPeer:
		return schema.NullInt32, s[SideCommPeer].Int32()
	case !s.HasPeer():
		return schema.NullInt32, schema.NullInt32
	}
	world = (s[SidePeer] + Int(rank)).Int32()
	if comm == nil {
		return world, schema.NullInt32
	}
	return world, comm.peerRank(rank, world)
}

// columns returns the side's columns other than the peer's.
func (s Side) columns() (tag int32, count int64, datatype int32, bytes int64) {
	if len(s) == 0 {
		return schema.NullInt32, schema.NullInt64, schema.NullInt32, schema.NullInt64
	}
	return s[SideTag].Int32(), int64(s[SideCount]), s[SideDatatype].Int32(), int64(s[SideBytes])
}
