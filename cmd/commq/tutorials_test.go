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
// with a file name in backticks and a colon is that file. In the README a block that begins with mpicc or commq has
// commands whose output nobody compares, and nobody runs the others. Paths are given from the folder where the reader
// began.

// step is a command of a tutorial, or a file that the reader writes.
type step struct {
	command string
	want    []string
	file    string
	content string
	// exact steps print the same durations every time; of blind ones only the exit status is looked at.
	exact, blind bool
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
		case filepath.Base(page) == "README.md":
			if strings.HasPrefix(block[0], "mpicc ") || strings.HasPrefix(block[0], "commq ") {
				for _, command := range block {
					steps = append(steps, step{command: command, blind: true})
				}
			} // else lines for the reader alone
		default:
			t.Errorf("%s:%d: the block is neither commands nor a file", page, i-len(block))
		}
	}
	measured := false
	for i := range steps {
		measured = measured || timing.MatchString(steps[i].command)
		steps[i].exact = !measured || strings.Contains(steps[i].command, "testdata/")
	}
	return steps
}

// timing finds commands whose runs have other durations every time, and so have the answers of the page from there
// on, if they are not about a run in testdata.
var timing = regexp.MustCompile(`\bcommq (capture|exec|replay|calibrate)\b`)

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

// printed compares what a command printed with what the page says, with their durations if exact; the answer is empty
// where they agree.
func printed(want, got []string, exact bool) string {
	agree := func(a, b string) bool {
		if exact {
			return strings.TrimRight(a, " ") == strings.TrimRight(b, " ")
		}
		return steady(a) == steady(b)
	}
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
		want, got    string
		steady, same bool // whether they agree, but for durations and with them
	}{
		{"a\nb", "a\nb", true, true},
		{"a\nb", "a", false, false},
		{"a", "a\nb", false, false},
		{"a\n...", "a\nb\nc", true, true},
		{"...\nc", "a\nb\nc", true, true},
		{"a\n...\nc", "a\nc", true, true},
		{"a\n...\nc", "a\nb", false, false},
		{"...\nb\n...", "a\nc", false, false},
		{"time   1.5ms  3", "time  210.25 us  3", true, false},
		{"time   1.5ms  3", "time  210.25 us  4", false, false},
		{"gain 735 ms", "gain 999 ms", true, false},
		{"3  messages", "4  messages", false, false},
	} {
		for exact, agree := range map[bool]bool{false: c.steady, true: c.same} {
			got := printed(strings.Split(c.want, "\n"), strings.Split(c.got, "\n"), exact) == ""
			if got != agree {
				t.Errorf("%q and %q agree: %v (exact: %v)", c.want, c.got, got, exact)
			}
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
			setup := ""
			if filepath.Base(page) == "README.md" {
				setup = readersOwn
			}
			takeSteps(t, setup, steps)
		})
	}
	if read == 0 {
		t.Error("found no tutorial")
	}
}

// readersOwn makes what the reader of the README has: a program (any will do), and two runs of it.
const readersOwn = `mpicc -w -o ring testdata/programs/halo.c -lm
for run in main.4 pr.4; do commq capture -q --name $run -n 4 -- ./ring; done >/dev/null
`

// takeSteps takes the steps after those of setup, in one shell.
func takeSteps(t *testing.T, setup string, steps []step) {
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
	c := exec.Command("bash", "-c", "exec 2>&1\n"+setup+script(steps))
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
		if diff := printed(p.want, got, p.exact); diff != "" && !p.blind {
			t.Errorf("$ %s\n(-page +commq):\n%s", p.command, diff)
		}
	}
}
