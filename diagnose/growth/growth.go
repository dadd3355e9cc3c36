// Package growth tells how the findings of a program change with its number of ranks, from the diagnoses of several
// runs. docs/method/diagnose.md has the method.
//
//	growth.go  the same finding in several runs: its gains by number of ranks
//	law.go     their laws, and the number of ranks at which a finding becomes the first
//	print.go   the answer for people and programs
package growth

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/commq/commq/diagnose"
	"github.com/commq/commq/internal/stats"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/schema"
)

// Growth is how the findings of a program change with its number of ranks.
type Growth struct {
	// Runs are the diagnosed runs, those of fewest ranks first.
	Runs []Run `json:"runs"`
	// Warnings say what makes the answer doubtful.
	Warnings []string `json:"warnings"`
	// Times are the medians of the runs' times by number of ranks.
	Times []Time `json:"times"`
	// Findings are what was found in any of the runs, the one with the largest gain on the most ranks first.
	Findings []Finding `json:"findings"`
}

// Run is a run that was diagnosed.
type Run struct {
	// Run is its name.
	Run string `json:"run"`
	// Ranks is its number of ranks.
	Ranks int `json:"ranks"`
	// TimeNs is its duration without MPI_Init and MPI_Finalize.
	TimeNs int64 `json:"time_ns"`
	// Machine is the machine on which it was simulated without its faults.
	Machine string `json:"machine"`
}

// Time is the time of the program on a number of ranks.
type Time struct {
	// Ranks is the number of ranks.
	Ranks int `json:"ranks"`
	// Runs is how many runs have it.
	Runs int `json:"runs"`
	// TimeNs is the median of their times.
	TimeNs int64 `json:"time_ns"`
}

// Finding is a finding with the same rule, call and place in several runs; which ranks cause it may differ.
type Finding struct {
	// Rule is the kind of finding.
	Rule diagnose.Rule `json:"rule"`
	// Place is the MPI call's place in the program.
	Place string `json:"callsite"`
	// Call is the MPI call at that place.
	Call string `json:"call"`
	// Title says what is the matter in the run of most ranks that has the finding.
	Title string `json:"title"`
	// Advice says what to do.
	Advice string `json:"advice"`
	// Bound means that in one of the runs the gain was not simulated and is at most this.
	Bound bool `json:"bound"`
	// Points are the gains by number of ranks.
	Points []Point `json:"points"`
	// GainLaw is the law of the gain in seconds over the number of ranks; null if it was found on fewer than three.
	GainLaw *Law `json:"gain_law"`
	// ShareLaw is the law of the gain as a fraction of the run's time.
	ShareLaw *Law `json:"share_law"`
	// First are the numbers of ranks of the runs on which this finding has the largest gain of all.
	First []int `json:"first"`
	// FirstByLaw is the number of ranks, more than any run has, from which on it has the largest gain by the laws; 0 if
	// the laws say of none, or if First has one.
	FirstByLaw int64 `json:"first_by_law,omitempty"`

	gains, shares []Sample // a value for each run
}

// Point is the gain of a finding on a number of ranks.
type Point struct {
	// Ranks is the number of ranks.
	Ranks int `json:"ranks"`
	// Found is how many runs on so many ranks have the finding. Its gain in the others counts as 0.
	Found int `json:"found"`
	// GainNs is the median of the gains.
	GainNs int64 `json:"gain_ns"`
	// Share is the median of the gains as fractions of the runs' times.
	Share float64 `json:"share"`
}

// key identifies a finding across runs.
type key struct {
	rule        diagnose.Rule
	call, place string
}

// Compare finds out how the findings of several runs change with the number of ranks. fit fits the laws. Runs of one
// number of ranks are repetitions. Two runs with the same name, and fewer than two runs, are errors.
func Compare(runs []*diagnose.Diagnosis, fit Fit) (*Growth, error) {
	if len(runs) < 2 {
		return nil, errors.New("diagnose: want two runs or more to see what grows")
	}
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b *diagnose.Diagnosis) int { return cmp.Compare(a.Ranks, b.Ranks) })
	g := &Growth{Findings: []Finding{}}
	for i, d := range runs {
		if slices.ContainsFunc(runs[:i], func(e *diagnose.Diagnosis) bool { return e.Run == d.Run }) {
			return nil, fmt.Errorf("diagnose: %w", schema.CalledAlike(d.Run))
		}
		g.Runs = append(g.Runs, Run{d.Run, d.Ranks, d.TimeNs, d.Machine})
	}
	g.setTimes()
	g.Warnings = g.doubts(runs)
	g.match(runs)
	if err := g.setLaws(fit); err != nil {
		return nil, err
	}
	g.setFirst()
	last := len(g.Times) - 1
	slices.SortStableFunc(g.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Points[last].GainNs, a.Points[last].GainNs), cmp.Compare(b.most(), a.most()))
	})
	return g, nil
}

// setTimes sets the times by number of ranks.
func (g *Growth) setTimes() {
	for from := 0; from < len(g.Runs); {
		var times []int64
		ranks := g.Runs[from].Ranks
		for from < len(g.Runs) && g.Runs[from].Ranks == ranks {
			times = append(times, g.Runs[from].TimeNs)
			from++
		}
		g.Times = append(g.Times, Time{ranks, len(times), int64(stats.Median(times))})
	}
}

// doubts returns warnings about the runs together, and those of each run.
func (g *Growth) doubts(runs []*diagnose.Diagnosis) []string {
	all := []string{}
	switch n := len(g.Times); {
	case n < leastForLaw:
		all = append(all, fmt.Sprintf("%s of ranks: a law needs %d, and %d to tell its form well; capture the "+
			"program on more", units.Count(int64(n), "number"), leastForLaw, enoughForLaw))
	case n < enoughForLaw:
		all = append(all, fmt.Sprintf("%d numbers of ranks tell few forms of a law apart; use %d or "+
			"more", n, enoughForLaw))
	}
	if i := slices.IndexFunc(g.Runs, func(r Run) bool { return r.Machine != g.Runs[0].Machine }); i > 0 {
		all = append(all, fmt.Sprintf("the gains of %s are on %s, those of %s on %s; --machine takes one for "+
			"all", g.Runs[0].Run, g.Runs[0].Machine, g.Runs[i].Run, g.Runs[i].Machine))
	}
	for _, d := range runs {
		for _, text := range d.Warnings {
			all = append(all, d.Run+": "+text)
		}
	}
	return all
}

// match joins findings of different runs that have the same key.
func (g *Growth) match(runs []*diagnose.Diagnosis) {
	at := map[key]int{}
	for i, d := range runs {
		for k := range d.Findings {
			f := &d.Findings[k]
			of := key{f.Rule, f.Call, f.Place}
			n, known := at[of]
			if !known {
				n = len(g.Findings)
				at[of] = n
				g.Findings = append(g.Findings, newFinding(f, g.Runs))
			}
			g.Findings[n].add(f, i, d)
		}
	}
	for i := range g.Findings {
		g.Findings[i].setPoints(g.Times)
	}
}

// newFinding returns a finding with a gain of 0 in every run.
func newFinding(f *diagnose.Finding, runs []Run) Finding {
	n := Finding{Rule: f.Rule, Place: f.Place, Call: f.Call, First: []int{}}
	for _, r := range runs {
		n.gains = append(n.gains, Sample{Ranks: int64(r.Ranks)})
	}
	n.shares = slices.Clone(n.gains)
	return n
}

// add adds the finding of a run. Several with the same place but other ranks add up.
func (n *Finding) add(f *diagnose.Finding, run int, d *diagnose.Diagnosis) {
	n.Title, n.Advice, n.Bound = f.Title, f.Advice, n.Bound || f.Bound
	n.gains[run].Value += float64(f.GainNs) / 1e9
	n.shares[run].Value += d.Share(f)
	n.gains[run].found = true
}

// setPoints sets the medians by number of ranks.
func (n *Finding) setPoints(times []Time) {
	from := 0
	for _, t := range times {
		p, gains, shares := Point{Ranks: t.Ranks}, []float64{}, []float64{}
		for i := from; i < from+t.Runs; i++ {
			gains, shares = append(gains, n.gains[i].Value), append(shares, n.shares[i].Value)
			if n.gains[i].found {
				p.Found++
			}
		}
		p.GainNs, p.Share = int64(stats.Median(gains)*1e9+0.5), stats.Median(shares)
		n.Points, from = append(n.Points, p), from+t.Runs
	}
}

// most returns the largest share of the time on any number of ranks.
func (n *Finding) most() (most float64) {
	for _, p := range n.Points {
		most = max(most, p.Share)
	}
	return most
}
