package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/queries"
)

// TestOwnQueriesOfTheManual: the query in docs/method/own-queries.md gives the answer shown there.
func TestOwnQueriesOfTheManual(t *testing.T) {
	text, err := os.ReadFile("../../docs/method/own-queries.md")
	if err != nil {
		t.Fatal(err)
	}
	store, err := filepath.Abs(runsDir)
	if err != nil {
		t.Fatal(err)
	}
	// block is the indented lines from the one with this beginning to the next empty one.
	block := func(begin string) string {
		_, after, ok := strings.Cut(string(text), "\n    "+begin)
		if !ok {
			t.Fatalf("the manual has no %q", begin)
		}
		lines, _, _ := strings.Cut(begin+after, "\n\n")
		return strings.ReplaceAll(lines, "\n    ", "\n") + "\n"
	}
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("COMMQ_STORE", store)
	dir := filepath.Join(config, "commq", "queries")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "busiest.sql"), []byte(block("-- summary: Ranks")), 0o644); err != nil {
		t.Fatal(err)
	}
	command, want, _ := strings.Cut(block("$ commq query busiest"), "\n")
	status, out, errs := commandLine("", strings.Fields(command)[2:]...)
	if status != 0 || out != want {
		t.Errorf("status %d, %s\n%s; want\n%s", status, errs, out, want)
	}
}

// TestQueriesOfACommandLine: a command line loads the queries that it names, or all if it may use any.
func TestQueriesOfACommandLine(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	all := len(queries.Names())
	for _, c := range []struct {
		line  string
		names int
		has   string
	}{
		{"query density --run sp.A.4", 1, "density"},
		{"--store there query late-senders --run sizes", 2, "late-senders"},
		{"help query tags", 1, "tags"},
		{"query --list", all, "density"},
		{"query densty --run sp.A.4", all, "density"},
		{"__complete query sizes", all, "tags"},
		{"report sp.A.4 --query calls", 1, "calls"},
		{"capture -n 3 -- ./density", 0, ""},
		{"runs show density", 0, ""},
	} {
		a := &app{args: strings.Fields(c.line)}
		l, err := a.askable()
		if err != nil {
			t.Fatal(err)
		}
		if names := l.names(); len(names) != c.names || c.has != "" && !slices.Contains(names, c.has) {
			t.Errorf("%s: %d queries, %q; want %d with %s", c.line, len(names), names, c.names, c.has)
		}
	}
	if l, err := (&app{}).askable(); err != nil || len(l.all) != all {
		t.Errorf("without a command line: %v, %v; want all", l, err)
	}
}
