package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/dim"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

func newImportCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "import",
		Short: "Make a run from another tool's trace",
		Long:  `import reads a trace that another tool wrote and writes it as a run: every command that takes a run takes this one.`,
		Example: `  commq import dim trace.dim --run stencil.16
  commq simulate --run stencil.16 --machine machine.cfg --dialect dimemas5`,
	}
	c.AddCommand(newImportDimCommand(a))
	return c
}

type importDimOptions struct {
	run    string // --run
	events bool   // --events
}

func newImportDimCommand(a *app) *cobra.Command {
	var o importDimOptions
	c := &cobra.Command{
		Use:   "dim [flags] FILE",
		Short: "Make a run from a trace of Dimemas (.dim)",
		Long: `dim reads a trace of Dimemas, what each task computes, sends, receives and does together with others, as an untimed run:
its rows have compute times and no start and end (commq simulate gives it those of a machine). docs/method/dimemas-files.md says
what becomes of each record.`,
		Example: `  commq import dim trace.dim --run stencil.16
  commq import dim bt.dim --run bt.C.64 --events`,
		Args:              wantArgs(1, 1, "the file of the trace"),
		ValidArgsFunction: oneFile,
		RunE:              func(c *cobra.Command, args []string) error { return runImportDim(c.Context(), a, &o, args[0]) },
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "name of the run to write (default: the file's name without .dim)")
	f.BoolVar(&o.events, "events", false, "give each event of the trace a row, commq_mark with the label TYPE:VALUE; else they are only counted")
	completeNothing(c, "run")
	return c
}

func runImportDim(ctx context.Context, a *app, o *importDimOptions, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("import dim: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("import dim: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("import dim: %s is no regular file; it is read several times: write the trace to a file first", path)
	}
	name := o.run
	if name == "" {
		name = writer.NameFor(strings.TrimSuffix(filepath.Base(path), ".dim"))
	}
	out, err := writer.Create(a.storeDir(), name, writer.Options{})
	if err != nil {
		return err
	}
	defer out.Abort()
	m, err := dim.Import(ctx, f, info.Size(), out, dim.Options{Name: path, Events: o.events, Origin: schema.Origin{Commq: version}})
	if err != nil {
		return fmt.Errorf("import dim: %w", err)
	}
	printSummary(a.summaries(), m)
	return nil
}
