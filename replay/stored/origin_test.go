package stored

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

func TestOriginOfReplay(t *testing.T) {
	o := schema.Origin{Command: []string{"player", "schedule"}, MPI: "MPICH 4"}
	r := &run.Run{Name: "cg.A.4", Manifest: &schema.Manifest{Digest: "d7"}}
	SetOrigin(&o, r, "zero", []string{"io"})
	want := schema.Origin{MPI: "MPICH 4",
		Replay: &schema.Replay{Run: "cg.A.4", RunDigest: "d7", Compute: "zero", Skip: []string{"io"}, Of: "captured"}}
	if d := cmp.Diff(want, o); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// Only measured times are those of the program.
func TestNewPhasePrediction(t *testing.T) {
	for origin, known := range map[string]bool{"measured": true, "simulated": false, "untimed": false} {
		p := NewPhasePrediction(&run.Run{Name: "r", Manifest: &schema.Manifest{Ranks: 3, TimeOrigin: origin, EndNs: 4097}}, 7)
		if p.Run != "r" || p.Ranks != 3 || p.Repeat != 7 || (p.RunNs != nil) != known || known && *p.RunNs != 4097 {
			t.Errorf("%s: %+v", origin, p)
		}
	}
}
