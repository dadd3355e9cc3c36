package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/commq/commq/internal/printable"
)

// Help is as wide as the terminal, or as $COLUMNS says, within these bounds, and leastHelp wide in a file.
const (
	leastHelp = 80
	mostHelp  = 100
)

func helpWidth(w io.Writer) int { return min(max(widthOf(w), leastHelp), mostHelp) }

// printHelp prints a command's description, usage, examples, subcommands and flags. details come before the flags, and
// the flags in own are left out because details describe them.
func (a *app) printHelp(c *cobra.Command, details string, own map[string]bool) {
	width := helpWidth(c.OutOrStdout())
	var b strings.Builder
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	fmt.Fprintf(&b, "%s\n\nUsage:\n", reflow(about, width))
	if !isParent(c) {
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
		commandLines(&b, c, width)
	}
	flagLines(&b, "Flags", c.LocalFlags(), own, width)
	flagLines(&b, "Global flags", c.InheritedFlags(), own, width)
	if c.HasAvailableSubCommands() {
		last := c.CommandPath() + " COMMAND --help describes a command"
		if !c.HasParent() {
			last = "commq help COMMAND describes a command; commq completion prints a script for the tab key"
		}
		fmt.Fprintf(&b, "\n%s.\n", printable.Wrap(last, "", width-1))
	}
	fmt.Fprint(c.OutOrStdout(), b.String())
}

// commandLines lists the commands below one, by groups if it has any.
func commandLines(b *strings.Builder, c *cobra.Command, width int) {
	groups := c.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Commands"}}
	}
	name := 0
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			name = max(name, len(sub.Name()))
		}
	}
	for _, g := range groups {
		fmt.Fprintf(b, "\n%s:\n", g.Title)
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.GroupID == g.ID {
				fmt.Fprintf(b, "  %-*s  %s\n", name, sub.Name(),
					printable.Wrap(sub.Short, strings.Repeat(" ", name+4), width))
			}
		}
	}
}

// noDefault makes the help of a flag show no default: its value stands for none.
func noDefault(f *pflag.FlagSet, name string) { f.Lookup(name).DefValue = "0" }

// flagLines lists flags except those left out.
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

// reflow wraps paragraphs; those that begin with a blank stay as they are.
func reflow(text string, width int) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") {
			paragraphs[i] = printable.Wrap(p, "", width)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// exampleLines formats command lines for help: lines that are too long continue after a backslash.
func exampleLines(lines []string) string {
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		for first := "  "; ; first = "      " {
			end := len(line)
			if len(first)+len(line) > leastHelp {
				end = strings.LastIndex(line[:leastHelp-len(first)-2], " --")
			}
			if end <= 0 || end == len(line) {
				b.WriteString(first + line)
				break
			}
			b.WriteString(first + line[:end] + " \\\n")
			line = line[end+1:]
		}
	}
	return b.String()
}
