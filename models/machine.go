package models

import (
	"fmt"
	"maps"
	"math"

	"github.com/commq/commq/schema"
)

// Machine is a parallel computer: nodes with CPUs, a network between them and one inside each.
type Machine struct {
	// Name is the file or the name it was read from, for messages, and Description its text.
	Name, Description string
	// Nodes is the number of nodes; 0 means as many as the ranks need.
	Nodes int
	// CPUsPerNode is at least 1. If there are more ranks than CPUs, the ranks of a node share its CPUs.
	CPUsPerNode int
	// Mapping is the rule that assigns ranks to nodes.
	Mapping Mapping
	// RanksPerNode belongs to the mapping PerNode, and NodeOf, the node of each rank, to the mapping Listed. They are 0
	// and nil with other mappings.
	RanksPerNode int
	NodeOf       []int
	// CPURatio is the speed of its CPUs relative to those that the program ran on: compute times are divided by it. 0
	// means infinitely fast: computing takes no time.
	CPURatio float64
	// CycleNs is the real cycle time of its CPUs in ns, for floating-point instructions without cache misses; 0 means
	// not known. Predictions of runs whose instructions were counted use it (Panadero et al., section 4.1).
	CycleNs float64
	// Network is between nodes, and IntraNode between the CPUs of a node.
	Network, IntraNode Interconnect
	// Uneven has each of its nodes if they differ. It overrides CPUsPerNode, CPURatio, IntraNode, and latency and links
	// of Network. nil means that all nodes are equal.
	Uneven []Node
	// EagerThresholdBytes is the payload from which a send waits for its receiver; NoThreshold means never.
	EagerThresholdBytes int64
	// EagerThresholdGiven is true when the threshold was set explicitly, false when it is the default.
	EagerThresholdGiven bool
	// Collectives has the phases of every collective operation, by its blocking form.
	Collectives map[schema.CallID]Phases
	// Declared are the operations whose phases come from the machine's description. Other operations have those of
	// Table 3 of the paper, or else a fallback.
	Declared map[schema.CallID]bool
	// NCCL has the operations that NCCL does on the machine. They do not have their phases in Collectives.
	NCCL NCCL
}

// Node is a node of a machine whose nodes differ.
type Node struct {
	// CPUs is at least 1.
	CPUs int
	// CPURatio is as in Machine.
	CPURatio float64
	// IntraNode is the network inside it.
	IntraNode Interconnect
	// Latency is that of a message from this node to another. InputLinks, OutputLinks and HalfDuplex describe its links
	// to the network, as in Interconnect.
	Latency                 Picoseconds
	InputLinks, OutputLinks int
	HalfDuplex              bool
}

// NodeAt returns node i of the machine, which must exist.
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

// Interconnect is a network between nodes or inside a node.
type Interconnect struct {
	// Latency is the time of a message without bytes.
	Latency Picoseconds
	// BytesPerSecond is the bandwidth; 0 means infinitely fast. If BytesPer is above 1, the bandwidth is BytesPerSecond
	// bytes in BytesPer seconds, as not every bandwidth is a whole number of bytes/s.
	BytesPerSecond, BytesPer int64
	// Buses is the number of messages that can be under way at a time; InputLinks and OutputLinks are the numbers of
	// those into and out of a node (inside a node: a rank). 0 means any number.
	Buses, InputLinks, OutputLinks int
	// HalfDuplex means that a link carries one message at a time, in or out.
	HalfDuplex bool
	// Pieces are other bandwidths above some sizes, in ascending order; unused ones are zero.
	Pieces [MostPieces]Piece
}

// MostPieces is the largest number of pieces of an interconnect.
const MostPieces = 3

// Piece is the cost of the bytes of a message beyond AboveBytes (at least 1): Step is added once, and each byte takes
// its time at BytesPerSecond (0 means infinitely fast). It applies up to the next piece.
type Piece struct {
	AboveBytes     int64
	Step           Picoseconds
	BytesPerSecond int64
}

// Mapping is the rule by which ranks are placed on nodes.
type Mapping uint8

// The mappings: Block fills one node after the other (if there are more ranks than CPUs, all nodes get the same
// number), and RoundRobin deals ranks out to the nodes in turn. Fill gives each CPU a rank and the last node all
// further ones, PerNode gives each node RanksPerNode, and Listed is given by NodeOf.
const (
	Block Mapping = iota
	RoundRobin
	Fill
	PerNode
	Listed
)

// CPUs returns the number of CPUs of the machine; 0 means as many as the ranks need.
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

// Node returns the node of a rank of a program with this number of ranks, which must fit. With the mapping Fill on
// nodes that differ, use Place.
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

// Place returns the number of nodes (the number in use when it is unlimited) and the node of each rank of a program.
// It is an error when the mapping names a node that the machine does not have.
func (m *Machine) Place(ranks int) (nodes int, of []int32, err error) {
	of = make([]int32, ranks)
	if m.Mapping == Listed && len(m.NodeOf) != ranks {
		return 0, nil, fmt.Errorf("machine %s: the mapping lists nodes for %d ranks, and the run has %d", m.Name,
			len(m.NodeOf), ranks)
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
			return 0, nil, fmt.Errorf("machine %s: the mapping puts rank %d on node %d, and the nodes are 0 to %d",
				m.Name, rank, node, m.Nodes-1)
		}
		of[rank], last = int32(node), max(last, node)
	}
	if m.Nodes != 0 {
		return m.Nodes, of, nil
	}
	return last + 1, of, nil
}

// Fits returns an error when the program has more ranks than the machine has CPUs, and they cannot all get the same
// share of a CPU.
func (m *Machine) Fits(ranks int) error {
	if m.Nodes == 0 || ranks <= m.CPUs() || ranks%m.Nodes == 0 {
		return nil
	}
	return fmt.Errorf("machine %s: nodes is %d and cpus_per_node %d, and %d ranks cannot share these CPUs equally; "+
		"set nodes to %d or more, to a divisor of %d, or to unlimited", m.Name, m.Nodes, m.CPUsPerNode, ranks,
		(ranks+m.CPUsPerNode-1)/m.CPUsPerNode, ranks)
}

// Network computes how long communication takes. Implementations are safe for concurrent use.
type Network interface {
	// Delay returns the time from the start of a send to the arrival of the message. The ranks are world ranks.
	Delay(source, destination int, bytes int64) Picoseconds
	// Collective returns the time from the entry of the last rank into a collective operation to the exit of all. The
	// operation is the blocking form, and ranks the number of those that take part.
	Collective(operation schema.CallID, ranks int, sizes *Sizes) Picoseconds
}

// Stateless returns the machine's network for a program with this number of ranks. Its times do not depend on other
// messages. It is an error when the ranks do not fit, or when messages can wait for each other on this machine; that
// error names the key and the commands that can simulate it.
func (m *Machine) Stateless(ranks int) (Network, error) {
	for _, part := range []struct {
		key  string
		link *Interconnect
	}{{"network", &m.Network}, {"intra_node", &m.IntraNode}} {
		for _, limit := range []struct {
			key string
			n   int
		}{{"buses", part.link.Buses}, {"input_links", part.link.InputLinks}, {"output_links", part.link.OutputLinks}} {
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
	if len(m.NCCL.Algorithms) > 0 {
		return nil, fmt.Errorf("machine %s: NCCL does its collectives: their times depend on the nodes of the ranks, which "+
			"a simulator rank does not know of the others; capture the program without a machine (commq capture) and "+
			"simulate the run on this one (commq simulate)", m.Name)
	}
	if err := m.Fits(ranks); err != nil {
		return nil, err
	}
	return &stateless{m, ranks, collectiveRows(m.Collectives)}, nil
}

// stateful returns the error of a machine on which messages can wait for each other, because of setting.
func (m *Machine) stateful(setting string) error {
	return fmt.Errorf("machine %s: %s: a simulator rank learns of messages in another order than that of virtual "+
		"time, so they cannot wait for each other there; "+
		"set it to unlimited, or capture the program without a machine (commq capture) and simulate the run on this "+
		"one (commq simulate)", m.Name, setting)
}

// stateless is a Network on which nothing waits.
type stateless struct {
	*Machine
	ranks int
	rows  []Phases // by call id
}

// Delay returns L + S/B (equation 1), with the values of the node for ranks on one node.
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

// collectiveRows returns the table by call id; calls that are no collective operation have the barrier's row.
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

// New returns a machine of nodes with one CPU, a network that costs nothing, and the collectives of Table 3. The name
// is for messages.
func New(name string) *Machine {
	m := flat()
	m.Name = name
	return m
}

// flat returns a machine with the default values of the YAML.
func flat() *Machine {
	return &Machine{CPUsPerNode: 1, CPURatio: 1, EagerThresholdBytes: NoThreshold, Collectives: maps.Clone(table3)}
}
