// Package printable is the door for text that comes from programs and files: names of communicators, programs,
// functions and files, rows of SQL, messages of others. It has a function for each target, and what goes there passes
// it:
//
//	terminals, logs      Text, Line (one line), Writer
//	Markdown             Markdown
//	CSV                  NewCSV
//	workflow commands    Command, CommandProperty
//
// HTML goes through html/template (queries/report), JUnit and SARIF through internal/junit and internal/sarif.
// cmd/commq/doors_test.go finds what goes around. Wrap breaks text into lines.
package printable

import (
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s with invisible characters escaped as in Go (\x1b, \u202e): control characters except line breaks and
// tabs, marks of writing direction, and bytes that are not UTF-8. What a log of continuous integration would take for a
// command (::add-mask::x, ##[group]) is shown with an escape too.
func Text(s string) string { return neutral(escaped(s)) }

// escaped returns s with invisible characters escaped.
func escaped(s string) string {
	if clean(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if visible(r, n) {
			b.WriteString(s[:n])
		} else {
			quoted := strconv.Quote(s[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[n:]
	}
	return b.String()
}

// Line is like Text, for places where a line break or tab would break the layout, such as a comment or a cell.
func Line(s string) string { return neutral(oneLine.Replace(escaped(s))) }

var oneLine = strings.NewReplacer("\n", `\n`, "\t", `\t`)

func clean(s string) bool {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !visible(r, n) {
			return false
		}
		i += n
	}
	return true
}

// visible reports whether a rune of this many bytes may go to a terminal.
func visible(r rune, bytes int) bool {
	return r == '\n' || r == '\t' || unicode.IsPrint(r) && (r != utf8.RuneError || bytes > 1)
}

// Writer writes Text of everything written to it. A character may arrive in several pieces.
func Writer(w io.Writer) io.Writer { return &writer{w: w} }

type writer struct {
	w      io.Writer
	rest   []byte // of an incomplete character
	inside bool   // of a line that has more than blanks
	open   string // the last that was written, if a command may go on behind it: a : that begins a line, #, ##word
}

// opened matches what begins a command of a log and may go on in the next write.
var opened = regexp.MustCompile(`(?:##[A-Za-z]*|#)$`)

// continued returns a text with an escape for the character that completes a command begun in the last write.
func (p *writer) continued(text string) string {
	if p.open == ":" && strings.HasPrefix(text, ":") {
		return `\x3a` + text[1:]
	}
	if at := marked.FindStringIndex(p.open + text); at != nil && at[0] < len(p.open) {
		end := at[1] - len(p.open)
		return text[:end-1] + `\x5b` + text[end:]
	}
	return text
}

// remember keeps what the next write needs of the line that text ends in.
func (p *writer) remember(text string) {
	if text == "" {
		return
	}
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text, p.inside, p.open = text[i+1:], false, ""
	}
	seen := strings.TrimLeft(text, " \t")
	p.open = opened.FindString(p.open + text)
	if !p.inside && seen == ":" {
		p.open = ":"
	}
	p.inside = p.inside || seen != ""
}

func (p *writer) Write(b []byte) (int, error) {
	all := append(p.rest, b...)
	whole := len(all)
	for i := max(0, len(all)-utf8.UTFMax+1); i < len(all); i++ {
		if utf8.RuneStart(all[i]) && !utf8.FullRune(all[i:]) {
			whole = i
			break
		}
	}
	text := p.continued(escaped(string(all[:whole])))
	if p.inside { // what follows does not begin a line
		head, tail, found := strings.Cut(text, "\n")
		if found {
			head += "\n"
		}
		text = marked.ReplaceAllString(head, `\x23#$1[`) + neutral(tail)
	} else {
		text = neutral(text)
	}
	p.remember(text)
	p.rest = append([]byte(nil), all[whole:]...)
	if _, err := io.WriteString(p.w, text); err != nil {
		return 0, err
	}
	return len(b), nil
}
