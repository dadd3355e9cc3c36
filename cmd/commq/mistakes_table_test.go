package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

const mistakesDir = "../../testdata/mistakes"

var updateMistakes = flag.Bool("update-mistakes", false, "write the answers of TestMistakes to testdata/mistakes")

// mistake is a wrong command line and its answer.
type mistake struct {
	line   string // as a user types it, without "commq"
	kind   string // given: the line has the word; missing: it lacks it; found: the word is in a file that it names
	word   string // the word that is wrong or missing, which the answer names
	answer string // exit status, then the message
}

// String is the mistake as it stands in a file.
func (m mistake) String() string {
	return fmt.Sprintf("$ commq %s\n%s %s\n%s", m.line, m.kind, m.word, m.answer)
}

// readMistake reads a paragraph of a file; ok is false for a comment.
func readMistake(t *testing.T, paragraph string) (m mistake, ok bool) {
	t.Helper()
	line, rest, _ := strings.Cut(paragraph, "\n")
	if strings.HasPrefix(line, "#") {
		return m, false
	}
	about, answer, _ := strings.Cut(rest, "\n")
	line, isMistake := strings.CutPrefix(line, "$ commq ")
	kind, word, _ := strings.Cut(about, " ")
	isKind := kind == "given" || kind == "missing" || kind == "found"
	if !isMistake || !isKind || word == "" {
		t.Fatalf("want \"$ commq ...\", then \"given WORD\", \"missing WORD\" or \"found WORD\"; found:\n%s", paragraph)
	}
	if strings.Contains(line, word) != (kind == "given") {
		t.Fatalf("%s: %q is part of it if it is given, and only then", line, word)
	}
	return mistake{line: line, kind: kind, word: word, answer: answer}, true
}

// shellWord is a word of a command line: plain, or in quotes of either kind.
var shellWord = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)

func shellWords(line string) []string {
	words := shellWord.FindAllString(line, -1)
	for i, w := range words {
		if q := w[0]; q == '\'' || q == '"' {
			words[i] = w[1 : len(w)-1]
		}
	}
	return words
}

// mistakesFolder makes a folder with a store of the committed runs and the files that the mistakes name, and changes
// to it.
func mistakesFolder(t *testing.T) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join(mistakesDir, "files.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "runs"), 0o755); err != nil {
		t.Fatal(err)
	}
	linkRuns(t, filepath.Join(dir, "runs"), runsDir)
	for _, f := range archive.Files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(f.Name)), 0o755); err != nil {
			t.Fatal(err)
		}
		putFile(t, filepath.Join(dir, f.Name), string(f.Data), 0o755)
	}
	// Runs that are damaged: a table that is cut off, and one that is gone.
	copyRun(t, filepath.Join(runsDir, "ep.W.4"), filepath.Join(dir, "short"))
	cut(t, filepath.Join(dir, "short", "messages", "0000.parquet"), 2)
	copyRun(t, filepath.Join(runsDir, "ep.W.4"), filepath.Join(dir, "gone"))
	if err := os.Remove(filepath.Join(dir, "gone", "messages", "0000.parquet")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, name := range []string{"COMMQ_STORE", "COMMQ_DSN", "COMMQ_SPOOL"} {
		t.Setenv(name, "")
	}
	t.Setenv("COMMQ_CACHE", filepath.Join(t.TempDir(), "cache"))
}

// listing has a line for every file and folder below the folders; for files with size and time of the last change.
func listing(t *testing.T, folders ...string) string {
	t.Helper()
	var b strings.Builder
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if !d.IsDir() { // a run that was begun and removed changes the time of its folder
				path += fmt.Sprint(" ", info.Size(), " ", info.ModTime())
			}
			fmt.Fprintln(&b, path)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// internals are words that tell how commq is made, and say nothing to its users.
var internals = regexp.MustCompile(`strconv|0x[0-9a-f]{4}|goroutine|%!|invalid syntax|cobra|pflag|panic|\.go:[0-9]|` +
	`\*?\b(os|fs|exec|json|yaml)\.[A-Z]|/tmp/|\.[0-9]{6,}|<nil>|errno|shorthand|unmarshal|cannot parse|EOF`)

// advice is what messages say to do, in one of these forms: what is wanted, the nearest name, the names that there
// are, another command or flag. A file that is not there needs none.
var advice = regexp.MustCompile(`\bwant\b|did you mean|\b(give|name|choose|use|write|put|list|take|add|remove|say|` +
	`capture|needs?|overwrite|lists|has)\b|--help|one of|there are|known|commq [a-z]+|no such file|not a (folder|file)|` +
	`is a folder|exists|Candidate|columns of|syntax error at`)

// TestMistakes: the command lines of testdata/mistakes have a mistake each. Every one ends with status 2, writes
// nothing, and gets a short message that names what is wrong and says what to do. With -update-mistakes the test
// writes the messages; read them.
func TestMistakes(t *testing.T) {
	runs, err := filepath.Abs(runsDir)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Abs(mistakesDir)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(tables, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no mistakes in %s: %v", tables, err)
	}
	mistakesFolder(t)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	before := listing(t, dir, runs)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		paragraphs := strings.Split(strings.TrimSpace(string(text)), "\n\n")
		for i, p := range paragraphs {
			m, ok := readMistake(t, p)
			if !ok {
				continue
			}
			t.Run(m.line, func(t *testing.T) {
				status, out, errs := commandLine("", shellWords(m.line)...)
				errs = withoutBlanks(strings.ReplaceAll(errs, dir, "/DIR"))
				checkMessage(t, m, out, errs)
				if after := listing(t, dir, runs); after != before {
					t.Errorf("it wrote something:\n%s", cmp.Diff(before, after))
				}
				answer := fmt.Sprintf("status %d\n%s", status, errs)
				if status != exitCannot {
					t.Errorf("status %d, want %d", status, exitCannot)
				}
				if answer != m.answer && !*updateMistakes {
					t.Errorf("(-want +got; go test -update-mistakes writes it)\n%s", cmp.Diff(m.answer, answer))
				}
				m.answer = answer
				paragraphs[i] = m.String()
			})
		}
		if *updateMistakes {
			putFile(t, file, strings.Join(paragraphs, "\n\n")+"\n", 0o644)
		}
	}
}

// withoutBlanks removes the blank lines of a message: they separate the paragraphs of a file.
func withoutBlanks(message string) string {
	return blankLines.ReplaceAllString(strings.TrimSpace(message), "\n")
}

var blankLines = regexp.MustCompile(`\n\s*\n`)

// checkMessage checks what every message about a mistake must be.
func checkMessage(t *testing.T, m mistake, out, errs string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(errs), "\n")
	switch {
	case out != "":
		t.Errorf("stdout has %q", out)
	case !strings.HasPrefix(errs, "commq: "):
		t.Errorf("%q does not begin with commq:", errs)
	case len(lines) > 4 || len(errs) > 700:
		t.Errorf("%d lines of %d bytes are too much:\n%s", len(lines), len(errs), errs)
	case !strings.Contains(errs, m.word):
		t.Errorf("%q is not named in: %s", m.word, errs)
	case internals.MatchString(errs):
		t.Errorf("%q means nothing to a user: %s", internals.FindString(errs), errs)
	case !advice.MatchString(errs):
		t.Errorf("does not say what to do: %s", errs)
	}
}
