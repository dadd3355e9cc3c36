package detect

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/detect/rankset"
)

// onlyRuns stores sets as runs at any number of ranks, with ample room.
func onlyRuns() *rankset.Room { return &rankset.Room{All: 1 << 20, Runs: 1 << 20, Members: 1 << 20} }

// Findings do not depend on how sets are stored.
func TestFindingsDoNotDependOnSetRepresentation(t *testing.T) {
	for seed := range uint64(60) {
		run, kinds := RandomSpreading(t, seed)
		if seed%2 == 1 {
			run, kinds = RandomCombining(seed)
		}
		want := found(t, run, Options{})
		if d := cmp.Diff(want, found(t, run, Options{sets: onlyRuns()})); d != "" {
			t.Errorf("seed %d (%v): bits, runs:\n%s", seed, kinds, d)
		}
	}
}

// Messages whose sets do not fit in memory are counted as left out.
func TestSetsThatDoNotFitAreReported(t *testing.T) {
	run, _ := RandomSpreading(t, 3)
	whole, err := Detect(run, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for what, room := range map[string]rankset.Room{"runs": {All: 2, Runs: 2, Members: 1 << 20},
		"members": {All: 1 << 20, Runs: 1 << 20, Members: 3}} {
		r, err := Detect(run, Options{sets: &room})
		if err != nil {
			t.Fatal(err)
		}
		if whole.NoRoom != 0 || r.NoRoom == 0 || r.LeftOut < r.NoRoom || len(r.Findings) >= len(whole.Findings) {
			t.Errorf("%s: no room for %d messages, %d left out, %d findings; with room for all none, none and %d",
				what, r.NoRoom, r.LeftOut, len(r.Findings), len(whole.Findings))
		}
	}
}
