package models

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// CommunicationsFile returns the name of the communications file that is written beside a configuration: net.comms.cfg
// beside net.cfg.
func CommunicationsFile(config string) string {
	return strings.TrimSuffix(config, filepath.Ext(config)) + ".comms.cfg"
}

// CFG returns the machine as a configuration of Dimemas for a program with this number of ranks, and its
// communications file, to which the configuration refers as comms. notes are sentences about settings that Dimemas
// takes elsewhere. If a configuration cannot express the machine, the error names the key.
func (m *Machine) CFG(ranks int, comms string) (config, communications []byte, notes []string, err error) {
	w := &cfgWriter{m: m}
	nodes, rule, err := m.cfgMapping(ranks)
	if err != nil {
		return nil, nil, nil, m.noCFG(err)
	}
	if strings.ContainsAny(comms, "\",{}\n/*") {
		return nil, nil, nil, fmt.Errorf("machine %s: the name %q of the communications file contains characters "+
			"that are not allowed in a configuration", m.Name, comms)
	}
	model, err := w.collectives()
	if err != nil {
		return nil, nil, nil, m.noCFG(err)
	}
	bandwidth, err := m.Network.cfgBandwidth()
	if err != nil {
		return nil, nil, nil, m.noCFG(fmt.Errorf("network.%w", err))
	}
	b := &w.config
	fmt.Fprintln(b, cfgHeader)
	fmt.Fprintln(b, `"wide area network information" {"", 1, 0, 4, 0.0, 0.0, 1};;`)
	fmt.Fprintf(b, "\"environment information\" {\"machine\", 0, \"\", %d, %s, %d, %d};;\n", nodes, bandwidth,
		m.Network.Buses, model)
	if err := w.nodes(nodes); err != nil {
		return nil, nil, nil, m.noCFG(err)
	}
	fmt.Fprintf(b, "\"predefined mapping information\" {\"%s\"};;\n", rule)
	fmt.Fprintf(b, "\"configuration files\" {\"\", \"\", \"%s\", \"\"};;\n", comms)
	if m.EagerThresholdBytes != NoThreshold {
		w.notes = append(w.notes, fmt.Sprintf("A configuration has no eager_threshold_bytes: start Dimemas with -S "+
			"%d, or give the sends of the trace their protocol.", m.EagerThresholdBytes))
	}
	return w.config.Bytes(), w.comms.Bytes(), w.notes, nil
}

func (m *Machine) noCFG(err error) error {
	return fmt.Errorf("machine %s cannot be written as a configuration of Dimemas: %w", m.Name, err)
}

// cfgWriter writes the two files.
type cfgWriter struct {
	m             *Machine
	config, comms bytes.Buffer
	notes         []string
}

// cfgMapping returns the number of nodes and Dimemas' rule for the mapping.
func (m *Machine) cfgMapping(ranks int) (nodes int, rule string, err error) {
	if ranks < 1 {
		return 0, "", fmt.Errorf("%d ranks; want the number of the program's ranks", ranks)
	}
	nodes, of, err := m.Place(ranks)
	if err != nil {
		return 0, "", err
	}
	perNode := func(n int) (int, string, error) { return nodes, strconv.Itoa(n) + " TASKS_PER_NODE", nil }
	switch {
	case m.Mapping == RoundRobin:
		return nodes, "INTERLEAVED", nil
	case m.Mapping == PerNode:
		return perNode(m.RanksPerNode)
	case m.Mapping == Fill || m.Uneven != nil && m.Mapping == Block:
		return nodes, "FILL_NODES", nil
	}
	if first := slices.IndexFunc(of, func(n int32) bool { return n != of[0] }); first < 0 {
		first = ranks
		if of[0] == 0 {
			return perNode(first)
		}
	} else if slices.Equal(of, placed(ranks, func(r int) int { return r / first })) {
		return perNode(first)
	}
	if slices.Equal(of, placed(ranks, func(r int) int { return r % nodes })) {
		return nodes, "INTERLEAVED", nil
	}
	return 0, "", fmt.Errorf("mapping is a list of nodes, which Dimemas 5.5.0 cannot read; it has the rules n ranks " +
		"per node, one rank per CPU, and in turn")
}

func placed(ranks int, node func(rank int) int) []int32 {
	of := make([]int32, ranks)
	for r := range of {
		of[r] = int32(node(r))
	}
	return of
}

// nodes writes the nodes, with one record for consecutive nodes that are equal.
func (w *cfgWriter) nodes(nodes int) error {
	for i := 0; i < nodes; {
		n, equal := w.m.NodeAt(i), 1
		if w.m.Uneven == nil {
			equal = nodes
		}
		for ; i+equal < nodes && w.m.NodeAt(i+equal) == n; equal++ {
		}
		text, err := n.cfg()
		if err != nil {
			return err
		}
		fmt.Fprintf(&w.config, "\"multi node information\" {0, %d, \"\", %s, 0.0};;\n", equal, text)
		i += equal
	}
	return nil
}

// cfg returns the fields of a node from its CPUs on, except the last.
func (n *Node) cfg() (string, error) {
	inside, err := n.IntraNode.cfgBandwidth()
	if err != nil {
		return "", fmt.Errorf("intra_node.%w", err)
	}
	var text []string
	for _, x := range []struct {
		key     string
		latency Picoseconds
		in, out int
		half    bool
	}{
		{"intra_node", n.IntraNode.Latency, n.IntraNode.InputLinks, n.IntraNode.OutputLinks, n.IntraNode.HalfDuplex},
		{"network", n.Latency, n.InputLinks, n.OutputLinks, n.HalfDuplex},
	} {
		if x.latency > 0 && x.latency < 1000 {
			return "", fmt.Errorf("%s.latency_ns is less than 1, which Dimemas treats as 0 for messages", x.key)
		}
		if !x.half && (x.in == 0) != (x.out == 0) {
			return "", fmt.Errorf("%s has %d input and %d output links, 0 for any number; in a configuration this "+
				"means half duplex", x.key, x.in, x.out)
		}
		if x.half {
			x.out = 0
		}
		text = append(text, decimal(big.NewRat(int64(x.latency), perSecond)), fmt.Sprintf("%d, %d", x.in, x.out))
	}
	ratio := strconv.FormatFloat(n.CPURatio, 'f', -1, 64)
	if !strings.Contains(ratio, ".") {
		ratio += ".0"
	}
	return fmt.Sprintf("%d, %s, %s, %s, %d, %s, %s, %s", n.CPUs, ratio, text[0], inside, n.IntraNode.Buses, text[1],
		text[2], text[3]), nil
}

// cfgBandwidth returns the bandwidth in MB/s.
func (i *Interconnect) cfgBandwidth() (string, error) {
	if i.Pieces[0].AboveBytes != 0 {
		return "", errors.New("pieces makes the bandwidth depend on the size; a configuration has one bandwidth " +
			"for all sizes")
	}
	if i.BytesPerSecond == 0 {
		return "0.0", nil
	}
	text := decimal(big.NewRat(i.BytesPerSecond, max(i.BytesPer, 1)*megabyte))
	if strings.Trim(text, "0.") == "" {
		return "", fmt.Errorf("bandwidth_bytes_per_s is so low that it would be written as 0 MB/s, which means " +
			"infinitely fast")
	}
	return text, nil
}

// decimal formats a number with at most 100 decimals.
func decimal(x *big.Rat) string {
	text := strings.TrimRight(x.FloatString(100), "0")
	if strings.HasSuffix(text, ".") {
		text += "0"
	}
	return text
}

// collectives writes the communications file and returns the default model for the environment.
func (w *cfgWriter) collectives() (model Factor, err error) {
	var byDefault []string
	model = LOG
	if len(w.m.NCCL.Algorithms) > 0 {
		return 0, errors.New("collectives are NCCL's, which Dimemas does not have; give them phases")
	}
	for n, op := range dimemasOperations {
		p := w.m.Collectives[op]
		if p.SizeIn == CURRENT || p.SizeOut == CURRENT {
			if p.SizeIn != p.SizeOut || p.FanIn != p.FanOut || p.FanIn == None {
				return 0, fmt.Errorf("collectives.%s has the size CURRENT, which Dimemas has only for operations "+
					"whose phases both have the default model", op)
			}
			if byDefault != nil && p.FanIn != model {
				return 0, fmt.Errorf("collectives.%s has the model %s and the size CURRENT, and %s the model %s; "+
					"Dimemas has one default model", op, p.FanIn, byDefault[0], model)
			}
			byDefault, model = append(byDefault, op.String()), p.FanIn
			continue
		}
		fmt.Fprintf(&w.comms, "Machine globalop: 0 %d %s %s %s %s\n", n, cfgFactors[p.FanIn], p.SizeIn,
			cfgFactors[p.FanOut], p.SizeOut)
	}
	for op := range w.m.Declared {
		if !slices.Contains(dimemasOperations[:], op) {
			w.notes = append(w.notes, fmt.Sprintf("Dimemas does not have the operation %s.", op))
		}
	}
	slices.Sort(w.notes)
	return model, nil
}
