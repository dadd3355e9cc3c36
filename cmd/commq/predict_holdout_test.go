package main

import (
	"strings"
	"testing"

	"github.com/commq/commq/predict/report"
)

// TestWhatIsWrongComesFirst has a run whose calls are missing in the prediction. That those which both make have the
// right sizes comes behind it, and says of which calls it is.
func TestWhatIsWrongComesFirst(t *testing.T) {
	var b strings.Builder
	p := &printedPrediction{Verdict: &report.Verdict{Calls: report.Tally{Exact: 18, Wrong: 9}}, Score: &report.Score{},
		Coverage: &report.Coverage{Numbers: 9, Covered: 9, Exact: 9, ExactRight: 9}}
	p.heldOut(&b)
	_, sizes, found := strings.Cut(b.String(), "calls 18 exact, 9 wrong")
	if !found || !strings.Contains(sizes, "\nonly calls that both runs make: intervals of 100 % of 9 sizes hold;") {
		t.Errorf("%s", b.String())
	}
}
