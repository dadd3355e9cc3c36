package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`)
	testName = regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z]\w*`)
	// goTest finds commands in backticks, which may go on in the next line, and those of a block.
	goTest   = regexp.MustCompile("`go test [^`]*`|(?m)^ {4}.*\\bgo test .*$")
	selected = regexp.MustCompile(`\s-(?:run|bench)\s+('[^']*'|[^\s'` + "`" + `]+)`)
	tested   = regexp.MustCompile(`\s\./([\w/.]+)`)
)

// testFiles returns the files of tests by their paths from the root.
func testFiles(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("git", "-C", "..", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--",
		"*_test.go").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	return strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
}

// testTexts returns what files with tests contain, by their names from the root.
func testTexts(t *testing.T) map[string][]byte {
	t.Helper()
	texts := map[string][]byte{}
	for _, name := range testFiles(t) {
		text, err := os.ReadFile(filepath.Join("..", name))
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = text
	}
	return texts
}

// testFuncs returns the names of tests, benchmarks and fuzz targets by their folder from the root.
func testFuncs(t *testing.T) map[string][]string {
	t.Helper()
	funcs := map[string][]string{}
	for name, text := range testTexts(t) {
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			funcs[filepath.Dir(name)] = append(funcs[filepath.Dir(name)], m[1])
		}
	}
	return funcs
}

// TestPagesNameTestsThatExist looks up the tests, benchmarks and fuzz targets that pages name, and what the patterns of
// their go test commands select in the packages of the command.
func TestPagesNameTestsThatExist(t *testing.T) {
	funcs := testFuncs(t)
	known := map[string]bool{}
	for _, names := range funcs {
		for _, name := range names {
			known[name] = true
		}
	}
	named, commands := 0, 0
	for page, text := range pages(t) {
		for _, command := range goTest.FindAllString(text, -1) {
			for _, m := range selected.FindAllStringSubmatch(command, -1) {
				pattern := strings.Trim(m[1], "'")
				if slices.Contains([]string{"^$", "xxx", "NAME"}, pattern) { // nothing, or a placeholder
					continue
				}
				commands++
				if err := selects(funcs, command, pattern); err != nil {
					t.Errorf("%s: %v", page, err)
				}
			}
		}
		for _, name := range testName.FindAllString(selected.ReplaceAllString(text, ""), -1) {
			named++
			if !known[name] {
				t.Errorf("%s names %s, which does not exist", page, name)
			}
		}
	}
	if named < 50 || commands < 30 {
		t.Errorf("found %d names and %d commands", named, commands)
	}
}

// selects returns an error if a pattern fits no test of the packages that a command names.
func selects(funcs map[string][]string, command, pattern string) error {
	first, _, _ := strings.Cut(pattern, "/") // what follows is about subtests
	fits, err := regexp.Compile(first)
	if err != nil {
		return err
	}
	packages := tested.FindAllStringSubmatch(command, -1)
	for _, p := range packages {
		folder, below := strings.CutSuffix(p[1], "/...")
		for dir, names := range funcs {
			if (dir == folder || below && strings.HasPrefix(dir, folder+"/")) && slices.ContainsFunc(names, fits.MatchString) {
				return nil
			}
		}
	}
	if len(packages) == 0 {
		return nil
	}
	return fmt.Errorf("%q selects no test", strings.TrimSpace(command))
}

// TestListsAreComplete: the page of a folder links every page of it, the way in every how-to, and the tables of
// ARCHITECTURE name every package of the rooms that have many.
func TestListsAreComplete(t *testing.T) {
	for _, list := range []struct{ page, folder string }{
		{"README.md", "tutorials"}, {"README.md", "how-to"},
		{"tutorials/README.md", "tutorials"}, {"how-to/README.md", "how-to"}, {"method/README.md", "method"},
		{"reference/README.md", "reference"}, {"validation/README.md", "validation"}, {"adr/README.md", "adr"},
		{"../bench/README.md", "../bench"},
	} {
		text, err := os.ReadFile(list.page)
		if err != nil {
			t.Fatal(err)
		}
		linked := map[string]bool{list.folder + "/README.md": true}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			path, _, _ := strings.Cut(m[1], "#")
			linked[filepath.Join(filepath.Dir(list.page), path)] = true
		}
		files, err := filepath.Glob(list.folder + "/*.md")
		if err != nil || len(files) == 0 {
			t.Fatalf("%d pages in %s, %v", len(files), list.folder, err)
		}
		for _, file := range files {
			if !linked[file] {
				t.Errorf("%s does not link %s", list.page, file)
			}
		}
	}
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range []string{"formats", "internal"} {
		_, row, found := strings.Cut(string(text), "\n| `"+room+"` |")
		row, _, _ = strings.Cut(row, "\n")
		files, err := filepath.Glob("../" + room + "/*/*.go")
		if err != nil || len(files) == 0 || !found {
			t.Fatalf("%s: row found: %v, %d files, %v", room, found, len(files), err)
		}
		names := map[string]bool{}
		for _, file := range files {
			names[filepath.Base(filepath.Dir(file))] = true
		}
		for name := range names {
			if !strings.Contains(row, "`"+name+"`") {
				t.Errorf("the row of %s in ARCHITECTURE.md does not name %s", room, name)
			}
		}
	}
}
