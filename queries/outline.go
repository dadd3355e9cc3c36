package queries

import (
	"fmt"
	"slices"
	"strings"
)

// Outline describes the queries in short, as Markdown: a list of them, with the facts that each needs, its parameters
// and what it answers, and a list of what the parameters do.
func Outline(all []*Query) string {
	var b strings.Builder
	var params [][2]string             // flag, and what it does
	askers := map[[2]string][]string{} // the queries that have the parameter
	for _, q := range all {
		fmt.Fprintf(&b, "- `%s`%s%s: %s\n", q.Name, q.neededFacts(), flags(q.Params), q.Summary)
		for _, p := range q.Params {
			param := [2]string{"--" + p.Name, fmt.Sprintf("(default %s): %s", p.shownDefault(), p.Doc)}
			if askers[param] == nil {
				params = append(params, param)
			}
			askers[param] = append(askers[param], q.Name)
		}
	}
	b.WriteString("\nTheir parameters:\n\n")
	for _, p := range params {
		fmt.Fprintf(&b, "- `%s` of %s %s\n", p[0], strings.Join(askers[p], ", "), p[1])
	}
	return b.String()
}

// neededFacts lists in brackets what a run must have for the query besides tables; "" if nothing.
func (q *Query) neededFacts() string {
	var needed []string
	for _, need := range q.Needs {
		if slices.Contains(FactNames(), need) {
			needed = append(needed, need)
		}
	}
	if needed == nil {
		return ""
	}
	return " [" + strings.Join(needed, ", ") + "]"
}

// flags lists the parameters with their values.
func flags(params []Param) string {
	var b strings.Builder
	for _, p := range params {
		fmt.Fprintf(&b, " `--%s %s`", p.Name, p.Domain())
	}
	return b.String()
}
