package ingest

import (
	"math"

	"github.com/commq/commq/capture/ingest/clocks"
	"github.com/commq/commq/capture/ingest/handles"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// completions notes in the rows that posted requests how the requests ended.
type completions struct {
	rows    *epochRows
	handles *handles.Resolver
	ends    *envelopes
}

// end notes that the row by, from start to end, ended the request p, which was posted in this epoch. It fills in what
// a receive got. A cancelled or failed operation is no message.
func (c *completions) end(p *pending, d spool.DoneEntry, by completion, start, end int64) {
	i := c.rows.base + int(p.row)
	events, ends := c.rows.events, c.ends
	events.DoneSeq[i] = by.seq
	failed := by.tookNothing() && d.Flags&(spool.FlagNoError|spool.FlagTruncated) == 0
	void := d.Flags&spool.FlagCancelled != 0 || failed
	if p.send >= 0 && void {
		ends.sends[p.send] = -1
		events.SendBytes[i] = schema.NullInt64
	}
	if p.recv < 0 {
		c.endUnmatched(i, d)
		return
	}
	if void {
		ends.state[p.recv] = recvVoid
		return
	}
	m := &ends.recvs[p.recv]
	m.DoneSeq, m.StartNs, m.EndNs, m.Callsite = by.seq, start, end, by.site
	if d.Flags&spool.FlagNoStatus != 0 || d.Source == schema.NullInt32 {
		return
	}
	if by.truncated && ends.state[p.recv] != recvOpen { // its source is known, and not every library writes it then
		return
	}
	events.RecvBytes[i] = d.Bytes
	world, err := c.handles.WorldRank(p.view, d.Source)
	if err != nil {
		ends.state[p.recv] = recvVoid
		return
	}
	events.RecvPeer[i], events.RecvWorld[i], events.RecvTag[i] = d.Source, world, d.Tag
	if m.Src, m.Tag = world, d.Tag; world == schema.NullInt32 {
		ends.state[p.recv] = recvAlien
	} else if ends.state[p.recv] == recvOpen {
		ends.state[p.recv] = recvKnown
	}
}

// endUnmatched does the same as end for rows that are not matched: receives from MPI_PROC_NULL, receives of a message
// probed in an earlier epoch, and file transfers.
func (c *completions) endUnmatched(i int, d spool.DoneEntry) {
	events := c.rows.events
	procNull := events.ProcNull[i]
	const noBytes = spool.FlagCancelled | spool.FlagNoStatus
	switch o := ops[events.Call[i]]; {
	case procNull != schema.NullInt32 && procNull&schema.ProcNullRecv != 0:
		events.RecvBytes[i] = 0
	case d.Flags&noBytes != 0:
	case o == opImrecv:
		events.RecvBytes[i] = d.Bytes
	case o == opTransferStart && d.Bytes >= 0:
		if sends, _ := schema.Sides(schema.CallID(events.Call[i])); sends {
			events.SendBytes[i] = d.Bytes
		} else {
			events.RecvBytes[i] = d.Bytes
		}
	}
}

// crossings applies the result of cutEpochs: for rows whose requests end in a later epoch, how they end.
type crossings struct {
	list     []crossing   // of the rank, by serial
	starts   []epochStart // of its epochs
	clock    clocks.Clock
	next     int   // index in list
	unposted []int // indexes in list of requests that are not posted yet
}

// apply applies the crossings to the current epoch, when all of its rows have been made.
func (x *crossings) apply(c *completions, requests *requestTable, messages probedMessages) {
	limit := uint32(math.MaxUint32)
	if int(c.rows.epoch)+2 < len(x.starts) {
		limit = x.starts[c.rows.epoch+1].issued
	}
	waiting := x.unposted
	x.unposted = x.unposted[:0]
	for _, k := range waiting {
		x.applyOne(k, c, requests, messages)
	}
	for ; x.next < len(x.list) && x.list[x.next].serial <= limit; x.next++ {
		x.applyOne(x.next, c, requests, messages)
	}
}

// applyOne applies the k-th crossing, or keeps it for a later epoch if its request is not posted yet.
func (x *crossings) applyOne(k int, c *completions, requests *requestTable, messages probedMessages) {
	cross := &x.list[k]
	if cross.end.seq != schema.NullInt64 && cross.end.seq < c.rows.seq { // it ended in this epoch after all
		return
	}
	start, end := x.interval(cross.end)
	if m := messages[cross.serial]; m != nil {
		if m.epoch == c.rows.epoch {
			r := &c.ends.recvs[m.recv]
			r.Buffer = address(cross.buffer)
			r.DoneSeq, r.Callsite, r.Hash = cross.end.seq, cross.end.site, cross.hash
			r.StartNs, r.EndNs = start, end
		}
		return
	}
	p := requests.get(cross.serial)
	if p == nil {
		x.unposted = append(x.unposted, k)
		return
	}
	if p.epoch == c.rows.epoch && (p.recv >= 0 || !cross.withdrawn) {
		c.end(p, spool.DoneEntry{Req: cross.serial, Source: cross.source, Tag: cross.tag, Flags: cross.flags,
			Bytes: cross.bytes}, cross.end, start, end)
		if p.recv >= 0 {
			c.ends.recvs[p.recv].Hash = cross.hash
		}
	}
}

// interval returns when a later row begins and ends; null when there is none.
func (x *crossings) interval(c completion) (start, end int64) {
	if c.seq == schema.NullInt64 {
		return schema.NullInt64, schema.NullInt64
	}
	start = x.clock.Ns(c.t0)
	return start, max(x.clock.Ns(c.t1), start)
}
