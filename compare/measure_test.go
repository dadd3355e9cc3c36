package compare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/rows"
	"github.com/commq/commq/schema"
)

// runOf returns a finalized run with all rows.
func runOf(name string, ranks int32) Run {
	return Run{Name: name, Manifest: &schema.Manifest{Ranks: ranks, Record: "all", Ended: "finalized", Hash: "crc64"}}
}

// answered answers every query with these rows; columns are in an order of their own.
func answered(columns string, values ...[]any) rows.Ask {
	header := rows.NewHeader(strings.Fields(columns)...)
	return func(_ context.Context, _ string, _ map[string]string, each func(rows.Row) error) error {
		for _, v := range values {
			if err := each(rows.Row{Header: header, Values: v}); err != nil {
				return err
			}
		}
		return nil
	}
}

const measureColumns = "value exact line file unit item measure run"

func TestMeasuresAreReadByColumnName(t *testing.T) {
	ask := answered(measureColumns,
		[]any{int64(4097), true, nil, nil, "bytes", "", "message_bytes", "b.5"},
		[]any{int64(7), true, int32(42), "halo.c", "1", "MPI_Send in f (halo.c)", "site_calls", "a.3"})
	got, err := Measure(context.Background(), []Run{runOf("a.3", 3), runOf("b.5", 5)}, ask)
	want := []Sample{
		{Run: "a.3", Ranks: 3, Hash: "crc64", Values: []Value{{Measure: "site_calls", Item: "MPI_Send in f (halo.c)", Value: 7,
			Unit: "1", Exact: true, File: "halo.c", Line: 42}}},
		{Run: "b.5", Ranks: 5, Hash: "crc64", Values: []Value{{Measure: "message_bytes", Value: 4097, Unit: "bytes", Exact: true}}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	_, err = Measure(context.Background(), []Run{runOf("a.3", 3), runOf("none.9", 9)}, ask)
	if err == nil || !strings.Contains(err.Error(), `run "none.9" is empty`) {
		t.Errorf("a run without rows: %v", err)
	}
}

func TestRunsThatCannotBeCompared(t *testing.T) {
	killed, dropped, stuck, filtered, messages := runOf("r", 3), runOf("r", 3), runOf("r", 3), runOf("r", 3),
		runOf("r", 3)
	killed.Manifest.Ended, dropped.Manifest.Counts.Dropped, stuck.Manifest.Counts.InProgress = "killed", 1, 2
	filtered.Manifest.Filters, messages.Manifest.Record = []string{"MPI_I*"}, "messages"
	good, other := runOf("a.3", 3), runOf("a.3", 3)
	other.Dir = "elsewhere/a.3"
	for want, err := range map[string]error{
		`run "r" was killed before MPI_Finalize`:                                         killed.CheckComplete(),
		`run "r" misses 1 call that could not be recorded`:                               dropped.CheckComplete(),
		`run "r" has 2 calls that never returned`:                                        stuck.CheckComplete(),
		`with the filters [] and run "r" with ["MPI_I*"]`:                                good.CheckAlike(filtered),
		`with --record all and run "r" with --record messages`:                           good.CheckAlike(messages),
		`two runs are called "a.3"; give each once, or copy one of them to another name`: CheckDistinct([]Run{good, killed, other}),
		`run "a.3" is given twice; give it once`:                                         CheckDistinct([]Run{good, killed, good}),
		`runs of 2 numbers of ranks, at least 3 are needed`:                              equationError(2),
		`diff --wire: compares two runs`:                                                 wireError([]Run{good, good}, []Run{killed}),
		`run "r" has 5`:                                                                  wireError([]Run{good}, []Run{runOf("r", 5)}),
		`diff --wire: two runs are called "a.3"`:                                         wireError([]Run{good}, []Run{other}),
		`diff --wire: run "a.3" is given twice`:                                          wireError([]Run{good}, []Run{good}),
		`2 runs is not known: they do not hold it`:                                       growthError("y ranks slope", nil, nil),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	if err := good.CheckComplete(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"record all", "record all MPI_I*"}, KeptRows([]Run{good, filtered})); diff != "" {
		t.Error(diff)
	}
}

// equationError adds equations to a baseline of so many numbers of ranks.
func equationError(n int32) error {
	b := &Baseline{Sections: map[int32]*Section{}}
	for ranks := range n {
		b.Sections[ranks+1] = &Section{Exact: map[string]int64{"messages": 4}}
	}
	_, err := b.AddEquations(perRank)
	return err
}

func wireError(base, new []Run) error {
	_, err := NewWire(base, new)
	return err
}

func growthError(columns string, y ...any) error {
	var values [][]any
	for _, v := range y {
		values = append(values, []any{v, int32(3), nil})
	}
	_, err := MeasureGrowth(context.Background(), "completion-ns", answered(columns, values...))
	return err
}

func TestGrowthIsReadByColumnName(t *testing.T) {
	g, err := MeasureGrowth(context.Background(), "bytes", answered("slope_low y slope ranks slope_high",
		[]any{1.25, 97.0, 1.5, int32(3), 1.75}, []any{1.25, 4097.0, 1.5, int32(9), 1.75}))
	want := &Growth{Series: "the runs", Exponent: 1.5, Low: 1.25, High: 1.75, Ranks: []int32{3, 9},
		Values: []float64{97, 4097}}
	if diff := cmp.Diff(want, g); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestWireNamesTheFirstDifference(t *testing.T) {
	w, err := NewWire([]Run{runOf("a.5", 5)}, []Run{runOf("b.5", 5)})
	if err != nil {
		t.Fatal(err)
	}
	w.AddMessages("b.5", 11, 1)
	w.AddMessages("a.5", 4097, 2)
	columns := "line file function at_ns new_bytes base_bytes differs nth tag comm peer rank kind"
	_ = answered(columns,
		[]any{int32(42), "halo.c", "swap", int64(9), int64(17), int64(4097), "bytes", int64(2), int32(9), int32(0),
			int32(3),
			int32(1), "message"},
		[]any{nil, nil, nil, nil, nil, int64(3), "missing", int64(1), nil, int32(0), nil, int32(4), "MPI_Bcast"})(
		context.Background(), "wire", nil, func(r rows.Row) error { w.Add(r); return nil })
	var b bytes.Buffer
	if err := w.Text(&b); err != nil {
		t.Fatal(err)
	}
	want := `first difference: message 2 from rank 1 to rank 3 with tag 9 on communicator 0, at swap (halo.c:42): 17 bytes, before 4,097
all differences: 1 with another size, 1 only in a.5 (--format csv lists them); a.5 has 4,097 messages
3 messages of both runs without a hash: only their sizes were compared
`
	if diff := cmp.Diff(want, b.String()); diff != "" || !w.Changed() {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// fakeEngine has runs with one measure, messages: 10 for each rank.
type fakeEngine struct{ asked []string }

func (e *fakeEngine) Ask(_ context.Context, runs []Run, query string, _ map[string]string,
	each func(rows.Row) error) error {
	for _, r := range runs {
		e.asked = append(e.asked, query+" "+r.Name)
		header, values := rows.NewHeader(strings.Fields(measureColumns)...),
			[]any{int64(r.Manifest.Ranks) * 10, true, nil,
				nil, "1", "", "messages", r.Name}
		if query == "scaling" {
			header, values = rows.NewHeader("y", "ranks", "slope", "slope_low", "slope_high"),
				[]any{float64(r.Manifest.Ranks) * 10, r.Manifest.Ranks, 1.0, nil, nil}
		}
		if err := each(rows.Row{Header: header, Values: values}); err != nil {
			return err
		}
	}
	return nil
}

func (e *fakeEngine) SQL(_ context.Context, run Run, text string) ([]string, int64, error) {
	return []string{run.Name + ": " + text}, 5, nil
}

func (e *fakeEngine) ByHand(_ context.Context, run Run) ([]Manual, error) {
	cwd, err := os.Getwd()
	return []Manual{{Operation: "MPI_Bcast", Text: run.Name, File: filepath.Join(cwd, "halo.c"), Line: 42}}, err
}

func (e *fakeEngine) Causes(context.Context, Run) (Causes, error) { return Causes{}, nil }

func (e *fakeEngine) CauseRules() []string { return []string{"imbalance"} }

func (e *fakeEngine) Operations() []string { return []string{"MPI_Bcast"} }

func (e *fakeEngine) Fit(map[int64]float64) (*Law, error) { return &Law{Equation: "10 P"}, nil }

// Rules in a folder below the root of the sources are at their place in the repository, wherever the check runs.
func TestRulesBelowTheSourceRoot(t *testing.T) {
	root := t.TempDir()
	app := filepath.Join(root, "apps", "halo")
	if err := os.MkdirAll(app, 0o755); err != nil {
		t.Fatal(err)
	}
	text := "commq_check: 1\nrules:\n  - name: rows\n    no_rows: SELECT 1\n"
	if err := os.WriteFile(filepath.Join(app, "rules.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(app)
	for sourceRoot, want := range map[string]string{"": "rules.yaml", "../..": "apps/halo/rules.yaml", "../../other": "rules.yaml"} {
		files := Files{Rules: "rules.yaml", SourceRoot: sourceRoot}
		v, err := CheckFiles(context.Background(), files, []Run{runOf("a.3", 3)}, nil, &fakeEngine{})
		if err != nil || v.Rules != want {
			t.Errorf("with source root %q the rules are %q, %v; want %q", sourceRoot, v.Rules, err, want)
		}
	}
}

// Rules may be a stranger's: the baseline that they name lies beside them or below the working folder. The flag names any.
func TestRulesNameNoOtherFiles(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	secret, rules := filepath.Join(dir, "secret"), filepath.Join(in, "rules.yaml")
	if err := errors.Join(os.Mkdir(in, 0o700), os.WriteFile(secret, []byte("hunter2"), 0o600),
		os.WriteFile(filepath.Join(in, "base.yaml"), []byte("commq_baseline: 1\nranks: {}\n"), 0o600),
		os.Symlink("../secret", filepath.Join(in, "link")), syscall.Mkfifo(filepath.Join(in, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	open := func(baseline, flag string) string {
		_, err := openBaseline(Files{Rules: rules, Baseline: flag}, &Rules{Baseline: baseline})
		return fmt.Sprint(err)
	}
	const outside = "is outside the folder of the rules"
	for name, want := range map[string]string{secret: outside, "../secret": outside, "x/../../secret": outside,
		"link": outside, "pipe": "is not a regular file", "../in/none": "no such file"} {
		if err := open(name, ""); !strings.Contains(err, want) || strings.Contains(err, "hunter2") {
			t.Errorf("%s: %s; want %s", name, err, want)
		}
	}
	for _, name := range []string{"base.yaml", filepath.Join(in, "base.yaml"), "../in/base.yaml"} {
		if err := open(name, ""); strings.Contains(err, outside) {
			t.Errorf("%s: %s", name, err)
		}
	}
	if err := open("", secret); !strings.Contains(err, "hunter2") {
		t.Errorf("the flag names any file: %s", err)
	}
	t.Chdir(dir)
	if err := open("../secret", ""); !strings.Contains(err, "hunter2") {
		t.Errorf("in the working folder: %s", err)
	}
}

func TestFilesAreChecked(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	rules := write("rules.yaml", `commq_check: 1
baseline: base.yaml
rules:
  - name: no more
    no_more: [messages]
  - name: growth
    scaling: messages
    exponent_at_most: 0.5
  - name: by hand
    no_manual: [all]
  - name: rows
    no_rows: SELECT 1
  - name: equations
    equations: [messages]
`)
	write("base.yaml", "commq_baseline: 1\nranks:\n"+
		"  3:\n    kept: \"record all\"\n    exact:\n      messages: 29\n"+
		"  5:\n    kept: \"record all\"\n    exact:\n      messages: 50\n"+
		"  9:\n    kept: \"record all\"\n    exact:\n      messages: 91\n"+
		"equations:\n  messages: \"10 P\"\n")
	runs := []Run{runOf("a.3", 3), runOf("b.5", 5), runOf("c.9", 9)}
	v, err := CheckFiles(context.Background(), Files{Rules: rules}, runs, nil, &fakeEngine{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range v.Results {
		line := r.Rule + " " + r.Status
		if len(r.Findings) > 0 {
			line += ": " + r.Findings[0].place() + " " + r.Findings[0].Message
		}
		got = append(got, line)
	}
	want := []string{
		"no more failed:  messages of run a.3 is 30, the baseline has 29 (+3.45 %)",
		"growth failed:  messages of the runs grows as ranks^1 (30 with 3, 50 with 5, 90 with 9 ranks); " +
			"an exponent of at most 0.5 is allowed",
		"by hand failed: halo.c:42 run a.3 does MPI_Bcast by hand: a.3",
		"rows failed:  run a.3 gives 5 rows: a.3: SELECT 1; and 4 more",
		"equations failed:  messages of run a.3 is 30, the baseline has 29 with 3 ranks"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := CheckFiles(context.Background(), Files{Rules: rules, Baseline: filepath.Join(dir, "no.yaml")}, runs,
		nil,
		&fakeEngine{}); err == nil || !strings.Contains(err.Error(), "write it with commq check --write-baseline") {
		t.Errorf("a baseline that is not there: %v", err)
	}
	other := runOf("m.3", 3)
	other.Manifest.Record = "messages"
	if _, err := CheckFiles(context.Background(), Files{Rules: rules}, runs, []Run{other},
		&fakeEngine{}); err == nil || !strings.Contains(err.Error(), "capture them alike") {
		t.Errorf("a base with other rows: %v", err)
	}
}
