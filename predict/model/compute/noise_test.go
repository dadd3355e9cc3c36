package compute

import (
	"testing"

	"github.com/commq/commq/predict/signature"
)

// What ranks differ by is noise, unless they have times of their own.
func TestNoiseOfPredictedTimes(t *testing.T) {
	all, own := &signature.Spread{Count: 9, Sum: 9000, Low: 500}, &signature.Spread{Count: 9, Sum: 9000, Low: 900}
	sum := signature.Spread{Count: 10, Sum: 20000}
	plain := &siteLaws{noise: all, own: own, shared: 300}
	roles := &siteLaws{noise: all, own: own, roles: map[string]float64{"last:others": 1}}
	for _, c := range []struct {
		name string
		got  *signature.Times
		want *signature.Spread
		low  int64
	}{
		{"all alike", plain.distribute(sum, false), all, 1000},
		{"ranks that spread", plain.distribute(sum, true), own, 1800},
		{"roles", roles.distribute(sum, false), own, 1800},
		{"roles with one call each", (&siteLaws{noise: all, roles: roles.roles}).distribute(sum, false), nil, 2000},
	} {
		if c.got.Noise != c.want || c.got.Compute.Low != c.low || c.got.Compute.Sum != 20000 {
			t.Errorf("%s: %+v of %+v", c.name, c.got.Noise, c.got.Compute)
		}
	}
	if shared := plain.distribute(sum, false).Shared; shared != 300 {
		t.Errorf("shared noise %d, want 300", shared)
	}
}
