package models

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/commq/commq/internal/keyed"
)

func TestReferenceIsUpToDate(t *testing.T) {
	got, err := os.ReadFile("../docs/reference/machines.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != Markdown() {
		t.Error("docs/reference/machines.md is not up to date; run go generate ./models and commit it")
	}
}

// Each key is described, its example can be read, and its default is what leaving it out means.
func TestKeysAreDescribed(t *testing.T) {
	// words are defaults that are no value of the key.
	words := map[string]bool{"cycle_ns": true, "intra_node": true, "collectives": true, "pieces": true,
		"nccl": true}
	intra := false
	const network = "network: {latency_ns: 1, bandwidth_bytes_per_s: 1%}\n"
	for _, part := range []struct {
		keys []keyed.Key
		file string // with % for the key, after those that it needs
	}{
		{flat().keys(&intra), "%\n"},
		{flat().Network.keys(), "network: {%}"},
		{new(Piece).keys(1), strings.Replace(network, "%", ", pieces: [{%}]", 1)},
		{new(NCCL).keys(), strings.Replace(network, "%", "", 1) + "nccl: {%}"},
		{new(Phases).keys(), strings.Replace(network, "%", "", 1) + "collectives: {all: {%}}"},
	} {
		var required []string
		for _, k := range part.keys {
			if k.Required {
				required = append(required, k.Name+": "+k.Example)
			}
		}
		for _, k := range part.keys {
			if k.Means == "" || k.Example == "" || k.Required != (k.Default == "") {
				t.Errorf("%s lacks its meaning, example or default: %+v", k.Name, k.Doc)
				continue
			}
			if !strings.HasPrefix(k.Values(), "a ") && !strings.Contains(k.Values(), " or ") &&
				!strings.HasPrefix(k.Values(), "nanoseconds ") {
				t.Errorf("%s takes %q", k.Name, k.Values())
			}
			if k.Required {
				continue
			}
			separator := ", "
			if part.file == "%\n" {
				separator = "\n"
			}
			others := append([]string{}, required...)
			switch k.Name {
			case "half_duplex":
				others = append(others, "input_links: 1", "output_links: 1")
			case "mapping":
				others = append(others, "nodes: 2")
			case "cpus_per_node":
				others = append(others, "intra_node: {latency_ns: 1, bandwidth_bytes_per_s: 1}")
			}
			without := strings.Join(others, separator)
			read := func(value string) Machine {
				m := *mustRead(t, strings.Replace(part.file, "%", without+separator+k.Name+": "+value, 1))
				m.Description, m.EagerThresholdGiven, m.Declared = "", false, nil
				return m
			}
			usual := *mustRead(t, strings.Replace(part.file, "%", without, 1))
			usual.Description, usual.EagerThresholdGiven, usual.Declared = "", false, nil
			// The examples of these are the defaults.
			if reflect.DeepEqual(read(k.Example), usual) && k.Name != "collectives" && k.Name != "inside" {
				t.Errorf("the example of %s changes nothing", k.Name)
			}
			if value := strings.Trim(k.Default, "`"); !words[k.Name] && !reflect.DeepEqual(read(value), usual) {
				t.Errorf("the default of %s is not %s", k.Name, value)
			}
		}
	}
}

// The example at the top of the page can be read, and has every key of a machine.
func TestExampleMachine(t *testing.T) {
	m := mustRead(t, strings.ReplaceAll(exampleMachine(), "\n    ", "\n")[4:])
	if m.CPUsPerNode != 4 || m.Mapping != RoundRobin || !m.Network.HalfDuplex || m.Network.Pieces[0].AboveBytes == 0 ||
		m.IntraNode.Latency != 500_000 {
		t.Errorf("%+v", m)
	}
	for _, key := range SetKeys() {
		if key == "collectives.all" {
			continue // an operation, not a key
		}
		if name := key[strings.LastIndex(key, ".")+1:]; !strings.Contains(exampleMachine(), name+": ") {
			t.Errorf("the example lacks %s", name)
		}
	}
}
