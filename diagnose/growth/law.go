package growth

import (
	"fmt"
	"math"
)

// Sample is a value of a run.
type Sample struct {
	// Ranks is the run's number of ranks.
	Ranks int64
	// Value is the value, in any unit.
	Value float64

	found bool // the run has the finding
}

// Law is a value as a function of the number of ranks P.
type Law struct {
	// Formula is the law with its coefficients.
	Formula string `json:"formula"`
	// Error is the mean relative error of predicting the runs of each number of ranks from all others; null if that is
	// not known.
	Error *float64 `json:"error"`
	// At returns the value at a number of ranks.
	At func(ranks int64) float64 `json:"-"`
}

// Fit fits a law to the values of runs of leastForLaw or more numbers of ranks.
type Fit func(samples []Sample) (*Law, error)

// A law needs leastForLaw numbers of ranks: two fit any line. With enoughForLaw forms can be told apart.
const (
	leastForLaw  = 3
	enoughForLaw = 4
)

// setLaws fits the laws of findings that were found on enough numbers of ranks.
func (g *Growth) setLaws(fit Fit) (err error) {
	for i := range g.Findings {
		n := &g.Findings[i]
		if n.foundOn() < leastForLaw {
			continue
		}
		if n.GainLaw, err = fit(n.gains); err == nil {
			n.ShareLaw, err = fit(n.shares)
		}
		if err != nil {
			return fmt.Errorf("diagnose: law of %s: %w", n.Rule, err)
		}
	}
	return nil
}

// foundOn returns the number of different numbers of ranks on which the finding was found.
func (n *Finding) foundOn() (numbers int) {
	for _, p := range n.Points {
		if p.Found > 0 {
			numbers++
		}
	}
	return numbers
}

// firstByLaw searches up to furthest times the ranks of the largest run. A result beyond far times that is called a
// guess.
const (
	far      = 4
	furthest = 1024
)

// setFirst notes for each finding at which numbers of ranks of the runs it has the largest gain, and, if at none, from
// which larger number on by the laws.
func (g *Growth) setFirst() {
	for k, t := range g.Times {
		first := 0
		for i := range g.Findings {
			if g.Findings[i].Points[k].GainNs > g.Findings[first].Points[k].GainNs {
				first = i
			}
		}
		if len(g.Findings) > 0 && g.Findings[first].Points[k].GainNs > 0 {
			g.Findings[first].First = append(g.Findings[first].First, t.Ranks)
		}
	}
	for i := range g.Findings {
		if n := &g.Findings[i]; len(n.First) == 0 && n.GainLaw != nil {
			n.FirstByLaw = g.firstByLaw(i)
		}
	}
}

// firstByLaw returns the number of ranks from which on a finding has the largest gain by the laws; 0 if there is none.
// It doubles the number of ranks of the largest run until the finding is first, then searches between the last two.
func (g *Growth) firstByLaw(i int) int64 {
	most := int64(g.Times[len(g.Times)-1].Ranks)
	low, high := most, 2*most
	for ; !g.isFirst(i, high); low, high = high, 2*high {
		if high >= furthest*most {
			return 0
		}
	}
	for high-low > 1 {
		if middle := (low + high) / 2; g.isFirst(i, middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// isFirst reports whether a finding has the largest gain by the laws.
func (g *Growth) isFirst(i int, ranks int64) bool {
	gain := g.Findings[i].gainOn(ranks)
	if !(gain > 0) || math.IsInf(gain, 0) {
		return false
	}
	for k := range g.Findings {
		if k != i && g.Findings[k].gainOn(ranks) >= gain {
			return false
		}
	}
	return true
}

// gainOn returns the gain in seconds on a number of ranks by its law, or that of the largest run if it has none.
func (n *Finding) gainOn(ranks int64) float64 {
	if n.GainLaw == nil {
		return float64(n.Points[len(n.Points)-1].GainNs) / 1e9
	}
	return n.GainLaw.At(ranks)
}

// A value grows if on the most ranks it is more than leastGrowth times that on the fewest.
const leastGrowth = 1.05

// grows reports whether the gain and its share of the time grow from the fewest to the most ranks of the runs.
func (n *Finding) grows() (gain, share bool) {
	first, last := n.Points[0], n.Points[len(n.Points)-1]
	return float64(last.GainNs) > leastGrowth*float64(first.GainNs), last.Share > leastGrowth*first.Share
}
