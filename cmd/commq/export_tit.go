package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/commq/commq/formats/tit"
	"github.com/commq/commq/writer"
)

type exportTITOptions struct {
	run    string // --run
	output string // --output
}

func newExportTITCommand(a *app) *cobra.Command {
	var o exportTITOptions
	c := &cobra.Command{
		Use:   "tit RUN",
		Short: "Write a run as a time-independent trace of SimGrid",
		Long: `tit writes what each rank of a run computes, sends, receives and does in collectives as a trace that SimGrid's
smpirun -replay plays, in a new folder: a file for each rank, and their list. The run needs all rows of events and compute
times, a nanosecond being an operation: a host of 1 Gf computes as fast as the machine of the run. Collectives of some
ranks, and nonblocking ones, become messages. docs/reference/simulators.md has the rules.`,
		Example: `  commq export tit cg.A.4 -o cg.tit
  smpirun -np 4 -platform cluster.xml -hostfile hosts -replay cg.tit/list`,
		Args:              wantArgs(0, 0, "no arguments"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return runExportTIT(c.Context(), a, &o) },
	}
	runToWrite(a, c, &o.run)
	c.Flags().StringVarP(&o.output, "output", "o", "", "make a folder of the name `FILE`, with list and a file for each rank")
	_ = c.MarkFlagRequired("output")
	completeFiles(c, "output")
	a.writes(c)
	return c
}

func runExportTIT(ctx context.Context, a *app, o *exportTITOptions) error {
	folder, err := writer.Find(a.storeDir(), o.run)
	if err != nil {
		return err
	}
	var notes []string
	if err := a.replaceFolder(o.output, tit.ListName, func(out string) (err error) {
		notes, err = tit.Export(ctx, folder, out, o.output)
		return err
	}); err != nil {
		return fmt.Errorf("export tit: %s: %w", o.run, err)
	}
	for _, note := range notes {
		fmt.Fprintf(a.log(), "commq: %s\n", note)
	}
	return nil
}
