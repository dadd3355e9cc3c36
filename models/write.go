package models

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// WriteYAML writes the machine as YAML, from which Read reads the same values. notes are comments, one line each, by
// the key before which they are written: nodes, network, intra_node, eager_threshold_bytes, collectives, or the name
// of an operation; those of "" are at the top. It is an error when YAML cannot describe the machine, as its nodes
// differ.
func (m *Machine) WriteYAML(w io.Writer, notes map[string][]string) error {
	if m.Uneven != nil || m.Mapping != Block && m.Mapping != RoundRobin || m.Network.BytesPer > 1 ||
		m.IntraNode.BytesPer > 1 || m.CPURatio == 0 {
		return fmt.Errorf("machine %s: it comes from a configuration of Dimemas, with values that a YAML file cannot "+
			"describe", m.Name)
	}
	y := yamlWriter{notes: notes}
	y.note("", "")
	y.note("nodes", "")
	y.line("nodes: %s", unlimited(m.Nodes))
	y.line("cpus_per_node: %d", m.CPUsPerNode)
	y.line("mapping: %s", [...]string{Block: "block", RoundRobin: "round-robin"}[m.Mapping])
	y.line("cpu_ratio: %s", strconv.FormatFloat(m.CPURatio, 'f', -1, 64))
	if m.CycleNs > 0 {
		y.note("cycle_ns", "")
		y.line("cycle_ns: %s", strconv.FormatFloat(m.CycleNs, 'f', 6, 64))
	}
	y.interconnect("network", &m.Network)
	y.interconnect("intra_node", &m.IntraNode)
	y.note("eager_threshold_bytes", "")
	if m.EagerThresholdGiven {
		y.line("eager_threshold_bytes: %s", orUnlimited(m.EagerThresholdBytes))
	}
	y.nccl(&m.NCCL)
	y.collectives(m)
	_, err := y.text.WriteTo(w)
	return err
}

type yamlWriter struct {
	text  bytes.Buffer
	notes map[string][]string
}

func (y *yamlWriter) line(format string, values ...any) { fmt.Fprintf(&y.text, format+"\n", values...) }

// note writes the comments before a key.
func (y *yamlWriter) note(key, indent string) {
	for _, n := range y.notes[key] {
		y.line("%s", strings.TrimRight(indent+"# "+strings.Join(strings.Fields(n), " "), " "))
	}
}

func (y *yamlWriter) interconnect(key string, i *Interconnect) {
	y.note(key, "")
	y.line("%s:", key)
	y.line("  latency_ns: %s", nanoseconds(i.Latency))
	y.line("  bandwidth_bytes_per_s: %s", orInfinite(i.BytesPerSecond))
	y.line("  buses: %s", unlimited(i.Buses))
	y.line("  input_links: %s", unlimited(i.InputLinks))
	y.line("  output_links: %s", unlimited(i.OutputLinks))
	y.line("  half_duplex: %t", i.HalfDuplex)
	for k, p := range i.Pieces {
		if p.AboveBytes == 0 {
			break
		}
		if k == 0 {
			y.line("  pieces:")
		}
		y.line("    - {above_bytes: %d, step_ns: %s, bandwidth_bytes_per_s: %s}", p.AboveBytes, nanoseconds(p.Step),
			orInfinite(p.BytesPerSecond))
	}
}

// nccl writes the key nccl.
func (y *yamlWriter) nccl(c *NCCL) {
	if !c.Given {
		return
	}
	y.line("nccl:")
	y.line("  gpu: %s", gpuWords[c.GPU])
	y.line("  cpu: %s", cpuWords[c.CPU])
	y.line("  inside: %s", linkWords[c.Inside])
	y.line("  nvls: %t", c.NVLS)
	if c.NICsPerNode > 0 {
		y.line("  nics_per_node: %d", c.NICsPerNode)
	}
	y.line("  nic_latency_ns: %s", nanoseconds(c.NICLatency))
}

// collectives writes the declared operations and those that NCCL does.
func (y *yamlWriter) collectives(m *Machine) {
	lines := map[string]string{}
	for id := range m.Declared {
		p := m.Collectives[id]
		lines[id.String()] = fmt.Sprintf("{fan_in: %s, size_in: %s, fan_out: %s, size_out: %s}", p.FanIn, p.SizeIn,
			p.FanOut, p.SizeOut)
	}
	for id, a := range m.NCCL.Algorithms {
		lines[id.String()] = ncclWords[a]
	}
	if len(lines) == 0 {
		return
	}
	y.note("collectives", "")
	y.line("collectives:")
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		y.note(name, "  ")
		y.line("  %s: %s", name, lines[name])
	}
}

func unlimited(n int) string {
	if n == 0 {
		return "unlimited"
	}
	return strconv.Itoa(n)
}

func orUnlimited(bytes int64) string {
	if bytes == NoThreshold {
		return "unlimited"
	}
	return strconv.FormatInt(bytes, 10)
}

func orInfinite(bytesPerSecond int64) string {
	if bytesPerSecond == 0 {
		return "infinite"
	}
	return strconv.FormatInt(bytesPerSecond, 10)
}

// nanoseconds formats a time in ns, exactly.
func nanoseconds(p Picoseconds) string {
	text := fmt.Sprintf("%d.%03d", p/1000, p%1000)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}
