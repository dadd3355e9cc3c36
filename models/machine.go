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
	// CPUsPerNode is at least 1. Where ranks are more than CPUs, those of a node share its CPUs equally.
	CPUsPerNode int
	// Mapping says which node a rank is on.
	Mapping Mapping
	// CPURatio is how many times faster its CPUs are than those that the program ran on; compute times are divided by it.
	CPURatio float64
	// Network is between nodes, IntraNode between the CPUs of one.
	Network, IntraNode Interconnect
	// EagerThresholdBytes is the longest payload that is sent without waiting for its receiver; NoThreshold: all are.
	EagerThresholdBytes int64
	// Collectives has every collective operation, by its blocking form.
	Collectives map[schema.CallID]Phases
}

// NoThreshold is the EagerThresholdBytes of a machine on which no send waits for its receiver.
const NoThreshold = math.MaxInt64

// Interconnect is what messages go through.
type Interconnect struct {
	Latency Picoseconds
	// BytesPerSecond is at least 1; 0 means infinitely fast.
	BytesPerSecond int64
	// Buses is how many messages can be under way at a time, InputLinks and OutputLinks how many of them into and out of
	// a node (inside one: a rank). 0 means any number.
	Buses, InputLinks, OutputLinks int
	// HalfDuplex says that a link carries one message at a time, in or out.
	HalfDuplex bool
}

// Mapping is how ranks are laid out over nodes.
type Mapping uint8

// The mappings: Block fills one node after the other, RoundRobin deals ranks out to the nodes in turn.
const (
	Block Mapping = iota
	RoundRobin
)

// CPUs is how many CPUs the machine has; 0 means as many as the ranks need.
func (m *Machine) CPUs() int { return m.Nodes * m.CPUsPerNode }

// Node is the node that a rank of so many is on, and m fits them.
func (m *Machine) Node(rank, ranks int) int {
	switch {
	case m.Mapping == RoundRobin:
		return rank % m.Nodes
	case m.Nodes != 0 && ranks > m.CPUs():
		return rank / (ranks / m.Nodes)
	}
	return rank / m.CPUsPerNode
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
	return i.Latency.plus(transfer(bytes, i.BytesPerSecond))
}

func (s *stateless) Collective(operation schema.CallID, ranks int, sizes *Sizes) Picoseconds {
	if operation < 0 || int(operation) >= len(s.rows) {
		operation = schema.CallBarrier
	}
	return s.Network.collective(s.rows[operation], ranks, sizes)
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

// flat is a machine with the values that the YAML may leave out.
func flat() *Machine {
	return &Machine{CPUsPerNode: 1, CPURatio: 1, EagerThresholdBytes: NoThreshold, Collectives: maps.Clone(table3)}
}
