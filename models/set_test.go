package models

import (
	"strings"
	"testing"
)

func TestSet(t *testing.T) {
	m := mustRead(t, clan)
	for _, kv := range [][2]string{{"latency_ns", "1500.5"}, {"network.bandwidth_bytes_per_s", "3e9"},
		{"buses", "unlimited"}, {"intra_node.latency_ns", "250"},
		{"nodes", "3"}, {"cpu_ratio", "2.5"}, {"eager_threshold_bytes", "65536"}, {"input_links", "2"},
		{"half_duplex", "true"}} {
		if err := m.Set(kv[0], kv[1]); err != nil {
			t.Errorf("%s=%s: %v", kv[0], kv[1], err)
		}
	}
	if m.Network != (Interconnect{Latency: 1_500_500, BytesPerSecond: 3_000_000_000, InputLinks: 2,
		HalfDuplex: true}) || m.IntraNode.Latency != 250_000 ||
		m.Nodes != 3 || m.CPURatio != 2.5 || m.EagerThresholdBytes != 65536 || !m.EagerThresholdGiven {
		t.Errorf("%+v", m)
	}
	if err := m.Consistent(); err == nil || !strings.Contains(err.Error(), "input_links (2) and output_links (0)") {
		t.Error(err)
	}
	for _, c := range [][3]string{
		{"latency", "3", `unknown key "latency" of a machine; did you mean latency_ns?`},
		{"wan.latency_ns", "3", `unknown key "wan.latency_ns" of a machine; there are nodes, cpus_per_node, cpu_ratio, cycle_ns, eager_threshold_bytes, for network and intra_node`},
		{"latency_ns", "fast", `latency_ns is "fast"; want nanoseconds from 0`},
		{"nodes", "0", `nodes is "0"; want a whole number from 1 to 1073741824, or unlimited`},
	} {
		if err := m.Set(c[0], c[1]); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s=%s: %v", c[0], c[1], err)
		}
	}
}

// If nodes differ, Set changes all of them; their number and CPUs can only be changed in the file.
func TestSetOnUnevenNodes(t *testing.T) {
	m := &Machine{Nodes: 2, CPURatio: 1, Uneven: []Node{{CPUs: 3, CPURatio: 2, Latency: 5000},
		{CPUs: 1, CPURatio: 1, Latency: 9000}}}
	before := m.Uneven
	if err := m.Set("latency_ns", "7"); err != nil || m.Uneven[0].Latency != 7000 || m.Uneven[1].Latency != 7000 ||
		m.Uneven[0].CPURatio != 2 {
		t.Errorf("%+v %v", m.Uneven, err)
	}
	if before[0].Latency != 5000 {
		t.Error("another machine's nodes changed too")
	}
	if err := m.Set("nodes", "3"); err == nil {
		t.Error("the number of nodes changed")
	}
	free := m.Ideal()
	if free.Uneven[0] != (Node{CPUs: 3, CPURatio: 2}) || m.Uneven[0].Latency != 7000 {
		t.Errorf("%+v", free.Uneven)
	}
}

// A key of intra_node changes alone in each node. A bandwidth removes the pieces of all.
func TestSetInsideUnevenNodes(t *testing.T) {
	slow := Interconnect{Latency: 5000, BytesPerSecond: 1000, BytesPer: 3, InputLinks: 1, OutputLinks: 1,
		HalfDuplex: true}
	fast := Interconnect{Latency: 1000, BytesPerSecond: 9000, Buses: 4}
	fast.Pieces[0].AboveBytes = 64
	m := &Machine{Nodes: 2, CPURatio: 1, IntraNode: slow, Uneven: []Node{{IntraNode: slow}, {IntraNode: fast}}}
	for _, kv := range [][2]string{{"intra_node.latency_ns", "7"}, {"intra_node.bandwidth_bytes_per_s", "500"}} {
		if err := m.Set(kv[0], kv[1]); err != nil {
			t.Fatal(err)
		}
	}
	slow.Latency, slow.BytesPerSecond, slow.BytesPer = 7000, 500, 0
	fast.Latency, fast.BytesPerSecond, fast.Pieces[0].AboveBytes = 7000, 500, 0
	if m.Uneven[0].IntraNode != slow || m.Uneven[1].IntraNode != fast || m.IntraNode != slow {
		t.Errorf("%+v", m)
	}
	m.IntraNode.HalfDuplex = false
	if err := m.Set("intra_node.input_links", "2"); err != nil {
		t.Fatal(err)
	}
	if err := m.Consistent(); err == nil || !strings.Contains(err.Error(), "input_links (2) and output_links (1)") {
		t.Errorf("a node has 2 links in and 1 out, both ways: %v", err)
	}
}

// TestSetKeys: every key that SetKeys lists is one that Set knows.
func TestSetKeys(t *testing.T) {
	for _, name := range SetKeys() {
		var m Machine
		if err := m.Set(name, "x"); err == nil || strings.Contains(err.Error(), "unknown key") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(SetKeys()); n < 20 {
		t.Errorf("%d keys", n)
	}
}
