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

// engines are what can answer questions about runs.
var engines = [...]string{"duckdb", "trino"}

// engineOptions are the flags that say who answers.
type engineOptions struct {
	engineName string // --engine
	dsn        string // --dsn
}

func (e *engineOptions) flags(c *cobra.Command) {
	e.engineFlag(c, "`ENGINE` that answers: duckdb, in this process, or trino, a server that the runs are registered with (default $COMMQ_ENGINE, else duckdb)")
	e.dsnFlag(c)
}

func (e *engineOptions) engineFlag(c *cobra.Command, usage string) {
	c.Flags().StringVar(&e.engineName, "engine", "", usage)
	complete(c, "engine", engines[:]...)
}

// named is the engine that a flag or the environment names; "" where none does.
func (e *engineOptions) named() string { return cmp.Or(e.engineName, os.Getenv("COMMQ_ENGINE")) }

// dsnFlag is the one of them that needs no other.
func (e *engineOptions) dsnFlag(c *cobra.Command) {
	c.Flags().StringVar(&e.dsn, "dsn", "", "`URL` of the Trino server, with user, catalog and schema:\nhttp://USER@HOST:8080?catalog=hive&schema=commq\n(default $COMMQ_DSN)")
	completeNothing(c, "dsn")
}

// address is that of the Trino server that is to answer; "" where DuckDB is. The flags in local are about DuckDB alone.
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
			return "", fmt.Errorf("--%s is about DuckDB; a Trino server has its own limits", name)
		}
	}
	return e.server()
}

// server is the address of the Trino server.
func (e *engineOptions) server() (string, error) {
	if e.dsn != "" {
		return e.dsn, nil
	}
	if dsn := os.Getenv("COMMQ_DSN"); dsn != "" {
		return dsn, nil
	}
	return "", errors.New("no Trino server named; name it with --dsn 'http://USER@HOST:8080?catalog=hive&schema=commq', or in $COMMQ_DSN")
}

// askedRuns finds the runs named: those registered with the Trino server at the address, where it is not empty, else those on disk.
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
