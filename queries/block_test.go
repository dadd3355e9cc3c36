package queries

import (
	"fmt"
	"strings"
	"testing"
)

// blockQuery is a query with the blocks of its text.
func blockQuery(text string) string {
	return "-- summary: S.\n-- source: S\n-- needs: messages, events\n-- param kind choice a|b = a: K.\n" +
		"-- column n BIGINT 1: N.\n-- order: n\n-- cost: C\n" + text
}

// TestBlocks leaves blocks out by the values of parameters, and those of parameters and values that a query lacks.
func TestBlocks(t *testing.T) {
	var included sourceLines
	for i, line := range strings.Split("{{only other c}}\nJOIN nothing\n{{end}}\n{{unless other c}}\nORDER BY n\n{{end}}\n"+
		"{{only kind c}}\nJOIN nothing\n{{end}}\n{{unless kind c}}\nLIMIT 1\n{{end}}\n-- end", "\n") {
		included.add(line, place{"sql/include/last.sql", i + 1})
	}
	q, err := parseFile("test", "sql/test.sql", blockQuery("SELECT COUNT(*) AS n\n{{only kind b}}\nFROM events\n{{end}}\n  {{unless kind b}}\n"+
		"FROM messages\nWHERE 'x' <> {{kind}}\n  {{end}}\n{{include last}}"), func(string) (source, error) { return included.source(), nil })
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]string{
		"a": "SELECT COUNT(*) AS n\nFROM messages\nWHERE 'x' <> 'a'\nORDER BY n\nLIMIT 1\n-- end",
		"b": "SELECT COUNT(*) AS n\nFROM events\nORDER BY n\nLIMIT 1\n-- end",
	} {
		sql, err := q.filled(map[string]string{"kind": kind})
		if err != nil {
			t.Fatal(err)
		}
		if sql.text != want {
			t.Errorf("%s:\n%s\nwant\n%s", kind, sql.text, want)
		}
		if last := sql.places[len(sql.places)-1]; last != (place{"sql/include/last.sql", 13}) || len(sql.places) != strings.Count(sql.text, "\n")+1 {
			t.Errorf("%s: %d places, the last line is %v", kind, len(sql.places), last)
		}
	}
}

// TestWrongBlocks refuses blocks that do not begin or end, or are within another.
func TestWrongBlocks(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT 1 AS n\n{{unless kind a}}\nFROM messages":                                "{{unless kind a}} does not end",
		"SELECT 1 AS n\n{{end}}":                                                         "sql/test.sql: line 9: {{end}} without a block",
		"SELECT 1 AS n\n{{only kind a}}\n{{only kind b}}\nFROM events\n{{end}}\n{{end}}": "line 10: {{only kind b}} begins a block in another",
	} {
		if _, err := parse("test", blockQuery(text), nil); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s\n%v, want %q", text, err, want)
		}
	}
}

// TestBlocksOfIncludedFiles: each block of the included files is for a value that one of the queries has.
func TestBlocksOfIncludedFiles(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	findings, err := Findings()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		all = append(all, f.Query)
	}
	for q, err := range deadBlocks(all) {
		t.Errorf("%s: %v", q.Name, err)
	}
	blocks := 0
	for _, q := range all {
		blocks += len(q.blocks)
	}
	if blocks == 0 {
		t.Error("no query includes a file with blocks")
	}
}
