package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/commq/commq/internal/nearest"
	"github.com/commq/commq/queries"
)

// library holds the queries available to a command line: commq's and the user's own.
type library struct {
	// all are sorted by name, commq's first.
	all []*queries.Query
	// dir is the folder of the user's own; "" if the user has no configuration folder.
	dir string
	// unusable are files in dir that are not valid queries.
	unusable []queries.Unusable
}

// ownFolder returns a folder of the user's: $XDG_CONFIG_HOME/commq/NAME, else ~/.config/commq/NAME. It is "" for a user
// without a folder of settings.
func ownFolder(name string) string {
	config, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(config, "commq", name)
}

// asksQueries reports whether a command line may need queries. Other commands skip reading the user's folder, because
// a job may start thousands of them.
func asksQueries(args []string) bool {
	return slices.ContainsFunc(args, func(word string) bool {
		return word == "query" || word == "report" || word == "help" || strings.HasPrefix(word, "--init") ||
			completes(word)
	})
}

// completes reports whether a word is cobra's request for completions.
func completes(word string) bool { return strings.HasPrefix(word, "__complete") }

// queryLibrary reads all queries. An error means that one of commq's own is invalid.
func (a *app) queryLibrary() (*library, error) { return a.readLibrary(queries.Names()) }

// askable returns the queries that the command line names, or all if it names none, and the user's own. Reading all of
// them takes longer than a small query.
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
	if l.dir = ownFolder("queries"); l.dir != "" {
		var own []*queries.Query
		own, l.unusable = queries.Own(l.dir, queries.Names())
		l.all = append(l.all, own...)
	}
	return l, nil
}

// names returns the names of all queries.
func (l *library) names() []string {
	names := make([]string, len(l.all))
	for i, q := range l.all {
		names[i] = q.Name
	}
	return names
}

// find returns the query with a name. The error names the nearest, or lists them, or explains the mistake in the
// user's file.
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
	return nil, fmt.Errorf("unknown query %q%s", name, nearest.HintOr(name, l.names(), "there are "+
		strings.Join(l.names(), ", ")))
}

// warnings warns about invalid files of the user: about all, or only about the query with the given name.
func (l *library) warnings(a *app, name string) {
	for _, u := range l.unusable {
		if name == "" || u.Name == name {
			a.warn("left out: %v", u.Err)
		}
	}
}
