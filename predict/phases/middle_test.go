package phases_test

import (
	"slices"
	"testing"

	"github.com/commq/commq/predict"
	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/phases"
)

// Both ranks repeat the outer loop 4 times: in the third repetition, after one call of i, rank 0 makes 3 calls and rank
// 1 makes 4. Without times the phase has its share of the calls, 28 of 33.
func TestMiddleOfRelevant(t *testing.T) {
	s, _, err := predict.Sign(testruns.Scripts("iabbabbabbabbdz", "iacbbacbbacbbacbbdz"))
	if err != nil {
		t.Fatal(err)
	}
	share := s.Phases[0].Share()
	list := phases.MiddleOfRelevant(s, share)
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	m := list[0]
	if m.Phase != 0 || m.Weight != 4 || m.Nth != 2 || !slices.Equal(m.First, []int64{1, 1}) ||
		!slices.Equal(m.Calls, []int64{3, 4}) {
		t.Errorf("%+v", m)
	}
	if list := phases.MiddleOfRelevant(s, share+0.001); list != nil {
		t.Errorf("a larger share: %+v", list)
	}
	s.Phases[0].WeightMin--
	if list := phases.MiddleOfRelevant(s, 0); list != nil {
		t.Errorf("ranks differ: %+v", list)
	}
}

// The one phase of TestMiddleOfRelevant has 28 of 33 calls, and there are no times.
func TestCover(t *testing.T) {
	s, _, err := predict.Sign(testruns.Scripts("iabbabbabbabbdz", "iacbbacbbacbbacbbdz"))
	if err != nil {
		t.Fatal(err)
	}
	share := s.Phases[0].Share()
	want := phases.Coverage{Phases: 1, Others: len(s.Phases) - 1, TimeShare: share, CallShare: s.Phases[0].CallShare}
	if got := phases.Cover(s, share); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := phases.Cover(s, share+0.001); got != (phases.Coverage{Others: len(s.Phases)}) {
		t.Errorf("a larger share: %+v", got)
	}
}
