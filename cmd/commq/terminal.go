package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/commq/commq/internal/printable"
)

// note tells the user on stderr what was done or left out, unless --quiet.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.stderr, "commq: %s\n", printable.Text(fmt.Sprintf(format, args...)))
	}
}

// summaries is where summaries go: stderr, unless --quiet.
func (a *app) summaries() io.Writer {
	if a.quiet {
		return io.Discard
	}
	return a.stderr
}

// warn tells the user on stderr what is wrong but keeps nothing from being done.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.stderr, "commq: %s\n", printable.Text(fmt.Sprintf(format, args...)))
}

func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// understands says whether w is a terminal that moves its cursor and clears lines: not one with TERM=dumb.
func understands(w io.Writer) bool {
	t := os.Getenv("TERM")
	return t != "" && t != "dumb" && onTerminal(w)
}

// The colours of words that say how good something is.
const (
	green  = "32"
	yellow = "33"
	red    = "31"
)

// painter gives words a colour where w is a terminal that has colours and the user has not said no to them with NO_COLOR.
func painter(w io.Writer) func(colour, text string) string {
	if os.Getenv("NO_COLOR") != "" || !understands(w) {
		return func(_, text string) string { return text }
	}
	return func(colour, text string) string {
		word := strings.TrimRight(text, " ")
		return "\x1b[" + colour + "m" + word + "\x1b[0m" + text[len(word):]
	}
}
