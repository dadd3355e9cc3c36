package writer

import (
	"context"
	"os"
	"testing"

	"github.com/commq/commq/schema"
)

// A run that replaces another has its name only when it is complete; until then, and after Abort, the old one is there.
func TestReplaceARun(t *testing.T) {
	store := t.TempDir()
	digest := func() string {
		t.Helper()
		m, err := ReadManifest(store + "/r")
		if err != nil {
			t.Fatal(err)
		}
		return m.Digest
	}
	begin := func(rank int32) (*Run, *schema.Manifest) {
		t.Helper()
		r, err := Create(store, "r", Options{Replace: true})
		if err != nil {
			t.Fatal(err)
		}
		m := &schema.Manifest{Ranks: rank, Epochs: 1, Ended: "finalized", TimeOrigin: "untimed", TimeResolutionNs: 1,
			ComputeClock: "none", Record: "all", Hash: "none"}
		return r, m
	}
	commit := func(r *Run, m *schema.Manifest) {
		t.Helper()
		if err := r.Commit(context.Background(), m); err != nil {
			t.Fatal(err)
		}
	}
	commit(begin(1))
	old := digest()
	r, m := begin(2)
	if digest() != old {
		t.Error("the old run is gone before the new one is complete")
	}
	if err := r.Abort(); err != nil || digest() != old {
		t.Errorf("after Abort: %v, digest %s, want %s", err, digest(), old)
	}
	commit(begin(2))
	if digest() == old || m.Ranks != 2 {
		t.Error("the old run is still there")
	}
	if err := os.Mkdir(store+"/folder", 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := Create(store, "folder", Options{Replace: true})
	wantError(t, err, "exists and is not a run")
	if left, err := os.ReadDir(store); err != nil || len(left) != 2 {
		t.Errorf("%v, %v: something is left behind", left, err)
	}
}
