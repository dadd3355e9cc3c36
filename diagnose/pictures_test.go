package diagnose

import (
	"math"
	"testing"
)

// What ranks compute in turn is the mean before a call, in slices of the run, whatever calls lead there.
func TestInTurn(t *testing.T) {
	c := &computing{cells: cells{
		{0, noSite, 7}: {{10, 1}}, {0, 3, 7}: {{30, 1}, {90, 2}}, {1, 3, 7}: {{}, {5, 5}}, {2, 3, 8}: {{9, 9}}}}
	none := math.NaN()
	for rank, want := range [][]float64{{20, 100.0 / 3}, {none, 1}, {none, none}} {
		for i, got := range c.inTurn([]int32{7}, 3)[rank] {
			if got != want[i] && !(math.IsNaN(got) && math.IsNaN(want[i])) {
				t.Errorf("rank %d, slice %d: %v, want %v", rank, i, got, want[i])
			}
		}
	}
}

// Findings of a known place have its call sites, and variation what varies.
func TestPicturesOfFindings(t *testing.T) {
	for _, f := range diagnosed(t, "mg.W.16", Options{}).Findings {
		if f.Place != "" && len(f.Callsites()) == 0 || (f.Rule == Variation) != (f.InTurn() != nil) {
			t.Errorf("%s at %s: call sites %v, %d ranks", f.Rule, f.Place, f.Callsites(), len(f.InTurn()))
		}
	}
}
