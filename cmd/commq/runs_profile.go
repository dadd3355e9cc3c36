package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/commq/commq/writer"
)

func newRunsProfileCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "profile RUN...",
		Short: "Make the tables of sums of older runs",
		Long: `profile makes the tables profile, waits, transfers, collective_waits and repeats, sums over the rows
of events and messages, for runs that were written by an older commq. Queries work without them but take longer.
Nothing else of a run changes, nor does its digest. RUN is a name in the store or a path.`,
		Example: `  commq runs profile bt.C.64
  commq runs profile /scratch/runs/*`,
		Args:              wantArgs(1, anyNumber, "names of runs"),
		ValidArgsFunction: completeRuns(a),
		RunE: func(c *cobra.Command, args []string) error {
			return runRunsProfile(c.Context(), a, args)
		},
	}
}

func runRunsProfile(ctx context.Context, a *app, runs []string) error {
	for _, run := range runs {
		dir, err := writer.Find(a.storeDir(), run)
		if err != nil {
			return err
		}
		if err := writer.MakeProfile(ctx, dir); err != nil {
			return err
		}
		a.note("made the tables of sums of run %s", run)
	}
	return nil
}
