package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/commq/commq/formats/dimemas"
	"github.com/commq/commq/schema"
)

func newImportCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "import",
		Short: "Make a run from another tool's trace",
		Long:  `import reads a trace of another tool and writes it as a run, for all commands that take a run.`,
		Example: `  commq import dim trace.dim --name stencil.16
  commq simulate --run stencil.16 --machine machine.cfg --dialect dimemas5`,
	}
	c.AddCommand(newImportDimCommand(a))
	return c
}

type importDimOptions struct {
	name   string // --name
	events bool   // --events
}

func newImportDimCommand(a *app) *cobra.Command {
	var o importDimOptions
	c := &cobra.Command{
		Use:   "dim [flags] FILE",
		Short: "Make a run from a trace of Dimemas (.dim)",
		Long: `dim reads a trace of Dimemas: what each task computes, sends, receives and does in collectives. The
run is untimed: its rows have compute times but no start and end; commq simulate gives it the times of a machine.
docs/method/dimemas-files.md describes every record.`,
		Example: `  commq import dim trace.dim --name stencil.16
  commq import dim bt.dim --name bt.C.64 --events`,
		Args:              wantArgs(1, 1, "the file of the trace"),
		ValidArgsFunction: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return runImportDim(c.Context(), a, &o, args[0])
		},
	}
	f := c.Flags()
	f.StringVar(&o.name, "name", "", "`NAME` of the run to write (default: the file's name without .dim)")
	f.BoolVar(&o.events, "events", false, "make each event of the trace a row, commq_mark with the label "+
		"TYPE:VALUE, instead of only counting it")
	a.writes(c)
	completeNothing(c, "name")
	return c
}

func runImportDim(ctx context.Context, a *app, o *importDimOptions, path string) error {
	m, err := dimemas.ImportFile(ctx, path, a.storeDir(), o.name,
		dimemas.Options{Events: o.events, Replace: a.replace, Origin: schema.Origin{Commq: version}})
	if err != nil {
		return fmt.Errorf("import dim: %w", err)
	}
	printSummary(a.summaries(), m)
	return nil
}
