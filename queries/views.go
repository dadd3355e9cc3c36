package queries

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/commq/commq/internal/filehash"
	"github.com/commq/commq/schema"
)

// views are the tables of the runs as views of the engine. A view is made when a query first names its table: making it
// reads the footers of all files of the table, which takes seconds and gigabytes for a run of 2*10^9 messages.
type views struct {
	mu   sync.Mutex
	list []view // in schema order, the view runs last
}

// view is a table of the runs.
type view struct {
	table *schema.Table // nil for the view runs
	text  string        // the statement that makes it
	needs []string      // the tables of which it is computed
	made  bool
}

func (v *view) name() string {
	if v.table == nil {
		return "runs"
	}
	return v.table.Name
}

// preamble returns the statements that make all views.
func (v *views) preamble() string {
	var b strings.Builder
	for i := range v.list {
		b.WriteString(v.list[i].text + ";\n")
	}
	return b.String()
}

// viewsOf returns the views over runs, none made yet, and the files that they read.
func viewsOf(runs []Run) (v *views, paths []string, err error) {
	dirs, err := foldersOf(runs)
	if err != nil {
		return nil, nil, err
	}
	v = &views{}
	for _, t := range schema.Tables() {
		var parts, needs []string
		for i, r := range runs {
			files, err := tableFiles(r, dirs[i], t)
			if err != nil {
				return nil, nil, err
			}
			paths = append(paths, files...)
			part := selectTable(r.Name, t, files)
			if t.Derived && len(files) == 0 { // written by an older commq, or without the rows it is derived from
				if part, err = derivedPart(r, dirs[i], t, len(runs) == 1); err != nil {
					return nil, nil, err
				}
				needs = append(needs, cannedNames(part)...)
				if t == &schema.ProfileTable { // reads the files of events, not their view
					needs = append(needs, schema.EventsTable.Name)
				}
			}
			parts = append(parts, part)
		}
		text := "CREATE VIEW " + quoteName(t.Name) + " AS\n" + strings.Join(parts, "\nUNION ALL\n")
		v.list = append(v.list, view{table: t, text: text, needs: needs})
	}
	v.list = append(v.list, view{text: runsView(runs)})
	return v, paths, nil
}

// foldersOf returns the absolute paths of the runs' folders, or their URLs in object storage. The runs' names must
// differ.
func foldersOf(runs []Run) (dirs []string, err error) {
	if len(runs) == 0 {
		return nil, errors.New("no run given; name one with --run")
	}
	seen := map[string]string{}
	dirs = make([]string, len(runs))
	for i, r := range runs {
		if dirs[i] = r.Dir; !inObjects(r.Dir) {
			if dirs[i], err = filepath.Abs(r.Dir); err != nil {
				return nil, err
			}
		}
		if other, twice := seen[r.Name]; twice && other == dirs[i] {
			return nil, schema.GivenTwice(r.Name)
		} else if twice {
			return nil, fmt.Errorf("%w: %s and %s", schema.CalledAlike(r.Name), other, dirs[i])
		}
		seen[r.Name] = dirs[i]
	}
	return dirs, nil
}

var (
	// fromRe matches the tables that a canned query reads; some of these names are its own.
	fromRe = regexp.MustCompile(`\b(?:FROM|JOIN) (\w+)`)
	nameRe = regexp.MustCompile(`\w+`)
	// catalogRe matches words of SQL that lists tables, or makes their names.
	catalogRe = regexp.MustCompile(`(?i)\b(show|describe|query|query_table|information_schema|(duckdb|pg|pragma|sqlite)_\w+)\b`)
)

// cannedNames returns the names in commq's own SQL that can be tables.
func cannedNames(text string) (names []string) {
	for _, m := range fromRe.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// textNames returns the names in any SQL that can be tables: all its words.
func textNames(text string) []string {
	if catalogRe.MatchString(text) {
		return viewNames()
	}
	return nameRe.FindAllString(strings.ToLower(text), -1)
}

// viewNames lists all views.
func viewNames() []string {
	names := []string{"runs"}
	for _, t := range schema.Tables() {
		names = append(names, t.Name)
	}
	return names
}

// open makes the views of these names that are not made yet; other names are ignored. Errors say which file of which
// run is damaged.
func (d *DB) open(ctx context.Context, names []string) error {
	if d.remote != nil || d.views == nil {
		return nil
	}
	d.views.mu.Lock()
	defer d.views.mu.Unlock()
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	for again := true; again; { // a view can be computed of others
		again = false
		for i := range d.views.list {
			v := &d.views.list[i]
			if v.made || !wanted[v.name()] {
				continue
			}
			for _, name := range v.needs {
				again = again || !wanted[name]
				wanted[name] = true
			}
		}
	}
	for i := range d.views.list {
		v := &d.views.list[i]
		if v.made || !wanted[v.name()] {
			continue
		}
		if err := d.make(ctx, v); err != nil {
			return fmt.Errorf("open the runs' files: %w", err)
		}
		v.made = true
	}
	return nil
}

// make makes a view, after a look at its files.
func (d *DB) make(ctx context.Context, v *view) error {
	if v.table != nil {
		if err := verifyTable(ctx, d.runs, v.table); err != nil {
			return err
		}
	}
	// A question that ended in the middle of this left the view there.
	err := exec(ctx, d.conn, strings.Replace(v.text, "CREATE VIEW", "CREATE OR REPLACE VIEW", 1))
	if err == nil && v.table != nil {
		err = checkTypes(ctx, d.conn, v.table)
	}
	if err != nil && ctx.Err() == nil && !IsBroken(err) {
		err = damage(ctx, d.conn, d.runs, err)
	}
	return err
}

// filesAtOnce is how many files are verified at a time: their headers are far apart, so that a disk waits between them.
const filesAtOnce = 8

// verifyTable verifies the files of a table before they are asked.
func verifyTable(ctx context.Context, runs []Run, t *schema.Table) error {
	parallel, ctx := errgroup.WithContext(ctx)
	parallel.SetLimit(filesAtOnce)
	for _, r := range runs {
		info := tableInfo(r.Manifest, t.Name)
		if info == nil || inObjects(r.Dir) {
			continue
		}
		for _, f := range info.Files {
			parallel.Go(func() error {
				sums := filehash.Sums{File: f.Sum, Footer: f.FooterSum, Headers: f.HeadersSum}
				if err := filehash.Quick(ctx, r.Dir, f.Path, f.Bytes, sums); err != nil {
					return damagedRun(r, err)
				}
				return nil
			})
		}
	}
	return parallel.Wait()
}
