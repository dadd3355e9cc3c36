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
	include := func(name string) (string, error) {
		text, err := fs.ReadFile(fsys, "sql/include/"+name+".sql")
		if err != nil {
			return "", fmt.Errorf("include %q: there is no sql/include/%s.sql", name, name)
		}
		return string(text), nil
	}
	var all []*Query
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		q, err := parse(strings.TrimSuffix(path.Base(name), ".sql"), string(text), include)
		if err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b *Query) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
