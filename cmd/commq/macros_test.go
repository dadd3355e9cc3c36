package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/schema"
)

// duckdb is the real duckdb shell with the output of commq macros, and a store.
type duckdb struct {
	path, macros string
	env          []string
}

func newDuckDB(t *testing.T, store string) *duckdb {
	t.Helper()
	d := &duckdb{path: testenv.DuckDB(t, "../../scripts"), macros: filepath.Join(t.TempDir(), "commq.sql")}
	status, text, errs := commandLine("", "sql", "--init")
	if status != 0 || errs != "" {
		t.Fatalf("commq sql --init: status %d: %s", status, errs)
	}
	if err := os.WriteFile(d.macros, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	d.env = append(os.Environ(), "COMMQ_STORE="+store, "HOME="+t.TempDir()) // and no ~/.duckdbrc
	return d
}

// run runs the shell as a user does, and returns its output as CSV and its messages, without colours.
func (d *duckdb) run(args ...string) (string, string, error) { return d.read("", args...) }

// read does the same with statements on its standard input.
func (d *duckdb) read(input string, args ...string) (string, string, error) {
	c := exec.Command(d.path, append([]string{"-init", d.macros, "-csv", "-nullvalue", ""}, args...)...)
	c.Env = d.env
	var out, errs bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(input), &out, &errs
	err := c.Run()
	return out.String(), errs.String(), err
}

// between separates the answers to several statements.
const between = "-- the next answer --"

// ask returns the answers to several statements of one shell. An error in one fails the test.
func (d *duckdb) ask(t *testing.T, statements []string) []string {
	t.Helper()
	var args []string
	for _, s := range statements {
		args = append(args, "-c", s, "-c", ".print "+between)
	}
	out, errs, err := d.run(args...)
	if err != nil {
		t.Fatalf("%v: %s", err, errs)
	}
	answers := strings.Split(out, between+"\n")
	return answers[:len(statements)]
}

// refused returns the messages about several statements of one shell, which goes on after an error.
func (d *duckdb) refused(t *testing.T, statements []string) []string {
	t.Helper()
	if len(statements) == 0 {
		return nil
	}
	var input strings.Builder
	for _, s := range statements {
		fmt.Fprintf(&input, "%s;\nSELECT error('%s');\n", s, between)
	}
	_, said, err := d.read(input.String())
	said = strings.ReplaceAll(said, "\x1b[00m", "") // the end of a colour
	messages := strings.Split(said, "Invalid Input Error: "+between+"\n")
	if err == nil || len(messages) != len(statements)+1 {
		t.Fatalf("%v, %d messages about %d statements: %s", err, len(messages), len(statements), said)
	}
	_, messages[0], _ = strings.Cut(messages[0], "\n") // after the line that names the resources
	return messages[:len(statements)]
}

// question is one query, as arguments of commq query and as a statement for the shell.
type question struct {
	q         *queries.Query
	args      []string // of commq query
	statement string
}

// questions returns every query of a run, with the defaults and with other arguments.
func questions(t *testing.T, name, run string) []question {
	t.Helper()
	all, err := queries.All()
	if err != nil {
		t.Fatal(err)
	}
	var asks []question
	for _, q := range all {
		ask := question{q, []string{"query", q.Name, "--run", name}, "FROM " +
			strings.ReplaceAll(q.Name, "-", "_") + "(" + run}
		asks = append(asks, question{q, ask.args, ask.statement + ")"})
		other := ask
		for _, p := range q.Params {
			flag, value, literal := p.Name, "", ""
			switch p.Kind {
			case "choice":
				value = p.Choices[len(p.Choices)-1]
				literal = "'" + value + "'"
			case "integer":
				value = fmt.Sprint(min(p.Low+12, p.High))
				literal = value
			case "condition":
				value = "bytes > 40 AND dst <> 1"
				literal = "'" + value + "'"
			default:
				continue
			}
			if p.Name == "where" {
				flag = "condition"
			}
			// topologies and mappings need further parameters
			if q.Name == "locality" && p.Name != "where" && p.Name != "collectives" {
				continue
			}
			if p.Name == "from-rank" { // of a run with few ranks it would leave none
				continue
			}
			other.args = append(other.args[:len(other.args):len(other.args)], "--"+p.Name, value)
			other.statement += ", " + strings.ReplaceAll(flag, "-", "_") + " := " + literal
		}
		if len(other.args) > len(ask.args) {
			asks = append(asks, question{q, other.args, other.statement + ")"})
		}
	}
	return asks
}

// sameTable compares two answers in CSV: they must have the same rows in the same order. DOUBLEs may differ in the
// last digits, which depend on the order in which an engine adds.
func sameTable(t *testing.T, what string, columns []queries.Column, want, got string) {
	t.Helper()
	wanted, err := csv.NewReader(strings.NewReader(want)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	found, err := csv.NewReader(strings.NewReader(got)).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v in\n%s", what, err, got)
	}
	for i := range min(len(wanted), len(found)) {
		for j, c := range columns {
			if c.Type != "DOUBLE" || i == 0 {
				continue
			}
			x, err1 := strconv.ParseFloat(wanted[i][j], 64)
			y, err2 := strconv.ParseFloat(found[i][j], 64)
			if err1 == nil && err2 == nil && (x == y || math.Abs(x-y) <= 1e-12*math.Abs(x)) {
				found[i][j] = wanted[i][j]
			}
		}
	}
	if !slices.EqualFunc(wanted, found, slices.Equal[[]string]) { // Diff takes seconds to find many rows equal
		t.Errorf("%s (-commq +duckdb):\n%s", what, cmp.Diff(wanted, found))
	}
}

// TestDuckDBShellAnswersAsCommqDoes asks the real duckdb shell, without commq, each query of a hand-made run and of
// captured ones, and compares rows, numbers and order with those of commq query.
func TestDuckDBShellAnswersAsCommqDoes(t *testing.T) {
	odd := filepath.Join(t.TempDir(), `it's a "store"`)
	message := schema.NullMessage
	message.Src, message.Dst, message.Tag, message.Bytes = 1, 2, 9, 4097
	writeSmall(t, odd, "one.3", 3, message)
	for _, c := range []struct {
		store, name, run string
		refused          bool // by some
	}{
		{odd, "one.3", "'one.3'", true},
		{runsDir, "cg.A.4", "'cg.A.4'", false},
		{runsDir, "is.W.16", "'is.W.16'", false},
		{runsDir, "bt.C.64", "'bt.C.64'", true},
	} {
		t.Run(filepath.Base(c.name), func(t *testing.T) {
			t.Setenv("COMMQ_STORE", c.store)
			shell := newDuckDB(t, c.store)
			var statements, wanted, refused, reasons []string
			var columns [][]queries.Column
			for _, ask := range questions(t, c.name, c.run) {
				status, want, errs := commandLine("", append(ask.args, "--format", "csv")...)
				if status == 0 {
					statements, wanted, columns = append(statements, ask.statement), append(wanted, want),
						append(columns, ask.q.Columns)
					continue
				}
				_, errs, _ = strings.Cut(errs, "commq: ")
				refused, reasons = append(refused, ask.statement), append(reasons, strings.TrimSpace(errs))
			}
			some := false
			for i, said := range shell.refused(t, refused) {
				noSums := strings.Contains(reasons[i], queries.ErrNoSums.Error()) // commq refuses, the shell has no rows
				if some = some || !noSums; noSums && said != "" || !noSums && !strings.Contains(said, reasons[i]) {
					t.Errorf("%s: %q; commq says %q", refused[i], said, reasons[i])
				}
			}
			if some != c.refused {
				t.Errorf("some query refuses the run: %v, want %v", some, c.refused)
			}
			for i, got := range shell.ask(t, statements) {
				sameTable(t, statements[i], columns[i], wanted[i], got)
			}
		})
	}
}

func TestDuckDBShellOverAStore(t *testing.T) {
	t.Setenv("COMMQ_STORE", runsDir)
	shell := newDuckDB(t, runsDir)
	status, want, errs := commandLine("", "query", "scaling", "--run", "*", "--measure", "bytes-per-rank", "--format",
		"csv")
	if status != 0 {
		t.Fatal(errs)
	}
	all, err := queries.All()
	if err != nil {
		t.Fatal(err)
	}
	var scaling *queries.Query
	for _, q := range all {
		if q.Name == "scaling" {
			scaling = q
		}
	}
	answers := shell.ask(t, []string{
		"FROM scaling('*', measure := 'bytes-per-rank')",
		"SELECT run, ranks, time_origin, calls, messages, message_bytes FROM runs() WHERE app = 'cg'",
		"SELECT run, COUNT(*) AS messages, SUM(bytes) AS bytes FROM messages('cg.*') GROUP BY run ORDER BY run",
		"SELECT COUNT(*) AS queries FROM queries()",
		"FROM density('" + runsDir + "/is.W.16/', collectives := 'none') LIMIT 1",
	})
	sameTable(t, "scaling", scaling.Columns, want, answers[0])
	for i, want := range []string{
		"run,ranks,time_origin,calls,messages,message_bytes\ncg.A.4,4,measured,20180,6720,186395648\ncg.A.16,16,measured,141392,47104,559325184\n",
		"run,messages,bytes\ncg.A.16,47104,559325184\ncg.A.4,6720,186395648\n",
		fmt.Sprintf("queries\n%d\n", len(all)),
		"src,dst,messages,bytes\n0,1,1,4\n",
	} {
		if diff := cmp.Diff(want, answers[i+1]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// TestDuckDBShellInTheDocuments runs the lines of docs that use the duckdb shell, in a folder with the
// committed runs, and compares the output.
func TestDuckDBShellInTheDocuments(t *testing.T) {
	shell := newDuckDB(t, "")
	lines := 0
	for _, name := range []string{"../../docs/method/duckdb-shell.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(string(text), "\n    $ ")[1:] {
			line, want, _ := strings.Cut(block, "\n")
			words, err := shellquote.Split(line)
			if err != nil || len(words) != 5 || words[0] != "duckdb" {
				continue
			}
			lines++
			var wanted strings.Builder
			for want != "" {
				var row string
				row, want, _ = strings.Cut(want, "\n")
				if row, ok := strings.CutPrefix(row, "    "); ok {
					wanted.WriteString(row + "\n")
				} else {
					break
				}
			}
			c := exec.Command(shell.path, "-init", shell.macros, words[3], words[4])
			c.Dir, c.Env = "../../testdata", shell.env
			var out, errs bytes.Buffer
			c.Stdout, c.Stderr = &out, &errs
			got := ""
			if c.Run() == nil {
				got = strings.TrimSpace(out.String()) + "\n"
			} else if i := strings.Index(errs.String(), "\x1b[00m"); i >= 0 { // after the message about the file
				got, _, _ = strings.Cut(errs.String()[i+len("\x1b[00m"):], "\n")
				got += "\n"
			}
			if diff := cmp.Diff(wanted.String(), got); diff != "" {
				t.Errorf("%s: %s (-document +shell):\n%s", name, line, diff)
			}
		}
	}
	if lines < 6 {
		t.Errorf("found %d lines that ask the duckdb shell", lines)
	}
}

func TestDuckDBShellErrors(t *testing.T) {
	shell := newDuckDB(t, runsDir)
	for _, c := range []struct{ statement, want string }{
		{"FROM density('cg.A.5')", `No files found that match the pattern "` + runsDir + `/cg.A.5/`},
		{"FROM density('cg.A.4', collectives := 'all')",
			`query density: collectives "all": want one of rooted, logical, tree, none`},
		{"FROM late_receivers('bt.C.64')", `query late-receivers: run "bt.C.64" does not keep every call; capture it again with --record all`},
	} {
		out, said, err := shell.run("-c", c.statement)
		if err == nil || out != "" || !strings.Contains(said, c.want) {
			t.Errorf("%s: %v, stdout %q, stderr %q; want an error with %q", c.statement, err, out, said, c.want)
		}
	}
	// Without $COMMQ_STORE the store is ./runs.
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "runs", "cg.A.4"), os.DirFS(filepath.Join(runsDir, "cg.A.4"))); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(context.Background(), shell.path, "-init", shell.macros, "-csv", "-c",
		"SELECT SUM(messages) AS messages FROM pairs('cg.A.4')")
	c.Dir, c.Env = dir, append(os.Environ(), "COMMQ_STORE=")
	out, err := c.Output()
	if err != nil || string(out) != "messages\n6720\n" {
		t.Errorf("in a folder with runs: %v, %q", err, out)
	}
}
