package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/predict"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// predictedTime is the predicted execution time on a machine: equation 1 of the paper, with all that is not in phases as one more summand.
type predictedTime struct {
	Machine string `json:"machine"`
	Dialect string `json:"dialect"`
	// PetNs is the predicted execution time; LowNs and HighNs are it with all compute times at the ends of their interval.
	PetNs  int64 `json:"pet_ns"`
	LowNs  int64 `json:"pet_low_ns"`
	HighNs int64 `json:"pet_high_ns"`
	// Phases are those that ranks repeat, OtherNs what is outside of them: PetNs is the sum of their times by their weights, and OtherNs.
	Phases  []timedPhase `json:"phases"`
	OtherNs int64        `json:"other_ns"`
	// Compute is what ranks compute in it.
	Compute *predict.ComputeTime `json:"compute"`
	// MeasuredNs is the time of the run that was left out, simulated on the same machine, the median of several captures; Error is how far off PetNs is, a
	// fraction of it; Covered whether it lies in the interval.
	MeasuredNs *int64   `json:"measured_ns,omitempty"`
	Error      *float64 `json:"error,omitempty"`
	Covered    *bool    `json:"covered,omitempty"`
	// Captures are the times of all runs that were left out. NoiseFloor is how far captures of the same are from one another: half of the range, a
	// fraction of the median; no prediction can be asked to be nearer. Nil where there is one capture, which does not tell.
	Captures   []int64  `json:"captures_ns,omitempty"`
	NoiseFloor *float64 `json:"noise_floor,omitempty"`
}

// timedPhase is a phase of the predicted run.
type timedPhase struct {
	Phase  int     `json:"phase"`
	Weight int64   `json:"weight"`
	Ns     int64   `json:"phase_ns"`
	Events int64   `json:"events_max"`
	Share  float64 `json:"share"`
}

// time predicts the execution time where a machine is given. Where the runs' compute times say nothing, that is the error, and all else is there.
func (o *predictOptions) time(ctx context.Context, a *app, m *predict.Model, x *predict.Extrapolation, held *predict.Signature, p *printedPrediction) (err error) {
	if o.machine == "" {
		return nil
	}
	if p.TimeRefused = m.TimesRefused(); p.TimeRefused != "" {
		return fmt.Errorf("predict: no execution time: %s", p.TimeRefused)
	}
	if p.Time, err = o.timeOf(ctx, x); err != nil || held == nil {
		return err
	}
	dirs, err := o.dirsOf(a, held.Ranks)
	if err != nil {
		return err
	}
	return o.compare(ctx, a, dirs, p.Time)
}

// dirsOf are the folders of the runs on that many ranks.
func (o *predictOptions) dirsOf(a *app, ranks int32) (all []string, err error) {
	for _, pattern := range o.runs {
		if files, err := signatureFiles(pattern); err != nil || files != nil {
			continue // signatures have no rows
		}
		dirs, _, err := writer.FindAll(a.storeDir(), pattern)
		if err != nil {
			return nil, err
		}
		for _, dir := range dirs {
			m, err := writer.ReadManifest(dir)
			if err != nil {
				return nil, err
			}
			if m.Ranks == ranks {
				all = append(all, dir)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("predict: no folder of a run on %d ranks; its rows are needed to simulate it", ranks)
	}
	return all, nil
}

// timeOf simulates what was extrapolated on a machine.
func (o *predictOptions) timeOf(ctx context.Context, x *predict.Extrapolation) (*predictedTime, error) {
	s, err := o.onMachine(x.Signature.Run)
	if err != nil {
		return nil, err
	}
	program := &simulate.Program{}
	for range x.Signature.Ranks {
		program.Threads = append(program.Threads, 1)
	}
	for i := range x.Signature.Comms {
		c := &x.Signature.Comms[i]
		program.Comms = append(program.Comms, simulate.Comm{ID: c.ID, Members: c.Members})
	}
	once := func(factor float64, done func(rank int32, seq int64, start, end models.Picoseconds)) (int64, error) {
		options := s.options
		options.Done = done
		rows, epoch := x.Signature.Stream(max(extrapolatedRows/int64(x.Signature.Ranks), 1)), int32(0)
		r, err := simulate.Simulate(s.machine, program, &options, func(add func(*schema.Events) error) error {
			if epoch == rows.Epochs {
				return io.EOF
			}
			epoch++
			for rank := range x.Signature.Ranks {
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
			return 0, fmt.Errorf("predict: %s on %s: %w", x.Signature.Run, s.machine.Name, err)
		}
		return inNs(r.Time), nil
	}
	t := &predictedTime{Machine: s.machine.Name, Dialect: s.options.Dialect.String(), Compute: x.Compute}
	phases, err := x.Signature.TimedPhases(func(add func(rank int32, seq, start, end int64)) (err error) {
		t.PetNs, err = once(1, func(rank int32, seq int64, start, end models.Picoseconds) { add(rank, seq, inNs(start), inNs(end)) })
		return err
	})
	if err != nil {
		return nil, err
	}
	t.LowNs, t.HighNs, t.OtherNs = t.PetNs, t.PetNs, t.PetNs
	for i := range phases {
		p := &phases[i]
		if !p.Agrees(x.Signature.Ranks) || p.TimeNs == nil {
			continue
		}
		ns := *p.TimeNs * p.Weight
		t.OtherNs -= ns
		t.Phases = append(t.Phases, timedPhase{i + 1, p.Weight, *p.TimeNs, p.EventsMax, float64(ns) / float64(max(t.PetNs, 1))})
	}
	if c := x.Compute; c != nil && c.RankNs > 0 {
		for _, side := range []struct {
			ns *int64
			of float64
		}{{&t.LowNs, c.LowNs}, {&t.HighNs, c.HighNs}} {
			if math.IsInf(side.of, 0) {
				continue
			}
			ns, err := once(side.of/c.RankNs, nil)
			if err != nil {
				return nil, err
			}
			*side.ns = ns
		}
		t.LowNs, t.HighNs = min(t.LowNs, t.PetNs), max(t.HighNs, t.PetNs)
	}
	return t, nil
}

// onMachine is what a simulation on the machine needs beside a program.
func (o *predictOptions) onMachine(name string) (*runSimulation, error) {
	s := &runSimulation{name: name}
	of := simulateOptions{machine: o.machine, set: o.set, dialect: o.dialect}
	return s, of.readMachine(s)
}

// compare simulates the runs that were left out on the same machine.
func (o *predictOptions) compare(ctx context.Context, a *app, dirs []string, t *predictedTime) error {
	for _, dir := range dirs {
		of := simulateOptions{run: dir, machine: o.machine, set: o.set, dialect: o.dialect}
		s, err := of.simulation(ctx, a)
		if err != nil {
			return err
		}
		r, err := s.simulate(ctx, s.machine)
		if err != nil {
			return fmt.Errorf("simulate %s on %s: %w", filepath.Base(dir), s.machine.Name, err)
		}
		t.Captures = append(t.Captures, inNs(r.Time))
	}
	t.measured()
	return nil
}

// measured says how far off the prediction is from the median of the captures, and these from one another.
func (t *predictedTime) measured() {
	var all []float64
	for _, ns := range t.Captures {
		all = append(all, float64(ns))
	}
	median := int64(predict.Median(all))
	off, covered := float64(t.PetNs-median)/float64(max(median, 1)), t.LowNs <= median && median <= t.HighNs
	t.MeasuredNs, t.Error, t.Covered = &median, &off, &covered
	if len(t.Captures) > 1 {
		floor := float64(slices.Max(t.Captures)-slices.Min(t.Captures)) / 2 / float64(max(median, 1))
		t.NoiseFloor = &floor
	}
}

// print prints it for people.
func (t *predictedTime) print(w io.Writer) error {
	fmt.Fprintf(w, "\npredicted execution time on %s: %s s (%s to %s), dialect %s\n", t.Machine, seconds(t.PetNs), seconds(t.LowNs), seconds(t.HighNs), t.Dialect)
	fmt.Fprintln(w, "the interval is that of the compute times; what the machine's network, another layout or the data do to the time is not in it")
	interval := "its interval does not hold"
	if t.Covered != nil && *t.Covered {
		interval = "its interval holds"
	}
	switch {
	case t.NoiseFloor != nil:
		fmt.Fprintf(w, "%d captures that were left out, simulated there: %s s in the median (%s to %s, so a noise floor of %.1f %%); the prediction is off by %+.1f %%, and %s\n",
			len(t.Captures), seconds(*t.MeasuredNs), seconds(slices.Min(t.Captures)), seconds(slices.Max(t.Captures)), 100**t.NoiseFloor, 100**t.Error, interval)
	case t.MeasuredNs != nil:
		fmt.Fprintf(w, "the run that was left out, simulated there: %s s; the prediction is off by %+.1f %%, and %s (one capture does not tell how much of that is noise)\n",
			seconds(*t.MeasuredNs), 100**t.Error, interval)
	}
	if c := t.Compute; c != nil {
		fmt.Fprintf(w, "a rank computes %s s of it (%s to %s)\n", seconds(int64(c.RankNs)), seconds(int64(c.LowNs)), bound(c.HighNs))
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "phase\tweight\tTEPhase s\ttime s\tof PET\t")
	for _, p := range t.Phases {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t\n", p.Phase, grouped(p.Weight), seconds(p.Ns), seconds(p.Ns*p.Weight), percent(p.Share))
	}
	fmt.Fprintf(table, "other\t\t\t%s\t%s\t\n", seconds(t.OtherNs), percent(float64(t.OtherNs)/float64(max(t.PetNs, 1))))
	return table.Flush()
}

// bound is a time in seconds, or that there is none.
func bound(ns float64) string {
	if math.IsInf(ns, 0) {
		return "any"
	}
	return seconds(int64(ns))
}
