package models

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseMapping(t *testing.T) {
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	listed := file("listed", "# two nodes\n1\n\n0 # the second rank\n1\n")
	for _, c := range []struct {
		value string
		nodes int
		want  Mapping
		err   string
	}{
		{"block", 0, Block, ""},
		{"cyclic", 3, RoundRobin, ""},
		{"cyclic", 0, 0, "--set nodes=N"},
		{listed, 0, Listed, ""},
		{filepath.Join(folder, "missing"), 0, 0, "want block, cyclic or a file"},
		{file("wrong", "0\n-1\n"), 0, 0, `wrong:2: "-1" is not the number of a node`},
	} {
		m := &Machine{Nodes: c.nodes}
		err := ParseMapping(m, c.value)
		switch {
		case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, want %q", c.value, err, c.err)
		case c.err == "" && m.Mapping != c.want:
			t.Errorf("%s: mapping %v, want %v", c.value, m.Mapping, c.want)
		case c.value == listed && !slices.Equal(m.NodeOf, []int{1, 0, 1}):
			t.Errorf("%s: nodes %v", c.value, m.NodeOf)
		}
	}
}

func TestLoadReadsNamesAndFiles(t *testing.T) {
	if m, err := Load("flat"); err != nil || m.Name != "flat" {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := Load("./flat"); err == nil || !strings.Contains(err.Error(), "the machines with a name are") {
		t.Errorf("%v", err)
	}
}
