package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
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
	dry      bool   // --dry-run
}

func newStoreRegisterCommand(a *app) *cobra.Command {
	var o registerOptions
	c := &cobra.Command{
		Use:   "register [RUN...]",
		Short: "Make runs known to a Trino server",
		Long: `register makes each run a partition of the tables of a Trino server's Hive connector: the tables are made where they are not there, the
files stay where they are and are not written. Without RUN it is all runs of the store. A run that is registered already with the same
manifest and place is left alone, one that changed is replaced. A run is there when all of it is: its row in the table runs comes last.

--location says how the server names the store's folder: local:///scratch/runs, file:///scratch/runs, s3://bucket/runs. The catalog needs
hive.allow-register-partition-procedure=true.`,
		Example: `  commq store register \
      --dsn 'http://ada@trino:8080?catalog=hive&schema=commq'
  export COMMQ_DSN='http://ada@trino:8080?catalog=hive&schema=commq'
  commq store register --location s3://jobs/runs bt.C.64
  commq store register --dry-run ring.4`,
		ValidArgsFunction: completeRuns(a),
		RunE: func(c *cobra.Command, args []string) error {
			return runStoreRegister(c.Context(), a, &o, args)
		},
	}
	o.registerFlags(c)
	f := c.Flags()
	f.StringVar(&o.location, "location", "", "`URL` by which the server names the store's folder (default: file:// and its path)")
	f.BoolVar(&o.again, "again", false, "register runs that did not change, too")
	f.BoolVar(&o.dry, "dry-run", false, "print the SQL that makes runs known that are not; no server is asked")
	completeNothing(c, "location")
	return c
}

func newStoreUnregisterCommand(a *app) *cobra.Command {
	var o registerOptions
	c := &cobra.Command{
		Use:   "unregister RUN...",
		Short: "Make a Trino server forget runs",
		Long: `unregister takes the partitions of runs from the tables of a Trino server. The runs' files stay. RUN is the name under which the run was
registered, also of a run whose files are gone.`,
		Example: `  export COMMQ_DSN='http://ada@trino:8080?catalog=hive&schema=commq'
  commq store unregister ring.4`,
		Args:              wantArgs(1, anyNumber, "names of runs"),
		ValidArgsFunction: completeRuns(a),
		RunE: func(c *cobra.Command, args []string) error {
			return runStoreUnregister(c.Context(), a, &o, args)
		},
	}
	o.registerFlags(c)
	c.Flags().BoolVar(&o.dry, "dry-run", false, "print the SQL that makes the server forget runs that it knows in full; no server is asked")
	return c
}

func (o *registerOptions) registerFlags(c *cobra.Command) {
	c.Flags().StringVar(&o.engineName, "engine", "trino", "`ENGINE` that is told of runs: trino, the only one that has to be")
	complete(c, "engine", "trino")
	o.dsnFlag(c)
}

// dial is the server that the flags name. With --dry-run its address may be left out.
func (o *registerOptions) dial() (*queries.Trino, error) {
	if o.dry && o.dsn == "" && os.Getenv("COMMQ_DSN") == "" {
		o.dsn = "http://localhost:8080" // nobody asks it
	}
	switch o.engineName { // what $COMMQ_ENGINE names answers questions, and is not told of runs
	case "", "trino":
	case "duckdb":
		return nil, errors.New("--engine duckdb: DuckDB reads runs where they lie; leave --engine out, or say trino, for a server that must be told of them")
	default:
		return nil, fmt.Errorf("--engine %s: want trino", o.engineName)
	}
	address, err := o.server()
	if err != nil {
		return nil, err
	}
	return queries.Dial(address)
}

// locationOf is how the server names the folder of a run.
func (o *registerOptions) locationOf(store, dir string) (string, error) {
	store, err := filepath.Abs(store)
	if err != nil {
		return "", err
	}
	if o.location == "" {
		return (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String(), nil
	}
	rel, err := filepath.Rel(store, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("run %s lies outside the store %s, whose place --location names; give its store with --store", dir, store)
	}
	return strings.TrimRight(o.location, "/") + "/" + filepath.ToSlash(rel), nil
}

// registrations are the runs named, or all of the store, with their places.
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
	// The tables' own place, where nothing is: that of a run, which exists.
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
	if o.dry {
		statements := t.TablesSQL(base)
		for _, r := range all {
			more, err := t.RegisterSQL(r)
			if err != nil {
				return err
			}
			statements = append(statements, more...)
		}
		return printStatements(a.screen(), statements)
	}
	if err := t.MakeTables(ctx, base); err != nil {
		return err
	}
	return registerAll(ctx, a, t, o, all)
}

func registerAll(ctx context.Context, a *app, t *queries.Trino, o *registerOptions, all []queries.Registration) error {
	known := map[string]string{}
	if !o.again {
		var err error
		if known, err = t.Known(ctx); err != nil {
			return err
		}
	}
	registered, same := int64(0), int64(0)
	for _, r := range all {
		if as, there := known[r.Run.Name]; there && as == r.Identity() {
			same++
			continue
		}
		if err := t.Register(ctx, r); err != nil {
			return err
		}
		registered++
	}
	text := fmt.Sprintf("registered %s", counted(registered, "run"))
	if same > 0 {
		text += fmt.Sprintf("; %s registered before", counted(same, "run"))
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
	if o.dry {
		var statements []string
		for _, name := range names {
			statements = append(statements, t.UnregisterSQL(name, nil)...)
		}
		return printStatements(a.screen(), statements)
	}
	for _, name := range names {
		known, err := t.Unregister(ctx, name)
		if err == nil && !known {
			err = fmt.Errorf("run %q is not registered; commq sql --engine trino \"SELECT run FROM runs\" lists those that are", name)
		}
		if err != nil {
			return err
		}
		a.note("unregistered run %s", name)
	}
	return nil
}

// printStatements prints SQL as a file of it holds it.
func printStatements(w io.Writer, statements []string) error {
	for _, s := range statements {
		if _, err := fmt.Fprintf(w, "%s;\n\n", s); err != nil {
			return err
		}
	}
	return nil
}
