package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/commq/commq/formats/chakra"
	"github.com/commq/commq/formats/goal"
	"github.com/commq/commq/formats/otf2"
	"github.com/commq/commq/formats/perfetto"
	"github.com/commq/commq/formats/tit"
	"github.com/commq/commq/writer"
)

// runFormat is a format in which a run is written as one file or as one folder, with no options but where.
type runFormat struct {
	name, short, long, example string

	// One of the two writes the run in the folder dir. It returns notes of what the format does not hold.
	file   func(ctx context.Context, dir string, w io.Writer) (notes []string, err error)
	folder func(ctx context.Context, dir, out, shown string) (notes []string, err error) // shown: out as given

	mark      string // a file that all folders of the format have; --replace removes no others
	contents  string // what is in the folder, for the help
	discloses bool   // the format holds names of hosts, files and functions
}

// runFormats are the formats of newExportRunCommand.
var runFormats = []runFormat{
	{
		name:  "perfetto",
		short: "Write a run for Perfetto or Chrome (Trace Event Format)",
		long: `perfetto writes a run with times as JSON for ui.perfetto.dev and chrome://tracing. A rank is a
process, a call a slice, a request an asynchronous slice from the call that made it to the one that completed it, a
message an arrow to a slice of its own in the call that received it; docs/method/perfetto.md has more.`,
		example:   `  commq export perfetto cg.A.4 -o cg.json`,
		file:      perfetto.Export,
		discloses: true,
	},
	{
		name:  "otf2",
		short: "Write a run as a trace for Vampir, Scalasca or Pipit (OTF2)",
		long: `otf2 writes a run with times as an archive of the Open Trace Format 2 in a new folder: calls as regions with
their records of messages, requests and collectives, call paths as the regions around them. docs/reference/otf2.md
lists what the format does not carry.`,
		example: `  commq export otf2 cg.A.4 -o cg.otf2`,
		folder: func(ctx context.Context, dir, out, _ string) ([]string, error) {
			return otf2.Export(ctx, dir, out)
		},
		mark:      otf2.ExportName,
		contents:  "traces.otf2 and its files",
		discloses: true,
	},
	{
		name:  "tit",
		short: "Write a run as a time-independent trace of SimGrid",
		long: `tit writes what each rank of a run computes, sends, receives and does in collectives as a trace that SimGrid's
smpirun -replay plays, in a new folder: a file for each rank, and their list. The run needs all rows of events and compute
times, a nanosecond being an operation: a host of 1 Gf computes as fast as the machine of the run. Collectives of some
ranks, and nonblocking ones, become messages. docs/reference/simulators.md has the rules.`,
		example: `  commq export tit cg.A.4 -o cg.tit
  smpirun -np 4 -platform cluster.xml -hostfile hosts -replay cg.tit/list`,
		folder:   tit.Export,
		mark:     tit.ListName,
		contents: "list and a file for each rank",
	},
	{
		name:  "goal",
		short: "Write a run as a schedule for LogGOPSim or ATLAHS (GOAL)",
		long: `goal writes what each rank of a run computes, sends and receives, and what must be done before each, as a GOAL
schedule in text, which LogGOPSim's txt2bin reads. The run needs all rows of events and compute times. Collectives become
messages along the usual algorithms. docs/reference/simulators.md has the rules.`,
		example: `  commq export goal cg.A.4 -o cg.goal
  txt2bin -i cg.goal -o cg.bin && LogGOPSim -f cg.bin`,
		file: goal.Export,
	},
	{
		name:  "chakra",
		short: "Write a run as execution traces of Chakra, for ASTRA-sim (.et)",
		long: `chakra writes what each rank of a run computes, sends, receives and does in collectives as MLCommons' Chakra
execution traces, in a new folder: a graph of nodes for each rank, with what each node depends on. The run needs all
rows of events and compute times, which a trace has in whole microseconds. Collectives stay what they are on their
groups, but for scans and those of neighbours, which become messages. ASTRA-sim takes FOLDER/chakra as its workload if
all collectives are all-reduces, all-to-alls, all-gathers, reduce-scatters and broadcasts; at others, such as barriers,
it stops. commq counts these.
docs/reference/training.md has the rules.`,
		example: `  commq export chakra --run cg.A.4 -o cg.chakra
  commq import cg.chakra --name cg.back`,
		folder: func(ctx context.Context, dir, out, _ string) ([]string, error) {
			return chakra.Export(ctx, dir, out)
		},
		mark:     chakra.FirstName,
		contents: "chakra.0.et and a file for each other rank",
	},
}

type exportRunOptions struct {
	run    string // --run
	output string // --output
}

func newExportRunCommand(a *app, f runFormat) *cobra.Command {
	var o exportRunOptions
	c := &cobra.Command{
		Use:               f.name + " RUN",
		Short:             f.short,
		Long:              f.long,
		Example:           f.example,
		Args:              wantArgs(0, 0, "no arguments"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return runExportRun(c.Context(), a, f, &o) },
	}
	runToWrite(a, c, &o.run)
	outputFlag(a, c, &o.output)
	if f.folder != nil {
		c.Flags().Lookup("output").Usage = "make a folder of the name `FILE`, with " + f.contents
	}
	return c
}

func runExportRun(ctx context.Context, a *app, f runFormat, o *exportRunOptions) error {
	if f.folder != nil {
		return exportFolder(ctx, a, f, o)
	}
	return exportFiles(ctx, a, &fileExport{format: f.name, run: o.run, files: []string{o.output},
		discloses: f.discloses, write: func(dir string, w []io.Writer) ([]string, error) { return f.file(ctx, dir, w[0]) }})
}

// exportFolder writes a run to a folder, and reports what it lacks and discloses.
func exportFolder(ctx context.Context, a *app, f runFormat, o *exportRunOptions) error {
	dir, err := writer.Find(a.storeDir(), o.run)
	if err != nil {
		return err
	}
	var notes []string
	err = a.replaceFolder(o.output, f.mark, func(out string) (err error) {
		notes, err = f.folder(ctx, dir, out, o.output)
		return err
	})
	if err != nil {
		return fmt.Errorf("export %s: %s: %w", f.name, o.run, err)
	}
	reportExport(ctx, a, dir, o.output, f.discloses, notes)
	return nil
}

// report prints notes about what an exported file does not hold, with --quiet too.
func (a *app) report(notes []string) {
	for _, note := range notes {
		fmt.Fprintf(a.log(), "commq: %s\n", note)
	}
}
