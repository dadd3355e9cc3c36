package queries

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// Trino is a schema in a catalog of a Trino server's Hive connector, where runs are registered: a table for each of
// package schema, with a partition run = NAME at the run's files, and the table runs with one row per run from its
// manifest. The files stay where they are and are never written. docs/method/trino.md describes the set-up.
type Trino struct {
	server
}

// Dial returns a Trino for an address such as http://USER@HOST:8080?catalog=hive&schema=commq. It does not contact
// the server yet. Close it after use.
func Dial(address string) (*Trino, error) {
	s, err := newServer(address)
	if err != nil {
		return nil, err
	}
	return &Trino{*s}, nil
}

// Close disconnects.
func (t *Trino) Close() error { return t.db.Close() }

// A Registration is a run and the place where the server finds its folder.
type Registration struct {
	// Run is the run.
	Run Run
	// Location is the run's folder as the server names it: file:///store/ring.4, local:///store/ring.4,
	// s3://bucket/ring.4.
	Location string
}

// Check reports files of the run that are not in a folder per table, as the server needs them.
func (r *Registration) Check() error {
	for _, t := range r.Run.Manifest.Tables {
		for _, f := range t.Files {
			if path.Dir(f.Path) != t.Name {
				return fmt.Errorf("run %q: %s does not lie in a folder of its table: an older commq wrote the run. "+
					"commq store compact %s writes it as folders",
					r.Run.Name, f.Path, r.Run.Name)
			}
		}
	}
	return nil
}

// TablesSQL returns the SQL that creates the schema and its tables, unless they exist. location is an existing folder
// as the server names it; nothing is read or written there.
func (t *Trino) TablesSQL(location string) []string {
	all := []string{"CREATE SCHEMA IF NOT EXISTS " + t.schemaName()}
	for _, table := range schema.Tables() {
		var columns []string
		for _, c := range table.Columns {
			columns = append(columns, fmt.Sprintf("  %s %s COMMENT %s", quoteName(c.Name), c.Type.SQL(), quote(c.Doc)))
		}
		all = append(all, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (\n%s,\n  run VARCHAR COMMENT 'Run the row "+
			"belongs to.')\nCOMMENT %s\n"+
			"WITH (external_location = %s, format = 'PARQUET', partitioned_by = ARRAY['run'])",
			t.table(table.Name), strings.Join(columns, ",\n"), quote(table.Doc), quote(location)))
	}
	var columns []string
	for _, c := range storedColumns(Run{Manifest: &schema.Manifest{}})[1:] {
		columns = append(columns, fmt.Sprintf("  %s %s", quoteName(c.name), c.typ))
	}
	return append(all, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (\n%s,\n  location VARCHAR COMMENT 'Where the "+
		"run lies.',\n"+
		"  manifest VARCHAR COMMENT 'manifest.json of the run, the files of a table as one.',\n  run VARCHAR)\n"+
		"COMMENT 'One row per run: what its manifest says. A run that is not in it is not asked.'\nWITH (format = "+
		"'PARQUET', partitioned_by = ARRAY['run'])",
		t.table("runs"), strings.Join(columns, ",\n")))
}

// RegisterSQL returns the SQL that registers a new run. Its row in runs comes last: only then the run is visible.
func (t *Trino) RegisterSQL(r Registration) ([]string, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	var all []string
	for _, table := range r.Run.Manifest.HeldTables() {
		if tableOf(table.Name) != nil {
			all = append(all, fmt.Sprintf("CALL %s.system.register_partition(%s, %s, ARRAY['run'], ARRAY[%s], %s)",
				quoteName(t.catalog), quote(t.schema),
				quote(table.Name), quote(r.Run.Name), quote(strings.TrimRight(r.Location, "/")+"/"+table.Name)))
		}
	}
	var names, values []string
	for _, c := range storedColumns(r.Run)[1:] {
		names, values = append(names, quoteName(c.name)), append(values, c.literal)
	}
	names = append(names, "location", "manifest", "run")
	values = append(values, quote(r.Location), quote(r.manifest()), quote(r.Run.Name))
	return append(all, fmt.Sprintf("INSERT INTO %s (%s)\nVALUES (%s)", t.table("runs"), strings.Join(names, ", "),
		strings.Join(values, ", "))), nil
}

// RegisterAllSQL returns the SQL that creates the schema and its tables and registers new runs in it; location is that
// of TablesSQL.
func (t *Trino) RegisterAllSQL(location string, runs []Registration) ([]string, error) {
	all := t.TablesSQL(location)
	for _, r := range runs {
		more, err := t.RegisterSQL(r)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// manifest returns the run's manifest as the table runs stores it.
func (r *Registration) manifest() string {
	text, err := json.Marshal(r.Run.Manifest.Summed())
	if err != nil {
		panic(err) // it was read from such a text
	}
	return string(text)
}

// Identity returns a text that differs if the place or the manifest differs.
func (r *Registration) Identity() string { return r.Location + "\n" + r.manifest() }

// identities returns the identities of the registered runs by name.
func (t *Trino) identities(ctx context.Context) (map[string]string, error) {
	known := map[string]string{}
	err := t.each(ctx, "SELECT run, location, manifest FROM "+t.table("runs"),
		func(row []string) { known[row[0]] = row[1] + "\n" + row[2] })
	if err != nil {
		return nil, fmt.Errorf("list the registered runs: %w", err)
	}
	return known, nil
}

// UnregisterSQL returns the SQL that unregisters a run with partitions in these tables; nil means all tables. Its row
// in runs goes first.
func (t *Trino) UnregisterSQL(run string, tables []string) []string {
	if tables == nil {
		tables = tableNames()
	}
	all := []string{fmt.Sprintf("DELETE FROM %s WHERE run = %s", t.table("runs"), quote(run))}
	for _, table := range tables {
		all = append(all, fmt.Sprintf("CALL %s.system.unregister_partition(%s, %s, ARRAY['run'], ARRAY[%s])",
			quoteName(t.catalog), quote(t.schema), quote(table), quote(run)))
	}
	return all
}

// MakeTables creates the schema and its tables, unless they exist, and checks the columns of existing ones. Errors
// quote the server or name the missing column.
func (t *Trino) MakeTables(ctx context.Context, location string) error {
	for _, s := range t.TablesSQL(location) {
		if err := t.exec(ctx, s); err != nil {
			return fmt.Errorf("make the tables in %s: %w; --location says how the server names the store's folder",
				location, err)
		}
	}
	have := map[string]bool{}
	err := t.each(ctx, fmt.Sprintf("SELECT table_name, column_name FROM %s.information_schema.columns WHERE "+
		"table_schema = %s", quoteName(t.catalog), quote(t.schema)),
		func(row []string) { have[row[0]+"."+row[1]] = true })
	if err != nil {
		return fmt.Errorf("read the tables' columns: %w", err)
	}
	if table, column := missingColumn(have); table != "" {
		return fmt.Errorf("table %s has no column %s: an older commq made it. Drop the tables of the schema (the "+
			"runs' files stay) and register the runs again", t.table(table), column)
	}
	return nil
}

// storedColumns returns the columns of a run that the table runs of a server has.
func storedColumns(r Run) []runColumn {
	return slices.DeleteFunc(runColumns(r), func(c runColumn) bool { return c.name == payloadsColumn })
}

// missingColumn returns the first column of the tables that the server lacks. have has those that it has, as
// TABLE.COLUMN.
func missingColumn(have map[string]bool) (table, column string) {
	for _, t := range schema.Tables() {
		for _, c := range t.Columns {
			if !have[t.Name+"."+c.Name] {
				return t.Name, c.Name
			}
		}
	}
	columns := []string{"location", "manifest"}
	for _, c := range storedColumns(Run{Manifest: &schema.Manifest{}}) {
		columns = append(columns, c.name)
	}
	for _, c := range columns {
		if !have["runs."+c] {
			return "runs", c
		}
	}
	return "", ""
}

// Register registers a run, replacing a registered one with the same name; in between the name is missing. Errors
// quote the server. A run that was registered in part is not visible, and registering it again repairs it.
func (t *Trino) Register(ctx context.Context, r Registration) error {
	statements, err := t.RegisterSQL(r)
	if err != nil {
		return err
	}
	if _, err := t.Unregister(ctx, r.Run.Name); err != nil {
		return err
	}
	for _, s := range statements {
		if err := t.exec(ctx, s); err != nil {
			return fmt.Errorf("register run %s: %w", r.Run.Name, err)
		}
	}
	return nil
}

// RegisterAll registers the runs that the server does not have, or has from another place or with another manifest;
// with again also the others. before is the number of those that it left as they are.
func (t *Trino) RegisterAll(ctx context.Context, runs []Registration, again bool) (registered, before int64, err error) {
	known := map[string]string{}
	if !again {
		if known, err = t.identities(ctx); err != nil {
			return 0, 0, err
		}
	}
	for _, r := range runs {
		if identity, there := known[r.Run.Name]; there && identity == r.Identity() {
			before++
			continue
		}
		if err := t.Register(ctx, r); err != nil {
			return registered, before, err
		}
		registered++
	}
	return registered, before, nil
}

// Unregister removes a run from the server and reports whether it was registered, even in part. The run's files stay.
func (t *Trino) Unregister(ctx context.Context, run string) (known bool, err error) {
	var parts []string
	for _, table := range append(tableNames(), "runs") {
		parts = append(parts, fmt.Sprintf("SELECT %s AS name FROM %s.%s WHERE run = %s", quote(table), t.schemaName(),
			quoteName(table+"$partitions"), quote(run)))
	}
	tables := []string{}
	if err := t.each(ctx, strings.Join(parts, "\nUNION ALL\n"),
		func(row []string) { tables = append(tables, row[0]) }); err != nil {
		return false, fmt.Errorf("look for run %s: %w", run, err)
	}
	if len(tables) == 0 {
		return false, nil
	}
	tables = slices.DeleteFunc(tables, func(name string) bool { return name == "runs" })
	for _, s := range t.UnregisterSQL(run, tables) {
		if err := t.exec(ctx, s); err != nil {
			return true, fmt.Errorf("unregister run %s: %w", run, err)
		}
	}
	return true, nil
}

func tableNames() []string {
	var names []string
	for _, t := range schema.Tables() {
		names = append(names, t.Name)
	}
	return names
}

// Find returns registered runs by names or patterns ('sp.A.*'), sorted by name. Errors say which is missing.
func (t *Trino) Find(ctx context.Context, names []string) ([]Run, error) {
	var all []string
	if err := t.each(ctx, fmt.Sprintf("SELECT run FROM %s.%s ORDER BY run", t.schemaName(),
		quoteName("runs$partitions")), func(row []string) { all = append(all, row[0]) }); err != nil {
		return nil, fmt.Errorf("list the registered runs: %w", err)
	}
	var found []string
	for _, name := range names {
		matched := slices.Contains(found, name) || slices.Contains(all, name)
		if slices.Contains(all, name) {
			found = append(found, name)
			continue
		}
		for _, run := range all {
			if ok, err := path.Match(name, run); err != nil {
				return nil, fmt.Errorf("run %q: %w; patterns are those of a shell, as 'sp.A.*'", name, err)
			} else if ok {
				if matched = true; !slices.Contains(found, run) {
					found = append(found, run)
				}
			}
		}
		if !matched {
			return nil, fmt.Errorf("run %q is not registered in %s, which has %s; commq store register makes it "+
				"known", name, t.schemaName(), howMany(len(all)))
		}
	}
	manifests := map[string]*schema.Manifest{}
	locations := map[string]string{}
	var bad error
	err := t.each(ctx, fmt.Sprintf("SELECT run, location, manifest FROM %s WHERE run IN (%s)", t.table("runs"),
		quoteAll(found)), func(row []string) {
		m, err := schema.ParseSummedManifest([]byte(row[2]))
		if err != nil {
			bad = fmt.Errorf("run %q: the manifest in %s: %w; register the run again", row[0], t.table("runs"), err)
		}
		manifests[row[0]], locations[row[0]] = m, row[1]
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return nil, fmt.Errorf("read the registered runs: %w", err)
	}
	runs := make([]Run, len(found))
	for i, name := range found {
		if manifests[name] == nil {
			return nil, fmt.Errorf("run %q was unregistered while it was looked for; ask again", name)
		}
		runs[i] = Run{Name: name, Dir: locations[name], Manifest: manifests[name], Registered: name}
	}
	return runs, nil
}

func howMany(runs int) string {
	switch runs {
	case 0:
		return "no runs"
	case 1:
		return "1 run"
	}
	return fmt.Sprintf("%d runs", runs)
}
