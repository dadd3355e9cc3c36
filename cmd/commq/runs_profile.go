package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/commq/commq/run"
	"github.com/commq/commq/writer"
)

func newRunsProfileCommand(a *app) *cobra.Command {
	var runs []string
	c := &cobra.Command{
		Use:   "profile RUN...",
		Short: "Make the tables of sums of older runs",
		Long: `profile makes the tables profile, waits, transfers, collective_waits, repeats, channels, collective_calls,
collective_parts and activity, sums over rows, for runs that were written by an older commq. Queries work without them but take
longer. It also notes the fingerprint of payloads in the manifest, which measures reads. Nothing else of a run changes, nor
does its digest. RUN is a name in the store, a path, or a pattern of either.`,
		Example: `  commq runs profile bt.C.64
  commq runs profile '/scratch/runs/*'`,
		RunE: func(c *cobra.Command, _ []string) error {
			return runRunsProfile(c.Context(), a, runs)
		},
	}
	a.wantsRuns(c, &runs, "to make them for")
	return c
}

func runRunsProfile(ctx context.Context, a *app, runs []string) error {
	return run.Each(a.storeDir(), runs, func(run, dir string) error {
		if err := writer.MakeProfile(ctx, dir); err != nil {
			return err
		}
		a.note("made the tables of sums of run %s", run)
		return nil
	})
}
