package derive

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

// TestWaitSums has three ranks on two hosts. Rank 1 waits in its MPI_Waitall (seq 3, 500 to 900) for messages of
// ranks 0 and 2: that of rank 2 is sent last, at 700. Rank 0 sends to rank 2 in MPI_Isend (seq 1, 210 to 215) and
// waits for it in MPI_Wait (seq 2, 300 to 420), during which the receive is posted, at 390. The MPI_Recv of rank 2
// (seq 1, 390 to 450) does not wait. The same rows in one epoch and in several.
func TestWaitSums(t *testing.T) {
	row := func(rank int32, seq int64, class schema.Class, start, end int64) schema.Event {
		e := schema.NullEvent
		e.Rank, e.Seq, e.Class, e.StartNs, e.EndNs = rank, seq, int16(class), start, end
		return e
	}
	posted := func(e schema.Event, done int64) schema.Event { e.Request, e.DoneSeq = 5, done; return e }
	to := func(e schema.Event, dst int32) schema.Event { e.SendWorld = dst; return e }
	from := func(e schema.Event, src int32) schema.Event { e.RecvWorld = src; return e }
	events := []schema.Event{
		to(row(0, 0, schema.ClassSend, 600, 605), 1), to(posted(row(0, 1, schema.ClassSend, 610, 615), 2), 2),
		row(0, 2, schema.ClassComplete, 700, 820),
		from(posted(row(1, 0, schema.ClassRecv, 100, 101), 3), 0),
		from(posted(row(1, 1, schema.ClassRecv, 110, 111), 3), 2),
		row(1, 2, schema.ClassOther, 200, 250), row(1, 3, schema.ClassComplete, 500, 900),
		to(row(2, 0, schema.ClassSend, 700, 705), 1), from(row(2, 1, schema.ClassRecv, 790, 850), 0),
	}
	message := func(src, dst int32, bytes, sendSeq, sent, done, post, start, end int64) schema.Message {
		m := schema.NullMessage
		m.Src, m.Dst, m.Bytes, m.SendSeq, m.SendStartNs, m.RecvDoneSeq, m.RecvPostNs, m.RecvStartNs, m.RecvEndNs = src, dst, bytes, sendSeq, sent, done, post, start, end
		return m
	}
	messages := []schema.Message{
		message(0, 1, 4097, 0, 600, 3, 100, 500, 900),
		message(0, 2, 9, 1, 610, 1, 790, 790, 850),
		message(2, 1, 4097, 0, 700, 3, 110, 500, 900),
	}
	waits := []schema.Wait{
		{Src: 0, Dst: 1, Messages: 1},
		{Src: 0, Dst: 2, Messages: 1, LateReceives: 1, LateReceiveNs: 90, LateReceiveMaxNs: 90}, // 790 - 700
		{Src: 2, Dst: 1, Messages: 1, LateSends: 1, LateSendNs: 200, LateSendMaxNs: 200},        // 700 - 500
	}
	// the call that waited completed two messages sent after it began, so neither time is known
	transfers := []schema.Transfer{
		{SameHost: 0, Bytes: 9, Messages: 1, MinNs: schema.NullInt64, MaxNs: schema.NullInt64},
		{SameHost: 0, Bytes: 4097, Messages: 1, MinNs: schema.NullInt64, MaxNs: schema.NullInt64},
		{SameHost: 1, Bytes: 4097, Messages: 1, MinNs: schema.NullInt64, MaxNs: schema.NullInt64},
	}
	for k, test := range []struct {
		name             string
		events, messages []int32 // the epoch of each row
	}{
		{"one epoch", []int32{0, 0, 0, 0, 0, 0, 0, 0, 0}, []int32{0, 0, 0}},
		{"calls complete later", []int32{0, 1, 3, 0, 1, 2, 3, 1, 1}, []int32{0, 1, 1}},
		{"messages are added later", []int32{0, 0, 0, 0, 0, 0, 0, 3, 4}, []int32{0, 4, 3}},
		{"both", []int32{2, 2, 3, 0, 1, 1, 2, 3, 4}, []int32{2, 4, 3}},
		{"one epoch, as if rows were missing", []int32{0, 0, 0, 0, 0, 0, 0, 0, 0}, []int32{0, 0, 0}},
		{"both, as if rows were missing", []int32{2, 2, 3, 0, 1, 1, 2, 3, 4}, []int32{2, 4, 3}},
	} {
		dense := k < 4
		w := NewWaitSums([]int32{0, 0, 1}, dense)
		for epoch := range int32(5) {
			e, m := &schema.Events{}, &schema.Messages{}
			for i := range events {
				if x := events[i]; test.events[i] == epoch {
					x.Epoch = epoch
					e.Append(&x)
				}
			}
			for i := range messages {
				if x := messages[i]; test.messages[i] == epoch {
					x.Epoch = epoch
					m.Append(&x)
				}
			}
			w.AddEvents(e)
			w.AddMessages(m)
		}
		var rows []schema.Batch
		tables, err := w.Rows(func(b schema.Batch) error { rows = append(rows, b); return nil })
		if err != nil || len(tables) != 3 {
			t.Fatalf("%s: tables %v, error %v; want three", test.name, tables, err)
		}
		gotWaits, gotTransfers := rows[0].(*schema.Waits), rows[1].(*schema.Transfers)
		var is []schema.Wait
		for i := range gotWaits.Src {
			var x schema.Wait
			gotWaits.Row(i, &x)
			is = append(is, x)
		}
		var times []schema.Transfer
		for i := range gotTransfers.Bytes {
			var x schema.Transfer
			gotTransfers.Row(i, &x)
			times = append(times, x)
		}
		if d := cmp.Diff(waits, is); d != "" {
			t.Errorf("%s: waits (-want +got):\n%s", test.name, d)
		}
		if d := cmp.Diff(transfers, times); d != "" {
			t.Errorf("%s: transfers (-want +got):\n%s", test.name, d)
		}
	}
}
