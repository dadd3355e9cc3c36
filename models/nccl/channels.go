package nccl

import "math"

// channels are how many channels an algorithm has, and what each carries inside and between nodes, in GB/s (1e9
// bytes/s). None is no channel: NCCL does not have the algorithm there.
type channels struct {
	n            int
	intra, inter float64
}

// Limits of NCCL (MAXCHANNELS in device.h; NCCL_MAX_NVLS_ARITY there; the search stops at this share of the fastest).
const (
	mostChannels  = 64
	mostNVLSHeads = 32
	slowestShare  = 0.49
)

// speeds are the bandwidths that NCCL tries for a channel, in GB/s, for a communicator inside a node and for one over
// several (search.cc: speedArrayIntra, speedArrayInter and those of sm90 and sm100).
func (g GPU) speeds(nodes int) []float64 {
	switch {
	case g == Blackwell && nodes == 1:
		return []float64{90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18}
	case g == Blackwell:
		return []float64{96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12}
	case g == Hopper && nodes == 1:
		return []float64{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3}
	case g == Hopper:
		return []float64{48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12}
	case nodes == 1:
		return []float64{40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3}
	}
	return []float64{48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12}
}

// layout has what limits the channels of a group: the links of a GPU, in GB/s, and the NICs that its ranks of a node
// use, with the bandwidth of each.
type layout struct {
	system    *System
	group     Group
	perNode   int // ranks of a node, at least
	link, nic float64
	nics      int
}

func newLayout(s *System, g Group) layout {
	perNode := max(g.Ranks/g.Nodes, 1)
	// A group with some of a node's GPUs has the NICs beside these.
	nics := (s.NICs*min(perNode, s.GPUs) + s.GPUs - 1) / s.GPUs
	return layout{s, g, perNode, float64(s.LinkBytesPerSecond) / 1e9, float64(s.NICBytesPerSecond) / 1e9, nics}
}

// fit returns how many channels of a speed a ring can have: each takes it from the link of each GPU, and between nodes
// from a NIC.
func (l layout) fit(speed float64) int {
	n := mostChannels / 2
	if l.perNode > 1 {
		n = min(n, int(l.link/speed))
	}
	if l.group.Nodes > 1 {
		n = min(n, l.nics*int(l.nic/speed))
	}
	return n
}

// ring returns the channels of rings (ncclTopoCompute, pass 1): the speed with the largest bandwidth of all channels,
// of equal ones the fastest. ncclTopoDupChannels then makes two of a fast one.
func (l layout) ring() channels {
	speeds := l.system.GPU.speeds(l.group.Nodes)
	var best channels
	for _, speed := range speeds {
		if best.n > 0 && speed/best.intra <= slowestShare {
			break
		}
		if n := l.fit(speed); float64(n)*speed > float64(best.n)*best.intra {
			best = channels{n, speed, speed}
		}
	}
	if best.n == 0 { // slower than all that NCCL tries, which then takes one channel of 0.1 GB/s
		return channels{1, 0.1, 0.1}
	}
	if best.intra >= 25 && (l.system.GPU <= Ampere || best.intra >= 50 || best.n <= 4) {
		n := min(2*best.n, mostChannels/2)
		half := math.Ceil(float64(n) / float64(best.n))
		best = channels{n, best.intra / half, best.inter / half}
	}
	return best
}

// tree returns the channels of trees: as many as of rings, of the same speed. On two nodes half of a tree's data stays
// inside, so NCCL raises the bandwidth there as long as the links allow (pass 2 of ncclTopoCompute). It does so with
// one rank a node too, which uses no link.
func (l layout) tree(ring channels) channels {
	if l.group.Nodes != 2 {
		return ring
	}
	speeds := l.system.GPU.speeds(l.group.Nodes)
	for i := len(speeds) - 1; i >= 0; i-- {
		fits := l.perNode == 1 || speeds[i]*float64(ring.n) <= l.link
		if speeds[i] > ring.intra && ring.intra < 2*ring.inter && fits {
			ring.intra = speeds[i]
		}
	}
	return ring
}

// sameOrder reports whether all rings have a node's ranks in the same order (sameChannels in search.cc). They have not
// where data enter and leave a node by several NICs, each at another rank.
func (l layout) sameOrder() bool { return l.group.Nodes == 1 || l.perNode == 1 || l.nics == 1 }

// nvls returns the channels of NVLS: one for each GPU that pulls data from the switches, which between nodes has a NIC.
// A GPU's link carries each of them once, and its own twice (ncclTopoSearchTryNvls). NCCL then raises the bandwidth
// between nodes, which is no limit inside a node, as far as a NIC allows, until it is twice that (pass 2).
func (l layout) nvls() channels {
	if !l.system.NVLS || l.system.GPU < Hopper || l.system.Inside == PCI || l.perNode < 2 {
		return channels{}
	}
	n := min(l.perNode, mostNVLSHeads)
	if l.group.Nodes > 1 {
		n = min(n, l.nics)
	}
	speeds := l.system.GPU.speeds(l.group.Nodes)
	for i, speed := range speeds {
		if speed*float64(n+1) > l.link || l.group.Nodes > 1 && speed > l.nic {
			continue
		}
		c := channels{n, speed, speed}
		for i--; i >= 0 && c.inter < 2*c.intra && (l.group.Nodes == 1 || speeds[i] <= l.nic); i-- {
			c.inter = speeds[i]
		}
		return c
	}
	return channels{}
}
