package main

import (
	"github.com/spf13/cobra"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/run"
	"github.com/commq/commq/writer"
)

func newStoreCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "store",
		Short: "Merge the files of runs, and make runs available to other engines and machines",
		Long: `store works on the files of a store, which is a folder of runs: --store, else $COMMQ_STORE, else ./runs.

compact merges the many small files of runs into few large ones. register tells a Trino server about runs; their files stay in place, and the server answers many people's questions
about many runs on several machines. publish lays runs out as tables that DuckDB, Spark and Trino read without commq.
push copies runs into object storage (S3), pull brings them back; --store s3://BUCKET/PREFIX queries them there.`,
		Example: `  commq store compact bt.C.64
  export COMMQ_DSN='http://ada@trino:8080?catalog=hive&schema=commq'
  commq store register --engine trino
  commq store unregister --engine trino ring.4
  commq store publish --to /shared/tables
  commq store push s3://jobs/2026-11 bt.C.64`,
	}
	c.AddCommand(
		newStoreCompactCommand(a),
		newStoreRegisterCommand(a),
		newStoreUnregisterCommand(a),
		newStorePublishCommand(a),
		newStoreUnpublishCommand(a),
		newStorePushCommand(a),
		newStorePullCommand(a),
	)
	return c
}

// namedOrAll finds the runs that names and patterns match, or without any all readable runs of the store.
func namedOrAll(a *app, names []string) ([]queries.Run, error) {
	if len(names) > 0 {
		runs, err := findRuns(a, names)
		if err != nil {
			return nil, err
		}
		return runs, distinct(runs)
	}
	found, err := run.All(a.storeDir(), warnLeftOut(a))
	return queriedRuns(found), err
}

// storedRuns returns runs as package writer has them.
func storedRuns(runs []queries.Run) (list []writer.Info) {
	for _, r := range runs {
		list = append(list, writer.Info{Name: r.Name, Dir: r.Dir, Manifest: r.Manifest})
	}
	return list
}
