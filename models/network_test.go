package models

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
)

// clan is a network of 7 us and 4 ns per byte.
const clan = "network: {latency_ns: 7000, bandwidth_bytes_per_s: 250e6}\n"

func mustRead(t testing.TB, text string) *Machine {
	t.Helper()
	m, err := Read("test.yaml", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// mustStateless returns a network between six ranks.
func mustStateless(t testing.TB, text string) Network {
	t.Helper()
	n, err := mustRead(t, text).Stateless(6)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestDelay(t *testing.T) {
	for _, c := range []struct {
		machine             string
		source, destination int
		bytes               int64
		want                Picoseconds
	}{
		{clan, 3, 5, 0, 7_000_000},
		{clan, 3, 5, 1, 7_004_000},
		{clan, 3, 5, 4097, 23_388_000}, // 7000 ns + 4097 x 4 ns
		// a rank to itself: as between nodes if the machine has no other values
		{clan, 5, 5, 4097, 23_388_000},
		{clan, 0, 1, 5_000_000_000, 20_000_007_000_000},                             // 20 s and 7 us
		{clan, 0, 1, -1, 7_000_000},                                                 // not known
		{"network: {latency_ns: 0.125, bandwidth_bytes_per_s: 3e9}", 0, 1, 1, 458},  // 125 + 333.3
		{"network: {latency_ns: 0.125, bandwidth_bytes_per_s: 3e9}", 0, 1, 2, 792},  // 125 + 666.7
		{"network: {latency_ns: 0, bandwidth_bytes_per_s: 800e9}", 0, 1, 2, 3},      // 2.5, half up
		{"network: {latency_ns: 0, bandwidth_bytes_per_s: 800e9}", 0, 1, 1, 1},      // 1.25
		{"network: {latency_ns: 0, bandwidth_bytes_per_s: 1e18}", 0, 1, 499_999, 0}, // 0.499999
		{"network: {latency_ns: 0, bandwidth_bytes_per_s: 1e18}", 0, 1, 500_000, 1}, // 0.5
		{"network: {latency_ns: 9, bandwidth_bytes_per_s: infinite}", 0, 1, math.MaxInt64, 9000},
		{"network: {latency_ns: 9, bandwidth_bytes_per_s: 1}", 0, 1, math.MaxInt64, Forever},
		// just not for ever
		{"network: {latency_ns: 9, bandwidth_bytes_per_s: 1}", 0, 1, 4_611_686, 4_611_686_000_000_009_000},
		{"network: {latency_ns: 9, bandwidth_bytes_per_s: 1}", 0, 1, 4_611_687, Forever},
	} {
		if got := mustStateless(t, c.machine).Delay(c.source, c.destination, c.bytes); got != c.want {
			t.Errorf("%s: %d bytes from %d to %d: %d ps, want %d", c.machine, c.bytes, c.source, c.destination, got,
				c.want)
		}
	}
}

// Ranks on one node and on two.
func TestDelayInsideANode(t *testing.T) {
	const intra = "intra_node: {latency_ns: 500, bandwidth_bytes_per_s: 1e9}\n"
	near, far := Picoseconds(503_000), Picoseconds(7_012_000) // 3 bytes
	for _, c := range []struct {
		layout              string
		source, destination int
		want                Picoseconds
	}{
		{"cpus_per_node: 3\n", 0, 2, near}, {"cpus_per_node: 3\n", 2, 3, far}, {"cpus_per_node: 3\n", 5, 3, near},
		{"{nodes: 2, cpus_per_node: 3, mapping: round-robin}", 0, 2, near},
		{"{nodes: 2, cpus_per_node: 3, mapping: round-robin}", 0, 1, far},
		{"{nodes: 2, cpus_per_node: 3, mapping: block}", 0, 2, near},
		{"{nodes: 2, cpus_per_node: 3, mapping: block}", 2, 3, far},
		{"nodes: 2\n", 0, 2, near}, {"nodes: 2\n", 2, 3, far}, // six ranks share two CPUs
		{"cpus_per_node: 1\n", 4, 4, near}, {"cpus_per_node: 1\n", 4, 3, far},
	} {
		text := strings.ReplaceAll(strings.Trim(c.layout, "{}"), ", ", "\n") + "\n" + clan + intra
		if got := mustStateless(t, text).Delay(c.source, c.destination, 3); got != c.want {
			t.Errorf("%s: from %d to %d: %d ps, want %d", c.layout, c.source, c.destination, got, c.want)
		}
	}
}

// The root sends 1000 bytes and receives 600. With L = 7 us and 4 ns per byte L + SIZE/B is
//
//	MAX 7000 + 4000 = 11,000 ns   MIN 7000 + 2400 = 9,400   MEAN 7000 + 3200 = 10,200   2MAX 7000 + 8000 = 15,000   S+R 7000 + 6400 = 13,400
//
// and ceil(log2 P) of 1, 2, 3, 5 and 64 is 0, 1, 2, 3 and 6.
func TestCollectivesOfTable3(t *testing.T) {
	n := mustStateless(t, clan)
	ranks := []int{1, 2, 3, 5, 64}
	for _, c := range []struct {
		call schema.CallID
		ns   []int64
	}{
		{schema.CallBarrier, []int64{22_000, 44_000, 66_000, 110_000, 1_408_000}}, // 2 P x 11,000
		{schema.CallBcast, []int64{0, 11_000, 22_000, 33_000, 66_000}},            // log x 11,000
		{schema.CallGather, []int64{0, 10_200, 20_400, 30_600, 61_200}},           // log x 10,200
		{schema.CallGatherv, []int64{0, 10_200, 20_400, 30_600, 61_200}},          //
		{schema.CallScatter, []int64{0, 10_200, 20_400, 30_600, 61_200}},          //
		{schema.CallScatterv, []int64{0, 10_200, 20_400, 30_600, 61_200}},         //
		{schema.CallAllgather, []int64{0, 20_400, 40_800, 61_200, 122_400}},       // log x (10,200 + 10,200)
		{schema.CallAllgatherv, []int64{0, 20_400, 40_800, 61_200, 122_400}},      //
		{schema.CallAlltoall, []int64{0, 21_200, 42_400, 63_600, 127_200}},        // log x (10,200 + 11,000)
		{schema.CallAlltoallv, []int64{0, 21_200, 42_400, 63_600, 127_200}},       //
		{schema.CallReduce, []int64{0, 15_000, 30_000, 45_000, 90_000}},           // log x 15,000
		{schema.CallAllreduce, []int64{0, 26_000, 52_000, 78_000, 156_000}},       // log x (15,000 + 11,000)
		{schema.CallReduceScatter, []int64{0, 24_400, 48_800, 73_200, 146_400}},   // log x (15,000 + 9,400)
		{schema.CallScan, []int64{0, 22_000, 44_000, 66_000, 132_000}},            // log x (11,000 + 11,000)
		// not in the table: as Reduce_scatter
		{schema.CallReduceScatterBlock, []int64{0, 24_400, 48_800, 73_200, 146_400}},
		{schema.CallAlltoallw, []int64{0, 21_200, 42_400, 63_600, 127_200}},             // as Alltoallv
		{schema.CallExscan, []int64{0, 22_000, 44_000, 66_000, 132_000}},                // as Scan
		{schema.CallNeighborAllgather, []int64{11_000, 11_000, 11_000, 11_000, 11_000}}, // one message
		{schema.CallNeighborAllgatherv, []int64{11_000, 11_000, 11_000, 11_000, 11_000}},
		{schema.CallNeighborAlltoall, []int64{11_000, 11_000, 11_000, 11_000, 11_000}},
		{schema.CallNeighborAlltoallv, []int64{11_000, 11_000, 11_000, 11_000, 11_000}},
		{schema.CallNeighborAlltoallw, []int64{11_000, 11_000, 11_000, 11_000, 11_000}},
		{schema.CallCommDup, []int64{22_000, 44_000, 66_000, 110_000, 1_408_000}}, // no operation: as Barrier
	} {
		for i, p := range ranks {
			var z Sizes
			z.Add(1000, 600)
			if got := n.Collective(c.call, p, &z); got != Picoseconds(c.ns[i]*1000) {
				t.Errorf("%s of %d ranks: %d ps, want %d", c.call, p, got, c.ns[i]*1000)
			}
		}
	}
}

// Every operation has phases; a new one must not silently get those of a barrier.
func TestEveryOperationHasPhases(t *testing.T) {
	for id := range schema.CallID(len(schema.Calls)) {
		if op := id.Operation(); op != 0 {
			if _, ok := table3[op]; !ok {
				t.Errorf("%s has no row", op)
			}
		}
	}
	if len(table3) != 22 {
		t.Errorf("%d rows, want 22", len(table3))
	}
}

// One phase with each factor and each size. The root sends 1000 bytes and receives 600; see above.
func TestFactorsAndSizes(t *testing.T) {
	sizes := map[string]int64{"MAX": 11_000, "MIN": 9_400, "MEAN": 10_200, "2MAX": 15_000, "S+R": 13_400}
	factors := map[string][]int64{"0": {0, 0, 0, 0, 0}, "CT": {1, 1, 1, 1, 1}, "LIN": {1, 2, 3, 5, 64},
		"LOG": {0, 1, 2, 3, 6}}
	for f, times := range factors {
		for s, ns := range sizes {
			for i, p := range []int{1, 2, 3, 5, 64} {
				var z Sizes
				z.Add(1000, 600)
				in := mustStateless(t, clan+"collectives: {MPI_Bcast: {fan_in: "+f+", size_in: "+
					s+", fan_out: 0, size_out: MAX}}")
				out := mustStateless(t, clan+"collectives: {MPI_Bcast: {fan_in: 0, size_in: MAX, fan_out: "+
					f+", size_out: "+s+"}}")
				want := Picoseconds(times[i] * ns * 1000)
				if a, b := in.Collective(schema.CallBcast, p, &z),
					out.Collective(schema.CallBcast, p, &z); a != want || b != want {
					t.Errorf("%s %s of %d ranks: in %d ps, out %d, want %d", f, s, p, a, b, want)
				}
			}
		}
	}
}

// Three ranks send and receive (100, 40), (10, 7) and (0, 2000): MAX 2000, MIN 0, the sum of all is 2157, so that
// MEAN is 2157/6 = 359.5 and S+R 719. With 1 ns per byte and no latency, LOG of 3 ranks is 2 x SIZE.
func TestSizesWithoutRoot(t *testing.T) {
	for size, want := range map[string]Picoseconds{"MAX": 4_000_000, "MIN": 0, "MEAN": 719_000, "2MAX": 8_000_000,
		"S+R": 1_438_000} {
		n := mustStateless(t, "network: {latency_ns: 0, bandwidth_bytes_per_s: 1e9}\ncollectives: {all: {fan_in: LOG, size_in: "+size+", fan_out: 0, size_out: MAX}}")
		var z Sizes
		z.Add(100, 40)
		z.Add(10, 7)
		z.Add(schema.NullInt64, 2000)
		if got := n.Collective(schema.CallAllgather, 3, &z); got != want {
			t.Errorf("%s: %d ps, want %d", size, got, want)
		}
	}
}

// At 3e9 bytes/s a byte takes 333 1/3 ps: three steps are 1000 ps, not three times 333.
func TestCollectivesAreRoundedOnce(t *testing.T) {
	var z Sizes
	z.Add(1, 0)
	n := mustStateless(t, "network: {latency_ns: 0, bandwidth_bytes_per_s: 3e9}\ncollectives: {all: {fan_in: LIN, size_in: MAX, fan_out: 0, size_out: MAX}}")
	if got := n.Collective(schema.CallBcast, 3, &z); got != 1000 {
		t.Errorf("%d ps, want 1000", got)
	}
	// 5 x 1/2 byte is 833 1/3 ps, and twice that is 1666 2/3.
	n = mustStateless(t, "network: {latency_ns: 0, bandwidth_bytes_per_s: 3e9}\ncollectives: {all: {fan_in: LIN, size_in: MEAN, fan_out: LIN, size_out: MEAN}}")
	if got := n.Collective(schema.CallBcast, 5, &z); got != 1667 {
		t.Errorf("%d ps, want 1667", got)
	}
}

func TestHardwareCollectives(t *testing.T) {
	m, err := Named("collectives-in-hardware")
	if err != nil {
		t.Fatal(err)
	}
	n, err := m.Stateless(64)
	if err != nil {
		t.Fatal(err)
	}
	var z Sizes
	z.Add(8, 8)
	for op := range table3 {
		if got := n.Collective(op, 64, &z); got != 10_008_000 { // 10 us + 8 ns
			t.Errorf("%s: %d ps", op, got)
		}
	}
	ideal, err := Named("ideal")
	if err != nil {
		t.Fatal(err)
	}
	if n, err = ideal.Stateless(64); err != nil || n.Collective(schema.CallBarrier, 64, &z) != 0 ||
		n.Delay(0, 1, 1<<40) != 0 {
		t.Errorf("the ideal network takes time: %v", err)
	}
}

// Equation 4: with 8 messages at the same time and 5 buses a phase has 2 steps (the example in the paper).
func TestSteps(t *testing.T) {
	for _, c := range []struct{ ranks, buses, want int }{
		{16, 5, 5},  // 8, 4, 2, 1 messages: 2 + 1 + 1 + 1
		{64, 5, 16}, // 32, 16, 8, 4, 2, 1: 7 + 4 + 2 + 1 + 1 + 1
		{8, 1, 7},   // every message by itself
		{6, 2, 4},   // 3, 1, 1: 2 + 1 + 1
		{1, 1, 0}, {2, 1, 1}, {3, 1, 2}, {64, 0, 6}, {65, 0, 7}, {1 << 24, 0, 24},
	} {
		if got := (&Interconnect{Buses: c.buses}).steps(c.ranks); got != int64(c.want) {
			t.Errorf("%d ranks, %d buses: %d steps, want %d", c.ranks, c.buses, got, c.want)
		}
	}
	for ranks := 1; ranks < 200; ranks++ {
		for buses := 1; buses < 9; buses++ {
			want := 0
			for at := 1; at < ranks; at *= 2 { // those at-1, at-1 + 2 at, ... before the last rank
				c := 0
				for j := at - 1; j < ranks-1; j += 2 * at {
					c++
				}
				want += (c + buses - 1) / buses
			}
			if got := (&Interconnect{Buses: buses}).steps(ranks); got != int64(want) {
				t.Fatalf("%d ranks, %d buses: %d steps, want %d", ranks, buses, got, want)
			}
		}
	}
}

// A second implementation with fractions gives the same times for random values.
func TestFormulasAgainstFractions(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	ps := func(x *big.Rat) Picoseconds { // half up, at most Forever
		x = new(big.Rat).Add(x, big.NewRat(1, 2))
		q := new(big.Int).Quo(x.Num(), x.Denom())
		if q.Cmp(big.NewInt(int64(Forever))) > 0 {
			return Forever
		}
		return Picoseconds(q.Int64())
	}
	any := func(bitsMost int) int64 { return int64(r.Uint64() >> (64 - r.IntN(bitsMost) - 1)) }
	quick := 0
	for range 20_000 {
		latencyBits, rateBits, sizeBits := 50, 59, 62
		if r.IntN(2) == 0 {
			latencyBits, rateBits, sizeBits = 40, 40, 30
		}
		i := Interconnect{Latency: Picoseconds(any(latencyBits)), BytesPerSecond: 1 + any(rateBits)}
		l, b := new(big.Rat).SetInt64(int64(i.Latency)), big.NewRat(i.BytesPerSecond, perSecond)
		phase := func(size *big.Rat, factor int64) *big.Rat {
			x := new(big.Rat).Quo(size, b)
			return x.Mul(x.Add(x, l), new(big.Rat).SetInt64(factor))
		}
		bytes := any(sizeBits)
		if got, want := i.Latency.plus(i.Transfer(bytes)), ps(phase(new(big.Rat).SetInt64(bytes), 1)); got != want {
			t.Fatalf("%+v, %d bytes: %d ps, want %d", i, bytes, got, want)
		}
		var z Sizes
		var all []int64
		for range 1 + r.IntN(5) {
			s, v := any(sizeBits), any(sizeBits)
			z.Add(s, v)
			all = append(all, s, v)
		}
		sum := new(big.Rat)
		for _, x := range all {
			sum.Add(sum, new(big.Rat).SetInt64(x))
		}
		two := big.NewRat(2, 1)
		most, least, mean := new(big.Rat).SetInt64(slices.Max(all)), new(big.Rat).SetInt64(slices.Min(all)),
			new(big.Rat).Quo(sum, new(big.Rat).SetInt64(int64(len(all))))
		sizes := []*big.Rat{most, least, mean, new(big.Rat).Mul(most, two), new(big.Rat).Mul(mean, two)}
		ranks := 1 + int(any(24))
		log := int64(0)
		for at := 1; at < ranks; at *= 2 {
			log++
		}
		factors := []int64{0, 1, int64(ranks), log}
		p := Phases{Factor(r.IntN(4)), Size(r.IntN(5)), Factor(r.IntN(4)), Size(r.IntN(5))}
		in, out := phase(sizes[p.SizeIn], factors[p.FanIn]), phase(sizes[p.SizeOut], factors[p.FanOut])
		if _, ok := i.quick(p, uint64(factors[p.FanIn]), uint64(factors[p.FanOut]), &z); ok {
			quick++
		}
		if got, want := i.Collective(p, ranks, &z), ps(in.Add(in, out)); got != want {
			t.Fatalf("%+v, %+v of %d ranks, %v: %d ps, want %d", i, p, ranks, all, got, want)
		}
	}
	if quick < 1000 || quick > 19_000 {
		t.Errorf("%d of 20000 in 128 bits: both ways are to be tried", quick)
	}
}

func TestStatelessNeedsUnlimitedResources(t *testing.T) {
	for text, want := range map[string]string{
		"network: {latency_ns: 1, bandwidth_bytes_per_s: 1, buses: 4}":                                                        "machine test.yaml: network.buses is 4: ",
		"network: {latency_ns: 1, bandwidth_bytes_per_s: 1, input_links: 2}":                                                  "network.input_links is 2: ",
		"network: {latency_ns: 1, bandwidth_bytes_per_s: 1, output_links: 3}":                                                 "network.output_links is 3: ",
		"network: {latency_ns: 1, bandwidth_bytes_per_s: 1}\nintra_node: {latency_ns: 1, bandwidth_bytes_per_s: 1, buses: 1}": "intra_node.buses is 1: ",
		"network: {latency_ns: 1, bandwidth_bytes_per_s: 1}\neager_threshold_bytes: 0":                                        "eager_threshold_bytes is 0: ",
	} {
		m, err := Read("test.yaml", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		n, err := m.Stateless(64)
		if n != nil || err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "commq capture") || !strings.Contains(err.Error(), "commq simulate") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestFits(t *testing.T) {
	const nodes = "nodes: 3\ncpus_per_node: 2\nintra_node: {latency_ns: 1, bandwidth_bytes_per_s: 1}\n"
	m := mustRead(t, nodes+clan)
	for _, ranks := range []int{1, 6, 9} {
		if err := m.Fits(ranks); err != nil {
			t.Error(err)
		}
	}
	if err := m.Fits(7); err == nil || !strings.Contains(err.Error(),
		"nodes is 3 and cpus_per_node 2, and 7 ranks cannot share") ||
		!strings.Contains(err.Error(), "set nodes to 4") {
		t.Error(err)
	}
	if _, err := m.Stateless(8); err == nil {
		t.Error("8 ranks fit")
	}
	if err := mustRead(t, clan).Fits(1 << 24); err != nil {
		t.Error(err)
	}
	dealt := mustRead(t, nodes+"mapping: round-robin\n"+clan)
	for rank, want := range []int{0, 0, 0, 1, 1, 1, 2, 2, 2} {
		if n := m.Node(rank, 9); n != want {
			t.Errorf("block: rank %d of 9 is on node %d", rank, n)
		}
		if n := m.Node(rank, 6); rank < 6 && n != rank/2 {
			t.Errorf("block: rank %d of 6 is on node %d", rank, n)
		}
		if n := dealt.Node(rank, 9); n != rank%3 {
			t.Errorf("round-robin: rank %d of 9 is on node %d", rank, n)
		}
	}
}

func BenchmarkDelay(b *testing.B) {
	n := mustStateless(b, clan)
	for i := range b.N {
		n.Delay(i&63, 5, int64(i))
	}
}

func BenchmarkCollective(b *testing.B) {
	n := mustStateless(b, clan)
	var z Sizes
	z.Add(1000, 600)
	b.ReportAllocs()
	for b.Loop() {
		n.Collective(schema.CallAllreduce, 64, &z)
	}
}
