package ingest

import (
	"fmt"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// objects are the windows that a rank made and the files that it opened. Their methods fill in the rows of calls on
// them.
type objects struct {
	windows map[int32]maker // by the process's number
	files   map[int32]maker // likewise
}

// maker is the row that made a window or opened a file, and its communicator.
type maker struct {
	seq  int64
	comm int32
}

// setMaker sets in the row which row made its window or opened its file.
func setMaker(made map[int32]maker, number int32, r *schema.Event) error {
	m, ok := made[number]
	if ok && m.comm != r.Comm {
		return fmt.Errorf("window or file %d is on another communicator", number)
	}
	if ok {
		r.InitSeq = m.seq
	}
	return nil
}

// addMade fills in the row of a window constructor or of MPI_File_open, a collective operation on its communicator,
// and adds the row to made.
func addMade(made map[int32]maker, c *call, r *schema.Event) {
	if coll := c.group.coll(); coll != nil {
		r.Instance = int64(coll.Instance)
	}
	if c.slot.T1 != 0 && c.slot.Count >= 0 {
		made[int32(c.slot.Count)] = maker{r.Seq, r.Comm}
	}
}

// setWindow sets in the row which row made the window of the call. It returns the RMA slot of the call, or nil if the
// call never returned.
func (o *objects) setWindow(c *call, r *schema.Event) (*spool.RMA, error) {
	s, err := c.group.rma()
	if err == nil && s != nil {
		err = setMaker(o.windows, s.Window, r)
	}
	return s, err
}

// setSynchronisation fills in the row of a call on a window that moves no data. It may name one target.
func (o *objects) setSynchronisation(c *call, r *schema.Event) error {
	_, err := o.setWindow(c, r)
	if err != nil {
		return err
	}
	if c.slot.Flags&spool.FlagProcNull != 0 {
		r.ProcNull = schema.ProcNullSend
	} else if c.slot.Peer != schema.NullInt32 {
		r.ProcNull = 0
		r.SendPeer, r.SendWorld, err = c.peer(c.slot.Peer)
	}
	return err
}

// setOneSided fills in the row of a call that moves data between this rank and the window of a target.
func (o *objects) setOneSided(c *call, r *schema.Event) error {
	s, err := o.setWindow(c, r)
	if err != nil {
		return err
	}
	sends, receives := schema.Sides(schema.CallID(c.slot.Call))
	if s != nil {
		if r.ReduceOp, err = reduceOp(s.Op, r.ReduceOp); err != nil {
			return err
		}
	}
	r.ProcNull = 0
	if sends {
		err = c.setToTarget(r)
	}
	if err == nil && receives {
		err = c.setFromTarget(s, sends, r)
	}
	return err
}

// setToTarget puts what goes to the target into the row: the origin argument, or nothing with MPI_NO_OP.
func (c *call) setToTarget(r *schema.Event) (err error) {
	s := c.slot
	if err := c.setSendBuffer(r); err != nil {
		return err
	}
	if r.ReduceOp == int16(schema.OpNoOp) {
		r.SendBytes = 0
	}
	if s.Flags&spool.FlagProcNull != 0 {
		r.ProcNull, r.SendBytes = r.ProcNull|schema.ProcNullSend, 0
	} else if s.Peer != schema.NullInt32 {
		r.SendPeer, r.SendWorld, err = c.peer(s.Peer)
	}
	return err
}

// setFromTarget puts what comes back into the row: the result argument of a call that also sends, else the origin
// argument. rma is nil if the call never returned.
func (c *call) setFromTarget(rma *spool.RMA, sends bool, r *schema.Event) (err error) {
	s := c.slot
	number := int32(schema.NullInt32)
	switch {
	case !sends:
		number, r.RecvCount, r.RecvBuffer = s.Dtype, s.Count, address(s.Buf)
	case rma != nil:
		number, r.RecvCount, r.RecvBuffer = rma.Rdtype, rma.Rcount, address(rma.Rbuf)
	}
	if r.RecvDatatype, r.RecvBytes, err = c.sized(number, r.RecvCount); err != nil {
		return err
	}
	if s.T1 == 0 {
		r.RecvBytes = schema.NullInt64
	}
	if s.Flags&spool.FlagProcNull != 0 {
		r.ProcNull, r.RecvBytes = r.ProcNull|schema.ProcNullRecv, 0
	} else if s.Peer != schema.NullInt32 {
		r.RecvPeer, r.RecvWorld, err = c.peer(s.Peer)
	}
	return err
}

// setFile sets in the row which row opened the file of the call. It returns the IO slot of the call, or nil if the
// call never returned.
func (o *objects) setFile(c *call, r *schema.Event) (*spool.IO, error) {
	s, err := c.group.io()
	if err == nil && s != nil {
		err = setMaker(o.files, s.File, r)
	}
	return s, err
}

// setTransfer fills in the row of a read or a write. If it is completed later, it gets its bytes then.
func (o *objects) setTransfer(c *call, r *schema.Event) error {
	s, err := o.setFile(c, r)
	if err != nil {
		return err
	}
	bytes := int64(schema.NullInt64)
	if s != nil {
		if bytes = s.Bytes; bytes < 0 && bytes != schema.NullInt64 {
			return fmt.Errorf("%d bytes", bytes)
		}
	}
	id, _, err := c.sized(c.slot.Dtype, schema.NullInt64)
	if err != nil {
		return err
	}
	if sends, _ := schema.Sides(schema.CallID(c.slot.Call)); sends {
		r.SendCount, r.SendDatatype, r.SendBytes, r.SendBuffer = c.slot.Count, id, bytes, address(c.slot.Buf)
	} else {
		r.RecvCount, r.RecvDatatype, r.RecvBytes, r.RecvBuffer = c.slot.Count, id, bytes, address(c.slot.Buf)
	}
	return nil
}
