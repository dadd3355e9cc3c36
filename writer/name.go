package writer

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// manifestName is the file that makes a folder a run.
const manifestName = "manifest.json"

// nameBytes is how long a run's name may be: file systems allow 255 bytes, and the hidden folder adds to it.
const nameBytes = 200

// CheckName says what is wrong with a run's name; nil: nothing. Characters that mean something in a shell, in a path or in a file
// pattern of an SQL engine (* ? [ { = ') are not allowed.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("run name is empty; give one, for example bt.C.64")
	case len(name) > nameBytes:
		return fmt.Errorf("run name %q... has %d bytes; at most %d are allowed", name[:20], len(name), nameBytes)
	case name[0] == '.' || name[0] == '-':
		return fmt.Errorf("run name %q begins with %q; begin it with a letter or digit", name, name[:1])
	}
	for _, r := range name {
		if !inName(r) {
			return fmt.Errorf("run name %q has the character %q; use letters, digits and . _ - + @ , :", name, r)
		}
	}
	return nil
}

func inName(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-+@,:", r)) && r != unicode.ReplacementChar
}

// NameFor makes a run's name of the name of a file, a program for example: characters that a run's name may not have become
// _, and it is cut where it is too long to have a number added. It is "run" where nothing is left.
func NameFor(file string) string {
	name := strings.TrimLeft(strings.Map(func(r rune) rune {
		if !inName(r) {
			return '_'
		}
		return r
	}, file), ".-")
	for len(name) > nameBytes-20 {
		_, last := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-last]
	}
	if name == "" {
		return "run"
	}
	return name
}

// Find returns the folder of a run: the run of that name in the store, else the folder of that path. When there is
// neither it returns an error that says which runs of a similar name the store has.
func Find(store, nameOrPath string) (string, error) {
	if CheckName(nameOrPath) == nil {
		if dir := filepath.Join(store, nameOrPath); isRun(dir) {
			return dir, nil
		}
	}
	if nameOrPath != "" && isRun(nameOrPath) {
		return filepath.Clean(nameOrPath), nil
	}
	if info, err := os.Stat(nameOrPath); err == nil && info.IsDir() && nameOrPath != "" {
		return "", fmt.Errorf("%s is a folder but not a run: it has no %s", nameOrPath, manifestName)
	}
	if err := onlyHere(store); err != nil {
		return "", fmt.Errorf("run %q: %w", nameOrPath, err)
	}
	names, err := names(store)
	if err != nil || len(names) == 0 {
		return "", fmt.Errorf("no run %q: the store %s holds no runs; name the store with --store or $COMMQ_STORE, or make a run with commq capture", nameOrPath, store)
	}
	return "", fmt.Errorf("no run %q in the store %s; %s", nameOrPath, store, suggest(nameOrPath, names))
}

// FindAll returns the folders of the runs that a name, a path or a pattern means, and whether it is a pattern: what has * ? or
// [ and is no run itself. A pattern, of the form that path.Match describes, is compared with the names of the store's
// runs, and where none fits with paths. Runs are in natural order: sp.A.4 before sp.A.16. A pattern that fits nothing is an
// error.
func FindAll(store, nameOrPattern string) (dirs []string, pattern bool, err error) {
	dir, err := Find(store, nameOrPattern)
	if err == nil || onlyHere(store) != nil || !strings.ContainsAny(nameOrPattern, "*?[") {
		return []string{dir}, false, err
	}
	names, _ := names(store)
	for _, name := range names {
		fits, err := filepath.Match(nameOrPattern, name)
		if err != nil {
			return nil, true, fmt.Errorf("runs %q: %w; want * ? or [a-z]", nameOrPattern, err)
		}
		if fits {
			dirs = append(dirs, filepath.Join(store, name))
		}
	}
	if dirs == nil {
		paths, err := filepath.Glob(nameOrPattern)
		if err != nil {
			return nil, true, fmt.Errorf("runs %q: %w; want * ? or [a-z]", nameOrPattern, err)
		}
		dirs = slices.DeleteFunc(paths, func(dir string) bool { return !isRun(dir) })
	}
	if len(dirs) == 0 {
		return nil, true, fmt.Errorf("no run fits %q: none in the store %s and none of that path; commq runs list names the runs", nameOrPattern, store)
	}
	slices.SortFunc(dirs, natural)
	return dirs, true, nil
}

// onlyHere is an error where a store is no folder.
func onlyHere(store string) error {
	if !strings.Contains(store, "://") {
		return nil
	}
	return fmt.Errorf("the store %s is object storage, and this needs a folder: commq query, sql, runs list and runs show read runs where they are; for all else copy them with commq store pull %[1]s", store)
}

// natural compares names so that numbers in them are in the order of their values.
func natural(a, b string) int {
	for a != "" && b != "" {
		m, n := digits(a), digits(b)
		if m == 0 || n == 0 {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		x, y := strings.TrimLeft(a[:m], "0"), strings.TrimLeft(b[:n], "0")
		if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y), cmp.Compare(n, m)); c != 0 {
			return c
		}
		a, b = a[m:], b[n:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits is how many digits s begins with.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

func isRun(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, manifestName))
	return err == nil && info.Mode().IsRegular()
}

// names lists the names of the runs in a store, sorted.
func names(store string) ([]string, error) {
	entries, err := os.ReadDir(store)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if CheckName(e.Name()) == nil && isRun(filepath.Join(store, e.Name())) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// suggested is how many names an error message lists.
const suggested = 5

// suggest names the runs that are most like name, or where there are none like it, the first.
func suggest(name string, names []string) string {
	var near []string
	for _, n := range names {
		if distance(name, n) <= max(2, len(name)/3) {
			near = append(near, n)
		}
	}
	if len(near) > 0 {
		slices.SortStableFunc(near, func(a, b string) int { return distance(name, a) - distance(name, b) })
		return "did you mean " + strings.Join(near[:min(suggested, len(near))], " or ") + "?"
	}
	text := "it holds " + strings.Join(names[:min(suggested, len(names))], ", ")
	if n := len(names) - suggested; n > 0 {
		text += fmt.Sprintf(" and %d more (commq runs list)", n)
	}
	return text
}

// distance is the number of letters to insert, delete or change to make b of a, ignoring case; a name that holds the
// other one is near.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if strings.Contains(b, a) && a != "" {
		return 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
