package nccl

import (
	"math"
	"slices"
)

// GPU is a generation of GPUs; NCCL has constants for each.
type GPU uint8

// The generations: V100, A100, H100 and H200, B200.
const (
	Volta GPU = iota
	Ampere
	Hopper
	Blackwell
)

// CPU is who made the CPUs of a node.
type CPU uint8

// The makers.
const (
	Intel CPU = iota
	AMD
)

// Link is the connection between the GPUs of a node.
type Link uint8

// The links.
const (
	NVLink Link = iota
	PCI
)

// System is a machine as NCCL sees it.
type System struct {
	GPU    GPU
	CPU    CPU
	Inside Link
	// NVLS means that the NVLink switches reduce and copy data (NVLink SHARP), which takes Hopper or later.
	NVLS bool
	// GPUs and NICs are the numbers of each in a node, at least 1.
	GPUs, NICs int
	// LinkBytesPerSecond is the bandwidth of a GPU inside its node, in one direction; NICBytesPerSecond is that of a
	// NIC.
	LinkBytesPerSecond, NICBytesPerSecond int64
	// NICLatencyPs is the latency that the network plugin reports, in picoseconds. It adds to what NCCL assumes.
	NICLatencyPs int64
}

// Group is a communicator: its number of ranks, each with a GPU, and the number of nodes that they are on.
type Group struct{ Ranks, Nodes int }

// perNode returns the mean number of ranks on a node.
func (g Group) perNode() float64 { return float64(g.Ranks) / float64(g.Nodes) }

// Operation is a collective operation.
type Operation uint8

// The operations. NCCL has no algorithm for the last three: they are sends and receives in one group.
const (
	AllReduce Operation = iota
	AllGather
	ReduceScatter
	Broadcast
	Reduce
	AllToAll
	Gather
	Scatter
)

// Algorithm is an algorithm of NCCL.
type Algorithm uint8

// The algorithms. Any, for a choice, means the fastest. NVLS is for one node, and NVLSTree, which connects the nodes by
// a tree, for several. PAT (parallel aggregated trees) is for one rank a node. SendRecv are grouped sends and receives.
const (
	Any Algorithm = iota
	Ring
	Tree
	NVLS
	PAT
	NVLSTree
	SendRecv
	// Algorithms is the number of algorithms.
	Algorithms = iota
)

var algorithmNames = [...]string{"any", "ring", "tree", "NVLS", "PAT", "NVLS tree", "sends and receives"}

// String returns the name of the algorithm as text for people has it.
func (a Algorithm) String() string { return algorithmNames[a] }

// Protocol is how a rank sends data, with flags that tell the receiver that it has arrived. LL sends 4 bytes of data
// with 4 of flags, LL128 120 bytes with 8, and Simple chunks with a flag each.
type Protocol uint8

// The protocols.
const (
	LL Protocol = iota
	LL128
	Simple
	// Protocols is the number of protocols.
	Protocols = iota
)

var protocolNames = [...]string{"LL", "LL128", "Simple"}

// String returns NCCL's name of the protocol.
func (p Protocol) String() string { return protocolNames[p] }

// offered are the algorithms that NCCL has for each operation, in its order (ncclTopoTuneModel).
var offered = [...][]Algorithm{
	AllReduce:     {Tree, Ring, NVLS, NVLSTree},
	AllGather:     {Ring, NVLS, PAT},
	ReduceScatter: {Ring, NVLS, PAT},
	Broadcast:     {Ring},
	Reduce:        {Ring},
	AllToAll:      {SendRecv},
	Gather:        {SendRecv},
	Scatter:       {SendRecv},
}

// Offers reports whether NCCL has an algorithm for an operation. It has any for all of them.
func (o Operation) Offers(a Algorithm) bool { return a == Any || slices.Contains(offered[o], a) }

// Estimate is the time of an operation: LatencyPs picoseconds, and in addition its bytes, as counted by
// System.Estimate, at BytesPerSecond. Algorithm is Any if NCCL has nothing to send.
type Estimate struct {
	Algorithm      Algorithm
	Protocol       Protocol
	LatencyPs      int64
	BytesPerSecond int64
}

// us returns the whole time in microseconds for a number of bytes.
func (e Estimate) us(bytes int64) float64 {
	return float64(e.LatencyPs)/1e6 + float64(bytes)*1e6/float64(e.BytesPerSecond)
}

// Estimate returns the time of an operation with this number of bytes by an algorithm, with the fastest protocol. Bytes
// are what nccl-tests print as size: the buffer of an all-reduce, broadcast or reduce, else the parts of all ranks
// together (of an all-to-all, what a rank sends). NVLS stands for NVLSTree too. Where NCCL does not have the algorithm
// for the operation or the group, the fastest one that it has is taken, as for Any. In a group of one rank, and without
// bytes, NCCL sends nothing: this takes no time and has the algorithm Any.
func (s *System) Estimate(o Operation, g Group, bytes int64, a Algorithm) Estimate {
	if g.Ranks <= 1 || bytes == 0 {
		return Estimate{BytesPerSecond: math.MaxInt64}
	}
	if offered[o][0] == SendRecv {
		return s.sendRecv(g, bytes)
	}
	t := newTuner(s, g)
	best, found := Estimate{}, false
	for _, wanted := range [...]Algorithm{a, Any} {
		for _, candidate := range offered[o] {
			if wanted != Any && candidate != wanted && (wanted != NVLS || candidate != NVLSTree) {
				continue
			}
			for p := range Protocol(Protocols) {
				e, ok := t.estimate(o, candidate, p, bytes)
				if ok && (!found || e.us(bytes) < best.us(bytes)) {
					best, found = e, true
				}
			}
		}
		if found {
			break
		}
	}
	return best
}
