package models

import "math"

// NodeShare is the number of ranks of a communicator on a node.
type NodeShare struct {
	Node, Ranks int
}

// DimemasCollective returns how long a collective takes by the rules of Dimemas 5.5.0, once all ranks have entered
// and the buses are free: fan-in and fan-out between the nodes, then those inside the node where they take longest.
// The bytes are those of the root's call, or of the rank that entered last. Between nodes P is their number, LIN
// means P - 1, and the latency is that of the root's node; a machine of one node has no such phase. Sizes are 32 bits
// wide and wrap around.
func (m *Machine) DimemasCollective(p Phases, sent, received int64, rootNode, machineNodes int,
	shares []NodeShare) Picoseconds {
	var total, largest int64
	if machineNodes > 1 {
		between := m.Network
		between.Latency = m.NodeAt(rootNode).Latency
		total, largest = between.dimemas(p, len(shares), between.Buses, sent, received)
	}
	var inside, insideLargest int64
	last := NodeShare{}
	for k, s := range shares {
		if k > 0 && m.Uneven == nil && s.Ranks == last.Ranks {
			continue // it takes as long as the node before
		}
		last = s
		node := m.NodeAt(s.Node)
		if t, weight := node.IntraNode.dimemas(p, s.Ranks, 0, sent, received); weight > insideLargest {
			inside, insideLargest = t, weight
		}
	}
	if largest+insideLargest <= 0 { // sizes that wrapped around take no time
		return 0
	}
	return Picoseconds(min(max(total+inside, 0), int64(Forever)))
}

// dimemas returns the time of fan-in and fan-out on an interconnect, and the weight by which Dimemas compares nodes, in
// which latencies count twice.
func (i *Interconnect) dimemas(p Phases, ranks, buses int, sent, received int64) (t, weight int64) {
	with := *i
	with.Buses = buses
	for _, phase := range [...]struct {
		model Factor
		size  int64
	}{{p.FanIn, p.SizeIn.dimemas(sent, received, sent)}, {p.FanOut, p.SizeOut.dimemas(sent, received, received)}} {
		factor := with.factor(phase.model, ranks)
		if phase.model == LIN {
			factor--
		}
		latency := int64(i.Latency) * factor
		moved := int64(i.Transfer(max(phase.size, -phase.size) * factor))
		if i.Pieces[0].AboveBytes != 0 { // Dimemas does not have pieces
			moved = int64(i.Transfer(max(phase.size, -phase.size))) * factor
		}
		if phase.size < 0 {
			moved = -moved
		}
		t += latency + moved
		weight += 2*latency + moved
	}
	return t, weight
}

// dimemas returns a size in bytes as a C int; current is the size for CURRENT.
func (s Size) dimemas(sent, received, current int64) int64 {
	a, b := int32(min(sent, math.MaxInt32)), int32(min(received, math.MaxInt32))
	switch s {
	case MIN:
		return int64(min(a, b))
	case MEAN:
		return int64((a + b) / 2)
	case TwoMAX:
		return int64(2 * max(a, b))
	case SumSR:
		return int64(a + b)
	case CURRENT:
		return int64(int32(min(current, math.MaxInt32)))
	}
	return int64(max(a, b))
}
