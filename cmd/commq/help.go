package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/commq/commq/queries"
)

// Help is as wide as the terminal between these bounds, and leastHelp wide where it goes elsewhere.
const (
	leastHelp = 80
	mostHelp  = 100
)

func helpWidth(w io.Writer) int {
	if f, ok := w.(*os.File); ok && onTerminal(w) {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			return min(max(columns, leastHelp), mostHelp)
		}
	}
	return leastHelp
}

// printHelp prints what a command does, how it is called, examples, and its commands and flags. details, where there are some,
// stand before the flags, and own are flags that they tell of.
func printHelp(c *cobra.Command, details string, own map[string]bool) {
	width := helpWidth(c.OutOrStdout())
	var b strings.Builder
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	fmt.Fprintf(&b, "%s\n\nUsage:\n", reflow(about, width))
	if c.Runnable() {
		fmt.Fprintf(&b, "  %s\n", c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n", c.CommandPath())
	}
	if len(c.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAliases:\n  %s\n", c.NameAndAliases())
	}
	if c.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
	}
	if details != "" {
		fmt.Fprintf(&b, "\n%s\n", details)
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		commandLines(&b, c, width)
	}
	flagLines(&b, "Flags", c.LocalFlags(), own, width)
	flagLines(&b, "Global flags", c.InheritedFlags(), own, width)
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%s COMMAND --help says more about a command.\n", c.CommandPath())
	}
	fmt.Fprint(c.OutOrStdout(), b.String())
}

// commandLines lists the commands below one.
func commandLines(b *strings.Builder, c *cobra.Command, width int) {
	name := 0
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			name = max(name, len(sub.Name()))
		}
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			fmt.Fprintf(b, "  %-*s  %s\n", name, sub.Name(), queries.Wrap(sub.Short, strings.Repeat(" ", name+4), width))
		}
	}
}

// flagLines lists flags but those left out.
func flagLines(b *strings.Builder, title string, all *pflag.FlagSet, leftOut map[string]bool, width int) {
	shown := pflag.NewFlagSet("", pflag.ContinueOnError)
	all.VisitAll(func(f *pflag.Flag) {
		if !leftOut[f.Name] {
			shown.AddFlag(f)
		}
	})
	if !shown.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, line := range strings.Split(strings.TrimRight(shown.FlagUsagesWrapped(width), "\n"), "\n") {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// reflow wraps paragraphs; lines that begin with a blank stay as they are.
func reflow(text string, width int) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") {
			paragraphs[i] = queries.Wrap(p, "", width)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// exampleLines are command lines as help shows them: those that are too long go on behind a backslash.
func exampleLines(lines []string) string {
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		for first := "  "; ; first = "      " {
			at := len(line)
			if len(first)+len(line) > leastHelp {
				at = strings.LastIndex(line[:leastHelp-len(first)-2], " --")
			}
			if at <= 0 || at == len(line) {
				b.WriteString(first + line)
				break
			}
			b.WriteString(first + line[:at] + " \\\n")
			line = line[at+1:]
		}
	}
	return b.String()
}
