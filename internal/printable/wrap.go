package printable

import (
	"strings"
	"unicode/utf8"
)

// leastWidth is the least width of wrapped text, however narrow the terminal.
const leastWidth = 20

// Wrap breaks text into lines of at most this number of columns. All lines but the first begin with indent; the first
// follows text of the same width. A word longer than a line gets a line of its own.
func Wrap(text, indent string, columns int) string {
	var b strings.Builder
	room, width := max(columns-len(indent), leastWidth), 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case width+1+n > room:
			b.WriteString("\n" + indent)
			width = 0
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += n
	}
	return b.String()
}
