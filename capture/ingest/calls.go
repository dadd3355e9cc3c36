package ingest

import (
	"fmt"
	"math"
	"slices"

	"github.com/commq/commq/capture/match"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// call fills in the row by what kind of call it is, and puts it (for MPI_Startall, several).
func (d *decoder) call(c *spool.Call, r *schema.Event) error {
	v, err := d.view(c, r)
	if err != nil {
		return err
	}
	switch ops[c.Call] {
	case opSend, opIsend, opSendrecv, opIsendrecv:
		return d.send(c, r, v)
	case opRecv, opIrecv:
		return d.recv(c, r, v)
	case opSendInit, opRecvInit:
		return d.persistent(c, r, v)
	case opProbe, opMprobe:
		return d.probe(c, r, v)
	case opMrecv, opImrecv:
		return d.matchedRecv(c, r)
	case opComplete:
		d.complete(c, r)
	case opRequestFree:
		d.free(c, r)
	case opRequestStatus:
		d.request(c, r)
		d.put()
	case opStart, opStartall:
		return d.start(c, r)
	case opCollective, opIcollective, opCollectiveInit, opCommNew, opCommIdup:
		return d.collective(c, r, v)
	case opRMA, opRMARequest:
		return d.oneSided(c, r, v)
	case opWin:
		return d.window(c, r, v)
	case opWinNew:
		d.makes(c, r, d.windows)
	case opFileOpen:
		d.makes(c, r, d.opened)
	case opSelf:
		r.SendCount, r.SendBuffer = c.Count, address(c.Buf)
		if r.SendDatatype, r.SendBytes, err = d.sized(c.Dtype, c.Count); err != nil {
			return err
		}
		d.put()
	case opFile:
		return d.file(r)
	case opTransfer, opTransferStart:
		return d.transfer(c, r, v)
	case opTransferEnd:
		return d.endSplit(c, r)
	case opReady:
		d.ready(c, r)
	case opControl:
		d.control(c, r)
	default:
		d.put()
	}
	return nil
}

// request puts the call's request into the row.
func (d *decoder) request(c *spool.Call, r *schema.Event) {
	if c.Req != 0 {
		r.Request = int64(c.Req)
	}
}

// sendSide fills in whom the call sends to and what.
func (d *decoder) sendSide(c *spool.Call, r *schema.Event, v int32) (err error) {
	r.ProcNull = 0
	r.SendTag, r.SendCount, r.SendBuffer = c.Tag, c.Count, address(c.Buf)
	if r.SendDatatype, r.SendBytes, err = d.sized(c.Dtype, c.Count); err != nil {
		return err
	}
	if c.Flags&spool.FlagProcNull != 0 {
		r.ProcNull, r.SendBytes = schema.ProcNullSend, 0
		return nil
	}
	r.SendPeer, r.SendWorld, err = d.peer(v, c.Peer)
	return err
}

// recvSide fills in how a receive was posted and whom it names, or got.
func (d *decoder) recvSide(flags uint8, peer, tag int32, r *schema.Event, v int32) (err error) {
	r.PostedAny = int32(flags) & (spool.FlagAnySource | spool.FlagAnyTag) // the same bits
	r.RecvTag = tag
	if flags&spool.FlagProcNull != 0 {
		r.ProcNull |= schema.ProcNullRecv
		return nil
	}
	if peer != schema.NullInt32 {
		r.RecvPeer, r.RecvWorld, err = d.peer(v, peer)
	}
	return err
}

// send makes the row of a send, and of a sendrecv.
func (d *decoder) send(c *spool.Call, r *schema.Event, v int32) error {
	if err := d.sendSide(c, r, v); err != nil {
		return err
	}
	p := pending{serial: c.Req, epoch: d.epoch, row: int32(d.n), recv: -1, send: -1, view: v}
	if o := ops[c.Call]; o == opSendrecv || o == opIsendrecv {
		if err := d.side(c, r, v, &p); err != nil {
			return err
		}
	}
	if r.ProcNull&schema.ProcNullSend == 0 && (d.current.err == 0 || d.current.err == d.truncate && ops[c.Call] == opSendrecv) {
		p.send = d.addSend(r)
	}
	d.post(c, r, p)
	return nil
}

// payload puts the hashes of what the call sends into the row: of the request of that serial, or 0 of the call itself. They
// are there before the call is made, so that one that never returned has them too.
func (d *decoder) payload(req uint32, r *schema.Event) {
	for i := 1; i < len(d.g.slots); i++ {
		h := d.g.slots[i].AsHashes()
		if h.Kind != spool.KindHash || h.What != spool.HashSent || h.Req != req {
			continue
		}
		if h.Flags&spool.HasHash != 0 {
			r.PayloadHash = int64(h.Hash)
		}
		if h.Flags&spool.HasSum != 0 {
			r.PayloadSum = int64(h.Sum)
		}
		if h.Flags&spool.HasHead != 0 {
			r.PayloadHead = int64(h.Head)
		}
		return
	}
}

// arrived is the hash of what the call received, for the request of that serial or 0 for the call itself; null: none.
func arrived(g *group, req uint32) int64 {
	for i := 1; i < len(g.slots); i++ {
		h := g.slots[i].AsHashes()
		if h.Kind == spool.KindHash && h.What == spool.HashReceived && h.Req == req && h.Flags&spool.HasHash != 0 {
			return int64(h.Hash)
		}
	}
	return schema.NullInt64
}

// post puts the row of a call that may have made a request.
func (d *decoder) post(c *spool.Call, r *schema.Event, p pending) {
	if o := ops[c.Call]; o != opRecv && o != opSendrecv && c.Req != 0 {
		r.Request = int64(c.Req)
		p.keep = d.wanted(r)
		d.reqs.put(p)
	}
	d.put()
}

// addSend notes the current row as a send and returns its index in sends.
func (d *decoder) addSend(r *schema.Event) int32 {
	if r.SendWorld == schema.NullInt32 {
		d.alien(r.Seq)
		return -1
	}
	d.sends = append(d.sends, int32(d.n))
	return int32(len(d.sends) - 1)
}

// addRecv notes the current row as a posted receive and returns its index in recvs.
func (d *decoder) addRecv(r *schema.Event) int32 {
	m := match.Recv{Channel: match.Channel{Comm: r.Comm, Src: r.RecvWorld, Dst: d.rank, Tag: r.RecvTag}, Any: r.PostedAny,
		PostSeq: r.Seq, PostNs: r.StartNs, DoneSeq: schema.NullInt64, StartNs: schema.NullInt64, EndNs: schema.NullInt64, Buffer: r.RecvBuffer,
		Callsite: schema.NullInt32, Hash: schema.NullInt64}
	d.recvs = append(d.recvs, m)
	d.state = append(d.state, stateOf(r))
	return int32(len(d.recvs) - 1)
}

// stateOf says what the row knows of where a message comes from.
func stateOf(r *schema.Event) recvState {
	switch {
	case r.RecvPeer == schema.NullInt32 || r.RecvTag == schema.NullInt32:
		return recvOpen
	case r.RecvWorld == schema.NullInt32:
		return recvAlien
	}
	return recvKnown
}

// gotHere says that the row itself completed receive i.
func (d *decoder) gotHere(i int32, r *schema.Event) {
	m := &d.recvs[i]
	m.DoneSeq, m.StartNs, m.EndNs, m.Callsite = r.Seq, r.StartNs, r.EndNs, r.Callsite
	m.Hash = arrived(&d.g, 0)
}

// failed says whether an error means that a receive took no message.
func (d *decoder) failed(class int32) bool { return class != 0 && class != d.truncate }

// recv makes the row of a receive.
func (d *decoder) recv(c *spool.Call, r *schema.Event, v int32) (err error) {
	r.ProcNull = 0
	if err := d.recvSide(c.Flags, c.Peer, c.Tag, r, v); err != nil {
		return err
	}
	r.RecvCount, r.RecvBuffer = c.Count, address(c.Buf)
	if r.RecvDatatype, _, err = d.sized(c.Dtype, schema.NullInt64); err != nil {
		return err
	}
	p := pending{serial: c.Req, epoch: d.epoch, row: int32(d.n), recv: -1, send: -1, view: v}
	blocking := ops[c.Call] == opRecv
	if r.ProcNull == 0 && !d.failed(d.current.err) {
		p.recv = d.addRecv(r)
	}
	if blocking && c.T1 != 0 {
		if c.Flags&spool.FlagNoStatus == 0 {
			r.RecvBytes = d.received(c)
		}
		if p.recv >= 0 {
			d.gotHere(p.recv, r)
		}
	}
	d.post(c, r, p)
	return nil
}

// received are the bytes that a blocking receive got.
func (d *decoder) received(c *spool.Call) int64 {
	if c.Req != math.MaxUint32 {
		return int64(c.Req)
	}
	for i := 1; i < len(d.g.slots); i++ {
		if w := d.g.slots[i].AsWide(); w.Kind == spool.KindWide && w.What == spool.WideRecvBytes {
			return w.Value
		}
	}
	return schema.NullInt64
}

// side fills in the receive side of a sendrecv.
func (d *decoder) side(c *spool.Call, r *schema.Event, v int32, p *pending) (err error) {
	var s *spool.Side
	for i := 1; i < len(d.g.slots) && s == nil && c.T1 != 0; i++ {
		if d.g.slots[i].Kind == spool.KindSide {
			s = d.g.slots[i].AsSide()
		}
	}
	if s == nil {
		if c.T1 != 0 {
			return fmt.Errorf("no SIDE slot follows")
		}
		return nil
	}
	if err := d.recvSide(s.Flags, s.Peer, s.Tag, r, v); err != nil {
		return err
	}
	r.RecvCount, r.RecvBuffer = s.Count, address(s.Buf)
	if r.RecvDatatype, _, err = d.sized(s.Dtype, schema.NullInt64); err != nil {
		return err
	}
	if s.Flags&spool.FlagNoStatus == 0 {
		r.RecvBytes = s.Bytes
	}
	if r.ProcNull&schema.ProcNullRecv != 0 {
		r.RecvBytes = 0
		return nil
	}
	if d.failed(d.current.err) {
		return nil
	}
	p.recv = d.addRecv(r)
	if ops[c.Call] == opSendrecv {
		d.gotHere(p.recv, r)
	}
	return nil
}

// persistent makes the row of a call that makes a persistent request. It communicates nothing: the rows of its starts do.
func (d *decoder) persistent(c *spool.Call, r *schema.Event, v int32) (err error) {
	t := &template{view: v, class: schema.ClassRecv, seq: r.Seq}
	bytes := int64(schema.NullInt64)
	if ops[c.Call] == opSendInit {
		t.class = schema.ClassSend
		err = d.sendSide(c, r, v)
		bytes, r.SendBytes = r.SendBytes, schema.NullInt64
	} else {
		r.ProcNull = 0
		err = d.recvSide(c.Flags, c.Peer, c.Tag, r, v)
		r.RecvCount, r.RecvBuffer = c.Count, address(c.Buf)
		if err == nil {
			r.RecvDatatype, _, err = d.sized(c.Dtype, schema.NullInt64)
		}
	}
	if err != nil {
		return err
	}
	d.request(c, r)
	if c.Req != 0 {
		t.row = *r
		t.row.SendBytes = bytes
		d.templates[c.Req] = t
		err = d.partition(c, t)
	}
	d.put()
	return err
}

// start makes the rows of MPI_Start and MPI_Startall: one for each request.
func (d *decoder) start(c *spool.Call, r *schema.Event) error {
	own := *r
	started := 0
	for i := 1; i < len(d.g.slots) && c.T1 != 0; i++ {
		if d.g.slots[i].Kind != spool.KindStart {
			continue
		}
		s := d.g.slots[i].AsStart()
		for _, e := range s.Start[:s.N] {
			if started > 0 && ops[c.Call] == opStart {
				return fmt.Errorf("more than one request")
			}
			if started > 0 { // the others begin and end where the call ends
				own.StartNs = own.EndNs
				own.Polls, own.PollNs, own.ComputeNs = 0, 0, d.nulls.ComputeNs
			}
			*r = own
			r.Seq = d.seq
			d.started(e.Req, e.Template, r)
			started++
		}
	}
	if started == 0 {
		d.request(c, r)
		d.put()
	}
	return nil
}

// started makes the row of one started request. One made by a call that was not recorded has no more than its number.
func (d *decoder) started(req, made uint32, r *schema.Event) {
	p := pending{serial: req, epoch: d.epoch, row: int32(d.n), recv: -1, send: -1, view: -1}
	if t := d.templates[made]; t != nil {
		fill(r, t)
		d.payload(req, r)
		p.view, p.made = t.view, made
		switch {
		case t.class == schema.ClassCollective:
			d.startedCollective(r, t)
		case d.current.err != 0 || r.ProcNull != 0:
		case t.class == schema.ClassSend:
			p.send = d.addSend(r)
		default:
			p.recv = d.addRecv(r)
		}
		d.parted(t, &p)
	}
	if req != 0 {
		r.Request = int64(req)
		p.keep = d.wanted(r)
		d.reqs.put(p)
	}
	d.put()
}

// fill copies what a started request does from the row that made it.
func fill(r *schema.Event, t *template) {
	when := *r
	*r = t.row
	r.Seq, r.Epoch, r.Thread, r.Call, r.StartNs, r.EndNs = when.Seq, when.Epoch, when.Thread, when.Call, when.StartNs, when.EndNs
	r.ComputeNs, r.Polls, r.PollNs, r.ErrorClass, r.Callsite = when.ComputeNs, when.Polls, when.PollNs, when.ErrorClass, when.Callsite
	r.InitSeq, r.Class = t.seq, int16(t.class)
}

// startedCollective completes the row of a started collective: its instance, its parts, and that it is one.
func (d *decoder) startedCollective(r *schema.Event, t *template) {
	r.Instance = t.next
	t.next++
	for _, p := range t.parts {
		d.parts = append(d.parts, part{r.Seq, p.world, p.send, p.recv})
	}
	d.countCollective(schema.CallID(t.row.Call), r.Comm)
}

// probe makes the row of a probe. A matched one takes the message at once, in the order of posted receives.
func (d *decoder) probe(c *spool.Call, r *schema.Event, v int32) error {
	r.ProcNull = 0
	if err := d.recvSide(c.Flags, c.Peer, c.Tag, r, v); err != nil {
		return err
	}
	if c.T1 != 0 {
		r.RecvBytes = c.Count
	}
	if ops[c.Call] == opMprobe && c.Req != 0 && c.T1 != 0 && r.RecvPeer != schema.NullInt32 {
		d.messages[c.Req] = &message{view: v, peer: c.Peer, tag: c.Tag, bytes: c.Count, seq: r.Seq, epoch: d.epoch, recv: d.addRecv(r)}
	}
	d.put()
	return nil
}

// matchedRecv makes the row of MPI_Mrecv or MPI_Imrecv: it receives what its probe found.
func (d *decoder) matchedRecv(c *spool.Call, r *schema.Event) (err error) {
	r.ProcNull, r.PostedAny = 0, 0
	r.RecvCount, r.RecvBuffer = c.Count, address(c.Buf)
	if r.RecvDatatype, _, err = d.sized(c.Dtype, schema.NullInt64); err != nil {
		return err
	}
	p := pending{serial: c.Req, epoch: d.epoch, row: int32(d.n), recv: -1, send: -1, view: -1}
	if ops[c.Call] == opMrecv {
		p.serial = 0
		if c.T1 != 0 && c.Flags&spool.FlagNoStatus == 0 {
			r.RecvBytes = d.received(c)
		}
	}
	if c.Flags&spool.FlagProcNull != 0 {
		r.ProcNull = schema.ProcNullRecv
	} else if m := d.take(); m != nil {
		p.view = m.view
		r.Comm, r.RecvPeer, r.RecvTag, r.InitSeq = d.views[m.view].id, m.peer, m.tag, m.seq
		if r.RecvWorld, err = d.worldOf(m.view, m.peer); err != nil {
			return err
		}
		if m.epoch == d.epoch {
			d.recvs[m.recv].Buffer = r.RecvBuffer
			p.recv = m.recv
			if ops[c.Call] == opMrecv {
				d.gotHere(m.recv, r)
			}
		}
	} else if c.T1 != 0 {
		d.alone(r.Seq)
	}
	if p.serial != 0 {
		r.Request = int64(p.serial)
		p.keep = d.wanted(r)
		d.reqs.put(p)
	}
	d.put()
	return nil
}

// take is the message that the call receives, nil when it is not known.
func (d *decoder) take() *message {
	serial := messageOf(&d.g)
	m := d.messages[serial]
	delete(d.messages, serial)
	return m
}

// complete makes the row of a completion call and tells the rows it completes.
func (d *decoder) complete(c *spool.Call, r *schema.Event) {
	done := 0
	kept := false
	one := func(e spool.DoneEntry) {
		done++
		r.Request = int64(e.Req)
		if p := d.reqs.get(e.Req); p != nil {
			kept = kept || p.keep
			if p.epoch == d.epoch {
				d.ended(p, e, d.current, r.StartNs, r.EndNs)
				if p.recv >= 0 {
					d.recvs[p.recv].Hash = arrived(&d.g, e.Req)
				}
			}
			d.reqs.remove(e.Req)
		}
	}
	if c.T1 == 0 {
		if c.Count <= 1 { // it was waiting for this one; MPI_Waitall says there how many
			d.request(c, r)
		}
	} else {
		eachDone(&d.g, one)
	}
	if done > 1 {
		r.Request = schema.NullInt64
	}
	if d.keep != nil && kept && !d.isHidden(r) {
		d.keep[d.n] = true
	}
	d.put()
}

// ended puts into the row that posted a request how it ended: which row completed it, when, and what a receive got.
func (d *decoder) ended(p *pending, e spool.DoneEntry, by completion, start, end int64) {
	i := d.base + int(p.row)
	d.events.DoneSeq[i] = by.seq
	if p.send >= 0 && (e.Flags&spool.FlagCancelled != 0 || d.failed(by.err)) {
		d.sends[p.send] = -1
		d.events.SendBytes[i] = schema.NullInt64
	}
	if p.recv < 0 {
		d.endedAside(i, e)
		return
	}
	m := &d.recvs[p.recv]
	if e.Flags&spool.FlagCancelled != 0 || d.failed(by.err) {
		d.state[p.recv] = recvVoid
		return
	}
	m.DoneSeq, m.StartNs, m.EndNs, m.Callsite = by.seq, start, end, by.site
	if e.Flags&spool.FlagNoStatus != 0 || e.Source == schema.NullInt32 {
		return
	}
	d.events.RecvBytes[i] = e.Bytes
	world, err := d.worldOf(p.view, e.Source)
	if err != nil {
		d.state[p.recv] = recvVoid
		d.count.unknownCommID++
		return
	}
	d.events.RecvPeer[i], d.events.RecvWorld[i], d.events.RecvTag[i] = e.Source, world, e.Tag
	if m.Src, m.Tag = world, e.Tag; world == schema.NullInt32 {
		d.state[p.recv] = recvAlien
	} else if d.state[p.recv] == recvOpen {
		d.state[p.recv] = recvKnown
	}
}

// endedAside is ended for rows that hold no receive to match: from MPI_PROC_NULL, or of a message whose probe was in an
// earlier epoch.
func (d *decoder) endedAside(i int, e spool.DoneEntry) {
	procNull := d.events.ProcNull[i]
	switch {
	case procNull != schema.NullInt32 && procNull&schema.ProcNullRecv != 0:
		d.events.RecvBytes[i] = 0
	case ops[d.events.Call[i]] == opImrecv && e.Flags&(spool.FlagCancelled|spool.FlagNoStatus) == 0:
		d.events.RecvBytes[i] = e.Bytes
	case ops[d.events.Call[i]] == opTransferStart:
		d.transferred(i, e)
	}
}

// free makes the row of MPI_Request_free: the request ends unseen.
func (d *decoder) free(c *spool.Call, r *schema.Event) {
	d.request(c, r)
	if p := d.reqs.get(c.Req); p != nil {
		d.reqs.remove(c.Req)
	}
	delete(d.templates, c.Req)
	d.put()
}

// collective makes the row of a collective or of a communicator constructor.
func (d *decoder) collective(c *spool.Call, r *schema.Event, v int32) error {
	var coll *spool.Coll
	for i := 1; i < len(d.g.slots) && c.T1 != 0; i++ {
		if d.g.slots[i].Kind == spool.KindColl {
			coll = d.g.slots[i].AsColl()
		}
	}
	if call := schema.CallID(c.Call); coll != nil && call != schema.CallCommCreateGroup && call != schema.CallIntercommCreate {
		r.Instance = int64(coll.Instance) // those two are not collective over the parent
	}
	o := ops[c.Call]
	var parts []part
	if o == opCollective || o == opIcollective || o == opCollectiveInit {
		var err error
		if parts, err = d.sides(c, coll, r, v); err != nil {
			return err
		}
	}
	if o == opCollectiveInit {
		d.persistentCollective(c, r, v, parts)
		return nil
	}
	if v >= 0 && (o == opCollective || o == opIcollective) {
		d.countCollective(schema.CallID(c.Call), r.Comm)
	}
	d.parts = append(d.parts, parts...)
	p := pending{serial: c.Req, epoch: d.epoch, row: int32(d.n), recv: -1, send: -1, view: v}
	if o == opIcollective || o == opCommIdup {
		d.post(c, r, p)
		return nil
	}
	d.put()
	return nil
}

// persistentCollective makes the row of a call that makes a persistent collective. It is one of the communicator's
// collective operations, but moves nothing: the rows of its starts do.
func (d *decoder) persistentCollective(c *spool.Call, r *schema.Event, v int32, parts []part) {
	d.request(c, r)
	if c.Req != 0 && r.Instance != schema.NullInt64 {
		d.templates[c.Req] = &template{row: *r, view: v, class: schema.ClassCollective, seq: r.Seq, parts: slices.Clone(parts), next: (r.Instance + 1) << 32}
	}
	r.SendBytes, r.RecvBytes = schema.NullInt64, schema.NullInt64
	d.put()
}

// sides fills in what a collective sends and receives and its root, and returns its parts, until the next call.
func (d *decoder) sides(c *spool.Call, coll *spool.Coll, r *schema.Event, v int32) (parts []part, err error) {
	if v < 0 {
		if d.wrong() {
			return nil, nil
		}
		return nil, fmt.Errorf("no communicator")
	}
	w := &d.views[v]
	args := schema.CollectiveArgs{Peers: w.size, Group: w.group, Inter: w.inter, Send: schema.NullInt64, Recv: schema.NullInt64}
	switch {
	case c.Flags&spool.FlagRoot != 0:
		args.Root, r.RootWorld = true, d.rank
	case c.Flags&spool.FlagProcNull != 0:
		args.Aside = true
	case c.Peer != schema.NullInt32:
		if _, r.RootWorld, err = d.peer(v, c.Peer); err != nil {
			return nil, fmt.Errorf("root: %w", err)
		}
		args.Root = !w.inter && c.Peer == w.rank
	}
	if r.SendDatatype, args.Send, err = d.sized(c.Dtype, c.Count); err != nil {
		return nil, err
	}
	r.SendCount, r.SendBuffer = c.Count, address(c.Buf)
	if coll == nil {
		return nil, nil
	}
	if coll.Op != 0xffff {
		if int(coll.Op) >= len(schema.OpNames) {
			return nil, fmt.Errorf("reduction operation %d", coll.Op)
		}
		r.ReduceOp = int16(coll.Op)
	}
	if r.RecvDatatype, _, err = d.sized(coll.Rdtype, schema.NullInt64); err != nil {
		return nil, err
	}
	r.RecvCount, r.RecvBuffer = coll.Rcount, address(coll.Rbuf)
	args.Send, args.Recv = coll.Sbytes, coll.Rbytes
	if parts, err = d.partsOf(r, v, &args); err != nil {
		return nil, err
	}
	r.SendBytes, r.RecvBytes = schema.CollectiveBytes(schema.CallID(c.Call), args)
	return parts, nil
}

// partsOf are the parts of the call; the rank's own goes into args.
func (d *decoder) partsOf(r *schema.Event, v int32, args *schema.CollectiveArgs) ([]part, error) {
	d.found = d.found[:0]
	for i := 1; i < len(d.g.slots); i++ {
		if d.g.slots[i].Kind != spool.KindParts {
			continue
		}
		s := d.g.slots[i].AsParts()
		for _, p := range s.Part[:s.N] {
			world, err := d.worldOf(v, p.Peer)
			if err != nil {
				return nil, fmt.Errorf("part: %w", err)
			}
			if world == d.rank && !d.views[v].inter {
				args.OwnSend, args.OwnRecv = p.SendBytes, p.RecvBytes
			}
			if world != schema.NullInt32 && (p.SendBytes != 0 || p.RecvBytes != 0) {
				d.found = append(d.found, part{r.Seq, world, p.SendBytes, p.RecvBytes})
			}
		}
	}
	return d.found, nil
}

func (d *decoder) countCollective(call schema.CallID, comm int32) {
	of := d.count.byName[call]
	if of == nil {
		of = map[int32]int64{}
		d.count.byName[call] = of
	}
	of[comm]++
}

// applyCrossings puts what the first pass found into the rows of this epoch whose requests end in a later one. issued is
// the row the epoch ends at.
func (d *decoder) applyCrossings(end int64) {
	limit := uint32(math.MaxUint32)
	if int(d.epoch)+2 < len(d.starts) {
		limit = d.starts[d.epoch+1].issued
	}
	waiting := d.waitCross
	d.waitCross = d.waitCross[:0]
	for _, k := range waiting {
		d.crossing(k, end)
	}
	for ; d.nextCross < len(d.cross) && d.cross[d.nextCross].serial <= limit; d.nextCross++ {
		d.crossing(d.nextCross, end)
	}
}

// crossing applies the k-th crossing, or keeps it for a later epoch when its request was not posted yet.
func (d *decoder) crossing(k int, end int64) {
	c := &d.cross[k]
	if c.end.seq != schema.NullInt64 && c.end.seq < end { // it ended within the epoch after all
		return
	}
	if m := d.messages[c.serial]; m != nil {
		if m.epoch == d.epoch {
			r := &d.recvs[m.recv]
			r.Buffer = address(c.buffer)
			r.DoneSeq, r.Callsite, r.Hash = c.end.seq, c.end.site, c.hash
			r.StartNs, r.EndNs = d.interval(c.end)
		}
		return
	}
	p := d.reqs.get(c.serial)
	if p == nil {
		d.waitCross = append(d.waitCross, k)
		return
	}
	if p.epoch == d.epoch {
		start, stop := d.interval(c.end)
		d.ended(p, spool.DoneEntry{Req: c.serial, Source: c.source, Tag: c.tag, Flags: c.flags, Bytes: c.bytes}, c.end, start, stop)
		if p.recv >= 0 {
			d.recvs[p.recv].Hash = c.hash
		}
	}
}

// interval is when a later row begins and ends.
func (d *decoder) interval(c completion) (start, end int64) {
	if c.seq == schema.NullInt64 {
		return schema.NullInt64, schema.NullInt64
	}
	clk := d.clk
	start = clk.at(c.t0)
	return start, max(clk.at(c.t1), start)
}

// setAside counts the receives that matching does not see.
func (d *decoder) setAside() {
	for i := range d.state {
		switch d.state[i] {
		case recvAlien:
			d.alien(d.recvs[i].PostSeq)
		case recvOpen:
			d.alone(d.recvs[i].PostSeq)
		}
	}
}

// alien counts a send or a receive whose partner is not in this run.
func (d *decoder) alien(seq int64) {
	d.count.alien++
	d.aside(seq)
}

// alone counts a receive without a partner.
func (d *decoder) alone(seq int64) {
	d.count.recvs++
	d.aside(seq)
}

// aside notes a row that matching never sees.
func (d *decoder) aside(seq int64) {
	if d.unmatched == nil {
		d.unmatched = map[int64]bool{}
	}
	d.unmatched[seq] = true
}
