package diagnose

import (
	"testing"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// timed adds a row of a program with measured times, in ms.
func (p *program) timed(rank int, call schema.CallID, computeMs, fromMs, toMs int64, set func(*schema.Event)) {
	const ms = 1_000_000
	e := p.row(rank, call, computeMs*ms, int32(rank*10+p.events[rank].Len()))
	e.StartNs, e.EndNs = fromMs*ms, toMs*ms
	if set != nil {
		set(e)
	}
	p.add(e)
}

// lateReceiver is a run in which rank 0 sends a megabyte to rank 1, which computes 100 ms before it receives; rank 0
// does so afterwards, and both meet in a barrier. waits is the call that waits: the send, or MPI_Wait after it.
func lateReceiver(t *testing.T, send, waits schema.CallID) *run.Run {
	p, done := newProgram(2), int64(schema.NullInt64)
	if waits != send {
		done = 1
	}
	to := func(e *schema.Event) {
		e.SendWorld, e.SendPeer, e.SendTag, e.SendBytes, e.DoneSeq = 1, 1, 1, 1<<20, done
		if waits != send {
			e.Request = 1
		}
	}
	if waits == send {
		p.timed(0, send, 0, 0, 100, to)
	} else {
		p.timed(0, send, 0, 0, 0, to)
		p.timed(0, waits, 0, 0, 100, nil)
	}
	p.timed(1, schema.CallRecv, 100, 100, 100, func(e *schema.Event) {
		e.RecvWorld, e.RecvPeer, e.RecvTag, e.RecvBytes, e.DoneSeq = 0, 0, 1, 1<<20, 0
	})
	barrier := func(e *schema.Event) { e.Instance, e.SendBytes, e.RecvBytes = 0, 0, 0 }
	p.timed(0, schema.CallBarrier, 100, 200, 200, barrier)
	p.timed(1, schema.CallBarrier, 0, 100, 200, barrier)
	m := schema.NullMessage
	m.Src, m.Dst, m.Tag, m.Bytes, m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq = 0, 1, 1, 1<<20, 0, 0, 0
	m.SendStartNs, m.SendEndNs, m.RecvPostNs, m.RecvStartNs, m.RecvEndNs = 0, 100e6, 100e6, 100e6, 100e6
	p.messages.Append(&m)
	return p.written(t, t.TempDir(), &schema.Manifest{TimeOrigin: "measured", ComputeClock: "wall", EndNs: 200e6,
		TimeResolutionNs: 1})
}

// On an ideal network a standard send waits for nobody, so that the gain is a bound; a synchronous send waits there
// too.
func TestLateReceiverOfMeasuredSends(t *testing.T) {
	for _, c := range []struct {
		send, waits schema.CallID
		bound       bool
	}{
		{schema.CallSend, schema.CallSend, true}, {schema.CallIsend, schema.CallWait, true},
		{schema.CallSsend, schema.CallSsend, false}, {schema.CallIssend, schema.CallWait, false},
	} {
		d, err := Run(t.Context(), lateReceiver(t, c.send, c.waits), Options{})
		if err != nil {
			t.Fatal(err)
		}
		f := &d.Findings[0]
		if f.Rule != LateReceiver || f.GainNs != 100e6 || f.Bound != c.bound || len(f.Waits) != 1 ||
			f.Waits[0].For != "late receiver" || f.Waits[0].Call != c.waits.String() {
			t.Errorf("%s: %s gains %d ns (bound: %t), %+v", c.send, f.Rule, f.GainNs, f.Bound, f.Waits)
		}
	}
}
