package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

func newStoreCompactCommand(a *app) *cobra.Command {
	var perFile int64
	var runs []string
	c := &cobra.Command{
		Use:   "compact RUN...",
		Short: "Merge the many small files of runs into few large ones",
		Long: `compact rewrites the tables of a run that several nodes wrote: its many small files become few large
ones, each of a range of ranks, with sorted rows and a row group for each epoch, which engines read fastest. The
rows and the digest do not change. The new files replace the old ones in one step when they are complete; if compact
is interrupted the run is as before. RUN is a name in the store, a path, or a pattern of either.`,
		Example: `  commq store compact bt.C.64
  commq store compact --rows-per-file 50000000 '/scratch/runs/*'`,
		RunE: func(c *cobra.Command, _ []string) error {
			if perFile < 1 && c.Flags().Changed("rows-per-file") {
				return fmt.Errorf("--rows-per-file %d: want 1 or more", perFile)
			}
			return runStoreCompact(c.Context(), a, perFile, runs)
		},
	}
	a.wantsRuns(c, &runs, "to compact")
	c.Flags().Int64Var(&perFile, "rows-per-file", 0,
		"rows of events per file, about; at most 2 files\n(default 2097152)")
	completeNothing(c, "rows-per-file")
	return c
}

func runStoreCompact(ctx context.Context, a *app, perFile int64, runs []string) error {
	return run.Each(a.storeDir(), runs, func(run, dir string) error { return compactRun(ctx, a, perFile, run, dir) })
}

// compactRun compacts one run and prints its files before and after.
func compactRun(ctx context.Context, a *app, perFile int64, run, dir string) error {
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
	return fmt.Sprintf("%s of %s", counted(files, "file"), inBytes(m.FileBytes()))
}
