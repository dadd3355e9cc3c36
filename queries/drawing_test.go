package queries

import (
	"bytes"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/queries/plot"
	"github.com/commq/commq/schema"
)

// answer makes rows of values.
func answer(columns string, rows ...[]any) Rows {
	k := &keptRows{rows: rows, at: -1}
	for _, name := range strings.Fields(columns) {
		k.columns = append(k.columns, Column{Name: name})
	}
	return k
}

func runsOf(names ...string) []Run {
	var runs []Run
	for _, name := range names {
		runs = append(runs, Run{Name: name, Manifest: &schema.Manifest{Ranks: 3}})
	}
	return runs
}

// plotted returns a query with a plot.
func plotted(plot Plot, overRuns bool) *Query {
	return &Query{Name: "sizes", OverRuns: overRuns, Plot: &plot, Columns: []Column{
		{Name: "run", Type: "VARCHAR"}, {Name: "size", Type: "BIGINT", Unit: "bytes"},
		{Name: "wait_ns", Type: "DOUBLE", Unit: "ns"},
		{Name: "kind", Type: "VARCHAR"}, {Name: "src", Type: "INTEGER"}, {Name: "dst", Type: "INTEGER"}}}
}

// texts returns the texts of a drawing, in the order in which they are drawn.
func texts(t *testing.T, d plot.Drawing) []string {
	t.Helper()
	var b bytes.Buffer
	if err := d.Draw(&b, plot.Options{Format: "svg"}); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, part := range strings.Split(b.String(), "</text>") {
		if i := strings.LastIndex(part, ">"); i >= 0 {
			all = append(all, part[i+1:])
		}
	}
	return all
}

func TestDrawing(t *testing.T) {
	two := runsOf("b.16", "a.4")
	for _, c := range []struct {
		what    string
		plot    Plot
		over    bool
		runs    []Run
		columns string
		rows    [][]any
		want    string // texts in this order
	}{
		{"bars of one run", Plot{Kind: "bars", X: "size", Y: "wait_ns"}, false, two[:1], "size wait_ns",
			[][]any{{int64(900), 2e6}, {int64(17), 4e6}},
			"900 17 size 0 1 2 3 4 wait [ms] Sizes: b.16 3 ranks"},
		{"groups of two runs", Plot{Kind: "bars", X: "size", Y: "wait_ns", Series: "kind"}, false, two,
			"run size wait_ns kind",
			[][]any{{"b.16", int64(900), 2e9, "late"}, {"a.4", int64(17), 4e9, "early"}},
			"b.16 a.4 900 17 size 0 1 2 3 4 wait [s] kind early late Sizes: b.16, a.4"},
		{"runs of one bar each", Plot{Kind: "bars", X: "size", Y: "wait_ns", Series: "kind"}, false, two,
			"run size wait_ns kind",
			[][]any{{"b.16", int64(17), 2e9, "late"}, {"b.16", int64(17), 2e9, "early"},
				{"a.4", int64(17), 3e9, "early"}},
			"b.16 a.4 run 0 1 2 3 4 wait [s] kind early late Sizes: b.16, a.4"},
		{"runs of one bar each of their own", Plot{Kind: "bars", X: "size", Y: "wait_ns"}, false, two,
			"run size wait_ns",
			[][]any{{"b.16", int64(16), 2e9}, {"a.4", int64(4), 3e9}},
			"b.16 a.4 16 4 size 0 0.5 1 1.5 2 2.5 3 wait [s]"},
		{"a histogram of one run", Plot{Kind: "histogram", X: "kind", Y: "size", Series: "src"}, false, two[:1],
			"src kind size", [][]any{{int32(3), "to 16", int64(0)}, {int32(3), "to 64", int64(2048)},
				{int32(3), "to 256", int64(0)}, {int32(3), "to 1 Ki", int64(1024)}, {int32(3), "to 4 Ki", int64(0)}},
			"to 64 to 256 to 1 Ki kind 0 0.5 1 1.5 2 size [kB] Sizes: b.16"},
		{"histograms of two runs", Plot{Kind: "histogram", X: "kind", Y: "size", Series: "src"}, false, two,
			"run src kind size", [][]any{{"b.16", int32(5), "to 16", int64(17)}, {"b.16", int32(5), "to 64", int64(19)},
				{"a.4", int32(3), "to 16", int64(23)}, {"a.4", int32(3), "to 64", int64(29)}},
			"5 3 src 0 5 10 15 20 25 30 size [B] kind to 16 to 64 Sizes: b.16, a.4"},
		{"an axis of its own length", Plot{Kind: "bars", X: "kind", Y: "wait_ns", From: 0, To: 5e9}, false, two[:1],
			"kind wait_ns", [][]any{{"late", 1e9}}, "late kind 0 1 2 3 4 5 wait [s]"},
		{"runs as series of lines", Plot{Kind: "lines", X: "size", Y: "wait_ns", Series: "kind"}, false, two,
			"run size wait_ns kind",
			[][]any{{"b.16", int64(900), 2.0, nil}, {"a.4", int64(17), 4.0, "early"}}, "run, kind b.16,  a.4, early"},
		{"runs along the axis", Plot{Kind: "grouped", X: "run", Y: "wait_ns", Series: "kind"}, true, two,
			"run kind wait_ns",
			[][]any{{"a.4", "late", 3.0}, {"b.16", "late", nil}}, "b.16 a.4 run 0 "},
		{"runs as bars side by side", Plot{Kind: "grouped", X: "size", Y: "wait_ns", Series: "run"}, true, two,
			"run size wait_ns",
			[][]any{{"a.4", int64(3), 3.0}, {"b.16", int64(3), 5.0}}, "run b.16 a.4"},
		{"a matrix for each run", Plot{Kind: "matrix", Row: "src", Column: "dst", Value: "size"}, false, two,
			"run src dst size",
			[][]any{{"a.4", int32(0), int32(1), int64(500)}, {"b.16", int32(2), int32(0), int64(4097)}},
			"destination rank source rank size [kB] 4.097 0 1 2 3 Sizes: b.16 0 0 1 1 2 2 destination rank source rank size [B] 500 0 100 200 300 400 Sizes: a.4"},
	} {
		d, err := plotted(c.plot, c.over).Drawing(answer(c.columns, c.rows...), c.runs, nil)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if got := strings.Join(texts(t, d), " "); !strings.Contains(got, c.want) {
			t.Errorf("%s: drawn %q; want %q", c.what, got, c.want)
		}
	}
}

func TestDrawingErrors(t *testing.T) {
	matrix := Plot{Kind: "matrix", Row: "src", Column: "dst", Value: "size"}
	for _, c := range []struct {
		q       *Query
		runs    []Run
		columns string
		row     []any
		want    string
	}{
		{&Query{Name: "sizes"}, runsOf("a.4"), "size", nil, "has no plot"},
		{plotted(matrix, false), nil, "src dst size", nil, "no run to draw"},
		{plotted(matrix, false), runsOf("a.4"), "src dst", nil, "the rows have no column size"},
		{plotted(matrix, false), runsOf("a.4"), "src dst size", []any{int32(0), nil, int64(3)}, "has a null"},
		{plotted(matrix, false), runsOf("a.4"), "src dst size", []any{int32(0), int32(3), int64(3)}, "does not fit"},
		{plotted(matrix, false), runsOf("a.4"), "run src dst size", []any{"c.4", int32(0), int32(1), int64(3)},
			"a run that was not asked"},
		{plotted(Plot{Kind: "lines", X: "size", Y: "wait_ns"}, false), runsOf("a.4"), "size", nil,
			"the rows have no column wait_ns"},
	} {
		rows := answer(c.columns)
		if c.row != nil {
			rows = answer(c.columns, c.row)
		}
		if _, err := c.q.Drawing(rows, c.runs, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v; want %q", c.q.Plot, err, c.want)
		}
	}
}

func TestChoicesUnderATitle(t *testing.T) {
	q := plotted(Plot{Kind: "lines", X: "size", Y: "wait_ns"}, false)
	q.Params = []Param{{Name: "mode", Kind: "choice", Default: "all"}, {Name: "from-s", Kind: "number", Default: "0"}, {Name: "top", Kind: "integer", Default: "9"},
		{Name: "where", Kind: "condition", Default: "TRUE"},
		{Name: "by", Kind: "choice", Default: "ranks"}}
	q.Axes = map[string]string{"size": "by"}
	got, want := strings.Join(q.chosenArgs(map[string]string{"where": "tag = 9", "from-s": "0.5"}), "; "), "mode: all; from: 0.5 s; where: tag = 9"
	if got != want {
		t.Errorf("%q; want %q", got, want)
	}
}

// TestDrawn compares each answer's rows with those prepared for drawing.
func TestDrawn(t *testing.T) {
	for _, c := range []struct {
		what    string
		query   Query
		args    map[string]string
		columns string
		rows    [][]any
		want    Plot
		named   string
		drawn   [][]any
	}{
		{"several columns of y", Query{Plot: &Plot{Kind: "bars", X: "rank", Y: "wait_ns", More: []string{"rma_ns"}}},
			nil, "rank wait_ns rma_ns",
			[][]any{{int32(3), int64(70), int64(9)}, {int32(1), int64(80), nil}},
			Plot{Kind: "bars", X: "rank", Y: "time_ns", Series: "part"}, "rank wait_ns rma_ns part time_ns",
			[][]any{{int32(1), int64(80), nil, "wait", int64(80)}, {int32(1), int64(80), nil, "rma", nil},
				{int32(3), int64(70), int64(9), "wait", int64(70)}, {int32(3), int64(70), int64(9), "rma", int64(9)}}},
		{"several columns of y for each series",
			Query{Plot: &Plot{Kind: "lines", X: "rank", Y: "wait_ns", More: []string{"rma_ns"}, Series: "same_host"}},
			nil,
			"rank same_host wait_ns rma_ns", [][]any{{int32(3), true, int64(70), int64(9)},
				{int32(1), false, int64(80), int64(5)}},
			Plot{Kind: "lines", X: "rank", Y: "time_ns", Series: "same_host_and_part"},
			"rank same_host wait_ns rma_ns same_host_and_part time_ns",
			[][]any{{int32(3), "same host", int64(70), int64(9), "same host, wait", int64(70)},
				{int32(3), "same host", int64(70), int64(9), "same host, rma", int64(9)},
				{int32(1), "not same host", int64(80), int64(5), "not same host, wait", int64(80)},
				{int32(1), "not same host", int64(80), int64(5), "not same host, rma", int64(5)}}},
		{"ids as series", Query{Plot: &Plot{Kind: "bars", X: "tag", Y: "bytes", Series: "comm"}}, nil,
			"tag comm bytes", [][]any{{int32(3), int32(2), int64(70)}, {int32(1), int32(11), int64(60)}},
			Plot{Kind: "bars", X: "tag", Y: "bytes", Series: "comm"}, "tag comm bytes",
			[][]any{{int32(3), "comm 2", int64(70)}, {int32(1), "comm 11", int64(60)}}},
		{"columns of y with the name of their unit",
			Query{Plot: &Plot{Kind: "lines", X: "rank", Y: "bytes", More: []string{"rma_bytes"}}}, nil,
			"rank bytes rma_bytes",
			[][]any{{int32(3), int64(70), int64(9)}}, Plot{Kind: "lines", X: "rank", Y: "bytes", Series: "part"},
			"rank bytes_ rma_bytes part bytes",
			[][]any{{int32(3), int64(70), int64(9), "bytes", int64(70)},
				{int32(3), int64(70), int64(9), "rma bytes", int64(9)}}},
		{"call sites", Query{Plot: &Plot{Kind: "bars", X: "callsite", Y: "bytes", Series: "call"}}, nil,
			"callsite function file line module code_offset callers call bytes",
			[][]any{{int32(7), "halo", "/src/heat.c", int32(31), "/bin/heat", nil, "step, main", "MPI_Send",
				int64(4097)},
				{int32(7), "halo", "/src/heat.c", int32(31), "/bin/heat", nil, "step, main", "MPI_Wait", int64(0)},
				{int32(9), "halo", nil, nil, "/bin/heat", int64(0x4f1), nil, "MPI_Send", int64(5)},
				{int32(11), "halo", nil, nil, "/lib/heat", int64(0x4f1), nil, "MPI_Send", int64(3)},
				{nil, nil, nil, nil, nil, nil, nil, "MPI_Send", int64(3)}},
			Plot{Kind: "bars", X: "call_site", Y: "bytes", Series: "call"},
			"callsite function file line module code_offset callers call bytes call_site",
			[][]any{{int32(7), "halo", "/src/heat.c", int32(31), "/bin/heat", nil, "step, main", "MPI_Send",
				int64(4097), "halo heat.c:31 < step, main"},
				{int32(9), "halo", nil, nil, "/bin/heat", int64(0x4f1), nil, "MPI_Send", int64(5), "halo heat+0x4f1"},
				{int32(11), "halo", nil, nil, "/lib/heat", int64(0x4f1), nil, "MPI_Send", int64(3),
					"halo heat+0x4f1 #11"},
				{nil, nil, nil, nil, nil, nil, nil, "MPI_Send", int64(3), "not known"}}},
		{"datatypes", Query{Plot: &Plot{Kind: "bars", X: "datatype", Y: "bytes"}}, nil, "datatype name combiner bytes",
			[][]any{{int32(5), nil, "vector", int64(9)}, {int32(3), "cell", "struct", int64(7)},
				{int32(4), "cell", "struct", int64(0)}},
			Plot{Kind: "bars", X: "type", Y: "bytes"}, "datatype name combiner bytes type",
			[][]any{{int32(5), nil, "vector", int64(9), "vector 5"}, {int32(3), "cell", "struct", int64(7), "cell"},
				{int32(4), "cell", "struct", int64(0), "cell #4"}}},
		{"axes named by parameters", Query{Plot: &Plot{Kind: "points", X: "x", Y: "y"},
			Axes: map[string]string{"x": "by", "y": "measure"},
			Params: []Param{{Name: "by", Kind: "choice", Default: "ranks"},
				{Name: "measure", Kind: "choice", Default: "messages"}}},
			map[string]string{"measure": "mean-message-bytes"}, "ranks x y", [][]any{{int32(5), 5.0, 4097.0}},
			Plot{Kind: "points", X: "ranks", Y: "mean_message_bytes"}, "ranks_ ranks mean_message_bytes",
			[][]any{{int32(5), 5.0, 4097.0}}},
	} {
		var columns []Column
		for _, name := range strings.Fields(c.columns) {
			column := Column{Name: name, Type: "BIGINT", Unit: "1"}
			switch {
			case strings.HasSuffix(name, "_ns"):
				column.Unit = "ns"
			case strings.HasSuffix(name, "bytes"):
				column.Unit = "bytes"
			case name == "same_host":
				column.Type = "BOOLEAN"
			case name == "comm":
				column.Type, column.Unit = "INTEGER", ""
			}
			columns = append(columns, column)
		}
		c.query.Columns = columns
		got := c.query.Drawn(columns, c.rows, c.args, 1)
		if diff := cmp.Diff(c.want, got.Plot); diff != "" {
			t.Errorf("%s: plot %s", c.what, diff)
		}
		if diff := cmp.Diff(c.drawn, got.Rows); diff != "" {
			t.Errorf("%s: rows %s", c.what, diff)
		}
		var names []string
		for _, column := range got.Columns {
			names = append(names, column.Name)
			if strings.HasSuffix(column.Name, "_ns") && column.Unit != "ns" ||
				strings.HasSuffix(column.Name, "bytes") && column.Unit != "bytes" {
				t.Errorf("%s: unit %q of %s", c.what, column.Unit, column.Name)
			}
		}
		if diff := cmp.Diff(strings.Fields(c.named), names); diff != "" {
			t.Errorf("%s: columns %s", c.what, diff)
		}
	}
}

// TestWordsOfAPicture: title, axes and parts have the words of the header, with the values of parameters.
func TestWordsOfAPicture(t *testing.T) {
	q, err := parse("wait-times", strings.Replace(goodHeader, "-- plot: matrix src src bytes",
		"-- column wait BIGINT bytes: Waiting.\n-- title: Where {mode} wait\n-- plot: bars src bytes+wait\n"+
			"-- label src: {top} ranks\n-- label bytes: sent\n-- label y: data of {mode}", 1)+goodSQL, noInclude)
	if err != nil {
		t.Fatal(err)
	}
	rows := answer("src bytes wait", []any{int32(7), int64(300), int64(500)})
	d, err := q.Drawing(rows, runsOf("a.4"), map[string]string{"mode": "all"})
	if err != nil {
		t.Fatal(err)
	}
	want := "7 9 ranks 0 200 400 600 800 data of all [B] wait sent Where all wait: a.4 3 ranks; mode: all"
	if got := strings.TrimSpace(strings.Join(texts(t, d), " ")); got != want {
		t.Errorf("drawn %q; want %q", got, want)
	}
}

// TestHeadings: every canned picture has a title in words and names for its axes, none of which is an id.
func TestHeadings(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range all {
		if q.Plot == nil {
			continue
		}
		if q.Title == "" || strings.ContainsAny(q.Heading(nil), "_{}") {
			t.Errorf("%s: title %q", q.Name, q.Heading(nil))
		}
		drawn := q.Drawn(q.Columns, nil, nil, 1)
		for _, name := range []string{drawn.Plot.X, drawn.Plot.Y} {
			if i := drawn.columnIndex(name); i >= 0 {
				if words := drawn.Columns[i].Words(); strings.ContainsAny(words, "_{}") || words == "" {
					t.Errorf("%s: column %s is called %q in pictures", q.Name, name, words)
				}
			}
		}
	}
}

// TestLawOfASeries expects the law's numbers in the legend.
func TestLawOfASeries(t *testing.T) {
	q := plotted(Plot{Kind: "points", X: "size", Y: "wait_ns", Fit: "fitted", Series: "kind"}, true)
	q.Columns = append(q.Columns, Column{Name: "fitted", Type: "DOUBLE"}, Column{Name: "slope", Type: "DOUBLE"},
		Column{Name: "r2", Type: "DOUBLE"})
	d, err := q.Drawing(answer("size wait_ns kind fitted slope r2", []any{int64(3), 5.0, "mg", 5.5, 0.9791, 0.99984},
		[]any{int64(9), 7.0, "mg", 6.5, 0.9791, 0.99984}),
		runsOf("mg.3", "mg.9"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(texts(t, d), " "); !strings.Contains(got, "kind mg: slope 0.979, R2 0.9998 fitted") {
		t.Errorf("drawn %q", got)
	}
}

func TestNumber(t *testing.T) {
	row := []any{int32(3), int64(5), 0.5, nil, "x"}
	got := []float64{number(row, 0), number(row, 1), number(row, 2)}
	if !slices.Equal(got, []float64{3, 5, 0.5}) || !math.IsNaN(number(row, 3)) || !math.IsNaN(number(row, -1)) {
		t.Errorf("%v", got)
	}
}

// The page of commq ui has the kinds of calls in the order of their colours too; queries/plot tests the colours.
func TestKindsOfThePage(t *testing.T) {
	text, err := os.ReadFile("../ui/web/src/colours.ts")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, m := range regexp.MustCompile(`(?m)^  "?([^":]+)"?: hex\(`).FindAllStringSubmatch(string(text), -1) {
		kinds = append(kinds, m[1])
	}
	if !slices.Equal(kinds, timelineKinds) {
		t.Errorf("the page has %q, pictures have %q", kinds, timelineKinds)
	}
}
