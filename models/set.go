package models

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/commq/commq/internal/keyed"
	"github.com/commq/commq/internal/nearest"
)

// Set changes one key of the machine, named as in its YAML: nodes, cpus_per_node, cpu_ratio, eager_threshold_bytes,
// those of network and intra_node (network.latency_ns; without a prefix a key is the network's) and of nccl, and
// NCCL's algorithm for an operation or all (collectives.all). If the nodes differ, it changes all of them. A bandwidth
// is for messages of all sizes: it removes pieces. An error names the key, the value and the allowed values. Call
// Consistent after the last Set.
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
	case part == "collectives":
		return m.NCCL.setAlgorithm(rest, value)
	case part == "nccl":
		return m.NCCL.setKey(rest, value)
	}
	if link != nil {
		keys = link.keys()
		if dotted {
			name = rest
		}
	}
	k := slices.IndexFunc(keys, func(k keyed.Key) bool { return k.Name == name })
	if k < 0 {
		if !dotted {
			keys = append(keys, m.scalars()...)
		}
		return unknownKey(name, keys, m)
	}
	if err := setKey(keys[k], name, value, link); err != nil {
		return err
	}
	if link == &m.IntraNode {
		nodes, err := setInside(m.Uneven, k, name, value)
		if err == nil {
			m.Uneven = nodes
		}
		return err
	}
	return m.setNodes(name)
}

// setKey sets a key of a machine, which belongs to link if that is not nil.
func setKey(k keyed.Key, name, value string, link *Interconnect) error {
	if err := k.Set(&yaml.Node{Kind: yaml.ScalarNode, Value: value}, name); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "0: "))
	}
	if link != nil && name == "bandwidth_bytes_per_s" {
		link.BytesPer, link.Pieces = 0, [MostPieces]Piece{} // one bandwidth for all sizes
	}
	return nil
}

// IdleChanges returns those of changes (KEY or KEY=VALUE of Set) that change no message of programs on so many ranks:
// those of the network between nodes, if each program is on one node of each machine.
func IdleChanges(changes []string, ranks []int32, machines ...*Machine) (idle []string) {
	for _, change := range changes {
		if key, _, _ := strings.Cut(change, "="); isBetweenNodes(key) {
			idle = append(idle, change)
		}
	}
	for _, m := range machines {
		if len(idle) > 0 && slices.ContainsFunc(ranks, func(n int32) bool { return !onOneNode(m, int(n)) }) {
			return nil
		}
	}
	return idle
}

// onOneNode reports whether all ranks of a program are on one node. It is false for a program that does not fit.
func onOneNode(m *Machine, ranks int) bool {
	_, of, err := m.Place(ranks)
	return err == nil && !slices.ContainsFunc(of, func(node int32) bool { return node != of[0] })
}

// isBetweenNodes reports whether a key of Set is one of the network between nodes, and not of a node or the machine.
func isBetweenNodes(key string) bool {
	part, rest, dotted := strings.Cut(key, ".")
	if !dotted {
		part, rest = "network", key
	}
	return part == "network" && slices.ContainsFunc((&Interconnect{}).keys(),
		func(k keyed.Key) bool { return k.Name == rest })
}

// LosesPieces reports whether setting a key of a machine removes pieces, which are bandwidths by size.
func LosesPieces(m *Machine, key string) bool {
	switch key {
	case "bandwidth_bytes_per_s", "network.bandwidth_bytes_per_s":
		return m.Network.Pieces[0].AboveBytes > 0
	case "intra_node.bandwidth_bytes_per_s":
		return m.IntraNode.Pieces[0].AboveBytes > 0 ||
			slices.ContainsFunc(m.Uneven, func(n Node) bool { return n.IntraNode.Pieces[0].AboveBytes > 0 })
	}
	return false
}

// setInside returns nodes with the k-th key of intra_node set in all. Their other keys stay.
func setInside(nodes []Node, k int, name, value string) ([]Node, error) {
	nodes = slices.Clone(nodes)
	for i := range nodes {
		link := &nodes[i].IntraNode
		if err := setKey(link.keys()[k], name, value, link); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// setNodes copies a key that was set, which is none of intra_node, to all nodes of a machine whose nodes differ.
func (m *Machine) setNodes(name string) error {
	if m.Uneven == nil {
		return nil
	}
	if name == "nodes" || name == "cpus_per_node" {
		return fmt.Errorf("%s: the nodes of the machine differ; change their number and CPUs in its file", name)
	}
	all := Node{CPURatio: m.CPURatio, Latency: m.Network.Latency, InputLinks: m.Network.InputLinks,
		OutputLinks: m.Network.OutputLinks, HalfDuplex: m.Network.HalfDuplex}
	m.Uneven = slices.Clone(m.Uneven)
	for i := range m.Uneven {
		n := &m.Uneven[i]
		switch name {
		case "cpu_ratio":
			n.CPURatio = all.CPURatio
		case "latency_ns":
			n.Latency = all.Latency
		case "input_links":
			n.InputLinks = all.InputLinks
		case "output_links":
			n.OutputLinks = all.OutputLinks
		case "half_duplex":
			n.HalfDuplex = all.HalfDuplex
		}
	}
	return nil
}

// Consistent returns an error when keys contradict each other after Set.
func (m *Machine) Consistent() error {
	type part struct {
		name string
		link *Interconnect
	}
	parts := []part{{"network", &m.Network}, {"intra_node", &m.IntraNode}}
	for i := range m.Uneven {
		parts = append(parts, part{"intra_node", &m.Uneven[i].IntraNode})
	}
	for _, part := range parts {
		if i := part.link; i.HalfDuplex && i.InputLinks != i.OutputLinks {
			return fmt.Errorf("%s.half_duplex is true: a link then carries messages in or out, so that input_links "+
				"(%d) and output_links (%d) must be the same number", part.name, i.InputLinks, i.OutputLinks)
		}
	}
	_, err := m.NCCL.consistent()
	return err
}

// Ideal returns the machine with a network without costs and waiting: what remains is computing, and waiting for
// ranks that compute.
func (m *Machine) Ideal() *Machine {
	free := *m
	free.Network, free.IntraNode, free.NCCL.Free = Interconnect{}, Interconnect{}, true
	free.Uneven = slices.Clone(m.Uneven)
	for i := range free.Uneven {
		free.Uneven[i] = Node{CPUs: free.Uneven[i].CPUs, CPURatio: free.Uneven[i].CPURatio}
	}
	return &free
}

// WithoutLatency returns the machine with the latencies of all its interconnects removed.
func (m *Machine) WithoutLatency() *Machine {
	free := *m
	free.Network.Latency, free.IntraNode.Latency, free.NCCL.WithoutLatency = 0, 0, true
	free.Uneven = slices.Clone(m.Uneven)
	for i := range free.Uneven {
		free.Uneven[i].Latency, free.Uneven[i].IntraNode.Latency = 0, 0
	}
	return &free
}

// SetKeys lists the keys that Set accepts.
func SetKeys() (names []string) {
	m := &Machine{}
	for _, k := range m.scalars() {
		names = append(names, k.Name)
	}
	for _, prefix := range []string{"", "network.", "intra_node."} {
		for _, k := range m.Network.keys() {
			names = append(names, prefix+k.Name)
		}
	}
	for _, k := range m.NCCL.keys() {
		names = append(names, "nccl."+k.Name)
	}
	return append(names, "collectives.all")
}

// unknownKey is the error about a key that is not among those of the part of the machine that was named.
func unknownKey(name string, keys []keyed.Key, m *Machine) error {
	var names []string
	for _, k := range keys {
		names = append(names, k.Name)
	}
	return fmt.Errorf("unknown key %q of a machine%s", name, nearest.HintOr(name, names, fmt.Sprintf(
		"there are %s, for network and intra_node (network.latency_ns) %s, for nccl (nccl.gpu) %s, and collectives.all "+
			"and those of operations (collectives.MPI_Allreduce)", keyed.Names(m.scalars()),
		keyed.Names(m.Network.keys()), keyed.Names(m.NCCL.keys()))))
}
