package nccl

import (
	"fmt"
	"math"
	"testing"
)

// h100 is a DGX H100: 18 NVLinks of 20.6 GB/s a GPU, a NIC of 400 Gb/s for each.
func h100() *System {
	return &System{GPU: Hopper, NVLS: true, GPUs: 8, NICs: 8, LinkBytesPerSecond: 370_800_000_000,
		NICBytesPerSecond: 50_000_000_000}
}

// a100 is a DGX A100: 12 NVLinks of 20 GB/s a GPU, a NIC of 200 Gb/s for each, and CPUs of AMD.
func a100() *System {
	return &System{GPU: Ampere, CPU: AMD, GPUs: 8, NICs: 8, LinkBytesPerSecond: 240_000_000_000,
		NICBytesPerSecond: 25_000_000_000}
}

// The channels of rings and NVLS are those that NCCL prints (NCCL_DEBUG=INFO, GRAPH) on nodes of 8 H100: "Pattern 4 ...
// nChannels 12, bw 30/30", "Pattern 1 ... nChannels 12, bw 30/30" and "Pattern 5 ... nChannels 8, bw 40/60"
// (NVIDIA/nccl issue 1197). The others are worked out by hand from the speeds that NCCL tries.
func TestChannels(t *testing.T) {
	slow := h100()
	slow.NICBytesPerSecond = 50_000_000
	narrow := h100()
	narrow.NICs = 2
	for _, c := range []struct {
		name             string
		system           *System
		group            Group
		ring, tree, nvls channels
	}{
		// 370.8/60: 6 of 60, made 12 of 30. NVLS: 370.8/9 = 41.2, so 40.
		{"H100", h100(), Group{8, 1}, channels{12, 30, 30}, channels{12, 30, 30}, channels{8, 40, 60}},
		// 48: 7 fit 370.8; 45: 8, which is more. A NIC carries 48 of NVLS.
		{"H100", h100(), Group{16, 2}, channels{8, 45, 45}, channels{8, 45, 45}, channels{8, 40, 48}},
		{"H100", h100(), Group{1024, 128}, channels{8, 45, 45}, channels{8, 45, 45}, channels{8, 40, 48}},
		// One NIC: 48, made 2 of 24.
		{"H100, a rank a node", h100(), Group{128, 128}, channels{2, 24, 24}, channels{2, 24, 24}, channels{}},
		// On two nodes a tree's channel may have 48 inside, which is one GPU.
		{"H100, a rank a node", h100(), Group{2, 2}, channels{2, 24, 24}, channels{2, 48, 24}, channels{}},
		// 2 ranks a node have 2 of the 8 NICs: 2 of 48, made 4 of 24. NVLS: 3 times 48 is less than 370.8.
		{"H100, 2 ranks a node", h100(), Group{8, 4}, channels{4, 24, 24}, channels{4, 24, 24}, channels{2, 48, 48}},
		// On two nodes a tree's channel inside may have twice what a NIC carries: 24, 30, 40, 42, 45, 48.
		{"H100, 2 NICs", narrow, Group{16, 2}, channels{4, 24, 24}, channels{4, 48, 24}, channels{2, 48, 48}},
		{"H100, NICs slower than all speeds", slow, Group{16, 2}, channels{1, 0.1, 0.1}, channels{1, 0.24, 0.1},
			channels{}},
		// 240/40: 6 of 40, made 12 of 20.
		{"A100", a100(), Group{8, 1}, channels{12, 20, 20}, channels{12, 20, 20}, channels{}},
		// 24 of the 25 GB/s of each NIC; 24 is too slow to be made two.
		{"A100", a100(), Group{24, 3}, channels{8, 24, 24}, channels{8, 24, 24}, channels{}},
	} {
		tuner := newTuner(c.system, c.group)
		if tuner.ring != c.ring || tuner.tree != c.tree || tuner.nvls != c.nvls {
			t.Errorf("%s, %v: ring %v, tree %v, NVLS %v; want %v, %v, %v", c.name, c.group, tuner.ring, tuner.tree,
				tuner.nvls, c.ring, c.tree, c.nvls)
		}
	}
}

// The latency in us and the bandwidth in GB/s of each case are worked out by hand, from the formulas of
// ncclTopoTuneModel and the channels of TestChannels.
func TestFormulas(t *testing.T) {
	h, a := h100(), a100()
	plugin := h100()
	plugin.NICLatencyPs = 5_000_000
	narrow := h100()
	narrow.NICs = 2
	pci := &System{GPU: Ampere, Inside: PCI, GPUs: 4, NICs: 1, LinkBytesPerSecond: 24_000_000_000,
		NICBytesPerSecond: 12_500_000_000}
	for _, c := range []struct {
		name      string
		system    *System
		operation Operation
		group     Group
		bytes     int64
		algorithm Algorithm
		protocol  Protocol
		us, gbs   float64
	}{
		// 2(8-1) steps in NVLink; 360 x 1/2 is above 141; 8/14 of the bus bandwidth.
		{"ring", h, AllReduce, Group{8, 1}, 1 << 20, Ring, LL, 6.6 + 14*0.6, 141 * 8.0 / 14},
		{"ring", h, AllReduce, Group{8, 1}, 1 << 20, Ring, LL128, 14 + 14*1.9, 0.92 * 360 * 8 / 14},
		{"ring", h, AllReduce, Group{8, 1}, 1 << 20, Ring, Simple, 8.4 + 14*3.4, 360 * 8.0 / 14},
		{"ring", h, AllGather, Group{8, 1}, 1 << 20, Ring, Simple, 8.4 + 7*3.4, 360 * 8.0 / 7},
		{"ring", h, ReduceScatter, Group{8, 1}, 1 << 20, Ring, LL, 6.6 + 7*0.6, 141 * 8.0 / 7},
		{"chain", h, Broadcast, Group{8, 1}, 1 << 20, Ring, Simple, 8.4 + 3.4, 360},
		{"chain over nodes", h, Reduce, Group{16, 2}, 1 << 20, Ring, LL, 6.6 + 16*2.7, 39},
		// One step of the ring's latency with one rank or NIC a node, as all rings have the same order of ranks.
		{"chain, a rank a node", h, Broadcast, Group{128, 128}, 1 << 20, Ring, LL, 6.6 + 2.7, 20.4},
		{"chain, a rank a node", plugin, Reduce, Group{2, 2}, 1 << 20, Ring, Simple, 8.4 + 14, 48},
		{"chain, a NIC a node", narrow, Broadcast, Group{4, 2}, 1 << 20, Ring, LL, 6.6 + 2.7, 24},
		{"chain, 2 NICs", narrow, Broadcast, Group{16, 2}, 1 << 20, Ring, LL, 6.6 + 16*2.7, 39},
		// 30 steps, 2 of them between the nodes; the 28 others take the CPU's 1 us for a message.
		{"ring over nodes", h, AllReduce, Group{16, 2}, 1 << 10, Ring, LL, 6.6 + 28*1 + 2*2.7, 39 * 16.0 / 30},
		// From 64 bytes for each of 2 x 8 channels and 16 ranks on the latency is 1.4 times as long.
		{"ring over nodes", h, AllReduce, Group{16, 2}, 16383, Ring, Simple, 8.4 + 28*3.4 + 2*14, 360 * 16.0 / 30},
		{"ring over nodes", h, AllReduce, Group{16, 2}, 16384, Ring, Simple, 1.4 * (8.4 + 28*3.4 + 2*14), 360 * 16.0 / 30},
		// A plugin that reports 5 us: once, and once more for the flush of Simple.
		{"ring, plugin", plugin, AllGather, Group{16, 2}, 1 << 10, Ring, LL, 6.6 + 14*1 + 7.7, 39 * 16.0 / 15},
		{"ring, plugin", plugin, AllGather, Group{16, 2}, 1 << 10, Ring, Simple, 8.4 + 14*3.4 + 24, 360 * 16.0 / 15},
		// 1 MiB is the power 14 over 64 bytes: LL of a tree has 0.5, LL128 0.6.
		{"tree", h, AllReduce, Group{8, 1}, 1 << 20, Tree, LL, 6.8 + 2*7*0.6, 0.92 * 360 / 3.8 / 2 * 0.5},
		{"tree", h, AllReduce, Group{8, 1}, 1 << 20, Tree, LL128, 14 + 2*7*1.25, 0.92 * 360 * 7 / 9 / 2 * 0.6},
		{"tree", h, AllReduce, Group{8, 1}, 1 << 30, Tree, Simple, 8.4 + 2*7*4, 0.92 * 360 / 2},
		// log2 of 64 nodes is 6; a channel has at most 36 (Simple) and 29 (LL128), and a plain tree 0.85 of it.
		{"tree", h, AllReduce, Group{512, 64}, 1 << 30, Tree, Simple, 8.4 + 2*(7*4+6*14), 8 * 36 * 0.85 / 2},
		{"tree", h, AllReduce, Group{512, 64}, 1 << 24, Tree, LL128, 14 + 2*(7*1.25+6*8.5), 8 * 29 * 0.85 / 2 * 0.9},
		// No plain tree where GPUs share NICs: 4 channels of 24.
		{"tree, 2 NICs", narrow, AllReduce, Group{32, 4}, 1 << 30, Tree, Simple, 8.4 + 2*(7*4+2*14), 0.92 * 96 / 2},
		{"NVLS", h, AllReduce, Group{8, 1}, 1 << 20, NVLS, Simple, 25, 8 * 40 * 0.85 * 7 / 8 * 2 * 8 / 14},
		{"NVLS", h, AllGather, Group{8, 1}, 1 << 20, NVLS, Simple, 25, 8 * 40 * 0.85 * 7 / 8 * 7 / 8},
		{"NVLS tree", h, AllReduce, Group{16, 2}, 1 << 20, NVLSTree, Simple, 25 + 2*20.9, 8 * 57.7 * 16 / 30},
		{"NVLS tree", h, AllReduce, Group{1024, 128}, 1 << 30, NVLSTree, Simple, 25 + 2*7*20.9, 8 * 45.5 * 1024 / 2046},
		// A rank a node: 48 GB/s, of which PAT gets 3/4.
		{"PAT", h, AllGather, Group{16, 16}, 1 << 20, PAT, Simple, 8 + 4*14/3.5 + 16*2.8, 36},
		// On two nodes what counts is inside: 2 channels of 48.
		{"PAT", h, AllGather, Group{2, 2}, 1 << 20, PAT, Simple, 8 + 14/3.5 + 2*2.8, 72},
		{"ring", a, AllReduce, Group{24, 3}, 1 << 10, Ring, LL, 6.6 + 42*2 + 4*2.7, 19 * 24.0 / 46},
		{"tree", a, AllReduce, Group{24, 3}, 1 << 30, Tree, Simple, 8.4 + 2*(7*4+14), 8 * 17.8 / 2},
		// PCI: 20 of the 24 GB/s; 5.7 us a step.
		{"PCI", pci, AllReduce, Group{4, 1}, 1 << 20, Ring, Simple, 8.4 + 6*5.7, 24 * 4.0 / 6},
	} {
		got, ok := newTuner(c.system, c.group).estimate(c.operation, c.algorithm, c.protocol, c.bytes)
		if us, gbs := float64(got.LatencyPs)/1e6, float64(got.BytesPerSecond)/1e9; !ok ||
			math.Abs(us-c.us) > 1e-5 || math.Abs(gbs-c.gbs) > 1e-6 {
			t.Errorf("%s, %v, %v, %d bytes: %v, %.6f us, %.6f GB/s; want %.6f us, %.6f GB/s", c.name, c.group, c.protocol,
				c.bytes, ok, us, gbs, c.us, c.gbs)
		}
	}
}

// NCCL printed these times in us for an all-reduce on three nodes of 8 H100 (NVIDIA/nccl issue 1453: "65536 Bytes ->
// Algo 0 proto 0 time 37.798233"). The NICs carry 200 Gb/s: of 400 Gb/s trees would be faster with LL128.
func TestTimesThatNCCLPrinted(t *testing.T) {
	s := h100()
	s.NICBytesPerSecond = 25_000_000_000
	for _, c := range []struct {
		bytes    int64
		protocol Protocol
		us       float64
	}{{4096, LL, 25.874907}, {8192, LL, 26.549810}, {65536, LL, 37.798233}, {131072, LL128, 51.603912}} {
		got := s.Estimate(AllReduce, Group{24, 3}, c.bytes, Any)
		if got.Algorithm != Tree || got.Protocol != c.protocol || math.Abs(got.us(c.bytes)-c.us) > 1e-5 {
			t.Errorf("%d bytes: %v %v, %.6f us; want tree %v, %.6f us", c.bytes, got.Algorithm, got.Protocol,
				got.us(c.bytes), c.protocol, c.us)
		}
	}
	// Where it differs: that NCCL took NVLS over a tree at 512 KiB, in 59.5536 us, and at 4 MiB, in 105.4288 us.
	g := Group{24, 3}
	for _, c := range []struct {
		bytes    int64
		want     string
		us, nvls float64
	}{{1 << 19, "tree LL128", 60.9, 72.0}, {1 << 20, "tree LL128", 73.3, 77.3}, {1 << 21, "NVLS tree Simple", 87.7, 87.7},
		{1 << 22, "NVLS tree Simple", 108.7, 108.7}} {
		got, tree := s.Estimate(AllReduce, g, c.bytes, Any), s.Estimate(AllReduce, g, c.bytes, NVLS)
		if way := fmt.Sprint(got.Algorithm, " ", got.Protocol); way != c.want || math.Abs(got.us(c.bytes)-c.us) > 0.05 ||
			math.Abs(tree.us(c.bytes)-c.nvls) > 0.05 || tree.LatencyPs != 66_800_000 {
			t.Errorf("%d bytes: %s, %.2f us, NVLS over a tree %.2f us; want %+v", c.bytes, way, got.us(c.bytes),
				tree.us(c.bytes), c)
		}
	}
}

// The choice flips where NCCL's did: on a node of 8 H100 from LL on a ring to NVLS above 1 MiB (NVIDIA/nccl-tests issue
// 309), on 64 nodes of 8 H200 from LL128 on a tree to NVLS over a tree above 16 MiB (NVIDIA/nccl issue 1752).
func TestChoice(t *testing.T) {
	for _, c := range []struct {
		group     Group
		operation Operation
		bytes     int64
		want      string
	}{
		{Group{8, 1}, AllReduce, 8, "ring LL"},
		{Group{8, 1}, AllReduce, 1 << 20, "ring LL"},
		{Group{8, 1}, AllReduce, 1 << 21, "NVLS Simple"},
		{Group{8, 1}, AllReduce, 1 << 34, "NVLS Simple"},
		{Group{512, 64}, AllReduce, 1 << 10, "tree LL"},
		{Group{512, 64}, AllReduce, 1 << 24, "tree LL128"},
		{Group{512, 64}, AllReduce, 1 << 25, "NVLS tree Simple"},
		// Reductions with a part for each rank: rings, as they send less than NVLS (NVIDIA/nccl issue 1083).
		{Group{8, 1}, ReduceScatter, 1 << 30, "ring Simple"},
		{Group{8, 1}, AllGather, 1 << 10, "ring LL"},
		{Group{128, 128}, AllGather, 1 << 24, "PAT Simple"},
		{Group{128, 128}, AllGather, 1 << 33, "ring Simple"},
		{Group{16, 2}, Broadcast, 1 << 10, "ring LL"},
		{Group{16, 2}, AllToAll, 16 * 16384, "sends and receives LL"},
		{Group{16, 2}, AllToAll, 16 * 16385, "sends and receives Simple"},
	} {
		e := h100().Estimate(c.operation, c.group, c.bytes, Any)
		if got := fmt.Sprint(e.Algorithm, " ", e.Protocol); got != c.want {
			t.Errorf("operation %d, %v, %d bytes: %s; want %s", c.operation, c.group, c.bytes, got, c.want)
		}
	}
	without := h100()
	without.NVLS = false
	if e := without.Estimate(AllReduce, Group{8, 1}, 1<<30, NVLS); e.Algorithm != Ring {
		t.Errorf("NVLS without its hardware: %v; want what NCCL takes instead", e.Algorithm)
	}
}

// What an algorithm does not offer is done by the fastest that NCCL has.
func TestFallsBack(t *testing.T) {
	h := h100()
	for o := AllReduce; o <= Scatter; o++ {
		for _, g := range []Group{{2, 1}, {8, 1}, {3, 3}, {16, 2}, {1024, 128}} {
			for a := Any; a <= PAT; a++ {
				const bytes = 4097
				got, any := h.Estimate(o, g, bytes, a), h.Estimate(o, g, bytes, Any)
				if got.BytesPerSecond <= 0 || got.us(bytes) < any.us(bytes) {
					t.Errorf("operation %d, %v, %v: %+v; the fastest is %+v", o, g, a, got, any)
				}
				if !o.Offers(a) && got != any {
					t.Errorf("operation %d does not offer %v: %+v; want %+v", o, a, got, any)
				}
			}
		}
	}
	for o := AllReduce; o <= Scatter; o++ {
		if e := h.Estimate(o, Group{1, 1}, 1<<30, Any); e.Algorithm != Any || e.LatencyPs != 0 || e.us(1<<30) > 1 {
			t.Errorf("operation %d, one rank: %+v", o, e)
		}
		if e := h.Estimate(o, Group{8, 1}, 0, Ring); e.Algorithm != Any || e.us(0) != 0 {
			t.Errorf("operation %d, no bytes: %+v", o, e)
		}
	}
}

// Sends and receives: of 16 ranks on 2 nodes a rank sends 8/16 of its bytes over its NIC, which is slower than 7/16
// over NVLink, in 8 messages that its CPU posts.
func TestSendsAndReceives(t *testing.T) {
	const bytes = 16 << 20
	for _, c := range []struct {
		group   Group
		us, gbs float64
	}{
		{Group{16, 2}, 8.4 + 14 + 8*3, 50 * 16.0 / 8},
		{Group{8, 1}, 8.4 + 3.4, 370.8 * 8 / 7},
		{Group{4, 4}, 8.4 + 14 + 3*3, 50 * 4.0 / 3},
	} {
		got := h100().Estimate(AllToAll, c.group, bytes, Any)
		if us, gbs := float64(got.LatencyPs)/1e6, float64(got.BytesPerSecond)/1e9; math.Abs(us-c.us) > 1e-6 ||
			math.Abs(gbs-c.gbs) > 1e-6 {
			t.Errorf("%v: %.3f us, %.3f GB/s; want %.3f us, %.3f GB/s", c.group, us, gbs, c.us, c.gbs)
		}
	}
}

// More bytes take longer by every algorithm but trees, whose correction NCCL has by powers of two. Faster links and
// NICs never make an operation slower, and more nodes never make one faster.
func TestMonotone(t *testing.T) {
	for o := AllReduce; o <= Scatter; o++ {
		for _, g := range []Group{{8, 1}, {16, 2}, {24, 3}, {1024, 128}} {
			for _, a := range []Algorithm{Ring, NVLS} {
				if !o.Offers(a) || a == NVLS && o != AllReduce && g.Nodes > 1 {
					continue
				}
				last := 0.0
				for bytes := int64(1); bytes <= 1<<34; bytes = bytes*5/4 + 1 {
					us := h100().Estimate(o, g, bytes, a).us(bytes)
					if us < last {
						t.Fatalf("operation %d, %v, %v, %d bytes: %.3f us, fewer bytes took %.3f us", o, g, a, bytes, us,
							last)
					}
					last = us
				}
			}
			for _, bytes := range []int64{1, 1 << 16, 1 << 22, 1 << 30} {
				slow, fast := h100(), h100()
				slow.NICBytesPerSecond, slow.LinkBytesPerSecond = 25_000_000_000, 185_400_000_000
				if a, b := slow.Estimate(o, g, bytes, Any).us(bytes), fast.Estimate(o, g, bytes, Any).us(bytes); a < b {
					t.Errorf("operation %d, %v, %d bytes: %.3f us with half the bandwidth, else %.3f us", o, g, bytes, a, b)
				}
				more := Group{2 * g.Ranks, 2 * g.Nodes}
				if a, b := fast.Estimate(o, more, bytes, Ring).us(bytes), fast.Estimate(o, g, bytes, Ring).us(bytes); a < b {
					t.Errorf("operation %d, %d bytes: %.3f us on %v, %.3f us on %v", o, bytes, a, more, b, g)
				}
			}
		}
	}
}
