package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/commq/commq/queries"
)

// library are the queries of a command line: commq's and the user's own.
type library struct {
	// all are in the order of their names, commq's first.
	all []*queries.Query
	// dir is the folder of the user's; "" where there is no place for it.
	dir string
	// unusable are files of it that are no queries.
	unusable []queries.Unusable
}

// ownFolder is where a user's queries lie: $XDG_CONFIG_HOME/commq/queries, else ~/.config/commq/queries.
func ownFolder() string {
	config, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(config, "commq", "queries")
}

// asksQueries says whether a command line may need queries. Others, of which a job starts thousands, do not read the user's folder.
func asksQueries(args []string) bool {
	return slices.ContainsFunc(args, func(word string) bool {
		return word == "query" || word == "report" || word == "help" || strings.HasPrefix(word, "--init") || completes(word)
	})
}

// completes says whether a word asks for what may stand in a command line.
func completes(word string) bool { return strings.HasPrefix(word, "__complete") }

// queryLibrary reads all queries. An error is a mistake in commq's own.
func (a *app) queryLibrary() (*library, error) { return a.readLibrary(queries.Names()) }

// askable are the queries that the command line can mean, and the user's own: those that it names, where it names any. To read
// them all takes longer than a small question.
func (a *app) askable() (*library, error) {
	names := queries.Names()
	named := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(a.args, name) })
	switch {
	case a.args == nil: // no command line: the tree of all commands
	case !asksQueries(a.args):
		return &library{}, nil
	case len(named) > 0 && !slices.ContainsFunc(a.args, completes):
		names = named
	}
	return a.readLibrary(names)
}

// readLibrary reads queries of commq and the user's own.
func (a *app) readLibrary(names []string) (*library, error) {
	all, err := queries.Named(names)
	if err != nil {
		return nil, err
	}
	l := &library{all: all}
	if !asksQueries(a.args) {
		return l, nil
	}
	if l.dir = ownFolder(); l.dir != "" {
		var own []*queries.Query
		own, l.unusable = queries.Own(l.dir, queries.Names())
		l.all = append(l.all, own...)
	}
	return l, nil
}

// names are the names of all queries.
func (l *library) names() []string {
	names := make([]string, len(l.all))
	for i, q := range l.all {
		names[i] = q.Name
	}
	return names
}

// find is the query of that name, or an error that says what there is, or what is wrong with the user's file.
func (l *library) find(name string) (*queries.Query, error) {
	for _, q := range l.all {
		if q.Name == name {
			return q, nil
		}
	}
	for _, u := range l.unusable {
		if u.Name == name {
			return nil, u.Err
		}
	}
	return nil, fmt.Errorf("no query is called %q; there are %s", name, strings.Join(l.names(), ", "))
}

// warnings are about files that are no queries: all of them, or those that would be called so.
func (l *library) warnings(a *app, name string) {
	for _, u := range l.unusable {
		if name == "" || u.Name == name {
			a.warn("left out: %v", u.Err)
		}
	}
}
