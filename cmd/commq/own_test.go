package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOwnQueriesOfTheManual: the query in docs/method/own-queries.md answers as it says there.
func TestOwnQueriesOfTheManual(t *testing.T) {
	text, err := os.ReadFile("../../docs/method/own-queries.md")
	if err != nil {
		t.Fatal(err)
	}
	store, err := filepath.Abs(runsDir)
	if err != nil {
		t.Fatal(err)
	}
	// block is the indented lines from one that begins so to the next empty one.
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
