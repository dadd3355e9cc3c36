package stored

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/models"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

func TestLabelsAreStripped(t *testing.T) {
	for _, anonymous := range []bool{false, true} {
		b := &schema.Events{}
		for _, label := range []string{schema.NullText, "off", "4097", "secret solver"} {
			e := schema.NullEvent
			e.Label, e.PayloadHash, e.Seq = label, 97, 3
			b.Append(&e)
		}
		(&Stripper{Anonymous: anonymous}).strip(b)
		want := []string{schema.NullText, "off", "4097", "secret solver"}
		if anonymous {
			want[3] = schema.NullText
		}
		if diff := cmp.Diff(want, b.Label); diff != "" || b.PayloadHash[3] != schema.NullInt64 || b.Seq[3] != 3 {
			t.Errorf("anonymous %v: hash %d, seq %d (-want +got):\n%s", anonymous, b.PayloadHash[3], b.Seq[3], diff)
		}
	}
}

func TestManifestsAreStripped(t *testing.T) {
	m := &schema.Manifest{Hash: "crc64", HashVerify: true, Warnings: []string{"node7 has a slow clock", "polls"},
		Origin: schema.Origin{Command: []string{"./secret"}, Hosts: []string{"node7", ""},
			MPI: "Open MPI v4.1.4, package: built by ada"}}
	got := (&Stripper{}).manifest(m, run.Rewrite{Name: "shared", Commq: "1.2.3"})
	want := schema.Origin{Name: "shared", Commq: "1.2.3", MPI: "Open MPI v4.1.4"}
	if diff := cmp.Diff(want, got.Origin); diff != "" || got.Hash != "none" || got.HashVerify ||
		!cmp.Equal(got.Warnings, []string{"polls"}) {
		t.Errorf("%+v (-want +got):\n%s", got, diff)
	}
}

func TestOnlyRunsOfProgramsHaveEnded(t *testing.T) {
	for origin, want := range map[string]int64{"measured": models.NoThreshold, "virtual": models.NoThreshold,
		"simulated": 4096, "untimed": 4096} {
		if got := EagerThresholdBytes(&schema.Manifest{TimeOrigin: origin}); got != want {
			t.Errorf("%s: %d, want %d", origin, got, want)
		}
	}
}
