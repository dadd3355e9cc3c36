package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/commq/commq/detect/report"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/run"
)

// priceOptions are the flags for prices of findings.
type priceOptions struct {
	target simulate.TargetOptions // --machine, --dialect, --set
	ranks  []int                  // --ranks
}

func (o *priceOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.target.Machine, "machine", "", "price each finding on the machine of `FILE`: "+machineKinds())
	f.StringVar(&o.target.Dialect, "dialect", "", "with --machine: how messages and collectives behave: "+dialectKinds)
	f.StringArrayVar(&o.target.Set, "set", nil, "with --machine: change a `KEY=VALUE` of it; may be repeated")
	f.IntSliceVarP(&o.ranks, "ranks", "n", nil, "with --machine: also price one instance with `N` ranks, or several "+
		"numbers as 4,64,1024, if its pattern is known")
	registerMachines(c)
	complete(c, "dialect", simulate.Dialects...)
	completeNothing(c, "ranks")
}

// check validates the flags.
func (o *priceOptions) check() error {
	if err := checkUsed(o.target, "prices"); err != nil {
		return err
	}
	if o.target.Machine == "" && len(o.ranks) > 0 {
		return notUsed("--ranks", "prices")
	}
	for _, p := range o.ranks {
		if p < 2 {
			return fmt.Errorf("--ranks %d: want 2 or more", p)
		}
	}
	return nil
}

// checkUsed refuses flags that change a machine if none is named. what is what they are for.
func checkUsed(o simulate.TargetOptions, what string) error {
	switch {
	case o.Machine != "":
		return nil
	case o.Dialect != "":
		return notUsed("--dialect", what)
	case len(o.Set) > 0:
		return notUsed("--set", what)
	}
	return nil
}

func notUsed(flag, what string) error {
	return fmt.Errorf("%s: only %s use it; name the machine with --machine", flag, what)
}

// add prices the findings on the machine, if there is one, and sorts them by their savings.
func (o *priceOptions) add(ctx context.Context, a *app, r *run.Run, answer *report.Report) error {
	if o.target.Machine == "" {
		return nil
	}
	target, err := readTarget(a, o.target)
	if err != nil {
		return err
	}
	return answer.AddPrices(ctx, r, target, o.ranks)
}
