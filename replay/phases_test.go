package replay

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Two phases on two ranks, each played twice: phase 2 takes (10+30)/2 = 20 and (20+20)/2 = 20 ns and is repeated 97
// times, phase 5 takes 4 and 8 ns, mean 6, and is repeated 9 times. 97*20 + 9*6 = 1994; the sums of the repetitions
// are 1940 + 36 = 1976 and 1940 + 72 = 2012.
func TestPhasesPredictTotalTime(t *testing.T) {
	times := &Times{Start: []int64{3, 5}, End: []int64{100, 205},
		Phases: [][][]int64{{{0, 10, 30}, {5, 35, 55}}, {{50, 54, 62}, {60, 64, 72}}}}
	runNs := int64(17)
	p := &PhasePrediction{Run: "r", Ranks: 2, Repeat: 2}
	p.AddPhase(2, 97, &runNs, 0.75)
	p.AddPhase(5, 9, nil, 0.125)
	p.SetTimes(times)
	want := &PhasePrediction{Run: "r", Ranks: 2, Repeat: 2, Coverage: 0.875, PETNs: 1994, PETNsMin: 1976, PETNsMax: 2012,
		PlayedNs: 200, Phases: []PlayedPhase{
			{Phase: 2, Weight: 97, TimeNs: 20, TimeNsMin: 20, TimeNsMax: 20, TotalNs: 1940, RunNs: &runNs, Share: 0.75},
			{Phase: 5, Weight: 9, TimeNs: 6, TimeNsMin: 4, TimeNsMax: 8, TotalNs: 54, Share: 0.125}}}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
