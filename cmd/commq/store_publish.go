package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/writer"
)

func newStorePublishCommand(a *app) *cobra.Command {
	var to string
	var runs []string
	c := &cobra.Command{
		Use:   "publish --to DIR [RUN...]",
		Short: "Lay runs out by tables, for engines that know nothing of commq",
		Long: `publish makes a folder of tables, each with a folder for each run:
DIR/events/run=bt.C.64/0000.parquet. DuckDB, Spark, Trino and other engines that know Hive's partitions read them
directly, with a column run:

    SELECT run, count(*)
    FROM read_parquet('DIR/events/*/*.parquet', hive_partitioning = true)
    GROUP BY run

Without RUN it publishes all runs of the store. The files are hard links to those of the run, or copies if DIR is on
another file system. DIR/runs has a row for each run with the contents of its manifest; it is written last, so a run
that is in it is complete. A run that is there and did not change is skipped; one that changed is replaced.`,
		Example: `  commq store publish --to /shared/tables
  commq store publish --to /shared/tables bt.C.64 'sp.A.*'
  duckdb -c "FROM read_parquet('/shared/tables/runs/*/*.parquet',
      hive_partitioning = true)"`,
		RunE: func(c *cobra.Command, _ []string) error {
			return runStorePublish(c.Context(), a, to, runs)
		},
	}
	a.runsFlag(c, &runs, "to publish")
	a.readsRuns(c)
	publishFlag(c, &to)
	return c
}

func publishFlag(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "to", "", "`DIR` of the tables")
	completeFolders(c, "to")
}

// checkTo rejects a command without --to.
func checkTo(command, to string) error {
	if to == "" {
		return fmt.Errorf("store %s: name the folder with --to", command)
	}
	return nil
}

func newStoreUnpublishCommand(a *app) *cobra.Command {
	var to string
	var runs []string
	c := &cobra.Command{
		Use:   "unpublish --to DIR RUN...",
		Short: "Remove runs from a folder of tables",
		Long: `unpublish removes runs from a folder that store publish made, their rows of the table
runs first. The runs in the store stay.`,
		Example: `  commq store unpublish --to /shared/tables bt.C.64`,
		RunE: func(*cobra.Command, []string) error {
			if err := checkTo("unpublish", to); err != nil {
				return err
			}
			for _, name := range runs {
				if err := writer.Unpublish(name, to); err != nil {
					return fmt.Errorf("store unpublish: %w", err)
				}
			}
			return nil
		},
	}
	a.wantsNames(c, &runs, "to remove from the folder")
	publishFlag(c, &to)
	return c
}

func runStorePublish(ctx context.Context, a *app, to string, names []string) error {
	if err := checkTo("publish", to); err != nil {
		return err
	}
	runs, err := namedOrAll(a, names)
	if err != nil {
		return err
	}
	files, before, err := writer.PublishAll(ctx, storedRuns(runs), to, runsRow)
	if err != nil {
		return fmt.Errorf("store publish: %w", err)
	}
	a.note("%s published in %s, %d of them before; %s linked, %d copied", counted(int64(len(runs)), "run"), to,
		before, counted(int64(files.Linked), "file"), files.Copied)
	return nil
}

// runsRow returns the run's row of the table runs as a Parquet file.
func runsRow(ctx context.Context, r writer.Info) ([]byte, error) {
	return output.RunsRow(ctx, queries.Run{Name: r.Name, Dir: r.Dir, Manifest: r.Manifest})
}
