package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/commq/commq/formats/chakra"
	"github.com/commq/commq/writer"
)

type exportChakraOptions struct {
	run    string // --run
	output string // --output
}

func newExportChakraCommand(a *app) *cobra.Command {
	var o exportChakraOptions
	c := &cobra.Command{
		Use:   "chakra RUN",
		Short: "Write a run as execution traces of Chakra, for ASTRA-sim (.et)",
		Long: `chakra writes what each rank of a run computes, sends, receives and does in collectives as MLCommons' Chakra
execution traces, in a new folder: a graph of nodes for each rank, with what each node depends on. The run needs all
rows of events and compute times, which a trace has in whole microseconds. Collectives stay what they are on their
groups, but for scans and those of neighbours, which become messages. ASTRA-sim takes FOLDER/chakra as its workload if
all collectives are all-reduces, all-to-alls, all-gathers, reduce-scatters and broadcasts; at others, such as barriers,
it stops. commq counts these.
docs/reference/training.md has the rules.`,
		Example: `  commq export chakra --run cg.A.4 -o cg.chakra
  commq import cg.chakra --name cg.back`,
		Args:              wantArgs(0, 0, "no arguments"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return runExportChakra(c.Context(), a, &o) },
	}
	runToWrite(a, c, &o.run)
	c.Flags().StringVarP(&o.output, "output", "o", "",
		"make a folder of the name `FILE`, with chakra.0.et and a file for each other rank")
	_ = c.MarkFlagRequired("output")
	completeFiles(c, "output")
	a.writes(c)
	return c
}

func runExportChakra(ctx context.Context, a *app, o *exportChakraOptions) error {
	folder, err := writer.Find(a.storeDir(), o.run)
	if err != nil {
		return err
	}
	var notes []string
	if err := a.replaceFolder(o.output, chakra.FirstName, func(out string) (err error) {
		notes, err = chakra.Export(ctx, folder, out)
		return err
	}); err != nil {
		return fmt.Errorf("export chakra: %s: %w", o.run, err)
	}
	for _, note := range notes {
		fmt.Fprintf(a.log(), "commq: %s\n", note)
	}
	return nil
}
