package nccl

import (
	"math"
	"math/bits"
)

// tuner estimates the operations of a group (ncclTopoTuneModel).
type tuner struct {
	system           *System
	group            Group
	ring, tree, nvls channels
	inside           hop
	sameOrder        bool // all rings of a node have its ranks in the same order
}

func newTuner(s *System, g Group) *tuner {
	l := newLayout(s, g)
	t := &tuner{system: s, group: g, ring: l.ring(), nvls: l.nvls(), sameOrder: l.sameOrder()}
	t.tree = l.tree(t.ring)
	if s.Inside == PCI {
		t.inside = overPCI
	}
	return t
}

// estimate returns the time of an operation by an algorithm and a protocol. It returns false where NCCL does not have
// them. The operation must offer the algorithm.
func (t *tuner) estimate(o Operation, a Algorithm, p Protocol, bytes int64) (Estimate, bool) {
	bus := t.busBandwidth(o, a, p)
	if bus <= 0 {
		return Estimate{}, false
	}
	bandwidth, latency := bus*t.share(o, a), t.latency(o, a, p)
	bandwidth *= t.correction(a, p, bits.Len64(uint64(bytes)>>6)-1)
	if a == Ring && p == Simple && t.group.Nodes > 1 && o == AllReduce && bytes/int64(2*t.ring.n*t.group.Ranks) >= 64 {
		latency *= t.plateau()
	}
	return Estimate{a, p, int64(math.Round(latency * 1e6)), max(int64(math.Round(bandwidth*1e9)), 1)}, true
}

// correction is the share of its bandwidth that a tree reaches, by the power of two of the size over 64
// (ncclTopoGetAlgoTime).
func (t *tuner) correction(a Algorithm, p Protocol, power int) float64 {
	powers := 23
	if a == NVLSTree && t.system.GPU == Blackwell {
		powers = 24
	} else if a != Tree {
		return 1
	}
	if power < 0 || power >= powers {
		return 1
	}
	return treeCorrection[p][power]
}

// plateau is the factor of a ring's latency when it has more than some bytes (ncclTopoGetAlgoTime).
func (t *tuner) plateau() float64 {
	if t.system.GPU == Volta {
		return 1.9
	}
	return 1.4
}

// busBandwidth returns what all channels carry, in GB/s; 0 means that NCCL does not have the algorithm with the
// protocol for the group.
func (t *tuner) busBandwidth(o Operation, a Algorithm, p Protocol) float64 {
	nodes := t.group.Nodes
	if p == LL128 && t.system.Inside == PCI && t.group.Ranks > nodes {
		return 0 // LL128 needs NVLink
	}
	switch a {
	case Ring:
		return t.ringBandwidth(p)
	case Tree:
		return t.treeBandwidth(p)
	case PAT: // for one rank a node; it has the channels of trees
		if p != Simple || t.group.Ranks != nodes {
			return 0
		}
		return 0.75 * t.tree.total(nodes)
	}
	if p != Simple || t.nvls.n < 2 || (a == NVLS) != (nodes == 1) { // NVLS over nodes takes SHARP in the network
		return 0
	}
	return t.nvlsBandwidth(o, a)
}

// total returns the bandwidth of all channels in GB/s.
func (c channels) total(nodes int) float64 {
	if nodes <= 2 {
		return float64(c.n) * c.intra
	}
	return float64(c.n) * c.inter
}

func (t *tuner) ringBandwidth(p Protocol) float64 {
	bus := t.ring.total(t.group.Nodes)
	switch p {
	case LL:
		return min(t.llMax(), 0.5*bus)
	case LL128:
		return min(0.92*bus, float64(t.ring.n)*ringLL128Max[t.system.GPU].limit(t.group.Nodes))
	}
	return bus
}

func (t *tuner) treeBandwidth(p Protocol) float64 {
	gpu, nodes, n := t.system.GPU, t.group.Nodes, float64(t.tree.n)
	bus := min(0.92*t.tree.total(nodes), n*treeMax[gpu].limit(nodes))
	switch {
	case p == LL:
		bus = min(bus/3.8, t.llMax())
	case p == LL128 && nodes == 1:
		bus = min(bus*7/9, n*treeLL128Max[gpu].limit(nodes))
	case p == LL128:
		bus = min(bus*120/128, n*treeLL128Max[gpu].limit(nodes))
	}
	if t.plainTree() {
		bus *= 0.85
	}
	return bus
}

// plainTree reports whether all data of a tree enters and leaves a node at one GPU (NCCL_TOPO_PATTERN_TREE). A balanced
// tree shares this with a second GPU beside the same NIC. There is none where a node has one rank, nor on nodes with a
// NIC for each GPU; from Hopper on NCCL does not look further away.
func (t *tuner) plainTree() bool {
	return t.group.Ranks == t.group.Nodes ||
		t.group.Nodes > 1 && t.system.GPU >= Hopper && t.system.NICs >= t.system.GPUs
}

// nvlsBandwidth is that of NVLS and NVLSTree. An all-reduce does two operations at a time.
func (t *tuner) nvlsBandwidth(o Operation, a Algorithm) float64 {
	n, perNode := float64(t.nvls.n), t.group.perNode()
	channel := t.nvls.intra * nvlsEfficiency[t.system.GPU] * (n - 1) / n
	if o == AllReduce {
		channel *= 2
	} else {
		channel *= (perNode - 1) / perNode
	}
	inter := t.nvls.inter
	if a == NVLSTree {
		if t.group.Nodes == 2 {
			inter *= 2
		}
		channel = min(channel, nvlsTreeMax[t.system.GPU].limit(t.group.Nodes))
	}
	return n * min(channel, inter)
}

// llMax limits all channels of LL.
func (t *tuner) llMax() float64 {
	row := t.system.GPU
	if t.group.Nodes > 1 {
		row = Volta
		if t.system.CPU == AMD {
			row = Ampere
		}
	}
	return llMax[row].limit(t.group.Nodes)
}

// share returns the algorithm's bandwidth, bytes over time, for a bandwidth of all channels of 1.
func (t *tuner) share(o Operation, a Algorithm) float64 {
	switch {
	case a != Ring && o != AllReduce:
		return 1
	case a == Tree:
		return 0.5
	}
	return float64(t.group.Ranks) / float64(t.steps(o))
}

// steps returns the number of steps that data make in a ring of all ranks: 2(n-1) of an all-reduce, n-1 where each rank
// has a part, and n in a chain.
func (t *tuner) steps(o Operation) int {
	switch o {
	case AllReduce:
		return 2 * (t.group.Ranks - 1)
	case AllGather, ReduceScatter:
		return t.group.Ranks - 1
	}
	return t.group.Ranks
}

// latency returns the latency in us.
func (t *tuner) latency(o Operation, a Algorithm, p Protocol) float64 {
	ranks, nodes := t.group.Ranks, t.group.Nodes
	base, inside, between := baseLatencies[a][p], hopLatencies[t.inside][a][p], t.between(a, p)
	levels := float64(bits.Len(uint(nodes)) - 1) // of a tree of nodes
	switch a {
	case Ring:
		return base + t.ringLatency(o, p, inside, between)
	case Tree: // a chain in each node, and a tree of nodes, up and down
		return base + 2*(float64(ranks/nodes-1)*inside+levels*between)
	case NVLSTree:
		return base + inside + 2*levels*between
	case PAT:
		return base + levels*between/3.5 + 2.8*float64(ranks)
	}
	return inside
}

// between returns the latency of a step between nodes in us. With one rank a node NCCL takes that of trees.
func (t *tuner) between(a Algorithm, p Protocol) float64 {
	if t.group.Ranks == t.group.Nodes {
		a = Tree
	}
	nic := float64(t.system.NICLatencyPs) / 1e6
	if p == Simple { // a flush besides
		nic *= 2
	}
	return hopLatencies[overNet][a][p] + nic
}

// ringLatency returns the latency of the steps of a ring in us.
func (t *tuner) ringLatency(o Operation, p Protocol, inside, between float64) float64 {
	nodes := t.group.Nodes
	if o == Broadcast || o == Reduce {
		return t.chainLatency(p)
	}
	steps, over := t.steps(o), 0
	if nodes > 1 {
		over = nodes - 1
		if o == AllReduce {
			over *= 2
		}
		inside = max(inside, t.posting(p))
	}
	return float64(steps-over)*inside + float64(over)*between
}

// chainLatency returns the latency of a broadcast or reduction in us. Where all rings have the same order of ranks NCCL
// takes one step, else all of them. A step is a ring's, also with one rank a node, without the plugin's latency.
func (t *tuner) chainLatency(p Protocol) float64 {
	hop, a, steps := t.inside, Ring, 1
	if t.group.Nodes > 1 {
		hop = overNet
	}
	if !t.sameOrder {
		steps = t.steps(Broadcast)
		if p == Simple {
			a = Tree
		}
	}
	return float64(steps) * hopLatencies[hop][a][p]
}

// posting returns how long the CPU is busy with a message to another node, in us (getNetOverhead).
func (t *tuner) posting(p Protocol) float64 {
	us := 1.0
	if t.system.CPU == AMD {
		us = 2
	}
	if p == Simple {
		us *= 3
	}
	return us
}

// llBytes is the size of a message up to which sends and receives use LL (enqueue.cc: NCCL_P2P_LL_THRESHOLD).
const llBytes = 16384

// sendRecv estimates an operation in which a rank sends its bytes to all ranks, or receives them from all, in equal
// parts. NCCL has no estimate of these; this is commq's, of NCCL's figures: the latency of a ring's step, a post for
// each message to another node, and the bytes of the busier of the GPU's link and its share of the NICs.
func (s *System) sendRecv(g Group, bytes int64) Estimate {
	t := newTuner(s, g)
	l := newLayout(s, g)
	p := Simple
	if bytes/int64(g.Ranks) <= llBytes {
		p = LL
	}
	ranks, perNode := float64(g.Ranks), g.perNode()
	step, rate := hopLatencies[t.inside][Ring][p], math.Inf(1)
	if perNode > 1 {
		rate = l.link * ranks / (perNode - 1)
	}
	if g.Nodes > 1 {
		step = t.between(Ring, p) + (ranks-perNode)*t.posting(p)
		rate = min(rate, l.nic*float64(l.nics)/perNode*ranks/(ranks-perNode))
	}
	if p == LL {
		rate /= 2
	}
	us := baseLatencies[Ring][p] + step
	return Estimate{SendRecv, p, int64(math.Round(us * 1e6)), max(int64(math.Round(rate*1e9)), 1)}
}
