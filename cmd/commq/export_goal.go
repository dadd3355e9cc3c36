package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/commq/commq/formats/goal"
	"github.com/commq/commq/writer"
)

type exportGOALOptions struct {
	run    string // --run
	output string // --output
}

func newExportGOALCommand(a *app) *cobra.Command {
	var o exportGOALOptions
	c := &cobra.Command{
		Use:   "goal RUN",
		Short: "Write a run as a schedule for LogGOPSim or ATLAHS (GOAL)",
		Long: `goal writes what each rank of a run computes, sends and receives, and what must be done before each, as a GOAL
schedule in text, which LogGOPSim's txt2bin reads. The run needs all rows of events and compute times. Collectives become
messages along the usual algorithms. docs/reference/simulators.md has the rules.`,
		Example: `  commq export goal cg.A.4 -o cg.goal
  txt2bin -i cg.goal -o cg.bin && LogGOPSim -f cg.bin`,
		Args:              wantArgs(0, 0, "no arguments"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return runExportGOAL(c.Context(), a, &o) },
	}
	runToWrite(a, c, &o.run)
	outputFlag(a, c, &o.output)
	return c
}

func runExportGOAL(ctx context.Context, a *app, o *exportGOALOptions) error {
	folder, err := writer.Find(a.storeDir(), o.run)
	if err != nil {
		return err
	}
	var notes []string
	err = a.writeFiles([]string{o.output}, func(f []io.Writer) (err error) {
		notes, err = goal.Export(ctx, folder, f[0])
		return err
	})
	if err != nil {
		return fmt.Errorf("export goal: %s: %w", o.run, err)
	}
	for _, note := range notes {
		fmt.Fprintf(a.log(), "commq: %s\n", note)
	}
	return nil
}
