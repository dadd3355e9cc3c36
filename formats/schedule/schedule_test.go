package schedule

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// written writes a run of two ranks that make the same rows, each to and from the other.
func written(t *testing.T, rows ...schema.Event) string {
	t.Helper()
	store := t.TempDir()
	u := &run.Untimed{Store: store, Name: "run", Epochs: 1, Calls: []int64{int64(len(rows)), int64(len(rows))},
		Callsite: func(int32, int64) int32 { return null32 },
		Manifest: schema.Manifest{Ranks: 2, TimeOrigin: "untimed", ComputeClock: "cpu", Record: "all", Hash: "none",
			Ended: schema.EndedNames[schema.EndedFinalized]}}
	for i := range int32(2) {
		c := schema.NullComm
		c.CommRank, c.WorldRank, c.Kind = i, i, int16(schema.CommWorld)
		u.Comms = append(u.Comms, c)
	}
	u.Next = func(rank int32, b *schema.Events, _ *schema.Parts) error {
		for seq, e := range rows {
			e.Rank, e.Seq, e.Class = rank, int64(seq), int16(schema.Calls[e.Call].Class)
			e.ComputeNs = 10
			if schema.Class(e.Class) == schema.ClassSend {
				e.Comm, e.SendPeer, e.SendWorld, e.SendTag, e.SendBytes, e.ProcNull = 0, 1-rank, 1-rank, 9, 4097, 0
			} else if schema.Class(e.Class) == schema.ClassCollective {
				e.Comm, e.Instance = 0, int64(seq)
			} else if schema.Class(e.Class) == schema.ClassRecv {
				e.Comm, e.RecvPeer, e.RecvWorld, e.RecvTag, e.RecvBytes = 0, 1-rank, 1-rank, 9, 4097
				e.ProcNull, e.PostedAny = 0, 0
			}
			b.Append(&e)
		}
		return nil
	}
	if _, err := run.WriteUntimed(context.Background(), u); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(store, "run")
}

func event(call schema.CallID, request, done int64) schema.Event {
	e := schema.NullEvent
	e.Call, e.Request, e.DoneSeq = int16(call), request, done
	return e
}

// A wait is only for what may wait for the other side: not for a buffered send.
func TestWaits(t *testing.T) {
	dir := written(t, event(schema.CallIbsend, 1, 1), event(schema.CallWait, 1, null64), event(schema.CallIrecv, 2, 3),
		event(schema.CallWait, 2, null64), event(schema.CallIsend, 3, 5), event(schema.CallWait, 3, null64),
		event(schema.CallRecv, null64, null64), event(schema.CallFinalize, null64, null64))
	names := []string{"compute", "send", "recv", "wait", "collective"}
	for _, c := range []struct {
		o    Options
		want string
	}{{Options{}, "unwaited send 1 from 1, recv 2 from 1, wait 2 from 1, send 3 from 1, wait 3 from 1, recv 0 from 1"},
		{Options{WaitBuffered: true}, "send 1 from 1, wait 1 from 1, recv 2 from 1, wait 2 from 1, send 3 from 1, " +
			"wait 3 from 1, recv 0 from 1"}} {
		var got []string
		ranks, _, err := Each(context.Background(), dir, c.o, func(a *Action) error {
			if a.Rank == 0 && a.Kind != Compute {
				text := fmt.Sprintf("%s %d from %d", names[a.Kind], a.ID, a.Peer)
				if a.Unwaited {
					text = "unwaited " + text
				}
				got = append(got, text)
			}
			return nil
		})
		if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" || err != nil || ranks != 2 {
			t.Errorf("%+v: %s%d ranks, %v", c.o, diff, ranks, err)
		}
	}
}

// A broadcast without a root goes from the first rank, which a note tells; a format may keep it without one.
func TestUnknownRoot(t *testing.T) {
	e := event(schema.CallBcast, null64, null64)
	e.RecvBytes = 4097
	dir := written(t, e, event(schema.CallFinalize, null64, null64))
	var got []string
	act := func(a *Action) error {
		switch {
		case a.Kind == CollectiveCall:
			got = append(got, fmt.Sprintf("%d: root %d, %t, %t", a.Rank, a.Call.Root, a.Call.SendUnknown, a.Call.RecvUnknown))
		case a.Kind == Send:
			got = append(got, fmt.Sprintf("%d sends %d", a.Rank, a.Bytes))
		}
		return nil
	}
	_, notes, err := Each(context.Background(), dir, Options{}, act)
	if err != nil || !cmp.Equal(got, []string{"0 sends 4097"}) ||
		notes["Collectives whose root the run does not have, written with the first rank as root"] != 2 {
		t.Errorf("%q, %v, %v", got, notes, err)
	}
	got = nil
	_, notes, err = Each(context.Background(), dir, Options{Keep: func(*Collective) bool { return true }}, act)
	want := []string{"0: root -1, true, false", "1: root -1, true, false"}
	if err != nil || !cmp.Equal(got, want) || len(notes) > 0 {
		t.Errorf("%q, %v, %v", got, notes, err)
	}
}

// A call that makes a communicator is a barrier of those that make it; one that makes none, or fails, is nothing.
func TestConstructors(t *testing.T) {
	made := func(call schema.CallID, instance, request, done int64) schema.Event {
		e := event(call, request, done)
		e.Comm, e.Instance = 0, instance
		return e
	}
	failed := made(schema.CallCommCreate, 2, null64, null64)
	failed.ErrorClass = 5
	dir := written(t, made(schema.CallCommSplit, 0, null64, null64), made(schema.CallCommIdup, 1, 1, 2),
		event(schema.CallWait, 1, null64), failed, made(schema.CallCommFree, null64, null64, null64),
		event(schema.CallFinalize, null64, null64))
	var got []string
	act := func(a *Action) error {
		if a.Kind == CollectiveCall || a.Kind == Wait {
			got = append(got, fmt.Sprintf("%d: %s, blocking %t, wait %t", a.Rank, a.Call.Op, a.Call.Blocking, a.Kind == Wait))
		}
		return nil
	}
	_, notes, err := Each(t.Context(), dir, Options{Keep: func(*Collective) bool { return true }}, act)
	var want []string
	for rank := range 2 {
		for _, text := range []string{"blocking true, wait false", "blocking false, wait false", "blocking false, wait true"} {
			want = append(want, fmt.Sprintf("%d: MPI_Barrier, %s", rank, text))
		}
	}
	texts := []string{"Calls that all ranks of a communicator make together, such as MPI_Comm_split, written as MPI_Barrier: 4.",
		"Collectives that returned an error and were left out: 2."}
	if d := cmp.Diff(want, got) + cmp.Diff(texts, notes.Texts()); d != "" || err != nil {
		t.Errorf("%s%v", d, err)
	}
}

// Communicators are found by their ids, which may have gaps; one that the run does not have is an error.
func TestIDsWithGaps(t *testing.T) {
	dir := formatstest.WriteRows(t, `
ranks rank=0 events=2 ended=finalized
ranks rank=1 events=2 ended=finalized
comms comm=0 comm_rank=0 world_rank=0
comms comm=0 comm_rank=1 world_rank=1
comms comm=2 comm_rank=0 world_rank=1
comms comm=2 comm_rank=1 world_rank=0
events rank=0 seq=0 call=MPI_Bcast start_ns=10 end_ns=11 compute_ns=5 comm=2 instance=0 root_world=1 send_bytes=0 recv_bytes=7
events rank=0 seq=1 call=MPI_Finalize start_ns=90 end_ns=91 compute_ns=5
events rank=1 seq=0 call=MPI_Bcast start_ns=10 end_ns=11 compute_ns=5 comm=2 instance=0 root_world=1 send_bytes=7 recv_bytes=0
events rank=1 seq=1 call=MPI_Finalize start_ns=90 end_ns=91 compute_ns=5
`, &schema.Manifest{Ranks: 2, EndNs: 91, Counts: schema.Counts{Calls: 4, Collectives: 1},
		Collectives: map[string]int64{"MPI_Bcast": 1}})
	var got []string
	_, _, err := Each(t.Context(), dir, Options{}, func(a *Action) error {
		if a.Kind == Send || a.Kind == Recv {
			got = append(got, fmt.Sprintf("%d: %t %d with %d", a.Rank, a.Kind == Send, a.Bytes, a.Peer))
		}
		return nil
	})
	if d := cmp.Diff([]string{"0: false 7 with 1", "1: true 7 with 0"}, got); d != "" || err != nil {
		t.Errorf("%s%v", d, err)
	}
	e := event(schema.CallBarrier, null64, null64)
	e.Rank, e.Seq, e.Comm = 3, 7, 5
	const want = "rank 3, seq 7: communicator 5 is not in the table comms"
	if err := (&reader{}).collective(&e, schema.CallBarrier); err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

// A run without parts either has none because its collectives moved nothing, which are no messages, or because nobody
// knows who got what, which are even shares.
func TestRunsWithoutParts(t *testing.T) {
	for _, c := range []struct {
		call       schema.CallID
		send, recv int64
		want       int
	}{{schema.CallAlltoallv, 0, 0, 0}, {schema.CallIalltoallv, 0, 0, 0}, {schema.CallAllgatherv, 0, 0, 0},
		{schema.CallAlltoallv, 6, 6, 2}, {schema.CallAlltoallw, 0, 6, 2}, {schema.CallAllgatherv, null64, null64, 2}} {
		e := event(c.call, null64, null64)
		e.SendBytes, e.RecvBytes = c.send, c.recv
		messages := 0
		_, _, err := Each(context.Background(), written(t, e, event(schema.CallFinalize, null64, null64)), Options{},
			func(a *Action) error {
				if a.Rank == 0 && (a.Kind == Send || a.Kind == Recv) {
					messages++
				}
				return nil
			})
		if err != nil || messages != c.want {
			t.Errorf("%s of %d and %d bytes: %d messages, want %d; %v", c.call, c.send, c.recv, messages, c.want, err)
		}
	}
}

// What was cancelled or failed is left out, with notes; a receive that was too small has its message.
func TestFailedCalls(t *testing.T) {
	var got []string
	_, notes, err := Each(t.Context(), formatstest.WriteFailed(t), Options{}, func(a *Action) error {
		if a.Kind == Send || a.Kind == Recv {
			got = append(got, fmt.Sprintf("%d: %t %d tag %d", a.Rank, a.Kind == Send, a.Bytes, a.Tag))
		}
		return nil
	})
	want := []string{"0: true 31 tag 7", "0: true 50 tag 8", "1: false 31 tag 7", "1: false 50 tag 8"}
	texts := []string{"Collectives that returned an error and were left out: 2.",
		"Receives that got nothing and were left out: 1.",
		"Sends that were cancelled or failed and were left out: 1."}
	if d := cmp.Diff(want, got) + cmp.Diff(texts, notes.Texts()); d != "" || err != nil {
		t.Errorf("%s%v", d, err)
	}
}
