package ingest

import (
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// message is the message of a matched probe until it is received.
type message struct {
	view      int32
	peer, tag int32
	seq       int64 // of the probe
	epoch     int32
	recv      int32 // index in the receives of that epoch
}

// probedMessages are the messages of matched probes that have not been received, by serial.
type probedMessages map[uint32]*message

// take removes and returns a message; nil when it is not known.
func (p probedMessages) take(serial uint32) *message {
	m := p[serial]
	delete(p, serial)
	return m
}

// send makes the row of a send or a sendrecv.
func (d *decoder) send(c *call, r *schema.Event) error {
	if err := c.setSend(r); err != nil {
		return err
	}
	p := d.posted(c.slot.Req, c.view)
	if c.op == opSendrecv || c.op == opIsendrecv {
		if err := d.receiveSide(c, r, &p); err != nil {
			return err
		}
	}
	if r.ProcNull&schema.ProcNullSend == 0 && (c.by.err == 0 || c.by.truncated && c.op == opSendrecv) {
		p.send = d.ends.addSend(d.rows.n, r)
	}
	d.addPosted(c, r, p)
	return nil
}

// receiveSide adds the receive side of a sendrecv to its row.
func (d *decoder) receiveSide(c *call, r *schema.Event, p *pending) error {
	s, err := c.group.side()
	if s == nil {
		if err == nil && c.slot.T1 == 0 { // it did not return: what it was to receive is not known
			d.ends.addLost(r.Seq)
		}
		return err
	}
	if err := c.setSource(s.Flags, s.Peer, s.Tag, r); err != nil {
		return err
	}
	r.RecvCount, r.RecvBuffer = s.Count, address(s.Buf)
	if r.RecvDatatype, _, err = c.sized(s.Dtype, schema.NullInt64); err != nil {
		return err
	}
	if s.Flags&spool.FlagNoStatus == 0 {
		r.RecvBytes = s.Bytes
	}
	if r.ProcNull&schema.ProcNullRecv != 0 {
		r.RecvBytes = 0
		return nil
	}
	if c.by.tookNothing() {
		return nil
	}
	p.recv = d.ends.addRecv(r)
	if c.op == opSendrecv {
		d.ends.completeRecv(p.recv, r, c.group.receivedHash(0))
	}
	return nil
}

// receive makes the row of a receive.
func (d *decoder) receive(c *call, r *schema.Event) error {
	r.ProcNull = 0
	s := c.slot
	if err := c.setSource(s.Flags, s.Peer, s.Tag, r); err != nil {
		return err
	}
	if err := c.setRecvBuffer(r); err != nil {
		return err
	}
	p := d.posted(s.Req, c.view)
	if r.ProcNull == 0 && !c.by.tookNothing() {
		p.recv = d.ends.addRecv(r)
	}
	if c.op == opRecv && s.T1 != 0 {
		if s.Flags&spool.FlagNoStatus == 0 {
			r.RecvBytes = c.group.receivedBytes()
		}
		if p.recv >= 0 {
			d.ends.completeRecv(p.recv, r, c.group.receivedHash(0))
		}
	}
	d.addPosted(c, r, p)
	return nil
}

// probe makes the row of a probe. A matched probe takes its message at once, so it counts as a posted receive.
func (d *decoder) probe(c *call, r *schema.Event) error {
	r.ProcNull = 0
	s := c.slot
	if err := c.setSource(s.Flags, s.Peer, s.Tag, r); err != nil {
		return err
	}
	if s.T1 != 0 {
		r.RecvBytes = s.Count
	}
	if c.op == opMprobe && s.Req != 0 && s.T1 != 0 && r.RecvPeer != schema.NullInt32 {
		d.probed[s.Req] = &message{view: c.view, peer: s.Peer, tag: s.Tag, seq: r.Seq, epoch: d.rows.epoch,
			recv: d.ends.addProbed(r)}
	}
	d.add(r)
	return nil
}

// receiveMatched makes the row of MPI_Mrecv or MPI_Imrecv, which receives the message that its probe found.
func (d *decoder) receiveMatched(c *call, r *schema.Event) (err error) {
	r.ProcNull, r.PostedAny = 0, 0
	if err := c.setRecvBuffer(r); err != nil {
		return err
	}
	p := d.posted(c.slot.Req, -1)
	if c.op == opMrecv {
		p.serial = 0
		if c.slot.T1 != 0 && c.slot.Flags&spool.FlagNoStatus == 0 {
			r.RecvBytes = c.group.receivedBytes()
		}
	}
	if c.slot.Flags&spool.FlagProcNull != 0 {
		r.ProcNull = schema.ProcNullRecv
	} else if m := d.probed.take(c.group.message()); m != nil {
		p.view = m.view
		r.Comm, r.RecvPeer, r.RecvTag, r.InitSeq = c.handles.View(m.view).ID, m.peer, m.tag, m.seq
		if r.RecvWorld, err = c.handles.WorldRank(m.view, m.peer); err != nil {
			return err
		}
		if m.epoch == d.rows.epoch {
			d.ends.recvs[m.recv].Buffer = r.RecvBuffer
			p.recv = m.recv
			if c.op == opMrecv {
				d.ends.completeRecv(m.recv, r, c.group.receivedHash(0))
			}
		}
	} else if c.slot.T1 != 0 {
		d.ends.addLost(r.Seq)
	}
	d.addPosted(c, r, p)
	return nil
}

// complete makes the row of a completion call and completes the rows of its requests.
func (d *decoder) complete(c *call, r *schema.Event) {
	done := 0
	completesKept := false
	if c.slot.T1 == 0 {
		if c.slot.Count <= 1 { // it was waiting for this request; for MPI_Waitall, Count is the number of requests
			c.setRequest(r)
		}
	} else {
		received := c.group.receivedHashes()
		c.group.eachDone(func(e spool.DoneEntry) {
			done++
			r.Request = int64(e.Req)
			if p := d.requests.get(e.Req); p != nil {
				completesKept = completesKept || p.keep
				if p.epoch == d.rows.epoch {
					d.completions.end(p, e, c.by, r.StartNs, r.EndNs)
					if p.recv >= 0 {
						d.ends.recvs[p.recv].Hash = received.get(e.Req)
					}
				}
				d.requests.remove(e.Req)
			}
		})
	}
	if done > 1 {
		r.Request = schema.NullInt64
	}
	if completesKept {
		d.filter.keepCompletion(d.rows.n, r)
	}
	d.add(r)
}

// freeRequest makes the row of MPI_Request_free. How the request ends is not known. A receive that was cancelled is
// taken as withdrawn: MPI cancels it unless its message has come already. For one of an earlier epoch, crossings did
// so.
func (d *decoder) freeRequest(c *call, r *schema.Event) {
	c.setRequest(r)
	if p := d.requests.get(c.slot.Req); p != nil {
		if p.cancelled && p.recv >= 0 && p.epoch == d.rows.epoch {
			d.completions.end(p, spool.DoneEntry{Flags: spool.FlagCancelled}, c.by, r.StartNs, r.EndNs)
		}
		d.requests.remove(c.slot.Req)
	}
	delete(d.persistent.templates, c.slot.Req)
	d.add(r)
}
