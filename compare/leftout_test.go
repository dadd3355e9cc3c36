package compare

import (
	"errors"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
)

// filtered returns a run that kept some calls by name, with 2 of 5 messages.
func filtered(filters ...string) *Run {
	return &Run{Name: "pr", Manifest: &schema.Manifest{Record: "all", Filters: filters,
		Tables: []schema.TableInfo{{Name: "events", Rows: 10}, {Name: "messages", Rows: 2}},
		Counts: schema.Counts{Calls: 40, Messages: 5}}}
}

func TestLackingCallsOfMeasures(t *testing.T) {
	only, without := filtered("call:MPI_Allreduce"), filtered("-call:MPI_Isend")
	for _, c := range []struct {
		run     *Run
		measure string
		lacks   bool
	}{
		{only, "messages", true}, {only, "messages/<= 1 Ki", true}, {only, "payloads", true}, {only, "bytes-per-rank", true},
		{only, "calls", false}, {only, "calls/MPI_Send", true}, {only, "calls/MPI_Allreduce", false},
		{only, "unmatched_sends", false}, {only, "end_ns", false}, {only, "compute_ns", true}, {only, "ratio", true},
		{only, "collective_calls", true}, {only, "collective_calls/MPI_Allreduce", false}, {only, "calls/*", true},
		{without, "messages", true}, {without, "collective_calls", false}, {without, "collectives-per-rank", false},
		{without, "site_calls/MPI_Isend in f (f.c)", true}, {without, "site_calls/MPI_Send in f (f.c)", false},
		{without, "sites", true}, {without, "lost_ns", true}, {filtered("pcontrol"), "messages", false},
		{filtered(), "messages", false},
	} {
		if text := c.run.lacks(c.measure); (text != "") != c.lacks {
			t.Errorf("%s, filters %q: %q", c.measure, c.run.Manifest.Filters, text)
		}
	}
	const want = "run pr lacks MPI_Isend (--calls): what they did is not in the measure messages; " +
		"capture it again with all calls"
	if got := without.lacks("messages"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestRulesAboutCallsThatWereLeftOut: such a rule is never passed; it is broken by what is there.
func TestRulesAboutCallsThatWereLeftOut(t *testing.T) {
	counts := map[string]int64{"messages": 2, "collective_calls": 3}
	e := evidence(counts, counts)
	e.Lacks = func(_, measure string) string { return filtered("-call:MPI_Isend").lacks(measure) }
	e.Operations = []string{"MPI_Bcast", "MPI_Scan"}
	e.ByHand = func(string) ([]Manual, error) {
		return []Manual{{Operation: "MPI_Bcast", Text: "4 ranks"}}, errors.New("run pr lacks MPI_Isend")
	}
	for rule, want := range map[string]string{"bound: messages\nat_most: 3": Undecided, "no_more: [messages]": Undecided,
		"same: [collective_calls]": Passed, "no_manual: [all]": Failed, "no_manual: [MPI_Scan]": Undecided} {
		r := checked(t, rule, e)
		if r.Status != want || want == Undecided && !strings.Contains(said(r), "run pr lacks MPI_Isend") {
			t.Errorf("%s: %s, want %s\n%s", rule, r.Status, want, said(r))
		}
	}
}
