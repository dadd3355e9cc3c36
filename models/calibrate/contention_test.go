package calibrate

import (
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/schema"
)

// shapes of rounds on eight ranks, each pairs of source and destination.
var shapes = [][][2]int32{
	{{0, 1}}, {{0, 7}}, {{0, 1}, {1, 0}}, {{0, 7}, {7, 0}}, {{0, 1}, {0, 2}, {0, 3}}, {{0, 7}, {0, 6}, {0, 5}, {0, 4}},
	{{1, 0}, {2, 0}, {3, 0}}, {{0, 4}, {1, 5}, {2, 6}, {3, 7}}, {{0, 1}, {2, 3}, {4, 5}}, {{0, 4}, {1, 5}},
}

// roundsOf returns rounds of these shapes whose messages of 70,001 bytes take 1100 ns, and 70,001 more for each turn on
// a network. Each is measured several times, up to noise longer.
func roundsOf(n limits, node []int32, noise float64) (rounds [][]Transfer) {
	rng := rand.New(rand.NewPCG(5, 9))
	for range 9 {
		for _, shape := range shapes {
			var paths []path
			inside := node[shape[0][0]] == node[shape[0][1]]
			for _, m := range shape {
				if inside {
					paths = append(paths, path{m[0], m[1], node[m[0]]})
				} else {
					paths = append(paths, path{node[m[0]], node[m[1]], 0})
				}
			}
			start := rng.Int64N(1 << 40)
			end := start + int64(float64(1100+70_001*n.turns(paths))*(1+noise*rng.Float64()))
			var round []Transfer
			for _, m := range shape {
				round = append(round, Transfer{m[0], m[1], 70_001, start, end})
			}
			rounds = append(rounds, round)
		}
	}
	return rounds
}

// Eight nodes. What does not wait is as many as were sent at once, or more: four.
func TestFindContention(t *testing.T) {
	node := []int32{0, 1, 2, 3, 4, 5, 6, 7}
	for _, c := range []struct {
		name           string
		truth          limits
		noise          float64
		in, out, buses Limit
		half           bool
	}{
		{"nothing waits", limits{}, 0, Limit{0, 3, 0}, Limit{0, 4, 0}, Limit{0, 4, 0}, false},
		{"a link", limits{in: 1, out: 1}, 0, Limit{1, 1, 1}, Limit{1, 1, 1}, Limit{0, 4, 0}, false},
		{"a link in either direction", limits{in: 1, out: 1, half: true}, 0, Limit{1, 1, 1}, Limit{1, 1, 1}, Limit{0, 4, 0},
			true},
		{"two links out, noise", limits{in: 1, out: 2}, 0.05, Limit{1, 1, 1}, Limit{2, 2, 2}, Limit{0, 4, 0}, false},
		{"three buses", limits{buses: 3}, 0, Limit{0, 3, 0}, Limit{0, 3, 0}, Limit{3, 3, 3}, false},
	} {
		got, err := FindContention(roundsOf(c.truth, node, c.noise), node, false, 1100, LowerQuartile)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got.InputLinks != c.in || got.OutputLinks != c.out || got.Buses != c.buses || got.HalfDuplex != c.half {
			t.Errorf("%s: in %+v, out %+v, buses %+v, half duplex %v", c.name, got.InputLinks, got.OutputLinks, got.Buses,
				got.HalfDuplex)
		}
	}
}

// One bus carries one message at a time: links cannot be seen behind it, so that any number fits.
func TestContentionHiddenByABus(t *testing.T) {
	node := []int32{0, 1, 2, 3, 4, 5, 6, 7}
	c, err := FindContention(roundsOf(limits{in: 1, out: 1, buses: 1}, node, 0), node, false, 1100, LowerQuartile)
	if err != nil {
		t.Fatal(err)
	}
	want := "how many input links there are (1 or more), how many output links there are (1 or more), whether links are half duplex"
	if c.Buses != (Limit{1, 1, 1}) || c.undecided() != want || c.limitsText() != "buses 1" {
		t.Errorf("%+v: %s; %s", c, c.undecided(), c.limitsText())
	}
}

// With two CPUs per node, messages between neighbours stay inside and say nothing about the network.
func TestContentionOfTwoKinds(t *testing.T) {
	node := []int32{0, 0, 1, 1, 2, 2, 3, 3}
	rounds := roundsOf(limits{in: 1, out: 1}, node, 0)
	for _, c := range []struct {
		inside bool
		rounds int
		out    Limit
	}{{false, 4, Limit{1, 1, 1}}, {true, 2, Limit{0, 1, 0}}} {
		got, err := FindContention(rounds, node, c.inside, 1100, LowerQuartile)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Rounds) != c.rounds || got.OutputLinks != c.out {
			t.Errorf("inside %v: %d rounds, output links %+v", c.inside, len(got.Rounds), got.OutputLinks)
		}
	}
	if got, err := FindContention(rounds[:2], node, false, 1100, LowerQuartile); got != nil || err != nil {
		t.Errorf("of single messages: %+v, %v", got, err)
	}
}

// Four messages into a rank that take twice as long as one and an exchange that takes three times as long: no network
// does that.
func TestContentionWithoutAnAnswer(t *testing.T) {
	node := []int32{0, 1, 2, 3, 4, 5, 6, 7}
	round := func(ns int64, ranks ...[2]int32) (r []Transfer) {
		for _, m := range ranks {
			r = append(r, Transfer{m[0], m[1], 70_001, 0, ns})
		}
		return r
	}
	_, err := FindContention([][]Transfer{round(1000, [2]int32{0, 1}), round(3000, [2]int32{0, 1}, [2]int32{1, 0})}, node,
		false, 0, LowerQuartile)
	if err == nil || !strings.Contains(err.Error(), "2 messages, the first of rank 0 to rank 1, take 3.00 times as long as one") {
		t.Errorf("%v", err)
	}
}

// The number of turns is that of commq simulate: all rounds on random networks, with messages of 1 ms.
func TestTurnsAreThoseOfTheSimulator(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := limits{in: rng.IntN(4), out: rng.IntN(4), buses: rng.IntN(4)}
		if n.half = rng.IntN(2) == 0; n.half {
			n.in, n.out = 1, 1
		}
		m := models.New("test")
		m.Network = models.Interconnect{BytesPerSecond: 1_000_000_000, InputLinks: n.in, OutputLinks: n.out, Buses: n.buses,
			HalfDuplex: n.half}
		for _, shape := range shapes {
			var paths []path
			for _, pair := range shape {
				paths = append(paths, path{pair[0], pair[1], 0})
			}
			if got, want := int64(n.turns(paths))*1_000_000, simulateRound(t, m, shape); got != want {
				t.Errorf("%+v, %v: %d ns, the simulator says %d", n, shape, got, want)
			}
		}
	}
}

// simulateRound returns how long messages of 1,000,000 bytes take that eight ranks send at once.
func simulateRound(t *testing.T, m *models.Machine, shape [][2]int32) int64 {
	t.Helper()
	b := &schema.Events{}
	p := &simulate.Program{Threads: make([]int32, 8)}
	for rank := range int32(8) {
		p.Threads[rank] = 1
		seq, requests := int64(0), int64(0)
		add := func(e schema.Event) {
			e.Rank, e.Seq, e.ComputeNs = rank, seq, 0
			seq++
			b.Append(&e)
		}
		for i, pair := range shape {
			e := schema.NullEvent
			e.Comm, e.Class = 0, int16(schema.ClassSend)
			e.Request = requests
			switch rank {
			case pair[0]:
				e.Call, e.SendWorld, e.SendPeer, e.SendTag, e.SendBytes = int16(schema.CallIsend), pair[1], pair[1], int32(i), 1_000_000
			case pair[1]:
				e.Class = int16(schema.ClassRecv)
				e.Call, e.RecvWorld, e.RecvPeer, e.RecvTag, e.RecvBytes = int16(schema.CallIrecv), pair[0], pair[0], int32(i), 1_000_000
			default:
				continue
			}
			e.DoneSeq = int64(countOf(shape, rank))
			requests++
			add(e)
		}
		if requests > 0 {
			e := schema.NullEvent
			e.Call, e.Class = int16(schema.CallWaitall), int16(schema.ClassComplete)
			add(e)
		}
	}
	done := false
	r, err := simulate.Simulate(m, p, &simulate.Options{}, func(add func(*schema.Events) error) error {
		if done {
			return io.EOF
		}
		done = true
		return add(b)
	})
	if err != nil {
		t.Fatal(err)
	}
	return simulate.Nanoseconds(r.Time)
}

// countOf counts the messages of a round that a rank takes part in.
func countOf(shape [][2]int32, rank int32) (n int) {
	for _, pair := range shape {
		if pair[0] == rank || pair[1] == rank {
			n++
		}
	}
	return n
}

func TestFindCycle(t *testing.T) {
	for _, c := range []struct {
		samples []float64
		mhz     int64
		top     bool
		want    float64
		why     string
	}{
		{nil, 0, false, 0, ""},
		{[]float64{0.31, 0.06, 0.32, 0.30, 9}, 0, false, 0.31, ""},
		{[]float64{0.12}, 0, false, 0, "no processor has that"},
		{[]float64{3}, 0, false, 0, "no processor has that"},
		{[]float64{0.30}, 3200, true, 0.30, ""},
		{[]float64{0.28}, 3200, true, 0, "its highest clock is 3200 MHz"},
		{[]float64{0.28}, 2100, false, 0.28, ""},
		{[]float64{0.2}, 2100, false, 0, "its clock is 2100 MHz"},
	} {
		got, why := FindCycle(c.samples, c.mhz, c.top)
		if (got == nil) != (c.want == 0) || got != nil && got.Ns != c.want || !strings.Contains(why, c.why) ||
			(why == "") != (c.why == "") {
			t.Errorf("%+v: %+v, %q", c, got, why)
		}
	}
}
