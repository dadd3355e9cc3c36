package times

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/model/compute"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/training"
)

// A prediction of 1000 ns with two phases that all 3 ranks repeat: 4 x 150 ns and 2 x 100 ns leave 200 ns. The third
// phase has no time, and the fourth one is not on all ranks.
func TestPhasesAddUpToTheTime(t *testing.T) {
	long, short := int64(150), int64(100)
	phase := func(ranks int32, weight int64, ns *int64) signature.Phase {
		return signature.Phase{Ranks: ranks, Weight: weight, WeightMin: weight, WeightMax: weight, TimeNs: ns,
			EventsMax: 7}
	}
	p := &Prediction{PetNs: 1000}
	p.addPhases([]signature.Phase{phase(3, 4, &long), phase(3, 2, &short), phase(3, 9, nil), phase(2, 3, &short)}, 3)
	if len(p.Phases) != 2 || p.OtherNs != 200 || p.Phases[0] != (Phase{1, 4, 150, 7, 0.6}) || p.Phases[1].Share != 0.2 {
		t.Errorf("%+v", p)
	}
}

// Compute times between half and twice those of the prediction take 700 and 1800 ns. Without an upper end of these there
// is none of the time.
func TestIntervalFollowsComputeTimes(t *testing.T) {
	simulate := func(factor float64) (int64, error) {
		return map[float64]int64{0.5: 700, 2: 1800}[factor], nil
	}
	for _, c := range []struct {
		compute   *compute.Time
		low, high int64
	}{
		{&compute.Time{RankNs: 400, LowNs: 200, HighNs: new(800.0)}, 700, 1800},
		{&compute.Time{RankNs: 400, LowNs: 200, HighNs: nil}, 700, math.MaxInt64},
		{&compute.Time{}, 1000, 1000},
		{nil, 1000, 1000},
	} {
		p := &Prediction{PetNs: 1000, Compute: c.compute}
		if err := p.findInterval(simulate); err != nil || p.LowNs != c.low || p.HighNs != c.high {
			t.Errorf("%+v: %d to %d, %v; want %d to %d", c.compute, p.LowNs, p.HighNs, err, c.low, c.high)
		}
	}
	broken := errors.New("deadlock")
	p := &Prediction{Compute: &compute.Time{RankNs: 400}}
	if err := p.findInterval(func(float64) (int64, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// Captures of 900, 1000 and 1300 ns have the median 1000 and a range of 400: a noise floor of 20 %.
func TestCompareWithCaptures(t *testing.T) {
	p := &Prediction{PetNs: 1100, LowNs: 950, HighNs: 1200}
	p.CompareWith([]int64{1000, 1300, 900})
	if *p.MeasuredNs != 1000 || *p.Error != 0.1 || !*p.Covered || *p.NoiseFloor != 0.2 {
		t.Errorf("%d, %v, %v, %v", *p.MeasuredNs, *p.Error, *p.Covered, *p.NoiseFloor)
	}
	p.CompareWith([]int64{900})
	if *p.Covered || p.Error == nil {
		t.Error("900 is in the interval from 950")
	}
}

// Laws that give 10 % less than one training run took and 25 % more than another may do so at more ranks.
func TestIntervalCoversHowFarTheLawsMissTheirRuns(t *testing.T) {
	p := &Prediction{PetNs: 1000, LowNs: 900, HighNs: 1080}
	p.widen()
	if _, _, known := p.OffTraining(); known || p.LowNs != 900 || p.HighNs != 1080 {
		t.Errorf("without training runs: %d to %d", p.LowNs, p.HighNs)
	}
	p.Training = []Training{{4, 1000, 900}, {8, 1000, 1250}}
	p.widen()
	if low, high, known := p.OffTraining(); !known || low > -0.0999 || high < 0.2499 || p.LowNs != 720 || p.HighNs != 1200 {
		t.Errorf("%v, %v, %v: %d to %d", low, high, known, p.LowNs, p.HighNs)
	}
	exact := &Prediction{PetNs: 1000, LowNs: 900, HighNs: 1080, Training: []Training{{4, 500, 500}}}
	if exact.widen(); exact.LowNs != 900 || exact.HighNs != 1080 {
		t.Errorf("laws that give their runs: %d to %d", exact.LowNs, exact.HighNs)
	}
}

// A prediction tells what its laws give for the runs that they were learnt from, and its interval has that in it.
func TestPredictionTellsWhatItMisses(t *testing.T) {
	var runs []*signature.Signature
	for _, file := range []string{"my_bcast.2", "my_bcast.4", "my_bcast.8"} {
		s, err := training.ReadFile("../../testdata/signatures/" + file + ".json.gz")
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, s)
	}
	m, err := training.FindLaws(t.Context(), runs)
	if err != nil {
		t.Fatal(err)
	}
	x, err := generate.Predict(t.Context(), m, 16, generate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	target, err := simulate.ReadTarget(simulate.TargetOptions{Machine: "ethernet-40g"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := PredictFrom(t.Context(), m, x, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ranks []int32
	for _, r := range p.Training {
		ranks = append(ranks, r.Ranks)
	}
	low, high, _ := p.OffTraining()
	if !slices.Equal(ranks, []int32{2, 4, 8}) || low == 0 && high == 0 {
		t.Fatalf("%+v", p.Training)
	}
	alone, err := Predict(t.Context(), x, target)
	if err != nil {
		t.Fatal(err)
	}
	most := int64(float64(alone.HighNs) / (1 + min(low, 0)))
	if alone.PetNs != p.PetNs || p.HighNs != most || p.LowNs > alone.LowNs {
		t.Errorf("%d to %d ns alone, %d to %d with what the laws miss", alone.LowNs, alone.HighNs, p.LowNs, p.HighNs)
	}
}
