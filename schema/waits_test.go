package schema

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWaitSums has three ranks on two hosts. Rank 1 waits in its MPI_Waitall (seq 3, 500 to 900) for messages of ranks 0 and 2: that of rank 2 is
// sent last, at 700. Rank 0 sends to rank 2 in MPI_Isend (seq 1, 210 to 215) and waits for it in MPI_Wait (seq 2, 300 to 420), during which the receive is
// posted, at 390. The MPI_Recv of rank 2 (seq 1, 390 to 450) waits for nobody. The same rows in one epoch and in several.
func TestWaitSums(t *testing.T) {
	row := func(rank int32, seq int64, class Class, start, end int64) Event {
		e := NullEvent
		e.Rank, e.Seq, e.Class, e.StartNs, e.EndNs = rank, seq, int16(class), start, end
		return e
	}
	posted := func(e Event, done int64) Event { e.Request, e.DoneSeq = 5, done; return e }
	to := func(e Event, dst int32) Event { e.SendWorld = dst; return e }
	from := func(e Event, src int32) Event { e.RecvWorld = src; return e }
	events := []Event{
		to(row(0, 0, ClassSend, 600, 605), 1), to(posted(row(0, 1, ClassSend, 610, 615), 2), 2), row(0, 2, ClassComplete, 700, 820),
		from(posted(row(1, 0, ClassRecv, 100, 101), 3), 0), from(posted(row(1, 1, ClassRecv, 110, 111), 3), 2), row(1, 2, ClassOther, 200, 250), row(1, 3, ClassComplete, 500, 900),
		to(row(2, 0, ClassSend, 700, 705), 1), from(row(2, 1, ClassRecv, 790, 850), 0),
	}
	message := func(src, dst int32, bytes, sendSeq, sent, done, post, start, end int64) Message {
		m := NullMessage
		m.Src, m.Dst, m.Bytes, m.SendSeq, m.SendStartNs, m.RecvDoneSeq, m.RecvPostNs, m.RecvStartNs, m.RecvEndNs = src, dst, bytes, sendSeq, sent, done, post, start, end
		return m
	}
	messages := []Message{
		message(0, 1, 4097, 0, 600, 3, 100, 500, 900),
		message(0, 2, 9, 1, 610, 1, 790, 790, 850),
		message(2, 1, 4097, 0, 700, 3, 110, 500, 900),
	}
	waits := []Wait{
		{Src: 0, Dst: 1, Messages: 1},
		{Src: 0, Dst: 2, Messages: 1, LateReceives: 1, LateReceiveNs: 90, LateReceiveMaxNs: 90}, // 790 - 700
		{Src: 2, Dst: 1, Messages: 1, LateSends: 1, LateSendNs: 200, LateSendMaxNs: 200},        // 700 - 500
	}
	transfers := []Transfer{ // the call that waited completed two messages that were sent after it began: neither time is known
		{SameHost: 0, Bytes: 9, Messages: 1, MinNs: NullInt64, MaxNs: NullInt64},
		{SameHost: 0, Bytes: 4097, Messages: 1, MinNs: NullInt64, MaxNs: NullInt64},
		{SameHost: 1, Bytes: 4097, Messages: 1, MinNs: NullInt64, MaxNs: NullInt64},
	}
	for k, test := range []struct {
		name             string
		events, messages []int32 // the epoch of each row
	}{
		{"one epoch", []int32{0, 0, 0, 0, 0, 0, 0, 0, 0}, []int32{0, 0, 0}},
		{"calls complete later", []int32{0, 1, 3, 0, 1, 2, 3, 1, 1}, []int32{0, 1, 1}},
		{"messages are met later", []int32{0, 0, 0, 0, 0, 0, 0, 3, 4}, []int32{0, 4, 3}},
		{"both", []int32{2, 2, 3, 0, 1, 1, 2, 3, 4}, []int32{2, 4, 3}},
		{"one epoch, as if rows were missing", []int32{0, 0, 0, 0, 0, 0, 0, 0, 0}, []int32{0, 0, 0}},
		{"both, as if rows were missing", []int32{2, 2, 3, 0, 1, 1, 2, 3, 4}, []int32{2, 4, 3}},
	} {
		dense := k < 4
		w := NewWaitSums([]int32{0, 0, 1}, dense)
		for epoch := range int32(5) {
			e, m := &Events{}, &Messages{}
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
		var rows []Batch
		tables, err := w.Rows(func(b Batch) error { rows = append(rows, b); return nil })
		if err != nil || len(tables) != 3 {
			t.Fatalf("%s: tables %v, error %v; want three", test.name, tables, err)
		}
		gotWaits, gotTransfers := rows[0].(*Waits), rows[1].(*Transfers)
		var is []Wait
		for i := range gotWaits.Src {
			var x Wait
			gotWaits.Row(i, &x)
			is = append(is, x)
		}
		var times []Transfer
		for i := range gotTransfers.Bytes {
			var x Transfer
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
