package queries

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const goodHeader = `-- summary: How much of what.
-- source: A paper, section 3
-- needs: messages, times
-- param mode choice all|some = some: Which ones,
--     as a list of words.
-- param top integer 1..99 = 9: How many.
-- param where condition messages = TRUE: Which messages.
-- column src INTEGER 1: Who sends.
-- column name VARCHAR -: Its name.
-- column bytes BIGINT bytes: How much.
-- order: src
-- cost: Little.
-- plot: matrix src src bytes
`

const goodSQL = `SELECT src, {{mode}} AS name, bytes -- a comment
FROM messages WHERE {{where}} ORDER BY src LIMIT {{top}}`

func noInclude(name string) (string, error) { return "", errors.New("no includes here") }

func TestParse(t *testing.T) {
	q, err := parse("good", goodHeader+goodSQL, noInclude)
	if err != nil {
		t.Fatal(err)
	}
	want := &Query{
		Name: "good", Summary: "How much of what.", Source: "A paper, section 3", Needs: []string{"messages", "times"},
		Params: []Param{
			{Name: "mode", Kind: "choice", Choices: []string{"all", "some"}, Default: "some", Doc: "Which ones, as a list of words."},
			{Name: "top", Kind: "integer", Low: 1, High: 99, Default: "9", Doc: "How many."},
			{Name: "where", Kind: "condition", Table: "messages", Default: "TRUE", Doc: "Which messages."},
		},
		Columns: []Column{
			{Name: "src", Type: "INTEGER", Unit: "1", Doc: "Who sends."},
			{Name: "name", Type: "VARCHAR", Doc: "Its name."},
			{Name: "bytes", Type: "BIGINT", Unit: "bytes", Doc: "How much."},
		},
		Order: "src", Cost: "Little.", Plot: &MatrixPlot{"src", "src", "bytes"},
	}
	if diff := cmp.Diff(want, q, cmpopts.IgnoreUnexported(Query{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	sql, err := q.SQL(map[string]string{"where": "tag = 9 -- mine", "top": "3"})
	wantSQL := "SELECT src, 'some' AS name, bytes -- a comment\nFROM messages WHERE (tag = 9 -- mine\n) ORDER BY src LIMIT 3"
	if err != nil || sql != wantSQL {
		t.Errorf("SQL %q, %v; want %q", sql, err, wantSQL)
	}
}

func TestParseErrorsSayLineAndRemedy(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"-- summary: How much of what.\n", "", `the header has no "-- summary: text"`},
		{"-- cost: Little.\n", "", `the header has no "-- cost: text"`},
		{"-- needs: messages, times\n", "", `no "-- needs: ...`},
		{"-- needs: messages, times", "-- needs: messages, luck", `line 3: needs "luck": want a table of the schema or one of times`},
		{"-- source: A paper, section 3", "-- source: A\n-- source: B", "line 3: want one line"},
		{"-- order: src", "-- order:", "line 11: order has no text"},
		{"-- order: src", "-- older: src", `line 11: no field is called "older"`},
		{"-- order: src", "--order: src", "line 11: \"--order: src\" is not a field"},
		{"-- param top integer 1..99 = 9", "-- param top integer 99..1 = 9", `line 6: param top: range "99..1"`},
		{"-- param top integer 1..99 = 9", "-- param top integer 1..99 = 100", `line 6: default of top "100": want an integer from 1 to 99`},
		{"-- param top integer 1..99 = 9", "-- param top integer 1..99999999999999999999 = 9", `64-bit integers in order`},
		{"-- param top integer 1..99 = 9", "-- param top number 1..99 = 9", "line 6: param top number"},
		{"choice all|some = some", "choice all|some = none", `line 4: default of mode "none": want one of all, some`},
		{"choice all|some = some", "choice all|So'me = all", `choice "So'me"`},
		{"condition messages = TRUE", "condition letters = TRUE", `no table is called "letters"`},
		{"-- param top integer", "-- param mode integer", "line 6: param mode stands twice"},
		{"-- column name VARCHAR -", "-- column src VARCHAR -", "line 9: column src stands twice"},
		{"-- column name VARCHAR -", "-- column name HUGEINT -", "line 9: column name HUGEINT -"},
		{"-- column bytes BIGINT bytes", "-- column bytes BIGINT miles", "line 10: column bytes BIGINT miles"},
		{"matrix src src bytes", "matrix src dst bytes", `plot names "dst"`},
		{"matrix src src bytes", "matrix src src name", `plot names "name"`},
		{"matrix src src bytes", "pie src", "line 13: want one line \"-- plot: matrix"},
		{"LIMIT {{top}}", "", "param top is declared and the SQL does not use {{top}}"},
		{"LIMIT {{top}}", "LIMIT {{top}} OFFSET {{skip}}", "uses {{skip}}, which the header does not declare"},
		{"-- a comment", "-- about {{mode}}", "has braces, which would be filled in"},
		{"LIMIT {{top}}", "LIMIT {{top}};", "has a semicolon"},
		{"LIMIT {{top}}", "{{include more}} {{top}}", "no includes here"},
		{goodSQL, "", "there is no SQL"},
	} {
		text := strings.Replace(goodHeader+goodSQL, c.old, c.new, 1)
		_, err := parse("bad", text, noInclude)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "sql/bad.sql: ") {
			t.Errorf("%q for %q: error %v; want one with %q", c.new, c.old, err, c.want)
		}
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	q, err := parse("good", goodHeader+goodSQL, noInclude)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, value, want string }{
		{"mode", "none", `query good: mode "none": want one of all, some`},
		{"mode", "all' OR 1=1", "want one of all, some"},
		{"top", "100", "want an integer from 1 to 99"},
		{"top", "3; DROP", "want an integer from 1 to 99"},
		{"colour", "red", `query good has no parameter "colour"`},
		{"where", "a)", "a parenthesis closes"},
	} {
		if _, err := q.SQL(map[string]string{c.name: c.value}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: error %v; want one with %q", c.name, c.value, err, c.want)
		}
	}
}

func TestLoadIncludes(t *testing.T) {
	fsys := fstest.MapFS{
		"sql/b.sql":            {Data: []byte(goodHeader + "WITH {{include part}}\nSELECT 1, {{mode}}, {{where}} LIMIT {{top}}")},
		"sql/a.sql":            {Data: []byte(goodHeader + goodSQL)},
		"sql/include/part.sql": {Data: []byte("-- text\npart AS (SELECT {{top}})\n")},
	}
	all, err := load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Name != "a" || all[1].Name != "b" {
		t.Fatalf("loaded %v", all)
	}
	sql, err := all[1].SQL(nil)
	if want := "WITH -- text\npart AS (SELECT 9)\nSELECT 1, 'some', (TRUE) LIMIT 9"; err != nil || sql != want {
		t.Errorf("SQL %q, %v; want %q", sql, err, want)
	}
	delete(fsys, "sql/include/part.sql")
	if _, err := load(fsys); err == nil || !strings.Contains(err.Error(), "there is no sql/include/part.sql") {
		t.Errorf("error %v", err)
	}
}

// TestSQLStaysPortable looks for what Trino does not speak in every query.
func TestSQLStaysPortable(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range all {
		upper := strings.ToUpper(q.text)
		for _, word := range []string{"GROUP BY ALL", "ORDER BY ALL", "//", "MEDIAN(", "HUGEINT", "UBIGINT", "UINTEGER", "LIST(", "::",
			"EXCLUDE", "SELECT *", "QUALIFY", "PIVOT", "ARG_MAX", "ARG_MIN", "[", "READ_PARQUET"} {
			if strings.Contains(upper, word) {
				t.Errorf("%s has %s, which DuckDB and Trino do not both speak or mean alike", q.Name, word)
			}
		}
		if n, m := strings.Count(upper, "SUM("), strings.Count(upper, "CAST(SUM("); n != m {
			t.Errorf("%s has %d sums and %d of them in a CAST: in DuckDB a sum of BIGINT is HUGEINT", q.Name, n, m)
		}
		for _, line := range strings.Split(upper, "\n") {
			code, _, _ := strings.Cut(line, "--")
			if strings.Contains(code, " / ") && !strings.Contains(code, "CAST(") {
				t.Errorf("%s divides without a cast: %s", q.Name, line)
			}
		}
	}
}

func TestHelpHasTheHeader(t *testing.T) {
	q, err := parse("good", goodHeader+goodSQL, noInclude)
	if err != nil {
		t.Fatal(err)
	}
	want := `How much of what.

--mode all|some (default some): Which ones, as a list of words.
--top 1..99 (default 9): How many.
--where CONDITION (default TRUE): Which messages.

Columns:
  src    INTEGER  Who sends.
  name   VARCHAR  Its name.
  bytes  BIGINT   How much. [bytes]

Order:  src
Needs:  messages, times
Reads:  Little.
Source: A paper, section 3`
	if diff := cmp.Diff(want, q.Help()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(goodHeader + goodSQL)
	f.Add("-- summary: x\n--      y\n\nSELECT 1")
	f.Add("--     x\n-- param a integer -9..9 = 0: {{a}}\n{{a}}{{")
	f.Fuzz(func(t *testing.T, text string) {
		q, err := parse("fuzz", text, noInclude)
		if err != nil {
			return
		}
		sql, err := q.SQL(nil)
		if err != nil {
			t.Fatalf("the defaults do not fill: %v", err)
		}
		if len(q.Columns) == 0 || q.Summary == "" || strings.TrimSpace(sql) == "" {
			t.Fatalf("accepted an incomplete query %+v", q)
		}
		q.Help()
	})
}
