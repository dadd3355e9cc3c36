package models

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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

func TestMappingText(t *testing.T) {
	for text, nodes := range map[string][]int{
		"5":               {5},
		"0x2,1x2":         {0, 0, 1, 1},
		"0-3,0-3":         {0, 1, 2, 3, 0, 1, 2, 3},
		"0-1,2x2,3,1,7-8": {0, 1, 2, 2, 3, 1, 7, 8},
		"1,2x2":           {1, 2, 2},
		"3,2,1,0":         {3, 2, 1, 0},
	} {
		if got := MappingText(nodes); got != text {
			t.Errorf("%v: %s, want %s", nodes, got, text)
		}
		if got, err := ReadMappingText(text); err != nil || !slices.Equal(got, nodes) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0,", "x", "0x", "0x0", "3-1", "-1", "0x16777216,0", "0-99999999", "nodes.txt",
		"0x2x3"} {
		if nodes, err := ReadMappingText(text); err == nil {
			t.Errorf("%s: %d ranks", text, len(nodes))
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

// A configuration may be a stranger's: it names a file beside it or below the working folder, and of that the machine,
// whose text gets into manifests, has only the lines about collectives.
func TestConfigurationsNameNoOtherFiles(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const line = "Machine globalop: 0 0 LIN MAX CTE 2MAX\n"
	secret, beside := write("secret", "key = hunter2\n"+line), write("in/comms", "key = hunter2\n"+line)
	write("in/sub/comms", line)
	if err := errors.Join(os.Symlink(secret, filepath.Join(in, "link")), os.Symlink("comms", filepath.Join(in, "near")),
		syscall.Mkfifo(filepath.Join(in, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	load := func(name string) (*Machine, error) {
		return Load(write("in/m.cfg", cfgOf(`"x", 0, "", 1, 1e-30, 0, 1`,
			`"node information" {0, "", 1, 1, 0, 0.1, 0, 0, 0, 1e-05, 0, 1, 0.0};;`,
			`"predefined mapping information" {"FILL_NODES"};;`, `"configuration files" {"", "", "`+name+`", ""};;`)))
	}
	const outside = "is outside the folder of the configuration"
	for name, want := range map[string]string{
		"comms": "", beside: "", "sub/comms": "", "../in/comms": "", "near": "",
		secret: outside, "../secret": outside, "sub/../../secret": outside, "link": outside, "/etc/hostname": outside,
		"pipe": "is not a regular file", "none": "no such file",
	} {
		m, err := load(name)
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v; want %q", name, err, want)
		case want == "" && (strings.Contains(m.Description, "hunter2") || !strings.HasSuffix(m.Description, "\n"+line)):
			t.Errorf("%s: %s", name, m.Description)
		}
	}
	t.Chdir(dir)
	if _, err := load("secret"); err != nil {
		t.Errorf("below the working folder: %v", err)
	}
}
