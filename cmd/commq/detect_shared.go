package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/schema"
)

// askShared says where messages of the run in a folder are whose payload so many have; see detect.Run.
type askShared func(ctx context.Context, dir string, m *schema.Manifest, least int) (map[detect.Stretch]bool, error)

func (o *detectOptions) sharedFlags(c *cobra.Command) {
	o.engineFlag(c, "`ENGINE` that says where payloads come often: trino, a server that the run is registered with, or duckdb, in this process (default $COMMQ_ENGINE, else they are counted while the messages are read)")
	o.dsnFlag(c)
	c.Flags().Lookup("dsn").Usage = "`URL` of the Trino server, as commq query --help has it\n(default $COMMQ_DSN)" // there is less room here
}

// shared is how an engine is asked; nil where none is named.
func (o *detectOptions) shared(c *cobra.Command, a *app) (askShared, error) {
	address, err := o.address(c)
	if err != nil || o.named() == "" {
		return nil, err
	}
	return func(ctx context.Context, dir string, m *schema.Manifest, least int) (map[detect.Stretch]bool, error) {
		run := queries.Run{Name: filepath.Base(dir), Dir: dir, Manifest: m}
		if address != "" {
			there, err := askedRuns(ctx, a, address, []string{run.Name})
			if err != nil {
				return nil, err
			}
			if len(there) != 1 || there[0].Manifest.Digest != m.Digest {
				return nil, fmt.Errorf("run %q in %s and the one registered with the server have different rows; commq store register makes the server know this one", run.Name, dir)
			}
			run = there[0]
		}
		return sharedPayloads(ctx, run, queries.Options{Trino: address, MemoryBytes: int64(o.memory) << 20}, least)
	}, nil
}

// sharedPayloads asks an engine the query shared-payloads.
func sharedPayloads(ctx context.Context, run queries.Run, o queries.Options, least int) (shared map[detect.Stretch]bool, err error) {
	all, err := queries.Named([]string{"shared-payloads"})
	if err != nil {
		return nil, err
	}
	db, err := queries.Open(ctx, []queries.Run{run}, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.Ask(ctx, all[0], map[string]string{"min-messages": strconv.Itoa(least)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	shared = map[detect.Stretch]bool{}
	for rows.Next() {
		row := rows.Row()
		shared[detect.Stretch{Epoch: row[0].(int32), Src: row[1].(int32)}] = true
	}
	return shared, rows.Err()
}
