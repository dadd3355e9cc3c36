package models

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/commq/commq/internal/keyed"
	"github.com/commq/commq/internal/nearest"
	"github.com/commq/commq/models/nccl"
	"github.com/commq/commq/schema"
)

// NCCL describes a machine of GPUs whose collectives NCCL does; package nccl estimates their times. Bandwidths and the
// number of GPUs of a node are those of the Machine.
type NCCL struct {
	// Given is false on a machine that NCCL cannot be used on.
	Given  bool
	GPU    nccl.GPU
	CPU    nccl.CPU
	Inside nccl.Link
	// NVLS means that the switches between the GPUs of a node reduce.
	NVLS bool
	// NICsPerNode is 0 for one for each GPU.
	NICsPerNode int
	NICLatency  Picoseconds
	// Algorithms are those of the operations that NCCL does, by their blocking form. Other operations have phases.
	Algorithms map[schema.CallID]nccl.Algorithm
	// WithoutLatency means that an operation takes the time of its bytes only, and Free that it takes no time.
	WithoutLatency, Free bool
}

// ncclOperations are what NCCL does for each operation that it has. Operations with a count for each rank are like
// those without, and a barrier is an all-reduce of one number, as PyTorch does them.
var ncclOperations = map[schema.CallID]nccl.Operation{
	schema.CallAllreduce:          nccl.AllReduce,
	schema.CallBarrier:            nccl.AllReduce,
	schema.CallAllgather:          nccl.AllGather,
	schema.CallAllgatherv:         nccl.AllGather,
	schema.CallReduceScatter:      nccl.ReduceScatter,
	schema.CallReduceScatterBlock: nccl.ReduceScatter,
	schema.CallBcast:              nccl.Broadcast,
	schema.CallReduce:             nccl.Reduce,
	schema.CallAlltoall:           nccl.AllToAll,
	schema.CallAlltoallv:          nccl.AllToAll,
	schema.CallAlltoallw:          nccl.AllToAll,
	schema.CallGather:             nccl.Gather,
	schema.CallGatherv:            nccl.Gather,
	schema.CallScatter:            nccl.Scatter,
	schema.CallScatterv:           nccl.Scatter,
}

// barrierBytes is the size of the all-reduce of a barrier.
const barrierBytes = 4

// ncclWords are the words for NCCL's algorithms in machine files, by nccl.Algorithm.
var ncclWords = [...]string{nccl.Any: "nccl", nccl.Ring: "nccl-ring", nccl.Tree: "nccl-tree", nccl.NVLS: "nccl-nvls",
	nccl.PAT: "nccl-pat"}

// SetNCCL has NCCL do an operation, given by its blocking form, by an algorithm. It is an error when NCCL does not have
// the operation, or not by this algorithm.
func (m *Machine) SetNCCL(operation schema.CallID, a nccl.Algorithm) error {
	o, ok := ncclOperations[operation]
	if !ok {
		return fmt.Errorf("NCCL has no %s; give its phases", operation)
	}
	if !o.Offers(a) {
		return fmt.Errorf("NCCL does not do %s by %s; write nccl for what it does", operation, ncclWords[a])
	}
	algorithms := maps.Clone(m.NCCL.Algorithms) // copies of the machine share the map
	if algorithms == nil {
		algorithms = map[schema.CallID]nccl.Algorithm{}
	}
	algorithms[operation] = a
	m.NCCL.Algorithms = algorithms
	return nil
}

// SetAllNCCL has NCCL do all operations that it has, by an algorithm where it has that for them.
func (m *Machine) SetAllNCCL(a nccl.Algorithm) {
	algorithms := make(map[schema.CallID]nccl.Algorithm, len(ncclOperations)) // copies of the machine share the old one
	for id, o := range ncclOperations {
		algorithms[id] = nccl.Any
		if o.Offers(a) {
			algorithms[id] = a
		}
	}
	m.NCCL.Algorithms = algorithms
}

// NCCLEstimate returns how NCCL does an operation of a group that is given by its blocking form, and false when the
// machine has phases for it.
func (m *Machine) NCCLEstimate(operation schema.CallID, g nccl.Group, z *Sizes) (nccl.Estimate, bool) {
	a, ok := m.NCCL.Algorithms[operation]
	if !ok {
		return nccl.Estimate{}, false
	}
	system := m.ncclSystem()
	return system.Estimate(ncclOperations[operation], g, ncclBytes(operation, z), a), true
}

// NCCLTime returns how long the operation takes after its last rank has entered.
func (m *Machine) NCCLTime(operation schema.CallID, g nccl.Group, z *Sizes) (Picoseconds, bool) {
	e, ok := m.NCCLEstimate(operation, g, z)
	if !ok || m.NCCL.Free {
		return 0, ok
	}
	if m.NCCL.WithoutLatency {
		e.LatencyPs = 0
	}
	bytes := Interconnect{BytesPerSecond: e.BytesPerSecond}
	return Picoseconds(e.LatencyPs).plus(bytes.Transfer(ncclBytes(operation, z))), true
}

// ncclBytes is the size of an operation as NCCL counts it: the larger of what a rank gives and what it gets.
func ncclBytes(operation schema.CallID, z *Sizes) int64 {
	if operation == schema.CallBarrier {
		return barrierBytes
	}
	return z.Largest()
}

// ncclSystem returns the machine as package nccl has it. An infinite bandwidth is more than NCCL uses.
func (m *Machine) ncclSystem() *nccl.System {
	const infinite = 1 << 60
	s := &nccl.System{GPU: m.NCCL.GPU, CPU: m.NCCL.CPU, Inside: m.NCCL.Inside, NVLS: m.NCCL.NVLS, GPUs: m.CPUsPerNode,
		NICs: m.NCCL.NICsPerNode, NICLatencyPs: int64(m.NCCL.NICLatency),
		LinkBytesPerSecond: m.IntraNode.BytesPerSecond, NICBytesPerSecond: m.Network.BytesPerSecond}
	if s.NICs == 0 {
		s.NICs = s.GPUs
	}
	if s.LinkBytesPerSecond == 0 {
		s.LinkBytesPerSecond = infinite
	}
	if s.NICBytesPerSecond == 0 {
		s.NICBytesPerSecond = infinite
	}
	return s
}

// consistent returns an error when the machine lacks what NCCL's algorithms need.
func (c *NCCL) consistent() error {
	if c.NVLS && (c.GPU < nccl.Hopper || c.Inside == nccl.PCI) {
		return errors.New("nccl.nvls is true: only GPUs of hopper and blackwell that NVLink connects have it; " +
			"set nccl.nvls to false")
	}
	for id, a := range c.Algorithms {
		if !c.Given {
			return fmt.Errorf("collectives.%s is %s and the key nccl is missing: add nccl, with gpu", id, ncclWords[a])
		}
		if a == nccl.NVLS && !c.NVLS {
			return fmt.Errorf("collectives.%s is nccl-nvls and nccl.nvls is false: set nccl.nvls to true", id)
		}
	}
	return nil
}

// The words of machine files for package nccl's values.
var (
	gpuWords  = [...]string{nccl.Volta: "volta", nccl.Ampere: "ampere", nccl.Hopper: "hopper", nccl.Blackwell: "blackwell"}
	cpuWords  = [...]string{nccl.Intel: "intel", nccl.AMD: "amd"}
	linkWords = [...]string{nccl.NVLink: "nvlink", nccl.PCI: "pci"}
)

// read reads the key nccl.
func (c *NCCL) read(v *yaml.Node, path string) error {
	c.Given = true
	return keyed.Mapping(v, path, c.keys())
}

// keys returns the keys of nccl.
func (c *NCCL) keys() []keyed.Key {
	return []keyed.Key{
		{Name: "gpu", Required: true, Set: keyed.OneOf(&c.GPU, gpuWords[:]...), Doc: keyed.Doc{
			Means: "Generation of the GPUs; H200 is hopper.", Example: "hopper"}},
		{Name: "cpu", Set: keyed.OneOf(&c.CPU, cpuWords[:]...), Doc: keyed.Doc{
			Means: "Who made the CPUs, which post messages to other nodes.", Default: "`intel`", Example: "amd"}},
		{Name: "inside", Set: keyed.OneOf(&c.Inside, linkWords[:]...), Doc: keyed.Doc{
			Means: "What connects the GPUs of a node.", Default: "`nvlink`", Example: "nvlink"}},
		{Name: "nvls", Set: keyed.Truth(&c.NVLS), Doc: keyed.Doc{
			Means:   "The switches between the GPUs of a node reduce (NVLink SHARP); hopper and blackwell only.",
			Default: "`false`", Example: "true"}},
		{Name: "nics_per_node", Set: keyed.OrWord("gpus", &c.NICsPerNode, 0, keyed.Integer(&c.NICsPerNode, 1, maxCount)),
			Doc: keyed.Doc{Means: "NICs of a node, each with the bandwidth of `network`; gpus means one for each GPU.",
				Default: "`gpus`", Example: "4"}},
		{Name: "nic_latency_ns", Set: latency(&c.NICLatency), Doc: keyed.Doc{
			Means: "Latency that NCCL's network plugin reports, on top of what NCCL assumes.", Unit: "ns", Default: "`0`",
			Example: "75000"}},
	}
}

// setNCCLPart sets a key of nccl.
func (m *Machine) setNCCLPart(name, value string) error {
	c := m.NCCL
	keys := c.keys()
	k := slices.IndexFunc(keys, func(k keyed.Key) bool { return k.Name == name })
	if k < 0 {
		var names []string
		for _, k := range keys {
			names = append(names, k.Name)
		}
		return fmt.Errorf("unknown key %q of a machine%s", "nccl."+name,
			nearest.HintOr(name, names, "nccl has "+keyed.Names(keys)))
	}
	if err := keys[k].Set(&yaml.Node{Kind: yaml.ScalarNode, Value: value}, "nccl."+name); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "0: "))
	}
	c.Given = true
	m.NCCL = c
	return nil
}

// setNCCLKey sets collectives.OPERATION or collectives.all to one of NCCL's algorithms.
func (m *Machine) setNCCLKey(operation, value string) error {
	name := "collectives." + operation
	var a nccl.Algorithm
	if err := keyed.OneOf(&a, ncclWords[:]...)(&yaml.Node{Kind: yaml.ScalarNode, Value: value}, name); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "0: "))
	}
	if operation == "all" {
		m.SetAllNCCL(a)
		return nil
	}
	var names []string
	for id := range ncclOperations {
		if id.String() == operation {
			return m.SetNCCL(id, a)
		}
		names = append(names, id.String())
	}
	slices.Sort(names)
	return fmt.Errorf("unknown key %q of a machine%s", name,
		nearest.HintOr(operation, names, "NCCL has all, "+strings.Join(names, ", ")))
}
