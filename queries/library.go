package queries

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed sql findings
var files embed.FS

// All returns every canned query, sorted by name. An error is a mistake in this package's SQL files.
func All() ([]*Query, error) {
	return Named(Names())
}

// Names returns the names of the canned queries, sorted, without reading them.
func Names() []string { return namesIn(files, "sql") }

// Named returns the canned queries with these names, in the given order. Its errors are those of All, or name an
// unknown query.
func Named(names []string) ([]*Query, error) { return load(files, names) }

// namesIn lists the files folder/*.sql in a file system, by their names.
func namesIn(fsys fs.FS, folder string) []string {
	paths, err := fs.Glob(fsys, folder+"/*.sql")
	if err != nil {
		panic(err) // the pattern is malformed
	}
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = strings.TrimSuffix(path.Base(p), ".sql")
	}
	slices.Sort(names) // "a.sql" is after "a-b.sql"
	return names
}

// load reads queries sql/*.sql from a file system.
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

// includeOf reads an included file.
func includeOf(fsys fs.FS, name string) (source, error) {
	text, err := fs.ReadFile(fsys, includeFile(name))
	if err != nil {
		return source{}, fmt.Errorf("include %q: there is no %s", name, includeFile(name))
	}
	return sourceOf(includeFile(name), 1, string(text)), nil
}
