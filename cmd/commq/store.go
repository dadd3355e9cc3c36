package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newStoreCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "store",
		Short: "Put runs where other engines and machines read them",
		Long: `store works on where runs lie, and on who knows of them. A store is a folder of runs: --store, else $COMMQ_STORE, else ./runs.
register makes a Trino server know its runs, so that it answers the questions of many people about the runs of a month, on several
machines; the files stay where they are. publish lays runs out as tables that DuckDB, Spark and Trino read without commq.
push copies runs into object storage (S3), pull brings them back; --store s3://BUCKET/PREFIX asks them there.`,
		Example: `  export COMMQ_DSN='http://ada@trino:8080?catalog=hive&schema=commq'
  commq store register --engine trino
  commq store unregister --engine trino ring.4
  commq store publish --to /shared/tables
  commq store push s3://jobs/2026-11 bt.C.64`,
	}
	subcommands := []*cobra.Command{
		newStoreRegisterCommand(a),
		newStoreUnregisterCommand(a),
		newStorePublishCommand(a),
		newStoreUnpublishCommand(a),
		newStorePushCommand(a),
		newStorePullCommand(a),
	}
	var names []string
	for _, s := range subcommands {
		c.AddCommand(s)
		names = append(names, s.Name())
	}
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		return fmt.Errorf("store %s: want one of %s", args[0], strings.Join(names, ", "))
	}
	return c
}
