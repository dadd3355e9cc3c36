package queries_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
	"github.com/commq/commq/schema"
)

// findingHeader is a header of eight lines, so that the SELECT begins at line 9.
const findingHeader = `-- question: Does a rank send most of the messages?
-- source: what we look at on Mondays
-- needs: messages
-- gain: messages
-- advice: Share them out.
-- column sent BIGINT 1: Messages of that rank.
-- order: sent DESC
-- cost: One column of messages.
`

const findingSQL = `SELECT send_callsite AS callsite, 'MPI_Send' AS call, CAST(src AS VARCHAR) AS ranks,
  CAST(COUNT(*) * 10 AS BIGINT) AS cost_ns, 'Rank ' || src || ' sends most' AS found,
  CAST(0.5 AS DOUBLE) AS latency, CAST(1 AS DOUBLE) AS bytes, COUNT(*) AS sent
FROM messages GROUP BY send_callsite, src ORDER BY src
`

func look(t *testing.T, s *queries.Search, run queries.Run, all []*queries.Finding) []queries.Answer {
	t.Helper()
	answers, err := s.Look(context.Background(), run, all)
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

// ownFinding reads a user's finding file of this text.
func ownFinding(t *testing.T, text string) ([]*queries.Finding, []queries.Unusable) {
	t.Helper()
	return queries.OwnFindings(ownFolder(t, "busy.sql", text), []string{"imbalance"})
}

// A user's file is asked, and its rows come with the largest cost first.
func TestOwnFinding(t *testing.T) {
	own, unusable := ownFinding(t, findingHeader+findingSQL)
	if len(own) != 1 || len(unusable) != 0 {
		t.Fatalf("%d findings, %+v", len(own), unusable)
	}
	if f := own[0]; f.Name != "busy" || f.Summary != "Does a rank send most of the messages?" || f.Gain != "messages" ||
		f.Advice != "Share them out." || len(f.EvidenceColumns()) != 1 {
		t.Errorf("%+v", f)
	}
	answers := look(t, &queries.Search{}, newRun(t, "few.4", few, example.Manifest(4)), own)
	found := func(rank int32, messages int64) queries.Found {
		return queries.Found{Callsite: schema.NullInt32, Call: "MPI_Send", Ranks: []int32{rank}, CostNs: 10 * messages,
			Text: fmt.Sprintf("Rank %d sends most", rank), Latency: 0.5, Bytes: 1, Evidence: []any{messages}}
	}
	if diff := cmp.Diff([]queries.Found{found(3, 3), found(1, 1)}, answers[0].Found); diff != "" || answers[0].Err != nil {
		t.Errorf("%v, -want +got:\n%s", answers[0].Err, diff)
	}
}

// A file with a wrong header is left out, with file and line.
func TestInvalidFindings(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"-- question: Does a rank send most of the messages?\n", "", `busy.sql: the header has no "-- question: text"; add it`},
		{"-- advice: Share them out.\n", "", `busy.sql: the header has no "-- advice: text"; add it`},
		{"-- gain: messages\n", "", `busy.sql: the header has no "-- gain: text"; add it`},
		{"-- gain: messages", "-- gain: much", `busy.sql: line 4: gain "much": want one of bound, messages, standard`},
		{"-- gain: messages", "-- summary: It.", `busy.sql: line 4: no field is called "summary"`},
		{"column sent BIGINT 1", "column ranks VARCHAR -", "busy.sql: line 6: column ranks: every finding has it; leave this line out"},
		{"column sent BIGINT 1", "column bytes DOUBLE 1", "busy.sql: line 6: column bytes: every finding has it"},
		{"-- needs: messages", "-- needs: luck", `busy.sql: line 3: needs "luck"`},
	} {
		own, unusable := ownFinding(t, strings.Replace(findingHeader, c.old, c.new, 1)+findingSQL)
		if len(own) != 0 || len(unusable) != 1 || !strings.Contains(unusable[0].Err.Error(), c.want) {
			t.Errorf("%q: %d findings, %+v", c.want, len(own), unusable)
		}
	}
	dir := ownFolder(t, "imbalance.sql", findingHeader+findingSQL)
	if _, unusable := queries.OwnFindings(dir, []string{"imbalance"}); len(unusable) != 1 ||
		!strings.Contains(unusable[0].Err.Error(), "commq has a finding of its own called imbalance") {
		t.Errorf("%+v", unusable)
	}
}

// A file whose SELECT or rows are wrong says where, and the others are asked.
func TestWrongFindings(t *testing.T) {
	run := newRun(t, "few.4", few, example.Manifest(4))
	for _, c := range []struct{ old, new, want string }{
		{"FROM messages", "FORM messages", "busy.sql, line 12: "},
		{"CAST(COUNT(*) * 10 AS BIGINT) AS cost_ns", "COUNT(*) * 1.5 AS cost_ns", "busy.sql: column 4 of the SELECT is cost_ns DECIMAL"},
		{"AS found", "AS what", "column 5 of the SELECT is what VARCHAR"},
		{", COUNT(*) AS sent\n", "\n", "busy.sql, line 6: the SELECT has 7 columns and the header 8: there is no sent"},
		{"CAST(0.5 AS DOUBLE)", "CAST(1.5 AS DOUBLE)", "row 1 of the answer: latency: want a factor from 0 to 1, found 1.5"},
		{"CAST(src AS VARCHAR)", "'1,4'", `row 1 of the answer: ranks "1,4": want world ranks below 4, separated by commas`},
		{"COUNT(*) * 10", "-1", "row 1 of the answer: cost_ns: want a time, 0 or more"},
		{"'Rank ' || src || ' sends most'", "''", "row 1 of the answer: found: want a sentence"},
	} {
		dir := ownFolder(t, "busy.sql", findingHeader+strings.Replace(findingSQL, c.old, c.new, 1), "good.sql", findingHeader+findingSQL)
		own, unusable := queries.OwnFindings(dir, nil)
		if len(own) != 2 {
			t.Fatalf("%s: %+v", c.want, unusable)
		}
		answers := look(t, &queries.Search{}, run, own)
		if err := answers[0].Err; err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "busy") {
			t.Errorf("%q: %v", c.want, err)
		}
		if len(answers[1].Found) != 2 || answers[1].Err != nil {
			t.Errorf("beside %q: %+v", c.want, answers[1])
		}
	}
}

// Files that the run has too little for, or that would read too many rows, are not asked.
func TestFindingsNotAsked(t *testing.T) {
	own, _ := ownFinding(t, strings.Replace(findingHeader, "needs: messages", "needs: messages, hashes", 1)+findingSQL)
	m := example.Manifest(4)
	m.Hash = "none"
	run := newRun(t, "few.4", few, m)
	want := `run "few.4" was captured without payload hashes; capture it again with --hash crc64`
	if a := look(t, &queries.Search{}, run, own); a[0].Not != want || a[0].Found != nil {
		t.Errorf("%+v", a[0])
	}
	own, _ = ownFinding(t, findingHeader+findingSQL)
	if a := look(t, &queries.Search{MostRows: 3}, run, own); a[0].Not != "it would read 4 rows" {
		t.Errorf("%+v", a[0])
	}
	if a := look(t, &queries.Search{MostRows: 4}, run, own); a[0].Not != "" || len(a[0].Found) != 2 {
		t.Errorf("%+v", a[0])
	}
}
