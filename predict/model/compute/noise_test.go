package compute

import (
	"encoding/json"
	"testing"

	"github.com/commq/commq/predict/regress"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/slots"
)

// What ranks differ by is noise, unless they have times of their own.
func TestNoiseOfPredictedTimes(t *testing.T) {
	all, own := &signature.Spread{Count: 9, Sum: 9000, Low: 500, High: 900},
		&signature.Spread{Count: 9, Sum: 9000, Low: 900, High: 1100}
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
	// Of noise twice as wide a quarter of 300 is shared.
	if all, own := plain.distribute(sum, false).Shared, plain.distribute(sum, true).Shared; all != 75 || own != 300 {
		t.Errorf("shared noise %d and %d, want 75 and 300", all, own)
	}
}

// Laws keep their noise in a model file.
func TestNoiseIsKept(t *testing.T) {
	noise, own := &signature.Spread{Count: 9, Sum: 9000, Low: 500}, &signature.Spread{Count: 9, Sum: 9000, Low: 900}
	law := func() *timeLaw { return newTimeLaw([]regress.Point{{Ranks: 4, Value: 100}}) }
	written := &Laws{clock: "cpu", total: law(), sites: map[int32]*siteLaws{3: {mean: law(), noise: noise, own: own, shared: 300}}}
	text, err := json.Marshal(written)
	if err != nil {
		t.Fatal(err)
	}
	var read Laws
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if s := read.sites[3]; *s.noise != *noise || *s.own != *own || s.shared != 300 {
		t.Errorf("%+v, %+v, %d", s.noise, s.own, s.shared)
	}
}

// Calls at places that no run has take as long as those at the nearest place, not as long as the mean with the first
// ones, which come after computing.
func TestUnseenPlaceIsLikeTheNearest(t *testing.T) {
	at := slots.PlaceOf
	law := newTimeLaw([]regress.Point{{Ranks: 4, Value: 100}})
	s := &siteLaws{mean: law, slots: map[slots.Place]*timeLaw{at([]int32{9, 9}): law}, shares: map[slots.Place]float64{
		at([]int32{0, 0}): 3, at([]int32{0, 1}): 0.1, at([]int32{0, 2}): 0.2, at([]int32{1, 0}): 4, at([]int32{1, 1}): 0.3}}
	for _, c := range []struct {
		place []int32
		share float64
	}{{[]int32{0, 7}, 0.2}, {[]int32{1, 2}, 0.3}, {[]int32{5, 0}, 4}, {[]int32{5, 9}, 0.3}, {[]int32{1, 0}, 4}} {
		if _, share := s.slotLaw(at(c.place)); share != c.share {
			t.Errorf("place %v has %v of the mean, want %v", c.place, share, c.share)
		}
	}
	s.slots = nil
	if _, share := s.slotLaw(at([]int32{0, 7})); share != 1 {
		t.Errorf("where no slot has a law a new one has %v of the mean, want all of it", share)
	}
}
