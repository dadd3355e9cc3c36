package models

import (
	"fmt"
	"io"
	"math/big"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/commq/commq/internal/keyed"
	"github.com/commq/commq/models/nccl"
	"github.com/commq/commq/schema"
)

// maxFileBytes limits the size of a machine's file, which usually has some hundred bytes.
const maxFileBytes = 1 << 20

// Read reads a machine from YAML, whose keys are in docs/reference/machines.md. The name, a path, is for messages. An
// error names the line, the key, the value and the allowed values.
func Read(name string, r io.Reader) (*Machine, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("machine %s: %w", name, err)
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("machine %s: more than %d bytes: not a description of a machine", name, maxFileBytes)
	}
	root, err := keyed.Load(data)
	if err != nil {
		return nil, fmt.Errorf("machine %s: %w", name, err)
	}
	m := flat()
	m.Name, m.Description = name, string(data)
	if err := m.read(root); err != nil {
		return nil, fmt.Errorf("machine %s:%w", name, err)
	}
	return m, nil
}

func (m *Machine) read(root *yaml.Node) error {
	intra := false
	if err := keyed.Mapping(root, "", m.keys(&intra)); err != nil {
		return err
	}
	if m.Mapping == RoundRobin && m.Nodes == 0 {
		return keyed.ErrorAt(root, "mapping is round-robin and nodes is unlimited: set nodes to the number of nodes that the ranks are dealt out to")
	}
	if !intra && m.CPUsPerNode > 1 {
		return keyed.ErrorAt(root, fmt.Sprintf("cpus_per_node is %d and intra_node is missing: add intra_node, with the keys of network, for messages inside a node", m.CPUsPerNode))
	}
	if key, err := m.NCCL.consistent(); err != nil {
		return keyed.ErrorAt(keyNode(root, key), err.Error())
	}
	if !intra {
		m.IntraNode = Interconnect{Latency: m.Network.Latency, BytesPerSecond: m.Network.BytesPerSecond}
	}
	return nil
}

// keyNode returns the node of a mapping's key, for its line; the mapping's where the key is not in it.
func keyNode(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i]
		}
	}
	return mapping
}

// keys returns all keys of a machine. intra is set to true when intra_node is read.
func (m *Machine) keys(intra *bool) []keyed.Key {
	return append(m.scalars(),
		keyed.Key{Name: "mapping", Set: keyed.OneOf(&m.Mapping, "block", "round-robin"), Doc: keyed.Doc{
			Means:   "Which node a rank is on: rank r is on node r div `cpus_per_node` (`block`) or r mod `nodes` (`round-robin`, which needs a number of `nodes`).",
			Default: "`block`", Example: "round-robin"}},
		keyed.Key{Name: "network", Required: true, Set: m.Network.read, Doc: keyed.Doc{
			Means: "The network between nodes: [its keys](#network-and-intra_node).", Example: "{latency_ns: 7000, bandwidth_bytes_per_s: 250e6}"}},
		keyed.Key{Name: "intra_node", Set: func(v *yaml.Node, path string) error { *intra = true; return m.IntraNode.read(v, path) },
			Doc: keyed.Doc{Means: "The same keys for messages inside a node; a link there is a rank's. It must be there if `cpus_per_node` is more than 1.",
				Default: "latency and bandwidth of `network`", Example: "{latency_ns: 500, bandwidth_bytes_per_s: 4e9}"}},
		keyed.Key{Name: "nccl", Set: m.NCCL.read, Doc: keyed.Doc{
			Means:   "A machine of GPUs, each a CPU of `cpus_per_node`, on which NCCL can do collectives: [its keys](#nccl).",
			Default: "NCCL does none", Example: "{gpu: hopper, nvls: true}"}},
		keyed.Key{Name: "collectives", Set: m.readCollectives, Doc: keyed.Doc{
			Means:   "What collective operations cost: [its keys](#collectives).",
			Default: "[the paper's table](../method/time-model.md#a-collective)",
			Example: "{MPI_Barrier: {fan_in: LIN, size_in: MAX, fan_out: LIN, size_out: MAX}}"}},
	)
}

// scalars returns the keys of a machine that have a single value.
func (m *Machine) scalars() []keyed.Key {
	return []keyed.Key{
		{Name: "nodes", Set: count(&m.Nodes), Doc: keyed.Doc{Means: "How many nodes there are.",
			Default: "`unlimited`", Example: "16"}},
		{Name: "cpus_per_node", Set: keyed.Integer(&m.CPUsPerNode, 1, maxCount), Doc: keyed.Doc{
			Means:   "CPUs of each node. If there are more ranks than CPUs, each node gets equally many ranks (else it is an error), which share its CPUs equally all the time.",
			Default: "`1`", Example: "4"}},
		{Name: "cpu_ratio", Set: ratio(&m.CPURatio), Doc: keyed.Doc{
			Means:   "How many times as fast its CPUs are as those that the program ran on: compute times are divided by it.",
			Default: "`1`", Example: "1.25"}},
		{Name: "cycle_ns", Set: ratio(&m.CycleNs), Doc: keyed.Doc{
			Means: "Cycle time of its CPUs. `commq predict` uses it for runs whose instructions were counted.",
			Unit:  "ns", Default: "not known", Example: "0.357"}},
		{Name: "eager_threshold_bytes", Set: m.readThreshold, Doc: keyed.Doc{
			Means: "Messages of this size or more wait for their receiver.",
			Unit:  "bytes", Default: "`unlimited`", Example: "32768"}},
	}
}

// keys returns the keys of network and intra_node.
func (i *Interconnect) keys() []keyed.Key {
	return []keyed.Key{
		{Name: "latency_ns", Required: true, Set: latency(&i.Latency), Doc: keyed.Doc{
			Means: "Latency L: what a message of no bytes takes.", Unit: "ns", Example: "7000"}},
		{Name: "bandwidth_bytes_per_s", Required: true,
			Set: keyed.OrWord("infinite", &i.BytesPerSecond, 0, keyed.Integer(&i.BytesPerSecond, 1, maxBandwidth)),
			Doc: keyed.Doc{Means: "Bandwidth B: S bytes take L + S/B.", Unit: "bytes/s", Example: "250e6"}},
		{Name: "buses", Set: count(&i.Buses), Doc: keyed.Doc{
			Means: "Messages that can be under way at a time; further ones wait.", Default: "`unlimited`", Example: "16"}},
		{Name: "input_links", Set: count(&i.InputLinks), Doc: keyed.Doc{
			Means: "Those of them that can go into one node.", Default: "`unlimited`", Example: "1"}},
		{Name: "output_links", Set: count(&i.OutputLinks), Doc: keyed.Doc{
			Means: "Those of them that can leave one node.", Default: "`unlimited`", Example: "1"}},
		{Name: "half_duplex", Set: keyed.Truth(&i.HalfDuplex), Doc: keyed.Doc{
			Means:   "A link carries one message at a time, in or out; `input_links` and `output_links` must then be the same number.",
			Default: "`false`", Example: "true"}},
		{Name: "pieces", Set: i.readPieces, Doc: keyed.Doc{
			Means:   "Other bandwidths above some sizes, in ascending order: [keys of a piece](#a-piece).",
			Default: "one bandwidth for all sizes",
			Example: "[{above_bytes: 65536, step_ns: 1200, bandwidth_bytes_per_s: 1e9}]"}},
	}
}

// keys returns the keys of a piece that begins at least at this size.
func (p *Piece) keys(least int64) []keyed.Key {
	return []keyed.Key{
		{Name: "above_bytes", Required: true, Set: keyed.Integer(&p.AboveBytes, least, NoThreshold-1), Doc: keyed.Doc{
			Means: "The piece is for the bytes of a message beyond this size, up to the next piece.", Unit: "bytes", Example: "65536"}},
		{Name: "step_ns", Set: latency(&p.Step), Doc: keyed.Doc{
			Means: "Time that a message with such bytes takes once in addition.", Unit: "ns", Default: "`0`", Example: "1200"}},
		{Name: "bandwidth_bytes_per_s", Required: true,
			Set: keyed.OrWord("infinite", &p.BytesPerSecond, 0, keyed.Integer(&p.BytesPerSecond, 1, maxBandwidth)),
			Doc: keyed.Doc{Means: "Bandwidth of these bytes.", Unit: "bytes/s", Example: "1e9"}},
	}
}

// readPieces reads a list of pieces.
func (i *Interconnect) readPieces(v *yaml.Node, path string) error {
	if v.Kind != yaml.SequenceNode || len(v.Content) == 0 || len(v.Content) > MostPieces {
		return keyed.Wrong(v, path, fmt.Sprintf("a list of 1 to %d pieces, each with above_bytes, step_ns and bandwidth_bytes_per_s", MostPieces))
	}
	i.Pieces = [MostPieces]Piece{}
	least := int64(1)
	for k, item := range v.Content {
		p := &i.Pieces[k]
		err := keyed.Mapping(item, fmt.Sprintf("%s[%d]", path, k), p.keys(least))
		if err != nil {
			return err
		}
		least = p.AboveBytes + 1
	}
	return nil
}

func (i *Interconnect) read(v *yaml.Node, path string) error {
	err := keyed.Mapping(v, path, i.keys())
	if err == nil && i.HalfDuplex && (i.InputLinks == 0 || i.InputLinks != i.OutputLinks) {
		return keyed.ErrorAt(v, fmt.Sprintf("%s.half_duplex is true: a link then carries messages in or out, so that input_links and output_links must be the same number", path))
	}
	return err
}

func (m *Machine) readThreshold(v *yaml.Node, path string) error {
	m.EagerThresholdGiven = true
	return keyed.OrWord("unlimited", &m.EagerThresholdBytes, NoThreshold,
		keyed.Integer(&m.EagerThresholdBytes, 0, NoThreshold-1))(v, path)
}

// readCollectives reads what operations cost by their names; "all" is for operations that are not named.
func (m *Machine) readCollectives(v *yaml.Node, path string) error {
	var all *cost
	keys := []keyed.Key{{Name: "all", Set: func(v *yaml.Node, path string) error {
		all = new(cost)
		return all.read(v, path)
	}}}
	given := map[schema.CallID]*cost{}
	for id := range schema.CallID(len(schema.Calls)) {
		if _, ok := table3[id]; ok {
			keys = append(keys, keyed.Key{Name: id.String(), Set: func(v *yaml.Node, path string) error {
				c := &cost{at: v}
				given[id] = c
				return c.read(v, path)
			}})
		}
	}
	if err := keyed.Mapping(v, path, keys); err != nil {
		return err
	}
	if all != nil && all.nccl {
		m.NCCL.DoAll(all.algorithm)
	}
	for id := range m.Collectives {
		if c := given[id]; c != nil {
			if err := c.setOn(m, id); err != nil {
				return keyed.ErrorAt(c.at, fmt.Sprintf("%s: %v", keyed.Join(path, id.String()), err))
			}
		} else if all != nil && !all.nccl {
			m.SetCollective(id, all.phases)
		}
	}
	return nil
}

// cost is what an operation costs in a machine's file: phases, or what NCCL takes by an algorithm.
type cost struct {
	phases    Phases
	nccl      bool
	algorithm nccl.Algorithm
	at        *yaml.Node
}

func (c *cost) read(v *yaml.Node, path string) error {
	if v.Kind != yaml.ScalarNode {
		return c.phases.read(v, path)
	}
	c.nccl = true
	if keyed.OneOf(&c.algorithm, ncclWords[:]...)(v, path) != nil {
		return keyed.Wrong(v, path, "a mapping with the keys "+keyed.Names(c.phases.keys())+", or "+
			strings.Join(ncclWords[:], ", "))
	}
	return nil
}

// setOn gives an operation of a machine this cost.
func (c *cost) setOn(m *Machine, operation schema.CallID) error {
	if c.nccl {
		return m.NCCL.Do(operation, c.algorithm)
	}
	m.SetCollective(operation, c.phases)
	return nil
}

func (p *Phases) read(v *yaml.Node, path string) error { return keyed.Mapping(v, path, p.keys()) }

// keys returns the keys of an operation.
func (p *Phases) keys() []keyed.Key {
	return []keyed.Key{
		{Name: "fan_in", Required: true, Set: keyed.OneOf(&p.FanIn, factorNames[:]...), Doc: keyed.Doc{
			Means: "Steps of the fan-in: none, one, one for each rank, or those of a binomial tree.", Example: "LOG"}},
		{Name: "size_in", Required: true, Set: keyed.OneOf(&p.SizeIn, sizeNames[:]...), Doc: keyed.Doc{
			Means: "Bytes of a message of the fan-in.", Example: "2MAX"}},
		{Name: "fan_out", Required: true, Set: keyed.OneOf(&p.FanOut, factorNames[:]...), Doc: keyed.Doc{
			Means: "Steps of the fan-out.", Example: "LOG"}},
		{Name: "size_out", Required: true, Set: keyed.OneOf(&p.SizeOut, sizeNames[:]...), Doc: keyed.Doc{
			Means: "Bytes of a message of the fan-out.", Example: "MAX"}},
	}
}

// Limits of the values of a machine.
const (
	maxCount     = 1 << 30
	maxLatency   = perSecond // ns: 1000 s
	maxBandwidth = 1_000_000_000_000_000_000
)

// count reads a number that can be "unlimited".
func count(to *int) func(*yaml.Node, string) error {
	return keyed.OrWord("unlimited", to, 0, keyed.Integer(to, 1, maxCount))
}

// latency reads ns with at most three decimals.
func latency(to *Picoseconds) func(*yaml.Node, string) error {
	return func(v *yaml.Node, path string) error {
		x := keyed.Number(v)
		if x != nil {
			x.Mul(x, big.NewRat(1000, 1))
		}
		if x == nil || !x.IsInt() || x.Num().Cmp(big.NewInt(maxLatency*1000)) > 0 {
			return keyed.Wrong(v, path, fmt.Sprintf("nanoseconds from 0 to %d with at most three decimals",
				int64(maxLatency)))
		}
		*to = Picoseconds(x.Num().Int64())
		return nil
	}
}

// ratio reads a positive number.
func ratio(to *float64) func(*yaml.Node, string) error {
	return func(v *yaml.Node, path string) error {
		x := keyed.Number(v)
		if x == nil || x.Cmp(big.NewRat(1, 1_000_000)) < 0 || x.Cmp(big.NewRat(1_000_000, 1)) > 0 {
			return keyed.Wrong(v, path, "a number from 0.000001 to 1000000")
		}
		*to, _ = x.Float64()
		return nil
	}
}
