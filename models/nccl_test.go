package models

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/models/nccl"
	"github.com/commq/commq/schema"
)

// gpus is a machine of GPUs, without its collectives.
const gpus = `cpus_per_node: 8
network: {latency_ns: 9300, bandwidth_bytes_per_s: 50e9}
intra_node: {latency_ns: 7200, bandwidth_bytes_per_s: 370.8e9}
nccl: {gpu: hopper, nvls: true, nics_per_node: 4, nic_latency_ns: 1500.5}
`

func TestReadNCCL(t *testing.T) {
	m := mustRead(t, gpus+"collectives:\n  all: nccl-tree\n  MPI_Allgather: nccl-pat\n"+
		"  MPI_Barrier: {fan_in: CT, size_in: MAX, fan_out: 0, size_out: MAX}\n")
	want := NCCL{Given: true, GPU: nccl.Hopper, NVLS: true, NICsPerNode: 4, NICLatency: 1_500_500,
		Algorithms: map[schema.CallID]nccl.Algorithm{}}
	for id := range ncclOperations {
		want.Algorithms[id] = nccl.Any
	}
	// Trees are for all-reduces alone; the barrier has phases.
	want.Algorithms[schema.CallAllreduce], want.Algorithms[schema.CallAllgather] = nccl.Tree, nccl.PAT
	delete(want.Algorithms, schema.CallBarrier)
	if diff := cmp.Diff(want, m.NCCL); diff != "" {
		t.Error(diff)
	}
	if m.Collectives[schema.CallBarrier] != (Phases{CT, MAX, None, MAX}) || !m.Declared[schema.CallBarrier] {
		t.Errorf("the barrier costs %v", m.Collectives[schema.CallBarrier])
	}
	if m.Fallback(schema.CallReduceScatterBlock) || !m.Fallback(schema.CallExscan) {
		t.Error("NCCL has MPI_Reduce_scatter_block, and not MPI_Exscan")
	}
	var out bytes.Buffer
	if err := m.WriteYAML(&out, nil); err != nil {
		t.Fatal(err)
	}
	again := mustRead(t, out.String())
	again.Description, again.EagerThresholdGiven = m.Description, m.EagerThresholdGiven
	if diff := cmp.Diff(m, again); diff != "" {
		t.Errorf("after writing and reading:\n%s", diff)
	}
	if _, _, _, err := m.CFG(8, "x"); err == nil || !strings.Contains(err.Error(), "NCCL") {
		t.Errorf("as a configuration of Dimemas: %v", err)
	}
	if _, err := m.Stateless(8); err == nil || !strings.Contains(err.Error(), "NCCL does its collectives") {
		t.Errorf("for simulator ranks: %v", err)
	}
}

func TestReadNCCLErrors(t *testing.T) {
	plain := "network: {latency_ns: 9300, bandwidth_bytes_per_s: 50e9}\n"
	for _, c := range [][2]string{
		{plain + "collectives: {MPI_Allreduce: nccl-ring}\n", "test.yaml:2: collectives.MPI_Allreduce is nccl-ring and " +
			"nccl.gpu is missing: add nccl.gpu (--set nccl.gpu=hopper)"},
		{plain + "collectives:\n  all: nccl-tree\n", "test.yaml:2: collectives.all has NCCL do the collectives and " +
			"nccl.gpu is missing: add nccl.gpu (--set nccl.gpu=hopper)"},
		{gpus + "collectives: {all: nccl-star}\n", `test.yaml:5: collectives.all is "nccl-star"; want a mapping with the ` +
			`keys fan_in, size_in, fan_out, size_out, or nccl, nccl-ring, nccl-tree, nccl-nvls, nccl-pat`},
		{gpus + "collectives:\n  MPI_Scan: nccl\n", "test.yaml:6: collectives.MPI_Scan: NCCL has no MPI_Scan; give its " +
			"phases"},
		{gpus + "collectives:\n  MPI_Allgather: nccl-tree\n", "test.yaml:6: collectives.MPI_Allgather: NCCL does not do " +
			"MPI_Allgather by nccl-tree; write nccl for what it does"},
		{plain + "nccl: {gpu: ampere, nvls: true}\n", "test.yaml:2: nccl.nvls is true: only GPUs of hopper and blackwell " +
			"that NVLink connects have it; set nccl.nvls to false (--set nccl.nvls=false)"},
		{plain + "nccl: {gpu: hopper}\ncollectives: {MPI_Allgather: nccl-nvls, MPI_Allreduce: nccl-nvls}\n",
			"test.yaml:3: collectives.MPI_Allgather is nccl-nvls and nccl.nvls is false: set nccl.nvls to true " +
				"(--set nccl.nvls=true)"},
		{plain + "nccl: {gpu: hopper}\ncollectives: {all: nccl-nvls}\n", "test.yaml:3: collectives.all is nccl-nvls and " +
			"nccl.nvls is false: set nccl.nvls to true (--set nccl.nvls=true)"},
		{plain + "nccl: {cpu: amd}\n", "test.yaml:2: nccl.gpu is missing; add it"},
		{plain + "nccl: {gpu: pascal}\n", `test.yaml:2: nccl.gpu is "pascal"; want volta, ampere, hopper or blackwell`},
	} {
		if _, err := Read("test.yaml", strings.NewReader(c[0])); err == nil || !strings.HasSuffix(err.Error(), c[1]) {
			t.Errorf("%s:\n got %v\nwant %s", c[0], err, c[1])
		}
	}
}

// Set changes NCCL's keys and algorithms, of the machine and not of copies.
func TestSetNCCL(t *testing.T) {
	m := mustRead(t, gpus+"collectives: {all: nccl}\n")
	copied := *m
	before := maps.Clone(m.NCCL.Algorithms)
	for _, kv := range [][2]string{{"collectives.all", "nccl-tree"}, {"collectives.MPI_Bcast", "nccl-ring"},
		{"nccl.cpu", "amd"}, {"nccl.nics_per_node", "gpus"}, {"nccl.nvls", "false"}} {
		if err := m.Set(kv[0], kv[1]); err != nil {
			t.Errorf("%s=%s: %v", kv[0], kv[1], err)
		}
	}
	if err := m.Consistent(); err != nil || m.NCCL.Algorithms[schema.CallAllreduce] != nccl.Tree ||
		m.NCCL.Algorithms[schema.CallBcast] != nccl.Ring || m.NCCL.Algorithms[schema.CallAllgather] != nccl.Any ||
		m.NCCL.CPU != nccl.AMD || m.NCCL.NICsPerNode != 0 || m.NCCL.NVLS {
		t.Errorf("%+v, %v", m.NCCL, err)
	}
	m.SetCollective(schema.CallReduce, Phases{CT, MAX, None, MAX})
	if _, ok := m.NCCL.Algorithms[schema.CallReduce]; ok {
		t.Error("NCCL does an operation that has phases")
	}
	if diff := cmp.Diff(before, copied.NCCL.Algorithms); diff != "" {
		t.Errorf("a copy of the machine changed: %s", diff)
	}
	for _, c := range [][3]string{
		{"collectives.all", "ring", `collectives.all is "ring"; want nccl, nccl-ring, nccl-tree, nccl-nvls or nccl-pat`},
		{"collectives.MPI_Allredcue", "nccl", `unknown key "collectives.MPI_Allredcue" of a machine; did you mean ` +
			`MPI_Allreduce?`},
		{"collectives.MPI_Bcast", "nccl-nvls", "NCCL does not do MPI_Bcast by nccl-nvls"},
		{"nccl.gp", "hopper", `unknown key "nccl.gp" of a machine; did you mean gpu?`},
		{"nccl.gpu", "9", `nccl.gpu is "9"; want volta, ampere, hopper or blackwell`},
	} {
		if err := m.Set(c[0], c[1]); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s=%s: %v", c[0], c[1], err)
		}
	}
	if err := m.Set("collectives.all", "nccl-nvls"); err != nil {
		t.Fatal(err)
	}
	if err := m.Consistent(); err == nil || !strings.Contains(err.Error(), "collectives.all is nccl-nvls and nccl.nvls "+
		"is false") {
		t.Errorf("NVLS without its hardware: %v", err)
	}
}

// On a machine without nccl its other keys and algorithms need the GPU too, in any order.
func TestSetNCCLNeedsGPU(t *testing.T) {
	const gpu = "nccl.gpu is missing: add nccl.gpu (--set nccl.gpu=hopper)"
	for _, c := range []struct {
		set  [][2]string
		want string
	}{
		{[][2]string{{"nccl.cpu", "amd"}, {"collectives.all", "nccl"}},
			"collectives.all has NCCL do the collectives and " + gpu},
		{[][2]string{{"collectives.MPI_Reduce", "nccl"}, {"nccl.cpu", "amd"}}, "collectives.MPI_Reduce is nccl and " + gpu},
		{[][2]string{{"nccl.nics_per_node", "3"}}, "nccl has other keys and " + gpu},
		{[][2]string{{"nccl.cpu", "amd"}, {"collectives.all", "nccl"}, {"nccl.gpu", "hopper"}}, ""},
	} {
		m := flat()
		for _, kv := range c.set {
			if err := m.Set(kv[0], kv[1]); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Consistent(); err == nil && c.want != "" || err != nil && err.Error() != c.want {
			t.Errorf("%v: %v; want %q", c.set, err, c.want)
		}
	}
}

// The error about a key that nothing resembles names those of nccl and collectives.
func TestSetUnknownKeyNamesNCCL(t *testing.T) {
	err := flat().Set("zzzzzzzzz", "1")
	if err == nil || !strings.Contains(err.Error(), "nics_per_node") || !strings.Contains(err.Error(), "collectives.all") {
		t.Error(err)
	}
}

// Times of dgx-h100 by hand. All-reduce of 2^30 bytes on a node: NVLS, 25 us and 8 x 40 x 0.85 x 7/8 x 2 x 8/14 = 272
// GB/s. All-gather in which each of 16 ranks of 2 nodes gets 2^20 bytes: ring, LL128, 14 + 14 x 1.9 + 1 x 4 = 44.6 us
// and 8 x 36.7 x 16/15 = 313.173 GB/s. A barrier of 3 ranks: LL on a ring, 6.6 + 4 x 0.6 us; 4 bytes at 141 x 3/4.
func TestNCCLTime(t *testing.T) {
	m, err := Named("dgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	free, quick := m.Ideal(), m.WithoutLatency()
	for _, c := range []struct {
		operation      schema.CallID
		group          nccl.Group
		sent, received int64
		latency, bytes Picoseconds
	}{
		{schema.CallAllreduce, nccl.Group{Ranks: 8, Nodes: 1}, 1 << 30, 1 << 30, 25_000_000, 3_947_580_235},
		{schema.CallAllgather, nccl.Group{Ranks: 16, Nodes: 2}, 1 << 16, 1 << 20, 44_600_000, 3_348_229},
		{schema.CallBarrier, nccl.Group{Ranks: 3, Nodes: 1}, 0, 0, 9_000_000, 38},
		{schema.CallBcast, nccl.Group{Ranks: 1, Nodes: 1}, 4097, 4097, 0, 0},
		{schema.CallAllreduce, nccl.Group{Ranks: 8, Nodes: 1}, 0, 0, 0, 0},
	} {
		var z Sizes
		z.Add(c.sent, c.received)
		if got, ok := ncclTime(m, c.operation, c.group, &z); !ok || got < c.latency+c.bytes-1 || got > c.latency+c.bytes+1 {
			t.Errorf("%s, %v: %v, %d ps; want %d", c.operation, c.group, ok, got, c.latency+c.bytes)
		}
		if got, ok := ncclTime(quick, c.operation, c.group, &z); !ok || got < c.bytes-1 || got > c.bytes+1 {
			t.Errorf("%s, %v without latency: %v, %d ps; want %d", c.operation, c.group, ok, got, c.bytes)
		}
		if got, ok := ncclTime(free, c.operation, c.group, &z); !ok || got != 0 {
			t.Errorf("%s, %v on the ideal network: %v, %d ps", c.operation, c.group, ok, got)
		}
	}
	if _, ok := ncclTime(m, schema.CallScan, nccl.Group{Ranks: 8, Nodes: 1}, &Sizes{}); ok {
		t.Error("NCCL does MPI_Scan")
	}
}

func ncclTime(m *Machine, operation schema.CallID, g nccl.Group, z *Sizes) (Picoseconds, bool) {
	o := NCCLCollective{m, operation, g, z}
	e, ok := o.Estimate()
	return o.Time(e), ok
}
