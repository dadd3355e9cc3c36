package diagnose

import (
	"testing"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// lateSend is a run in which rank 0 computes 100 ms before it sends to rank 1, which waits for that and then computes
// as long; both meet in a barrier.
func lateSend(t *testing.T) *run.Run {
	const ns = 100_000_000
	p := newProgram(2)
	send := p.row(0, schema.CallSend, ns, 1)
	send.SendWorld, send.SendPeer, send.SendTag, send.SendBytes = 1, 1, 1, 8
	receive := p.row(1, schema.CallRecv, 0, 2)
	receive.RecvWorld, receive.RecvPeer, receive.RecvTag, receive.RecvBytes, receive.DoneSeq = 0, 0, 1, 8, 0
	m := schema.NullMessage
	m.Src, m.Dst, m.Tag, m.Bytes, m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq = 0, 1, 1, 8, p.add(send), p.add(receive), 0
	p.messages.Append(&m)
	for rank, compute := range []int64{0, ns} {
		e := p.row(rank, schema.CallBarrier, compute, 3)
		e.Instance, e.SendBytes, e.RecvBytes = 0, 0, 0
		p.add(e)
	}
	return p.written(t, t.TempDir(), &schema.Manifest{TimeOrigin: "untimed", ComputeClock: "cpu"})
}

// On CPUs that are twice as fast the computing takes 50 ms, and all of it comes after the send.
func TestExcessOnFasterCPUs(t *testing.T) {
	for ratio, want := range map[string]int64{"1": 100e6, "2": 50e6, "0.5": 200e6} {
		d, err := Run(t.Context(), lateSend(t), Options{Target: on(t, "flat", "cpu_ratio="+ratio)})
		if err != nil {
			t.Fatal(err)
		}
		f := &d.Findings[0]
		if f.Rule != LateSender || f.GainNs != want || f.Parts[0].ExcessNs != want || f.excessNs != want ||
			f.Instances.Ranks[0].Ns != want || d.RankComputing()[0] != want {
			t.Errorf("ratio %s: %s gains %d ns, excess %d, rank 0 computes %d, want %d: %+v", ratio, f.Rule, f.GainNs,
				f.excessNs, d.RankComputing()[0], want, f.Instances.Ranks)
		}
	}
}
