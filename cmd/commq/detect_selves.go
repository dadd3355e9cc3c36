package main

import (
	"context"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// readSelves reads what ranks recorded with commq_send_to_self. Most runs have none, which one column tells.
func (d *detection) readSelves(ctx context.Context) (out []detect.Self, err error) {
	some := false
	each := func(visit func(t *schema.Events, i int), columns ...string) error {
		rows, err := writer.ReadEpochs(d.dir, &schema.EventsTable, eventRows, append(columns, "call")...)
		if err != nil {
			return err
		}
		return rows.All(ctx, func(b schema.Batch) error {
			t := b.(*schema.Events)
			for i, call := range t.Call {
				if schema.CallID(call) == schema.CallCommqSendToSelf {
					visit(t, i)
				}
			}
			return nil
		})
	}
	if err := each(func(*schema.Events, int) { some = true }); err != nil || !some {
		return nil, err
	}
	err = each(func(t *schema.Events, i int) {
		if t.PayloadHash[i] == schema.NullInt64 {
			return
		}
		out = append(out, detect.Self{Rank: t.Rank[i], Datatype: t.SendDatatype[i], Seq: t.Seq[i], Bytes: t.SendBytes[i],
			Hash: t.PayloadHash[i], Sum: t.PayloadSum[i], Head: t.PayloadHead[i], Buffer: t.SendBuffer[i]})
	}, "rank", "seq", "send_datatype", "send_bytes", "send_buffer", "payload_hash", "payload_sum", "payload_head")
	return out, err
}
