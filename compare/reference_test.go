package compare

import (
	"math"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/commq/commq/internal/keyed"
)

func TestReferenceIsUpToDate(t *testing.T) {
	got, err := os.ReadFile("../docs/reference/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != Markdown() {
		t.Error("docs/reference/rules.md is not up to date; run go generate ./compare and commit it")
	}
}

// Each key is described, the example of all of them can be read, and a default that is a value is what leaving the key
// out means.
func TestKeysAreDescribed(t *testing.T) {
	text := exampleRules()
	read, err := ReadRules("example.yaml", strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(read.Rules) != len(kinds) || read.Baseline == "" {
		t.Errorf("%+v", read)
	}
	for of, keys := range keysOfKinds() {
		for i, k := range keys {
			isKind := of != "every" && i == 0
			if k.Means == "" || k.Example == "" || k.Values() == "" || !isKind && k.Required != (k.Default == "") {
				t.Errorf("%s lacks its meaning, example, values or default: %+v", k.Name, k.Doc)
			}
			value, ok := strings.CutPrefix(k.Default, "`")
			if !ok {
				continue
			}
			line := regexp.MustCompile(`(?m)^    ` + k.Name + `: .*\n`)
			with := line.ReplaceAllString(text, "    "+k.Name+": "+strings.Trim(value, "`")+"\n")
			if !reflect.DeepEqual(ruleOf(t, with, of), ruleOf(t, line.ReplaceAllString(text, ""), of)) {
				t.Errorf("the default of %s is not %s", k.Name, k.Default)
			}
		}
	}
}

func ruleOf(t *testing.T, text, kind string) Rule {
	t.Helper()
	read, err := ReadRules("example.yaml", strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, r := range read.Rules {
		if r.Kind == kind {
			r.Line = 0
			if math.IsNaN(r.Percent) {
				r.Percent = 0 // so that equal rules are equal
			}
			return r
		}
	}
	t.Fatalf("no rule of the kind %s", kind)
	return Rule{}
}

// The measures of the reference are those of the query, with its units.
func TestMeasuresAreThoseOfTheQuery(t *testing.T) {
	text, err := os.ReadFile("../queries/sql/measures.sql")
	if err != nil {
		t.Fatal(err)
	}
	// The values of a run, their names and units, and those of parts: of sizes, calls and places.
	_, rest, _ := strings.Cut(string(text), "\nwhole AS (")
	values, rest, _ := strings.Cut(rest, "\nnamed AS (")
	named, rest, _ := strings.Cut(rest, "\nitemized AS (")
	itemized, _, _ := strings.Cut(rest, "\nmeasured AS (")
	ofAll := func(name string) bool {
		return strings.HasPrefix(name, "site") ||
			regexp.MustCompile(`r\.record = 'all'.* AS `+name+`\b`).MatchString(values)
	}
	described := map[string]*measure{}
	for i := range measures {
		described[measures[i].name] = &measures[i]
	}
	delete(described, Simulated) // commq diff adds it
	parts := map[string]bool{}
	for _, m := range regexp.MustCompile(`'([a-z_]+)'`).FindAllStringSubmatch(itemized, -1) {
		parts[m[1]] = true
	}
	rows := regexp.MustCompile(`\('([a-z_]+)', '(1|bytes|ns|-)', (TRUE|FALSE)\)`).FindAllStringSubmatch(named, -1)
	for _, m := range regexp.MustCompile(`\('([a-z_]+)', '(1|bytes)', 0\)`).FindAllStringSubmatch(itemized, -1) {
		rows = append(rows, append(m, "TRUE"))
	}
	found := 0
	for _, m := range rows {
		found++
		d := described[m[1]]
		if d == nil {
			t.Errorf("the query has the measure %s, which is not described", m[1])
			continue
		}
		needs := ""
		if ofAll(m[1]) {
			needs = recordAll
		}
		if m[1] == "payloads" {
			needs = "`--hash`"
		}
		if d.unit != m[2] || d.exact() != (m[3] == "TRUE") || d.needs != needs || (d.items != "") != parts[m[1]] {
			t.Errorf("%s: described as %+v, the query has %q, parts %v", m[1], *d, m[1:], parts[m[1]])
		}
	}
	if found != len(described) {
		t.Errorf("the query has %d measures, %d are described", found, len(described))
	}
}

// A value that no key takes has an error that says what is wanted.
func TestValuesOfKeys(t *testing.T) {
	for _, k := range append((&Rules{}).keys(), keyed.Key{Name: "n", Set: keyed.Text(new(string))}) {
		if v := k.Values(); !strings.HasPrefix(v, "a ") {
			t.Errorf("%s takes %q", k.Name, v)
		}
	}
}
