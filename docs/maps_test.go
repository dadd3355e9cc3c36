package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	quoted = regexp.MustCompile("`([^`]+)`")
	word   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)
	// fileName finds the Go files in a comment, with or without a folder.
	fileName = regexp.MustCompile(`[\w/]+\.go\b`)
)

// TestArchitectureNamesWhatExists looks up what the tables of the chapter "I want to ..." name in backquotes: files and
// folders from the root, or beside the path before them; and names in code, which must stand in one of the row's paths.
func TestArchitectureNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, _ := strings.Cut(string(text), "## I want to ...")
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	paths, names := 0, 0
	for _, line := range strings.Split(chapter, "\n") {
		cells := strings.SplitN(line, "|", 4)
		if len(cells) < 4 || strings.Contains(line, "I want to") || strings.HasPrefix(line, "|---") {
			continue
		}
		var inRow, wanted []string
		folder := ""
		for _, m := range quoted.FindAllStringSubmatch(cells[2]+cells[3], -1) {
			switch path, found := find(m[1], folder); {
			case strings.ContainsAny(m[1], " ()") || strings.Contains(m[1], "NAME"): // a command, a call, a pattern
			case found:
				paths++
				inRow = append(inRow, path)
				folder = path
				if filepath.Ext(path) != "" {
					folder = filepath.Dir(path)
				}
			case word.MatchString(m[1]):
				wanted = append(wanted, m[1])
			default:
				t.Errorf("the row %q names %s, which does not exist", strings.TrimSpace(cells[1]), m[1])
			}
		}
		for _, name := range wanted {
			names++
			if !slices.ContainsFunc(inRow, func(path string) bool { return mentions(t, path, name) }) {
				t.Errorf("the row %q names %s, which is in none of %v", strings.TrimSpace(cells[1]), name, inRow)
			}
		}
	}
	if paths < 60 || names < 40 {
		t.Errorf("found %d paths and %d names", paths, names)
	}
}

// find returns the path from here of a path from the root, or of a file beside the row's last path.
func find(name, folder string) (path string, found bool) {
	path = filepath.Join("..", name)
	if !strings.Contains(name, "/") {
		path = filepath.Join(folder, name)
	}
	_, err := os.Stat(path)
	return path, err == nil && strings.ContainsAny(name, "/.")
}

// mentions reports whether a file, or one of the files of a folder, has the word name.
func mentions(t *testing.T, path, name string) bool {
	t.Helper()
	files := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		files, _ = filepath.Glob(filepath.Join(path, "*.*"))
	}
	whole := regexp.MustCompile(`\b` + name + `\b`)
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && whole.Match(text)
	})
}

// TestMapsListTheirFiles compares the files that a doc.go names with those of its package: none is gone, and none is
// missing. Those that name no file are no maps; that of cmd/commq may leave out the files of commands, whose names
// begin with the command.
func TestMapsListTheirFiles(t *testing.T) {
	out, err := exec.Command("git", "-C", "..", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--",
		"*/doc.go").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	maps := 0
	for _, doc := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		folder := filepath.Join("..", filepath.Dir(doc))
		text, err := os.ReadFile(filepath.Join("..", doc))
		if err != nil {
			t.Fatal(err)
		}
		comment, _, _ := strings.Cut(string(text), "\npackage ")
		named := fileName.FindAllString(comment, -1)
		for _, name := range named {
			if !exists(filepath.Join(folder, name)) && !exists(filepath.Join("..", name)) {
				t.Errorf("%s names %s, which does not exist", doc, name)
			}
		}
		if len(named) == 0 {
			continue
		}
		maps++
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name := filepath.Base(file)
			if name != "doc.go" && !strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(name, "_gen.go") &&
				!slices.Contains(named, name) && !isOfCommand(file) {
				t.Errorf("%s does not name %s", doc, name)
			}
		}
	}
	if maps < 15 {
		t.Errorf("found %d maps", maps)
	}
}

// isOfCommand reports whether a file is one of a command: detect_price.go of detect.go, which makes the command.
func isOfCommand(file string) bool {
	command, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".go"), "_")
	text, err := os.ReadFile(filepath.Join(filepath.Dir(file), command+".go"))
	return err == nil && strings.Contains(string(text), "&cobra.Command{")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
