package queries

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Unusable is a file in the user's folder that is not a valid query or finding.
type Unusable struct {
	// Name is the name of the query or finding; File its file.
	Name, File string
	// Err says what is wrong, with file and line.
	Err error
}

// Own reads a user's own queries, dir/NAME.sql, sorted by name. They are written like the canned ones and may include
// the canned files and those of dir/include. A file that is not a valid query, or has one of the known names, is
// skipped and reported. A folder that does not exist has no queries. The SQL itself is checked only when it is asked.
func Own(dir string, known []string) (own []*Query, unusable []Unusable) {
	unusable = ownFiles(dir, ownKind{"query", "queries", known}, func(file, name, text string) error {
		q, err := parseFile(name, file, text, func(name string) (source, error) { return ownInclude(dir, name) })
		if err == nil {
			q.File = file
			own = append(own, q)
		}
		return err
	})
	return usable(own, unusable, func(q *Query) *Query { return q })
}

// usable moves the queries of a user that include a file with a block that no query can show from own to unusable. It
// moves none if some are unusable already: the block may be for one of these. Blocks of commq's own files may be for
// commq's queries alone.
func usable[T any](own []T, unusable []Unusable, queryOf func(T) *Query) ([]T, []Unusable) {
	if len(unusable) > 0 {
		return own, unusable
	}
	all := make([]*Query, len(own))
	for i := range own {
		all[i] = queryOf(own[i])
		all[i].blocks = slices.DeleteFunc(all[i].blocks, func(b includedBlock) bool {
			_, err := fs.Stat(files, b.at.file)
			return err == nil
		})
	}
	dead := deadBlocks(all)
	own = slices.DeleteFunc(own, func(x T) bool {
		q := queryOf(x)
		if dead[q] == nil {
			return false
		}
		unusable = append(unusable, Unusable{q.Name, q.File, inFile(q.File, dead[q])})
		return true
	})
	slices.SortStableFunc(unusable, func(a, b Unusable) int { return strings.Compare(a.Name, b.Name) })
	return own, unusable
}

// ownKind is a kind of files that users write: its name, for messages, and the names that are taken.
type ownKind struct {
	one, many string
	known     []string
}

// ownFiles reads the files dir/NAME.sql of a user, sorted by name, and returns those that cannot be used.
func ownFiles(dir string, kind ownKind, read func(file, name, text string) error) (unusable []Unusable) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return []Unusable{{File: dir, Err: fmt.Errorf("the folder of your own %s: %w", kind.many, err)}}
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".sql")
		if !ok || strings.HasPrefix(name, ".") {
			continue
		}
		file := filepath.Join(dir, e.Name())
		text, err := kind.text(file, name)
		if err == nil {
			err = read(file, name, text)
		}
		if err != nil {
			unusable = append(unusable, Unusable{name, file, err})
		}
	}
	return unusable
}

// text returns the text of a user's file after checking its name.
func (kind *ownKind) text(file, name string) (string, error) {
	if !wordRe.MatchString(name) {
		return "", fmt.Errorf("%s: a %s is called as its file; want a name of lower-case letters, digits and -", file,
			kind.one)
	}
	if slices.Contains(kind.known, name) {
		return "", fmt.Errorf("%s: commq has a %s of its own called %s, which this one does not replace; give "+
			"the file another name", file, kind.one, name)
	}
	return readOwn(file)
}

// ownInclude returns a file that a user's query includes: the user's own or a canned one.
func ownInclude(dir, name string) (source, error) {
	ours, notOurs := includeOf(files, name)
	if !wordRe.MatchString(strings.ReplaceAll(name, "_", "-")) {
		return source{}, notOurs
	}
	file := filepath.Join(dir, "include", name+".sql")
	switch text, err := readOwn(file); {
	case errors.Is(err, fs.ErrNotExist) && notOurs != nil:
		return source{}, fmt.Errorf("include %q: there is no %s, and commq has none of that name", name, file)
	case errors.Is(err, fs.ErrNotExist):
		return ours, nil
	case err != nil:
		return source{}, err
	case notOurs == nil:
		return source{}, fmt.Errorf("include %q: commq has one too; give %s another name", name, file)
	default:
		return sourceOf(file, 1, text), nil
	}
}

// ownBytes limits a user's query file.
const ownBytes = 1 << 20

func readOwn(file string) (string, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s: not a file", file)
	case info.Size() > ownBytes:
		return "", fmt.Errorf("%s: %d bytes; a query has at most %d", file, info.Size(), ownBytes)
	}
	text, err := os.ReadFile(file)
	return strings.ReplaceAll(string(text), "\r\n", "\n"), err
}
