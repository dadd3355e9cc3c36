package compare

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/mutate"
)

func TestBaselineSurvivesWritingAndReading(t *testing.T) {
	a := sampleWith("a", exactly("messages", 40), exactly("messages/<= 1 Ki", 40), exactly("messages/<= 16", 7),
		exactly("calls", 97), exactly(`site_calls/MPI_Send in f "x" (a:b.c)`, 3),
		Value{Measure: "end_ns", Value: 5009, Unit: "ns"})
	b := sampleWith("b", exactly("messages", 40), exactly("messages/<= 1 Ki", 40), exactly("messages/<= 16", 7),
		exactly("calls", 98), exactly(`site_calls/MPI_Send in f "x" (a:b.c)`, 3),
		Value{Measure: "end_ns", Value: 5011, Unit: "ns"})
	c := Sample{Run: "c", Ranks: 5, Values: []Value{exactly("messages", 71)}}
	base, unsteady, err := NewBaseline([]Sample{a, b, c}, []string{"record all", "record all", "record messages"}, true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"calls"}, unsteady); diff != "" {
		t.Error(diff)
	}
	base.Equations = map[string]string{"messages": "31 P: 3"}
	var out bytes.Buffer
	if err := base.Write(&out); err != nil {
		t.Fatal(err)
	}
	want := `# Written by commq check --write-baseline. commq check compares runs with it; commit it with the program.
commq_baseline: 1
ranks:
  3:
    kept: "record all"
    exact:
      messages: 40
      "messages/<= 16": 7
      "messages/<= 1 Ki": 40
      "site_calls/MPI_Send in f \"x\" (a:b.c)": 3
    left_out:
      - calls
    times:
      end_ns: [5009, 5011]
  5:
    kept: "record messages"
    exact:
      messages: 71
equations:
  messages: "31 P: 3"
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	again, err := ReadBaseline("b.yaml", &out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(base, again); diff != "" {
		t.Errorf("-written +read:\n%s", diff)
	}
}

// TestUnsteadyParts: parts that differ between runs of 3 ranks are not known there, and stay in the section of 5 ranks.
func TestUnsteadyParts(t *testing.T) {
	run := func(name string, ranks int32, small, large int64) Sample {
		s := sampleWith(name, exactly("messages", small+large), exactly("messages/<= 64", large))
		if s.Ranks = ranks; small > 0 {
			s.Values = append(s.Values, exactly("messages/<= 16", small))
		}
		return s
	}
	samples := []Sample{run("a", 3, 10, 12), run("b", 3, 12, 10), run("c", 5, 10, 12)}
	kept := []string{"record all", "record all", "record all"}
	base, unsteady, err := NewBaseline(samples, kept, false)
	if err != nil {
		t.Fatal(err)
	}
	parts := []string{"messages/<= 16", "messages/<= 64"}
	if diff := cmp.Diff(parts, unsteady) + cmp.Diff(parts, base.Sections[3].LeftOut); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if base.Sections[5].LeftOut != nil || base.Sections[5].Exact["messages/<= 64"] != 12 {
		t.Errorf("the section of 5 ranks: %+v", base.Sections[5])
	}
	for _, c := range []struct {
		run          Sample
		status, said string
	}{
		{samples[0], Undecided, "messages/<= 16 of run a cannot be compared: the baseline lacks it"},
		{run("none", 3, 0, 22), Undecided, "messages/<= 16 of run none cannot be compared: the baseline lacks it"},
		{samples[2], Passed, ""},
		{run("more", 5, 11, 12), Failed, "messages/<= 16 of run more is 11, the baseline has 10"},
	} {
		for _, kind := range []string{NoMore, SameAs} {
			e := &Evidence{New: []Sample{c.run}, Kept: kept, Baseline: base}
			got := checked(t, fmt.Sprintf("%s: [\"messages/*\"]\nranks: [%d]", kind, c.run.Ranks), e)
			if got.Status != c.status || !strings.Contains(said(got), c.said) {
				t.Errorf("run %s, %s: %s, want %s: %s\n%s", c.run.Run, kind, got.Status, c.status, c.said, said(got))
			}
		}
	}
}

func TestInvalidBaselinesAreRejected(t *testing.T) {
	good := "commq_baseline: 1\nranks:\n  4:\n    kept: record all\n    exact:\n      messages: 4\n"
	if _, err := ReadBaseline("b.yaml", strings.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{good, "", "baseline b.yaml: empty"},
		{good, "a: [", "baseline b.yaml: not YAML: "},
		{"commq_baseline: 1", "commq_baseline: 2",
			`baseline b.yaml:1: commq_baseline is "2"; want a whole number from 1 to 1`},
		{"commq_baseline: 1\n", "", "baseline b.yaml:1: commq_baseline is missing; add it"},
		{"ranks:\n  4:", "ranks:\n  none:", `baseline b.yaml:3: ranks.none is "none"; want a whole number from 1 to 2147483647`},
		{"messages: 4", "messages: 4.5", `baseline b.yaml:6: ranks.4.exact.messages is "4.5"; want a whole number`},
		{"messages: 4", "messages: 4\n      messages: 5",
			"baseline b.yaml:7: ranks.4.exact.messages is there a second time"},
		{"    exact:", "    exactly:", `baseline b.yaml:5: unknown key "exactly" in ranks.4; did you mean exact?`},
		{"      messages: 4\n", "", "baseline b.yaml:5: ranks.4.exact is empty; want a mapping of measures"},
		{good, good + "  4e0:\n    kept: record all\n    exact: {messages: 4}\n",
			"baseline b.yaml:7: ranks.4e0 is there a second time"},
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		if _, err := ReadBaseline("b.yaml", strings.NewReader(text)); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v\nwant %s", text, err, c.want)
		}
	}
}

func FuzzReadBaseline(f *testing.F) {
	f.Add([]byte("commq_baseline: 1\nranks:\n  4:\n    kept: record all\n    exact:\n      \"messages/<= 16\": 4\n    left_out: [calls]\n    clock: cpu\n    times:\n      end_ns: [7, 9]\nequations:\n  messages: 3 P\n"))
	f.Fuzz(fuzzReadBaseline)
}

func fuzzReadBaseline(t *testing.T, data []byte) {
	b, err := ReadBaseline("b.yaml", bytes.NewReader(data))
	if err != nil {
		return
	}
	var first, second bytes.Buffer
	if err := b.Write(&first); err != nil {
		t.Fatal(err)
	}
	again, err := ReadBaseline("b.yaml", bytes.NewReader(first.Bytes()))
	if err != nil {
		t.Fatalf("what was written is not read: %v\n%s", err, first.String())
	}
	if err := again.Write(&second); err != nil || first.String() != second.String() {
		t.Fatalf("%v\n%s\nis written as\n%s", err, first.String(), second.String())
	}
}

// The same with a good baseline, its values changed.
func FuzzReadBaselineEdited(f *testing.F) {
	f.Add([]byte{0, 9, 1, 8, 1, 0, 4, 7})
	f.Fuzz(func(t *testing.T, edits []byte) {
		fuzzReadBaseline(t, []byte(mutate.Text("commq_baseline: 1\nranks:\n  4:\n    kept: record all\n    exact:\n"+
			"      \"messages/<= 16\": 4\n    left_out: [calls]\n    times:\n      end_ns: [7, 9]\nequations:\n  messages: 3 P\n", edits)))
	})
}
