package writer

import (
	"context"
	"slices"

	"github.com/commq/commq/schema"
)

// hasWaits says whether the tables waits and transfers are made of a run: it has times, and every call and message.
func hasWaits(m *schema.Manifest) bool {
	return m.TimeOrigin != "untimed" && m.Record == "all" && len(m.Filters) == 0 && m.Counts.Messages > 0
}

// lacking says of a table without rows that the run lacks it, and not that it is empty.
func lacking(t *schema.Table) bool { return t == &schema.WaitsTable || t == &schema.TransfersTable }

// writeWaits writes the tables waits and transfers of a run whose other tables are closed.
func (r *Run) writeWaits(m *schema.Manifest) error {
	if !hasWaits(m) {
		return nil
	}
	waits, transfers, err := makeWaits(context.Background(), r.dir)
	if err == nil {
		err = r.write(0, waits)
	}
	if err == nil {
		err = r.write(0, transfers)
	}
	return err
}

// makeWaits makes the rows of waits and transfers of the other tables of the run in folder dir.
func makeWaits(ctx context.Context, dir string) (*schema.Waits, *schema.Transfers, error) {
	var hosts []int32
	err := ReadTable(ctx, dir, &schema.RanksTable, checkRows, func(b schema.Batch) error {
		hosts = append(hosts, b.(*schema.RankInfos).Host...)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	r := waitReader{sums: schema.NewWaitSums(hosts)}
	r.events, err = ReadEpochs(dir, &schema.EventsTable, waitRows, "rank", "seq", "class", "start_ns", "end_ns", "send_world", "recv_world", "request", "done_seq")
	if err != nil {
		return nil, nil, err
	}
	r.messages, err = ReadEpochs(dir, &schema.MessagesTable, waitRows, "src", "dst", "epoch", "bytes", "send_seq", "send_start_ns", "recv_done_seq",
		"recv_post_ns", "recv_start_ns", "recv_end_ns")
	for more := true; err == nil && more; {
		more, err = r.next(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	waits, transfers := r.sums.Rows()
	return waits, transfers, nil
}

// waitRows is the number of rows read at a time.
const waitRows = 1 << 14

// waitReader reads a run epoch by epoch.
type waitReader struct {
	sums             *schema.WaitSums
	events, messages *Epochs
	ofEvents         schema.Events // of the epoch that is being read
	ofMessages       schema.Messages
}

// next adds the rows of the next epoch; false: there are no more.
func (r *waitReader) next(ctx context.Context) (more bool, err error) {
	last, ok := r.events.epoch()
	if of, some := r.messages.epoch(); some && (!ok || of < last) {
		last, ok = of, true
	}
	if !ok {
		return false, nil
	}
	r.ofEvents.Resize(0)
	r.ofMessages.Resize(0)
	for of, some := r.messages.epoch(); some && of <= last; of, some = r.messages.epoch() {
		err := r.messages.Next(ctx, func(b schema.Batch) error {
			m := b.(*schema.Messages)
			r.keepMessages(m)
			last = max(last, int64(slices.Max(m.Epoch))) // a row group may have several epochs
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	// A message is in no earlier epoch than the row that sent it.
	for of, some := r.events.epoch(); some && of <= last; of, some = r.events.epoch() {
		if err := r.events.Next(ctx, func(b schema.Batch) error { r.keepEvents(b.(*schema.Events)); return nil }); err != nil {
			return false, err
		}
	}
	r.sums.Epoch([]*schema.Events{&r.ofEvents}, []*schema.Messages{&r.ofMessages})
	return true, nil
}

func (r *waitReader) keepEvents(e *schema.Events) {
	x := &r.ofEvents
	x.Rank, x.Seq, x.Class = append(x.Rank, e.Rank...), append(x.Seq, e.Seq...), append(x.Class, e.Class...)
	x.StartNs, x.EndNs, x.DoneSeq = append(x.StartNs, e.StartNs...), append(x.EndNs, e.EndNs...), append(x.DoneSeq, e.DoneSeq...)
	x.SendWorld, x.RecvWorld, x.Request = append(x.SendWorld, e.SendWorld...), append(x.RecvWorld, e.RecvWorld...), append(x.Request, e.Request...)
}

func (r *waitReader) keepMessages(m *schema.Messages) {
	x := &r.ofMessages
	x.Src, x.Dst, x.Bytes, x.SendSeq = append(x.Src, m.Src...), append(x.Dst, m.Dst...), append(x.Bytes, m.Bytes...), append(x.SendSeq, m.SendSeq...)
	x.SendStartNs, x.RecvDoneSeq, x.RecvPostNs = append(x.SendStartNs, m.SendStartNs...), append(x.RecvDoneSeq, m.RecvDoneSeq...), append(x.RecvPostNs, m.RecvPostNs...)
	x.RecvStartNs, x.RecvEndNs = append(x.RecvStartNs, m.RecvStartNs...), append(x.RecvEndNs, m.RecvEndNs...)
}
