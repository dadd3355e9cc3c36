package queries

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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
-- origins: virtual, measured
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
			{Name: "mode", Kind: "choice", Choices: []string{"all", "some"}, Default: "some",
				Doc: "Which ones, as a list of words."},
			{Name: "top", Kind: "integer", Low: 1, High: 99, Default: "9", Doc: "How many."},
			{Name: "where", Kind: "condition", Table: "messages", Default: "TRUE", Doc: "Which messages."},
		},
		Columns: []Column{
			{Name: "src", Type: "INTEGER", Unit: "1", Doc: "Who sends."},
			{Name: "name", Type: "VARCHAR", Doc: "Its name."},
			{Name: "bytes", Type: "BIGINT", Unit: "bytes", Doc: "How much."},
		},
		Order: "src", Cost: "Little.", Plot: &Plot{Kind: "matrix", Row: "src", Column: "src", Value: "bytes"},
		Origins: []string{"virtual", "measured"},
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

func TestParseErrorsNameLineAndRemedy(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"-- summary: How much of what.\n", "", `the header has no "-- summary: text"`},
		{"-- cost: Little.\n", "", `the header has no "-- cost: text"`},
		{"-- needs: messages, times\n", "", `no "-- needs: ...`},
		{"-- needs: messages, times", "-- needs: messages, luck",
			`line 3: needs "luck": want a table of the schema or one of times`},
		{"-- source: A paper, section 3", "-- source: A\n-- source: B", "line 3: want one line"},
		{"-- order: src", "-- order:", "line 11: order has no text"},
		{"-- order: src", "-- older: src", `line 11: no field is called "older"`},
		{"-- order: src", "--order: src", "line 11: \"--order: src\" is not a field"},
		{"-- param top integer 1..99 = 9", "-- param top integer 99..1 = 9", `line 6: param top: range "99..1"`},
		{"-- param top integer 1..99 = 9", "-- param top integer 1..99 = 100",
			`line 6: default of top "100": want an integer from 1 to 99`},
		{"-- param top integer 1..99 = 9", "-- param top integer 1..99999999999999999999 = 9",
			`64-bit integers in order`},
		{"-- param top integer 1..99 = 9", "-- param top count 1..99 = 9", "line 6: param top count"},
		{"-- param top integer 1..99 = 9", "-- param top number 9..1 = 9", `line 6: param top: range "9..1"`},
		{"-- param top integer 1..99 = 9", "-- param top number 0.5..inf = 9", `line 6: param top: range "0.5..inf"`},
		{"-- param top integer 1..99 = 9", "-- param top number 0.5..1.5 = 1.6",
			`default of top "1.6": want a number from 0.5 to 1.5`},
		{"-- param top integer 1..99 = 9", "-- param top text = 9", "line 6: param top text = 9: want"},
		{"-- param top integer 1..99 = 9", "-- param top file a:INTEGER = mine.csv", "the default of a file is none"},
		{"-- param top integer 1..99 = 9", "-- param top file a:INTEGER,a:DOUBLE = none", "each name once"},
		{"-- param top integer 1..99 = 9", "-- param top file a:DATE = none", `columns "a:DATE": want`},
		{"-- origins: virtual, measured\n", "", `needs times and the header has no "-- origins: ..."`},
		{"-- needs: messages, times", "-- needs: messages", "has origins and does not need times"},
		{"-- origins: virtual, measured", "-- origins: virtual, guessed",
			`line 14: origins "guessed": want some of measured, virtual, simulated`},
		{"-- origins: virtual, measured", "-- origins: virtual, virtual", `each once`},
		{"-- order: src", "-- over: ranks", `line 11: want one line "-- over: runs"`},
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
		{"matrix src src bytes", "matrix src src bytes log-x", "line 13: want one line \"-- plot: matrix"},
		{"matrix src src bytes", "bars src bytes name log-y", "line 13: want one line \"-- plot: matrix"},
		{"-- order: src", "-- order: src\n-- label dst: to", `line 12: label dst: want an output column`},
		{"-- order: src", "-- order: src\n-- label y: all", `line 12: label y: want an output column, or y`},
		{"-- plot: matrix src src bytes", "-- label src: from", `line 13: label src: the query has no plot`},
		{"-- order: src", "-- label src: a\n-- label src: b", `line 12: want "-- label COLUMN: WORDS"`},
		{"-- order: src", "-- title: a\n-- title: b", `line 12: want one line "-- title: text"`},
		{"matrix src src bytes", "matrix src src bytes 0..1", "line 13: want one line \"-- plot: matrix"},
		{"matrix src src bytes", "bars src bytes 1..0", `plot names "1..0"`},
		{"matrix src src bytes", "grouped src bytes", "line 13: want one line \"-- plot: matrix"},
		{"matrix src src bytes", "lines name bytes", `plot names "name"; it needs a number output column`},
		{"matrix src src bytes", "points src bytes time", `plot names "time"`},
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

// TestFirstOfSeveralMistakes: of several unknown names the first by the alphabet is told first.
func TestFirstOfSeveralMistakes(t *testing.T) {
	fields := ""
	for _, name := range []string{"d", "b", "e", "a", "c"} {
		fields += "-- label " + name + ": A name.\n-- axis " + name + ": mode\n"
	}
	_, err := parse("bad", goodHeader+fields+goodSQL, noInclude)
	if err == nil {
		t.Fatal("no error")
	}
	var found []string
	for _, m := range regexp.MustCompile(`(label|axis) (\w):`).FindAllStringSubmatch(err.Error(), -1) {
		found = append(found, m[1]+" "+m[2])
	}
	if got, want := strings.Join(found, ", "), "axis a, axis b, axis c, axis d, axis e, label a, label b, label c, "+
		"label d, label e"; got != want {
		t.Errorf("mistakes %s; want %s", got, want)
	}
	q, err := parse("good", goodHeader+goodSQL, noInclude)
	if err != nil {
		t.Fatal(err)
	}
	_, err = q.SQL(map[string]string{"z": "", "y": "", "b": "", "x": "", "w": "", "c": ""})
	if err == nil || !strings.Contains(err.Error(), `no parameter "b"`) {
		t.Errorf("error %v; want one about b", err)
	}
}

// TestKindsOfParameters fills in values of the kinds that TestParse lacks.
func TestKindsOfParameters(t *testing.T) {
	map1 := filepath.Join(t.TempDir(), "it's.csv")
	write := func(text string) {
		if err := os.WriteFile(map1, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ param, file, value, want, err string }{
		{"integer -9..9 = 0", "", "-3", "(-3)", ""},
		{"number -1e3..1e3 = 0.5", "", "-2.5", "(-2.5E+00)", ""},
		{"number -1e3..1e3 = 0.5", "", "1001", "", `p "1001": want a number from -1000 to 1000`},
		{"number 0..1 = 0.5", "", "nan", "", "want a number from 0 to 1"},
		{"text = 'a: b'", "", "it's\nmine -- ;", "'it''s\nmine -- ;'", ""},
		{"text = ''", "", "a\x00", "", "a zero byte"},
		{"file rank:INTEGER,node:VARCHAR = none", "", "none",
			"(SELECT CAST(NULL AS INTEGER) AS rank, CAST(NULL AS VARCHAR) AS node WHERE FALSE)", ""},
		{"file rank:INTEGER,node:VARCHAR = none", "node,speed,Rank\n", map1,
			"(SELECT CAST(NULL AS INTEGER) AS rank, CAST(NULL AS VARCHAR) AS node WHERE FALSE)", ""},
		{"file rank:INTEGER,node:VARCHAR = none", "\ufeffnode,speed,Rank\n\"it's\", 9 ,3\n,,5\n", map1,
			"(SELECT CAST(rank AS INTEGER) AS rank, CAST(node AS VARCHAR) AS node FROM (VALUES (3, 'it''s'), (5, NULL)) AS given (rank, node))", ""},
		{"file rank:DOUBLE = none", "rank\n0.5\n", map1,
			"(SELECT CAST(rank AS DOUBLE) AS rank FROM (VALUES (5E-01)) AS given (rank))", ""},
		{"file rank:DOUBLE = none", "rank\ninf\n", map1, "", `it's.csv: line 2: rank "inf": want a number`},
		{"file rank:INTEGER = none", "rank\n3\n\n4294967296\n", map1, "",
			`line 4: rank "4294967296": want an integer of 32 bits`},
		{"file rank:INTEGER = none", "3\n5\n", map1, "",
			`line 1: there is no column rank in "3"; want CSV with a line of names: rank:INTEGER`},
		{"file rank:INTEGER = none", "rank,node\n3\n", map1, "", "wrong number of fields"},
		{"file rank:INTEGER = none", "", map1, "", "it's.csv: the file is empty"},
		{"file rank:INTEGER = none", "", map1 + ".gone", "", "no such file"},
		{"file rank:INTEGER = none", "", t.TempDir(), "", "is a directory"},
	} {
		write(c.file)
		q := &Query{Name: "kinds"}
		if err := readParam(q, field{1, "param", " p " + c.param, "Doc."}); err != nil {
			t.Errorf("%s: %v", c.param, err)
			continue
		}
		got, err := q.param("p").literal(c.value)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s, %q of %q: %q, %v; want %q, %q", c.param, c.value, c.file, got, err, c.want, c.err)
		}
	}
	q := &Query{}
	if _, _, err := splitHeader("-- param p text = 'a: b': Doc."); err != nil {
		t.Error(err)
	}
	fields, _, _ := splitHeader("-- param m file rank:INTEGER,node:INTEGER = none: Doc: it.")
	if err := readHeader(q, fields, fieldReaders()); err != nil || q.Params[0].Doc != "Doc: it." || len(q.Params[0].Columns) != 2 {
		t.Errorf("%+v, %v", q.Params, err)
	}
}

func TestKindsOfPlots(t *testing.T) {
	for text, want := range map[string]Plot{
		"bars src bytes":              {Kind: "bars", X: "src", Y: "bytes"},
		"bars name bytes src":         {Kind: "bars", X: "name", Y: "bytes", Series: "src"},
		"histogram name bytes src":    {Kind: "histogram", X: "name", Y: "bytes", Series: "src"},
		"bars src bytes 0..1":         {Kind: "bars", X: "src", Y: "bytes", To: 1},
		"lines src bytes log-x -1..9": {Kind: "lines", X: "src", Y: "bytes", LogX: true, From: -1, To: 9},
		"timeline src src bytes bytes name bytes bytes src": {Kind: "timeline", Row: "src", Ranks: "src", Start: "bytes", End: "bytes",
			Series: "name", Value: "bytes", Y: "bytes", Destination: "src"},
		"grouped src bytes name":       {Kind: "grouped", X: "src", Y: "bytes", Series: "name"},
		"grouped src bytes name log-y": {Kind: "grouped", X: "src", Y: "bytes", Series: "name", LogY: true},
		"lines src bytes log-log":      {Kind: "lines", X: "src", Y: "bytes", LogX: true, LogY: true},
		"points src bytes log-x":       {Kind: "points", X: "src", Y: "bytes", LogX: true},
		"points src bytes bytes":       {Kind: "points", X: "src", Y: "bytes", Fit: "bytes"},
		"points src bytes bytes name":  {Kind: "points", X: "src", Y: "bytes", Fit: "bytes", Series: "name"},
		"lines src bytes name log-y":   {Kind: "lines", X: "src", Y: "bytes", Series: "name", LogY: true},
		"matrix src src bytes":         {Kind: "matrix", Row: "src", Column: "src", Value: "bytes"},
		"bars name bytes+bytes":        {Kind: "bars", X: "name", Y: "bytes", More: []string{"bytes"}},
		"lines src bytes+bytes name":   {Kind: "lines", X: "src", Y: "bytes", More: []string{"bytes"}, Series: "name"},
	} {
		q, err := parse("good", strings.Replace(goodHeader+goodSQL, "matrix src src bytes", text, 1), noInclude)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if diff := cmp.Diff(want, *q.Plot); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestAppAndClassOfRunNames(t *testing.T) {
	for name, want := range map[string][2]string{"sp.A.16": {"sp", "A"}, "sp-mz.B.9": {"sp-mz", "B"}, "ring.4": {},
		"sp.A.x": {}, "a.b.c.4": {}, ".A.4": {}} {
		if app, class := appOf(name); app != want[0] || class != want[1] {
			t.Errorf("%s: %q %q", name, app, class)
		}
	}
}

func TestLoadIncludes(t *testing.T) {
	fsys := fstest.MapFS{
		"sql/b.sql":            {Data: []byte(goodHeader + "WITH {{include part}}\nSELECT 1, {{mode}}, {{where}} LIMIT {{top}}")},
		"sql/a.sql":            {Data: []byte(goodHeader + goodSQL)},
		"sql/include/part.sql": {Data: []byte("-- text\npart AS (SELECT {{top}})\n")},
	}
	all, err := load(fsys, namesIn(fsys, "sql"))
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
	fsys["sql/include/inner.sql"] = &fstest.MapFile{Data: []byte("inner AS (SELECT 3)\n")}
	fsys["sql/include/part.sql"] = &fstest.MapFile{Data: []byte("{{include inner}},\npart AS (SELECT {{top}})\n")}
	all, err = load(fsys, namesIn(fsys, "sql"))
	if err != nil {
		t.Fatal(err)
	}
	sql, err = all[1].SQL(nil)
	if want := "WITH inner AS (SELECT 3),\npart AS (SELECT 9)\nSELECT 1, 'some', (TRUE) LIMIT 9"; err != nil ||
		sql != want {
		t.Errorf("SQL %q, %v; want %q", sql, err, want)
	}
	fsys["sql/include/inner.sql"] = &fstest.MapFile{Data: []byte("inner AS (SELECT 3), {{include part}}\n")}
	if _, err := load(fsys, namesIn(fsys, "sql")); err == nil ||
		!strings.Contains(err.Error(), `include "part" includes itself`) {
		t.Errorf("error %v", err)
	}
	delete(fsys, "sql/include/part.sql")
	if _, err := load(fsys, namesIn(fsys, "sql")); err == nil ||
		!strings.Contains(err.Error(), "there is no sql/include/part.sql") {
		t.Errorf("error %v", err)
	}
}

// TestSQLStaysPortable looks in every query for SQL that Trino does not understand.
func TestSQLStaysPortable(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range all {
		upper := strings.ToUpper(q.text)
		for _, word := range []string{"GROUP BY ALL", "ORDER BY ALL", "//", "MEDIAN(", "HUGEINT", "UBIGINT",
			"UINTEGER", "LIST(", "::",
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

// TestNoWindowOverAllRows looks for OVER (). DuckDB 1.5 computes it on several threads and sometimes looks for the
// state of a thread too early: "Attempted to access index 0 within vector of size 0" (duckdb/duckdb issue 25713).
// Windows with PARTITION BY or ORDER BY are not affected. A subquery, (SELECT COUNT(*) FROM t), gives the same.
func TestNoWindowOverAllRows(t *testing.T) {
	read := 0
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		if read++; overAllRe.Match(text) {
			t.Errorf("%s has a window over all rows, which DuckDB 1.5 does not always compute", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 60 {
		t.Errorf("only %d files of SQL are read", read)
	}
}

// overAllRe matches a window that is neither split nor sorted.
var overAllRe = regexp.MustCompile(`(?i)\bOVER\s*\(\s*\)|\bAS\s*\(\s*\)`)

func TestHelpHasTheHeader(t *testing.T) {
	q, err := parse("good", goodHeader+goodSQL, noInclude)
	if err != nil {
		t.Fatal(err)
	}
	want := `Parameters:
  --mode all|some (default some)
      Which ones, as a list of words.
  --top 1..99 (default 9)
      How many.
  --where CONDITION (default TRUE)
      Which messages. It may be given several times: all must hold.

Columns:
  column  type     unit   meaning
  src     INTEGER         Who sends.
  name    VARCHAR         Its name.
  bytes   BIGINT   bytes  How much.

Order:   src
Needs:   messages, times (virtual, measured)
Reads:   Little.
Plot:    bytes: src down, src across, darker is more
Source:  A paper, section 3`
	if diff := cmp.Diff(want, q.Help(80)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	examples := []string{"commq query good --run cg.A.16", "commq query good --run cg.A.16 --mode all",
		"commq query good --run cg.A.16 --plot good.png"}
	if diff := cmp.Diff(examples, q.Examples()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	q.Example = "--top 3"
	if got := q.Examples()[1]; got != "commq query good --run cg.A.16 --top 3" {
		t.Errorf("example %q", got)
	}
}

func TestHelpOfParamIsWrapped(t *testing.T) {
	long := Param{Name: "measure", Kind: "choice", Choices: []string{"messages", "bytes", "ratio-of-both"},
		Default: "bytes", Doc: "What."}
	var b strings.Builder
	long.help(&b, 40)
	if want := "  --measure CHOICE (default bytes)\n      One of messages, bytes,\n      ratio-of-both. What.\n"; b.String() != want {
		t.Errorf("%q; want %q", b.String(), want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(goodHeader + goodSQL)
	f.Add("-- summary: x\n--      y\n\nSELECT 1")
	f.Add("--     x\n-- param a integer -9..9 = 0: {{a}}\n{{a}}{{")
	f.Add(blockQuery("SELECT 1 AS n\n{{only kind a}}\nFROM events\n{{end}}\n{{unless kind a}}\nFROM messages\n{{end}}"))
	f.Add(blockQuery("{{only kin a}}\nSELECT {{kind}} AS n\n{{end}}"))
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
		q.Help(80)
	})
}
