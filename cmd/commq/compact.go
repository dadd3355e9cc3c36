package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

func newCompactCommand(a *app) *cobra.Command {
	var perFile int64
	c := &cobra.Command{
		Use:   "compact RUN...",
		Short: "Rewrite runs of many small files as few large ones",
		Long: `compact writes the tables of runs again: the many small files of a run that several nodes wrote become few, each of a range of ranks, with
sorted rows and row groups of the usual size, which engines read fastest. The rows stay, and with them the digest. A run is replaced when its
new files are whole, in one step; until then, and when compact is interrupted, it is as it was. RUN is a name in the store or a path.`,
		Example: `  commq compact bt.C.64
  commq compact --rows-per-file 50000000 /scratch/runs/*`,
		Args:              wantArgs(1, anyNumber, "names of runs"),
		ValidArgsFunction: completeRuns(a),
		RunE: func(c *cobra.Command, args []string) error {
			if perFile < 1 && c.Flags().Changed("rows-per-file") {
				return fmt.Errorf("--rows-per-file is %d; give 1 or more", perFile)
			}
			return runCompact(c.Context(), a, perFile, args)
		},
	}
	c.Flags().Int64Var(&perFile, "rows-per-file", 0, "rows of events to a file, about; at most 8 files\n(default 2097152)")
	completeNothing(c, "rows-per-file")
	return c
}

func runCompact(ctx context.Context, a *app, perFile int64, runs []string) error {
	for _, run := range runs {
		dir, err := writer.Find(a.storeDir(), run)
		if err != nil {
			return err
		}
		update, finish := newProgress(a, "compact "+run, "rows")
		before, after, err := writer.Compact(ctx, dir, perFile, update)
		finish()
		if err != nil {
			return err
		}
		a.note("compacted run %s: %s before, %s now", run, filesOf(before), filesOf(after))
	}
	return nil
}

// filesOf says how many files a run has, and how large they are.
func filesOf(m *schema.Manifest) string {
	files, bytes := int64(0), int64(0)
	for _, t := range m.Tables {
		for _, f := range t.Files {
			files, bytes = files+1, bytes+f.Bytes
		}
	}
	return fmt.Sprintf("%s of %s", counted(files, "file"), inBytes(bytes))
}
