package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/queries"
)

// registerOptions are the flags of commq store register and unregister.
type registerOptions struct {
	engineOptions
	location string // --location
	again    bool   // --again
	dryRun   bool   // --dry-run
}

func newStoreRegisterCommand(a *app) *cobra.Command {
	var o registerOptions
	var runs []string
	c := &cobra.Command{
		Use:   "register [RUN...]",
		Short: "Tell a Trino server about runs",
		Long: `register makes each run, or all runs of the store without RUN, a partition of the tables of a Trino
server's Hive connector. It makes tables that are missing; the run's files stay where they are. A run that is
registered with the same manifest and place is skipped; one that changed is replaced. The row in the table runs comes
last, so a run that is in it is complete.

--location is the store's folder as the server names it: local:///scratch/runs, which is the default if that is its
path; file:///scratch/runs, s3://bucket/runs. The catalog needs hive.allow-register-partition-procedure=true.`,
		Example: `  commq store register \
      --dsn 'http://ada@trino:8080?catalog=hive&schema=commq'
  export COMMQ_DSN='http://ada@trino:8080?catalog=hive&schema=commq'
  commq store register --location s3://jobs/runs bt.C.64
  commq store register --dry-run ring.4`,
		RunE: func(c *cobra.Command, _ []string) error {
			return runStoreRegister(c.Context(), a, &o, runs)
		},
	}
	a.runsFlag(c, &runs, "to register")
	a.readsRuns(c)
	o.registerFlags(c)
	f := c.Flags()
	f.StringVar(&o.location, "location", "", "`URL` of the store's folder on the server (default: local:// and its "+
		"path)")
	f.BoolVar(&o.again, "again", false, "also register runs that did not change")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the SQL that registers runs the server does not have; no server "+
		"is asked")
	completeNothing(c, "location")
	return c
}

func newStoreUnregisterCommand(a *app) *cobra.Command {
	var o registerOptions
	var runs []string
	c := &cobra.Command{
		Use:   "unregister RUN...",
		Short: "Make a Trino server forget runs",
		Long: `unregister removes the partitions of runs from the tables of a Trino server. The runs' files stay. RUN
is the name under which the run was registered; its files may be gone.`,
		Example: `  export COMMQ_DSN='http://ada@trino:8080?catalog=hive&schema=commq'
  commq store unregister ring.4`,
		RunE: func(c *cobra.Command, _ []string) error {
			return runStoreUnregister(c.Context(), a, &o, runs)
		},
	}
	a.wantsNames(c, &runs, "to forget")
	o.registerFlags(c)
	c.Flags().BoolVar(&o.dryRun, "dry-run", false,
		"print the SQL that unregisters runs the server has completely; no server is asked")
	return c
}

func (o *registerOptions) registerFlags(c *cobra.Command) {
	c.Flags().StringVar(&o.engineName, "engine", "trino",
		"`ENGINE` to tell about runs: trino, the only one that needs it")
	complete(c, "engine", "trino")
	o.dsnFlag(c)
}

// dial connects to the server that the flags name. With --dry-run its address may be left out.
func (o *registerOptions) dial() (*queries.Trino, error) {
	if o.dryRun && o.dsn == "" && os.Getenv("COMMQ_DSN") == "" {
		o.dsn = "http://localhost:8080" // --dry-run does not ask it
	}
	switch o.engineName { // $COMMQ_ENGINE is for questions only
	case "", "trino":
	case "duckdb":
		return nil, errors.New("--engine duckdb: DuckDB reads runs where they are; only a Trino server needs to " +
			"be told about them: leave out --engine")
	default:
		return nil, fmt.Errorf("--engine %s: want trino", o.engineName)
	}
	address, err := o.server()
	if err != nil {
		return nil, err
	}
	return queries.Dial(address)
}

// locationOf returns the URL of a run's folder on the server.
func (o *registerOptions) locationOf(store, dir string) (string, error) {
	store, err := filepath.Abs(store)
	if err != nil {
		return "", err
	}
	if o.location == "" {
		return "local://" + filepath.ToSlash(dir), nil // without escapes: the server has none in places
	}
	rel, err := filepath.Rel(store, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("run %s is outside the store %s, whose place --location names; name its store with "+
			"--store", dir, store)
	}
	return strings.TrimRight(o.location, "/") + "/" + filepath.ToSlash(rel), nil
}

// registrations returns the named runs, or all of the store, with their URLs. base is the URL of the tables' own
// folder.
func (o *registerOptions) registrations(a *app, names []string) (all []queries.Registration, base string, err error) {
	runs, err := namedOrAll(a, names)
	if err != nil {
		return nil, "", err
	}
	for _, r := range runs {
		place, err := o.locationOf(a.storeDir(), r.Dir)
		if err != nil {
			return nil, "", err
		}
		all = append(all, queries.Registration{Run: r, Location: place})
	}
	// Nothing is written to the tables' own folder, but it must exist: take the parent of a run.
	return all, all[0].Location[:strings.LastIndex(all[0].Location, "/")], nil
}

func runStoreRegister(ctx context.Context, a *app, o *registerOptions, names []string) (err error) {
	t, err := o.dial()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	all, base, err := o.registrations(a, names)
	if err != nil {
		return err
	}
	for i := range all {
		if err := all[i].Check(); err != nil {
			return err
		}
	}
	if o.dryRun {
		statements, err := t.RegisterAllSQL(base, all)
		if err != nil {
			return err
		}
		return printStatements(a.screen("sql"), statements)
	}
	if err := t.MakeTables(ctx, base); err != nil {
		return err
	}
	registered, before, err := t.RegisterAll(ctx, all, o.again)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("registered %s", counted(registered, "run"))
	if before > 0 {
		text += fmt.Sprintf("; %s registered before", counted(before, "run"))
	}
	a.note("%s", text)
	return nil
}

func runStoreUnregister(ctx context.Context, a *app, o *registerOptions, names []string) (err error) {
	t, err := o.dial()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if o.dryRun {
		var statements []string
		for _, name := range names {
			statements = append(statements, t.UnregisterSQL(name, nil)...)
		}
		return printStatements(a.screen("sql"), statements)
	}
	for _, name := range names {
		known, err := t.Unregister(ctx, name)
		if err == nil && !known {
			err = fmt.Errorf("run %q is not registered; commq sql --engine trino \"SELECT run FROM runs\" lists "+
				"those that are", name)
		}
		if err != nil {
			return err
		}
		a.note("unregistered run %s", name)
	}
	return nil
}

// printStatements prints SQL statements as a script.
func printStatements(w io.Writer, statements []string) error {
	for _, s := range statements {
		if _, err := fmt.Fprintf(w, "%s;\n\n", s); err != nil {
			return err
		}
	}
	return nil
}
