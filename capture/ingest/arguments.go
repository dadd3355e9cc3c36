package ingest

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// These methods read the arguments of a call. They turn the process's own numbers, and ranks in communicators, into
// those of the run. In a lenient call, a number that is not defined becomes null.

// findComm looks up the communicator of the call and puts it into the row.
func (c *call) findComm(r *schema.Event) error {
	c.view = -1
	if c.slot.Comm == schema.NullInt32 {
		return nil
	}
	view, ok := c.handles.Comm(c.slot.Comm)
	if !ok {
		if c.lenient {
			return nil
		}
		return fmt.Errorf("communicator %d is not defined", c.slot.Comm)
	}
	c.view = view
	r.Comm = c.handles.View(view).ID
	return nil
}

// peer returns a rank that the program named, and its world rank.
func (c *call) peer(peer int32) (rank, world int32, err error) {
	world, err = c.handles.WorldRank(c.view, peer)
	if err != nil && c.lenient {
		return schema.NullInt32, schema.NullInt32, nil
	}
	return peer, world, err
}

// sized returns the run's id of a datatype, and the number of bytes of count elements.
func (c *call) sized(number int32, count int64) (id int32, bytes int64, err error) {
	if number == schema.NullInt32 {
		return schema.NullInt32, schema.NullInt64, nil
	}
	id, size, ok := c.handles.Type(number)
	if !ok {
		if c.lenient { // the definition was never written
			return schema.NullInt32, schema.NullInt64, nil
		}
		return 0, 0, fmt.Errorf("datatype %d is not defined", number)
	}
	if count == schema.NullInt64 {
		return id, schema.NullInt64, nil
	}
	hi, lo := bits.Mul64(uint64(count), uint64(size))
	if count < 0 || hi != 0 || lo > math.MaxInt64 {
		if c.lenient {
			return id, schema.NullInt64, nil
		}
		return 0, 0, fmt.Errorf("%d elements of %d bytes", count, size)
	}
	return id, int64(lo), nil
}

// setRequest puts the request of the call into the row.
func (c *call) setRequest(r *schema.Event) {
	if c.slot.Req != 0 {
		r.Request = int64(c.slot.Req)
	}
}

// setSend puts what the call sends, and to whom, into the row.
func (c *call) setSend(r *schema.Event) (err error) {
	s := c.slot
	r.ProcNull, r.SendTag = 0, s.Tag
	if err := c.setSendBuffer(r); err != nil {
		return err
	}
	if s.Flags&spool.FlagProcNull != 0 {
		r.ProcNull, r.SendBytes = schema.ProcNullSend, 0
		return nil
	}
	r.SendPeer, r.SendWorld, err = c.peer(s.Peer)
	return err
}

// setSendBuffer puts the send buffer of the CALL slot into the row.
func (c *call) setSendBuffer(r *schema.Event) (err error) {
	r.SendCount, r.SendBuffer = c.slot.Count, address(c.slot.Buf)
	r.SendDatatype, r.SendBytes, err = c.sized(c.slot.Dtype, c.slot.Count)
	return err
}

// setSource puts into the row how a receive was posted, and its source and tag: as posted, or as received.
func (c *call) setSource(flags uint8, peer, tag int32, r *schema.Event) (err error) {
	r.PostedAny = int32(flags) & (spool.FlagAnySource | spool.FlagAnyTag) // the same bits
	r.RecvTag = tag
	if flags&spool.FlagProcNull != 0 {
		r.ProcNull |= schema.ProcNullRecv
		return nil
	}
	if peer != schema.NullInt32 {
		r.RecvPeer, r.RecvWorld, err = c.peer(peer)
	}
	return err
}

// setRecvBuffer puts the receive buffer of the CALL slot into the row.
func (c *call) setRecvBuffer(r *schema.Event) (err error) {
	r.RecvCount, r.RecvBuffer = c.slot.Count, address(c.slot.Buf)
	r.RecvDatatype, _, err = c.sized(c.slot.Dtype, schema.NullInt64)
	return err
}

func address(buf uint64) int64 {
	if buf == 0 {
		return schema.NullInt64
	}
	return int64(buf)
}
