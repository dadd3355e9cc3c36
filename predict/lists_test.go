package predict_test

import (
	"testing"

	"github.com/commq/commq/predict/report"
)

// HPCCG sends to a list of neighbours, which ends of its chain of ranks have fewer of, and receives from any source
// in a loop before: all of 32 ranks is known from 2 to 16.
func TestListsOfNeighbours(t *testing.T) {
	m := trainOn(t, "hpccg", 2, 4, 8, 16)
	x, measured := extrapolate(t, m, 32), readRun(t, "hpccg", 32)
	if c := report.Cover(m, x, measured); len(c.Wrong) > 0 || c.Exact != c.Numbers || c.Exact < 400 {
		t.Errorf("%+v", c)
	}
	if s := report.Compare(x.Signature, measured); !isPerfect(s) {
		t.Errorf("%+v", s)
	}
}
