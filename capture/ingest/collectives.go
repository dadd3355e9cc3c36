package ingest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// part is the data that a rank sends to and receives from one other rank in a collective operation.
type part struct {
	seq        int64 // of its row
	world      int32
	send, recv int64 // bytes
}

// collectives are the collective operations of one rank.
type collectives struct {
	rank   int32
	parts  []part                  // of the current epoch, by row
	found  []part                  // of the call that is being decoded
	counts map[collectiveKey]int64 // number of calls in all epochs
}

type collectiveKey struct {
	call schema.CallID
	comm int32
}

// setArguments puts what a collective sends and receives, and its root, into the row. It returns the parts of the call;
// they are valid until the next call.
func (k *collectives) setArguments(c *call, coll *spool.Coll, r *schema.Event) (parts []part, err error) {
	if c.view < 0 {
		if c.lenient {
			return nil, nil
		}
		return nil, fmt.Errorf("no communicator")
	}
	s, v := c.slot, c.handles.View(c.view)
	args := schema.CollectiveArgs{Peers: int64(len(v.Peers)), Group: int64(len(v.Own)), Inter: v.Inter,
		Send: schema.NullInt64, Recv: schema.NullInt64}
	switch {
	case s.Flags&spool.FlagRoot != 0:
		args.Root, r.RootWorld = true, k.rank
	case s.Flags&spool.FlagProcNull != 0:
		args.Aside = true
	case s.Peer != schema.NullInt32:
		if _, r.RootWorld, err = c.peer(s.Peer); err != nil {
			return nil, fmt.Errorf("root: %w", err)
		}
		args.Root = !v.Inter && s.Peer == v.Rank
	}
	if r.SendDatatype, args.Send, err = c.sized(s.Dtype, s.Count); err != nil {
		return nil, err
	}
	r.SendCount, r.SendBuffer = s.Count, address(s.Buf)
	if coll == nil {
		return nil, nil
	}
	if r.ReduceOp, err = reduceOp(coll.Op, r.ReduceOp); err != nil {
		return nil, err
	}
	if r.RecvDatatype, _, err = c.sized(coll.Rdtype, schema.NullInt64); err != nil {
		return nil, err
	}
	r.RecvCount, r.RecvBuffer = coll.Rcount, address(coll.Rbuf)
	args.Send, args.Recv = coll.Sbytes, coll.Rbytes
	if parts, err = k.findParts(c, r.Seq, &args); err != nil {
		return nil, err
	}
	r.SendBytes, r.RecvBytes = schema.CollectiveBytes(schema.CallID(s.Call), args)
	return parts, nil
}

// reduceOp returns the reduction operation in a slot, or none.
func reduceOp(op uint16, none int16) (int16, error) {
	if op == 0xffff {
		return none, nil
	}
	if int(op) >= len(schema.OpNames) {
		return 0, fmt.Errorf("reduction operation %d", op)
	}
	return int16(op), nil
}

// findParts reads the parts of the call. What the rank sends to itself goes into args.
func (k *collectives) findParts(c *call, seq int64, args *schema.CollectiveArgs) ([]part, error) {
	k.found = k.found[:0]
	for i := 1; i < len(c.group.slots); i++ {
		if c.group.slots[i].Kind != spool.KindParts {
			continue
		}
		s := c.group.slots[i].AsParts()
		for _, p := range s.Part[:s.N] {
			world, err := c.handles.WorldRank(c.view, p.Peer)
			if err != nil {
				return nil, fmt.Errorf("part: %w", err)
			}
			if world == k.rank && !args.Inter {
				args.OwnSend, args.OwnRecv = p.SendBytes, p.RecvBytes
			}
			if world != schema.NullInt32 && (p.SendBytes != 0 || p.RecvBytes != 0) {
				k.found = append(k.found, part{seq, world, p.SendBytes, p.RecvBytes})
			}
		}
	}
	return k.found, nil
}

// dropParts drops the parts of the last row.
func (k *collectives) dropParts(seq int64) {
	for n := len(k.parts); n > 0 && k.parts[n-1].seq == seq; n = len(k.parts) {
		k.parts = k.parts[:n-1]
	}
}

// addStarted adds the parts of a started persistent collective.
func (k *collectives) addStarted(seq int64, parts []part) {
	for _, p := range parts {
		k.parts = append(k.parts, part{seq, p.world, p.send, p.recv})
	}
}

// sortedParts returns the parts of the epoch, sorted by row and peer.
func (k *collectives) sortedParts() []part {
	slices.SortStableFunc(k.parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.world, b.world))
	})
	return k.parts
}

// collective makes the row of a collective or of a communicator constructor.
func (d *decoder) collective(c *call, r *schema.Event) error {
	coll := c.group.coll()
	id := schema.CallID(c.slot.Call)
	if coll != nil && id != schema.CallCommCreateGroup && id != schema.CallIntercommCreate {
		r.Instance = int64(coll.Instance) // those two are not collective over the parent
	}
	var parts []part
	if c.op == opCollective || c.op == opIcollective || c.op == opCollectiveInit {
		var err error
		if parts, err = d.collectives.setArguments(c, coll, r); err != nil {
			return err
		}
	}
	if c.op == opCollectiveInit {
		c.setRequest(r)
		d.persistent.addCollective(c, r, parts)
		r.SendBytes, r.RecvBytes = schema.NullInt64, schema.NullInt64 // it moves no data: its starts do
		d.add(r)
		return nil
	}
	if c.by.err != 0 { // like a failed send it moved nothing that its arguments tell
		r.SendBytes, r.RecvBytes, parts = schema.NullInt64, schema.NullInt64, nil
	} else if c.view >= 0 && (c.op == opCollective || c.op == opIcollective) {
		d.collectives.counts[collectiveKey{id, r.Comm}]++
	}
	d.collectives.parts = append(d.collectives.parts, parts...)
	if c.op == opIcollective || c.op == opCommIdup {
		d.addPosted(c, r, d.posted(c.slot.Req, c.view))
		return nil
	}
	d.add(r)
	return nil
}
