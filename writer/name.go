package writer

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// manifestName is the file that makes a folder a run.
const manifestName = "manifest.json"

// nameBytes is the maximum length of a run's name: file systems allow 255 bytes, and the hidden folder's name is
// longer.
const nameBytes = 200

// CheckName returns an error when a run cannot have the name. Characters with a meaning in a shell, in a path or in a
// file pattern of an SQL engine (* ? [ { = ') are not allowed.
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
	return (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-+@,:", r)) &&
		r != unicode.ReplacementChar
}

// NameFor derives a run's name from the name of a file, for example of a program: characters that are not allowed
// become _, and a name that is too long for a number to be added is cut. When nothing is left the name is "run".
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

// NameOf derives a run's name from the path of a trace or of its folder, without these endings of its last part.
func NameOf(path string, endings ...string) (string, error) {
	full, err := filepath.Abs(path) // else . has no name
	if err != nil {
		return "", err
	}
	base := filepath.Base(full)
	for _, ending := range endings {
		base = strings.TrimSuffix(base, ending)
	}
	return NameFor(base), nil
}

// Find returns the folder of a run: the run of that name in the store, else the folder of that path. The error for
// neither suggests runs with similar names.
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
	if dir := filepath.Join(store, nameOrPath); filepath.Base(nameOrPath) == nameOrPath && isRun(dir) {
		return "", misnamed(dir, CheckName(nameOrPath))
	}
	if missingPath(nameOrPath) {
		return "", fmt.Errorf("no run %q: this path does not exist; commq runs list names the runs of the store %s",
			nameOrPath, store)
	}
	if err := CheckLocal(store); err != nil {
		return "", fmt.Errorf("run %q: %w", nameOrPath, err)
	}
	names, err := names(store)
	if err != nil || len(names) == 0 {
		return "", fmt.Errorf("no run %q: the store %s holds no runs; name the store with --store or $COMMQ_STORE, "+
			"or make a run with commq capture", nameOrPath, store)
	}
	if strings.ContainsAny(nameOrPath, "*?[") {
		return "", fmt.Errorf("%q is a pattern; want the name of one run (commq runs list)", nameOrPath)
	}
	return "", fmt.Errorf("no run %q in the store %s; %s", nameOrPath, store, suggest(nameOrPath, names))
}

// missingPath reports whether the text is the path of something that does not exist: a name has no slash, and a pattern
// is no path.
func missingPath(text string) bool {
	_, err := os.Lstat(text)
	return errors.Is(err, fs.ErrNotExist) && strings.Contains(text, "/") && !strings.ContainsAny(text, "*?[")
}

// FindAll returns the folders of the runs that a name, path or pattern matches. pattern reports whether it is a
// pattern: it has * ? or [ and is not the name or path of a run. Patterns are those of path.Match. They are compared
// with the names of the store's runs and, if none fits, with paths. Runs come in natural order: sp.A.4 before
// sp.A.16. A pattern that fits no run is an error.
func FindAll(store, nameOrPattern string) (dirs []string, pattern bool, err error) {
	dir, err := Find(store, nameOrPattern)
	if err == nil || CheckLocal(store) != nil || !strings.ContainsAny(nameOrPattern, "*?[") {
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
		near := "commq runs list names the runs"
		if len(names) > 0 {
			near = suggest(nameOrPattern, names)
		}
		return nil, true, fmt.Errorf("no run fits %q: none in the store %s and none of that path; %s", nameOrPattern,
			store, near)
	}
	slices.SortFunc(dirs, natural)
	return dirs, true, nil
}

// CheckLocal returns an error when the store is not a folder.
func CheckLocal(store string) error {
	if !strings.Contains(store, "://") {
		return nil
	}
	return fmt.Errorf("the store %s is object storage, and this needs a folder: commq query, sql, check, runs list and "+
		"runs show read runs where they are, and runs remove removes them; for all else copy them with commq store pull %[1]s", store)
}

// natural compares names; numbers in them compare by value.
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

// digits counts the digits that s begins with.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

func isRun(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, manifestName))
	return err == nil && info.Mode().IsRegular()
}

// names lists the names of the runs in a store, sorted.
func names(store string) ([]string, error) {
	found, err := runFolders(store)
	return slices.DeleteFunc(found, func(name string) bool { return CheckName(name) != nil }), err
}

// runFolders returns the names of the folders in a store that have a manifest and are not hidden, sorted. A user may
// have given one a name that no run can have.
func runFolders(store string) ([]string, error) {
	entries, err := os.ReadDir(store)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && isRun(filepath.Join(store, e.Name())) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// misnamed is the error of a run's folder with a name that no run can have, for the reason why.
func misnamed(dir string, why error) error {
	return fmt.Errorf("%s: %w; rename the folder", dir, why)
}

// suggested is the largest number of names that an error message lists.
const suggested = 5

// suggest lists the runs with the most similar names, or the first ones when none is similar. A name with a comma was
// probably meant as several.
func suggest(name string, names []string) string {
	if strings.Contains(name, ",") { // several runs in one name?
		return "a comma does not separate runs; give each its own --run"
	}
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

// distance is the Levenshtein distance of two names, ignoring case; 1 when b contains a.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if strings.Contains(b, a) && a != "" {
		return 1
	}
	return levenshtein.ComputeDistance(a, b)
}
