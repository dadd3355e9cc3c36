package main

import (
	"context"
	"slices"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// readSelves reads what ranks recorded with commq_send_to_self. Most runs have none, which the profile tells, or one column of events.
func (d *detection) readSelves(ctx context.Context) (out []detect.Self, err error) {
	if none, err := d.profiledWithout(ctx, schema.CallCommqSendToSelf); err != nil || none {
		return nil, err
	}
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

// profiledWithout says whether the run's profile is there and has no such call.
func (d *detection) profiledWithout(ctx context.Context, call schema.CallID) (bool, error) {
	there := slices.ContainsFunc(d.manifest.Tables, func(t schema.TableInfo) bool {
		return t.Name == schema.ProfileTable.Name && len(t.Files) > 0
	})
	if !there {
		return false, nil
	}
	without := true
	err := writer.ReadTable(ctx, d.dir, &schema.ProfileTable, smallRows, func(b schema.Batch) error {
		without = without && !slices.Contains(b.(*schema.Profiles).Call, int16(call))
		return nil
	})
	return without, err
}
