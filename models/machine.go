// Package models says how long things take on a machine. A Machine is read from YAML; a Network says what its messages and
// collectives cost. The formulas are in docs/method/time-model.md, from Girona, Labarta and Badia, "Validation of Dimemas
// communication model for MPI collective operations" (equations 1 to 4).
package models

import (
	"fmt"
	"maps"
	"math"

	"github.com/commq/commq/schema"
)

// Machine is what a program runs on: nodes with CPUs, a network between them and one inside each.
type Machine struct {
	// Name is the file or the name it was read by, for messages, and Description the YAML.
	Name, Description string
	// Nodes is their number; 0 means as many as the ranks need.
	Nodes int
	// CPUsPerNode is at least 1. Where ranks are more than CPUs, those of a node share its CPUs.
	CPUsPerNode int
	// Mapping says which node a rank is on.
	Mapping Mapping
	// RanksPerNode is for the mapping PerNode, NodeOf, the node of each rank, for the mapping Listed; else 0 and nil.
	RanksPerNode int
	NodeOf       []int
	// CPURatio is how many times faster its CPUs are than those that the program ran on; compute times are divided by it.
	// 0 means infinitely fast: computing takes no time.
	CPURatio float64
	// CycleNs is the real cycle time of its CPUs in ns, of floating-point instructions that miss nothing in any cache; 0: not known. Predictions of
	// runs whose instructions were counted go by it (Panadero et al., section 4.1).
	CycleNs float64
	// Network is between nodes, IntraNode between the CPUs of one.
	Network, IntraNode Interconnect
	// Uneven are its nodes where they differ, Nodes of them. They go before CPUsPerNode, CPURatio, IntraNode and, of Network,
	// latency and links. Nil: all nodes are alike.
	Uneven []Node
	// EagerThresholdBytes is the payload from which on a send waits for its receiver; NoThreshold: none does.
	EagerThresholdBytes int64
	// EagerThresholdGiven says that the threshold was asked for, and is not just the value that is taken when nothing is said.
	EagerThresholdGiven bool
	// Collectives has every collective operation, by its blocking form.
	Collectives map[schema.CallID]Phases
	// Declared are the operations whose phases the machine's description gives itself, beside those of Table 3 of the paper.
	// Every other row of Collectives is a fallback.
	Declared map[schema.CallID]bool
}

// Node is a node of a machine whose nodes differ.
type Node struct {
	// CPUs is at least 1.
	CPUs int
	// CPURatio is as in Machine.
	CPURatio float64
	// IntraNode is inside it.
	IntraNode Interconnect
	// Latency is that of a message from this node to another. InputLinks, OutputLinks and HalfDuplex are those between it and
	// the network, as in Interconnect.
	Latency                 Picoseconds
	InputLinks, OutputLinks int
	HalfDuplex              bool
}

// NodeAt is node i of the machine, which has it.
func (m *Machine) NodeAt(i int) Node {
	if m.Uneven != nil {
		return m.Uneven[i]
	}
	n := &m.Network
	return Node{CPUs: m.CPUsPerNode, CPURatio: m.CPURatio, IntraNode: m.IntraNode, Latency: n.Latency,
		InputLinks: n.InputLinks, OutputLinks: n.OutputLinks, HalfDuplex: n.HalfDuplex}
}

// NoThreshold is the EagerThresholdBytes of a machine on which no send waits for its receiver.
const NoThreshold = math.MaxInt64

// Interconnect is what messages go through.
type Interconnect struct {
	Latency Picoseconds
	// BytesPerSecond is at least 1; 0 means infinitely fast. Where BytesPer is greater than 1, it is bytes in so many seconds:
	// not every bandwidth is a whole number of bytes/s.
	BytesPerSecond, BytesPer int64
	// Buses is how many messages can be under way at a time, InputLinks and OutputLinks how many of them into and out of
	// a node (inside one: a rank). 0 means any number.
	Buses, InputLinks, OutputLinks int
	// HalfDuplex says that a link carries one message at a time, in or out.
	HalfDuplex bool
	// Pieces are other bandwidths from some sizes on, in the order of the sizes; those that are not there are zero.
	Pieces [MostPieces]Piece
}

// MostPieces is how many pieces an interconnect can have.
const MostPieces = 3

// Piece is what the bytes of a message beyond AboveBytes, 1 or more, cost: Step once, and each byte by BytesPerSecond (0: nothing). It
// holds up to the next piece.
type Piece struct {
	AboveBytes     int64
	Step           Picoseconds
	BytesPerSecond int64
}

// Mapping is how ranks are laid out over nodes.
type Mapping uint8

// The mappings: Block fills one node after the other (ranks that are more than the CPUs are spread equally over the nodes),
// RoundRobin deals ranks out to the nodes in turn. Fill gives each CPU a rank and the last node all that are left, PerNode
// gives each node RanksPerNode, whatever its CPUs, and Listed goes by NodeOf.
const (
	Block Mapping = iota
	RoundRobin
	Fill
	PerNode
	Listed
)

// CPUs is how many CPUs the machine has; 0 means as many as the ranks need.
func (m *Machine) CPUs() int {
	if m.Uneven == nil {
		return m.Nodes * m.CPUsPerNode
	}
	cpus := 0
	for i := range m.Uneven {
		cpus += m.Uneven[i].CPUs
	}
	return cpus
}

// Node is the node that a rank of so many is on, and m fits them. For the mapping Fill on nodes that differ see Place.
func (m *Machine) Node(rank, ranks int) int {
	switch m.Mapping {
	case RoundRobin:
		return rank % m.Nodes
	case PerNode:
		return rank / m.RanksPerNode
	case Listed:
		return m.NodeOf[rank]
	case Block:
		if m.Nodes != 0 && ranks > m.CPUs() {
			return rank / (ranks / m.Nodes)
		}
	}
	if node := rank / m.CPUsPerNode; m.Nodes == 0 || node < m.Nodes {
		return node
	}
	return m.Nodes - 1
}

// Place is the node of each of so many ranks, and how many nodes there are (as many as are used where their number is
// unlimited). It is an error when the mapping names a node that the machine does not have.
func (m *Machine) Place(ranks int) (nodes int, of []int32, err error) {
	of = make([]int32, ranks)
	if m.Mapping == Listed && len(m.NodeOf) != ranks {
		return 0, nil, fmt.Errorf("machine %s: the mapping lists nodes for %d ranks, and the run has %d", m.Name, len(m.NodeOf), ranks)
	}
	if m.Mapping == Block && m.Uneven == nil {
		if err := m.Fits(ranks); err != nil {
			return 0, nil, err
		}
	}
	filled := m.Uneven != nil && (m.Mapping == Fill || m.Mapping == Block)
	last := 0
	for rank, node, on := 0, 0, 0; rank < ranks; rank++ {
		if filled {
			if on == m.Uneven[node].CPUs && node < len(m.Uneven)-1 {
				node, on = node+1, 0
			}
			on++
		} else {
			node = m.Node(rank, ranks)
		}
		if node < 0 || m.Nodes != 0 && node >= m.Nodes {
			return 0, nil, fmt.Errorf("machine %s: rank %d is to be on node %d, and there are %d nodes, from 0", m.Name, rank, node, m.Nodes)
		}
		of[rank], last = int32(node), max(last, node)
	}
	if m.Nodes != 0 {
		return m.Nodes, of, nil
	}
	return last + 1, of, nil
}

// Fits returns an error when the machine has fewer CPUs than the program has ranks and they cannot all have the same share of one.
func (m *Machine) Fits(ranks int) error {
	if m.Nodes == 0 || ranks <= m.CPUs() || ranks%m.Nodes == 0 {
		return nil
	}
	return fmt.Errorf("machine %s: nodes is %d and cpus_per_node %d, and %d ranks cannot share these CPUs equally; set nodes to %d or more, to a divisor of %d, or to unlimited",
		m.Name, m.Nodes, m.CPUsPerNode, ranks, (ranks+m.CPUsPerNode-1)/m.CPUsPerNode, ranks)
}

// Network answers how long communication takes. Its implementations can be used by several goroutines at once.
type Network interface {
	// Delay is the time from the start of a send to the arrival of the message; ranks are world ranks.
	Delay(source, destination int, bytes int64) Picoseconds
	// Collective is the time from the last rank's entry into a collective operation to when all leave it. The operation
	// is the blocking form; ranks is how many take part.
	Collective(operation schema.CallID, ranks int, sizes *Sizes) Picoseconds
}

// Stateless is the machine's network between so many ranks, for answers that do not depend on what else is under way. It is an
// error when they do not fit, and when the machine has something that messages wait for; that error names the key and the commands
// that can simulate it.
func (m *Machine) Stateless(ranks int) (Network, error) {
	for _, part := range []struct {
		key string
		of  *Interconnect
	}{{"network", &m.Network}, {"intra_node", &m.IntraNode}} {
		for _, limit := range []struct {
			key string
			n   int
		}{{"buses", part.of.Buses}, {"input_links", part.of.InputLinks}, {"output_links", part.of.OutputLinks}} {
			if limit.n != 0 {
				return nil, m.stateful(fmt.Sprintf("%s.%s is %d", part.key, limit.key, limit.n))
			}
		}
	}
	if m.EagerThresholdBytes != NoThreshold {
		return nil, m.stateful(fmt.Sprintf("eager_threshold_bytes is %d", m.EagerThresholdBytes))
	}
	if m.Uneven != nil {
		return nil, m.stateful("its nodes differ")
	}
	if err := m.Fits(ranks); err != nil {
		return nil, err
	}
	return &stateless{m, ranks, collectiveRows(m.Collectives)}, nil
}

func (m *Machine) stateful(what string) error {
	return fmt.Errorf("machine %s: %s: a simulator rank hears of messages in another order than that of virtual time, so they cannot wait for each other there; "+
		"set it to unlimited, or capture the program without a machine (commq capture) and simulate the run on this one (commq simulate)", m.Name, what)
}

// stateless is a machine without queues.
type stateless struct {
	*Machine
	ranks int
	rows  []Phases // by call id
}

// Delay is L + S/B (equation 1), with the values inside a node where both ranks are on one.
func (s *stateless) Delay(source, destination int, bytes int64) Picoseconds {
	i := &s.Network
	if s.Node(source, s.ranks) == s.Node(destination, s.ranks) {
		i = &s.IntraNode
	}
	return i.Latency.plus(i.Transfer(bytes))
}

func (s *stateless) Collective(operation schema.CallID, ranks int, sizes *Sizes) Picoseconds {
	if operation < 0 || int(operation) >= len(s.rows) {
		operation = schema.CallBarrier
	}
	return s.Network.Collective(s.rows[operation], ranks, sizes)
}

// collectiveRows is the table by call id; all calls that are no collective operation have the barrier's row.
func collectiveRows(table map[schema.CallID]Phases) []Phases {
	rows := make([]Phases, len(schema.Calls))
	for i := range rows {
		rows[i] = table[schema.CallBarrier]
	}
	for id, p := range table {
		rows[id] = p
	}
	return rows
}

// New is a machine of nodes with one CPU, a network that costs nothing, and Table 3. The name is for messages.
func New(name string) *Machine {
	m := flat()
	m.Name = name
	return m
}

// flat is a machine with the values that the YAML may leave out.
func flat() *Machine {
	return &Machine{CPUsPerNode: 1, CPURatio: 1, EagerThresholdBytes: NoThreshold, Collectives: maps.Clone(table3)}
}
