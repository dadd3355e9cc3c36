package predict_test

import (
	"testing"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
)

// The levels of a recursive function are predicted as iterations of a loop. On 128 ranks the function would begin to
// thin out ranks before the first level, which no run shows.
func TestLevelsOfRecursion(t *testing.T) {
	m := train(t, []int{2, 4, 8, 16}, multigrid)
	for _, ranks := range []int{32, 64} {
		x := extrapolate(t, m, ranks)
		measured := sign(t, multigrid(ranks))
		if s := report.Compare(x.Signature, measured); !isPerfect(s) {
			t.Errorf("at %d ranks: %+v", ranks, s)
		}
		if v := report.Cover(m, x, measured); len(v.Wrong) > 0 || v.Covered != v.Numbers {
			t.Errorf("at %d ranks: %+v", ranks, v)
		}
	}
	if _, err := generate.Predict(t.Context(), m, 128, generate.Options{}); err == nil {
		t.Error("128 ranks: predicted a run whose first level no run shows")
	}
}

// multigrid makes a run of V-cycles.
func multigrid(ranks int) *signature.Run { return testruns.Cycles(ranks, 1) }
