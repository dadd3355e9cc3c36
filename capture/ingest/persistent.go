package ingest

import (
	"fmt"
	"math"
	"slices"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/run/match"
	"github.com/commq/commq/schema"
)

// persistentRequests are the persistent requests that a rank has made.
type persistentRequests struct {
	rank      int32
	templates map[uint32]*template // by the serial of the call that made them
	partsMade map[partKey]int32    // number of partitioned requests made for each channel
}

// template is a persistent request: the row of the call that made it, with the bytes that a start moves, and the
// class of the rows of its starts.
type template struct {
	row          schema.Event
	view         int32
	class        schema.Class
	seq          int64
	parts        []part // of a collective
	nextInstance int64  // instance of a collective's next start
	part         int32  // Part of the channel of a partitioned request; else 0
	elements     int64  // in one partition
}

// partKey is the channel of a partitioned request without Part, and the rank's side of it.
type partKey struct {
	match.Channel
	send bool
}

// addCollective adds the template of a persistent collective. The call that makes it is one of the collective
// operations of its communicator.
func (p *persistentRequests) addCollective(c *call, r *schema.Event, parts []part) {
	if c.slot.Req != 0 && r.Instance != schema.NullInt64 {
		p.templates[c.slot.Req] = &template{row: *r, view: c.view, class: schema.ClassCollective, seq: r.Seq,
			parts: slices.Clone(parts), nextInstance: (r.Instance + 1) << 32}
	}
}

// setPartitions completes the template of a partitioned request; it does not change others. A start is a message of
// all partitions. Requests with the same communicator, ranks and tag are matched in the order in which they were
// made.
func (p *persistentRequests) setPartitions(c *call, t *template) error {
	partitions, _ := c.group.wide(spool.WideParts)
	if partitions <= 0 {
		return nil
	}
	count := c.slot.Count
	if count > math.MaxInt64/partitions || count < 0 {
		return fmt.Errorf("%d partitions of %d elements", partitions, count)
	}
	t.elements = count
	key := partKey{match.Channel{Comm: t.row.Comm, Src: t.row.RecvWorld, Dst: p.rank, Tag: t.row.RecvTag},
		t.class == schema.ClassSend}
	if t.class == schema.ClassSend {
		key.Channel = match.Channel{Comm: t.row.Comm, Src: p.rank, Dst: t.row.SendWorld, Tag: t.row.SendTag}
		t.row.SendCount = partitions * count
		if t.row.ProcNull == 0 {
			var err error
			if _, t.row.SendBytes, err = c.sized(c.slot.Dtype, t.row.SendCount); err != nil {
				return err
			}
		}
	} else {
		t.row.RecvCount = partitions * count
	}
	if p.partsMade == nil {
		p.partsMade = map[partKey]int32{}
	}
	p.partsMade[key]++
	t.part = p.partsMade[key]
	return nil
}

// initPersistent makes the row of a call that makes a persistent request. It moves no data; the rows of its starts
// do.
func (d *decoder) initPersistent(c *call, r *schema.Event) (err error) {
	t := &template{view: c.view, class: schema.ClassRecv, seq: r.Seq}
	bytes := int64(schema.NullInt64)
	if c.op == opSendInit {
		t.class = schema.ClassSend
		err = c.setSend(r)
		bytes, r.SendBytes = r.SendBytes, schema.NullInt64
	} else {
		r.ProcNull = 0
		if err = c.setSource(c.slot.Flags, c.slot.Peer, c.slot.Tag, r); err == nil {
			err = c.setRecvBuffer(r)
		}
	}
	if err != nil {
		return err
	}
	c.setRequest(r)
	if c.slot.Req != 0 {
		t.row = *r
		t.row.SendBytes = bytes
		d.persistent.templates[c.slot.Req] = t
		err = d.persistent.setPartitions(c, t)
	}
	d.add(r)
	return err
}

// start makes the rows of MPI_Start and MPI_Startall: one for each request.
func (d *decoder) start(c *call, r *schema.Event) error {
	own := *r
	started := 0
	for i := 1; i < len(c.group.slots) && c.slot.T1 != 0; i++ {
		if c.group.slots[i].Kind != spool.KindStart {
			continue
		}
		s := c.group.slots[i].AsStart()
		for _, e := range s.Start[:s.N] {
			if started > 0 && c.op == opStart {
				return fmt.Errorf("more than one request")
			}
			if started > 0 { // the others begin and end when the call ends
				own.StartNs = own.EndNs
				own.Polls, own.PollNs, own.ComputeNs = 0, 0, d.empty.ComputeNs
			}
			*r = own
			r.Seq = d.rows.seq
			d.startOne(c, e.Req, e.Template, r)
			started++
		}
	}
	if started == 0 {
		c.setRequest(r)
		d.add(r)
	}
	return nil
}

// startOne makes the row of one started request. If the call that made the request was not recorded, only its number
// is known.
func (d *decoder) startOne(c *call, req, made uint32, r *schema.Event) {
	p := d.posted(req, -1)
	if t := d.persistent.templates[made]; t != nil {
		t.fill(r)
		c.group.setSentHashes(req, r)
		p.view, p.made = t.view, made
		switch {
		case t.class == schema.ClassCollective:
			r.Instance = t.nextInstance
			t.nextInstance++
			if c.by.err != 0 {
				r.SendBytes, r.RecvBytes = schema.NullInt64, schema.NullInt64
				break
			}
			d.collectives.addStarted(r.Seq, t.parts)
			d.collectives.counts[collectiveKey{schema.CallID(t.row.Call), r.Comm}]++
		case c.by.err != 0 || r.ProcNull != 0:
		case t.class == schema.ClassSend:
			p.send = d.ends.addSend(d.rows.n, r)
		default:
			p.recv = d.ends.addRecv(r)
		}
		d.ends.setPart(t.part, &p)
	}
	if req != 0 {
		d.pend(p, r)
	}
	d.add(r)
}

// fill copies into a start's row what the request does.
func (t *template) fill(r *schema.Event) {
	when := *r
	*r = t.row
	r.Seq, r.Epoch, r.Thread, r.Call, r.StartNs, r.EndNs = when.Seq, when.Epoch, when.Thread, when.Call, when.StartNs,
		when.EndNs
	r.ComputeNs, r.Polls, r.PollNs, r.ErrorClass, r.Callsite = when.ComputeNs, when.Polls, when.PollNs,
		when.ErrorClass, when.Callsite
	r.InitSeq, r.Class = t.seq, int16(t.class)
}

// readyPartitions makes the row of a call on some partitions of a request, with the number of their elements.
func (d *decoder) readyPartitions(c *call, r *schema.Event) {
	c.setRequest(r)
	count := c.slot.Count
	if p := d.requests.get(c.slot.Req); p != nil {
		if t := d.persistent.templates[p.made]; t != nil && t.elements > 0 && count > 0 &&
			count <= math.MaxInt64/t.elements {
			if t.class == schema.ClassSend {
				r.SendCount, r.SendDatatype = count*t.elements, t.row.SendDatatype
			} else {
				r.RecvCount, r.RecvDatatype = count*t.elements, t.row.RecvDatatype
			}
		}
	}
	d.add(r)
}
