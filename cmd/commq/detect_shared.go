package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/internal/rows"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/run"
)

// askShared asks an engine which stretches of a run contain payloads that at least this many messages share; see
// detect.Run.
type askShared func(ctx context.Context, r *run.Run, least int) (map[detect.Stretch]bool, error)

func (o *detectOptions) sharedFlags(c *cobra.Command) {
	o.engineFlag(c, "`ENGINE` that finds payloads of several messages: trino, a server that has the run "+
		"registered, or duckdb, in this process (default $COMMQ_ENGINE, else they are counted while messages are read)")
	o.dsnFlag(c)
	// the long text does not fit beside this command's many flags
	c.Flags().Lookup("dsn").Usage = "`URL` of the Trino server, as commq query --help has it\n(default $COMMQ_DSN)"
}

// shared returns the function that asks the engine; nil if the user names none, or auto: the run's files are here.
func (o *detectOptions) shared(c *cobra.Command, a *app) (askShared, error) {
	address, err := o.address(c, a, nil)
	if err != nil || o.named() == "" || o.named() == "auto" {
		return nil, err
	}
	return func(ctx context.Context, r *run.Run, least int) (map[detect.Stretch]bool, error) {
		asked := queries.Run{Name: r.Name, Dir: r.Dir, Manifest: r.Manifest}
		if address != "" {
			registered, err := askedRuns(ctx, a, address, []string{r.Name})
			if err != nil {
				return nil, err
			}
			if len(registered) != 1 || registered[0].Manifest.Digest != r.Manifest.Digest {
				return nil, errOtherRows(r.Name, r.Dir)
			}
			asked = registered[0]
		}
		return sharedPayloads(ctx, asked, queries.Options{Trino: address, MemoryBytes: int64(o.memory) << 20}, least)
	}, nil
}

// errOtherRows says that a server has other rows under a run's name than the run in folder dir.
func errOtherRows(name, dir string) error {
	return fmt.Errorf("run %q in %s and the registered run of that name have different rows; commq store register tells "+
		"the server about this one", name, dir)
}

// sharedPayloads asks an engine the query shared-payloads.
func sharedPayloads(ctx context.Context, r queries.Run, o queries.Options, least int) (map[detect.Stretch]bool, error) {
	shared := map[detect.Stretch]bool{}
	return shared, withEngine(ctx, []queries.Run{r}, o, func(ask rows.Ask) error {
		return ask(ctx, "shared-payloads", map[string]string{"min-messages": strconv.Itoa(least)},
			func(row rows.Row) error {
				shared[detect.Stretch{Epoch: int32(row.Int("epoch")), Src: int32(row.Int("src"))}] = true
				return nil
			})
	})
}
