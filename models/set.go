package models

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/commq/commq/internal/keyed"
)

// Set changes one key of the machine, as its YAML has it: nodes, cpus_per_node, cpu_ratio, eager_threshold_bytes, and those of
// network and intra_node (network.latency_ns; without a prefix a key is the network's). On a machine whose nodes differ it is
// changed on all of them. An error says the key, what was found and what it should be. See Consistent.
func (m *Machine) Set(name, value string) error {
	part, rest, dotted := strings.Cut(name, ".")
	keys := m.scalars()
	var link *Interconnect
	switch {
	case !dotted:
		if !slices.ContainsFunc(keys, func(k keyed.Key) bool { return k.Name == name }) {
			link = &m.Network
		}
	case part == "network":
		link = &m.Network
	case part == "intra_node":
		link = &m.IntraNode
	}
	if link != nil {
		keys = link.keys()
		if dotted {
			name = rest
		}
	}
	k := slices.IndexFunc(keys, func(k keyed.Key) bool { return k.Name == name })
	if k < 0 {
		return fmt.Errorf("%q is no key of a machine; there are %s, and for network and intra_node (network.latency_ns) %s", name, keyed.Names(m.scalars()), keyed.Names(m.Network.keys()))
	}
	if err := keys[k].Set(&yaml.Node{Kind: yaml.ScalarNode, Value: value}, name); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "0: "))
	}
	if link != nil && name == "bandwidth_bytes_per_s" {
		link.BytesPer, link.Pieces = 0, [MostPieces]Piece{} // one for all sizes
	}
	return m.everywhere(name, link)
}

// everywhere gives nodes that differ what was set for all.
func (m *Machine) everywhere(name string, link *Interconnect) error {
	if m.Uneven == nil {
		return nil
	}
	if name == "nodes" || name == "cpus_per_node" {
		return fmt.Errorf("%s: the machine's nodes differ; change their number and CPUs in its file", name)
	}
	own := Node{CPURatio: m.CPURatio, IntraNode: m.IntraNode, Latency: m.Network.Latency, InputLinks: m.Network.InputLinks,
		OutputLinks: m.Network.OutputLinks, HalfDuplex: m.Network.HalfDuplex}
	m.Uneven = slices.Clone(m.Uneven)
	for i := range m.Uneven {
		n := &m.Uneven[i]
		switch {
		case link == &m.IntraNode:
			n.IntraNode = own.IntraNode
		case name == "cpu_ratio":
			n.CPURatio = own.CPURatio
		case name == "latency_ns":
			n.Latency = own.Latency
		case name == "input_links":
			n.InputLinks = own.InputLinks
		case name == "output_links":
			n.OutputLinks = own.OutputLinks
		case name == "half_duplex":
			n.HalfDuplex = own.HalfDuplex
		}
	}
	return nil
}

// Consistent returns an error when keys that were set one by one do not go together.
func (m *Machine) Consistent() error {
	for _, part := range []struct {
		name string
		of   *Interconnect
	}{{"network", &m.Network}, {"intra_node", &m.IntraNode}} {
		if i := part.of; i.HalfDuplex && i.InputLinks != i.OutputLinks {
			return fmt.Errorf("%s.half_duplex is true: a link then carries messages in or out, so that input_links (%d) and output_links (%d) must be the same number", part.name, i.InputLinks, i.OutputLinks)
		}
	}
	return nil
}

// Ideal is the machine with a network that costs nothing and that nobody waits for: what is left is computing, and waiting for
// those who compute.
func (m *Machine) Ideal() *Machine {
	free := *m
	free.Network, free.IntraNode = Interconnect{}, Interconnect{}
	free.Uneven = slices.Clone(m.Uneven)
	for i := range free.Uneven {
		free.Uneven[i] = Node{CPUs: free.Uneven[i].CPUs, CPURatio: free.Uneven[i].CPURatio}
	}
	return &free
}
