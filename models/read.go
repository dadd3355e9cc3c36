package models

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/commq/commq/schema"
)

// maxFileBytes bounds what is read of a machine's file: a description has some hundred bytes.
const maxFileBytes = 1 << 20

// Read reads a machine from YAML (docs/method/time-model.md has the keys). The name, a path, is for messages. An error says
// the line, the key, what was found there and what it should be.
func Read(name string, r io.Reader) (*Machine, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("machine %s: %w", name, err)
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("machine %s: more than %d bytes: not a description of a machine", name, maxFileBytes)
	}
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil {
		return nil, fmt.Errorf("machine %s: not YAML: %w", name, err)
	}
	m := flat()
	m.Name, m.Description = name, string(data)
	root := &doc
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		root = doc.Content[0]
	}
	if err := m.read(root); err != nil {
		return nil, fmt.Errorf("machine %s:%w", name, err)
	}
	return m, nil
}

// key is a key of a mapping and what takes its value.
type key struct {
	name     string
	required bool
	set      func(v *yaml.Node, path string) error
}

func (m *Machine) read(root *yaml.Node) error {
	intra := false
	top := append(m.scalars(),
		key{"mapping", false, oneOf(&m.Mapping, "block", "round-robin")},
		key{"network", true, m.Network.read},
		key{"intra_node", false, func(v *yaml.Node, path string) error { intra = true; return m.IntraNode.read(v, path) }},
		key{"collectives", false, m.readCollectives},
	)
	if err := mapping(root, "", top); err != nil {
		return err
	}
	if m.Mapping == RoundRobin && m.Nodes == 0 {
		return at(root, "mapping is round-robin and nodes is unlimited: say how many nodes the ranks are dealt out to")
	}
	if !intra && m.CPUsPerNode > 1 {
		return at(root, fmt.Sprintf("cpus_per_node is %d and intra_node is missing: say what messages inside a node cost, with the keys of network", m.CPUsPerNode))
	}
	if !intra {
		m.IntraNode = Interconnect{Latency: m.Network.Latency, BytesPerSecond: m.Network.BytesPerSecond}
	}
	return nil
}

// scalars are the keys of a machine that have one value each.
func (m *Machine) scalars() []key {
	return []key{
		{"nodes", false, count(&m.Nodes)},
		{"cpus_per_node", false, whole(&m.CPUsPerNode, 1, maxCount)},
		{"cpu_ratio", false, ratio(&m.CPURatio)},
		{"eager_threshold_bytes", false, m.readThreshold},
	}
}

// keys are those of network and intra_node.
func (i *Interconnect) keys() []key {
	return []key{
		{"latency_ns", true, latency(&i.Latency)},
		{"bandwidth_bytes_per_s", true, orWord("infinite", &i.BytesPerSecond, 0, whole(&i.BytesPerSecond, 1, maxBandwidth))},
		{"buses", false, count(&i.Buses)},
		{"input_links", false, count(&i.InputLinks)},
		{"output_links", false, count(&i.OutputLinks)},
		{"half_duplex", false, truth(&i.HalfDuplex)},
		{"pieces", false, i.readPieces},
	}
}

// readPieces takes a list of pieces.
func (i *Interconnect) readPieces(v *yaml.Node, path string) error {
	if v.Kind != yaml.SequenceNode || len(v.Content) == 0 || len(v.Content) > MostPieces {
		return wrong(v, path, fmt.Sprintf("a list of 1 to %d pieces, each with above_bytes, step_ns and bandwidth_bytes_per_s", MostPieces))
	}
	i.Pieces = [MostPieces]Piece{}
	least := int64(1)
	for k, item := range v.Content {
		p := &i.Pieces[k]
		err := mapping(item, fmt.Sprintf("%s[%d]", path, k), []key{
			{"above_bytes", true, whole(&p.AboveBytes, least, NoThreshold-1)},
			{"step_ns", false, latency(&p.Step)},
			{"bandwidth_bytes_per_s", true, orWord("infinite", &p.BytesPerSecond, 0, whole(&p.BytesPerSecond, 1, maxBandwidth))},
		})
		if err != nil {
			return err
		}
		least = p.AboveBytes + 1
	}
	return nil
}

func (i *Interconnect) read(v *yaml.Node, path string) error {
	err := mapping(v, path, i.keys())
	if err == nil && i.HalfDuplex && (i.InputLinks == 0 || i.InputLinks != i.OutputLinks) {
		return at(v, fmt.Sprintf("%s.half_duplex is true: a link then carries messages in or out, so that input_links and output_links must be the same number", path))
	}
	return err
}

func (m *Machine) readThreshold(v *yaml.Node, path string) error {
	m.EagerThresholdGiven = true
	return orWord("unlimited", &m.EagerThresholdBytes, NoThreshold, whole(&m.EagerThresholdBytes, 0, NoThreshold-1))(v, path)
}

// readCollectives takes rows of the table by the operations' names; the row "all" is for those that are not named.
func (m *Machine) readCollectives(v *yaml.Node, path string) error {
	var all Phases
	keys := []key{{"all", false, all.read}}
	given := map[schema.CallID]*Phases{}
	for id := range schema.CallID(len(schema.Calls)) {
		if _, ok := table3[id]; ok {
			p := new(Phases)
			keys = append(keys, key{id.String(), false, func(v *yaml.Node, path string) error { given[id] = p; return p.read(v, path) }})
		}
	}
	if err := mapping(v, path, keys); err != nil {
		return err
	}
	for id := range m.Collectives {
		if p := given[id]; p != nil {
			m.SetCollective(id, *p)
		} else if has(v, "all") {
			m.SetCollective(id, all)
		}
	}
	return nil
}

func (p *Phases) read(v *yaml.Node, path string) error {
	return mapping(v, path, []key{
		{"fan_in", true, oneOf(&p.FanIn, factorNames[:]...)},
		{"size_in", true, oneOf(&p.SizeIn, sizeNames[:]...)},
		{"fan_out", true, oneOf(&p.FanOut, factorNames[:]...)},
		{"size_out", true, oneOf(&p.SizeOut, sizeNames[:]...)},
	})
}

// Bounds of what a machine can have.
const (
	maxCount     = 1 << 30
	maxLatency   = perSecond // ns: 1000 s
	maxBandwidth = 1_000_000_000_000_000_000
)

// mapping reads the keys of a mapping.
func mapping(v *yaml.Node, path string, keys []key) error {
	if v.Kind != yaml.MappingNode {
		return wrong(v, path, "a mapping with the keys "+names(keys))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(v.Content); i += 2 {
		name, value := v.Content[i], v.Content[i+1]
		k := slices.IndexFunc(keys, func(k key) bool { return name.Kind == yaml.ScalarNode && k.name == name.Value })
		switch {
		case k < 0:
			return at(name, fmt.Sprintf("%s is no key here; there are %s", join(path, found(name)), names(keys)))
		case seen[name.Value]:
			return at(name, fmt.Sprintf("%s is there a second time; remove one of them", join(path, name.Value)))
		}
		seen[name.Value] = true
		if err := keys[k].set(value, join(path, name.Value)); err != nil {
			return err
		}
	}
	for _, k := range keys {
		if k.required && !seen[k.name] {
			return at(v, fmt.Sprintf("%s is missing; add it", join(path, k.name)))
		}
	}
	return nil
}

// has says whether a mapping has a key.
func has(v *yaml.Node, name string) bool {
	for i := 0; i+1 < len(v.Content); i += 2 {
		if v.Content[i].Value == name {
			return true
		}
	}
	return false
}

func names(keys []key) string {
	var n []string
	for _, k := range keys {
		n = append(n, k.name)
	}
	return strings.Join(n, ", ")
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func at(v *yaml.Node, what string) error { return fmt.Errorf("%d: %w", v.Line, errors.New(what)) }

func wrong(v *yaml.Node, path, want string) error {
	if path == "" {
		return at(v, fmt.Sprintf("found %s; want %s", found(v), want))
	}
	return at(v, fmt.Sprintf("%s is %s; want %s", path, found(v), want))
}

// found is what stands there, for a message.
func found(v *yaml.Node) string {
	const most = 40
	switch {
	case v.Kind == yaml.MappingNode:
		return "a mapping"
	case v.Kind == yaml.SequenceNode:
		return "a list"
	case v.Kind == yaml.AliasNode:
		return "an alias (*" + v.Value + ")"
	case v.Kind != yaml.ScalarNode || v.Value == "":
		return "empty"
	case len(v.Value) > most:
		return fmt.Sprintf("%.*q...", most, v.Value)
	}
	return fmt.Sprintf("%q", v.Value)
}

// numberText is a decimal number as machines have them; its bounded length bounds the work on it. Its bounds also make it long
// to compile, which each start of commq would wait for.
var numberText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?$`)
})

// number is the exact value of a scalar; nil when it is no number.
func number(v *yaml.Node) *big.Rat {
	if v.Kind != yaml.ScalarNode || !numberText().MatchString(v.Value) {
		return nil
	}
	x, ok := new(big.Rat).SetString(v.Value)
	if !ok {
		return nil
	}
	return x
}

// whole takes a whole number from least to most.
func whole[T int | int64](to *T, least, most T) func(*yaml.Node, string) error {
	return func(v *yaml.Node, path string) error {
		x := number(v)
		if x == nil || !x.IsInt() || x.Num().Cmp(big.NewInt(int64(least))) < 0 || x.Num().Cmp(big.NewInt(int64(most))) > 0 {
			return wrong(v, path, fmt.Sprintf("a whole number from %d to %d", least, most))
		}
		*to = T(x.Num().Int64())
		return nil
	}
}

// orWord takes a word that stands for a value, or what set takes.
func orWord[T int | int64](word string, to *T, value T, set func(*yaml.Node, string) error) func(*yaml.Node, string) error {
	return func(v *yaml.Node, path string) error {
		if v.Kind == yaml.ScalarNode && v.Value == word {
			*to = value
			return nil
		}
		if err := set(v, path); err != nil {
			return fmt.Errorf("%w, or %s", err, word)
		}
		return nil
	}
}

// count takes a number of things that can be unlimited.
func count(to *int) func(*yaml.Node, string) error {
	return orWord("unlimited", to, 0, whole(to, 1, maxCount))
}

// latency takes ns with at most three decimals.
func latency(to *Picoseconds) func(*yaml.Node, string) error {
	return func(v *yaml.Node, path string) error {
		x := number(v)
		if x != nil {
			x.Mul(x, big.NewRat(1000, 1))
		}
		if x == nil || !x.IsInt() || x.Num().Cmp(big.NewInt(maxLatency*1000)) > 0 {
			return wrong(v, path, fmt.Sprintf("nanoseconds from 0 to %d with at most three decimals", int64(maxLatency)))
		}
		*to = Picoseconds(x.Num().Int64())
		return nil
	}
}

// ratio takes a positive number.
func ratio(to *float64) func(*yaml.Node, string) error {
	return func(v *yaml.Node, path string) error {
		x := number(v)
		if x == nil || x.Cmp(big.NewRat(1, 1_000_000)) < 0 || x.Cmp(big.NewRat(1_000_000, 1)) > 0 {
			return wrong(v, path, "a number from 0.000001 to 1000000")
		}
		*to, _ = x.Float64()
		return nil
	}
}

// oneOf takes one of some words; the value is its place among them.
func oneOf[T ~uint8](to *T, words ...string) func(*yaml.Node, string) error {
	return func(v *yaml.Node, path string) error {
		i := slices.Index(words, v.Value)
		if i < 0 || v.Kind != yaml.ScalarNode {
			return wrong(v, path, strings.Join(words[:len(words)-1], ", ")+" or "+words[len(words)-1])
		}
		*to = T(i)
		return nil
	}
}

// truth takes false or true.
func truth(to *bool) func(*yaml.Node, string) error {
	var word uint8
	set := oneOf(&word, "false", "true")
	return func(v *yaml.Node, path string) error {
		err := set(v, path)
		*to = word == 1
		return err
	}
}
