package diagnose

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/models/simulate/stored"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// program writes a run of random calls, in an order in which it can run.
type program struct {
	events   []*schema.Events // by rank
	messages schema.Messages
	barriers int64
}

func (p *program) row(rank int, call schema.CallID, computeNs int64, site int32) *schema.Event {
	e := schema.NullEvent
	e.Rank, e.Seq, e.Call, e.Class, e.Comm, e.ComputeNs, e.Callsite = int32(rank), int64(p.events[rank].Len()), int16(call),
		int16(schema.Calls[call].Class), 0, computeNs, site
	return &e
}

func (p *program) add(e *schema.Event) int64 { p.events[e.Rank].Append(e); return e.Seq }

// message adds a send and its receive, which may be nonblocking.
func (p *program) message(g *rand.Rand, compute func() int64) {
	src, dst, bytes := g.IntN(len(p.events)), g.IntN(len(p.events)), g.Int64N(1<<18)
	if src == dst {
		return
	}
	call := []schema.CallID{schema.CallSend, schema.CallSsend}[g.IntN(2)]
	send := p.row(src, call, compute(), int32(g.IntN(3)))
	send.SendWorld, send.SendPeer, send.SendTag, send.SendBytes = int32(dst), int32(dst), 1, bytes
	m := schema.NullMessage
	m.Src, m.Dst, m.Tag, m.Bytes, m.SendSeq = int32(src), int32(dst), 1, bytes, p.add(send)
	nonblocking := g.IntN(2) == 0
	call = schema.CallRecv
	if nonblocking {
		call = schema.CallIrecv
	}
	receive := p.row(dst, call, compute(), int32(3+g.IntN(3)))
	receive.RecvWorld, receive.RecvPeer, receive.RecvTag, receive.RecvBytes = int32(src), int32(src), 1, bytes
	receive.DoneSeq = receive.Seq
	if nonblocking {
		receive.DoneSeq++
	}
	m.RecvPostSeq, m.RecvDoneSeq = p.add(receive), receive.DoneSeq
	if nonblocking {
		p.add(p.row(dst, schema.CallWait, compute(), 6))
	}
	p.messages.Append(&m)
}

// collective adds a collective operation of all ranks.
func (p *program) collective(g *rand.Rand, compute func() int64) {
	call, site := []schema.CallID{schema.CallBarrier, schema.CallAllreduce}[g.IntN(2)], int32(7+g.IntN(2))
	for rank := range p.events {
		e := p.row(rank, call, compute(), site)
		e.Instance, e.SendBytes, e.RecvBytes = p.barriers, 8, 8
		p.add(e)
	}
	p.barriers++
}

// randomRun writes a random program as a run.
func randomRun(t *testing.T, g *rand.Rand) *run.Run {
	t.Helper()
	p := newProgram(2 + g.IntN(4))
	slow := make([]int64, len(p.events)) // ranks that compute longer
	for rank := range p.events {
		slow[rank] = g.Int64N(3)
	}
	compute := func() int64 { return g.Int64N(200_000) }
	for range 20 + g.IntN(60) {
		if g.IntN(4) > 0 {
			p.message(g, compute)
			continue
		}
		for rank := range p.events { // an imbalance
			p.add(p.row(rank, schema.CallPcontrol, slow[rank]*g.Int64N(100_000), 9))
		}
		p.collective(g, compute)
	}
	return p.written(t, t.TempDir(), &schema.Manifest{TimeOrigin: "untimed", ComputeClock: "cpu"})
}

// newProgram returns a program of so many ranks without calls.
func newProgram(ranks int) *program {
	p := &program{events: make([]*schema.Events, ranks)}
	for rank := range p.events {
		p.events[rank] = &schema.Events{}
	}
	return p
}

// written writes the program as the run r of a store. m has the origin of its times.
func (p *program) written(t *testing.T, store string, m *schema.Manifest) *run.Run {
	t.Helper()
	out, err := writer.Create(store, "r", writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Abort()
	ranks, comms := &schema.RankInfos{}, &schema.Comms{}
	batches := []schema.Batch{&p.messages, comms, ranks}
	for rank := range p.events {
		comm := schema.NullComm
		comm.CommRank, comm.WorldRank = int32(rank), int32(rank)
		comms.Append(&comm)
		p.add(p.row(rank, schema.CallFinalize, 0, 10))
		info := schema.NullRankInfo
		info.Rank, info.Threads, info.Events, info.Ended = int32(rank), 1, int64(p.events[rank].Len()), schema.EndedFinalized
		ranks.Append(&info)
		batches = append(batches, p.events[rank])
	}
	for _, b := range batches {
		if err := out.Write(0, b); err != nil {
			t.Fatal(err)
		}
	}
	m.Ranks, m.Record, m.Hash, m.Ended, m.Epochs = int32(len(p.events)), "all", "none", "finalized", 1
	if err := out.Commit(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	r, err := run.Open(t.Context(), filepath.Join(store, "r"), NeedFor(m, true))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// All gains together are at most the run's time, and none is above the time of its calls on the critical path.
func TestGainsAreLimited(t *testing.T) {
	simulated := 0
	for seed := range 20 {
		g := rand.New(rand.NewPCG(uint64(seed), 7))
		r := randomRun(t, g)
		target, err := simulate.ReadTarget(simulate.TargetOptions{Machine: []string{"flat", "ethernet-40g"}[seed%2]})
		if err != nil {
			t.Fatal(err)
		}
		d, err := Run(t.Context(), r, Options{Target: target})
		if err != nil {
			t.Fatal(seed, err)
		}
		onPath := callsOnPath(t, r, target)
		sum := int64(0)
		for _, f := range d.Findings {
			sum += f.GainNs
			if f.GainNs < 0 || f.GainNs > d.TimeNs {
				t.Errorf("seed %d: %s gains %d ns of %d", seed, f.Rule, f.GainNs, d.TimeNs)
			}
			if f.boundNs > 0 && (f.GainNs > onPath[f.Call] || f.GainNs > f.boundNs) {
				t.Errorf("seed %d: %s at %s gains %d ns and takes %d of the path", seed, f.Rule, f.Call, f.GainNs, onPath[f.Call])
			}
			if f.boundNs > 0 && !f.Bound && f.GainNs > 0 {
				simulated++
			}
		}
		if simulated, largest := simulatedFirst(d); len(simulated) > 0 && d.TogetherNs < d.Findings[largest].GainNs {
			t.Errorf("seed %d: the first causes together gain %d ns, one of them %d", seed, d.TogetherNs,
				d.Findings[largest].GainNs)
		}
		if sum > d.TimeNs || d.TogetherNs > d.TimeNs {
			t.Errorf("seed %d: the gains are %d ns, together %d, of %d", seed, sum, d.TogetherNs, d.TimeNs)
		}
	}
	if simulated < 20 {
		t.Errorf("only %d gains of calls were simulated", simulated)
	}
}

// callsOnPath is the time of calls on the critical path, without computing, by their names.
func callsOnPath(t *testing.T, r *run.Run, target *simulate.Target) map[string]int64 {
	t.Helper()
	program, err := stored.ProgramOf(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	s := stored.Simulation{Run: r, Target: target, Program: program}
	g, result, err := s.Graph(t.Context(), critical.Options{LeaveOutStartup: true})
	if err != nil {
		t.Fatal(err)
	}
	ns := map[string]int64{}
	for _, group := range g.Path(stored.Finish(result)).GroupBy([]critical.Key{critical.ByCall}, func(int32) string { return "" }) {
		ns[group.Call] = group.TotalNs() - group.Ns[critical.Compute]
	}
	return ns
}

// Where gains would add up to more than the run's time, later ones are cut; costs that a rule from outside gives are
// not.
func TestLimitGains(t *testing.T) {
	change := func() *change { return &change{} }
	d := &Diagnosis{TimeNs: 100, Findings: []Finding{{GainNs: 70, without: change}, {GainNs: 60, boundNs: 60}, {GainNs: 50},
		{GainNs: 40, without: change}}}
	(&search{d: d}).limitGains()
	var got []int64
	for _, f := range d.Findings {
		got = append(got, f.GainNs)
	}
	if !slices.Equal(got, []int64{70, 50, 30, 0}) {
		t.Errorf("%v", got)
	}
}
