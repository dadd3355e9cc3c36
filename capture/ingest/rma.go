package ingest

import (
	"fmt"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// rma is the RMA slot behind the call, nil when the call never returned.
func (g *group) rma() (*spool.RMA, error) {
	for i := 1; i < len(g.slots) && g.slots[0].T1 != 0; i++ {
		if g.slots[i].Kind == spool.KindRMA {
			return g.slots[i].AsRMA(), nil
		}
	}
	if g.slots[0].T1 != 0 {
		return nil, fmt.Errorf("no RMA slot follows")
	}
	return nil, nil
}

// io is the IO slot behind the call, nil when the call never returned.
func (g *group) io() (*spool.IO, error) {
	for i := 1; i < len(g.slots) && g.slots[0].T1 != 0; i++ {
		if g.slots[i].Kind == spool.KindIO {
			return g.slots[i].AsIO(), nil
		}
	}
	if g.slots[0].T1 != 0 {
		return nil, fmt.Errorf("no IO slot follows")
	}
	return nil, nil
}

// maker is the row that made a window or opened a file, and the communicator it is of.
type maker struct {
	seq  int64
	comm int32
}

// madeBy puts into the row which row made its window or opened its file.
func madeBy(made map[int32]maker, number int32, r *schema.Event) error {
	m, ok := made[number]
	if ok && m.comm != r.Comm {
		return fmt.Errorf("window or file %d is of another communicator", number)
	}
	if ok {
		r.InitSeq = m.seq
	}
	return nil
}

// makes makes the row of a window constructor or of MPI_File_open: a collective operation on its communicator.
func (d *decoder) makes(c *spool.Call, r *schema.Event, made map[int32]maker) {
	for i := 1; i < len(d.g.slots) && c.T1 != 0; i++ {
		if d.g.slots[i].Kind == spool.KindColl {
			r.Instance = int64(d.g.slots[i].AsColl().Instance)
		}
	}
	if c.T1 != 0 && c.Count >= 0 {
		made[int32(c.Count)] = maker{r.Seq, r.Comm}
	}
	d.put()
}

// window makes the row of a call on a window that moves no data; it may be about one target.
func (d *decoder) window(c *spool.Call, r *schema.Event, v int32) error {
	s, err := d.g.rma()
	if err == nil && s != nil {
		err = madeBy(d.windows, s.Window, r)
	}
	if err != nil {
		return err
	}
	if c.Flags&spool.FlagProcNull != 0 {
		r.ProcNull = schema.ProcNullSend
	} else if c.Peer != schema.NullInt32 {
		r.ProcNull = 0
		if r.SendPeer, r.SendWorld, err = d.peer(v, c.Peer); err != nil {
			return err
		}
	}
	d.put()
	return nil
}

// oneSided makes the row of a call that moves data between this rank and a target's window.
func (d *decoder) oneSided(c *spool.Call, r *schema.Event, v int32) error {
	s, err := d.g.rma()
	if err == nil && s != nil {
		err = madeBy(d.windows, s.Window, r)
	}
	if err != nil {
		return err
	}
	send, recv := schema.Sides(schema.CallID(c.Call))
	if s != nil {
		if s.Op != 0xffff {
			if int(s.Op) >= len(schema.OpNames) {
				return fmt.Errorf("reduction operation %d", s.Op)
			}
			r.ReduceOp = int16(s.Op)
		}
	}
	r.ProcNull = 0
	if send {
		err = d.toTarget(c, r, v)
	}
	if err == nil && recv {
		err = d.fromTarget(c, s, send, r, v)
	}
	if err != nil {
		return err
	}
	d.post(c, r, pending{serial: c.Req, epoch: d.epoch, row: int32(d.n), recv: -1, send: -1, view: v})
	return nil
}

// toTarget fills in what goes to the target: the origin argument, nothing with MPI_NO_OP.
func (d *decoder) toTarget(c *spool.Call, r *schema.Event, v int32) (err error) {
	r.SendCount, r.SendBuffer = c.Count, address(c.Buf)
	if r.SendDatatype, r.SendBytes, err = d.sized(c.Dtype, c.Count); err != nil {
		return err
	}
	if r.ReduceOp == int16(schema.OpNoOp) {
		r.SendBytes = 0
	}
	if c.Flags&spool.FlagProcNull != 0 {
		r.ProcNull, r.SendBytes = r.ProcNull|schema.ProcNullSend, 0
	} else if c.Peer != schema.NullInt32 {
		r.SendPeer, r.SendWorld, err = d.peer(v, c.Peer)
	}
	return err
}

// fromTarget fills in what comes back: the result argument of a call that sends as well, else the origin argument.
func (d *decoder) fromTarget(c *spool.Call, s *spool.RMA, result bool, r *schema.Event, v int32) (err error) {
	number := int32(schema.NullInt32)
	switch {
	case !result:
		number, r.RecvCount, r.RecvBuffer = c.Dtype, c.Count, address(c.Buf)
	case s != nil:
		number, r.RecvCount, r.RecvBuffer = s.Rdtype, s.Rcount, address(s.Rbuf)
	}
	if r.RecvDatatype, r.RecvBytes, err = d.sized(number, r.RecvCount); err != nil {
		return err
	}
	if c.T1 == 0 {
		r.RecvBytes = schema.NullInt64
	}
	if c.Flags&spool.FlagProcNull != 0 {
		r.ProcNull, r.RecvBytes = r.ProcNull|schema.ProcNullRecv, 0
	} else if c.Peer != schema.NullInt32 {
		r.RecvPeer, r.RecvWorld, err = d.peer(v, c.Peer)
	}
	return err
}

// file makes the row of a call on a file that moves no data.
func (d *decoder) file(r *schema.Event) error {
	s, err := d.g.io()
	if err == nil && s != nil {
		err = madeBy(d.opened, s.File, r)
	}
	if err != nil {
		return err
	}
	d.put()
	return nil
}

// transfer makes the row of a read or a write. What is completed later gets its bytes then.
func (d *decoder) transfer(c *spool.Call, r *schema.Event, v int32) error {
	s, err := d.g.io()
	if err == nil && s != nil {
		err = madeBy(d.opened, s.File, r)
	}
	if err != nil {
		return err
	}
	bytes := int64(schema.NullInt64)
	if s != nil {
		if bytes = s.Bytes; bytes < 0 && bytes != schema.NullInt64 {
			return fmt.Errorf("%d bytes", bytes)
		}
	}
	id, _, err := d.sized(c.Dtype, schema.NullInt64)
	if err != nil {
		return err
	}
	if send, _ := schema.Sides(schema.CallID(c.Call)); send {
		r.SendCount, r.SendDatatype, r.SendBytes, r.SendBuffer = c.Count, id, bytes, address(c.Buf)
	} else {
		r.RecvCount, r.RecvDatatype, r.RecvBytes, r.RecvBuffer = c.Count, id, bytes, address(c.Buf)
	}
	d.post(c, r, pending{serial: c.Req, epoch: d.epoch, row: int32(d.n), recv: -1, send: -1, view: v})
	return nil
}

// transferred puts into row i of the epoch what a read or write that is complete now has moved.
func (d *decoder) transferred(i int, e spool.DoneEntry) {
	if e.Flags&(spool.FlagCancelled|spool.FlagNoStatus) != 0 || e.Bytes < 0 {
		return
	}
	if send, _ := schema.Sides(schema.CallID(d.events.Call[i])); send {
		d.events.SendBytes[i] = e.Bytes
	} else {
		d.events.RecvBytes[i] = e.Bytes
	}
}

// endSplit makes the row of the end of a split collective, which completes the row that began it.
func (d *decoder) endSplit(c *spool.Call, r *schema.Event) error {
	s, err := d.g.io()
	if err == nil && s != nil {
		err = madeBy(d.opened, s.File, r)
	}
	if err != nil {
		return err
	}
	d.complete(c, r)
	return nil
}
