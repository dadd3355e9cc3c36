package predict

import (
	"math"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
)

// computing gives the rows of a run compute times, and counters where they are not 0.
func computing(run *Run, clock string, of func(e *schema.Event) (ns, instructions, cycles int64)) *Run {
	rows := run.Events
	run.Manifest.ComputeClock = clock
	run.Events = func(add func(*schema.Events) error) error {
		return rows(func(b *schema.Events) error {
			var e schema.Event
			for i := range b.Rank {
				b.Row(i, &e)
				ns, instructions, cycles := of(&e)
				b.ComputeNs[i] = ns
				if cycles > 0 {
					b.Instructions[i], b.Cycles[i] = instructions, cycles
				}
			}
			return add(b)
		})
	}
	return run
}

// ring is a program of two sends to the next rank: before the first a rank computes its part of a line of 5040 cells, 1000 ns each, before the second
// always 700 ns, but for the last rank, which takes twice as long.
func ring(ranks int, clock string) *Run {
	run := sendsTo(ranks, 2, func(r, _ int) (int, int) { return (r + 1) % ranks, 4097 })
	return computing(run, clock, func(e *schema.Event) (int64, int64, int64) {
		switch {
		case e.Callsite == 'a':
			return int64(5040 * 1000 / ranks), 0, 0
		case int(e.Rank) == ranks-1:
			return 1400, 0, 0
		}
		return 700, 0, 0
	})
}

func trained(t *testing.T, ranks []int, program func(ranks int) *Run) *Model {
	t.Helper()
	var runs []*Signature
	for _, p := range ranks {
		runs = append(runs, signed(t, program(p)))
	}
	m, err := NewModel(runs)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestComputeTimes: 5040 cells on 12 ranks are 420 for each, and the last rank takes twice as long before its second send on any number of ranks.
func TestComputeTimes(t *testing.T) {
	m := trained(t, []int{3, 4, 5, 6, 7}, func(ranks int) *Run { return ring(ranks, "cpu") })
	if why := m.TimesRefused(); why != "" {
		t.Fatal(why)
	}
	x, err := m.Extrapolate(t.Context(), 12, nil)
	if err != nil {
		t.Fatal(err)
	}
	// 420,000 + (11 x 700 + 1400)/12 ns
	const want = 420000 + (11*700+1400)/12.
	if c := x.Compute; math.Abs(c.RankNs/want-1) > 0.01 || c.LowNs > want || c.HighNs < want || c.Calls != 24 || c.Unknown != 0 {
		t.Errorf("ranks compute %+v, want %.0f ns", c, want)
	}
	if x.Signature.ComputeClock != "cpu" {
		t.Errorf("the run's clock is %q", x.Signature.ComputeClock)
	}
	rows := x.Signature.Stream(8)
	for rank := range int32(12) {
		b := &schema.Events{}
		if err := rows.Next(rank, b); err != nil {
			t.Fatal(err)
		}
		for i := range b.Rank {
			want := []float64{420000, 700}[i]
			// What the last rank takes to the mean depends a little on the number of ranks: the mean of 3 to 7 ranks is taken.
			if rank == 11 && i == 1 {
				want = 1400
			}
			if ns := b.ComputeNs[i]; math.Abs(float64(ns)/want-1) > 0.1 {
				t.Errorf("rank %d computes %d ns before call %d, want %.0f", rank, ns, i, want)
			}
		}
	}
}

// TestTimesRefused: wall clock times of ranks that shared CPUs say nothing, and those of which that is not known neither; what is communicated is
// predicted all the same.
func TestTimesRefused(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		clock  string
		shared *bool
		want   string
	}{
		{"cpu", nil, ""},
		{"cpu", &yes, ""},
		{"wall", &no, ""},
		{"wall", nil, `run "test" are of the wall clock, and it does not say how many CPUs`},
		{"wall", &yes, "its ranks were more than the CPUs"},
		{"none", nil, "was captured without compute times; capture it again with --clock cpu"},
	} {
		var runs []*Signature
		for _, p := range []int{3, 4, 5, 7} {
			s := signed(t, ring(p, c.clock))
			s.Oversubscribed = c.shared
			runs = append(runs, s)
		}
		m, err := NewModel(runs)
		if err != nil {
			t.Fatal(err)
		}
		if why := m.TimesRefused(); c.want == "" && why != "" || !strings.Contains(why, c.want) {
			t.Errorf("clock %s: %q, want %q", c.clock, why, c.want)
		}
		x, err := m.Extrapolate(t.Context(), 9, nil)
		if err != nil {
			t.Fatal(err)
		}
		if (x.Compute != nil) != (c.want == "") || (x.Signature.ComputeClock == "none") != (c.want != "") {
			t.Errorf("clock %s: %+v, and the run's clock is %s", c.clock, x.Compute, x.Signature.ComputeClock)
		}
		if messages, bytes, _ := x.Signature.Traffic(); messages != 18 || bytes != 18*4097 {
			t.Errorf("clock %s: %d messages of %d bytes", c.clock, messages, bytes)
		}
	}
}

// TestTimesOfCalls: calls of one site that differ have times of their own, and a signature keeps them as it is written and read.
func TestTimesOfCalls(t *testing.T) {
	run := sendsTo(5, 1, func(r, _ int) (int, int) { return (r + 1) % 5, 100 + r%2 })
	s := signed(t, computing(run, "cpu", func(e *schema.Event) (int64, int64, int64) { return 1000 * (e.SendBytes - 99), 0, 0 }))
	var text strings.Builder
	if err := s.Write(&text); err != nil {
		t.Fatal(err)
	}
	s, err := Read(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	v := s.Values[1]
	if len(v.Events) != 3 { // the last rank's peer is at another distance
		t.Fatalf("%d calls", len(v.Events))
	}
	for _, c := range v.Events {
		if want := 1000 * (int64(c.Send[SideBytes]) - 99); c.ComputeNs == nil || *c.ComputeNs != want {
			t.Errorf("%d bytes: %v, want %d ns", c.Send[SideBytes], c.ComputeNs, want)
		}
	}
}

// TestNoise: times that are drawn from a distribution's quartiles have its mean, and its quartiles.
func TestNoise(t *testing.T) {
	for _, n := range []Spread{{Count: 100, Sum: 100000, Low: 900, Median: 950, High: 1020}, {Count: 100, Sum: 100000, Low: 700, Median: 1000, High: 1300},
		{Count: 9, Sum: 9000, Low: 500, Median: 800, High: 1100}} {
		s := &Times{Noise: &n}
		const steps = 1 << 20
		sum := 0.0
		for i := range steps {
			sum += s.factor((float64(i) + 0.5) / steps)
		}
		if mean := sum / steps; math.Abs(mean-1) > 0.01 {
			t.Errorf("%+v: mean %.4f, want 1", n, mean)
		}
		if m := s.factor(0.5); n.High < 2*n.Median-n.Low+100 && math.Abs(m-float64(n.Median)/1000) > 0.05 {
			t.Errorf("%+v: median %.3f", n, m)
		}
	}
}

// TestExecutionAndStall: a rank executes 5040 x 64 / P instructions in half a cycle of 0.4 ns each, and waits for memory 900 ns on any number of ranks
// but the largest, where all is in the cache. On a machine of twice the cycle time execution takes twice as long, and waiting as long as before.
func TestExecutionAndStall(t *testing.T) {
	m := trained(t, []int{2, 3, 4, 6, 8}, func(ranks int) *Run {
		run := sendsTo(ranks, 1, func(r, _ int) (int, int) { return (r + 1) % ranks, 4097 })
		return computing(run, "cpu", func(*schema.Event) (int64, int64, int64) {
			instructions := int64(5040 * 64 / ranks)
			stall := int64(900)
			if ranks == 8 {
				stall = 0
			}
			ns := instructions/5 + stall
			return ns, instructions, ns * 5 / 2
		})
	})
	for _, s := range m.times().sites {
		p := s.mean.parts
		if p == nil {
			t.Fatal("no parts")
		}
		if math.Abs(p.cpi-0.5) > 0.001 || math.Abs(p.cycleNs-0.4) > 0.001 {
			t.Errorf("%.4f cycles for an instruction of %.4f ns, want 0.5 of 0.4", p.cpi, p.cycleNs)
		}
		// 5040 x 64 / 16 x 0.2 = 4032 ns
		executes := 20160 * p.cpi
		slow := *p
		slow.machineCycleNs = 0.8
		if d := slow.at(16).value - p.at(16).value; math.Abs(d/(executes*0.4)-1) > 0.02 {
			t.Errorf("twice the cycle takes %.0f ns more, want %.0f", d, executes*0.4)
		}
		if v := p.instructions.at(16).value; math.Abs(v/20160-1) > 0.01 {
			t.Errorf("%.0f instructions on 16 ranks, want 20160", v)
		}
	}
}
