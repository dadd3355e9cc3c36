package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/writer"
	"github.com/commq/commq/writer/objects"
)

// engines can answer questions about runs. auto is DuckDB for runs that the store has, where it is nearly always faster,
// and else the server.
var engines = [...]string{"duckdb", "trino", "auto"}

// engineOptions are the flags for the engine.
type engineOptions struct {
	engineName string // --engine
	dsn        string // --dsn
}

func (e *engineOptions) engineFlags(c *cobra.Command) {
	e.engineFlag(c, "`ENGINE` that answers: duckdb, in this process; trino, a server that has the runs "+
		"registered; or auto: duckdb for runs that the store has, else trino (default $COMMQ_ENGINE, else duckdb)")
	e.dsnFlag(c)
}

func (e *engineOptions) engineFlag(c *cobra.Command, usage string) {
	c.Flags().StringVar(&e.engineName, "engine", "", usage)
	complete(c, "engine", engines[:]...)
}

// named returns the engine that a flag or the environment names; "" if neither does.
func (e *engineOptions) named() string { return cmp.Or(e.engineName, os.Getenv("COMMQ_ENGINE")) }

// dsnFlag adds only --dsn.
func (e *engineOptions) dsnFlag(c *cobra.Command) {
	c.Flags().StringVar(&e.dsn, "dsn", "", "`URL` of the Trino server, with user, catalog and "+
		"schema:\nhttp://USER@HOST:8080?catalog=hive&schema=commq\n(default $COMMQ_DSN)")
	completeNothing(c, "dsn")
}

// address returns the URL of the Trino server to ask about runs, or "" for DuckDB. The flags in local apply only to
// DuckDB.
func (e *engineOptions) address(c *cobra.Command, a *app, runs []string, local ...string) (string, error) {
	engine := e.named()
	if engine == "auto" {
		engine = "trino"
		if objects.Is(a.storeDir()) || cmp.Or(e.dsn, os.Getenv("COMMQ_DSN")) == "" || hasAll(a, runs) {
			return "", nil
		}
	}
	switch {
	case engine == "" || engine == "duckdb":
		if e.dsn != "" {
			return "", errors.New("--dsn is the address of a Trino server; say --engine trino or auto too")
		}
		return "", nil
	case engine != "trino":
		return "", fmt.Errorf("engine %q: want duckdb, trino or auto", engine)
	}
	for _, name := range local {
		if c.Flags().Changed(name) {
			return "", fmt.Errorf("--%s is for DuckDB; a Trino server has its own limits", name)
		}
	}
	return e.server()
}

// hasAll reports whether the store has the runs of all names and patterns, readable or not.
func hasAll(a *app, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		_, _, err := writer.FindAll(a.storeDir(), name)
		return err != nil
	})
}

// server returns the URL of the Trino server.
func (e *engineOptions) server() (string, error) {
	if e.dsn != "" {
		return e.dsn, nil
	}
	if dsn := os.Getenv("COMMQ_DSN"); dsn != "" {
		return dsn, nil
	}
	return "", errors.New("no Trino server named; name it with --dsn " +
		"'http://USER@HOST:8080?catalog=hive&schema=commq', or in $COMMQ_DSN")
}

// askedRuns finds runs by name: on the Trino server at address, or in the store if address is empty.
func askedRuns(ctx context.Context, a *app, address string, names []string) ([]queries.Run, error) {
	if address == "" && objects.Is(a.storeDir()) {
		return findObjects(ctx, a, names)
	}
	if address == "" {
		return findRuns(a, names)
	}
	t, err := queries.Dial(address)
	if err != nil {
		return nil, err
	}
	runs, err := t.Find(ctx, names)
	return runs, errors.Join(err, t.Close())
}
