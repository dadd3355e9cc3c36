package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/internal/keyed"
)

//go:generate go run ./internal/gendocs ../docs/reference/rules.md

// Markdown returns the reference of the rules and measures of commq check.
func Markdown() string {
	var b strings.Builder
	b.WriteString("# Rules and measures of commq check\n\n`commq check` reads its rules from a YAML file, `commq-check.yaml` " +
		"or the one that `--rules` names. This file has a rule of each\nkind. [How rules are judged](../method/check.md); the " +
		"[tutorial](../tutorials/ci-check.md). `go generate ./compare` makes this page.\n\n" + indented(exampleRules()) +
		"\n## The file\n\n" + keyed.Table((&Rules{}).keys()))
	keys := keysOfKinds()
	b.WriteString("\n## A rule\n\nA rule has a name, one [kind](#kinds-of-rules), the keys of that kind, and `ranks` if it is not for all " +
		"runs. A key that\nis unknown, is there twice or belongs to another kind is an error with its line.\n\n" + keyed.Table(keys["every"]))
	b.WriteString("\n## Kinds of rules\n\n| kind | when it passes | values |\n|---|---|---|\n")
	for _, kind := range kinds {
		k := keys[kind][0]
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Name, k.Means, k.Values())
	}
	for _, kind := range kinds {
		if more := keys[kind][1:]; len(more) > 0 {
			fmt.Fprintf(&b, "\n### With %s\n\n%s", kind, keyed.Table(more))
		}
	}
	b.WriteString("\n## Measures\n\n`commq query measures --run RUN` prints their values. A rule names a measure, or with a slash a part of it: " +
		"`messages`,\n`calls/MPI_Send`, `\"messages/<= 1 Ki\"`. `*` and `?` stand for anything. Exact measures depend on the program alone; " +
		"times\ndiffer from run to run. A part that a run does not have counts 0; one that no run can have, as a " +
		"misspelt call,\n" +
		"is an error.\n\n" +
		"| measure | meaning | unit | | parts, for example | captured with |\n|---|---|---|---|---|---|\n")
	for i := range measures {
		m, exact := &measures[i], "a time"
		if m.exact() {
			exact = "exact"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", m.name, m.means, m.unit, exact, m.items, m.needs)
	}
	return b.String()
}

// keysOfKinds returns the keys of a rule by the kind that they belong to, "every" for those of all kinds.
func keysOfKinds() map[string][]keyed.Key {
	sorted := map[string][]keyed.Key{}
	for i, k := range new(Rule).keys() {
		k = new(Rule).keys()[i] // a rule can have one kind
		of := "every"
		if slices.Contains(kinds, k.Name) {
			of = k.Name
		}
		for kind, names := range owned {
			if slices.Contains(names, k.Name) {
				of = kind
			}
		}
		sorted[of] = append(sorted[of], k)
	}
	return sorted
}

// exampleNames are names for a rule of each kind.
var exampleNames = [...]string{"no more messages", "the same payloads", "two to six neighbours", "not slower",
	"messages per rank stay constant", "no collective by hand", "tags up to 100", "messages as before at any size", "nothing costs 2 %"}

// exampleRules returns a file with a rule of each kind.
func exampleRules() string {
	var b strings.Builder
	for _, k := range (&Rules{}).keys() {
		if k.Name != "rules" {
			b.WriteString(keyed.Block([]keyed.Key{k}, ""))
		}
	}
	b.WriteString("rules:\n")
	keys := keysOfKinds()
	for i, kind := range kinds {
		fmt.Fprintf(&b, "  - name: %s\n%s", exampleNames[i], keyed.Block(keys[kind], "    "))
	}
	return b.String()
}

func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n    ") + "\n"
}
