package run

import (
	"strings"
	"testing"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

func TestDiscloses(t *testing.T) {
	const dir = "../testdata/runs/uneven.4"
	m, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Origin.Hosts = []string{"node7", "node8", "login", "node9"}
	m.Origin.Command = []string{"/home/ada/bin/uneven", "-o", "/u/b/bob/out", "relative/x"}
	m.Origin.Launcher = []string{"mpirun", "--host", "node7,node8"}
	m.Origin.Simulation = &schema.Simulation{Machine: "/home/cleo/m.yaml", Description: "commq_machine: 1\n"}
	got, err := Discloses(t.Context(), dir, m)
	const want = "4 hosts (node7, node8, login, ...), 3 users (ada, bob, cleo), the command line, the launcher line, " +
		"the text of the machine's file, "
	if err != nil || len(got) < len(want) || got[:len(want)] != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	t.Log(got)
	const other = "../testdata/runs/is.A.16"
	if m, err = writer.ReadManifest(other); err != nil {
		t.Fatal(err)
	}
	m.Origin.Hosts, m.Origin.Command, m.Origin.Launcher = nil, nil, nil
	m.Origin.Simulation = &schema.Simulation{Machine: "flat", Description: "commq_machine: 1\n"}
	if got, err = Discloses(t.Context(), other, m); err != nil || strings.Contains(got, "line") || strings.Contains(got, "machine") {
		t.Errorf("%q, %v", got, err)
	}
	t.Log(got)
}
