package queries

import (
	"strings"
	"testing"
)

func TestUnordered(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT a\nFROM t\nORDER BY a DESC, t.b\n":        "SELECT a\nFROM t",
		"SELECT a\nFROM t\nORDER BY a LIMIT 3":            "SELECT a\nFROM t\nORDER BY a LIMIT 3",
		"SELECT a\nFROM (SELECT a FROM t\nORDER BY a) AS": "SELECT a\nFROM (SELECT a FROM t\nORDER BY a) AS",
		"SELECT a FROM t ORDER BY a":                      "SELECT a FROM t ORDER BY a",
	} {
		if got := unordered(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range all {
		text, err := q.SQL(nil)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(q.Name, "timeline") && unordered(text) == strings.TrimSpace(text) {
			t.Errorf("query %s keeps its order", q.Name)
		}
	}
}
