package run

import (
	"testing"

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
	got, err := Discloses(t.Context(), dir, m)
	const want = "4 hosts (node7, node8, login, ...), 2 users (ada, bob), the command line, "
	if err != nil || len(got) < len(want) || got[:len(want)] != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	t.Log(got)
	const other = "../testdata/runs/is.A.16"
	if m, err = writer.ReadManifest(other); err != nil {
		t.Fatal(err)
	}
	m.Origin.Hosts, m.Origin.Command = nil, nil
	if got, err = Discloses(t.Context(), other, m); err != nil {
		t.Errorf("%q, %v", got, err)
	}
	t.Log(got)
}
