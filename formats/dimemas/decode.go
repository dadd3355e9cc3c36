package dimemas

import (
	"fmt"

	"github.com/commq/commq/schema"
)

// key identifies the receive that a wait completes.
type key struct {
	peer, tag, comm int32
}

// pending is a request that is not completed yet.
type pending struct {
	seq, request int64
	epoch        int32
	row          int // index in its epoch
}

// decoder turns the records of a rank into rows.
type decoder struct {
	pass   *pass
	rank   int32
	facts  *rankFacts
	reader *taskReader
	ended  bool

	seq, request int64
	irecvs       map[key][]pending
	collectives  []pending
	instances    map[int32]int64 // next operation by communicator
	action       action
}

// decode appends the rank's rows of an epoch to the events of a shard.
func (d *decoder) decode(e int32, shard int) error {
	b := &d.pass.shards[shard].events
	for d.seq < int64(e+1)*d.pass.job.window && !d.ended {
		more, err := d.reader.next(&d.action)
		if err != nil {
			return err
		}
		if !more {
			d.ended = true
			break
		}
		row := schema.NullEvent
		row.Rank, row.Seq, row.Epoch, row.ComputeNs = d.rank, d.seq, e, d.action.computeNs
		if err := d.fill(&row, b, e); err != nil {
			return d.pass.job.bad(d.action.line, "%w", err)
		}
		b.Append(&row)
		d.seq++
		if d.action.what == actionEnd {
			d.ended = true
			d.facts.rows = d.seq
		}
	}
	return nil
}

func (d *decoder) fill(row *schema.Event, b *schema.Events, e int32) error {
	a := &d.action
	switch a.what {
	case actionEnd:
		row.Call, row.Class = int16(schema.CallFinalize), int16(schema.ClassOther)
		return nil
	case actionMark:
		row.Call, row.Class = int16(schema.CallCommqMark), int16(schema.ClassMark)
		if a.kind == recordEvent {
			row.Label = fmt.Sprintf("%d:%d", a.eventType, a.value)
		}
		return nil
	}
	switch a.kind {
	case recordSend:
		return d.send(row)
	case recordRecv:
		return d.recv(row, b, e)
	}
	return d.collective(row, b, e)
}

// peer checks the partner of a message.
func (d *decoder) peer() error {
	if int(d.action.peer) >= len(d.pass.job.ranks) {
		return fmt.Errorf("the partner is task %d; there are %d tasks, from 0", d.action.peer, len(d.pass.job.ranks))
	}
	return nil
}

// sendCalls lists the calls by the two mode bits of a send.
var sendCalls = [...]schema.CallID{schema.CallSend, schema.CallSsend, schema.CallIsend, schema.CallIssend}

func (d *decoder) send(row *schema.Event) error {
	if err := d.peer(); err != nil {
		return err
	}
	a := &d.action
	row.Call, row.Class = int16(sendCalls[a.mode]), int16(schema.ClassSend)
	row.Comm, row.SendWorld, row.SendTag, row.SendBytes, row.ProcNull = d.pass.job.comms.forMessage(a.comm, d.rank,
		a.peer),
		a.peer, a.tag, a.sent, 0
	row.SendPeer, _ = d.pass.job.comms.list[row.Comm].rank(a.peer)
	if a.mode&sendImmediate != 0 {
		row.Request = d.newRequest()
	}
	return nil
}

func (d *decoder) newRequest() int64 {
	d.request++
	return d.request
}

func (d *decoder) recv(row *schema.Event, b *schema.Events, e int32) error {
	if err := d.peer(); err != nil {
		return err
	}
	a := &d.action
	k := key{a.peer, a.tag, a.comm}
	row.Call, row.Class = int16(schema.CallRecv), int16(schema.ClassRecv)
	switch a.mode {
	case recvImmediate:
		row.Call, row.Request = int16(schema.CallIrecv), d.newRequest()
		row.DoneSeq = d.facts.doneOf(d.seq)
		d.irecvs[k] = append(d.irecvs[k], pending{d.seq, row.Request, e, b.Len()})
	case recvWait:
		if q := d.irecvs[k]; len(q) > 0 {
			d.complete(row, b, e, q[0])
			if len(q) == 1 {
				delete(d.irecvs, k)
			} else {
				d.irecvs[k] = q[1:]
			}
			return nil
		}
		d.pass.job.lone++
	}
	row.Comm, row.RecvWorld, row.RecvTag, row.RecvBytes = d.pass.job.comms.forMessage(a.comm, d.rank, a.peer), a.peer,
		a.tag,
		a.sent
	row.RecvPeer, _ = d.pass.job.comms.list[row.Comm].rank(a.peer)
	row.PostedAny, row.ProcNull = 0, 0
	if bytes, ok := d.facts.bytes[d.seq]; ok {
		row.RecvBytes = bytes
		d.pass.job.resized++
	}
	return nil
}

// complete makes a row that completes a request.
func (d *decoder) complete(row *schema.Event, b *schema.Events, e int32, o pending) {
	row.Call, row.Class, row.Request = int16(schema.CallWait), int16(schema.ClassComplete), o.request
	if o.epoch == e {
		b.DoneSeq[o.row] = d.seq
	} else if d.pass.first {
		if d.facts.done == nil {
			d.facts.done = map[int64]int64{}
		}
		d.facts.done[o.seq] = d.seq
	}
}

// doneOf returns the row in a later epoch that completes a row, NullInt64 if unknown or none.
func (f *rankFacts) doneOf(seq int64) int64 {
	if done, ok := f.done[seq]; ok {
		return done
	}
	return null64
}

func (d *decoder) collective(row *schema.Event, b *schema.Events, e int32) error {
	a := &d.action
	if a.mode == collectiveWait {
		if len(d.collectives) == 0 {
			return fmt.Errorf("wait for a nonblocking collective, and none is open; want one with synchronism 0 " +
				"before it")
		}
		d.complete(row, b, e, d.collectives[0])
		d.collectives = d.collectives[1:]
		return nil
	}
	id, err := d.pass.job.comms.forCollective(a.comm, d.rank)
	if err != nil {
		return err
	}
	op := a.op % firstNonblocking
	call := operations[op]
	if a.mode == collectiveStart {
		call, row.Request = nonblocking[op], d.newRequest()
		row.DoneSeq = d.facts.doneOf(d.seq)
		d.collectives = append(d.collectives, pending{d.seq, row.Request, e, b.Len()})
	}
	if op == opReduce && a.mode == collectiveBlocking {
		row.Label = schema.LabelSynchronism1
	}
	row.Call, row.Class, row.Comm, row.SendBytes, row.RecvBytes = int16(call), int16(schema.ClassCollective), id,
		a.sent, a.received
	row.Instance = d.instances[id]
	d.instances[id]++
	c := d.pass.job.comms.list[id]
	if !d.pass.first {
		row.RootWorld = c.root(row.Instance)
		return nil
	}
	root, err := a.rootOf(c, len(d.pass.job.ranks))
	if err != nil {
		return err
	}
	return c.arrive(row.Instance, call, d.rank, root, a.line)
}

// rootOf returns the root that the record names, NullInt32 if none.
func (a *action) rootOf(c *comm, ranks int) (int32, error) {
	if a.op%firstNonblocking != opReduce {
		if a.root == 1 {
			return a.task, nil
		}
		return null32, nil
	}
	if _, ok := c.rank(a.root); !ok || int(a.root) >= ranks {
		return 0, fmt.Errorf("the root of MPI_Reduce is task %d, no member of communicator %d; is_root is the "+
			"root's task there", a.root, a.comm)
	}
	return a.root, nil
}
