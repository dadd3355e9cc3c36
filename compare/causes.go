package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/internal/nearest"
	"github.com/commq/commq/internal/stats"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/run"
)

// Cause is a finding of commq diagnose in a run.
type Cause struct {
	// Rule is its kind: imbalance.
	Rule string
	// Call is the MPI call at its place, and Place that place, which is empty if it is not known. Both are empty where
	// there is no one place.
	Call, Place string
	// GainNs is the time that removing the cause would save, and Share that as a fraction of the run's time. Bound
	// means that both are upper bounds.
	GainNs int64
	Share  float64
	Bound  bool
	// Text says what is the matter.
	Text string
	// Apart means that its time is not part of the run's: only rules that name it judge it.
	Apart bool
	// File and Line are its place in the source; empty and 0 if unknown.
	File string
	Line int32
}

// site is the call with its place.
func (c *Cause) site() string {
	if c.Call == "" {
		return ""
	}
	return run.SiteText(c.Call, "", c.Place)
}

// Causes are the findings of a run.
type Causes struct {
	// Run is the run's name.
	Run string
	// TimeNs is the run's time, to which Share is relative.
	TimeNs int64
	// Machine is the machine on which the run was simulated without its faults.
	Machine string
	// Times is the origin of the times in the findings: simulated if the run was simulated because its own times were
	// not usable, otherwise the run's time origin.
	Times string
	// Clock is the run's compute clock.
	Clock string
	// Found are all of them.
	Found []Cause
	// NotLookedFor has the rules that were not looked for in the run, with the reasons.
	NotLookedFor map[string]string
	// Warnings say what makes them doubtful.
	Warnings []string
}

// repeated is the same finding in several runs on equally many ranks.
type repeated struct {
	Cause            // in the last run that has it
	shares []float64 // by run; 0 where it was not found
}

// noFinding checks that no finding gains more than a part of the time.
func (j *judge) noFinding(runs []int) {
	for _, name := range j.Measures {
		if name != "all" && !slices.ContainsFunc(j.e.CauseRules,
			func(rule string) bool { return matched(name, rule) }) {
			j.missing("unknown finding %q%s", name, nearest.HintOr(name, j.e.CauseRules, "commq diagnose --list has "+
				"all, or take all"))
		}
	}
	by := map[int32][]string{}
	var order []int32
	for _, i := range runs {
		s := &j.e.New[i]
		if by[s.Ranks] == nil {
			order = append(order, s.Ranks)
		}
		by[s.Ranks] = append(by[s.Ranks], s.Run)
	}
	for _, ranks := range order {
		j.findingsOf(by[ranks])
	}
}

// findingsOf judges the findings of runs on equally many ranks by the medians of their shares.
func (j *judge) findingsOf(runs []string) {
	var all []repeated
	for i, run := range runs {
		causes, err := j.e.Causes(run)
		if err != nil {
			j.missing("%v", err)
			return
		}
		for _, text := range causes.Warnings {
			j.note("run %s: %s", run, text)
		}
		for _, name := range j.Measures {
			if why, not := causes.NotLookedFor[name]; not {
				j.missing("%s was not looked for in run %s: %s", name, run, why)
			}
		}
		for _, c := range causes.Found {
			if slices.Contains(j.Measures, "all") && !c.Apart || j.matches(c.Rule) {
				all = addCause(all, c, i, len(runs))
			}
		}
	}
	for i := range all {
		c := &all[i]
		if share := stats.Median(c.shares); share > j.AbovePercent/100 {
			j.broken(Finding{Message: c.message(runs, share, j.AbovePercent), File: c.File, Line: c.Line})
		}
	}
}

// addCause adds a finding of one of several runs to those with the same rule and place. Several in a run add up.
func addCause(all []repeated, c Cause, run, runs int) []repeated {
	i := slices.IndexFunc(all, func(r repeated) bool { return r.Rule == c.Rule && r.site() == c.site() })
	if i < 0 {
		i, all = len(all), append(all, repeated{shares: make([]float64, runs)})
	}
	all[i].Cause = c
	all[i].shares[run] += c.Share
	return all
}

// message says how much of the time mending a finding gains, and how much is allowed.
func (r *repeated) message(runs []string, share, percent float64) string {
	of := "run " + runs[0]
	if len(runs) > 1 {
		of = fmt.Sprintf("%d runs (%s), the median,", len(runs), few(runs))
	}
	most := ""
	if r.Bound {
		most = "at most "
	}
	text := fmt.Sprintf("%s of %s costs %s%s of the time, %s is allowed: %s", r.Rule, of, most, units.Percent(share),
		units.Percent(percent/100), r.Text)
	if site := r.site(); site != "" && !strings.Contains(r.Text, site) {
		text += ", " + site
	}
	return text
}
