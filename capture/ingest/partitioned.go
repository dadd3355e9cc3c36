package ingest

import (
	"fmt"
	"math"

	"github.com/commq/commq/capture/match"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// partition completes the template of a partitioned request: a start of it is a message of all its partitions. Those of
// the same communicator, ranks and tag meet in the order they were made.
func (d *decoder) partition(c *spool.Call, t *template) error {
	partitions := int64(0)
	for i := 1; i < len(d.g.slots); i++ {
		if w := d.g.slots[i].AsWide(); w.Kind == spool.KindWide && w.What == spool.WideParts {
			partitions = w.Value
		}
	}
	if partitions <= 0 {
		return nil
	}
	if c.Count > math.MaxInt64/partitions || c.Count < 0 {
		return fmt.Errorf("%d partitions of %d elements", partitions, c.Count)
	}
	t.each = c.Count
	key := partKey{match.Channel{Comm: t.row.Comm, Src: t.row.RecvWorld, Dst: d.rank, Tag: t.row.RecvTag}, t.class == schema.ClassSend}
	if t.class == schema.ClassSend {
		key.Channel = match.Channel{Comm: t.row.Comm, Src: d.rank, Dst: t.row.SendWorld, Tag: t.row.SendTag}
		t.row.SendCount = partitions * c.Count
		if t.row.ProcNull == 0 {
			var err error
			if _, t.row.SendBytes, err = d.sized(c.Dtype, t.row.SendCount); err != nil {
				return err
			}
		}
	} else {
		t.row.RecvCount = partitions * c.Count
	}
	if d.partsMade == nil {
		d.partsMade, d.partOf = map[partKey]int32{}, map[int32]int32{}
	}
	d.partsMade[key]++
	t.part = d.partsMade[key]
	return nil
}

// parted puts a started partitioned request onto its own channel.
func (d *decoder) parted(t *template, p *pending) {
	if t.part == 0 {
		return
	}
	if p.send >= 0 {
		d.partOf[p.row] = t.part
	}
	if p.recv >= 0 {
		d.recvs[p.recv].Part = t.part
	}
}

// ready makes the row of a call about some partitions: how many elements of the request they are.
func (d *decoder) ready(c *spool.Call, r *schema.Event) {
	d.request(c, r)
	if p := d.reqs.get(c.Req); p != nil {
		if t := d.templates[p.made]; t != nil && t.each > 0 && c.Count > 0 && c.Count <= math.MaxInt64/t.each {
			if t.class == schema.ClassSend {
				r.SendCount, r.SendDatatype = c.Count*t.each, t.row.SendDatatype
			} else {
				r.RecvCount, r.RecvDatatype = c.Count*t.each, t.row.RecvDatatype
			}
		}
	}
	d.put()
}
