package simulate

import (
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/commq/commq/models"
	"github.com/commq/commq/schema"
)

// lawPrograms is the number of random programs on which each law is tested.
const lawPrograms = 400

func eachProgram(t *testing.T, try func(seed int, g *rand.Rand, p *slowProgram)) {
	t.Helper()
	for seed := range lawPrograms {
		g := rand.New(rand.NewPCG(uint64(seed), 31))
		try(seed, g, randomProgram(g))
		if t.Failed() {
			return
		}
	}
}

// randomMachine returns a machine on which ranks wait only for partners, in the representations of both simulators.
func randomMachine(t testing.TB, g *rand.Rand, ranks int) (*models.Machine, *slowMachine) {
	m, err := models.Named("flat")
	if err != nil {
		t.Fatal(err)
	}
	pick := func(values ...int64) int64 { return values[g.IntN(len(values))] }
	perNode := 1 + g.IntN(3)
	slow := &slowMachine{latency: pick(0, 1, 2500, 10_000_000), perByte: pick(0, 1, 7, 1000),
		insideL: pick(0, 300_000), insideByte: pick(0, 3, 200),
		node: func(rank int) int { return rank / perNode }, threshold: pick(0, 1, 4097, 65536), noThreshold: g.IntN(2) == 0, cpuRatio: pick(1, 1, 2, 5), phases: map[schema.CallID]models.Phases{}}
	link := func(l, perByte int64) models.Interconnect {
		i := models.Interconnect{Latency: models.Picoseconds(l)}
		if perByte > 0 {
			i.BytesPerSecond, i.BytesPer = 1_000_000_000_000, perByte
		}
		return i
	}
	m.Nodes, m.CPUsPerNode, m.CPURatio = (ranks+perNode-1)/perNode, perNode, float64(slow.cpuRatio)
	m.Mapping, m.RanksPerNode = models.PerNode, perNode
	m.Network, m.IntraNode = link(slow.latency, slow.perByte), link(slow.insideL, slow.insideByte)
	m.EagerThresholdBytes = models.NoThreshold
	if !slow.noThreshold {
		m.EagerThresholdBytes, m.EagerThresholdGiven = slow.threshold, true
	}
	for op := range m.Collectives {
		p := models.Phases{FanIn: models.Factor(g.IntN(4)), SizeIn: models.Size(g.IntN(5)),
			FanOut: models.Factor(g.IntN(4)), SizeOut: models.Size(g.IntN(5))}
		m.SetCollective(op, p)
		slow.phases[op] = p
	}
	return m, slow
}

// contended limits the CPUs, links and buses of the machine so that ranks wait for them.
func contended(g *rand.Rand, m *models.Machine) {
	m.CPUsPerNode = 1 + g.IntN(2)
	m.Network.Buses, m.IntraNode.Buses = g.IntN(4), g.IntN(3)
	m.Network.InputLinks, m.Network.OutputLinks, m.Network.HalfDuplex = 1, 1, g.IntN(2) == 0
}

type rowTimes map[[2]int64][2]Picoseconds

// timed simulates rows that come in windows, and returns the times of each row.
func timed(m *models.Machine, p *Program, d Dialect, windows [][]schema.Event) (*Result, rowTimes, error) {
	times := rowTimes{}
	done := func(rank int32, seq int64, start, end Picoseconds) {
		times[[2]int64{int64(rank), seq}] = [2]Picoseconds{start, end}
	}
	r, err := Simulate(m, p, &Options{Dialect: d, Done: done}, func(add func(*schema.Events) error) error {
		if len(windows) == 0 {
			return io.EOF
		}
		w := windows[0]
		windows = windows[1:]
		return add(eventsOf(w))
	})
	return r, times, err
}

// The engine and the second simulator agree on each row of each program, to the picosecond, and on which programs
// deadlock. On a network without latency and with infinite bandwidth both find the longest path through program order
// and matches.
func TestLawsSecondSimulator(t *testing.T) {
	ended := 0
	eachProgram(t, func(seed int, g *rand.Rand, p *slowProgram) {
		m, slow := randomMachine(t, g, len(p.ranks))
		if seed%4 == 0 { // the longest path
			m.Network, m.IntraNode = models.Interconnect{}, models.Interconnect{}
			m.EagerThresholdBytes, m.EagerThresholdGiven = models.NoThreshold, false
			slow.latency, slow.perByte, slow.insideL, slow.insideByte, slow.noThreshold = 0, 0, 0, 0, true
		}
		program, rows := p.rows()
		want, ok := slowly(p, slow)
		_, got, err := timed(m, program, Paper, [][]schema.Event{rows})
		if ok != (err == nil) {
			t.Fatalf("seed %d: %v; the second simulator ends: %v\n%v", seed, err, ok, p)
		}
		if !ok {
			return
		}
		ended++
		for rank := range p.ranks {
			for k := range p.ranks[rank] {
				if g, w := got[[2]int64{int64(rank), int64(k)}],
					[2]Picoseconds{Picoseconds(want.start[rank][k]), Picoseconds(want.end[rank][k])}; g != w {
					t.Fatalf("seed %d: rank %d, seq %d: %v ps; the second simulator says %v\n%+v\n%v", seed, rank, k,
						g, w, slow, p)
				}
			}
		}
	})
	if ended < lawPrograms*3/4 {
		t.Errorf("only %d of %d programs end", ended, lawPrograms)
	}
}

// At cpu_ratio 1 ranks compute as long as in the program, whatever they wait for, and all bytes sent are received.
func TestLawsComputeTimeIsKept(t *testing.T) {
	ended := 0
	eachProgram(t, func(seed int, g *rand.Rand, p *slowProgram) {
		m, _ := randomMachine(t, g, len(p.ranks))
		m.EagerThresholdBytes, m.EagerThresholdGiven, m.CPURatio = models.NoThreshold, false, 1
		contended(g, m)
		program, rows := p.rows()
		for _, d := range []Dialect{Paper, Dimemas5} {
			r, err := simulated(m, program, d, rows)
			if err != nil { // in Dimemas messages can overtake each other, so that some programs deadlock
				continue
			}
			ended++
			var bytes, got int64
			for rank, calls := range p.ranks {
				want := Picoseconds(0)
				for _, c := range calls {
					want += Picoseconds(c.compute * 1000)
					if c.sends != nil {
						bytes += c.sends.bytes
					}
					if c.receives != nil {
						got += c.receives.bytes
					}
				}
				if x := r.Ranks[rank]; x.Compute != want || x.Finish < want {
					t.Fatalf("seed %d, %v: rank %d computes %d ps and ends at %d, of %d", seed, d, rank, x.Compute,
						x.Finish, want)
				}
			}
			if r.Bytes != bytes || bytes != got {
				t.Fatalf("seed %d, %v: %d bytes are sent, %d received, %d were", seed, d, r.Bytes, got, bytes)
			}
		}
	})
	if ended < lawPrograms*3/2 {
		t.Errorf("only %d of %d simulations end", ended, 2*lawPrograms)
	}
}

// The division of rows into windows does not change any time.
func TestLawsSameTimesInAnyWindows(t *testing.T) {
	eachProgram(t, func(seed int, g *rand.Rand, p *slowProgram) {
		m, _ := randomMachine(t, g, len(p.ranks))
		contended(g, m)
		program, rows := p.rows()
		windows := make([][]schema.Event, 1+g.IntN(5))
		for rank := range p.ranks {
			at := 0
			for i := range rows {
				if rows[i].Rank == int32(rank) {
					at = min(at+g.IntN(2)*g.IntN(3), len(windows)-1)
					windows[at] = append(windows[at], rows[i])
				}
			}
		}
		for _, d := range []Dialect{Paper, Dimemas5} {
			_, want, err := timed(m, program, d, [][]schema.Event{rows})
			_, got, err2 := timed(m, program, d, slices.Clone(windows))
			if (err == nil) != (err2 == nil) {
				t.Fatalf("seed %d, %v: %v, and in windows %v", seed, d, err, err2)
			}
			if err != nil {
				continue
			}
			for k, w := range want {
				if got[k] != w {
					t.Fatalf("seed %d, %v: rank %d, seq %d: %v, and in windows %v", seed, d, k[0], k[1], w, got[k])
				}
			}
		}
	})
}

// If ranks wait only for partners (dialect paper), no row ends earlier with a longer latency or a lower bandwidth.
func TestLawsMonotone(t *testing.T) {
	eachProgram(t, func(seed int, g *rand.Rand, p *slowProgram) {
		m, _ := randomMachine(t, g, len(p.ranks))
		program, rows := p.rows()
		_, fast, err := timed(m, program, Paper, [][]schema.Event{rows})
		if err != nil {
			return
		}
		slower(g, m)
		_, slow, err := timed(m, program, Paper, [][]schema.Event{rows})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for k, f := range fast {
			if slow[k][1] < f[1] {
				t.Fatalf("seed %d: rank %d, seq %d ends at %d ps, on the slower network at %d\n%v", seed, k[0], k[1],
					f[1], slow[k][1], p)
			}
		}
	})
}

func slower(g *rand.Rand, m *models.Machine) {
	for _, i := range []*models.Interconnect{&m.Network, &m.IntraNode} {
		i.Latency += Picoseconds(g.Int64N(20_000_000))
		if i.BytesPerSecond > 0 {
			i.BytesPer *= 1 + g.Int64N(4)
		} else if g.IntN(2) == 0 {
			i.BytesPerSecond, i.BytesPer = 1_000_000_000_000, 50
		}
	}
}

// If ranks wait for a resource, a longer latency can change their order so that the program ends earlier. Example:
// one bus, at 1 ns per byte. Rank 0 sends B (1000 bytes) to rank 1 at 0, rank 2 sends C (100 bytes) to rank 3 at 50
// ns, and rank 3 computes 5000 ns after receiving it. The latency L of rank 0's node is 10 ns, of the others 0: B has
// the bus from 10 to 1010, C from 1010 to 1110, and the program ends at 6110 ns. With L = 100 ns, C has the bus from
// 50 to 150 and B from 150 to 1150, and the program ends at 5150 ns.
func TestLawsMonotoneNotWithBuses(t *testing.T) {
	at := func(latency int64) Picoseconds {
		m, err := models.Named("flat")
		if err != nil {
			t.Fatal(err)
		}
		m.Nodes, m.Mapping = 4, models.RoundRobin
		m.Network = models.Interconnect{BytesPerSecond: 1_000_000_000, BytesPer: 1, Buses: 1}
		for i := range 4 {
			n := models.Node{CPUs: 1, CPURatio: 1}
			if i == 0 {
				n.Latency = Picoseconds(latency * 1000)
			}
			m.Uneven = append(m.Uneven, n)
		}
		p := &slowProgram{comms: map[int32][]int32{}, ranks: [][]slowCall{
			{{call: schema.CallSend, sends: &slowEnd{1, 3, 1000}}},
			{{call: schema.CallRecv, receives: &slowEnd{0, 3, 1000}}},
			{{call: schema.CallSend, compute: 50, sends: &slowEnd{3, 3, 100}}},
			{{call: schema.CallRecv, receives: &slowEnd{2, 3, 100}}, {call: schema.CallFinalize, compute: 5000}},
		}}
		program, rows := p.rows()
		r, err := simulated(m, program, Paper, rows)
		if err != nil {
			t.Fatal(err)
		}
		return r.Time
	}
	if short, long := at(10), at(100); short != 6_110_000 || long != 5_150_000 {
		t.Errorf("the program ends at %d ps, with the longer latency at %d", short, long)
	}
}
