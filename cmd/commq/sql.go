package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/queries"
)

func newSQLCommand(a *app) *cobra.Command {
	var o answerOptions
	c := &cobra.Command{
		Use:   `sql --run RUN "SELECT ..."`,
		Short: "Run your own SQL over the tables of runs",
		Long: `sql runs one SELECT, in DuckDB's dialect, over the tables of one or more runs: events, messages, parts, comms, ranks,
callsites and datatypes, each with a leading column run, and runs, a row for each run with what its manifest says.
docs/SCHEMA.md describes the columns; so does "DESCRIBE messages". With - the SQL is read from standard input.
Nothing can be changed and no other file can be read.`,
		Example: `  commq sql --run cg.A.4 "SELECT call, count(*) AS n FROM events GROUP BY call"
  commq sql --run 'cg.A.*' --format csv \
      "SELECT run, sum(bytes) AS bytes FROM messages GROUP BY run"
  commq sql --run bt.C.64 --output late.parquet - < late.sql`,
		Args: wantArgs(1, 1, "one SQL text, quoted"),
		RunE: func(c *cobra.Command, args []string) error { return runSQL(c.Context(), a, c, &o, args[0]) },
	}
	o.flags(c, a)
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if strings.HasPrefix(err.Error(), "unknown flag: -- ") {
			return fmt.Errorf("%w; put -- before SQL that begins with a comment", err)
		}
		return err
	})
	return c
}

// sqlBytes bounds the SQL that is read from standard input.
const sqlBytes = 16 << 20

func runSQL(ctx context.Context, a *app, c *cobra.Command, o *answerOptions, text string) error {
	if err := o.check(a); err != nil {
		return err
	}
	if text == "-" {
		in, err := io.ReadAll(io.LimitReader(a.stdin, sqlBytes+1))
		if err != nil {
			return fmt.Errorf("read SQL from standard input: %w", err)
		}
		if len(in) > sqlBytes {
			return fmt.Errorf("standard input has more than %d bytes; that is not SQL", sqlBytes)
		}
		text = string(in)
	}
	if strings.TrimSpace(text) == "" {
		return errors.New("no SQL given")
	}
	runs, err := findRuns(a, o.runs)
	if err != nil {
		return err
	}
	db, err := queries.Open(ctx, runs, o.engine())
	if err != nil {
		return err
	}
	rows, err := db.Query(ctx, text)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	err = o.print(a, c, rows)
	return errors.Join(err, rows.Close(), db.Close())
}
