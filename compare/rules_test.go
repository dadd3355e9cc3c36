package compare

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/internal/mutate"
)

const goodRules = `commq_check: 1
baseline: b.yaml
rules:
  - name: n
    no_more: [messages, "calls/*"]
  - name: s
    scaling: bytes-per-rank
    exponent_at_most: -0.4
    points: 4
  - name: t
    time: end_ns
    at_most_percent_more: 12.5
    ranks: [4, 8]
  - name: b
    bound: partners_max
    at_most: 6
`

func TestReadRules(t *testing.T) {
	r, err := ReadRules("c.yaml", strings.NewReader(goodRules))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rules) != 4 || r.Baseline != "b.yaml" {
		t.Fatalf("%+v", r)
	}
	n, s, tm, b := r.Rules[0], r.Rules[1], r.Rules[2], r.Rules[3]
	if n.Kind != NoMore || !n.matches("calls/MPI_Send") || n.matches("calls") || n.matches("message_bytes") ||
		n.Line != 4 {
		t.Errorf("%+v", n)
	}
	if s.Kind != Scaling || *s.ExponentAtMost != -0.4 || s.ExponentAtLeast != nil || s.Points != 4 {
		t.Errorf("%+v", s)
	}
	if tm.Kind != Time || tm.Percent != 12.5 || tm.Alpha != 0.01 || tm.Runs != 5 || !tm.isFor(8) || tm.isFor(5) {
		t.Errorf("%+v", tm)
	}
	if b.Kind != Bound || *b.AtMost != 6 || b.AtLeast != nil || !b.isFor(5) {
		t.Errorf("%+v", b)
	}
}

func TestInvalidRulesAreRejected(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{goodRules, " \n", "rules c.yaml: empty"},
		{"commq_check: 1", "commq_check: 3", `rules c.yaml:1: commq_check is "3"; want`},
		{goodRules, "commq_check: 1\nrules: []\n", "rules c.yaml:2: rules is an empty list; want a list of rules"},
		{"baseline:", "base_line:", `rules c.yaml:2: unknown key "base_line"; did you mean baseline?`},
		{"    no_more:", "    no_less:", `rules c.yaml:5: unknown key "no_less" in rules[0]; there are name, no_more, same, bound, time,`},
		{`    no_more: [messages, "calls/*"]`, "    ranks: [4]",
			"rules c.yaml:4: rules[0] says nothing to check; add one of no_more, same,"},
		{`"calls/*"]`, `"calls/*"]` + "\n    same: [calls]",
			"rules c.yaml:6: rules[0].same: the rule has no_more already; make a rule of each"},
		{`[messages, "calls/*"]`, "[]", "rules c.yaml:5: rules[0].no_more is an empty list; want a list of measures"},
		{`"calls/*"`, `"calls/["`, `rules c.yaml:5: rules[0].no_more[1] is "calls/["; want a name, or a pattern`},
		{"    exponent_at_most: -0.4\n", "", "rules c.yaml:6: rules[1] has no bound; add exponent_at_most or exponent_at_least"},
		{"exponent_at_most: -0.4", "exponent_at_most: steep",
			`rules c.yaml:8: rules[1].exponent_at_most is "steep"; want an exponent`},
		{"    at_most_percent_more: 12.5\n", "", "rules c.yaml:10: rules[2].at_most_percent_more is missing"},
		{"at_most_percent_more: 12.5", "at_most_percent_more: 12.5\n    runs: 4",
			"rules c.yaml:10: rules[2]: 4 runs of each side cannot have a p-value below 0.01 (the least is 0.029)"},
		{"at_most_percent_more: 12.5", "at_most_percent_more: 12.5\n    runs: 3\n    alpha: 0.1",
			"rules c.yaml:10: rules[2]: 3 runs of each side cannot have a p-value below 0.1 (the least is 0.1)"},
		{"    at_most: 6", "    at_most: 6\n    alpha: 0.1",
			"rules c.yaml:14: rules[3].alpha is of a rule with time; this one has bound"},
		{"    at_most: 6", "    at_most: 6\n    at_least: 7",
			"rules c.yaml:14: rules[3].at_most is 6 and at_least 7: nothing is between"},
		{"    points: 4", "    exponent_at_least: -0.3",
			"rules c.yaml:6: rules[1].exponent_at_most is -0.4 and exponent_at_least -0.3: nothing is between"},
		{"partners_max", "partner_max", `rules c.yaml:15: rules[3].bound: no measure "partner_max"; did you mean partners_max?`},
		{"end_ns", "simulated_ns", "rules c.yaml:11: rules[2].time: simulated_ns is a measure of commq diff --machine alone"},
		{"end_ns", "elapsed", `rules c.yaml:11: rules[2].time: no measure "elapsed"; docs/reference/rules.md has all measures`},
		{"    at_most: 6\n", "", "rules c.yaml:14: rules[3] has no bound; add at_most or at_least"},
		{"name: b", "name: n", `rules c.yaml:14: rules[3]: the rule of line 4 is called "n" too`},
	} {
		text := strings.Replace(goodRules, c.from, c.to, 1)
		if text == goodRules {
			t.Errorf("%q is not there", c.from)
		}
		if _, err := ReadRules("c.yaml", strings.NewReader(text)); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v\nwant %s", c.to, err, c.want)
		}
	}
}

// TestPartsThatNoRunHasAreRejected: a part without a value counts 0, so a misspelt one would pass.
func TestPartsThatNoRunHasAreRejected(t *testing.T) {
	for measure, want := range map[string]string{
		"calls/MPI_Send": "", "calls/MPI_Is*": "", "calls/*": "", "c*/MPI_Send": "", "collective_bytes/MPI_Bcast": "",
		"collective_calls/MPI_Start": "", "messages/<= 1 Ki": "", "messages/> *": "",
		"site_calls/MPI_Send in f (a.c)": "", "site_calls/*f (a.c)": "", "sites/MPI_S*d in f (a.c)": "",
		"calls/MPI_Sned":                 `calls has no part "MPI_Sned"; did you mean MPI_Send?`,
		"c*/MPI_Sned":                    `calls has no part "MPI_Sned"; did you mean MPI_Send?`,
		"calls/MPI_Xs*":                  `calls has no part "MPI_Xs*"; its parts are calls, as calls/MPI_Send`,
		"collective_calls/MPI_Bcats":     `did you mean MPI_Bcast?`,
		"collective_bytes/MPI_Send":      `collective_bytes has no part "MPI_Send"`,
		"messages/<= 1Ki":                `messages has no part "<= 1Ki"; did you mean <= 1 Ki?`,
		"site_bytes/MPI_Sned in f (a.c)": `site_bytes has no part "MPI_Sned"; did you mean MPI_Send?`,
		"sites/f":                        `has no part "f"; its parts are places, as sites/MPI_Send in exchange (halo.c)`,
		"pairs/MPI_Send":                 `pairs has no parts`,
	} {
		for _, rule := range []string{"bound: %q\n    at_most: 0", "no_more: [%q]", "same: [messages, %q]"} {
			text := fmt.Sprintf("commq_check: 1\nrules:\n  - name: n\n    "+rule+"\n", measure)
			_, err := ReadRules("c.yaml", strings.NewReader(text))
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) ||
				!strings.HasPrefix(err.Error(), "rules c.yaml:4: rules[0].")) {
				t.Errorf("%s: %v, want %q", text, err, want)
			}
		}
	}
}

// TestSizeNames compares the names of sizes with those of the query measures.
func TestSizeNames(t *testing.T) {
	sql, err := os.ReadFile("../queries/sql/measures.sql")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?:THEN|ELSE) '([<>][^']*)'`).FindAllStringSubmatch(string(sql), -1) {
		names = append(names, m[1])
	}
	if !slices.Equal(names, sizeNames) {
		t.Errorf("the query names %q, parts.go %q", names, sizeNames)
	}
}

func FuzzReadRules(f *testing.F) {
	f.Add([]byte(goodRules))
	f.Add([]byte("commq_check: 1\nrules:\n - {name: x, no_rows: SELECT 1}\n - {name: y, no_manual: [all]}\n - {name: z, equations: [messages]}\n"))
	f.Fuzz(fuzzReadRules)
}

func fuzzReadRules(t *testing.T, data []byte) {
	r, err := ReadRules("c.yaml", bytes.NewReader(data))
	if err != nil {
		return
	}
	// Without a run and without a baseline no rule passes.
	for _, result := range Check(r, &Evidence{}) {
		if result.Status != Undecided {
			t.Fatalf("%+v", result)
		}
	}
	for i := range r.Rules {
		if r.Rules[i].Name == "" || r.Rules[i].Kind == "" || r.Rules[i].Line == 0 {
			t.Fatalf("%+v", r.Rules[i])
		}
	}
}

// The same with good rules, their values changed.
func FuzzReadRulesEdited(f *testing.F) {
	f.Add([]byte{0, 9, 1, 8, 1, 0, 4, 7})
	f.Fuzz(func(t *testing.T, edits []byte) { fuzzReadRules(t, []byte(mutate.Text(goodRules, edits))) })
}
