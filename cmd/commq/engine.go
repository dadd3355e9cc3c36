package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/writer/objects"
)

// engines can answer questions about runs.
var engines = [...]string{"duckdb", "trino"}

// engineOptions are the flags for the engine.
type engineOptions struct {
	engineName string // --engine
	dsn        string // --dsn
}

func (e *engineOptions) engineFlags(c *cobra.Command) {
	e.engineFlag(c, "`ENGINE` that answers: duckdb, in this process, or trino, a server that has the runs "+
		"registered (default $COMMQ_ENGINE, else duckdb)")
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

// address returns the URL of the Trino server to ask, or "" for DuckDB. The flags in local apply only to DuckDB.
func (e *engineOptions) address(c *cobra.Command, local ...string) (string, error) {
	switch engine := e.named(); {
	case engine == "" || engine == "duckdb":
		if e.dsn != "" {
			return "", errors.New("--dsn is the address of a Trino server; say --engine trino too")
		}
		return "", nil
	case engine != "trino":
		return "", fmt.Errorf("engine %q: want duckdb or trino", engine)
	}
	for _, name := range local {
		if c.Flags().Changed(name) {
			return "", fmt.Errorf("--%s is for DuckDB; a Trino server has its own limits", name)
		}
	}
	return e.server()
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
