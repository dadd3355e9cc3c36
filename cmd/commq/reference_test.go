package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// The reference of the commands and the manual pages come from the commands themselves, by tests, so that what makes
// them is not in commq.
var (
	update    = flag.Bool("update", false, "write docs/reference/commands.md and json, and the pictures of docs/FIGURES.md")
	manFolder = flag.String("man", "", "`FOLDER` to write manual pages to")
)

// documented is the tree of commands with defaults that are the same for everybody.
func documented(t *testing.T) *cobra.Command {
	t.Setenv("COMMQ_SPOOL", "$TMPDIR/commq-spool-UID")
	root := newRootCommand(&app{stdin: strings.NewReader(""), stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}})
	root.DisableAutoGenTag = true // no dates, so that pages change only when commands do
	return root
}

const referenceFile = "../../docs/reference/commands.md"

// TestCommandReference: docs/reference/commands.md is what the commands say of themselves.
func TestCommandReference(t *testing.T) {
	text := reference(documented(t))
	if *update {
		if err := os.WriteFile(referenceFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got := mustRead(t, referenceFile); got != text {
		t.Error("docs/reference/commands.md is not up to date; run go generate ./cmd/commq and commit it")
	}
}

// reference is the text of the page.
func reference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Commands\n\nEvery command with its flags, as `commq help COMMAND` prints them. " +
		"`go generate ./cmd/commq` makes this page; `make man` makes\nmanual pages of the same text.\n\n")
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "- **%s**:", g.Title)
		for _, c := range root.Commands() {
			if c.GroupID == g.ID {
				fmt.Fprintf(&b, " [%s](#%s)", c.Name(), strings.ReplaceAll(c.CommandPath(), " ", "-"))
			}
		}
		b.WriteByte('\n')
	}
	b.WriteString("\nAll commands have these flags:\n")
	flagBlock(&b, root.PersistentFlags())
	for _, g := range root.Groups() {
		for _, c := range root.Commands() {
			if c.GroupID == g.ID {
				describe(&b, c)
			}
		}
	}
	return b.String()
}

// describe writes the chapter of a command and of those below it. Queries have a page of their own.
func describe(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", c.CommandPath(), markdown(c.Long))
	if !isParent(c) || c.Name() == "query" {
		fmt.Fprintf(b, "\n    %s\n", c.UseLine())
	}
	if c.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n\n%s\n", indented(c.Example))
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			flags.AddFlag(f)
		}
	})
	if flags.HasAvailableFlags() {
		b.WriteString("\nFlags:\n")
		flagBlock(b, flags)
	}
	b.WriteString(jsonLinks(strings.TrimPrefix(c.CommandPath(), "commq ")))
	if c.Name() == "query" {
		b.WriteString("\n[QUERIES.md](../QUERIES.md) describes the queries. All of them have these flags:\n")
		ask, _, _ := c.Find([]string{"calls"}) // which has no parameters
		flagBlock(b, ask.LocalFlags())
		return
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			describe(b, sub)
		}
	}
}

func flagBlock(b *strings.Builder, flags *pflag.FlagSet) {
	b.WriteByte('\n')
	for _, line := range strings.Split(strings.TrimRight(flags.FlagUsagesWrapped(mostHelp), "\n"), "\n") {
		b.WriteString(strings.TrimRight("  "+line, " ") + "\n")
	}
}

// indented makes a block of text code.
func indented(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = "    " + strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}

// markdown escapes what Markdown would read as marks, and leaves blocks that begin with blanks as code.
func markdown(text string) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, p := range paragraphs {
		if strings.HasPrefix(p, " ") {
			paragraphs[i] = indented(p)
			continue
		}
		paragraphs[i] = strings.NewReplacer("*", `\*`, "_", `\_`, "<", "&lt;", "[", `\[`).Replace(p)
	}
	return strings.Join(paragraphs, "\n\n")
}

// TestManPages makes the manual pages, of which every command has one.
func TestManPages(t *testing.T) {
	dir, date := *manFolder, ""
	if dir == "" {
		dir, date = t.TempDir(), "Sep 2001"
		t.Setenv("SOURCE_DATE_EPOCH", "1000000000")
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root := documented(t)
	header := &doc.GenManHeader{Section: "1", Source: "commq", Manual: "commq"} // of $SOURCE_DATE_EPOCH, else of now
	if err := doc.GenManTree(root, header, dir); err != nil {
		t.Fatal(err)
	}
	everyCommand(t, func(t *testing.T, c *cobra.Command) {
		if c.Name() == "help" || c.Name() == "completion" {
			return
		}
		text := mustRead(t, filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"))
		for _, want := range []string{".SH NAME", ".SH SYNOPSIS", ".SH EXAMPLE", date} {
			if !strings.Contains(text, want) {
				t.Errorf("no %s in\n%s", want, text)
			}
		}
	})
}
