package otf2

import (
	"fmt"

	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

// fill puts a record into the current call.
func (r *reader) fill(e *event) error {
	c, f := r.current, &e.fields
	if err := checkMessage(e.id, &c.Row); err != nil {
		return err
	}
	s, thread := r.shared, r.thread
	switch e.id {
	case evtSend, evtIsend:
		peer, comm, tag, bytes := f.uint32(), f.uint32(), f.uint32(), f.uint64()
		row := &c.Row
		if e.id == evtIsend {
			row = r.post(f.uint64(), schema.ClassSend)
		}
		return r.send(row, peer, comm, tag, bytes)
	case evtIrecvRequest:
		r.post(e.number, schema.ClassRecv)
	case evtImrecvRequest:
		message, request := f.uint64(), f.uint64()
		r.post(request, schema.ClassRecv)
		r.later(func(*timed.Call) { s.imrecvs[threadKey{thread, request}] = s.take(s.probes, thread, message) })
	case evtRecv, evtIrecv:
		peer, comm, tag, bytes := f.uint32(), f.uint32(), f.uint32(), f.uint64()
		if e.id == evtRecv {
			return r.receive(&c.Row, peer, comm, tag, bytes)
		}
		got, err := r.received(peer, comm, tag, bytes)
		c.Ends = append(c.Ends, timed.Ending{Request: f.uint64(), Received: true, Got: got})
		return err
	case evtIsendComplete, evtCancelled:
		c.Ends = append(c.Ends, timed.Ending{Request: e.number, Cancelled: e.id == evtCancelled})
	case evtProbe:
		r.probed = true
		peer, comm, tag, message := f.uint32(), f.uint32(), f.uint32(), f.uint64()
		err := r.receive(&c.Row, peer, comm, tag, undefined64)
		if message != undefined64 && err == nil {
			m := matched{c.Row.Comm, c.Row.RecvPeer, c.Row.RecvWorld, c.Row.RecvTag}
			r.later(func(*timed.Call) { s.probes[threadKey{thread, message}] = m })
		}
		return err
	case evtMrecv:
		message := f.uint64()
		got := timed.NullOutcome
		err := sized(&got, f.uint64())
		r.later(func(c *timed.Call) {
			s.take(s.probes, thread, message).put(&got)
			got.Receive(&c.Row)
		})
		return err
	case evtImrecv:
		x := timed.Ending{Request: f.uint64(), Got: timed.NullOutcome}
		err := sized(&x.Got, f.uint64())
		at := len(c.Ends)
		c.Ends = append(c.Ends, x)
		r.later(func(c *timed.Call) {
			end := &c.Ends[at]
			s.take(s.imrecvs, thread, end.Request).put(&end.Got)
			end.Received = end.Got.RecvWorld != null32
		})
		return err
	default:
		return r.fillCollective(e)
	}
	return nil
}

// checkMessage rejects the record of a message in a call that has none.
func checkMessage(id uint8, row *schema.Event) error {
	switch id {
	case evtSend, evtIsend, evtRecv, evtProbe, evtMrecv:
		if class := schema.Class(row.Class); class == schema.ClassRMA || class == schema.ClassIO {
			return fmt.Errorf("a message that %s sent or received", schema.CallID(row.Call))
		}
	}
	return nil
}

// post notes a request that the call made, and returns the row for it.
func (r *reader) post(request uint64, class schema.Class) *schema.Event {
	c := r.current
	call := schema.CallID(c.Row.Call)
	c.Posts = append(c.Posts, request)
	row := &c.Row
	if len(c.Posts) > 1 && call == schema.CallStartall {
		c.More = append(c.More, schema.NullEvent)
		row = &c.More[len(c.More)-1]
		row.Rank, row.Thread, row.Call, row.Callsite = r.rank, r.thread, c.Row.Call, c.Row.Callsite
	}
	if call.Is(schema.FactStarts) {
		row.Class = int16(class)
	}
	return row
}

// commCache has the communicator that a location named last.
type commCache struct {
	local uint32
	comm  *timed.Comm // nil: none yet
}

// comm returns the communicator that a record names.
func (r *reader) comm(local uint32) (*timed.Comm, error) {
	if r.comms.comm != nil && r.comms.local == local {
		return r.comms.comm, nil
	}
	c, err := r.findComm(local)
	if err == nil {
		r.comms = commCache{local, c}
	}
	return c, err
}

func (r *reader) findComm(local uint32) (*timed.Comm, error) {
	id := r.local.global(mapComm, local)
	if r.j.self[id] {
		return r.j.comms.Self(r.rank), nil
	}
	c, ok := r.j.commOf[id]
	if !ok {
		return nil, fmt.Errorf("communicator %d is not defined", id)
	}
	if c.Has(r.rank) {
		return c, nil
	}
	return nil, fmt.Errorf("rank %d is no member of communicator %d", r.rank, id)
}

// peer returns a communicator and the world rank of one of its ranks.
func (r *reader) peer(local, rank uint32) (id, world int32, err error) {
	c, err := r.comm(local)
	if err != nil {
		return 0, 0, err
	}
	world, ok := c.Peer(r.rank, int64(rank))
	if !ok {
		return 0, 0, fmt.Errorf("rank %d is no rank of the communicator, which has %d", rank, len(c.Groups[0]))
	}
	return c.ID, world, nil
}

// send fills the send side of a row.
func (r *reader) send(row *schema.Event, peer, comm, tag uint32, bytes uint64) (err error) {
	if fault(bytes) {
		return fmt.Errorf("a message of %d bytes", bytes)
	}
	row.SendPeer, row.SendTag, row.SendBytes = int32(peer), int32(tag), int64(bytes)
	row.Comm, row.SendWorld, err = r.peer(comm, peer)
	return err
}

// receive fills the receive side of a row.
func (r *reader) receive(row *schema.Event, peer, comm, tag uint32, bytes uint64) error {
	got, err := r.received(peer, comm, tag, bytes)
	got.Receive(row)
	return err
}

// received returns what a record says about a message. A probe has no bytes.
func (r *reader) received(peer, comm, tag uint32, bytes uint64) (got timed.Outcome, err error) {
	got = timed.NullOutcome
	got.RecvPeer, got.RecvTag = int32(peer), int32(tag)
	if bytes != undefined64 {
		if fault(bytes) {
			return got, fmt.Errorf("a message of %d bytes", bytes)
		}
		got.RecvBytes = int64(bytes)
	}
	got.Comm, got.RecvWorld, err = r.peer(comm, peer)
	return got, err
}

// fault reports whether a number of bytes is too large to be real.
func fault(bytes uint64) bool { return bytes >= 1<<50 }

// fillCollective puts a record of a collective operation into the current call.
func (r *reader) fillCollective(e *event) error {
	c, f := r.current, &e.fields
	switch e.id {
	case evtCollEnd:
		call := collectiveCall(*f)
		f.uint8()
		comm, root, sent, received := f.uint32(), f.uint32(), f.uint64(), f.uint64()
		got, err := r.collective(call, comm, root, sent, received)
		if class := schema.Class(c.Row.Class); class == schema.ClassCollective || class == schema.ClassComplete {
			got.Collect(&c.Row)
		} else {
			c.Row.Comm = got.Comm
		}
		return err
	case evtNBCRequest:
		r.post(f.uint64(), schema.ClassCollective)
	case evtNBCComplete:
		call := collectiveCall(*f)
		f.uint8()
		comm, root, sent, received := f.uint32(), f.uint32(), f.uint64(), f.uint64()
		got, err := r.collective(call, comm, root, sent, received)
		c.Ends = append(c.Ends, timed.Ending{Request: f.uint64(), Collected: true, Got: got})
		return err
	default:
		return r.fillOneSided(e)
	}
	return nil
}

// Roots on an intercommunicator that are in the group of the rank: itself, or another one.
const rootSelf, rootThisGroup = 0xfffffffe, 0xfffffffd

// collective returns what a record says about a collective operation. A communicator that the operation itself
// destroys is still defined.
func (r *reader) collective(call schema.CallID, comm, root uint32, sent, received uint64) (got timed.Outcome,
	err error) {
	got = timed.NullOutcome
	c, err := r.comm(comm)
	if err != nil {
		return got, err
	}
	got.Comm = c.ID
	if fault(sent) || fault(received) {
		return got, fmt.Errorf("a collective operation of %d and %d bytes", sent, received)
	}
	got.SendBytes, got.RecvBytes = int64(sent), int64(received)
	if root == rootSelf {
		got.RootWorld = r.rank
	} else if world, ok := c.Peer(r.rank, int64(root)); ok { // else none, or in the rank's own group
		got.RootWorld = world
	}
	if r.j.scoreP && !c.Inter() {
		x := counted{call, int64(len(c.Groups[0])), int64(c.RankOf(r.rank)), got.RootWorld == r.rank, got.SendBytes,
			got.RecvBytes}
		var how fit
		got.SendBytes, got.RecvBytes, how = x.ownBytes()
		r.counts.fits[how]++
	}
	return got, nil
}

// fillOneSided puts a record of one-sided communication or I/O into the current call.
func (r *reader) fillOneSided(e *event) error {
	c, f := r.current, &e.fields
	switch e.id {
	case evtWinCreate, evtWinDestroy:
		r.makes = e.id == evtWinCreate
		return r.window(f.uint32())
	case evtRmaCollEnd:
		f.uint8()
		f.uint32()
		return r.window(f.uint32())
	case evtRmaSync, evtRmaReleaseLock:
		win, remote := f.uint32(), f.uint32()
		return r.synchronise(win, remote)
	case evtRmaRequestLock, evtRmaAcquireLock:
		win, remote, _, kind := f.uint32(), f.uint32(), f.uint64(), f.uint8()
		if schema.CallID(c.Row.Call) == schema.CallWinLock {
			c.Row.Label = [2]string{schema.LabelExclusive, schema.LabelShared}[min(kind, 1)]
		}
		return r.synchronise(win, remote)
	case evtRmaPut, evtRmaGet:
		win, remote, bytes, id := f.uint32(), f.uint32(), f.uint64(), f.uint64()
		r.begins(accessRequest | id)
		return r.access(win, remote, bytes, bytes)
	case evtRmaAtomic:
		win, remote, _, sent, received, id := f.uint32(), f.uint32(), f.uint8(), f.uint64(), f.uint64(), f.uint64()
		r.begins(accessRequest | id)
		return r.access(win, remote, sent, received)
	case evtRmaCompleteNonBlocking:
		f.uint32()
		r.completes(accessRequest|f.uint64(), nil)
	case evtIoCreate:
		r.makes = true
		return r.file(f.uint32())
	}
	return nil
}

// The numbers of one-sided accesses and of I/O operations are not those of requests.
const accessRequest, operationRequest = 1 << 62, 1 << 63

// synchronise notes the window of a call, and the target if it is a lock, an unlock or a flush of one rank.
func (r *reader) synchronise(win, remote uint32) error {
	if err := r.window(win); err != nil {
		return err
	}
	call := schema.CallID(r.current.Row.Call)
	if remote == undefined32 || !call.IsAny(schema.FactLock|schema.FactUnlock|schema.FactFlush) {
		return nil
	}
	world, err := r.target(remote)
	row := &r.current.Row
	row.ProcNull, row.SendPeer, row.SendWorld = 0, int32(remote), world
	return err
}

// target returns the world rank of a rank of the window's communicator.
func (r *reader) target(remote uint32) (int32, error) {
	comm, err := r.globalComm(r.j.windows[r.current.Window].comm)
	if err != nil {
		return null32, err
	}
	world, ok := comm.Peer(r.rank, int64(remote))
	if !ok {
		return null32, fmt.Errorf("the target, rank %d, is no rank of the window's communicator", remote)
	}
	return world, nil
}

// window notes the window of the call and its communicator.
func (r *reader) window(local uint32) error {
	c := r.current
	id := r.local.global(mapWindow, local)
	w, ok := r.j.windows[id]
	if !ok {
		return fmt.Errorf("window %d is not defined", id)
	}
	comm, err := r.globalComm(w.comm)
	if err != nil {
		return err
	}
	c.Window, c.Row.Comm = id, comm.ID
	return nil
}

// globalComm returns the communicator with a global id.
func (r *reader) globalComm(id uint32) (*timed.Comm, error) {
	if r.j.self[id] {
		return r.j.comms.Self(r.rank), nil
	}
	if c, ok := r.j.commOf[id]; ok {
		return c, nil
	}
	return nil, fmt.Errorf("communicator %d is not defined", id)
}

// access fills the sides of a one-sided call.
func (r *reader) access(win, remote uint32, sent, received uint64) error {
	if err := r.window(win); err != nil {
		return err
	}
	if fault(sent) || fault(received) {
		return fmt.Errorf("one-sided communication of %d and %d bytes", sent, received)
	}
	row := &r.current.Row
	world, err := r.target(remote)
	if err != nil {
		return err
	}
	send, recv := schema.Sides(schema.CallID(row.Call))
	row.ProcNull = 0
	if send {
		row.SendPeer, row.SendWorld, row.SendBytes = int32(remote), world, int64(sent)
	}
	if recv {
		row.RecvPeer, row.RecvWorld, row.RecvBytes = int32(remote), world, int64(received)
	}
	return nil
}

// file notes the file of the call, its name and its communicator.
func (r *reader) file(local uint32) error {
	c := r.current
	id := r.local.global(mapHandle, local)
	h := r.j.handles[id]
	if schema.Class(c.Row.Class) != schema.ClassIO {
		return nil // files that other calls open
	}
	c.Handle = id
	if name := r.j.strings[r.j.files[h.file]]; name != "" && r.makes {
		c.Row.Label = name
	}
	if comm, err := r.globalComm(h.comm); err == nil {
		c.Row.Comm = comm.ID
	}
	return nil
}

// operation takes a record of an I/O operation in a call of MPI-IO. Its bytes are those moved; of a nonblocking
// operation, those requested.
func (r *reader) operation(e *event) {
	f := &e.fields
	_ = r.file(f.uint32()) // never fails
	switch e.id {
	case evtIoBegin:
		f.uint8()
		f.uint32()
		if bytes := f.uint64(); schema.CallID(r.current.Row.Call).Is(schema.FactMakesRequest) {
			moves(&r.current.Row, bytes)
		}
		r.begins(operationRequest | f.uint64())
	case evtIoComplete:
		bytes := f.uint64()
		r.completes(operationRequest|f.uint64(), func(c *timed.Call) { moves(&c.Row, bytes) })
	}
}

// moves adds the bytes of an I/O operation to the row of the call.
func moves(row *schema.Event, bytes uint64) {
	if fault(bytes) {
		return
	}
	send, recv := schema.Sides(schema.CallID(row.Call))
	if send {
		row.SendBytes = max(row.SendBytes, 0) + int64(bytes)
	}
	if recv {
		row.RecvBytes = max(row.RecvBytes, 0) + int64(bytes)
	}
}
