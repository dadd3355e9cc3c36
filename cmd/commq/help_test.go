package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/queries"
)

// everyCommand calls use with every command that users see.
func everyCommand(t *testing.T, use func(*testing.T, *cobra.Command)) {
	root := newRootCommand(&app{stdin: strings.NewReader(""), stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}})
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		t.Run(c.CommandPath(), func(t *testing.T) { use(t, c) })
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

// TestHelpOfEveryCommand: the help of each command has a summary and an example, and fits a terminal of 80 columns.
func TestHelpOfEveryCommand(t *testing.T) {
	everyCommand(t, func(t *testing.T, c *cobra.Command) {
		words := append(strings.Fields(c.CommandPath())[1:], "--help")
		status, out, errs := commandLine("", words...)
		if status != 0 || errs != "" {
			t.Fatalf("status %d, stderr %q", status, errs)
		}
		if c.Short == "" || c.Long == "" || !strings.Contains(out, "\nUsage:\n") {
			t.Errorf("no Short, Long or Usage:\n%s", out)
		}
		for _, line := range strings.Split(out, "\n") {
			if utf8.RuneCountInString(line) > leastHelp {
				t.Errorf("wider than %d columns: %s", leastHelp, line)
			}
			for _, none := range []string{"(default )", "(default [])", `(default "")`, "(default <nil>)"} {
				if strings.Contains(line, none) {
					t.Errorf("a default that is none: %s", line)
				}
			}
			if line != strings.TrimRight(line, " ") {
				t.Errorf("blanks at the end: %q", line)
			}
		}
		if !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("no example of %s:\n%s", c.CommandPath(), c.Example)
		}
	})
}

// TestExamplesOfQueriesWork runs the examples in the help of each query.
func TestExamplesOfQueriesWork(t *testing.T) {
	store, err := filepath.Abs(runsDir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := queries.All()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("COMMQ_STORE", store)
	t.Chdir(t.TempDir())
	for _, q := range all {
		for _, line := range q.Examples() {
			words, err := shellquote.Split(line)
			if err != nil || words[0] != "commq" {
				t.Errorf("%s: %v", line, err)
				continue
			}
			var out, errs bytes.Buffer
			if status := execute(context.Background(), words[1:], strings.NewReader(""), &out, &errs); status != 0 {
				t.Errorf("%s: status %d: %s", line, status, errs.String())
			}
			if i := slices.Index(words, "--plot"); i > 0 {
				if info, err := os.Stat(words[i+1]); err != nil || info.Size() < 1000 {
					t.Errorf("%s: no picture: %v", line, err)
				}
			} else if out.Len() == 0 {
				t.Errorf("%s: nothing on stdout", line)
			}
		}
	}
}

// freeText are the flags whose values cannot be guessed: numbers, new names, addresses, conditions, lists of them.
var freeText = strings.Fields(`alpha at benchmark checkpoint-every columns completeness cpus-per-node dsn eager-threshold-bytes explained finding
	flops-per-second gather interval least limit location max-bytes max-spool memory min-ranks name part parts port ranks
	reference-ns repeat rounds rows-per-file sim-ranks simulate-most stack threads threshold time-resolution-ns timeout wait where within`)

// TestCompletionOfEveryCommand: every command offers what can stand for its arguments, and values, files or folders for
// each flag, unless the flag takes free text. Queries' parameters offer what their headers allow.
func TestCompletionOfEveryCommand(t *testing.T) {
	t.Setenv("COMMQ_STORE", smallStore(t))
	free := map[string]bool{}
	everyCommand(t, func(t *testing.T, c *cobra.Command) {
		if c.ValidArgsFunction == nil && !c.HasAvailableSubCommands() {
			t.Error("nothing completes its arguments")
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() == "bool" || isParameter(c, f.Name) || f.Name == "job" || // jobs of the spool given
				f.Name == "run" && c.Name() == "pull" { // runs of a bucket
				return
			}
			offer, ok := c.GetFlagCompletionFunc(f.Name)
			if !ok {
				t.Errorf("nothing completes --%s", f.Name)
				return
			}
			values, directive := offer(c, nil, "")
			offers := len(values) > 0 || directive&cobra.ShellCompDirectiveNoFileComp == 0
			if free[f.Name] = free[f.Name] || !offers; offers == slices.Contains(freeText, f.Name) {
				t.Errorf("--%s: completion offers %q (%d), and freeText has it: %t", f.Name, values, directive,
					slices.Contains(freeText, f.Name))
			}
		})
	})
	for _, name := range freeText {
		if !free[name] {
			t.Errorf("freeText: no command has a flag --%s", name)
		}
	}
}

// TestSummariesCanBeQuiet: commands print their summaries to the stream that --quiet turns off.
func TestSummariesCanBeQuiet(t *testing.T) {
	sources, err := filepath.Glob("*.go")
	if err != nil || len(sources) < 20 {
		t.Fatal(sources, err)
	}
	for _, name := range sources {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, print := range []string{"printSummary(", "printStuck("} {
			if strings.Contains(string(text), print+"a.stderr") {
				t.Errorf("%s: %sa.stderr, ...): want a.summaries()", name, print)
			}
		}
	}
}

// TestFlagsOfQueriesAreReserved: a parameter of a query cannot have the name of a flag that every query has.
func TestFlagsOfQueriesAreReserved(t *testing.T) {
	root := newRootCommand(&app{stdin: strings.NewReader(""), stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}})
	ask, _, err := root.Find([]string{"query", "calls"}) // which has no parameters
	if err != nil {
		t.Fatal(err)
	}
	ask.InitDefaultHelpFlag()
	for _, flags := range []*pflag.FlagSet{ask.LocalFlags(), ask.InheritedFlags(), ask.Parent().LocalFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			dir := t.TempDir()
			header := "-- summary: S.\n-- source: S.\n-- needs: messages\n-- param " +
				f.Name + " integer 1..9 = 3: P.\n-- column n INTEGER 1: N.\n-- order: n\n-- cost: C.\nSELECT {{" +
				f.Name + "}} AS n ORDER BY n\n"
			if err := os.WriteFile(filepath.Join(dir, "mine.sql"), []byte(header), 0o644); err != nil {
				t.Fatal(err)
			}
			if own, unusable := queries.Own(dir, nil); len(own) != 0 || len(unusable) != 1 ||
				!strings.Contains(unusable[0].Err.Error(), "mine.sql: line 4: param "+
					f.Name+": every query has a flag of that name") {
				t.Errorf("a parameter %s: %d queries, %+v", f.Name, len(own), unusable)
			}
		})
	}
}

// A help text that cannot be written is an error, as any other answer, also one of a check that fails.
func TestHelpOnAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		testenv.Skip(t, "no /dev/full here")
	}
	defer full.Close()
	for _, line := range []string{"help", "help capture", "capture --help", "query density --help", "runs", "export",
		"capture api --dir " + t.TempDir(),
		"runs check --store ../../testdata/runs pingpong.2",
		"simulate --store ../../testdata/runs --run pingpong.2 --machine myrinet"} {
		var errs bytes.Buffer
		status := execute(context.Background(), strings.Fields(line), strings.NewReader(""), full, &errs)
		if status != exitCannot || strings.Count(errs.String(), "no space left on device") != 1 {
			t.Errorf("commq %s: status %d, %q", line, status, &errs)
		}
	}
}
