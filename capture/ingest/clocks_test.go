package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// Two hosts. The first has a timer of 2 ticks per ns that began at 1,000,000. The second's clock is 5000 ns ahead of
// the first's at MPI_Init and 5100 at MPI_Finalize, 100 us later, and its ranks 1 and 3 count ns.
func TestHostsShareOneTime(t *testing.T) {
	p := program{ranks: 4, header: func(h *spool.Header) {
		h.OffsetInitNs, h.OffsetInitErrorNs, h.OffsetInitAtNs = 0, 0, 2_000_000
		h.OffsetFinalNs, h.OffsetFinalErrorNs, h.OffsetFinalAtNs = 0, 0, 2_100_000
		if h.Rank%2 == 0 {
			h.Timer = spool.TimerTSC
			h.Clock0Tick, h.Clock0Ns, h.Clock1Tick, h.Clock1Ns = 1_000_000, 2_000_000, 1_200_000, 2_100_000
			return
		}
		copy(h.Host[:], "node1")
		h.Clock0Ns, h.Clock0Tick = 2_005_000, 2_005_000
		h.Clock1Ns, h.Clock1Tick = 2_105_100, 2_105_100
		h.OffsetInitNs, h.OffsetInitErrorNs, h.OffsetInitAtNs = 5000, 30, 2_005_000
		h.OffsetFinalNs, h.OffsetFinalErrorNs, h.OffsetFinalAtNs = 5100, 40, 2_105_000
		if h.Rank == 1 { // rank 3 of its host measured at the end instead
			h.OffsetFinalNs = null64
		}
	}}
	p.body = func(rank int, s *script) {
		s.now = 1_100_000 // ns 2,050,000
		if rank%2 == 1 {
			s.now = 2_055_000 // 50 us after Init the offset is 5050: 2,049,950
		}
		s.call(schema.CallSend, func(c *spool.Call) { to(0, int32(rank), 9, 1, 0)(c); c.T1 = c.T0 + 40 })
		s.now += 30_000
	}
	// MPI_Init of each rank is entered at tick 0 of its timer: 2,000,000 - 500,000 = 1,500,000 ns for the first host;
	// on the second at 0, where the offset is 5000 - 0.001 x 2,005,000 = 2995: -2995 ns, the run's start. The sends
	// of the second host end 40 ns later on its clock, 39.96 on the first's; times are rounded down.
	r := ingested(t, p.write(t), Options{})
	var times []string
	for _, e := range r.events {
		if e.Call == int16(schema.CallSend) {
			times = append(times, fmt.Sprintf("%d: %d-%d", e.Rank, e.StartNs, e.EndNs))
		}
	}
	want := []string{"0: 2052995-2053015", "1: 2052945-2052984", "2: 2052995-2053015", "3: 2052945-2052984"}
	if !slices.Equal(times, want) {
		t.Errorf("times %v, want %v", times, want)
	}
	var ranks []string
	read(t, r.dir, &schema.RanksTable, func(b *schema.RankInfos, i int) {
		ranks = append(ranks, fmt.Sprintf("%d on %d: %d+-%d, %d+-%d", b.Rank[i], b.Host[i], b.ClockOffsetInitNs[i],
			b.ClockErrorInitNs[i], b.ClockOffsetFinalNs[i], b.ClockErrorFinalNs[i]))
	})
	want = []string{"0 on 0: 0+-0, 0+-0", "1 on 1: 5000+-30, 5100+-40", "2 on 0: 0+-0, 0+-0",
		"3 on 1: 5000+-30, 5100+-40"}
	if !slices.Equal(ranks, want) {
		t.Errorf("ranks %v, want %v", ranks, want)
	}
	if !slices.Equal(r.Origin.Hosts, []string{"node0", "node1"}) {
		t.Errorf("hosts %v", r.Origin.Hosts)
	}
}

// virtual gives the job virtual times: ticks are ps, from 1 us on. Clock readings and offsets then do not matter.
func virtual(h *spool.Header) {
	h.Timer = spool.TimerVirtual
	h.Clock0Tick, h.Clock0Ns, h.Clock1Tick, h.Clock1Ns = 77, 5_000_000, 99, 4_000_000
	h.OffsetInitNs, h.OffsetInitErrorNs, h.OffsetInitAtNs = 5000, 30, 9
	if h.Rank == 2 {
		copy(h.Host[:], "node1")
	}
}

// MPI_Init is at 1 us of each rank's ticks, which is 0 of the run. Half a ns is rounded up, and each time is rounded
// only once: a send at 2,499 ps and its receive at 2,500 ps are 1 ns apart although their ticks are not.
func TestVirtualTimesAreRoundedOnce(t *testing.T) {
	p := program{ranks: 3, header: virtual, body: func(rank int, s *script) {
		s.now = spool.VirtualStart
		switch rank {
		case 0:
			s.now += 2_499
			s.call(schema.CallSend, func(c *spool.Call) { to(0, 2, 9, 3, 0)(c); c.T1 = c.T0 })
		case 2:
			s.call(schema.CallRecv, func(c *spool.Call) {
				received(0, 0, 9, 12, 0)(c)
				c.T0, c.T1 = spool.VirtualStart+1_500, spool.VirtualStart+2_500
			})
			s.now += 7_000_000_000_000_000_499 // 81 days: a double would have lost the ps
			s.call(schema.CallProbe, nil)
		}
	}}
	r := ingested(t, p.write(t), Options{})
	if r.TimeOrigin != "virtual" || len(r.Warnings) > 0 {
		t.Errorf("times are %s, warnings %q", r.TimeOrigin, r.Warnings)
	}
	var times []string
	for _, e := range r.events {
		if id := schema.CallID(e.Call); id != schema.CallInit && id != schema.CallFinalize {
			times = append(times, fmt.Sprintf("%d %s %d-%d", e.Rank, id, e.StartNs, e.EndNs))
		}
	}
	// the Probe: 10 ps after what the receive's slot counted, and ends 4 ps later: ...509 and ...513 of ps
	want := []string{"0 MPI_Send 2-2", "2 MPI_Recv 2-3", "2 MPI_Probe 7000000000000001-7000000000000001"}
	if !slices.Equal(times, want) {
		t.Errorf("times %v, want %v", times, want)
	}
	if m := r.messages; len(m) != 1 || m[0].SendStartNs != 2 || m[0].RecvPostNs != 2 || m[0].RecvEndNs != 3 {
		t.Errorf("messages %+v", m)
	}
	read(t, r.dir, &schema.RanksTable, func(b *schema.RankInfos, i int) {
		if b.ClockOffsetInitNs[i] != null64 || b.ClockErrorInitNs[i] != null64 {
			t.Errorf("rank %d has a clock offset", i)
		}
	})
	coarse := ingested(t, p.write(t), Options{TimeResolutionNs: 2})
	if m := coarse.messages; m[0].SendStartNs != 2 || m[0].RecvEndNs != 2 {
		t.Errorf("in steps of 2 ns: %+v", m)
	}
}

func TestVirtualAndMeasuredTimesDoNotMix(t *testing.T) {
	dir := program{ranks: 2, body: func(int, *script) {}, header: func(h *spool.Header) {
		if h.Rank == 1 {
			virtual(h)
		}
	}}.write(t)
	if err := refused(t, dir, Options{}); !strings.Contains(err,
		"either this file or the others of the job were captured with simulator ranks") {
		t.Errorf("error %v", err)
	}
}

func TestClockTroubleIsAWarning(t *testing.T) {
	for _, c := range []struct {
		name, warning string
		header        func(h *spool.Header)
	}{
		{"no rate", "The timer of host node0 was compared with a clock only once, so its rate is not known: its times are in ticks.",
			func(h *spool.Header) { h.Timer = spool.TimerTSC }},
		{"not measured", "The clock offset of host node1 was not measured: the times of its ranks cannot be compared with those of other hosts.",
			func(h *spool.Header) {
				if h.Rank == 1 {
					copy(h.Host[:], "node1")
				}
			}},
		{"drift", "The clock offsets of host node1 at MPI_Init and MPI_Finalize, 0 and 90 ns, differ by more than clocks can drift: only the first is used.",
			func(h *spool.Header) {
				if h.Rank == 1 {
					copy(h.Host[:], "node1")
					h.OffsetInitNs, h.OffsetFinalNs, h.OffsetFinalAtNs = 0, 90, 100
				}
			}},
		{"two timers", "The timer of rank 1 does not agree with that of its host node0: its times follow its own readings.",
			func(h *spool.Header) {
				h.Timer, h.Clock0Tick, h.Clock1Tick, h.Clock1Ns = spool.TimerTSC, 1, 200, 100
				if h.Rank == 1 {
					h.Clock0Ns, h.Clock1Ns = 50_000_000, 50_000_100
				}
			}},
	} {
		r := ingested(t, program{ranks: 2, header: c.header, body: func(int, *script) {}}.write(t), Options{})
		if !slices.Equal(r.Warnings, []string{c.warning}) {
			t.Errorf("%s: warnings %q, want %q", c.name, r.Warnings, c.warning)
		}
	}
}

// A timer that went backwards gives times that do not.
func TestTimersThatGoBackwards(t *testing.T) {
	r := ingested(t, program{ranks: 1, body: func(_ int, s *script) {
		s.now = 100
		s.call(schema.CallSend, to(0, 0, 9, 1, 0))
		s.call(schema.CallRecv, func(c *spool.Call) { received(0, 0, 9, 4, 0)(c); c.T0, c.T1 = 90, 80 })
	}}.write(t), Options{})
	if e := r.events[2]; e.StartNs != 104 || e.EndNs != 104 {
		t.Errorf("from %d to %d, want 104 to 104", e.StartNs, e.EndNs)
	}
	if !slices.Equal(r.Warnings, []string{"The timer went backwards 2 times: those times were set to the latest one before."}) {
		t.Errorf("warnings %q", r.Warnings)
	}
}
