package models

import (
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
)

func TestPlace(t *testing.T) {
	uneven := []Node{{CPUs: 2}, {CPUs: 3}, {CPUs: 1}}
	for _, c := range []struct {
		what    string
		machine Machine
		ranks   int
		nodes   int
		want    []int32
	}{
		{"as many nodes as it takes", Machine{CPUsPerNode: 2}, 5, 3, []int32{0, 0, 1, 1, 2}},
		{"equal shares", Machine{Nodes: 3, CPUsPerNode: 2}, 9, 3, []int32{0, 0, 0, 1, 1, 1, 2, 2, 2}},
		{"dealt out", Machine{Nodes: 3, CPUsPerNode: 1, Mapping: RoundRobin}, 5, 3, []int32{0, 1, 2, 0, 1}},
		{"the last node takes the rest", Machine{Nodes: 2, CPUsPerNode: 2, Mapping: Fill}, 7, 2,
			[]int32{0, 0, 1, 1, 1, 1, 1}},
		{"more than its CPUs", Machine{Nodes: 2, CPUsPerNode: 1, Mapping: PerNode, RanksPerNode: 3}, 5, 2,
			[]int32{0, 0, 0, 1, 1}},
		{"listed", Machine{Nodes: 5, CPUsPerNode: 1, Mapping: Listed, NodeOf: []int{4, 0, 4}}, 3, 5, []int32{4, 0, 4}},
		{"nodes that differ", Machine{Nodes: 3, Uneven: uneven, Mapping: Fill}, 8, 3, []int32{0, 0, 1, 1, 1, 2, 2, 2}},
	} {
		nodes, of, err := c.machine.Place(c.ranks)
		if err != nil || nodes != c.nodes || !slices.Equal(of, c.want) {
			t.Errorf("%s: %d nodes, %v, %v", c.what, nodes, of, err)
		}
	}
	for _, c := range []struct {
		machine Machine
		want    string
	}{
		{Machine{Nodes: 2, CPUsPerNode: 1, Mapping: PerNode, RanksPerNode: 3},
			"the mapping puts rank 6 on node 2, and the nodes are 0 to 1"},
		{Machine{Nodes: 2, CPUsPerNode: 1, Mapping: Listed, NodeOf: []int{0}},
			"the mapping lists nodes for 1 ranks, and the run has 7"},
		{Machine{Nodes: 2, CPUsPerNode: 1}, "7 ranks cannot share these CPUs equally"},
	} {
		if _, _, err := c.machine.Place(7); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v; want %s", err, c.want)
		}
	}
}

// 87.3 MiB/s is not a whole number of bytes/s.
func TestFractionalBandwidth(t *testing.T) {
	i := Interconnect{BytesPerSecond: 873 << 20, BytesPer: 10}
	if got := i.Transfer(87_300 << 20); got != 1_000*perSecond { // 87300 MiB / 87.3 MiB/s = 1000 s
		t.Error(got)
	}
	var z Sizes
	z.Add(87_300<<20, 0)
	if got := i.Collective(Phases{CT, MAX, CT, MIN}, 5, &z); got != 1_000*perSecond {
		t.Error(got)
	}
}

// CURRENT is the size sent in a fan-in, and the size received in a fan-out.
func TestCurrentSizes(t *testing.T) {
	i := Interconnect{BytesPerSecond: 1_000_000_000}
	var z Sizes
	z.Add(3000, 5000)
	z.Add(1000, 9000)
	if got := i.Collective(Phases{CT, CURRENT, LIN, CURRENT}, 3, &z); got != 3_000_000+3*9_000_000 {
		t.Error(got)
	}
}

func TestDimemasCollective(t *testing.T) {
	m := &Machine{Nodes: 3, CPUsPerNode: 4, Network: Interconnect{Latency: 10_000_000, BytesPerSecond: 1_000_000_000,
		Buses: 1},
		IntraNode: Interconnect{Latency: 1_000_000, BytesPerSecond: 4_000_000_000}}
	shares := []NodeShare{{0, 4}, {1, 2}, {2, 1}}
	// Between 3 nodes over a bus a tree has 1 + 1 messages; inside the first node 3 ranks follow the first.
	// (10 us + 8 us) x 2 + (10 us + 4 us) x 2, and (1 us + 2 us) x 2 + (1 us + 1 us) x 2
	if got := m.DimemasCollective(Phases{LOG, MAX, LIN, MIN}, 8000, 4000, 0, 3,
		shares); got != (36+28+6+2*3)*1_000_000 {
		t.Error(got)
	}
	// All on one machine of one node: no phase between nodes.
	if got := m.DimemasCollective(Phases{CT, CURRENT, CT, CURRENT}, 8000, 4000, 0, 1, shares[:1]); got != 5_000_000 {
		t.Error(got)
	}
	// 2 x 2^30 bytes wrap around to a negative time, and that is none.
	if got := m.DimemasCollective(Phases{LOG, TwoMAX, None, MAX}, 1<<30, 1<<30, 0, 3, shares); got != 0 {
		t.Error(got)
	}
}

func TestFallback(t *testing.T) {
	m := flat()
	if m.Fallback(schema.CallBcast) || !m.Fallback(schema.CallExscan) {
		t.Error("only Table 3 is no fallback")
	}
	m.SetCollective(schema.CallExscan, Phases{})
	if m.Fallback(schema.CallExscan) {
		t.Error("what the machine declares is no fallback")
	}
}

// The network carries no message where all ranks are on one node.
func TestOnOneNode(t *testing.T) {
	for _, c := range []struct {
		machine Machine
		ranks   int
		want    bool
	}{
		{Machine{CPUsPerNode: 4}, 4, true},
		{Machine{CPUsPerNode: 4}, 5, false},
		{Machine{Nodes: 5, CPUsPerNode: 1, Mapping: Listed, NodeOf: []int{4, 4}}, 2, true},
		{Machine{Nodes: 5, CPUsPerNode: 1, Mapping: Listed, NodeOf: []int{4}}, 2, false}, // does not fit
	} {
		if got := onOneNode(&c.machine, c.ranks); got != c.want {
			t.Errorf("%d ranks on %+v: %v", c.ranks, c.machine, got)
		}
	}
	for key, want := range map[string]bool{"latency_ns": true, "network.buses": true, "intra_node.latency_ns": false,
		"cpu_ratio": false, "nccl.gpu": false, "network.cpu_ratio": false} {
		if isBetweenNodes(key) != want {
			t.Errorf("%s: %v", key, !want)
		}
	}
}
