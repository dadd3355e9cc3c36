package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/replay"
	"github.com/commq/commq/predict"
)

// detectReplayOptions are the flags that say whether and how what replacements save is measured.
type detectReplayOptions struct {
	playOptions
	replay bool // --replay
	repeat int  // --repeat
}

func (o *detectReplayOptions) flags(c *cobra.Command) {
	c.Flags().BoolVar(&o.replay, "replay", false, "also play the run and the one with all findings replaced, by turns, and say what that saves here")
	c.Flags().IntVar(&o.repeat, "repeat", 5, "with --replay: how often each is played")
	o.playOptions.flags(c)
	completeNothing(c, "repeat")
}

func (o *detectReplayOptions) check(c *cobra.Command) error {
	if !o.replay {
		for _, name := range []string{"repeat", "mpi", "mpicc", "launcher", "compute", "skip", "schedule-dir", "eager-threshold-bytes"} {
			if c.Flags().Changed(name) {
				return fmt.Errorf("--%s: it is for what is played; say --replay", name)
			}
		}
		return nil
	}
	if o.repeat < 1 {
		return fmt.Errorf("--repeat %d: want 1 or more", o.repeat)
	}
	return o.playOptions.check()
}

// printedReplay is what was measured when the run and the replaced one were played by turns.
type printedReplay struct {
	// Repeat is how often each was played.
	Repeat int `json:"repeat"`
	// OriginalNs and ReplacedNs are medians.
	OriginalNs int64 `json:"original_ns"`
	ReplacedNs int64 `json:"replaced_ns"`
	// SavedNs is the median of what each turn saved, less than 0 where it cost; the other two are the least and the most. Saved is the part of OriginalNs.
	SavedNs    int64   `json:"saved_ns"`
	SavedNsMin int64   `json:"saved_ns_min"`
	SavedNsMax int64   `json:"saved_ns_max"`
	Saved      float64 `json:"saved"`
	// Collectives were put in place; Left instances stayed.
	Collectives int64 `json:"collectives"`
	Left        int   `json:"left"`
}

// replayed plays the run and the one in which all findings are replaced, by turns.
func (p *printedDetection) replayed(ctx context.Context, a *app, dir string, o *detectReplayOptions) (err error) {
	if len(p.Findings) == 0 {
		return nil
	}
	original, err := readPlayed(ctx, a, dir, &o.playOptions)
	if err != nil {
		return err
	}
	s := &replacement{dir: dir, name: original.name, manifest: original.manifest}
	if err := s.check(); err != nil {
		return err
	}
	if s.findings, err = p.replaceable(); err != nil {
		return err
	}
	which, err := s.choose(nil)
	if err != nil {
		return err
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	plan := s.run.Plan(which)
	store, err := os.MkdirTemp("", "commq-replaced-")
	if err != nil {
		return fmt.Errorf("detect --replay: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(store)) }()
	r, err := s.save(ctx, plan, store, "replaced")
	if err != nil {
		return err
	}
	replaced, err := readPlayed(ctx, &app{stderr: a.stderr, store: store}, "replaced", &o.playOptions)
	if err != nil {
		return err
	}
	replaced.name, replaced.mpi = original.name+" with collectives", o.mpi
	answer := &printedReplay{Repeat: o.repeat, Collectives: r.Collectives, Left: len(plan.Left)}
	if err := answer.measure(ctx, a, original, replaced); err != nil {
		return err
	}
	p.Replay = answer
	return nil
}

// measure plays both by turns, each first in every other turn.
func (r *printedReplay) measure(ctx context.Context, a *app, original, replaced *played) error {
	both := [2]*played{original, replaced}
	var schedules [2]*replay.Schedule
	for k, p := range both {
		var err error
		if schedules[k], err = p.schedule(ctx, replay.Options{Skip: p.skip}); err != nil {
			return err
		}
	}
	var ns [2][]float64
	var saved []float64
	for turn := range r.Repeat {
		var took [2]float64
		for i := range both {
			k := (i + turn) % 2
			t, err := both[k].measure(ctx, a, schedules[k])
			if err != nil {
				return err
			}
			took[k] = float64(t.Whole())
			ns[k] = append(ns[k], took[k])
		}
		saved = append(saved, took[0]-took[1])
	}
	r.OriginalNs, r.ReplacedNs, r.SavedNs = int64(predict.Median(ns[0])), int64(predict.Median(ns[1])), int64(predict.Median(saved))
	r.SavedNsMin, r.SavedNsMax = int64(slices.Min(saved)), int64(slices.Max(saved))
	r.Saved = float64(r.SavedNs) / math.Max(float64(r.OriginalNs), 1)
	return nil
}

// text is what was measured, in words.
func (r *printedReplay) text() string {
	verb, saved := "saves", r.SavedNs
	if saved < 0 {
		verb, saved = "costs", -saved
	}
	text := fmt.Sprintf("played here, %d times each by turns: %s as it is, %s with %s; that %s %s (%.2f %%; a turn %s to %s)", r.Repeat, duration(r.OriginalNs), duration(r.ReplacedNs),
		counted(r.Collectives, "collective"), verb, duration(saved), 100*math.Abs(r.Saved), signedDuration(r.SavedNsMin), signedDuration(r.SavedNsMax))
	if r.Left > 0 {
		text += fmt.Sprintf("; %s cannot be put in place", counted(int64(r.Left), "instance"))
	}
	return text
}

func signedDuration(ns int64) string {
	if ns < 0 {
		return "-" + duration(-ns)
	}
	return duration(ns)
}
