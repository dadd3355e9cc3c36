package queries

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed sql
var files embed.FS

// All gives every canned query in the order of their names. An error is a mistake in this package's SQL files.
func All() ([]*Query, error) {
	return Named(Names())
}

// Names are the names of the canned queries, in order. It reads none of them.
func Names() []string { return namesIn(files) }

// Named gives the canned queries of these names, in their order. Errors are as those of All, or name the query that there is not.
func Named(names []string) ([]*Query, error) { return load(files, names) }

// namesIn are the names of the queries of a file system that has them as sql/*.sql.
func namesIn(fsys fs.FS) []string {
	paths, err := fs.Glob(fsys, "sql/*.sql")
	if err != nil {
		panic(err) // of the pattern
	}
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = strings.TrimSuffix(path.Base(p), ".sql")
	}
	slices.Sort(names) // "a.sql" is after "a-b.sql"
	return names
}

// load reads queries of a file system that has them as sql/*.sql.
func load(fsys fs.FS, names []string) ([]*Query, error) {
	include := func(name string) (source, error) { return includeOf(fsys, name) }
	var all []*Query
	for _, name := range names {
		file := "sql/" + name + ".sql"
		text, err := fs.ReadFile(fsys, file)
		if err != nil {
			return nil, err
		}
		q, err := parseFile(name, file, string(text), include)
		if err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	return all, nil
}

func includeFile(name string) string { return "sql/include/" + name + ".sql" }

// includeOf is the text of an included file of a file system.
func includeOf(fsys fs.FS, name string) (source, error) {
	text, err := fs.ReadFile(fsys, includeFile(name))
	if err != nil {
		return source{}, fmt.Errorf("include %q: there is no %s", name, includeFile(name))
	}
	return sourceOf(includeFile(name), 1, string(text)), nil
}
