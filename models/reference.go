package models

import (
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/internal/keyed"
)

//go:generate go run ./internal/gendocs ../docs/reference/machines.md

// Markdown returns the reference of the keys of machine files and of the built-in machines.
func Markdown() string {
	var b strings.Builder
	m := flat()
	b.WriteString("# Keys of a machine\n\nA machine file says in YAML what communication and computing cost on a computer. " +
		"`--machine FILE` of `commq simulate` and other\ncommands reads it, `commq calibrate` writes one. " +
		"[The time model](../method/time-model.md) has the formulas. `go generate ./models` makes\nthis page.\n\n" +
		exampleMachine() +
		"\nOnly `network` with its latency and bandwidth must be there. Unknown keys, keys that are there twice and values out of\n" +
		"range are errors, with the line. `--set KEY=VALUE` changes a key with a single value: `--set nodes=8`, `--set\n" +
		"intra_node.latency_ns=300`; without a prefix a key of a network is that of `network`.\n" +
		"`bandwidth_bytes_per_s` set so, or swept, is for messages of all sizes: it replaces [pieces](#a-piece).\n\n")
	intra := false
	b.WriteString("## The machine\n\n" + keyed.Table(m.keys(&intra)))
	b.WriteString("\n## network and intra_node\n\n" + keyed.Table(m.Network.keys()))
	b.WriteString("\n### A piece\n\n`pieces` are for networks whose bandwidth depends on the size; `commq calibrate` finds them.\n" +
		fmt.Sprintf("There are at most %d.\n\n", MostPieces) + keyed.Table(new(Piece).keys(1)))
	b.WriteString("\n## nccl\n\nNCCL's part of a machine of GPUs. It reads `cpus_per_node` as the GPUs of a node, the bandwidth of `intra_node` as\n" +
		"that of a GPU inside its node, and the bandwidth of `network` as that of a NIC. The latencies of both are for single\n" +
		"messages: NCCL has its own. [The formulas](../method/nccl.md).\n\n" + keyed.Table(new(NCCL).keys()))
	b.WriteString("\n## collectives\n\nThe key is an operation, in its blocking form, or `all` for those that are not named. Its value has these keys:\n\n    all:\n" +
		keyed.Block(new(Phases).keys(), "      ") + "\n" +
		keyed.Table(new(Phases).keys()) + "\n[What the words mean](../method/time-model.md#a-collective). Instead of " +
		"the keys the value may be a word, where the machine has\n" +
		"`nccl`: `nccl` is what NCCL takes for the size and the ranks, `nccl-ring`, `nccl-tree`, `nccl-nvls` " +
		"and `nccl-pat` are one algorithm.\n" +
		"`all: nccl-tree` is that algorithm where NCCL has it, else `nccl`; operations that NCCL does not have keep their phases.\n" +
		"`--set collectives.all=nccl-ring` changes it.\n\n" +
		"    nccl: {gpu: hopper, nvls: true}\n    collectives: {all: nccl, MPI_Allreduce: nccl-tree}\n\nThe operations: " +
		"`all`, `" + strings.Join(operations(), "`, `") + "`.\n")
	b.WriteString("\n## Built-in machines\n\n`--machine` takes these names too. Where messages wait for each other, or NCCL does\n" +
		"collectives, [simulator ranks](../method/simulator-ranks.md) cannot have the machine; `commq simulate` can.\n\n" +
		"| name | latency_ns | bandwidth_bytes_per_s | simulator ranks | what it is, and where its numbers come from |\n|---|---|---|---|---|\n")
	for _, name := range Names() {
		b.WriteString(builtIn(name))
	}
	return b.String()
}

// exampleMachine returns a file with every key.
func exampleMachine() string {
	m, intra := flat(), false
	var b strings.Builder
	for _, k := range m.keys(&intra) {
		switch k.Name {
		case "network":
			b.WriteString("    network:\n" + keyed.Block(m.Network.keys(), "      "))
			continue
		case "nccl":
			b.WriteString("    nccl:\n" + keyed.Block(m.NCCL.keys(), "      "))
			continue
		}
		b.WriteString(keyed.Block([]keyed.Key{k}, "    "))
	}
	return b.String()
}

// operations lists the operations that collectives can name.
func operations() []string {
	var names []string
	for id := range table3 {
		names = append(names, id.String())
	}
	slices.Sort(names)
	return names
}

// builtIn returns the row of a built-in machine. Its text is the comment at the top of its file.
func builtIn(name string) string {
	m, err := Named(name)
	if err != nil {
		panic(err) // the file is part of this package
	}
	var text []string
	for _, line := range strings.Split(m.Description, "\n") {
		comment, ok := strings.CutPrefix(line, "# ")
		if !ok {
			break
		}
		text = append(text, comment)
	}
	stateless := "yes"
	if _, err := m.Stateless(1); err != nil {
		stateless = "no"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", name, nanoseconds(m.Network.Latency),
		orInfinite(m.Network.BytesPerSecond), stateless, strings.Join(text, " "))
}
