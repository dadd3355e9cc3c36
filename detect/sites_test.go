package detect

import (
	"slices"
	"testing"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// TestDetectFindsCallSitesOfRequests: rank 5 sends 4097 bytes to ranks 3 and 7 by a persistent request made at site
// 20 and started at site 21; rank 3 posts its receive at site 30 and waits at 31, rank 7 makes a persistent receive
// at 40, starts it at 41 and waits at 42. The sends are complete at 22. Other rows of these ranks are unrelated.
func TestDetectFindsCallSitesOfRequests(t *testing.T) {
	messages, events := &schema.Messages{}, &schema.Events{}
	for k, dst := range []int32{3, 7} {
		m := schema.NullMessage
		m.Src, m.Dst, m.Tag, m.Bytes, m.PayloadHash, m.SendCallsite, m.Comm = 5, dst, 9, 4097, 4711, 21, 0
		m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq, m.RecvCallsite = int64(2+k), []int64{1, 2}[k], 4, []int32{31, 42}[k]
		messages.Append(&m)
	}
	add := func(rank int32, seq int64, call schema.CallID, site int32, done, made int64) {
		e := schema.NullEvent
		e.Rank, e.Seq, e.Call, e.Callsite, e.DoneSeq, e.InitSeq = rank, seq, int16(call), site, done, made
		events.Append(&e)
	}
	const no = schema.NullInt64
	add(3, 0, schema.CallIrecv, 50, 4, no)
	add(3, 1, schema.CallIrecv, 30, 4, no)
	add(3, 4, schema.CallWaitall, 31, no, no)
	add(5, 0, schema.CallSendInit, 20, no, no)
	add(5, 1, schema.CallSendInit, 20, no, no)
	add(5, 2, schema.CallStart, 21, 4, 0)
	add(5, 3, schema.CallStart, 21, 5, 1)
	add(5, 4, schema.CallWait, 22, no, no)
	add(5, 5, schema.CallWait, 22, no, no)
	add(5, 6, schema.CallIsend, 51, 7, no)
	add(5, 7, schema.CallWait, 52, no, no)
	add(7, 0, schema.CallRecvInit, 40, no, no)
	add(7, 2, schema.CallStart, 41, 4, 0)
	add(7, 4, schema.CallWait, 42, no, no)
	r, err := Detect(&Run{Ranks: 8, HashBits: 64, Comms: []run.Comm{{ID: 0, Members: []int32{3, 5, 7}}},
		Messages: allColumns(func(add func(*schema.Messages) error) error { return add(messages) }),
		Events:   func(add func(*schema.Events) error) error { return add(events) }}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 {
		t.Fatalf("found %+v, want one", r.Findings)
	}
	f := &r.Findings[0]
	for name, c := range map[string][2][]int32{
		"send":     {f.SendSites, {20, 21}},
		"receive":  {f.RecvSites, {30, 40, 41}},
		"complete": {f.DoneSites, {22, 31, 42}},
	} {
		if !slices.Equal(c[0], c[1]) {
			t.Errorf("%s: call sites %v, want %v", name, c[0], c[1])
		}
	}
	if got, want := r.Calls[30], []schema.CallID{schema.CallIrecv}; len(r.Calls) != 8 || !slices.Equal(got, want) {
		t.Errorf("calls %v, want those of eight sites, at 30 %v", r.Calls, want)
	}
}
