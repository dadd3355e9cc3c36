package growth

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/diagnose"
)

// diagnosed is a diagnosis of 1 s with findings whose gains are given in ms.
func diagnosed(name string, ranks int, findings ...diagnose.Finding) *diagnose.Diagnosis {
	for i := range findings {
		findings[i].GainNs *= 1e6
	}
	return &diagnose.Diagnosis{Run: name, Ranks: ranks, TimeNs: 1e9, Machine: "m", Findings: findings}
}

func finding(rule diagnose.Rule, place string, gain int64) diagnose.Finding {
	return diagnose.Finding{Rule: rule, Call: "MPI_Send", Place: place, GainNs: gain, Title: fmt.Sprint("it gains ", gain)}
}

// line fits a straight line through the means of the first and the last number of ranks.
func line(samples []Sample) (*Law, error) {
	mean := func(ranks int64) (sum float64) {
		n := 0.0
		for _, s := range samples {
			if s.Ranks == ranks {
				sum, n = sum+s.Value, n+1
			}
		}
		return sum / n
	}
	first, last := samples[0].Ranks, samples[len(samples)-1].Ranks
	slope := (mean(last) - mean(first)) / float64(last-first)
	return &Law{Formula: fmt.Sprintf("%.3g P", slope), At: func(ranks int64) float64 {
		return mean(first) + slope*float64(ranks-first)
	}}, nil
}

// runs have a constant finding of 100 ms and one of 1 ms for each step ranks.
func runs(step int) (all []*diagnose.Diagnosis) {
	for _, ranks := range []int{8, 2, 4} {
		all = append(all, diagnosed(fmt.Sprint("r.", ranks), ranks, finding(diagnose.Imbalance, "a.c:1", 100),
			finding(diagnose.LateRoot, "a.c:2", int64(ranks/step))))
	}
	return all
}

// A finding that grows is the first from where its line crosses the constant one on.
func TestFirstByLaw(t *testing.T) {
	for _, c := range []struct {
		step int
		want int64
		text string
	}{
		{1, 101, "by the laws the largest from about 101 ranks on, but that is more than 4 times the largest run: a guess"},
		{2, 201, ""},
		{9, 0, ""}, // it does not grow
	} {
		g, err := Compare(runs(c.step), line)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Findings[1].FirstByLaw; got != c.want {
			t.Errorf("step %d: the first on %d ranks, want %d", c.step, got, c.want)
		}
		if diff := cmp.Diff([]int{2, 4, 8}, g.Findings[0].First); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if got := g.Findings[1].first(g); c.text != "" && got != c.text {
			t.Errorf("%q, want %q", got, c.text)
		}
	}
}

// Runs on equally many ranks are repetitions, places that are found twice add up, and a run without the finding counts
// 0.
func TestRepetitions(t *testing.T) {
	g, err := Compare([]*diagnose.Diagnosis{
		diagnosed("a", 4, finding(diagnose.LateSender, "a.c:1", 10), finding(diagnose.LateSender, "a.c:1", 20)),
		diagnosed("b", 4),
		diagnosed("c", 4, finding(diagnose.LateSender, "a.c:1", 50)),
		diagnosed("d", 2, finding(diagnose.LateSender, "a.c:9", 5)),
	}, line)
	if err != nil {
		t.Fatal(err)
	}
	want := []Point{{Ranks: 2}, {Ranks: 4, Found: 2, GainNs: 30e6, Share: 0.03}}
	if diff := cmp.Diff(want, g.Findings[0].Points); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if g.Findings[0].GainLaw != nil || g.Findings[0].Title != "it gains 50" {
		t.Errorf("%+v", g.Findings[0])
	}
	if len(g.Warnings) != 1 || !strings.HasPrefix(g.Warnings[0], "2 numbers of ranks: a law needs 3, and 4 to tell") {
		t.Errorf("warnings %q", g.Warnings)
	}
}

// A finding on two of four numbers of ranks has no law, and gains on different machines are doubtful.
func TestFewPoints(t *testing.T) {
	all := runs(1)
	all[0].Findings = append(all[0].Findings, finding(diagnose.Variation, "", 2e8))
	all[1].Machine = "n"
	g, err := Compare(append(all, diagnosed("r.16", 16)), line)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(g.Findings, func(n Finding) bool { return n.Rule == diagnose.Variation })
	if n := &g.Findings[i]; n.GainLaw != nil ||
		!slices.Contains(n.verdict(g), "found on 1 number of ranks only: a law needs 3") {
		t.Errorf("%q", n.verdict(g))
	}
	if len(g.Warnings) != 1 || g.Warnings[0] != "the gains of r.2 are on n, those of r.4 on m; --machine takes one for all" {
		t.Errorf("warnings %q", g.Warnings)
	}
}

func TestWrongRuns(t *testing.T) {
	for want, all := range map[string][]*diagnose.Diagnosis{
		`diagnose: two runs are called "a"; give each once, or copy one of them to another name`: {diagnosed("a", 2), diagnosed("a", 4)},
		"diagnose: want two runs or more to see what grows":                                      {diagnosed("a", 2)},
	} {
		if _, err := Compare(all, line); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The answer as text, Markdown, CSV and JSON.
func TestFormats(t *testing.T) {
	g, err := Compare(runs(1), line)
	if err != nil {
		t.Fatal(err)
	}
	var text, markdown, table strings.Builder
	if err := g.Text(&text, 0.005, 5, "--all lists them"); err != nil {
		t.Fatal(err)
	}
	want := `3 runs of 2, 4, 8 ranks
warning: 3 numbers of ranks tell few forms of a law apart; use 4 or more

   ranks       2    4    8
   time      1 s  1 s  1 s

1. imbalance, MPI_Send at a.c:1
   it gains 100.
   ranks          2       4       8
   gain      100 ms  100 ms  100 ms
   share       10 %    10 %    10 %
   gain in seconds: 0 P
   share of the time: 0 P
   the largest finding on 2, 4, 8 ranks

2. late-root, MPI_Send at a.c:2
   it gains 8.
   ranks         2      4      8
   gain       2 ms   4 ms   8 ms
   share     0.2 %  0.4 %  0.8 %
   grows with the number of ranks, in time and as a share of it
   gain in seconds: 0.001 P
   share of the time: 0.001 P
   by the laws the largest from about 101 ranks on, but that is more than 4 times the largest run: a guess
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := g.Markdown(&markdown, 0.05, 5); err != nil {
		t.Fatal(err)
	}
	if row := "| imbalance, MPI\\_Send at a.c:1 | 100 ms (10 %) | 100 ms (10 %) | 100 ms (10 %) | 0 P | the largest finding on 2, 4, 8 ranks |\n"; !strings.Contains(markdown.String(), row) || strings.Contains(markdown.String(), "late-root") {
		t.Error(markdown.String())
	}
	if err := g.CSV(&table); err != nil {
		t.Fatal(err)
	}
	if row := "late-root,a.c:2,MPI_Send,8,1,1,8000000,0.008,false,0.001 P,0.001 P,false,101\n"; !strings.HasSuffix(table.String(), row) {
		t.Error(table.String())
	}
	if answer, err := json.Marshal(g); err != nil || !strings.Contains(string(answer), `"first_by_law":101`) {
		t.Errorf("%v, %s", err, answer)
	}
}
