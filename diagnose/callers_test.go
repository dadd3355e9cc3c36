package diagnose

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// wrapped are call paths: halo and, at two lines, dot call send, which wraps MPI; main calls halo at two lines.
var wrapped = []run.Frame{
	{Place: "main.c:10", Function: "main", Parent: schema.NullInt32},
	{Place: "halo.c:5", Function: "halo", Parent: 0},
	{Place: "wrap.c:3", Function: "send", Parent: 1}, // 2
	{Place: "dot.c:7", Function: "dot", Parent: 0},
	{Place: "wrap.c:3", Function: "send", Parent: 3}, // 4
	{Place: "dot.c:8", Function: "dot", Parent: 0},
	{Place: "wrap.c:3", Function: "send", Parent: 5}, // 6
	{Place: "main.c:20", Function: "main", Parent: schema.NullInt32},
	{Place: "halo.c:5", Function: "halo", Parent: 7},
	{Place: "wrap.c:3", Function: "send", Parent: 8}, // 9
	{Place: "main.c:30", Function: "main", Parent: schema.NullInt32},
	{Place: "sum.c:2", Function: "sum", Parent: 10},    // 11
	{Place: "alone.c:2", Function: "alone", Parent: 0}, // 12
}

// The frames above wrappers are found: of send always, and of halo, which does nothing else and is called twice.
func TestCallersAreAboveWrappers(t *testing.T) {
	p := pathsOf(wrapped)
	for site, want := range map[int32]string{2: "main.c:10", 4: "dot.c:7", 6: "dot.c:8", 9: "main.c:20", 11: "main.c:30",
		12: "main.c:10", 0: "", 99: "", -1: ""} {
		got := ""
		if f := p.caller(site); f != nil {
			got = f.Place
		}
		if got != want {
			t.Errorf("the caller of call site %d is at %q, want %q", site, got, want)
		}
	}
}

// A finding names its callers if there are several, the one with most of its cost first.
func TestCallersOfFindings(t *testing.T) {
	for _, c := range []struct {
		name  string
		sites []int32
		cost  map[int32]int64
		want  string
	}{
		{"several", []int32{2, 4, 6, 9}, map[int32]int64{2: 10, 4: 70, 6: 20, 11: 500},
			"in send, called from dot at dot.c:7 (70 %; 2 other callers)"},
		{"one of several costs", []int32{2, 4, 6, 9}, map[int32]int64{4: 70}, "in send, called from dot at dot.c:7"},
		{"one caller", []int32{12}, map[int32]int64{12: 70}, ""},
		{"no caller is known", []int32{0}, map[int32]int64{0: 70}, ""},
		{"no cost is known", []int32{2, 4}, nil, ""},
	} {
		f := newFinding(Communication, "MPI_Send takes long")
		f.Call, f.sites = "MPI_Send", c.sites
		f.setCallers(pathsOf(wrapped), &costs{onPath: map[string]map[int32]int64{"MPI_Send": c.cost}})
		if got := f.Called(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if c.want != "" && !strings.Contains(f.sentence(), c.want) {
			t.Errorf("%s: %s", c.name, f.sentence())
		}
	}
}

// So do the calls that wait: each with its own callers.
func TestCallersOfWaits(t *testing.T) {
	f := newFinding(LateSender, "Rank 1 computes before MPI_Send")
	f.Waits = []Wait{{Ns: 100, For: "late sender", Place: "send.c:2", Call: "MPI_Recv", Calls: 3, bySite: map[int32]int64{2: 10, 4: 90}},
		{Ns: 70, For: "late sender", Place: "alone.c:2", Call: "MPI_Recv", Calls: 1, bySite: map[int32]int64{12: 70}}}
	f.setCallers(pathsOf(wrapped), &costs{})
	var got []string
	for i := range f.Waits {
		got = append(got, f.Waits[i].Text())
	}
	want := []string{"100 ns in MPI_Recv at send.c:2 (late sender, 3 calls), in send, called from dot at dot.c:7 (90 %; 1 other caller)",
		"70 ns in MPI_Recv at alone.c:2 (late sender, 1 call)"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// All outputs have the caller, and ranks that begin MPI_Init late.
func TestCallersAndLateStartInAllOutputs(t *testing.T) {
	f := newFinding(Communication, "MPI_Send takes long")
	f.Place, f.Call, f.Function, f.GainNs = "wrap.c:3", "MPI_Send", "send", 50
	f.Callers = []Caller{{"dot", "dot.c:7", 70, 0.7}, {"halo", "halo.c:5", 30, 0.3}}
	late := newFinding(LateStart, "Rank 3 begins MPI_Init late")
	late.GainNs, late.Bound = 200, true
	d := &Diagnosis{Run: "r", TimeNs: 1000, Findings: []Finding{f}, Start: &late}
	for name, write := range map[string]func(*strings.Builder) error{
		"text":     func(s *strings.Builder) error { return d.Text(s, 1, "") },
		"detail":   func(s *strings.Builder) error { s.WriteString("late-start"); return d.Detail(s, &d.Findings[0]) },
		"markdown": func(s *strings.Builder) error { return d.Markdown(s, 1) },
		"sarif":    func(s *strings.Builder) error { return d.SARIF(s, 1, "v") },
		"junit":    func(s *strings.Builder) error { return d.JUnit(s, 0.01) },
		"csv":      func(s *strings.Builder) error { s.WriteString("late-start"); return d.CSV(s) },
		"json":     func(s *strings.Builder) error { return json.NewEncoder(s).Encode(d) },
	} {
		var s strings.Builder
		if err := write(&s); err != nil {
			t.Error(err)
		}
		for _, want := range []string{"dot.c", "late-start"} {
			if !strings.Contains(s.String(), want) {
				t.Errorf("%s has no %s:\n%s", name, want, s.String())
			}
		}
	}
	var s strings.Builder
	if d.TimeNs = 1e6; d.JUnit(&s, 0.00001) != nil || strings.Contains(s.String(), "begins MPI_Init late") {
		t.Errorf("a start that is late by a small part of the time fails:\n%s", s.String())
	}
}
