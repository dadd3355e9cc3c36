package calls

import (
	"testing"

	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

// A persistent request that is started or made again ends the operation before it, whose end the trace does not tell:
// nothing waits for that for ever.
func TestPersistentRequestIsUsedAgain(t *testing.T) {
	comms := timed.NewComms(3)
	r := NewRank(1, comms, nil, 2, 3)
	var c timed.Call
	fill := func(call schema.CallID) []timed.Ending {
		t.Helper()
		var a Args
		a.Reset()
		a.Call, a.Comm, a.Request, a.Dest, a.Send = call, Named(2), 7, 2, 40
		if has, err := r.Fill(&a, &c); err != nil || !has {
			t.Fatal(has, err)
		}
		return c.Ends
	}
	if ends := append(fill(schema.CallSendInit), fill(schema.CallStart)...); len(ends) > 0 {
		t.Errorf("%+v; want no ends", ends)
	}
	for _, call := range []schema.CallID{schema.CallStart, schema.CallSendInit} {
		first := r.requests[7].number
		if ends := fill(call); len(ends) != 1 || !ends[0].Lost || ends[0].Request != first {
			t.Errorf("%s: %+v; want that request %d is lost", call, ends, first)
		}
	}
}
