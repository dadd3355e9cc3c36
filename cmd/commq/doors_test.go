package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// rawStreams are the files of this package that may use the process's streams as they are: those that make the doors
// (app.out, app.log, app.screen, app.inherited, warnings), and those that move the cursor of a terminal.
var rawStreams = map[string]bool{"main.go": true, "terminal.go": true, "progress.go": true, "working.go": true}

// encoders take a raw stream and have their own door: they write JSON, XML, CSV or another format whole, or write
// nothing.
var encoders = map[string]bool{"printJSON": true, "printJSONLine": true, "predictionCSV": true, "output.Write": true,
	"CSV": true, "csv": true,
	"Markdown": true, "SARIF": true, "JUnit": true, "onTerminal": true, "understands": true, "painter": true,
	"helpWidth":           true,
	"GenBashCompletionV2": true, "GenZshCompletion": true, "GenFishCompletion": true, "s.Write": true,
	"simrank.Run": true,
	"write":       true}

// doorsAround lists uses of raw streams that are neither, each with its reason.
var doorsAround = map[string]string{
	"capture.go: a.stderr":             "a user's own --gather command writes there",
	"capture.go: a.stdout":             "the traced program's own output, which must stay as it is; paths that we made",
	"replay_phases.go: a.stderr":       "the player's own output",
	"capture_api.go: a.stdout":         "commq's own header files, and the paths where the user wanted them",
	"doctor.go: a.stdout":              "coloured; each text passes printable.Line",
	"runs.go: a.stdout":                "coloured; each text passes printable.Line",
	"watch.go: w.app.stdout":           "moves the cursor; the text passes printable.Text",
	"exec.go: a.stdout":                "commands for the shell, quoted for it",
	"capture.go: a.inherited":          "the traced program's own output",
	"store_register.go: a.screen(sql)": "SQL for a client of Trino",
	"simrank.go: a.stderr":             "the log of a simulator rank, without texts of the program",
	"detect_replay.go: a.stderr":       "passed on to another app",
	"help.go: c.OutOrStdout()":         "commq's own help",
}

// TestTextGoesThroughItsDoor looks for print statements that bypass the doors of package printable: raw streams in this
// package, and in others CSV, XML and workflow commands, or the process's streams.
func TestTextGoesThroughItsDoor(t *testing.T) {
	used := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "bench" ||
				d.Name() == "testenv" ||
				d.Name() == "gen" || strings.HasPrefix(d.Name(), "gen") && strings.Contains(path, "internal") ||
				d.Name() == "testdata") {
				return fs.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasSuffix(path, "_gen.go") {
			return nil
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel("../..", path)
		for _, around := range bypasses(filepath.ToSlash(rel), f) {
			name := filepath.Base(path) + ": " + around.what
			if strings.HasPrefix(filepath.ToSlash(rel), "cmd/commq/") && doorsAround[name] != "" {
				used[name] = true
				continue
			}
			t.Errorf("%s: %s goes around the doors of internal/printable (app.out, app.log, warn, note; NewCSV; Command)",
				files.Position(around.at), around.what)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range doorsAround {
		if !used[name] {
			t.Errorf("doorsAround has %q, which no file does any more", name)
		}
	}
}

// bypass is a use of a raw stream or encoder.
type bypass struct {
	what string
	at   token.Pos
}

// bypasses finds the uses in a file that no encoder takes.
func bypasses(path string, f *ast.File) (found []bypass) {
	inCmd := strings.HasPrefix(path, "cmd/commq/")
	taken := map[ast.Node]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.CallExpr:
			name := calleeName(x)
			if encoders[name] || encoders[name[strings.LastIndex(name, ".")+1:]] {
				for _, arg := range x.Args {
					taken[arg] = true
				}
			}
			if text := cmp.Or(forbiddenCall(path, name), rawScreen(x)); text != "" && !taken[x] {
				found = append(found, bypass{text, x.Pos()})
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(x.Value); err == nil && x.Kind == token.STRING &&
				path != "compare/verdict.go" &&
				(strings.HasPrefix(text, "::error") || strings.HasPrefix(text, "::notice") ||
					strings.HasPrefix(text, "::warning")) {
				found = append(found, bypass{"a workflow command", x.Pos()})
			}
		case *ast.SelectorExpr:
			if what := stream(x); what != "" && !taken[x] && (!inCmd || !rawStreams[filepath.Base(path)]) {
				found = append(found, bypass{what, x.Pos()})
			}
		}
		return true
	})
	return found
}

// calleeName returns the name of what a call calls.
func calleeName(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name + "." + f.Sel.Name
		}
		return f.Sel.Name
	}
	return ""
}

// forbiddenCall names a call that only one package may make.
func forbiddenCall(path, name string) string {
	owner := map[string]string{"csv.NewWriter": "internal/printable/", "xml.NewEncoder": "internal/junit/",
		"syscall.Write": "capture/simrank/"}[name]
	switch name[strings.LastIndex(name, ".")+1:] {
	case "Print", "Printf", "Println", "PrintErr", "PrintErrf", "PrintErrln": // fmt, log, cobra
		owner = "nobody"
	case name: // of Go itself, or of the package
		if name == "print" || name == "println" {
			owner = "nobody"
		}
	}
	if owner == "" || strings.HasPrefix(path, owner) {
		return ""
	}
	return name
}

// rawScreen names a call of app.screen for a format of which nothing is escaped.
func rawScreen(c *ast.CallExpr) string {
	if calleeName(c) != "a.screen" {
		return ""
	}
	format, known := c.Args[0].(*ast.BasicLit)
	if !known || format.Value == `"text"` || format.Value == `"table"` || format.Value == `"markdown"` {
		return ""
	}
	return "a.screen(" + strings.Trim(format.Value, `"`) + ")"
}

// TestFormatsAreForPeopleOrPrograms: app.screen escapes the formats that people read, and no others.
func TestFormatsAreForPeopleOrPrograms(t *testing.T) {
	formats := map[string]bool{"text": true, "table": true, "markdown": true, "json": false, "jsonl": false, "csv": false,
		"parquet": false, "arrow": false, "sarif": false, "junit": false,
		"github": false} // people are shown workflow commands, which package compare escapes
	offered := map[string]bool{}
	everyCommand(t, func(t *testing.T, c *cobra.Command) {
		offer, has := c.GetFlagCompletionFunc("format")
		if c.LocalFlags().Lookup("format") == nil {
			return
		}
		if !has {
			t.Fatal("--format completes no values")
		}
		values, _ := offer(c, nil, "")
		for _, v := range values {
			name, _, _ := strings.Cut(v, "\t")
			offered[name] = true
		}
	})
	for format := range offered {
		people, known := formats[format]
		if !known {
			t.Errorf("--format %s: add it to this test, and to app.screen if people read it", format)
		}
		var b bytes.Buffer
		_, err := io.WriteString((&app{stdout: &answerWriter{w: &b}}).screen(format), "a\x1b[31m\n")
		if escaped := !strings.Contains(b.String(), "\x1b"); err != nil || escaped != people {
			t.Errorf("--format %s: escaped %v, %v; want %v", format, escaped, err, people)
		}
	}
	for format := range formats {
		if !offered[format] {
			t.Errorf("no command has --format %s", format)
		}
	}
}

// stream names a raw stream of the process or of the app.
func stream(x *ast.SelectorExpr) string {
	text := selector(x)
	switch {
	case text == "os.Stdout" || text == "os.Stderr":
		return text
	case text == "a.stdout" || text == "a.stderr" || text == "a.inherited" || strings.HasSuffix(text, "app.stdout") ||
		strings.HasSuffix(text, "app.stderr"):
		return text
	case strings.HasSuffix(text, ".OutOrStdout"), strings.HasSuffix(text, ".OutOrStderr"),
		strings.HasSuffix(text, ".ErrOrStderr"):
		return text + "()"
	}
	return ""
}

func selector(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return selector(x.X) + "." + x.Sel.Name
	case *ast.CallExpr:
		return selector(x.Fun) + "()"
	}
	return fmt.Sprintf("%T", x)
}
