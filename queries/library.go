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
	return load(files)
}

// load reads the queries of a file system that has them as sql/*.sql.
func load(fsys fs.FS) ([]*Query, error) {
	names, err := fs.Glob(fsys, "sql/*.sql")
	if err != nil {
		return nil, err
	}
	var all []*Query
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		include := func(name string) (source, error) { return includeOf(fsys, name) }
		q, err := parseFile(strings.TrimSuffix(path.Base(name), ".sql"), name, string(text), include)
		if err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b *Query) int { return strings.Compare(a.Name, b.Name) })
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
