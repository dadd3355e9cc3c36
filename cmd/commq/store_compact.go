package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

func newStoreCompactCommand(a *app) *cobra.Command {
	var perFile int64
	c := &cobra.Command{
		Use:   "compact RUN...",
		Short: "Merge the many small files of runs into few large ones",
		Long: `compact rewrites the tables of a run that several nodes wrote: its many small files become few large
ones, each of a range of ranks, with sorted rows and row groups of the usual size, which engines read fastest. The
rows and the digest do not change. The new files replace the old ones in one step when they are complete; if compact
is interrupted the run is as before. RUN is a name in the store or a path.`,
		Example: `  commq store compact bt.C.64
  commq store compact --rows-per-file 50000000 /scratch/runs/*`,
		Args:              wantArgs(1, anyNumber, "names of runs"),
		ValidArgsFunction: completeRuns(a),
		RunE: func(c *cobra.Command, args []string) error {
			if perFile < 1 && c.Flags().Changed("rows-per-file") {
				return fmt.Errorf("--rows-per-file %d: want 1 or more", perFile)
			}
			return runStoreCompact(c.Context(), a, perFile, args)
		},
	}
	c.Flags().Int64Var(&perFile, "rows-per-file", 0,
		"rows of events per file, about; at most 8 files\n(default 2097152)")
	completeNothing(c, "rows-per-file")
	return c
}

func runStoreCompact(ctx context.Context, a *app, perFile int64, runs []string) error {
	for _, run := range runs {
		if err := compactRun(ctx, a, perFile, run); err != nil {
			return err
		}
	}
	return nil
}

// compactRun compacts one run and prints its files before and after.
func compactRun(ctx context.Context, a *app, perFile int64, run string) error {
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
	a.note("compacted run %s: %s before, %s now", run, filesText(before), filesText(after))
	return nil
}

// filesText returns how many files a run has and their size.
func filesText(m *schema.Manifest) string {
	files := int64(0)
	for _, t := range m.Tables {
		files += int64(len(t.Files))
	}
	return fmt.Sprintf("%s of %s", counted(files, "file"), inBytes(fileBytes(m)))
}
