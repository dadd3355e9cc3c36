package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/capture/shim"
	"github.com/commq/commq/internal/testenv"
)

// A tutorial is a page whose commands a reader types. Its blocks, indented by four spaces, are of two kinds: one that
// begins with "$ " has commands and what each prints, where a line "..." stands for any lines; one below a line that ends
// with a file name in backticks and a colon is that file. The README has blocks besides that nobody runs. Paths are given from the folder where the reader began.

// step is a command of a tutorial, or a file that the reader writes.
type step struct {
	command string
	want    []string
	file    string
	content string
}

var fileBelow = regexp.MustCompile("`([^` ]+)`[^`]*:$")

// readTutorial returns the steps of a page, in order.
func readTutorial(t *testing.T, page string) (steps []step) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	lines, above := strings.Split(string(text), "\n"), ""
	for i := 0; i < len(lines); {
		if !strings.HasPrefix(lines[i], "    ") {
			if lines[i] != "" {
				above = lines[i]
			}
			i++
			continue
		}
		var block []string
		for ; i < len(lines) && (lines[i] == "" || strings.HasPrefix(lines[i], "    ")); i++ {
			block = append(block, strings.TrimPrefix(lines[i], "    "))
		}
		for block[len(block)-1] == "" {
			block = block[:len(block)-1]
		}
		file := fileBelow.FindStringSubmatch(above)
		switch {
		case strings.HasPrefix(block[0], "$ "):
			steps = append(steps, readCommands(block)...)
		case file != nil:
			steps = append(steps, step{file: file[1], content: strings.Join(block, "\n") + "\n"})
		case filepath.Base(page) == "README.md": // lines for the reader alone
		default:
			t.Errorf("%s:%d: the block is neither commands nor a file", page, i-len(block))
		}
	}
	return steps
}

// readCommands returns the commands of a block. A command goes on behind a backslash.
func readCommands(block []string) (steps []step) {
	for i := 0; i < len(block); i++ {
		if command, ok := strings.CutPrefix(block[i], "$ "); ok {
			for strings.HasSuffix(command, "\\") {
				i++
				command += "\n" + block[i]
			}
			steps = append(steps, step{command: command})
			continue
		}
		last := &steps[len(steps)-1]
		last.want = append(last.want, block[i])
	}
	return steps
}

// script returns the shell script that takes the steps. It prints what each prints, then \x01, its status and a newline.
func script(steps []step) string {
	var s strings.Builder
	for _, p := range steps {
		if p.file != "" {
			fmt.Fprintf(&s, "cat >%s <<'END-OF-THE-FILE'\n%sEND-OF-THE-FILE\n", p.file, p.content)
		} else {
			fmt.Fprintf(&s, "%s\n", p.command)
		}
		s.WriteString("printf '\\001%d\\n' $?\n")
	}
	return s.String()
}

var (
	duration = regexp.MustCompile(`[0-9][0-9.,]* ?(ns|us|µs|ms|s)\b`)
	spaces   = regexp.MustCompile(` +`)
)

// steady returns a line without what differs from run to run: durations, and the width of columns that have some.
func steady(line string) string {
	if !duration.MatchString(line) {
		return strings.TrimRight(line, " ")
	}
	return spaces.ReplaceAllString(duration.ReplaceAllString(line, "TIME"), " ")
}

// printed compares what a command printed with what the page says; the answer is empty where they agree.
func printed(want, got []string) string {
	agree := func(a, b string) bool { return steady(a) == steady(b) }
	var matches func(want, got []string) bool
	matches = func(want, got []string) bool {
		switch {
		case len(want) == 0:
			return len(got) == 0
		case strings.TrimSpace(want[0]) == "...":
			return matches(want[1:], got) || len(got) > 0 && matches(want, got[1:])
		}
		return len(got) > 0 && agree(want[0], got[0]) && matches(want[1:], got[1:])
	}
	if matches(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

func TestComparisonOfTutorials(t *testing.T) {
	for _, c := range []struct {
		want, got string
		agree     bool
	}{
		{"a\nb", "a\nb", true},
		{"a\nb", "a", false},
		{"a", "a\nb", false},
		{"a\n...", "a\nb\nc", true},
		{"...\nc", "a\nb\nc", true},
		{"a\n...\nc", "a\nc", true},
		{"a\n...\nc", "a\nb", false},
		{"...\nb\n...", "a\nc", false},
		{"time   1.5ms  3", "time  210.25 us  3", true},
		{"time   1.5ms  3", "time  210.25 us  4", false},
		{"3  messages", "4  messages", false},
	} {
		if got := printed(strings.Split(c.want, "\n"), strings.Split(c.got, "\n")) == ""; got != c.agree {
			t.Errorf("%q and %q agree: %v", c.want, c.got, got)
		}
	}
}

// TestTutorials runs the tutorials as a reader does: from a folder with testdata, in a shell.
func TestTutorials(t *testing.T) {
	testenv.MPI(t, "openmpi") // whose ranks yield their CPU while they wait
	// Pages that are read at once would tell that one waits for the library that another one builds.
	if _, err := shim.Build(t.Context(), shim.BuildOptions{Library: shim.OpenMPI, Cache: shimCache}); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../../docs/tutorials/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, "../../README.md")
	read := 0
	for _, page := range pages {
		steps := readTutorial(t, page)
		if len(steps) == 0 {
			continue // the list of the tutorials
		}
		read++
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			t.Parallel()
			takeSteps(t, steps)
		})
	}
	if read == 0 {
		t.Error("found no tutorial")
	}
}

func takeSteps(t *testing.T, steps []step) {
	dir := t.TempDir()
	for _, name := range []string{"programs", "signatures", "runs"} {
		from, err := filepath.Abs(filepath.Join("../../testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, "testdata"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(from, filepath.Join(dir, "testdata", name)); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mpicc", "mpirun"} {
		path, err := exec.LookPath(name + ".openmpi")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("bash", "-c", "exec 2>&1\n"+script(steps))
	c.Dir = dir
	c.Env = testenv.Environ("PATH="+bin+":"+os.Getenv("PATH"), "COMMQ_STORE=", "COMMQ_CACHE="+shimCache,
		"HOME="+dir, "NO_COLOR=1")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	rest := strings.ReplaceAll(out.String(), dir+string(filepath.Separator), "")
	for _, p := range steps {
		said, after, ok := strings.Cut(rest, "\x01")
		if !ok {
			t.Fatalf("no status of %q in\n%s", p.command, rest)
		}
		status, after, _ := strings.Cut(after, "\n")
		rest = after
		if status != "0" {
			t.Errorf("$ %s\nends with status %s:\n%s", p.command, status, said)
			continue
		}
		var got []string
		if said != "" {
			got = strings.Split(strings.TrimSuffix(said, "\n"), "\n")
		}
		if diff := printed(p.want, got); diff != "" {
			t.Errorf("$ %s\n(-page +commq):\n%s", p.command, diff)
		}
	}
}
