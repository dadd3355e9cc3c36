package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/writer"
)

func newStorePublishCommand(a *app) *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "publish --to DIR [RUN...]",
		Short: "Lay runs out by tables, as engines read them without commq",
		Long: `publish makes a folder of tables, each with a folder for each run: DIR/events/run=bt.C.64/0000.parquet. DuckDB, Spark, Trino and what else
knows Hive's partitions read it as it is, run being a column:

    SELECT run, count(*)
    FROM read_parquet('DIR/events/*/*.parquet', hive_partitioning = true)
    GROUP BY run

Without RUN it is all runs of the store. The files are the runs' own under a second name (hard links), or copies where DIR is on
another file system. DIR/runs has a row for each run with what its manifest says; it is written last, so a run that is in it is
there as a whole. A run that is there and did not change is left alone; one that changed is replaced.`,
		Example: `  commq store publish --to /shared/tables
  commq store publish --to /shared/tables bt.C.64 'sp.A.*'
  duckdb -c "FROM read_parquet('/shared/tables/runs/*/*.parquet',
      hive_partitioning = true)"`,
		ValidArgsFunction: completeRuns(a),
		RunE: func(c *cobra.Command, args []string) error {
			return runStorePublish(c.Context(), a, to, args)
		},
	}
	publishFlag(c, &to)
	return c
}

func publishFlag(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "to", "", "`DIR` of the tables")
	completeFolders(c, "to")
}

func newStoreUnpublishCommand(a *app) *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:               "unpublish --to DIR RUN...",
		Short:             "Take runs from a folder of tables again",
		Long:              `unpublish takes runs from the folder in which store publish laid them out: first their rows of runs. The runs in the store stay.`,
		Example:           `  commq store unpublish --to /shared/tables bt.C.64`,
		Args:              wantArgs(1, anyNumber, "names of runs"),
		ValidArgsFunction: completeRuns(a),
		RunE: func(_ *cobra.Command, args []string) error {
			if to == "" {
				return errors.New("store unpublish: say with --to from where")
			}
			for _, name := range args {
				if err := writer.Unpublish(name, to); err != nil {
					return fmt.Errorf("store unpublish: %w", err)
				}
			}
			return nil
		},
	}
	publishFlag(c, &to)
	return c
}

func runStorePublish(ctx context.Context, a *app, to string, names []string) error {
	if to == "" {
		return errors.New("store publish: say with --to where")
	}
	runs, err := namedOrAll(a, names)
	if err != nil {
		return err
	}
	already, linked, copied := 0, 0, 0
	for _, r := range runs {
		if err := ctx.Err(); err != nil {
			return err
		}
		row, err := runsRow(ctx, r)
		if err != nil {
			return fmt.Errorf("store publish: %w", err)
		}
		p, err := writer.Publish(r.Dir, r.Name, to, row)
		if err != nil {
			return fmt.Errorf("store publish: %w", err)
		}
		if p == (writer.Published{}) {
			already++
		}
		linked, copied = linked+p.Linked, copied+p.Copied
	}
	a.note("%s published in %s, %d of them before; %s linked, %d copied", counted(int64(len(runs)), "run"), to, already, counted(int64(linked), "file"), copied)
	return nil
}

// runsRow is the run's row of the table runs as a Parquet file, without the run's name, which is the partition's.
func runsRow(ctx context.Context, r queries.Run) (data []byte, err error) {
	db, err := queries.Open(ctx, []queries.Run{r}, queries.Options{Threads: 1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.Query(ctx, "SELECT * EXCLUDE (run) FROM runs")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = output.Write(&b, "parquet", output.Limit(rows, 0))
	return b.Bytes(), errors.Join(err, rows.Close())
}

// namedOrAll are the runs that names or patterns mean, or without any all of the store that can be read.
func namedOrAll(a *app, names []string) ([]queries.Run, error) {
	if len(names) > 0 {
		runs, err := findRuns(a, names)
		if err != nil {
			return nil, err
		}
		return runs, distinct(runs)
	}
	infos, err := writer.List(a.storeDir())
	if err != nil {
		return nil, err
	}
	var runs []queries.Run
	for _, info := range infos {
		if info.Err != nil {
			a.warn("left out: %v", info.Err)
			continue
		}
		dir, err := filepath.Abs(info.Dir)
		if err != nil {
			return nil, err
		}
		runs = append(runs, queries.Run{Name: filepath.Base(dir), Dir: dir, Manifest: info.Manifest})
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("the store %s has no runs; name it with --store", a.storeDir())
	}
	return runs, nil
}
