package compare

import (
	"strings"
	"testing"
)

// caused is evidence of two runs on 4 ranks, of which only the first has a late sender.
func caused(runs ...string) *Evidence {
	e := &Evidence{CauseRules: []string{"imbalance", "late-sender", "begin", "polling", "twice"}}
	for _, name := range runs {
		e.New = append(e.New, Sample{Run: name, Ranks: 4})
	}
	e.Causes = func(run string) (Causes, error) {
		c := Causes{NotLookedFor: map[string]string{"polling": "the run is too large"}, Found: []Cause{{Rule: "imbalance",
			Call: "MPI_Wait", Place: "a.c:3", Share: 0.05, Text: "Rank 2 computes longer", File: "a.c", Line: 3}}}
		if run == "a" {
			c.Found = append(c.Found, Cause{Rule: "late-sender", Call: "MPI_Send", Place: "a.c:9", Share: 0.03, Bound: true,
				Text: "It is late"}, Cause{Rule: "twice", Share: 0.02, Text: "Once"},
				Cause{Rule: "twice", Share: 0.02, Text: "Again"})
		}
		c.Found = append(c.Found, Cause{Rule: "begin", Call: "MPI_Init", Share: 0.5, Text: "Rank 1 begins", Apart: true})
		return c, nil
	}
	return e
}

func TestNoFinding(t *testing.T) {
	for _, c := range []struct {
		rule, runs, status, message string
	}{
		{"no_finding: [all]\nabove_percent: 2", "a", Failed,
			"imbalance of run a costs 5 % of the time, 2 % is allowed: Rank 2 computes longer, MPI_Wait at a.c:3"},
		{"no_finding: [all]\nabove_percent: 5", "a", Passed, ""},
		{"no_finding: [\"late-*\"]", "a", Failed,
			"late-sender of run a costs at most 3 % of the time, 1 % is allowed: It is late, MPI_Send at a.c:9"},
		{"no_finding: [late-sender]", "a b c", Passed, ""}, // the median of 3 %, 0 and 0
		{"no_finding: [imbalance]", "b c", Failed,
			"imbalance of 2 runs (b c), the median, costs 5 % of the time, 1 % is allowed: Rank 2 computes longer, " +
				"MPI_Wait at a.c:3"},
		{"no_finding: [twice]\nabove_percent: 3", "a", Failed, "twice of run a costs 4 % of the time, 3 % is allowed: Again"},
		{"no_finding: [twice]", "a b c", Passed, ""}, // two findings of one run are of one run: 4 %, 0 and 0
		{"no_finding: [begin]", "b", Failed,
			"begin of run b costs 50 % of the time, 1 % is allowed: Rank 1 begins, MPI_Init"},
		{"no_finding: [polling]", "b", Undecided, "polling was not looked for in run b: the run is too large"},
		{"no_finding: [imbalanc]", "a", Undecided, `unknown finding "imbalanc"; did you mean imbalance?`},
	} {
		r := checked(t, c.rule, caused(strings.Fields(c.runs)...))
		if r.Status != c.status {
			t.Errorf("%s: %s, want %s", c.rule, r.Status, c.status)
		}
		if c.message != "" && (len(r.Findings) == 0 || r.Findings[0].Message != c.message) {
			t.Errorf("%s: %+v, want %s", c.rule, r.Findings, c.message)
		}
	}
}
