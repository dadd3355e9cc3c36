package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/dim"
	"github.com/commq/commq/capture/perfetto"
	"github.com/commq/commq/capture/prv"
	"github.com/commq/commq/models"
	"github.com/commq/commq/writer"
)

func newExportCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "export",
		Short: "Write a run or a machine as a file of another tool, or to give away",
		Long: `export writes a run or a machine in the format of another tool, a file that must not be there yet. What the format cannot
hold is counted and said. replay writes a run that has its schedule and nothing of what it worked on.`,
		Example: `  commq export dim --run cg.A.4 -o cg.dim
  commq export replay --run cg.A.4 -o shared/cg.A.4
  commq export cfg --machine myrinet --ranks 4 -o machine.cfg`,
	}
	c.AddCommand(newExportDimCommand(a), newExportPerfettoCommand(a), newExportPrvCommand(a), newExportCFGCommand(a), newExportReplayCommand(a), newExportBenchfmtCommand(a))
	return c
}

// outputFlag adds --output to a command.
func outputFlag(c *cobra.Command, path *string) {
	c.Flags().StringVarP(path, "output", "o", "", "file to write; it must not be there yet")
	_ = c.MarkFlagRequired("output") // the flag is there
	completeFiles(c, "output")
}

type exportDimOptions struct {
	run       string // --run
	threshold int64  // --eager-threshold-bytes
	output    string // --output
}

func newExportDimCommand(a *app) *cobra.Command {
	var o exportDimOptions
	c := &cobra.Command{
		Use:   "dim [flags]",
		Short: "Write a run as a trace of Dimemas (.dim)",
		Long: `dim writes what each rank of a run computes, sends, receives and does together with others as a trace of Dimemas. The run has
to have all rows of events and compute times. Receives have the source and tag that they got, each receive that is waited for has a
wait of its own, and sends have none. What Dimemas does not have is counted and said; docs/method/dimemas-files.md has the rules.`,
		Example: `  commq export dim --run cg.A.4 -o cg.dim
  commq export dim --run cg.A.4 --eager-threshold-bytes 65536 -o cg.dim`,
		Args:              wantArgs(0, 0, "no arguments"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return runExportDim(c.Context(), a, &o) },
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "run to write: a name in the store, or a path")
	f.Int64Var(&o.threshold, "eager-threshold-bytes", 0, "size from which on a send waits for its receiver (default: only those of MPI_Ssend and its like do)")
	outputFlag(c, &o.output)
	_ = c.MarkFlagRequired("run")
	register(c, completeRuns(a), "run")
	completeNothing(c, "eager-threshold-bytes")
	return c
}

func runExportDim(ctx context.Context, a *app, o *exportDimOptions) error {
	if o.threshold < 0 {
		return fmt.Errorf("--eager-threshold-bytes %d: want a number of bytes", o.threshold)
	}
	folder, err := writer.Find(a.storeDir(), o.run)
	if err != nil {
		return err
	}
	f, err := createNew(o.output)
	if err != nil {
		return fmt.Errorf("export dim: %w", err)
	}
	notes, err := dim.Export(ctx, folder, f, dim.ExportOptions{EagerThresholdBytes: o.threshold})
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(o.output) // half a file helps nobody
		return fmt.Errorf("export dim: %s: %w", o.run, err)
	}
	for _, note := range notes {
		fmt.Fprintf(a.stderr, "commq: %s\n", note)
	}
	return nil
}

type exportPerfettoOptions struct {
	run    string // --run
	output string // --output
}

func newExportPerfettoCommand(a *app) *cobra.Command {
	var o exportPerfettoOptions
	c := &cobra.Command{
		Use:   "perfetto [flags]",
		Short: "Write a run for Perfetto or Chrome (Trace Event Format)",
		Long: `perfetto writes a run with times as JSON that ui.perfetto.dev and chrome://tracing show: a rank is a process, a call a slice, a
request an asynchronous slice from the call that made it to the one that completed it, a message an arrow to a slice of its own in the
call that received it; docs/method/perfetto.md has more.`,
		Example:           `  commq export perfetto --run cg.A.4 -o cg.json`,
		Args:              wantArgs(0, 0, "no arguments"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return runExportPerfetto(c.Context(), a, &o) },
	}
	c.Flags().StringVar(&o.run, "run", "", "run to write: a name in the store, or a path")
	outputFlag(c, &o.output)
	_ = c.MarkFlagRequired("run")
	register(c, completeRuns(a), "run")
	return c
}

func runExportPerfetto(ctx context.Context, a *app, o *exportPerfettoOptions) error {
	folder, err := writer.Find(a.storeDir(), o.run)
	if err != nil {
		return err
	}
	f, err := createNew(o.output)
	if err != nil {
		return fmt.Errorf("export perfetto: %w", err)
	}
	err = perfetto.Export(ctx, folder, f)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(o.output) // half a file helps nobody
		return fmt.Errorf("export perfetto: %s: %w", o.run, err)
	}
	return nil
}

type exportPrvOptions struct {
	run    string // --run
	output string // --output
}

func newExportPrvCommand(a *app) *cobra.Command {
	var o exportPrvOptions
	c := &cobra.Command{
		Use:   "prv [flags]",
		Short: "Write a run as a trace of Paraver (.prv, .pcf, .row)",
		Long: `prv writes a run with times, measured, virtual or simulated, as the three files that Paraver opens: states, events of MPI calls and
communications, with the types of Extrae, which Dimemas' prv2dim reads too; docs/method/paraver.md has them.`,
		Example: `  commq export prv --run cg.A.4 -o cg.prv
  commq simulate --run cg.A.4 --machine myrinet --save cg.myrinet
  commq export prv --run cg.myrinet -o cg.myrinet.prv`,
		Args:              wantArgs(0, 0, "no arguments"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return runExportPrv(c.Context(), a, &o) },
	}
	c.Flags().StringVar(&o.run, "run", "", "run to write: a name in the store, or a path")
	outputFlag(c, &o.output)
	_ = c.MarkFlagRequired("run")
	register(c, completeRuns(a), "run")
	return c
}

func runExportPrv(ctx context.Context, a *app, o *exportPrvOptions) (err error) {
	base, ok := strings.CutSuffix(o.output, ".prv")
	if !ok || filepath.Base(o.output) == ".prv" {
		return fmt.Errorf("export prv: -o %s: want a file name ending in .prv; those ending in .pcf and .row are made beside it", o.output)
	}
	folder, err := writer.Find(a.storeDir(), o.run)
	if err != nil {
		return err
	}
	var files []*os.File
	defer func() {
		for _, f := range files {
			err = errors.Join(err, f.Close())
			if err != nil {
				_ = os.Remove(f.Name()) // half a file helps nobody
			}
		}
	}()
	for _, name := range []string{o.output, base + ".pcf", base + ".row"} {
		f, err := createNew(name)
		if err != nil {
			return fmt.Errorf("export prv: %w", err)
		}
		files = append(files, f)
	}
	notes, err := prv.Export(ctx, folder, files[0], files[1], files[2])
	if err != nil {
		return fmt.Errorf("export prv: %s: %w", o.run, err)
	}
	for _, note := range notes {
		fmt.Fprintf(a.stderr, "commq: %s\n", note)
	}
	return nil
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
		Long: `cfg writes a machine as a configuration of Dimemas for a program of so many ranks, and beside it the communications file with
its collectives: machine.cfg and machine.comms.cfg. Start Dimemas in their folder: it looks for the second in the working directory.
What a configuration cannot say is an error; what Dimemas has to be told otherwise is said.`,
		Example: `  commq export cfg --machine myrinet --ranks 64 -o machine.cfg
  commq export cfg --machine cluster.yaml --ranks 16 -o cluster.cfg`,
		Args:              wantArgs(0, 0, "no arguments"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return runExportCFG(a, &o) },
	}
	f := c.Flags()
	f.StringVar(&o.machine, "machine", "", "machine to write: a YAML file, a configuration of Dimemas, or one of "+strings.Join(models.Names(), ", "))
	f.IntVar(&o.ranks, "ranks", 0, "number of ranks of the program that runs on it")
	outputFlag(c, &o.output)
	for _, name := range []string{"machine", "ranks"} {
		_ = c.MarkFlagRequired(name)
	}
	register(c, fixed(models.Names(), cobra.ShellCompDirectiveDefault), "machine")
	completeNothing(c, "ranks")
	return c
}

func runExportCFG(a *app, o *exportCFGOptions) error {
	m, err := readMachine(o.machine)
	if err != nil {
		return err
	}
	comms := strings.TrimSuffix(o.output, filepath.Ext(o.output)) + ".comms.cfg"
	config, communications, notes, err := m.CFG(o.ranks, filepath.Base(comms))
	if err != nil {
		return fmt.Errorf("export cfg: %w", err)
	}
	if err := writeNew(o.output, config); err != nil {
		return fmt.Errorf("export cfg: %w", err)
	}
	if err := writeNew(comms, communications); err != nil {
		return fmt.Errorf("export cfg: %w", err)
	}
	for _, note := range notes {
		fmt.Fprintf(a.stderr, "commq: %s\n", note)
	}
	return nil
}

// createNew makes a file that is not there yet.
func createNew(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if os.IsExist(err) {
		return nil, fmt.Errorf("%s exists; name another file with -o, or remove it", path)
	}
	return f, err
}

// writeNew writes a file that is not there yet.
func writeNew(path string, data []byte) error {
	f, err := createNew(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
