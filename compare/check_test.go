package compare

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/commq/commq/internal/junit"
)

// checked asks one rule, written as YAML without its name.
func checked(t *testing.T, rule string, e *Evidence) Result {
	t.Helper()
	r, err := ReadRules("c.yaml", strings.NewReader("commq_check: 1\nrules:\n  - name: it\n    "+
		strings.ReplaceAll(rule, "\n", "\n    ")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return Check(r, e)[0]
}

func said(r Result) string {
	var lines []string
	for _, f := range r.Findings {
		lines = append(lines, f.place()+" "+f.Message)
	}
	return strings.Join(append(lines, r.Notes...), "\n")
}

// evidence returns a run of 3 ranks, and a baseline of others.
func evidence(before, now map[string]int64) *Evidence {
	e := &Evidence{Kept: []string{"record all"}, New: []Sample{sampleWith("pr")},
		Baseline: &Baseline{Sections: map[int32]*Section{3: {Kept: "record all", Exact: before}}}}
	for key, value := range now {
		v := valueOf(key, value, true)
		if strings.Contains(key, " in ") {
			v.File, v.Line = "src/halo.c", 42
		}
		e.New[0].Values = append(e.New[0].Values, v)
	}
	return e
}

func TestCountsAgainstTheBaseline(t *testing.T) {
	site := "site_calls/MPI_Isend in exchange (halo.c)"
	before := map[string]int64{"messages": 40, "calls": 97, "calls/MPI_Isend": 40, "site_calls": 97, site: 40,
		"payloads": 7}
	with := func(change map[string]int64) map[string]int64 {
		now := map[string]int64{}
		for k, v := range before {
			now[k] = v
		}
		for k, v := range change {
			now[k] = v
			if v < 0 {
				delete(now, k)
			}
		}
		return now
	}
	for _, c := range []struct {
		rule   string
		change map[string]int64
		status string
		want   string
	}{
		{"no_more: [messages]", nil, Passed, ""},
		{"no_more: [messages]", map[string]int64{"messages": 41, site: 41}, Failed,
			"src/halo.c:42 messages of run pr is 41, the baseline has 40 (+2.5 %); MPI_Isend in exchange (halo.c), line 42: 41 calls, before 40"},
		{"same: [messages]", map[string]int64{"messages": 1, site: 1}, Failed, "line 42: 1 call, before 40"},
		{"no_more: [messages]", map[string]int64{"messages": 39}, Passed,
			"messages of run pr is 39, the baseline has 40: better; commq check --write-baseline keeps it"},
		{"same: [messages]", map[string]int64{"messages": 39}, Failed,
			"messages of run pr is 39, the baseline has 40 (-2.5 %)"},
		{"no_more: [calls/MPI_Bcast]", nil, Passed, ""}, // neither makes one
		{"no_more: [\"calls/*\"]", map[string]int64{"calls/MPI_Bcast": 3}, Failed,
			"calls/MPI_Bcast of run pr is 3, the baseline has 0"},
		{"no_more: [mesages]", nil, Undecided, `have no exact measure "mesages"; did you mean messages?`},
		{"no_more: [\"sites/*x\"]", nil, Undecided, `have no exact measure "sites/*x"`},
		// a column that is gone
		{"no_more: [messages]", map[string]int64{"messages": -1}, Undecided, "cannot be compared: the run does not hold it"},
		{"same: [payloads]", map[string]int64{"payloads": 9}, Failed,
			"payloads of run pr is 0000000000000009, the baseline has 0000000000000007"},
		{"no_more: [payloads]", map[string]int64{"payloads": 9}, Undecided, "check it with same"},
		{"no_more: [messages]\nranks: [5]", nil, Undecided, "no run of 5 ranks is checked"},
		{"bound: messages\nat_most: 40", nil, Passed, ""},
		{"bound: messages\nat_most: 39", nil, Failed, "messages of run pr is 40, at most 39 is allowed"},
		{"bound: messages\nat_least: 41", nil, Failed, "messages of run pr is 40, at least 41 is wanted"},
		{"bound: pairs\nat_most: 39", nil, Undecided, `no measure "pairs"`},
		{"bound: payloads\nat_most: 39", nil, Undecided, "has no bounds"},
		{"bound: messages/*\nat_most: 39", nil, Undecided, "not of all that fit a pattern"},
	} {
		r := checked(t, c.rule, evidence(before, with(c.change)))
		if r.Status != c.status || !strings.Contains(said(r), c.want) || c.want == "" && len(r.Findings) > 0 {
			t.Errorf("%s with %v: %s\n%s\nwant %s\n%s", c.rule, c.change, r.Status, said(r), c.status, c.want)
		}
	}
}

// TestRanksOfTheBaselineThatNoRunHas: they come in the order of the ranks, in each answer.
func TestRanksOfTheBaselineThatNoRunHas(t *testing.T) {
	before := map[string]int64{"messages": 40}
	e := evidence(before, before)
	want := ""
	for _, ranks := range []int32{2, 5, 8, 16, 32, 64} {
		e.Baseline.Sections[ranks] = e.Baseline.Sections[3]
		want += fmt.Sprintf("the baseline has runs of %d ranks, .*\\s*", ranks)
	}
	if r := checked(t, "no_more: [messages]", e); !regexp.MustCompile(want).MatchString(said(r)) {
		t.Errorf("%s\nwant %s", said(r), want)
	}
}

// TestMeasureLeftOutOfTheBaseline: it differed between the runs of the baseline, and the verdict says so.
func TestMeasureLeftOutOfTheBaseline(t *testing.T) {
	e := evidence(map[string]int64{"pairs": 9}, map[string]int64{"pairs": 9, "messages": 3})
	const want = "messages of run pr cannot be compared: the baseline lacks it; commq check --write-baseline leaves out"
	if r := checked(t, "no_more: [messages]", e); r.Status != Undecided || !strings.Contains(said(r), want) {
		t.Errorf("%s %s\nwant %s", r.Status, said(r), want)
	}
}

// TestBrokenAndIncomplete: a rule that a run breaks is broken, whatever is missing before or after it.
func TestBrokenAndIncomplete(t *testing.T) {
	e := evidence(map[string]int64{"messages": 40}, map[string]int64{"messages": 50})
	e.Baseline.Sections[8] = e.Baseline.Sections[3]
	e.New = append(e.New, sampleWith("other", exactly("messages", 1)))
	e.New[1].Ranks, e.Kept = 5, append(e.Kept, e.Kept[0])
	r := checked(t, "no_more: [messages]", e)
	for _, want := range []string{"the baseline has runs of 8 ranks", "messages of run pr is 50", "run other has 5 ranks"} {
		if r.Status != Failed || !strings.Contains(said(r), want) {
			t.Errorf("%s: %s\nwant %s: %s", r.Status, said(r), Failed, want)
		}
	}
}

// TestPlacesAreOfCallsThatCount: more of everything, and each finding names the places of its measure's calls alone.
func TestPlacesAreOfCallsThatCount(t *testing.T) {
	places := []string{"MPI_Send in swap (halo.c)", "MPI_Recv in swap (halo.c)", "MPI_Allreduce in sum (halo.c)",
		"MPI_Ibcast in tell (halo.c)", "MPI_Wait in tell (halo.c)"}
	wholes := []string{"messages", "message_bytes", "collective_calls", "collective_bytes", "unmatched_receives",
		"calls",
		"site_calls", "site_bytes"}
	before, now := map[string]int64{}, map[string]int64{}
	for _, key := range wholes {
		before[key], now[key] = 30, 70
	}
	for i, place := range places {
		before["site_calls/"+place], now["site_calls/"+place] = 3, int64(19-i)
		before["site_bytes/"+place], now["site_bytes/"+place] = 24, int64(190-i)
	}
	for measure, want := range map[string][]string{
		"messages": places[:1], "message_bytes": places[:1], "unmatched_receives": places[1:2],
		"collective_calls": places[2:4], "collective_bytes": places[2:4], "calls": places[:3], // three are named
	} {
		r := checked(t, "no_more: ["+measure+"]", evidence(before, now))
		for _, place := range places {
			if named := strings.Contains(said(r), place); named != slices.Contains(want, place) {
				t.Errorf("%s: %s is named: %v\n%s", measure, place, named, said(r))
			}
		}
	}
}

// TestFindingsOfSeveralRunsAreGrouped: what is the same of several runs comes once, and what differs does not.
func TestFindingsOfSeveralRunsAreGrouped(t *testing.T) {
	e := evidence(map[string]int64{"messages": 40, "pairs": 9}, nil)
	e.New, e.Kept = nil, nil
	for i, messages := range []int64{50, 50, 60, 50, 50, 50} {
		e.New = append(e.New, sampleWith(fmt.Sprint("pr.", i), exactly("messages", messages), exactly("pairs", 8)))
		e.Kept = append(e.Kept, "record all")
	}
	want := ` messages of 5 runs (pr.0 pr.1 pr.3 ... pr.5) is 50, the baseline has 40 (+25 %)
 messages of run pr.2 is 60, the baseline has 40 (+50 %)
pairs of 6 runs (pr.0 pr.1 pr.2 ... pr.5) is 8, the baseline has 9: better; commq check --write-baseline keeps it`
	if got := said(checked(t, "no_more: [messages, pairs]", e)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	e.New, e.Kept = e.New[:2], e.Kept[:2]
	want = " messages of 2 runs (pr.0 pr.1) is 50, at most 49 is allowed"
	if got := said(checked(t, "bound: messages\nat_most: 49", e)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestMissingEvidenceDoesNotPass removes data that a rule needs.
func TestMissingEvidenceDoesNotPass(t *testing.T) {
	whole := func() *Evidence { return evidence(map[string]int64{"messages": 40}, map[string]int64{"messages": 40}) }
	for name, take := range map[string]func(*Evidence){
		"baseline":          func(e *Evidence) { e.Baseline = nil },
		"section":           func(e *Evidence) { e.New[0].Ranks = 5 },
		"other rows":        func(e *Evidence) { e.Kept[0] = "record messages" },
		"measure":           func(e *Evidence) { e.New[0].Values = nil },
		"baseline's number": func(e *Evidence) { delete(e.Baseline.Sections[3].Exact, "messages") },
		"run":               func(e *Evidence) { e.New = nil },
		"one run of two":    func(e *Evidence) { e.Baseline.Sections[7] = e.Baseline.Sections[3] },
	} {
		e := whole()
		if r := checked(t, "no_more: [messages]", e); r.Status != Passed {
			t.Fatal(said(r))
		}
		take(e)
		if r := checked(t, "no_more: [messages]", e); r.Status != Undecided || len(r.Findings) == 0 {
			t.Errorf("%s: %s %s", name, r.Status, said(r))
		}
	}
	if v := (&Verdict{}); v.Status() != Undecided {
		t.Errorf("no rule: %s", v.Status())
	}
}

func TestTimeRules(t *testing.T) {
	times := func(ns ...int64) (set []Sample) {
		for _, n := range ns {
			set = append(set, taking(n))
		}
		return set
	}
	base := times(1000, 1010, 1020, 1030, 1040)
	for _, c := range []struct {
		base, new []Sample
		status    string
		want      string
	}{
		{base, times(1400, 1410, 1420, 1430, 1440), Failed,
			"end_ns with 3 ranks: 1.42 us (1.4 us to 1.44 us), the base 1.02 us (1 us to 1.04 us): +39.2 %; more than the 30 % that are allowed (p=0.0079 n=5)"},
		{base, times(1200, 1210, 1220, 1230, 1240), Passed, "+19.6 %; at most 30 % more are allowed (n=5)"}, // slower, but by less than is allowed
		{base, times(1400, 1410, 1000, 1430, 1440), Passed,
			"+38.2 %; more than the 30 % that are allowed, but that can be chance (p=0.1508, not below alpha 0.01; n=5)"}, // one of five is as before
		{base, times(700, 710, 720, 730, 740), Passed, "-29.4 %"},                // improvement
		{base, times(9000, 9010, 9020, 9030), Undecided, "not enough data"},      // 4 of 5
		{base[:4], times(9000, 9010, 9020, 9030, 9040), Undecided, "not enough"}, // of the base
		{nil, times(9000, 9010, 9020, 9030, 9040), Undecided, "not enough data"},
		// a program that calls nothing that counts: nothing was compared
		{times(0, 0, 0, 0, 0), times(0, 0, 0, 0, 0), Undecided,
			"end_ns of 3 ranks is 0 in all runs of the base and all new ones"},
		{times(0, 0, 0, 0, 0), times(7000, 7000, 7000, 7000, 7000), Failed,
			"end_ns with 3 ranks: 7 us, the base 0 ns; more than"},
		{times(7000, 7000, 7000, 7000, 7000), times(0, 0, 0, 0, 0), Passed,
			"end_ns with 3 ranks: 0 ns, the base 7 us: -100 %; at most 30 % more are allowed (n=5)"},
	} {
		r := checked(t, "time: end_ns\nat_most_percent_more: 30",
			&Evidence{Base: c.base, New: c.new, Kept: make([]string, len(c.new))})
		if r.Status != c.status || !strings.Contains(said(r), c.want) {
			t.Errorf("%s %s\nwant %s %s", r.Status, said(r), c.status, c.want)
		}
		if text := said(r); strings.ContainsAny(text, "∞?") || strings.Contains(text, "NaN") ||
			strings.Contains(text, "Inf") {
			t.Errorf("no number: %s", text)
		}
	}
	stored := &Baseline{Sections: map[int32]*Section{3: {Times: map[string][]int64{"end_ns": {1000, 1010, 1020, 1030,
		1040}}}}}
	if r := checked(t, "time: end_ns\nat_most_percent_more: 30",
		&Evidence{Baseline: stored, New: times(1400, 1410, 1420, 1430, 1440)}); r.Status != Failed {
		t.Errorf("times of the baseline: %s %s", r.Status, said(r))
	}
	timed := evidence(nil, nil)
	timed.New[0].Values = times(1000)[0].Values
	if r := checked(t, "no_more: [end_ns]", timed); r.Status != Undecided ||
		!strings.Contains(said(r), "end_ns of run pr is a time, which differs from run to run; check it with time") {
		t.Errorf("no_more of a time: %s %s", r.Status, said(r))
	}
	if r := checked(t, "time: messages\nat_most_percent_more: 30",
		&Evidence{Base: base, New: times(1, 2, 3, 4, 5)}); r.Status != Undecided {
		t.Errorf("a time that is none: %s", r.Status)
	}
}

func TestScalingRules(t *testing.T) {
	grow := func(exponent float64, err error, ranks ...int32) *Evidence {
		return &Evidence{New: []Sample{sampleWith("a")}, Grow: func(measure string, of []int32) ([]Growth, error) {
			if measure != "messages-per-rank" {
				return nil, fmt.Errorf("no measure %q", measure)
			}
			return []Growth{{Series: "the runs", Exponent: exponent, Ranks: ranks,
				Values: []float64{40, 40, 40, 40}[:len(ranks)]}}, err
		}}
	}
	zeroOnOne := &Evidence{New: []Sample{sampleWith("a")}, Grow: func(string, []int32) ([]Growth, error) {
		return []Growth{{Series: "the runs", Ranks: []int32{1, 2, 4}, Values: []float64{0, 10, 10}}}, nil
	}}
	for _, c := range []struct {
		rule   string
		e      *Evidence
		status string
	}{
		{"scaling: messages-per-rank\nexponent_at_most: 0", grow(0, nil, 2, 4, 8), Passed},
		{"scaling: messages-per-rank\nexponent_at_most: 0.1", grow(0.9, nil, 2, 4, 8), Failed},
		{"scaling: messages-per-rank\nexponent_at_most: -0.4", grow(-0.5, nil, 2, 4, 8), Passed},
		{"scaling: messages-per-rank\nexponent_at_most: -0.4", grow(-0.3, nil, 2, 4, 8), Failed},
		{"scaling: messages-per-rank\nexponent_at_least: 0.9", grow(0.8, nil, 2, 4, 8), Failed},
		{"scaling: messages-per-rank\nexponent_at_most: 0.1", grow(0, nil, 2, 4, 4), Undecided},
		{"scaling: messages-per-rank\nexponent_at_most: 0.1", grow(math.NaN(), nil, 2, 4, 8), Undecided},
		{"scaling: messages-per-rank\nexponent_at_most: 0.1", grow(0, errors.New("not held"), 2, 4, 8), Undecided},
		{"scaling: bytes\nexponent_at_most: 0.1", grow(0, nil, 2, 4, 8), Undecided},
		{"scaling: messages-per-rank\nexponent_at_most: 0.1", zeroOnOne, Undecided}, // a power law has two points
	} {
		if r := checked(t, c.rule, c.e); r.Status != c.status {
			t.Errorf("%s: %s %s, want %s", c.rule, r.Status, said(r), c.status)
		}
	}
}

func TestOtherRules(t *testing.T) {
	one := []Sample{sampleWith("a")}
	manual := func(found []Manual, err error) *Evidence {
		return &Evidence{New: one, Operations: []string{"MPI_Bcast", "MPI_Gather"},
			ByHand: func(string) ([]Manual, error) { return found, err }}
	}
	rows := func(n int64, err error) *Evidence {
		return &Evidence{New: one, Rows: func(string, string) ([]string, int64, error) { return []string{"src 3, n 9"}, n, err }}
	}
	bcast := []Manual{{Operation: "MPI_Bcast", Text: "over 3 ranks", File: "a.c", Line: 9}}
	for _, c := range []struct {
		rule   string
		e      *Evidence
		status string
		want   string
	}{
		{"no_manual: [all]", manual(bcast, nil), Failed, "a.c:9 run a does MPI_Bcast by hand: over 3 ranks"},
		{"no_manual: [MPI_Gather]", manual(bcast, nil), Passed, ""},
		{"no_manual: [MPI_Neighbor_alltoall]", manual(nil, nil), Undecided,
			"MPI_Neighbor_alltoall: exchanges between neighbours do not count as collectives by hand; commq detect lists them"},
		{"no_manual: [MPI_Bcst]", manual(nil, nil), Undecided,
			`unknown collective "MPI_Bcst"; did you mean MPI_Bcast?`},
		{"no_manual: [all]", manual(nil, errors.New("without payload hashes")), Undecided, "without payload hashes"},
		{"no_rows: SELECT 1", rows(0, nil), Passed, ""},
		{"no_rows: SELECT 1", rows(4, nil), Failed, "run a gives 4 rows: src 3, n 9; and 3 more"},
		{"no_rows: SELECT 1", rows(0, errors.New("no column x")), Undecided, "run a: no column x"},
	} {
		if r := checked(t, c.rule, c.e); r.Status != c.status || !strings.Contains(said(r), c.want) {
			t.Errorf("%s: %s %s, want %s %s", c.rule, r.Status, said(r), c.status, c.want)
		}
	}
}

// perRank fits laws c P, which have no value above 99 ranks and of which a small c is uncertain by 1.
func perRank(byRanks map[int64]float64) (*Law, error) {
	c := math.NaN()
	for ranks, value := range byRanks {
		if c = value / float64(ranks); math.Trunc(c) != c || byRanks[2] != 2*c {
			return nil, nil
		}
	}
	return &Law{Equation: fmt.Sprintf("%v P", c), At: func(ranks int64) (value, low, high float64, ok bool) {
		value = c * float64(ranks)
		if c < 10 {
			return value, value - 1, value + 1, true
		}
		return value, value, value, ranks < 100
	}}, nil
}

// TestEquationsHoldAtAnyNumberOfRanks: a baseline of 2, 4 and 8 ranks and runs of these and others.
func TestEquationsHoldAtAnyNumberOfRanks(t *testing.T) {
	b := &Baseline{Sections: map[int32]*Section{}}
	for _, ranks := range []int64{2, 4, 8} {
		b.Sections[int32(ranks)] = &Section{Kept: "record all", Exact: map[string]int64{"messages": 40 * ranks,
			"calls": 5 * ranks, "message_bytes": 100 + ranks*ranks, "calls/MPI_Send": 40 * ranks, "payloads": 77}}
	}
	b.Sections[8].Exact["sites"] = 9
	leftOut, err := b.AddEquations(perRank)
	wantOut := []string{"no equation of message_bytes: " + noLaw, "no equation of sites: the runs of 2 ranks do not have it"}
	if want := map[string]string{"messages": "40 P", "calls": "5 P"}; err != nil || !maps.Equal(b.Equations, want) ||
		!slices.Equal(leftOut, wantOut) {
		t.Fatalf("%v, %q, %v", b.Equations, leftOut, err)
	}
	for _, c := range []struct {
		rule   string
		ranks  int32
		value  int64
		status string
		want   string
	}{
		{"equations: [messages]", 4, 160, Passed, "messages is 40 P"},
		{"equations: [messages]", 16, 640, Passed, "messages is 40 P"},
		{"equations: [messages]", 4, 161, Failed, "messages of run a is 161, the baseline has 160 with 4 ranks"},
		{"equations: [messages]", 16, 641, Failed,
			"messages of run a is 641, the baseline's equation 40 P says 640 with 16 ranks"},
		{"equations: [messages]", 128, 5120, Undecided, "equation 40 P has no whole value with 128 ranks"},
		{"equations: [calls]", 16, 80, Passed, "calls is 5 P"},
		{"equations: [calls]", 16, 81, Undecided, "says 80 with 16 ranks, but its runs are too few to exclude other laws"},
		{"equations: [calls]", 16, 82, Failed, "calls of run a is 82, the baseline's equation 5 P says 80 with 16 ranks"},
		{"equations: [message_bytes]", 4, 116, Passed, "message_bytes is as in the baseline"},
		{"equations: [message_bytes]", 4, 117, Failed, "message_bytes of run a is 117, the baseline has 116"},
		{"equations: [message_bytes]", 16, 356, Undecided, "message_bytes with 16 ranks has nothing to compare with"},
		{"equations: [sites]", 4, 9, Undecided, `no equation of "sites"`},
		{"equations: [mesages]", 4, 160, Undecided, `no equation of "mesages"; did you mean messages?`},
		{"equations: [calls/MPI_Send]", 4, 160, Undecided, `no equation of "calls/MPI_Send"`},
		{"equations: [messages]\nranks: [4]", 16, 640, Undecided, "no run of 4 ranks is checked"},
	} {
		key := strings.Trim(strings.Fields(c.rule)[1], "[]")
		e := &Evidence{Kept: []string{"record all"}, Baseline: b, Fit: perRank,
			New: []Sample{{Run: "a", Ranks: c.ranks, Values: []Value{exactly(key, c.value)}}}}
		if r := checked(t, c.rule, e); r.Status != c.status || !strings.Contains(said(r), c.want) {
			t.Errorf("%s, %d with %d ranks: %s %s, want %s %s", c.rule, c.value, c.ranks, r.Status, said(r), c.status,
				c.want)
		}
		e.Kept[0] = "record messages"
		if r := checked(t, c.rule, e); r.Status != Undecided {
			t.Errorf("%s of other rows: %s %s", c.rule, r.Status, said(r))
		}
	}
	b.Equations["messages"] = "39.9 P" // as older baselines have them
	e := &Evidence{Kept: []string{"record all"}, Baseline: b, Fit: perRank,
		New: []Sample{{Run: "a", Ranks: 16, Values: []Value{exactly("messages", 640)}}}}
	if r := checked(t, "equations: [messages]", e); r.Status != Undecided || !strings.Contains(said(r),
		"the equation 39.9 P is not the exact law of the baseline's values; write the baseline again") {
		t.Errorf("an equation that is not exact: %s %s", r.Status, said(r))
	}
}

// A verdict with much to say stays below what GitHub accepts as a comment, and the first of its errors are one of each
// rule, as GitHub shows ten.
func TestVerdictOfManyFindings(t *testing.T) {
	v := &Verdict{Rules: "rules.yaml", Results: []Result{{Rule: "better", Kind: NoMore, Status: Passed},
		{Rule: "first", Kind: NoMore, Status: Failed}, {Rule: "second", Kind: NoMore, Status: Failed}}}
	for i := range 3000 {
		v.Results[0].Notes = append(v.Results[0].Notes, fmt.Sprintf("measure %d is better", i))
		v.Results[1].Findings = append(v.Results[1].Findings, Finding{Message: fmt.Sprintf("measure %d is more", i)})
	}
	v.Results[2].Findings = []Finding{{Message: "something else"}}
	var markdown, github bytes.Buffer
	if err := errors.Join(v.Write(&markdown, "markdown", ""), v.Write(&github, "github", "")); err != nil {
		t.Fatal(err)
	}
	if n := markdown.Len(); n > mostMarkdown || n < mostMarkdown*9/10 {
		t.Errorf("%d bytes, want at most %d", n, mostMarkdown)
	}
	for _, want := range []string{"| better | passed | ... 3000 more: commq check prints them all |\n", "measure 1000 is more<br>",
		"| second | **failed** | something else |\n"} {
		if !strings.Contains(markdown.String(), want) {
			t.Errorf("no %q in\n%s", want, markdown.String())
		}
	}
	lines := strings.SplitN(github.String(), "\n", 3)
	if !strings.Contains(lines[0], "first") || !strings.Contains(lines[1], "second") {
		t.Errorf("the errors begin with\n%s", strings.Join(lines[:2], "\n"))
	}
}

// TestVerdictFormats: the machine-readable formats are valid and complete, whatever characters names contain.
func TestVerdictFormats(t *testing.T) {
	v := &Verdict{Rules: "ci/commq-check.yaml", Runs: []string{"a", "b"}, Results: []Result{
		{Rule: "fine", Kind: NoMore, Status: Passed,
			Notes: []string{"messages of run a is 3, the baseline has 5: better; commq check --write-baseline keeps it"},
			Line:  3},
		{Rule: "no <more>, at all", Kind: NoMore, Status: Failed, Line: 9,
			Findings: []Finding{{Message: "100% & | more\n::set-output", File: "src/a,b:c.c", Line: 42},
				{Message: "without a place"}}},
		{Rule: "times", Kind: Time, Status: Undecided, Line: 12, Findings: []Finding{{Message: "not enough data"}}},
	}}
	got := map[string]string{}
	for _, format := range VerdictFormats() {
		var b bytes.Buffer
		if err := v.Write(&b, format, "1.2.3"); err != nil {
			t.Fatal(err)
		}
		got[format] = b.String()
	}
	for format, want := range map[string][]string{
		"text": {"passed     fine\n", "failed     no <more>, at all\n           src/a,b:c.c:42: 100% & | more\\n::set-output\n",
			"1 rule passed, 1 failed, 1 undecided (ci/commq-check.yaml, 2 runs)\n"},
		"markdown": {"### Communication could not be checked\n", "|---|---|---|\n", `| no &lt;more>, at all | **failed** | ` +
			"`src/a,b:c.c:42`" + ` 100% & \| more ::set-output<br>without a place |`},
		"github": {"::error file=src/a%2Cb%3Ac.c,line=42,title=commq check%3A no <more>%2C at all (failed)::100%25 & | more%0A::set-output\n",
			"::error file=ci/commq-check.yaml,line=9,title=",
			"::notice title=commq check%3A fine::messages of run a is 3"},
	} {
		for _, text := range want {
			if !strings.Contains(got[format], text) {
				t.Errorf("%s: no %q in\n%s", format, text, got[format])
			}
		}
	}
	var suites struct {
		Suite struct {
			Tests    int          `xml:"tests,attr"`
			Failures int          `xml:"failures,attr"`
			Errors   int          `xml:"errors,attr"`
			Cases    []junit.Case `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(got["junit"]), &suites); err != nil {
		t.Fatal(err)
	}
	s := suites.Suite
	if s.Tests != 3 || s.Failures != 1 || s.Errors != 1 || s.Cases[0].Failure != nil || s.Cases[1].Failure == nil ||
		s.Cases[1].Error != nil || s.Cases[2].Error == nil ||
		s.Cases[1].Name != "no <more>, at all" ||
		!strings.HasPrefix(s.Cases[1].Failure.Text, "src/a,b:c.c:42: 100% & | more") {
		t.Errorf("junit:\n%s", got["junit"])
	}
	var verdict struct {
		Status  string
		Results []Result
	}
	if err := json.Unmarshal([]byte(got["json"]), &verdict); err != nil || verdict.Status != Undecided ||
		len(verdict.Results) != 3 || verdict.Results[1].Findings[0].Line != 42 {
		t.Errorf("json: %v %s", err, got["json"])
	}
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID, Level string
				RuleIndex     int
				Message       struct{ Text string }
				Locations     []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(got["sarif"]), &log); err != nil || log.Version != "2.1.0" ||
		len(log.Runs) != 1 || len(log.Runs[0].Results) != 3 {
		t.Fatalf("sarif: %v %s", err, got["sarif"])
	}
	report, err := sarif.FromString(got["sarif"])
	if err == nil {
		err = report.Validate() // against the schema of SARIF 2.1.0
	}
	if err != nil {
		t.Errorf("sarif: %v", err)
	}
	for i, want := range []string{"src/a,b:c.c:42", "ci/commq-check.yaml:9", "ci/commq-check.yaml:12"} {
		r := log.Runs[0].Results[i]
		p := r.Locations[0].PhysicalLocation
		if got := fmt.Sprintf("%s:%d", p.ArtifactLocation.URI, p.Region.StartLine); got != want ||
			log.Runs[0].Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID {
			t.Errorf("sarif result %d at %s with %+v, want %s", i, got, r, want)
		}
	}
}

// TestComputeTimesOfOtherClocks: compute times of two clocks are not compared, also where the baseline keeps them.
func TestComputeTimesOfOtherClocks(t *testing.T) {
	runs := func(clock string, ns int64) (set []Sample) {
		for i := range int64(5) {
			s := sampleWith("r", exactly("ranks", 3), Value{Measure: "compute_ns", Value: ns + i, Unit: "ns"},
				Value{Measure: "end_ns", Value: ns + i, Unit: "ns"})
			s.ComputeClock = clock
			set = append(set, s)
		}
		return set
	}
	kept := slices.Repeat([]string{"record all"}, 6)
	for clock, want := range map[string]string{"cpu": Passed, "wall": Undecided, "": Passed} {
		base := runs(clock, 5009)
		b, _, err := NewBaseline(base, kept, true)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := b.Write(&out); err != nil {
			t.Fatal(err)
		}
		if b, err = ReadBaseline("b.yaml", &out); err != nil {
			t.Fatal(err)
		}
		const rule = "\nat_most_percent_more: 10"
		for _, e := range []*Evidence{{New: runs("cpu", 4097), Kept: kept, Base: base},
			{New: runs("cpu", 4097), Kept: kept, Baseline: b}} {
			const why = "compute clocks are different: wall, cpu"
			r := checked(t, "time: compute_ns"+rule, e)
			if r.Status != want || want == Undecided && !strings.Contains(said(r), why) {
				t.Errorf("%q: %s\n%s", clock, r.Status, said(r))
			}
			if r := checked(t, "time: end_ns"+rule, e); r.Status != Passed {
				t.Errorf("%q: end_ns: %s\n%s", clock, r.Status, said(r))
			}
		}
		what := map[string]string{Passed: Fewer, Undecided: Unknown}[want]
		if got := whats(Diff(base, runs("cpu", 4097), DiffOptions{})); got["compute_ns"] != what || got["end_ns"] != Fewer {
			t.Errorf("%q: %v, want %s of compute_ns", clock, got, what)
		}
	}
	_, _, err := NewBaseline(slices.Concat(runs("cpu", 4097), runs("wall", 4097)[:1]), kept, true)
	if err == nil || !strings.Contains(err.Error(), "different compute clocks (cpu; wall)") {
		t.Errorf("a baseline of two clocks: %v", err)
	}
}

// TestFingerprintsOfOtherHashes: fingerprints of two kinds of hashes are not compared; the baseline keeps the kind.
func TestFingerprintsOfOtherHashes(t *testing.T) {
	for kind, want := range map[string]string{"crc64": Failed, "crc32": Undecided, "": Failed} {
		e := evidence(map[string]int64{"payloads": 7}, map[string]int64{"payloads": 9})
		e.New[0].Hash, e.Baseline.Sections[3].Hash = "crc64", kind
		var out bytes.Buffer
		if err := e.Baseline.Write(&out); err != nil {
			t.Fatal(err)
		}
		var err error
		if e.Baseline, err = ReadBaseline("b.yaml", &out); err != nil {
			t.Fatal(err)
		}
		r := checked(t, "same: [payloads]", e)
		const why = "payloads of run pr cannot be compared: payload hashes are of different kinds: crc32, crc64"
		if r.Status != want || want == Undecided && !strings.Contains(said(r), why) {
			t.Errorf("%q: %s\n%s", kind, r.Status, said(r))
		}
	}
}
