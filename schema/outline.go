package schema

import (
	"fmt"
	"strings"
)

// Outline describes every table in short, as Markdown: what a row is, and for each column its unit, its meaning in a
// few words and when it is null.
func Outline() string {
	var b strings.Builder
	for _, t := range Tables() {
		derived := ""
		if t.Derived {
			derived = " (derived)"
		}
		fmt.Fprintf(&b, "### %s%s\n\n%s\n\n", t.Name, derived, t.Doc)
		for _, c := range t.Columns {
			null, unit := "", ""
			if c.Nullable {
				null = "?"
			}
			if c.Unit != "" && c.Unit != "1" {
				unit = " " + c.Unit
			}
			fmt.Fprintf(&b, "- `%s`%s%s: %s\n", c.Name, null, unit, gist(c.Doc))
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// gist returns the first clause of a column's description and those that say when it is null.
func gist(doc string) string {
	var kept []string
	for i, sentence := range strings.Split(strings.TrimSuffix(doc, "."), ". ") {
		for j, clause := range strings.Split(sentence, "; ") {
			if i+j == 0 || strings.Contains(strings.ToLower(clause), "null") {
				kept = append(kept, clause)
			}
		}
	}
	return strings.Join(kept, "; ")
}
