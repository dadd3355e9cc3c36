package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/internal/nearest"
	"github.com/commq/commq/schema"
)

// sizeNames are the parts of messages, as the query measures names them.
var sizeNames = []string{"<= 16", "<= 64", "<= 256", "<= 1 Ki", "<= 4 Ki", "<= 16 Ki", "<= 64 Ki", "<= 256 Ki",
	"<= 1 Mi", "<= 4 Mi", "<= 16 Mi", "<= 64 Mi", "> 64 Mi"}

// wildcards are the characters with a meaning in patterns.
const wildcards = `*?[\`

// unknownPart says why no run can have the part that a key or pattern names; it is empty if one can. Rules need it, as
// a part that a run does not have counts 0, and a misspelt one would pass. A pattern may be of several measures.
func unknownPart(pattern string) (reason string) {
	whole, part, hasPart := strings.Cut(pattern, "/")
	if !hasPart {
		return ""
	}
	for i := range measures {
		if !matched(whole, measures[i].name) {
			continue
		}
		why := measures[i].unknownPart(part)
		if why == "" {
			return ""
		}
		if reason == "" {
			reason = why
		}
	}
	return reason
}

// unknownMeasure says why no run can have the measure that a key or pattern names; it is empty if one can.
func unknownMeasure(key string) string {
	whole, _, _ := strings.Cut(key, "/")
	var names []string
	for i := range measures {
		if matched(whole, measures[i].name) {
			return ""
		}
		names = append(names, measures[i].name)
	}
	return fmt.Sprintf("no measure %q%s", whole,
		nearest.HintOr(whole, names, "docs/reference/rules.md has all measures"))
}

// unknownPart says why no run can have a part of the measure.
func (m *measure) unknownPart(part string) string {
	kind, example, _ := strings.Cut(m.items, ": ")
	example = strings.Trim(example, "`")
	var names []string
	switch kind {
	case "":
		return m.name + " has no parts"
	case "sizes":
		names = sizeNames
	case "calls":
		names = callNames(m.name)
	case "places":
		call, _, hasPlace := strings.Cut(part, " in ")
		switch {
		case strings.ContainsAny(call, wildcards):
			return ""
		case !hasPlace:
			return fmt.Sprintf("%s has no part %q; its parts are places, as %s", m.name, part, example)
		}
		part, names = call, callNames(m.name)
	}
	if slices.ContainsFunc(names, func(name string) bool { return matched(part, name) }) {
		return ""
	}
	return fmt.Sprintf("%s has no part %q%s", m.name, part,
		nearest.HintOr(part, names, fmt.Sprintf("its parts are %s, as %s", kind, example)))
}

// callNames returns the MPI functions that a measure counts.
func callNames(measure string) (names []string) {
	for id := 1; id < len(schema.Calls); id++ {
		c := &schema.Calls[id]
		if !strings.HasPrefix(measure, "collective") || c.Class == schema.ClassCollective ||
			c.Facts&schema.FactStarts != 0 { // a start of a persistent collective
			names = append(names, c.Name)
		}
	}
	return names
}
