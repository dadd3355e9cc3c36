package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/commq/commq/detect/price"
	"github.com/commq/commq/detect/report"
	"github.com/commq/commq/replay"
	"github.com/commq/commq/run"
)

// detectReplayOptions are the flags for measuring the savings of replacements.
type detectReplayOptions struct {
	play   playOptions
	replay bool // --replay
	repeat int  // --repeat
}

func (o *detectReplayOptions) addFlags(c *cobra.Command) {
	c.Flags().BoolVar(&o.replay, "replay", false,
		"also play the run and the one with all findings replaced, by turns, and measure what that saves here")
	c.Flags().IntVar(&o.repeat, "repeat", 5, "with --replay: how often each is played")
	o.play.flags(c)
	completeNothing(c, "repeat")
}

func (o *detectReplayOptions) check(c *cobra.Command) error {
	if !o.replay {
		for _, name := range []string{"repeat", "mpi", "mpicc", "launcher", "compute", "skip", "schedule-dir",
			"eager-threshold-bytes"} {
			if c.Flags().Changed(name) {
				return fmt.Errorf("--%s: only played runs use it; add --replay", name)
			}
		}
		return nil
	}
	if o.repeat < 1 {
		return fmt.Errorf("--repeat %d: want 1 or more", o.repeat)
	}
	return o.play.check()
}

// add plays the run and the one with all findings replaced, alternately, and adds the savings to the report. It does
// nothing without --replay.
func (o *detectReplayOptions) add(ctx context.Context, a *app, r *run.Run, answer *report.Report) (err error) {
	if !o.replay || len(answer.Findings) == 0 {
		return nil
	}
	original, err := readPlayed(ctx, a, r.Dir, &o.play)
	if err != nil {
		return err
	}
	replaceable, err := answer.OpenReplaceable(ctx, r)
	if err != nil {
		return err
	}
	all, err := answer.Indices(nil)
	if err != nil {
		return err
	}
	plan := replaceable.Plan(all)
	store, err := os.MkdirTemp("", "commq-replaced-")
	if err != nil {
		return fmt.Errorf("detect --replay: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(store)) }()
	done, err := plan.Write(ctx, r, run.Rewrite{Store: store, Name: "replaced", Commq: version})
	if err != nil {
		return err
	}
	replaced, err := readPlayed(ctx, &app{stderr: a.stderr, store: store}, "replaced", &o.play)
	if err != nil {
		return err
	}
	replaced.name = original.name + " with collectives"
	var plays [2]price.Play
	for k, p := range []*played{original, replaced} {
		s, err := p.schedule(ctx, replay.Options{})
		if err != nil {
			return err
		}
		plays[k] = func(ctx context.Context) (ns int64, err error) {
			t, err := p.measure(ctx, a, s)
			if err != nil {
				return 0, err
			}
			return t.Duration(), nil
		}
	}
	if answer.Replay, err = price.Measure(ctx, o.repeat, plays[0], plays[1]); err != nil {
		return err
	}
	answer.Replay.Collectives, answer.Replay.Left = done.Collectives, len(plan.Left)
	answer.Replay.Contradiction = answer.Replay.Contradicts(answer.Pricing)
	return nil
}
