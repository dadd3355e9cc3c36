// Package printable makes text that comes from programs and files safe to print: escape codes in the name of a program, a
// communicator or a file would drive the reader's terminal.
package printable

import (
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is s with what cannot be seen written as Go writes it (\x1b, \u202e): control characters but line breaks and
// tabs, the signs that turn the direction of writing, and bytes that are not UTF-8.
func Text(s string) string {
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

// Line is Text for a place where a line break or tab would break what is around it: a comment, a cell.
func Line(s string) string { return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Text(s)) }

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

// visible says whether a rune of so many bytes may go to a terminal.
func visible(r rune, bytes int) bool {
	return r == '\n' || r == '\t' || unicode.IsPrint(r) && (r != utf8.RuneError || bytes > 1)
}

// Writer writes Text of what is written to it. A character may come in several pieces.
func Writer(w io.Writer) io.Writer { return &writer{w: w} }

type writer struct {
	w    io.Writer
	rest []byte // of a character that is not whole yet
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
	text := Text(string(all[:whole]))
	p.rest = append([]byte(nil), all[whole:]...)
	if _, err := io.WriteString(p.w, text); err != nil {
		return 0, err
	}
	return len(b), nil
}
