package otf2

import (
	"strings"
	"testing"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/schema"
)

// scorePCounts returns what Score-P's wrappers count of a call in which each rank gives b bytes, or b to each other
// one.
func scorePCounts(call schema.CallID, n, me, b int64, root, inPlace bool) (sent, received int64) {
	others := n
	if inPlace {
		others = n - 1
	}
	switch call {
	case schema.CallBcast:
		if root {
			return n * b, b
		}
		return 0, b
	case schema.CallReduce, schema.CallGather:
		switch {
		case root && inPlace:
			return 0, others * b
		case root:
			return b, n * b
		}
		return b, 0
	case schema.CallScatter:
		received, sent = scorePCounts(schema.CallGather, n, me, b, root, inPlace)
		return sent, received
	case schema.CallAllgather, schema.CallAlltoall, schema.CallAllreduce, schema.CallReduceScatterBlock,
		schema.CallAllgatherv, schema.CallReduceScatter: // the latter two with equal counts
		return others * b, others * b
	case schema.CallScan:
		if inPlace {
			return (n - me - 1) * b, me * b
		}
		return (n - me) * b, (me + 1) * b
	case schema.CallExscan:
		return (n - me - 1) * b, me * b
	}
	return 0, 0
}

// argued returns the bytes in the arguments of the same call.
func argued(call schema.CallID, n, b int64, root bool) (sent, received int64) {
	if !root && (call == schema.CallReduce || call == schema.CallGather) {
		return b, 0
	}
	switch call {
	case schema.CallBcast:
		if root {
			return b, 0
		}
		return 0, b
	case schema.CallScatter:
		if root {
			return n * b, b
		}
		return 0, b
	case schema.CallGather, schema.CallAllgather, schema.CallAllgatherv:
		return b, n * b
	case schema.CallReduceScatter, schema.CallReduceScatterBlock:
		return n * b, b
	case schema.CallAlltoall:
		return n * b, n * b
	case schema.CallBarrier:
		return 0, 0
	}
	return b, b
}

// What Score-P counts gives back the bytes of the arguments, unless both forms of the call fit, or nothing tells them.
func TestBytesOfScoreP(t *testing.T) {
	calls := []schema.CallID{schema.CallBarrier, schema.CallBcast, schema.CallReduce, schema.CallGather,
		schema.CallScatter, schema.CallAllgather, schema.CallAllgatherv, schema.CallAlltoall, schema.CallAllreduce,
		schema.CallReduceScatter, schema.CallReduceScatterBlock, schema.CallScan, schema.CallExscan}
	for _, call := range calls {
		var times [3]int
		for n := int64(1); n <= 7; n++ {
			for me := range n {
				for _, b := range []int64{0, 1, 8, 24, 4100} {
					for _, inPlace := range []bool{false, true} {
						root := me == n/2
						if call == schema.CallBcast && inPlace {
							continue
						}
						sent, received := scorePCounts(call, n, me, b, root, inPlace)
						gotSent, gotReceived, how := counted{call, n, me, root, sent, received}.ownBytes()
						wantSent, wantReceived := argued(call, n, b, root)
						alone := n == 1 && (inPlace || call == schema.CallExscan)
						if !alone && (how == fitsOne || how == fitsBoth && !inPlace || how == fitsNothing) &&
							(gotSent != wantSent || gotReceived != wantReceived) {
							t.Errorf("%v of %d B, rank %d of %d, in place %v: %d and %d counted give %d and %d, want %d and %d",
								call, b, me, n, inPlace, sent, received, gotSent, gotReceived, wantSent, wantReceived)
						}
						times[how]++
					}
				}
			}
		}
		if times[fitsOne] < times[fitsBoth] || times[fitsOne] == 0 {
			t.Errorf("%v: found %v times", call, times)
		}
	}
}

// Bytes that Score-P counts of no call stay as they are, and are said to.
func TestBytesThatFitNothing(t *testing.T) {
	for _, x := range []counted{
		{schema.CallBcast, 4, 0, true, 4096, 4096},
		{schema.CallBcast, 4, 1, false, 4096, 4096},
		{schema.CallReduce, 4, 0, true, 8, 24},
		{schema.CallGather, 4, 0, true, 8, 24},
		{schema.CallScatter, 4, 2, true, 24, 8},
		{schema.CallAllgather, 4, 0, false, 16, 12},
		{schema.CallAllreduce, 4, 0, false, 10, 10},
		{schema.CallAllreduce, 4, 0, false, 16, 12},
		{schema.CallReduceScatter, 4, 0, false, 11, 11},
		{schema.CallScan, 4, 1, false, 16, 16},
		{schema.CallExscan, 1, 0, false, 0, 0},
	} {
		if sent, received, how := x.ownBytes(); sent != x.sent || received != x.received || how != fitsNothing {
			t.Errorf("%+v: %d and %d bytes, fit %d", x, sent, received, how)
		}
	}
}

// Score-P counts 16,384 bytes sent and 4,096 received by the root of the public trace's broadcast of 4,096.
func TestBroadcastOfScoreP(t *testing.T) {
	r, err := imported(t, "testdata/ember/traces.otf2", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range r.Events {
		if r.Events[i].Call == int16(schema.CallBcast) {
			got = append(got, formatstest.Line(&r.Events[i]))
		}
	}
	want := "0.1 Bcast comm=0 root=0 sent=4096 received=0 instance=0\n" +
		"1.1 Bcast comm=0 root=0 sent=0 received=4096 instance=0\n" +
		"2.1 Bcast comm=0 root=0 sent=0 received=4096 instance=0\n3.1 Bcast comm=0 root=0 sent=0 received=4096 instance=0"
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
}
