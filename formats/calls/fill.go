package calls

import (
	"fmt"

	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

// Fill makes the call that package timed takes from the arguments of the rank's next call. Calls that make groups have
// no row: Fill notes what they make and returns false.
func (r *Rank) Fill(a *Args, c *timed.Call) (bool, error) {
	if a.MakesGroup != NoGroup {
		r.group(a)
		return false, nil
	}
	c.Reset()
	row := &c.Row
	row.Rank, row.Thread, row.Call, row.Class = r.me, a.Thread, int16(a.Call), int16(schema.Calls[a.Call].Class)
	row.StartNs, row.EndNs = a.StartNs, a.EndNs
	c.Poll = a.Failed && a.EndNs != null64
	var err error
	switch schema.Class(row.Class) {
	case schema.ClassSend, schema.ClassRecv, schema.ClassSendrecv, schema.ClassProbe:
		err = r.message(a, c)
	case schema.ClassComplete:
		if a.Call.Is(schema.FactStarts) {
			r.start(a, c)
		} else {
			r.end(a, c)
		}
	case schema.ClassCollective:
		err = r.collective(a, c)
	case schema.ClassComm:
		err = r.constructor(a, c)
	case schema.ClassRMA:
		err = r.oneSided(a, c)
	case schema.ClassIO:
		err = r.transfer(a, c)
	default:
		if a.Call.Is(schema.FactPersistent | schema.FactPointToPoint) {
			err = r.persistent(a, c)
		}
	}
	return true, err
}

// message fills the sides of a row, and posts the request of a nonblocking call.
func (r *Rank) message(a *Args, c *timed.Call) error {
	call := schema.CallID(c.Row.Call)
	if err := r.sides(a, call, c, &c.Row); err != nil {
		return err
	}
	if call.Is(schema.FactMakesRequest) {
		r.lose(a.Request, c)
		r.serial++
		r.requests[a.Request] = &request{number: r.serial, row: c.Row, atMost: c.AtMost, active: true}
		c.Posts = append(c.Posts, r.serial)
	}
	return nil
}

// lose ends a request whose handle is used again before a call completed it, as far as the trace tells.
func (r *Rank) lose(handle uint64, c *timed.Call) {
	if q, ok := r.requests[handle]; ok && q.active {
		c.Ends = append(c.Ends, timed.Ending{Request: q.number, Lost: true})
	}
}

// Open reports whether a request was made, or started, and not completed.
func (r *Rank) Open(handle uint64) bool {
	q, ok := r.requests[handle]
	return ok && (q.active || q.persistent)
}

// sides fills the send and receive sides of a row as the call's arguments have them.
func (r *Rank) sides(a *Args, call schema.CallID, c *timed.Call, row *schema.Event) error {
	comm, err := r.comm(a.Comm)
	if err != nil {
		return err
	}
	row.Comm, row.ProcNull = comm.ID, 0
	if call.Is(schema.FactSends) {
		if a.Dest == ProcNull {
			row.ProcNull |= schema.ProcNullSend
		} else {
			world, ok := comm.Peer(r.me, a.Dest)
			if !ok {
				return outside("to", a.Dest, comm, r.me)
			}
			row.SendPeer, row.SendWorld, row.SendTag, row.SendBytes = int32(a.Dest), world, int32(a.SendTag), a.Send
		}
	}
	if !call.Is(schema.FactReceives) && !call.Is(schema.FactProbes) {
		return nil
	}
	row.PostedAny = 0
	if a.Source == AnySource {
		row.PostedAny |= schema.AnySource
	}
	if a.RecvTag == AnyTag && a.Source != ProcNull {
		row.PostedAny |= schema.AnyTag
	}
	got := timed.NullOutcome
	got.Comm = row.Comm
	if a.Status != nil && r.arrived(&got, comm, a.Source, a.RecvTag, a.Recv, a.Status) {
		got.Receive(row)
		return nil
	}
	if err := r.posted(row, comm, a); err != nil || call.Is(schema.FactProbes) {
		return err
	}
	row.RecvBytes = a.Recv
	c.AtMost = row.ProcNull&schema.ProcNullRecv == 0
	if !c.AtMost {
		row.RecvBytes = null64
	}
	return nil
}

// posted fills the receive side with what a receive was posted for; what a wildcard stands for stays null.
func (r *Rank) posted(row *schema.Event, comm *timed.Comm, a *Args) error {
	switch a.Source {
	case ProcNull:
		row.ProcNull |= schema.ProcNullRecv
		return nil
	case AnySource:
	default:
		world, ok := comm.Peer(r.me, a.Source)
		if !ok {
			return outside("from", a.Source, comm, r.me)
		}
		row.RecvPeer, row.RecvWorld = int32(a.Source), world
	}
	if a.RecvTag != AnyTag {
		row.RecvTag = int32(a.RecvTag)
	}
	return nil
}

func outside(way string, rank int64, comm *timed.Comm, me int32) error {
	return fmt.Errorf("a message %s rank %d of a communicator of %d ranks", way, rank, len(comm.PeerRanks(me)))
}

// arrived fills in what a status says, and reports whether it did: libraries leave statuses of
// sends, and empty ones, as they are, so a status that contradicts what the receive was posted for is none. bytes is
// the size of its buffer, null64 for none.
func (r *Rank) arrived(got *timed.Outcome, comm *timed.Comm, source, tag, bytes int64, s *Status) bool {
	if source == ProcNull || source != AnySource && source != s.Source ||
		tag != AnyTag && tag != s.Tag && s.Tag != AnyTag {
		return false
	}
	world, ok := comm.Peer(r.me, s.Source)
	if !ok || s.Bytes < 0 || bytes != null64 && s.Bytes > bytes {
		return false
	}
	got.RecvPeer, got.RecvWorld, got.RecvBytes = int32(s.Source), world, s.Bytes
	if s.Tag != AnyTag {
		got.RecvTag = int32(s.Tag)
	} else if tag != AnyTag {
		got.RecvTag = int32(tag)
	}
	return true
}

// end completes requests.
func (r *Rank) end(a *Args, c *timed.Call) {
	for i := range a.Ends {
		e := &a.Ends[i]
		q, ok := r.requests[e.Request]
		if ok && e.Freed && !q.active {
			delete(r.requests, e.Request)
		}
		if !ok || !q.active {
			continue // of a call that the trace does not have, or inactive
		}
		x := timed.Ending{Request: q.number, Lost: e.Freed, Got: timed.NullOutcome}
		receives := q.row.Class == int16(schema.ClassRecv) && q.row.ProcNull == 0
		if s := e.Status; s != nil && receives {
			r.received(q, s, &x)
		}
		c.Ends = append(c.Ends, x)
		if q.persistent && !e.Freed {
			q.active = false
		} else {
			delete(r.requests, e.Request)
		}
	}
}

// received notes the message that a request received, unless its status is no status of it.
func (r *Rank) received(q *request, s *Status, x *timed.Ending) {
	if s.Cancelled {
		x.Cancelled = true
		return
	}
	source, tag := int64(AnySource), int64(AnyTag)
	if q.row.PostedAny&schema.AnySource == 0 {
		source = int64(q.row.RecvPeer)
	}
	if q.row.PostedAny&schema.AnyTag == 0 {
		tag = int64(q.row.RecvTag)
	}
	x.Got.Comm = q.row.Comm
	comm := r.comms.Numbered(q.row.Comm, r.me)
	x.Received = r.arrived(&x.Got, comm, source, tag, q.row.RecvBytes, s)
}

// persistent makes a request that other calls start.
func (r *Rank) persistent(a *Args, c *timed.Call) error {
	call := schema.CallID(c.Row.Call)
	q := &request{row: schema.NullEvent, persistent: true}
	q.row.Class = int16(schema.ClassRecv)
	if call.Is(schema.FactSends) {
		q.row.Class = int16(schema.ClassSend)
	}
	var posted timed.Call
	if err := r.sides(a, call, &posted, &q.row); err != nil {
		return err
	}
	r.lose(a.Request, c)
	r.serial++
	q.atMost, q.init = posted.AtMost, r.serial
	r.requests[a.Request] = q
	c.Makes = r.serial
	return nil
}

// start makes the rows of requests that are started: the first is that of the call.
func (r *Rank) start(a *Args, c *timed.Call) {
	all := a.Requests
	if c.Row.Call == int16(schema.CallStart) {
		all = []uint64{a.Request}
	}
	for _, number := range all {
		q, ok := r.requests[number]
		if !ok || !q.persistent {
			continue
		}
		r.lose(number, c)
		row := q.row
		row.Rank, row.Thread, row.Call = c.Row.Rank, c.Row.Thread, c.Row.Call
		row.StartNs, row.EndNs = c.Row.StartNs, c.Row.EndNs
		if len(c.Posts) > 0 {
			row.StartNs = row.EndNs
			c.More = append(c.More, row)
		} else {
			c.Row = row
		}
		r.serial++
		q.number, q.active = r.serial, true
		c.AtMost = c.AtMost || q.atMost
		c.Posts, c.Inits = append(c.Posts, q.number), append(c.Inits, q.init)
	}
}
