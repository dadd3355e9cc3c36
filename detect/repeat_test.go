package detect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// TestRepeatedHaloIsTheSame compares what is found of a long loop with and without a list of its messages, for which
// all are read. Five ranks in a ring exchange with nonblocking calls; every 50th step uses other call sites to post,
// and wait for, its messages.
func TestRepeatedHaloIsTheSame(t *testing.T) {
	const ranks, steps = 5, 400
	messages, events := &schema.Messages{}, &schema.Events{}
	add := func(rank int32, seq int64, call schema.CallID, site int32, done int64) {
		e := schema.NullEvent
		e.Rank, e.Seq, e.Call, e.Callsite, e.DoneSeq = rank, seq, int16(call), site, done
		events.Append(&e)
	}
	for step := range int64(steps) {
		at, other := 5*step, int32(0)
		if step%50 == 49 {
			other = 10
		}
		for rank := range int32(ranks) {
			for side, to := range [2]int32{(rank + 1) % ranks, (rank + ranks - 1) % ranks} {
				side := int64(side)
				m := schema.NullMessage
				m.Src, m.Dst, m.Comm, m.Tag, m.Bytes, m.SendDatatype = rank, to, 0, int32(side), 800, 0
				m.PayloadHash, m.SendCallsite, m.RecvCallsite = step*ranks*2+int64(rank)*2+side+1, 3, 4
				m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq = at+2+side, at+side, at+4
				messages.Append(&m)
				add(rank, at+side, schema.CallIrecv, 1+other, at+4)
			}
			add(rank, at+2, schema.CallIsend, 3, at+4)
			add(rank, at+3, schema.CallIsend, 3, at+4)
			add(rank, at+4, schema.CallWaitall, 4+other, schema.NullInt64)
		}
	}
	detected := func(listed bool) *Result {
		r, err := Detect(&Run{Ranks: ranks, HashBits: 64, Comms: []run.Comm{{ID: 0, Members: []int32{0, 1, 2, 3, 4}}},
			Messages: allColumns(func(add func(*schema.Messages) error) error { return add(messages) }),
			Events:   func(add func(*schema.Events) error) error { return add(events) }}, Options{Messages: listed})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	listed, counted := detected(true), detected(false)
	hide := cmp.Options{cmpopts.IgnoreFields(Finding{}, "List"), cmpopts.IgnoreUnexported(Finding{})}
	if diff := cmp.Diff(listed, counted, hide); diff != "" {
		t.Errorf("listed to counted: %s", diff)
	}
	if len(counted.Findings) != 1 || counted.Findings[0].Instances != steps {
		t.Fatalf("found %+v, want one exchange, %d times", counted.Findings, steps)
	}
	f := &counted.Findings[0]
	if f.BytesMax != 1600 || f.BlockMin != 800 || f.BlockMax != 800 {
		t.Errorf("a rank sends %d bytes, %d to %d to each neighbour; want 1600 and 800", f.BytesMax, f.BlockMin, f.BlockMax)
	}
	if diff := cmp.Diff([][]int32{{3}, {1, 11}, {4, 14}}, [][]int32{f.SendSites, f.RecvSites, f.DoneSites}); diff != "" {
		t.Errorf("call sites: %s", diff)
	}
}
