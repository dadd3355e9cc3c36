package regress

import (
	"encoding/json"
	"math"
	"testing"
)

// fitOne fits one group.
func fitOne(t *testing.T, unit int64, samples []Sample) *Law {
	t.Helper()
	laws, _, err := FitGroups([]Group{{Name: "m", Unit: unit, Samples: samples}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return laws[0]
}

// 720 integers divide evenly among 4 to 12 ranks, but not among 7 or 11: how the program rounds there is not known. The
// size is a whole number of integers anyway, and nothing is called exact. Nor is it on 24 ranks: on 4 x 6 ranks blocks of
// 30 x 24 integers have different sizes. On 3 x 6 and 2 x 3 x 3 ranks the sides of all blocks divide evenly.
func TestSizesAreWholeElements(t *testing.T) {
	var samples []Sample
	for _, p := range []int32{4, 6, 8, 9, 12} {
		for r := range p {
			samples = append(samples, Sample{Ranks: p, Rank: r, Value: 4 * (720 / int64(p))})
		}
	}
	law := fitOne(t, 4, samples)
	for _, p := range []int32{7, 11, 13, 24, 50, 1000} {
		e, err := law.Predict(p, 0, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := 4 * math.Floor(720/float64(p))
		if e.Exact || math.Mod(e.Value, 4) != 0 || math.Mod(e.Low, 4) != 0 || math.Mod(e.High, 4) != 0 ||
			e.Low > want || e.High < want || e.Low < 0 {
			t.Errorf("on %d ranks: %+v, want a multiple of 4, not exact, in an interval with %v", p, e, want)
		}
	}
	if e, _ := law.Predict(18, 0, nil, nil, nil); !e.Exact || e.Value != 160 {
		t.Errorf("on 18 ranks: %+v, want 160 exactly", e)
	}
	text, err := json.Marshal(law)
	if err != nil {
		t.Fatal(err)
	}
	again := new(Law)
	if err := json.Unmarshal(text, again); err != nil {
		t.Fatal(err)
	}
	if e, _ := again.Predict(24, 0, nil, nil, nil); e.Exact {
		t.Errorf("on 24 ranks: %+v of a law that was stored, want an interval", e)
	}
}

// A size that shrinks from step to step is not negative after the last step that was seen.
func TestSizesAreNotNegative(t *testing.T) {
	var samples []Sample
	for _, p := range []int32{4, 6, 8} {
		for i := range int32(p) {
			samples = append(samples, Sample{Ranks: p, Rank: 0, Index: []int32{i}, Value: 80 - 8*int64(i)})
		}
	}
	law := fitOne(t, 8, samples)
	e, err := law.Predict(16, 0, nil, nil, []int32{14})
	if err != nil || e.Exact || e.Value < 0 || e.Low < 0 {
		t.Errorf("%+v, %v, want a size", e, err)
	}
}

// A face of blocks of 48 x 60 cells on three axes, of which the second has two ranks in all runs: 24 of its cells may
// be half of 48, or a constant.
func TestAxisThatNeverVaried(t *testing.T) {
	lay := func(p int32) []int32 { return []int32{p / 4, 2, 2} }
	face := truth{name: "face", sends: all, value: func(g, x []int64, _ []int32) int64 {
		return 8 * (60 / g[0]) * (48 / g[1])
	}}
	groups := []Group{{Name: "face", Unit: 8, Along: 3, Samples: samplesOf(face, lay, 8, 12, 16, 20)}}
	laws, _, err := FitGroups(groups, Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := laws[0].Predict(64, 0, []int32{4, 4, 4}, []int32{0, 0, 0}, nil)
	if want := float64(8 * 15 * 12); err != nil || e.Exact || e.Low > want || e.High < want {
		t.Errorf("on 4 x 4 x 4 ranks: %+v, %v, want an interval with %v", e, err, want)
	}
	e, err = laws[0].Predict(24, 0, []int32{6, 2, 2}, []int32{0, 0, 0}, nil)
	if want := float64(8 * 10 * 24); err != nil || !e.Exact || e.Value != want {
		t.Errorf("on 6 x 2 x 2 ranks: %+v, %v, want %v exactly", e, err, want)
	}
}
