package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/formats/dimemas"
	"github.com/commq/commq/formats/paraver"
	"github.com/commq/commq/models"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// listExports lists the formats below export.
func listExports(c *cobra.Command, w io.Writer) error {
	for _, f := range c.Commands() {
		if f.IsAvailableCommand() {
			if _, err := fmt.Fprintf(w, "%-10s %s\n", f.Name(), f.Short); err != nil {
				return err
			}
		}
	}
	return nil
}

func newExportCommand(a *app) *cobra.Command {
	var list bool
	c := &cobra.Command{
		Use:   "export",
		Short: "Write a run or a machine for another tool, or to give away",
		Long: `export writes a run or a machine to a new file in the format of another tool, and reports what the
format cannot hold. replay writes a run to give away, without data, hosts and command line; signature a file of some
kilobytes from which commq fit and commq predict learn the program's laws.`,
		Example: `  commq export dim cg.A.4 -o cg.dim
  commq export replay --run cg.A.4 -o shared/cg.A.4
  commq export cfg --machine myrinet --ranks 4 -o machine.cfg`,
	}
	c.Flags().BoolVar(&list, "list", false, "list the formats that export writes")
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(c, args[0])
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if list {
			return listExports(c, a.out())
		}
		return c.Help()
	}
	c.AddCommand(newExportDimCommand(a), newExportPrvCommand(a), newExportCFGCommand(a), newExportReplayCommand(a),
		newExportSignatureCommand(a), newExportBenchfmtCommand(a), newExportExtrapCommand(a))
	for _, f := range runFormats {
		c.AddCommand(newExportRunCommand(a, f))
	}
	return c
}

// outputFlag adds --output to a command.
func outputFlag(a *app, c *cobra.Command, path *string) {
	c.Flags().StringVarP(path, "output", "o", "", "`FILE` to write")
	_ = c.MarkFlagRequired("output") // the flag is there
	completeFiles(c, "output")
	a.writes(c)
}

type exportDimOptions struct {
	run       string // --run
	threshold int64  // --eager-threshold-bytes
	output    string // --output
}

func newExportDimCommand(a *app) *cobra.Command {
	var o exportDimOptions
	c := &cobra.Command{
		Use:   "dim RUN",
		Short: "Write a run as a trace of Dimemas (.dim)",
		Long: `dim writes what each rank of a run computes, sends, receives and does in collectives as a trace of
Dimemas. The run needs all rows of events and compute times. Receives have the source and tag of the message that
they got; each receive that is waited for has a wait of its own, and sends have none. dim counts and reports what
Dimemas does not have; docs/method/dimemas-files.md has the rules.`,
		Example: `  commq export dim cg.A.4 -o cg.dim
  commq export dim --run cg.A.4 --eager-threshold-bytes 65536 -o cg.dim`,
		Args:              wantArgs(0, 0, "no arguments"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return runExportDim(c.Context(), a, &o) },
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "`RUN` to write: a name in the store, or a path")
	f.Int64Var(&o.threshold, "eager-threshold-bytes", 0,
		"size from which on a send waits for its receiver (default: only MPI_Ssend and its like wait)")
	outputFlag(a, c, &o.output)
	_ = c.MarkFlagRequired("run")
	register(c, completeRuns(a), "run")
	a.readsRuns(c)
	completeNothing(c, "eager-threshold-bytes")
	return c
}

func runExportDim(ctx context.Context, a *app, o *exportDimOptions) error {
	if o.threshold < 0 {
		return fmt.Errorf("--eager-threshold-bytes %d: want a number of bytes", o.threshold)
	}
	return exportFiles(ctx, a, &fileExport{format: "dim", run: o.run, files: []string{o.output},
		write: func(dir string, w []io.Writer) ([]string, error) {
			return dimemas.Export(ctx, dir, w[0], dimemas.ExportOptions{EagerThresholdBytes: o.threshold})
		}})
}

// fileExport is the writing of a run to new files.
type fileExport struct {
	format    string // the command after export
	run       string // as the user names it
	files     []string
	discloses bool // the files hold names of hosts, files and functions

	// write writes the run in the folder dir to the files. It returns notes of what the format does not hold.
	write func(dir string, w []io.Writer) (notes []string, err error)
}

// exportFiles writes a run to files, and reports what they lack and disclose.
func exportFiles(ctx context.Context, a *app, e *fileExport) error {
	dir, err := writer.Find(a.storeDir(), e.run)
	if err != nil {
		return err
	}
	for _, name := range e.files {
		if err := a.checkNew(name); err != nil {
			return fmt.Errorf("export %s: %w", e.format, err)
		}
	}
	var notes []string
	err = a.writeFiles(e.files, func(w []io.Writer) (err error) {
		notes, err = e.write(dir, w)
		return err
	})
	if err != nil {
		return fmt.Errorf("export %s: %s: %w", e.format, e.run, err)
	}
	reportExport(ctx, a, dir, e.files[0], e.discloses, notes)
	return nil
}

// reportExport reports what a file or folder that was made of the run in the folder dir discloses and lacks; notes are
// what its format does not hold.
func reportExport(ctx context.Context, a *app, dir, file string, discloses bool, notes []string) {
	if discloses {
		disclose(ctx, a, dir, file)
	}
	reportLacking(a, dir, file)
	a.report(notes)
}

// disclose notes what a file that was made of a run tells about the machine and its users.
func disclose(ctx context.Context, a *app, dir, file string) {
	m, err := writer.ReadManifest(dir)
	var tells string
	if err == nil {
		tells, err = run.Discloses(ctx, dir, m)
	}
	switch {
	case err != nil:
		a.warn("what %s discloses of the machine and its users is not known: %v", file, err)
	case tells != "":
		a.note("%s discloses: %s", file, tells)
	}
}

// reportLacking reports the calls that a file derived from the run in a folder lacks because the run lacks them.
func reportLacking(a *app, dir, file string) {
	m, err := writer.ReadManifest(dir)
	if err != nil {
		return
	}
	if text := run.LeftOut(filepath.Base(dir), m, schema.ReadsAll, file); text != "" {
		a.report([]string{text})
	}
}

// runToWrite adds the required flag --run of a command that writes a run in another format.
func runToWrite(a *app, c *cobra.Command, run *string) {
	c.Flags().StringVar(run, "run", "", "`RUN` to write: a name in the store, or a path")
	_ = c.MarkFlagRequired("run")
	register(c, completeRuns(a), "run")
	a.readsRuns(c)
}

type exportPrvOptions struct {
	run    string // --run
	output string // --output
}

func newExportPrvCommand(a *app) *cobra.Command {
	var o exportPrvOptions
	c := &cobra.Command{
		Use:   "prv RUN",
		Short: "Write a run as a trace of Paraver (.prv, .pcf, .row)",
		Long: `prv writes a run with measured, virtual or simulated times as the three files of a Paraver trace:
states, events of MPI calls and communications, with the types of Extrae, which Dimemas' prv2dim also reads.
docs/method/paraver.md lists them.`,
		Example: `  commq export prv cg.A.4 -o cg.prv
  commq simulate --run cg.A.4 --machine myrinet --name cg.myrinet
  commq export prv --run cg.myrinet -o cg.myrinet.prv`,
		Args:              wantArgs(0, 0, "no arguments"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return runExportPrv(c.Context(), a, &o) },
	}
	runToWrite(a, c, &o.run)
	outputFlag(a, c, &o.output)
	return c
}

func runExportPrv(ctx context.Context, a *app, o *exportPrvOptions) error {
	files, err := paraver.Files(o.output)
	if err != nil {
		return fmt.Errorf("export prv: -o %w", err)
	}
	return exportFiles(ctx, a, &fileExport{format: "prv", run: o.run, files: files, discloses: true,
		write: func(dir string, w []io.Writer) ([]string, error) {
			return paraver.Export(ctx, dir, w[0], w[1], w[2])
		}})
}

type exportCFGOptions struct {
	machine string // --machine
	ranks   int    // --ranks
	output  string // --output
}

func newExportCFGCommand(a *app) *cobra.Command {
	var o exportCFGOptions
	c := &cobra.Command{
		Use:   "cfg [flags]",
		Short: "Write a machine as a configuration of Dimemas (.cfg)",
		Long: `cfg writes a machine as a configuration of Dimemas for a program of so many ranks, and a
communications file with its collectives: machine.cfg and machine.comms.cfg. Start Dimemas in their folder: it looks
for the second in the working directory. A machine that a configuration cannot describe is an error; cfg reports what
Dimemas has to be told in other ways.`,
		Example: `  commq export cfg --machine myrinet --ranks 64 -o machine.cfg
  commq export cfg --machine cluster.yaml --ranks 16 -o cluster.cfg`,
		Args:              wantArgs(0, 0, "no arguments"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return runExportCFG(a, &o) },
	}
	f := c.Flags()
	f.StringVar(&o.machine, "machine", "", "machine to write, in `FILE`: a YAML file, a configuration of Dimemas, or "+
		"one of "+
		strings.Join(models.Names(), ", "))
	f.IntVarP(&o.ranks, "ranks", "n", 0, "number `N` of ranks of the program that runs on it")
	outputFlag(a, c, &o.output)
	for _, name := range []string{"machine", "ranks"} {
		_ = c.MarkFlagRequired(name)
	}
	register(c, fixed(models.Names(), cobra.ShellCompDirectiveDefault), "machine")
	completeNothing(c, "ranks")
	return c
}

func runExportCFG(a *app, o *exportCFGOptions) error {
	m, err := models.Load(o.machine)
	if err != nil {
		return err
	}
	comms := models.CommunicationsFile(o.output)
	config, communications, notes, err := m.CFG(o.ranks, filepath.Base(comms))
	if err != nil {
		return fmt.Errorf("export cfg: %w", err)
	}
	if err := a.checkNew(comms); err != nil {
		return fmt.Errorf("export cfg: %w", err)
	}
	err = a.writeFiles([]string{o.output, comms}, func(f []io.Writer) error {
		_, first := f[0].Write(config)
		_, second := f[1].Write(communications)
		return errors.Join(first, second)
	})
	if err != nil {
		return fmt.Errorf("export cfg: %w", err)
	}
	a.report(notes)
	return nil
}
