package signature

import (
	"math"
	"testing"
)

// Times drawn from the quartiles of a distribution have its mean and its median.
func TestNoiseFactor(t *testing.T) {
	for _, n := range []Spread{{Count: 100, Sum: 100000, Low: 900, Median: 950, High: 1020},
		{Count: 100, Sum: 100000, Low: 700, Median: 1000, High: 1300},
		{Count: 9, Sum: 9000, Low: 500, Median: 800, High: 1100}} {
		s := &Times{Noise: &n}
		const steps = 1 << 20
		sum := 0.0
		for i := range steps {
			sum += s.noiseFactor((float64(i) + 0.5) / steps)
		}
		if mean := sum / steps; math.Abs(mean-1) > 0.01 {
			t.Errorf("%+v: mean %.4f, want 1", n, mean)
		}
		if m := s.noiseFactor(0.5); n.High < 2*n.Median-n.Low+100 && math.Abs(m-float64(n.Median)/1000) > 0.05 {
			t.Errorf("%+v: median %.3f", n, m)
		}
	}
}
