package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/run"
)

// note prints on stderr what the command did or left out, unless --quiet.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.stderr, "commq: %s\n", maskAndEscape(fmt.Sprintf(format, args...)))
	}
}

// summaries returns the stream for summaries: stderr, unless --quiet.
func (a *app) summaries() io.Writer {
	if a.quiet {
		return io.Discard
	}
	return a.log()
}

// warn prints a problem that is not fatal on stderr.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.stderr, "commq: %s\n", maskAndEscape(fmt.Sprintf(format, args...)))
}

// exactFlag adds --exact to a command that prints numbers for people.
func (a *app) exactFlag(c *cobra.Command) {
	c.Flags().BoolVar(&a.exact, "exact", false, "print numbers, names and columns in full, as programs get them")
}

// text is how tables look on stdout: as wide as the terminal, or as $COLUMNS says; in a pipe as wide as needed.
func (a *app) text() output.Text {
	return output.Text{Exact: a.exact, Width: widthOf(a.stdout)}
}

// widthOf returns the columns of lines written to w: $COLUMNS, or those of the terminal that w is; else 0.
func widthOf(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if f, ok := w.(interface{ Fd() uintptr }); ok && onTerminal(w) {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			return columns
		}
	}
	return 0
}

// duration is a time for people, or with --exact in seconds to the nanosecond.
func (a *app) duration(ns int64) string {
	if a.exact {
		return seconds(ns) + " s"
	}
	return units.Duration(ns)
}

// size is a number of bytes for people, or with --exact in full.
func (a *app) size(n int64) string {
	if a.exact {
		return counted(n, "byte")
	}
	return units.Bytes(n)
}

// allColumns is the width of lines that are not wrapped.
const allColumns = 1 << 20

// writeFacts writes facts below each other, each after an indent. Long values go on in the next line, below their
// beginning.
func writeFacts(w io.Writer, indent string, list []run.Fact, how output.Text) error {
	name, width := 0, how.Width
	for _, f := range list {
		name = max(name, len(f.Name))
	}
	if width == 0 || how.Exact {
		width = allColumns
	}
	below := strings.Repeat(" ", len(indent)+name+2)
	for _, f := range list {
		text := printable.Wrap(printable.Line(f.Value), below, width)
		if _, err := fmt.Fprintf(w, "%s%-*s  %s\n", indent, name, f.Name, text); err != nil {
			return err
		}
	}
	return nil
}

// prose writes lines of text to stdout. Those that are longer than the terminal is wide go on in the next line,
// indented by two columns more.
func (a *app) prose(text string) error {
	width := a.text().Width
	var b strings.Builder
	for line := range strings.Lines(text) {
		if width > 0 && utf8.RuneCountInString(strings.TrimRight(line, "\n")) > width {
			indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
			line = indent + printable.Wrap(line, indent+"  ", width) + "\n"
		}
		b.WriteString(line)
	}
	_, err := io.WriteString(a.out(), b.String())
	return err
}

// writeRows writes rows to stdout in a format.
func (a *app) writeRows(format string, rows queries.Rows) error {
	if format == "table" {
		return output.WriteText(a.screen(format), rows, a.text())
	}
	return output.Write(a.screen(format), format, rows)
}

// writeRowsTo writes rows to a file in a format.
func (a *app) writeRowsTo(w io.Writer, format string, rows queries.Rows) error {
	if format == "table" {
		return output.WriteText(w, rows, output.Text{Exact: a.exact})
	}
	return output.Write(w, format, rows)
}

func onTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// understands reports whether w is a terminal that moves its cursor and clears lines, unlike TERM=dumb.
func understands(w io.Writer) bool {
	t := os.Getenv("TERM")
	return t != "" && t != "dumb" && onTerminal(w)
}

// The colours of good, doubtful and bad outcomes.
const (
	green  = "32"
	yellow = "33"
	red    = "31"
)

// painter returns a function that colours words if w is a terminal with colours and $NO_COLOR is not set.
func painter(w io.Writer) func(colour, text string) string {
	if os.Getenv("NO_COLOR") != "" || !understands(w) {
		return func(_, text string) string { return text }
	}
	return func(colour, text string) string {
		word := strings.TrimRight(text, " ")
		return "\x1b[" + colour + "m" + word + "\x1b[0m" + text[len(word):]
	}
}
