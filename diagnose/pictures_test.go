package diagnose

import (
	"math"
	"testing"
)

// What ranks compute in turn is the mean before a call in equal parts of its calls, however many of them a rank makes.
func TestInTurn(t *testing.T) {
	c := &computing{slices: map[rankSite]*series{}}
	add := func(rank, site int32, ns ...int64) {
		s := &series{width: 1}
		for _, x := range ns {
			s.add(x)
		}
		c.slices[rankSite{rank, site}] = s
	}
	add(0, 7, 10, 20, 30, 40)
	add(1, 7, 100, 200)
	add(2, 8, 5)
	got := c.inTurn([]int32{7}, 3)
	for rank, want := range [][]float64{{10, 20, 30, 40}, {100, 100, 200, 200}, {math.NaN(), math.NaN(), math.NaN(), math.NaN()}} {
		for i := range want {
			if x := got[rank][i]; math.Abs(x-want[i]) > 1e-9 || math.IsNaN(x) != math.IsNaN(want[i]) {
				t.Errorf("rank %d: %v, want %v", rank, got[rank], want)
				break
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
