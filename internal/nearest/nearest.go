// Package nearest finds the name that somebody probably meant, for messages about unknown names.
package nearest

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// leastPrefix is the least number of letters with which the beginning of a name stands for it.
const leastPrefix = 3

// Name returns the known name nearest to a word, or "" if none is near. A name is near if at most two letters differ
// (inserted, removed or exchanged), or a third of the word, but not more than half of the longer of the two; or if the
// word is its beginning. A part of a name as a whole, as bytes of message_bytes, is as near as one letter. Upper and
// lower case count as the same.
func Name(word string, known []string) string {
	word = strings.ToLower(word)
	best, least := "", -1
	for _, name := range known {
		lower := strings.ToLower(name)
		d := levenshtein.ComputeDistance(word, lower)
		near := d <= max(2, len(word)/3) && 2*d <= max(len(word), len(lower))
		if len(word) >= leastPrefix && slices.Contains(strings.FieldsFunc(lower, separates), word) {
			d, near = min(d, 1), true
		}
		if !near && (len(word) < leastPrefix || !strings.HasPrefix(lower, word)) {
			continue
		}
		if least < 0 || d < least {
			best, least = name, d
		}
	}
	return best
}

// separates reports whether a character stands between the parts of a name.
func separates(r rune) bool { return r == '_' || r == '-' }

// Hint is what follows a message about an unknown word: "; did you mean density?", or "" if no known name is near.
func Hint(word string, known []string) string {
	if name := Name(word, known); name != "" {
		return "; did you mean " + name + "?"
	}
	return ""
}

// HintOr is Hint with other words in place of "".
func HintOr(word string, known []string, other string) string {
	if hint := Hint(word, known); hint != "" {
		return hint
	}
	return "; " + other
}
