package models

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const pieced = `# Measured
# on 3 nodes.
nodes: 3
cpus_per_node: 2
mapping: round-robin
cpu_ratio: 1.25
# by messages
network:
  latency_ns: 1700.25
  bandwidth_bytes_per_s: 3000000000
  buses: unlimited
  input_links: 2
  output_links: 2
  half_duplex: true
  pieces:
    - {above_bytes: 4096, step_ns: 500, bandwidth_bytes_per_s: 9000000000}
    - {above_bytes: 65536, step_ns: 0, bandwidth_bytes_per_s: infinite}
intra_node:
  latency_ns: 100
  bandwidth_bytes_per_s: infinite
  buses: 5
  input_links: unlimited
  output_links: unlimited
  half_duplex: false
eager_threshold_bytes: 4097
collectives:
  # few
  MPI_Barrier: {fan_in: CT, size_in: MAX, fan_out: 0, size_out: S+R}
`

func TestWriteYAML(t *testing.T) {
	m, err := Read("m", strings.NewReader(pieced))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	notes := map[string][]string{"": {"Measured", "on 3\nnodes."}, "network": {"by messages"}, "MPI_Barrier": {"few"}}
	if err := m.WriteYAML(&out, notes); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pieced, out.String()); diff != "" {
		t.Error(diff)
	}
	for _, name := range Names() {
		m, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		out.Reset()
		if err := m.WriteYAML(&out, nil); err != nil {
			t.Fatal(err)
		}
		again, err := Read(name, &out)
		if err != nil {
			t.Fatal(err)
		}
		m.Description, again.Description = "", ""
		if diff := cmp.Diff(m, again); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A message of 70000 bytes takes 4096 bytes at 3 GB/s, 500 ns, 61440 bytes at 9 GB/s, and 4464 bytes at no cost:
// 1365.333 + 500 + 6826.667 ns.
func TestPieces(t *testing.T) {
	m, err := Read("m", strings.NewReader(pieced))
	if err != nil {
		t.Fatal(err)
	}
	for bytes, want := range map[int64]Picoseconds{0: 0, 3: 1000, 4096: 1_365_333, 4097: 1_865_444, 65536: 8_692_000,
		70000: 8_692_000, -7: 0} {
		if got := m.Network.Transfer(bytes); got != want {
			t.Errorf("%d bytes: %d ps; want %d", bytes, got, want)
		}
	}
	// An allreduce of 4097 bytes on 5 ranks, LOG 2MAX and LOG MAX: 3 x (1700.25 + T(8194)) + 3 x (1700.25 + T(4097)).
	var z Sizes
	for range 5 {
		z.Add(4097, 4097)
	}
	if got, want := m.Network.Collective(Phases{LOG, TwoMAX, LOG, MAX}, 5, &z),
		6*Picoseconds(1_700_250)+3*m.Network.Transfer(8194)+3*1_865_444; got != want {
		t.Errorf("allreduce: %d ps; want %d", got, want)
	}
	if _, _, _, err := m.CFG(6, "comms"); err == nil ||
		!strings.Contains(err.Error(), "network.pieces makes the bandwidth depend on the size") {
		t.Errorf("configuration: %v", err)
	}
	if err := m.Set("bandwidth_bytes_per_s", "7"); err != nil || m.Network.Transfer(70000) != 10_000*perSecond {
		t.Errorf("set: %v, %d ps", err, m.Network.Transfer(70000))
	}
	for _, c := range []struct{ text, want string }{
		{"pieces: []", `m:4: network.pieces is a list; want a list of 1 to 3 pieces`},
		{"pieces: [{above_bytes: 0, bandwidth_bytes_per_s: 3}]",
			`network.pieces[0].above_bytes is "0"; want a whole number from 1 to`},
		{"pieces: [{above_bytes: 9, bandwidth_bytes_per_s: 3}, {above_bytes: 9, bandwidth_bytes_per_s: 3}]",
			`network.pieces[1].above_bytes is "9"; want a whole number from 10 to`},
	} {
		_, err := Read("m", strings.NewReader("network:\n  latency_ns: 3\n  bandwidth_bytes_per_s: 9\n  "+c.text+"\n"))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", c.text, err, c.want)
		}
	}
}
