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
	// Given is false on a machine that NCCL cannot be used on, as its GPU is not given.
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

// ncclOperations has NCCL's operation for each MPI operation that NCCL does. Operations with a count for each rank are
// like those without, and a barrier is an all-reduce of one number, as in PyTorch.
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

// Do has NCCL do an operation, given by its blocking form, by an algorithm. It is an error when NCCL does not have the
// operation, or not by this algorithm.
func (c *NCCL) Do(operation schema.CallID, a nccl.Algorithm) error {
	o, ok := ncclOperations[operation]
	if !ok {
		return fmt.Errorf("NCCL has no %s; give its phases", operation)
	}
	if !o.Offers(a) {
		return fmt.Errorf("NCCL does not do %s by %s; write nccl for what it does", operation, ncclWords[a])
	}
	algorithms := maps.Clone(c.Algorithms) // copies of the machine share the map
	if algorithms == nil {
		algorithms = map[schema.CallID]nccl.Algorithm{}
	}
	algorithms[operation] = a
	c.Algorithms = algorithms
	return nil
}

// DoAll makes NCCL do every operation that it supports, by an algorithm where the operation has it and by the fastest
// one elsewhere.
func (c *NCCL) DoAll(a nccl.Algorithm) {
	algorithms := make(map[schema.CallID]nccl.Algorithm, len(ncclOperations)) // copies of the machine share the old one
	for id, o := range ncclOperations {
		algorithms[id] = nccl.Any
		if o.Offers(a) {
			algorithms[id] = a
		}
	}
	c.Algorithms = algorithms
}

// Does reports whether NCCL does the operation of a call.
func (c *NCCL) Does(call schema.CallID) bool {
	_, ok := c.Algorithms[call.Operation()]
	return ok
}

// NCCLCollective is a collective operation on a machine, which NCCL may do.
type NCCLCollective struct {
	Machine *Machine
	// Operation is its blocking form.
	Operation schema.CallID
	Group     nccl.Group
	Sizes     *Sizes
}

// Estimate returns how NCCL does the operation, and false if the machine has phases for it. If there is nothing to
// send, the estimate's algorithm is nccl.Any.
func (o NCCLCollective) Estimate() (nccl.Estimate, bool) {
	a, ok := o.Machine.NCCL.Algorithms[o.Operation]
	if !ok {
		return nccl.Estimate{}, false
	}
	return o.system().Estimate(ncclOperations[o.Operation], o.Group, o.bytes(), a), true
}

// Time returns how long the operation takes after its last rank has entered, by its Estimate.
func (o NCCLCollective) Time(e nccl.Estimate) Picoseconds {
	if o.Machine.NCCL.Free {
		return 0
	}
	if o.Machine.NCCL.WithoutLatency {
		e.LatencyPs = 0
	}
	rate := Interconnect{BytesPerSecond: e.BytesPerSecond}
	return Picoseconds(e.LatencyPs).plus(rate.Transfer(o.bytes()))
}

// bytes is the size of the operation as NCCL counts it: the larger of what a rank gives and what it gets.
func (o NCCLCollective) bytes() int64 {
	if o.Operation == schema.CallBarrier {
		return barrierBytes
	}
	return o.Sizes.Largest()
}

// system returns the machine as package nccl has it. An infinite bandwidth is more than NCCL uses.
func (o NCCLCollective) system() *nccl.System {
	const infinite = 1 << 60
	m := o.Machine
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

// consistent returns an error when the machine lacks what NCCL's algorithms need, and the key of the machine that it is
// about, nccl or collectives.
func (c *NCCL) consistent() (key string, err error) {
	const addGPU = "nccl.gpu is missing: add nccl.gpu (--set nccl.gpu=hopper)"
	switch {
	case c.Given:
	case len(c.Algorithms) == len(ncclOperations):
		return "collectives", errors.New("collectives.all has NCCL do the collectives and " + addGPU)
	case len(c.Algorithms) > 0:
		id := slices.Min(slices.Collect(maps.Keys(c.Algorithms)))
		return "collectives", fmt.Errorf("collectives.%s is %s and %s", id, ncclWords[c.Algorithms[id]], addGPU)
	case c.CPU != 0 || c.Inside != 0 || c.NVLS || c.NICsPerNode != 0 || c.NICLatency != 0:
		return "nccl", errors.New("nccl has other keys and " + addGPU)
	}
	if c.NVLS && (c.GPU < nccl.Hopper || c.Inside == nccl.PCI) {
		return "nccl", errors.New("nccl.nvls is true: only GPUs of hopper and blackwell that NVLink connects have it; " +
			"set nccl.nvls to false (--set nccl.nvls=false)")
	}
	if name := c.doneBy(nccl.NVLS); name != "" && !c.NVLS {
		return "collectives", fmt.Errorf("collectives.%s is %s and nccl.nvls is false: set nccl.nvls to true "+
			"(--set nccl.nvls=true)", name, ncclWords[nccl.NVLS])
	}
	return "", nil
}

// doneBy returns the first operation that NCCL does by an algorithm; "all" if it does so for every operation that has
// the algorithm, "" if for none.
func (c *NCCL) doneBy(a nccl.Algorithm) string {
	first, all := schema.CallID(0), true
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(ncclOperations))) {
		if by, ok := c.Algorithms[id]; ok && by == a {
			first = id
		} else if ncclOperations[id].Offers(a) {
			all = false
		}
	}
	switch {
	case all:
		return "all"
	case first == 0:
		return ""
	}
	return first.String()
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

// setKey sets a key of nccl.
func (c *NCCL) setKey(name, value string) error {
	now := *c
	keys := now.keys()
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
	now.Given = now.Given || name == "gpu"
	*c = now
	return nil
}

// setAlgorithm sets collectives.OPERATION or collectives.all to one of NCCL's algorithms.
func (c *NCCL) setAlgorithm(operation, value string) error {
	name := "collectives." + operation
	var a nccl.Algorithm
	if err := keyed.OneOf(&a, ncclWords[:]...)(&yaml.Node{Kind: yaml.ScalarNode, Value: value}, name); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "0: "))
	}
	if operation == "all" {
		c.DoAll(a)
		return nil
	}
	var names []string
	for id := range ncclOperations {
		if id.String() == operation {
			return c.Do(id, a)
		}
		names = append(names, id.String())
	}
	slices.Sort(names)
	return fmt.Errorf("unknown key %q of a machine%s", name,
		nearest.HintOr(operation, names, "NCCL has all, "+strings.Join(names, ", ")))
}
