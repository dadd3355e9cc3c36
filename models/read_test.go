package models

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/mutate"
	"github.com/commq/commq/models/nccl"
	"github.com/commq/commq/schema"
)

func TestRead(t *testing.T) {
	m := mustRead(t, `# all keys
nodes: 16
cpus_per_node: 4
mapping: round-robin
cpu_ratio: 1.25
network:
  latency_ns: 7000.125
  bandwidth_bytes_per_s: 2.5e8
  buses: 9
  input_links: 3
  output_links: 3
  half_duplex: true
intra_node:
  latency_ns: 500
  bandwidth_bytes_per_s: infinite
  buses: unlimited
  input_links: 5
  half_duplex: false
eager_threshold_bytes: 4097
collectives:
  all: {fan_in: 0, size_in: MAX, fan_out: CT, size_out: S+R}
  MPI_Bcast: {fan_in: LIN, size_in: 2MAX, fan_out: LOG, size_out: MIN}
`)
	want := &Machine{Name: "test.yaml", Description: m.Description, Nodes: 16, CPUsPerNode: 4, Mapping: RoundRobin,
		CPURatio: 1.25,
		Network: Interconnect{Latency: 7_000_125, BytesPerSecond: 250_000_000, Buses: 9, InputLinks: 3,
			OutputLinks: 3, HalfDuplex: true},
		IntraNode:           Interconnect{Latency: 500_000, InputLinks: 5},
		EagerThresholdBytes: 4097, EagerThresholdGiven: true, Collectives: map[schema.CallID]Phases{},
		Declared: map[schema.CallID]bool{}}
	for op := range table3 {
		want.Collectives[op], want.Declared[op] = Phases{None, MAX, CT, SumSR}, true
	}
	want.Collectives[schema.CallBcast] = Phases{LIN, TwoMAX, LOG, MIN}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
}

func TestReadDefaults(t *testing.T) {
	link := Interconnect{Latency: 7_000_000, BytesPerSecond: 250_000_000}
	want := &Machine{Name: "test.yaml", Description: clan, CPUsPerNode: 1, CPURatio: 1, Network: link,
		IntraNode: link, EagerThresholdBytes: math.MaxInt64, Collectives: table3}
	if diff := cmp.Diff(want, mustRead(t, clan)); diff != "" {
		t.Error(diff)
	}
	// One row replaced leaves the others, also of the machine that is read next.
	m := mustRead(t, clan+"collectives: {MPI_Scan: {fan_in: CT, size_in: MAX, fan_out: 0, size_out: MAX}}")
	if m.Collectives[schema.CallScan] != (Phases{CT, MAX, None, MAX}) ||
		m.Collectives[schema.CallExscan] != table3[schema.CallExscan] ||
		table3[schema.CallScan] != (Phases{LOG, MAX, LOG, MAX}) {
		t.Errorf("%v", m.Collectives)
	}
}

func TestReadErrors(t *testing.T) {
	rest := "\n  bandwidth_bytes_per_s: 1\n"
	for _, c := range []struct{ text, want string }{
		{"# nothing\n", `machine test.yaml: not YAML: `},
		{"- 3\n", `test.yaml:1: found a list; want a mapping with the keys nodes, cpus_per_node, `},
		{"7\n", `test.yaml:1: found "7"; want a mapping`},
		{"nodes: 3\n", `test.yaml:1: network is missing; add it`},
		{"network: {}\n", `test.yaml:1: network.latency_ns is missing; add it`},
		{"network:\n", `test.yaml:1: network is empty; want a mapping with the keys latency_ns, bandwidth_bytes_per_s, `},
		{"network:\n  latency_ns: 3\n", `test.yaml:2: network.bandwidth_bytes_per_s is missing; add it`},
		{"network:\n  latency_ns:" + rest, `test.yaml:2: network.latency_ns is empty; want nanoseconds from 0 to 1000000000000 with at most three decimals`},
		{"network:\n  latency_ns: -3" + rest, `test.yaml:2: network.latency_ns is "-3"; want nanoseconds`},
		{"network:\n  latency_ns: .nan" + rest, `test.yaml:2: network.latency_ns is ".nan"; want nanoseconds`},
		{"network:\n  latency_ns: .inf" + rest, `test.yaml:2: network.latency_ns is ".inf"; want nanoseconds`},
		{"network:\n  latency_ns: 0.0001" + rest, `test.yaml:2: network.latency_ns is "0.0001"; want nanoseconds`},
		{"network:\n  latency_ns: 1e13" + rest, `test.yaml:2: network.latency_ns is "1e13"; want nanoseconds`},
		{"network:\n  latency_ns: 1e999999999" + rest,
			`test.yaml:2: network.latency_ns is "1e999999999"; want nanoseconds`},
		{"network:\n  latency_ns: 7us" + rest, `test.yaml:2: network.latency_ns is "7us"; want nanoseconds`},
		{"network:\n  latency_ns: [7]" + rest, `test.yaml:2: network.latency_ns is a list; want nanoseconds`},
		{"network:\n  latency_ns: " + strings.Repeat("7", 90) + rest,
			`network.latency_ns is "7777777777777777777777777777777777777777"...; want`},
		{"network:\n  latency_ns: &x 7\n  bandwidth_bytes_per_s: *x\n",
			`test.yaml:3: network.bandwidth_bytes_per_s is an alias (*x); want a whole number from 1 to 1000000000000000000, or infinite`},
		{"network:\n  latency_ns: 7\n  bandwidth_bytes_per_s: 0\n",
			`test.yaml:3: network.bandwidth_bytes_per_s is "0"; want a whole number from 1 to 1000000000000000000, or infinite`},
		{"network:\n  latency_ns: 7\n  bandwidth_bytes_per_s: 1.5\n",
			`test.yaml:3: network.bandwidth_bytes_per_s is "1.5"; want a whole number`},
		{"network:\n  latency_ns: 7\n  bandwidth_bytes_per_s: 2e18\n",
			`test.yaml:3: network.bandwidth_bytes_per_s is "2e18"; want a whole number`},
		{"network:\n  latency_ns: 7\n  bandwidth_mb: 3\n",
			`test.yaml:3: unknown key "bandwidth_mb" in network; there are latency_ns, bandwidth_bytes_per_s, buses, input_links, output_links, half_duplex`},
		{"network:\n  latency_ns: 7\n  latency_ns: 8\n", `latency_ns`},
		{"network:\n  latency_ns: 7\n  half_duplex: yes" + rest,
			`test.yaml:3: network.half_duplex is "yes"; want false or true`},
		{"network:\n  latency_ns: 7\n  half_duplex: true" + rest,
			`test.yaml:2: network.half_duplex is true: a link then carries messages in or out, so that input_links and output_links must be the same number`},
		{"network:\n  latency_ns: 7\n  buses: 0" + rest,
			`test.yaml:3: network.buses is "0"; want a whole number from 1 to 1073741824, or unlimited`},
		{"network:\n  latency_ns: 7\n  buses: 3000000000" + rest,
			`test.yaml:3: network.buses is "3000000000"; want a whole number`},
		{clan + "nodes: -1\n", `test.yaml:2: nodes is "-1"; want a whole number from 1 to 1073741824, or unlimited`},
		{clan + "cpus_per_node: unlimited\n",
			`test.yaml:2: cpus_per_node is "unlimited"; want a whole number from 1 to 1073741824`},
		{clan + "cpus_per_node: 3\n", `test.yaml:1: cpus_per_node is 3 and intra_node is missing: add intra_node, with the keys of network, for messages inside a node`},
		{clan + "mapping: round-robin\n", `test.yaml:1: mapping is round-robin and nodes is unlimited`},
		{clan + "mapping: random\n", `test.yaml:2: mapping is "random"; want block or round-robin`},
		{clan + "cpu_ratio: 0\n", `test.yaml:2: cpu_ratio is "0"; want a number from 0.000001 to 1000000`},
		{clan + "cpu_ratio: .inf\n", `test.yaml:2: cpu_ratio is ".inf"; want a number`},
		{clan + "eager_threshold_bytes: 9223372036854775807\n",
			`test.yaml:2: eager_threshold_bytes is "9223372036854775807"; want a whole number from 0 to 9223372036854775806, or unlimited`},
		{clan + "eager_threshold_bytes: 1_000\n", `test.yaml:2: eager_threshold_bytes is "1_000"; want a whole number`},
		{clan + "collectives:\n  MPI_Ibcast: {}\n",
			`test.yaml:3: unknown key "MPI_Ibcast" in collectives; did you mean MPI_Bcast?`},
		{clan + "collectives:\n  MPI_Bcast: {fan_in: CT, size_in: MAX, fan_out: CT}\n",
			`test.yaml:3: collectives.MPI_Bcast.size_out is missing; add it`},
		{clan + "collectives:\n  MPI_Bcast: {fan_in: CTE}\n",
			`test.yaml:3: collectives.MPI_Bcast.fan_in is "CTE"; want 0, CT, LIN or LOG`},
		{clan + "collectives:\n  MPI_Bcast: {size_in: 2*MAX}\n",
			`test.yaml:3: collectives.MPI_Bcast.size_in is "2*MAX"; want MAX, MIN, MEAN, 2MAX, S+R or CURRENT`},
		{clan + "collectives:\n  <<: {MPI_Bcast: {}}\n", `test.yaml:3: unknown key "<<" in collectives`},
		{clan + "{3: 4}: 5\n", `test.yaml:2: unknown key a mapping`},
		{clan + "? {3: 4}\n: 5\n", `test.yaml:2: unknown key a mapping`},
		{"a: b: c", "machine test.yaml: not YAML: "},
		{clan + "---\n" + clan, "machine test.yaml: not YAML: "},
		{"\x00\x01\xff", "machine test.yaml: not YAML: "},
		{strings.Repeat("#\n", 1<<20), "machine test.yaml: more than 1048576 bytes: not a description of a machine"},
	} {
		m, err := Read("test.yaml", strings.NewReader(c.text))
		if m != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
	gone := errors.New("gone")
	if _, err := Read("test.yaml", iotest.ErrReader(gone)); !errors.Is(err, gone) {
		t.Error(err)
	}
}

func TestNamedMachines(t *testing.T) {
	if diff := cmp.Diff([]string{"collectives-in-hardware", "cray-aries", "dgx-a100", "dgx-h100",
		"ethernet-40g", "flat", "ideal", "infiniband-hdr", "infinite-bandwidth", "myrinet", "sgi-origin",
		"slingshot-11", "zero-latency"}, Names()); diff != "" {
		t.Error(diff)
	}
	for _, name := range Names() {
		m, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		waits := name == "myrinet" || name == "sgi-origin" || strings.HasPrefix(name, "dgx-")
		if _, err := m.Stateless(2); (err != nil) != waits || m.Name != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Named("flt"); err == nil || !strings.Contains(err.Error(),
		`unknown machine "flt"; did you mean flat?`) {
		t.Error(err)
	}
}

// Any file gives an error, or a machine that computes times.
func FuzzRead(f *testing.F) {
	f.Add([]byte(clan))
	f.Add([]byte("nodes: 3\ncpus_per_node: 5\nmapping: round-robin\ncpu_ratio: 0.5\nintra_node: {latency_ns: 1.125, bandwidth_bytes_per_s: infinite}\n" + clan))
	f.Add([]byte(clan + "eager_threshold_bytes: unlimited\ncollectives: {all: {fan_in: LIN, size_in: S+R, fan_out: CT, size_out: 2MAX}}\n"))
	f.Add([]byte(clan + "nccl: {gpu: volta, cpu: amd, inside: pci, nics_per_node: 3, nic_latency_ns: 0.5}\n" +
		"collectives: {all: nccl-tree, MPI_Reduce: nccl-ring}\n"))
	f.Add([]byte("network: &x {latency_ns: 1e9, bandwidth_bytes_per_s: 1e18, buses: 1, half_duplex: true, input_links: 2, output_links: 2}\nintra_node: *x\n"))
	f.Fuzz(fuzzRead)
}

func fuzzRead(t *testing.T, data []byte) {
	m, err := Read("fuzz", bytes.NewReader(data))
	if err != nil {
		if m != nil || !strings.HasPrefix(err.Error(), "machine fuzz:") {
			t.Fatal(err)
		}
		return
	}
	if m.CPUsPerNode < 1 || m.Nodes < 0 || !(m.CPURatio > 0 && m.CPURatio <= 1e6) || m.EagerThresholdBytes < 0 ||
		len(m.Collectives) != len(table3) {
		t.Fatalf("%+v", m)
	}
	for _, i := range []Interconnect{m.Network, m.IntraNode} {
		if i.Latency < 0 || i.BytesPerSecond < 0 || i.Buses < 0 || i.InputLinks < 0 || i.OutputLinks < 0 {
			t.Fatalf("%+v", i)
		}
	}
	for op := range table3 {
		z := Sizes{}
		z.Add(1<<40, 4097)
		for _, g := range []nccl.Group{{Ranks: 1, Nodes: 1}, {Ranks: 9, Nodes: 3}, {Ranks: 5, Nodes: 4}} {
			if d, ok := ncclTime(m, op, g, &z); d < 0 || d > Forever || ok && g.Ranks > 1 && d == 0 {
				t.Fatalf("%s, %v: %d ps on %+v", op, g, d, m)
			}
		}
	}
	if n, err := m.Stateless(4); err == nil {
		if d := n.Delay(0, 3, 1<<40); d < 0 || d > Forever {
			t.Fatalf("%d ps on %+v", d, m)
		}
	}
	for _, rank := range []int{0, 3, 1<<24 - 1} {
		if n := m.Node(rank, rank+1); n < 0 || n > rank {
			t.Fatalf("rank %d is on node %d of %+v", rank, n, m)
		}
	}
}

// The table of collectives in docs/method/time-model.md is the one in the code.
func TestTimeModelDocument(t *testing.T) {
	text, err := os.ReadFile("../docs/method/time-model.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| operation | fan-in | fan-out |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := 0
	for _, line := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(line, "|")
		for op, p := range table3 {
			name := strings.TrimPrefix(op.String(), "MPI_")
			if !slices.Contains(strings.Split(strings.TrimSpace(cells[1]), ", "), name) &&
				!(op.IsNeighborhood() && strings.Contains(cells[1], "Neighbor_*")) {
				continue
			}
			rows++
			for i, want := range []string{phase(p.FanIn, p.SizeIn), phase(p.FanOut, p.SizeOut)} {
				if got := strings.TrimSpace(cells[2+i]); got != want {
					t.Errorf("%s: the document has %q, the table %q", op, got, want)
				}
			}
		}
	}
	if rows != len(table3) {
		t.Errorf("the document has %d operations, the table %d", rows, len(table3))
	}
}

// phase formats a phase as in the document.
func phase(f Factor, s Size) string {
	if f == None {
		return "0"
	}
	return f.String() + " " + s.String()
}

// The same with the built-in machines, their values changed.
func FuzzReadEdited(f *testing.F) {
	seeds := []string{clan}
	files, err := filepath.Glob("machines/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("%v, %v", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, string(text))
	}
	for i := range seeds {
		f.Add(uint8(i), []byte{0, 9, 1, 8, 1, 0, 4, 7})
	}
	f.Fuzz(func(t *testing.T, seed uint8, edits []byte) {
		fuzzRead(t, []byte(mutate.Text(seeds[int(seed)%len(seeds)], edits)))
	})
}
