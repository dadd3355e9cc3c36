package ingest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// switched makes a job in which rank 3 sends rank 5 three messages, of 9, 8 and 7 elements. Recording is off during the
// second. Were it not matched all the same, the third would be matched with the wrong receive.
func switched(rank int, s *script) {
	level := func(n int64) func(*spool.Call) { return func(c *spool.Call) { c.Count = n } }
	switch rank {
	case 3:
		s.call(schema.CallSend, to(0, 5, 9, 9, 0))
		s.call(schema.CallPcontrol, level(0))
		s.call(schema.CallSend, to(0, 5, 9, 8, 0))
		s.call(schema.CallPcontrol, level(7))
		s.call(schema.CallPcontrol, level(1))
		s.call(schema.CallSend, to(0, 5, 9, 7, 0))
		s.call(schema.CallPcontrol, level(2))
		s.Def(spool.DefLabel, 0, []byte("solve"))
	case 5:
		s.call(schema.CallRecv, received(0, 3, 9, 36, 0))
		s.call(schema.CallIrecv, from(0, 3, 9, 1))
		s.call(schema.CallWait, got(1, 3, 9, 32))
		s.call(schema.CallRecv, received(0, 3, 9, 28, 0))
	}
}

// rowsOfRank lists a rank's rows as seq:call, with the label.
func rowsOfRank(r *result, rank int32) string {
	var rows []string
	for i := range r.events {
		if e := &r.events[i]; e.Rank == rank {
			row := fmt.Sprintf("%d:%s", e.Seq, strings.TrimPrefix(schema.CallID(e.Call).String(), "MPI_"))
			if e.Label != schema.NullText {
				row += "=" + e.Label
			}
			rows = append(rows, row)
		}
	}
	return strings.Join(rows, " ")
}

func bytesOf(r *result) string {
	var b []string
	for i := range r.messages {
		b = append(b, fmt.Sprint(r.messages[i].Bytes))
	}
	return strings.Join(b, " ")
}

func TestFiltersLeaveRowsOutAfterMatching(t *testing.T) {
	dir := program{ranks: 6, body: switched}.write(t)
	const all5 = "0:Init 1:Recv 2:Irecv 3:Wait 4:Recv 5:Finalize"
	for _, x := range []struct {
		o                             Options
		three, five, messages, filter string
	}{
		{Options{}, "0:Init 1:Send 2:Pcontrol=off 5:Pcontrol=on 6:Send 7:Pcontrol=solve 8:Finalize", all5, "36 28",
			"pcontrol"},
		// the row that received a message stays, but the message is left out with the row that sent it
		{Options{Calls: []string{"-MPI_Send", "-MPI_I*"}}, "2:Pcontrol=off 5:Pcontrol=on 7:Pcontrol=solve 8:Finalize",
			"1:Recv 3:Wait 4:Recv 5:Finalize", "", "pcontrol -call:MPI_Send -call:MPI_I*"},
		{Options{Calls: []string{"MPI_*e[nc]*", "-MPI_Irecv"}}, "1:Send 6:Send", "1:Recv 4:Recv", "36 28",
			"pcontrol call:MPI_*e[nc]* -call:MPI_Irecv"},
		{Options{Record: RecordMessages}, "0:Init 2:Pcontrol=off 5:Pcontrol=on 7:Pcontrol=solve 8:Finalize",
			"0:Init 5:Finalize", "36 28", "pcontrol"},
		{Options{Record: RecordCollectives}, "0:Init 2:Pcontrol=off 5:Pcontrol=on 7:Pcontrol=solve 8:Finalize",
			"0:Init 5:Finalize", "", "pcontrol"},
	} {
		r := ingested(t, dir, x.o)
		compareLines(t, fmt.Sprint(x.o.Calls, x.o.Record, " rank 3"), rowsOfRank(r, 3), x.three)
		compareLines(t, fmt.Sprint(x.o.Calls, x.o.Record, " rank 5"), rowsOfRank(r, 5), x.five)
		compareLines(t, "messages", bytesOf(r), x.messages)
		compareLines(t, "filters", strings.Join(r.Filters, " "), x.filter)
		if c := r.Counts; c.Messages != 3 || c.MessageBytes != 96 || c.UnmatchedSends+c.UnmatchedReceives != 0 {
			t.Errorf("%v %s: counts %+v, want all three messages", x.o.Calls, x.o.Record, c)
		}
	}
}

func TestWrongPatternsOfCalls(t *testing.T) {
	for pattern, want := range map[string]string{"MPI_Sned": "no MPI call has such a name", "-[": "not a pattern"} {
		if err := CheckCalls([]string{pattern}, RecordAll); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", pattern, err, want)
		}
	}
}

func TestPatternsThatKeepNoCall(t *testing.T) {
	for _, x := range []struct {
		calls, record, want string
	}{
		{"-*", RecordAll, "calls -* keeps no call: nothing would be recorded"},
		{"MPI_Send,-MPI_Send", RecordMessages, "calls MPI_Send,-MPI_Send keeps no call: nothing would be recorded"},
		{"MPI_Isend", RecordCollectives,
			"calls MPI_Isend with --record collectives keeps no call: nothing would be recorded"},
		{"MPI_Isend", RecordAll, "<nil>"},
		{"-MPI_*send", RecordCollectives, "<nil>"},
		{"MPI_Isend,MPI_Bcast", RecordCollectives, "<nil>"},
	} {
		if err := CheckCalls(strings.Split(x.calls, ","), x.record); fmt.Sprint(err) != x.want {
			t.Errorf("%s, record %s: %v, want %s", x.calls, x.record, err, x.want)
		}
	}
}
