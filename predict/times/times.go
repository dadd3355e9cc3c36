// Package times predicts execution times: it simulates an extrapolated program on a machine, splits the time by phases
// (equation 1 of PAS2P, with one more summand for everything outside of phases), and compares it with captures that
// are simulated on the same machine.
package times

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/commq/commq/internal/stats"
	"github.com/commq/commq/models"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/model/compute"
	"github.com/commq/commq/predict/phases"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// EpochRows limits the rows of events in an epoch of an extrapolated program, over all ranks.
const EpochRows = 1 << 18

// Prediction is a predicted execution time on a machine.
type Prediction struct {
	// Machine is the name of the machine.
	Machine string `json:"machine"`
	// Dialect is the dialect of the simulation: paper or dimemas5.
	Dialect string `json:"dialect"`
	// PetNs is the predicted execution time. LowNs and HighNs are those with all compute times at the ends of their
	// interval, widened by how far the laws miss the training runs. HighNs is the largest number of 64 bits if there is no
	// upper bound.
	PetNs  int64 `json:"predicted_ns"`
	LowNs  int64 `json:"predicted_low_ns"`
	HighNs int64 `json:"predicted_high_ns"`
	// Phases are the phases that ranks repeat. PetNs is the sum of their times by their weights, plus OtherNs.
	Phases  []Phase `json:"phases"`
	OtherNs int64   `json:"other_ns"`
	// Training is what the laws give for the runs that they were learnt from, in order of ranks. Runs whose
	// communications the laws do not give are left out.
	Training []Training `json:"training,omitempty"`
	// Compute is how long ranks compute; nil when it is not known.
	Compute *compute.Time `json:"compute"`
	// MeasuredNs is the simulated time of the runs that were left out of the training, the median of several
	// captures. Error is the difference between PetNs and MeasuredNs as a fraction of MeasuredNs, and Covered reports
	// whether MeasuredNs lies in the interval. All three are nil when no run was left out.
	MeasuredNs *int64   `json:"measured_ns,omitempty"`
	Error      *float64 `json:"error,omitempty"`
	Covered    *bool    `json:"covered,omitempty"`
	// Captures are the simulated times of all runs that were left out. NoiseFloor is half their range as a fraction of
	// their median: no prediction can be expected to be nearer. It is nil for one capture.
	Captures   []int64  `json:"captures_ns,omitempty"`
	NoiseFloor *float64 `json:"noise_floor,omitempty"`
}

// Phase is a phase of the predicted run.
type Phase struct {
	// Phase is its number, from 1; Weight is how often it is repeated.
	Phase  int   `json:"phase"`
	Weight int64 `json:"weight"`
	// Ns is the time of one repetition, Events the number of calls of the rank that does most in it.
	Ns     int64 `json:"time_ns"`
	Events int64 `json:"events_max"`
	// Share is the fraction of the predicted time that all repetitions take.
	Share float64 `json:"share"`
}

// Training is a training run on the machine.
type Training struct {
	// Ranks is its number of ranks.
	Ranks int32 `json:"ranks"`
	// SimulatedNs is its simulated time, from its signature; PredictedNs is what the laws give.
	SimulatedNs int64 `json:"simulated_ns"`
	PredictedNs int64 `json:"predicted_ns"`
}

// PredictFrom predicts the execution time of a program that was extrapolated from a model, and compares it with the
// captures that were left out of the training; nil for none. It is an error when the compute times of the training runs
// cannot be used. When the captures cannot be simulated there is a prediction all the same.
func PredictFrom(ctx context.Context, m *model.Model, x *generate.Prediction, target *simulate.Target,
	left *LeftOut) (*Prediction, error) {
	if why := m.Times().Refused; why != "" {
		return nil, fmt.Errorf("predict: no execution time: %s", why)
	}
	t, err := Predict(ctx, x, target)
	if err != nil {
		return t, err
	}
	if t.Training, err = simulateTraining(ctx, m, target); err != nil {
		return nil, err
	}
	t.widen()
	if left == nil {
		return t, nil
	}
	captures, err := left.simulate(ctx, target)
	if err == nil {
		t.CompareWith(captures)
	}
	return t, err
}

// Predict predicts the execution time of an extrapolated program on a machine.
func Predict(ctx context.Context, x *generate.Prediction, target *simulate.Target) (*Prediction, error) {
	p := program{signature: x.Signature, target: target}
	t := &Prediction{Machine: target.Machine.Name, Dialect: target.Dialect.String(), Compute: x.Compute}
	phases, err := phases.WithTimes(x.Signature, func(add func(rank int32, seq, start, end int64)) (err error) {
		t.PetNs, err = p.simulate(ctx, 1, func(rank int32, seq int64, start, end models.Picoseconds) {
			add(rank, seq, simulate.Nanoseconds(start), simulate.Nanoseconds(end))
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	t.addPhases(phases, x.Signature.Ranks)
	return t, t.findInterval(func(factor float64) (int64, error) { return p.simulate(ctx, factor, nil) })
}

// addPhases splits the predicted time by the phases that all ranks repeat as often.
func (t *Prediction) addPhases(phases []signature.Phase, ranks int32) {
	t.OtherNs = t.PetNs
	for i := range phases {
		p := &phases[i]
		if !p.Agrees(ranks) || p.TimeNs == nil {
			continue
		}
		ns := *p.TimeNs * p.Weight
		t.OtherNs -= ns
		t.Phases = append(t.Phases, Phase{i + 1, p.Weight, *p.TimeNs, p.EventsMax,
			float64(ns) / float64(max(t.PetNs, 1))})
	}
}

// findInterval simulates with compute times at the ends of their interval. simulate predicts the time with all compute
// times multiplied by a factor.
func (t *Prediction) findInterval(simulate func(factor float64) (int64, error)) error {
	t.LowNs, t.HighNs = t.PetNs, t.PetNs
	c := t.Compute
	if c == nil || c.RankNs <= 0 {
		return nil
	}
	for _, side := range []struct {
		ns      *int64
		compute *float64
	}{{&t.LowNs, &c.LowNs}, {&t.HighNs, c.HighNs}} {
		if side.compute == nil {
			*side.ns = math.MaxInt64
			continue
		}
		ns, err := simulate(*side.compute / c.RankNs)
		if err != nil {
			return err
		}
		*side.ns = ns
	}
	t.LowNs, t.HighNs = min(t.LowNs, t.PetNs), max(t.HighNs, t.PetNs)
	return nil
}

// simulateTraining simulates the training runs, and what the laws give for as many ranks. It returns none if the laws
// are for another processor than that of the runs.
func simulateTraining(ctx context.Context, m *model.Model, target *simulate.Target) (all []Training, err error) {
	if m.Times().ForCycleTime() {
		return nil, nil
	}
	for _, s := range m.Joint.Runs {
		x, err := generate.Predict(ctx, m, s.Ranks, generate.Options{})
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil || x.Signature == nil: // not known, or not the whole of it
			continue
		}
		simulated, errRun := (&program{s, target}).simulate(ctx, 1, nil)
		predicted, errLaws := (&program{x.Signature, target}).simulate(ctx, 1, nil)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errRun == nil && errLaws == nil && simulated > 0 && predicted > 0:
			all = append(all, Training{s.Ranks, simulated, predicted})
		}
	}
	return all, nil
}

// widen widens the interval by how far the laws miss the training runs: what is left out of them is left out here too.
func (t *Prediction) widen() {
	if low, high, known := t.OffTraining(); known {
		const most = 1 << 62
		t.LowNs = int64(float64(t.LowNs) / (1 + max(high, 0)))
		if t.HighNs < math.MaxInt64 {
			t.HighNs = int64(min(float64(t.HighNs)/(1+min(low, 0)), most))
		}
	}
}

// OffTraining returns the least and the largest difference between what the laws give for training runs and the
// simulated time of these, as fractions of the latter. known is false if the laws give none of them.
func (t *Prediction) OffTraining() (least, most float64, known bool) {
	for i, x := range t.Training {
		off := float64(x.PredictedNs)/float64(x.SimulatedNs) - 1
		if i == 0 {
			least, most = off, off
		}
		least, most = min(least, off), max(most, off)
	}
	return least, most, len(t.Training) > 0
}

// CompareWith compares the prediction with the simulated times of the runs that were left out.
func (t *Prediction) CompareWith(captures []int64) {
	t.Captures = captures
	var all []float64
	for _, ns := range captures {
		all = append(all, float64(ns))
	}
	median := int64(stats.Median(all))
	distance, covered := float64(t.PetNs-median)/float64(max(median, 1)), t.LowNs <= median && median <= t.HighNs
	t.MeasuredNs, t.Error, t.Covered = &median, &distance, &covered
	if len(captures) > 1 {
		floor := float64(slices.Max(captures)-slices.Min(captures)) / 2 / float64(max(median, 1))
		t.NoiseFloor = &floor
	}
}

// program is the calls of a signature on a machine.
type program struct {
	signature *signature.Signature
	target    *simulate.Target
}

// simulate returns the program's time in ns when all compute times are multiplied by factor. done is called for each
// row; nil means no callback.
func (p *program) simulate(ctx context.Context, factor float64,
	done func(rank int32, seq int64, start, end models.Picoseconds)) (int64, error) {
	s := p.signature
	ranks := &simulate.Program{}
	for range s.Ranks {
		ranks.Threads = append(ranks.Threads, 1)
	}
	for i := range s.Comms {
		ranks.Comms = append(ranks.Comms, run.Comm{ID: s.Comms[i].ID, Members: s.Comms[i].Members})
	}
	rows, epoch := s.Stream(max(EpochRows/int64(s.Ranks), 1)), int32(0)
	options := &simulate.Options{Dialect: p.target.Dialect, Done: done}
	r, err := simulate.Simulate(p.target.Machine, ranks, options, func(add func(*schema.Events) error) error {
		if epoch == rows.Epochs {
			return io.EOF
		}
		epoch++
		for rank := range s.Ranks {
			b := &schema.Events{}
			if err := errors.Join(ctx.Err(), rows.Next(rank, b)); err != nil {
				return err
			}
			for i, ns := range b.ComputeNs {
				b.ComputeNs[i] = int64(math.Round(float64(ns) * factor))
			}
			if err := add(b); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("predict: %s on %s: %w", s.Run, p.target.Machine.Name, err)
	}
	return simulate.Nanoseconds(r.Time), nil
}
