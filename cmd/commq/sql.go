package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/schema"
)

func newSQLCommand(a *app) *cobra.Command {
	var o answerOptions
	var init bool
	c := &cobra.Command{
		Use:   `sql --run RUN "SELECT ..."`,
		Short: "Run your own SQL over the tables of runs",
		Long: `sql runs one SELECT, in DuckDB's dialect, over the tables of one or more runs: events, messages,
parts, comms, ranks, callsites and datatypes, each with a leading column run, and runs, a row for each run with its
manifest. docs/SCHEMA.md describes the columns, as does "DESCRIBE messages". With - it reads the SQL from standard
input. It cannot change anything or read other files.

--init prints SQL that defines the queries of commq as table macros, for the duckdb shell or another DuckDB without
commq: duckdb -init commq.sql -c "FROM density('bt.C.64')". docs/method/duckdb-shell.md has more.`,
		Example: `  commq sql --run cg.A.4 "SELECT call, count(*) AS n FROM events GROUP BY call"
  commq sql --run 'cg.A.*' --format csv \
      "SELECT run, sum(bytes) AS bytes FROM messages GROUP BY run"
  commq sql --run bt.C.64 --output late.parquet - < late.sql
  commq sql --init > commq.sql`,
		Args: func(c *cobra.Command, args []string) error {
			if init {
				return wantArgs(0, 0, "nothing but --init")(c, args)
			}
			return wantArgs(1, anyNumber, "one SQL text, quoted, after runs")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if init {
				return printMacros(a, c, o.output)
			}
			last := len(args) - 1
			o.runs = append(o.runs, args[:last]...)
			return runSQL(c.Context(), a, c, &o, args[last])
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.flags(c, a)
	c.Flags().BoolVar(&init, "init", false, "print the queries as DuckDB macros, for duckdb -init")
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if strings.HasPrefix(err.Error(), "unknown flag: -- ") {
			return fmt.Errorf("%w; put -- before SQL that begins with a comment", err)
		}
		return flagMistake(c, err)
	})
	return c
}

// initFlags are the flags of commq sql that go with --init.
var initFlags = []string{"init", "output", "replace", "store", "quiet"}

// printMacros prints commq.sql, including the user's own queries, or writes it to a file.
func printMacros(a *app, c *cobra.Command, file string) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && !slices.Contains(initFlags, f.Name) {
			err = fmt.Errorf("sql: --%s: --init prints the same for all runs and asks none; leave out one of them", f.Name)
		}
	})
	if err != nil {
		return err
	}
	l, err := a.queryLibrary()
	if err != nil {
		return err
	}
	l.warnings(a, "")
	text, err := queries.Macros(l.all)
	if err != nil {
		return err
	}
	return a.writeAnswer(file, "sql", func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// sqlBytes is the maximum amount of SQL read from standard input.
const sqlBytes = 16 << 20

func runSQL(ctx context.Context, a *app, c *cobra.Command, o *answerOptions, text string) error {
	if err := o.check(a, c); err != nil {
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
	runs, err := askedRuns(ctx, a, o.trino, o.runs)
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
	if err = o.print(a, c, rows); err == nil {
		noteLacking(a, runs, func(*schema.Manifest) schema.Reads { return queries.ReadsOf(text) })
	}
	return errors.Join(err, rows.Close(), db.Close())
}
